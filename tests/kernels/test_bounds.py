"""The tests of this folder with every index of the kernels checked: uncompiled, loops index arrays as NumPy does."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import math
import pkgutil
import sys
import warnings
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from kernels.test_places import FITS, PARAMETERS
from stickbreak import kernels

lenient = SimpleNamespace(**vars(math) | {name: getattr(np, name) for name in ("exp", "log", "log1p", "sqrt")})
for found in pkgutil.iter_modules(kernels.__path__):
    module = import_module(f"stickbreak.kernels.{found.name}")
    if hasattr(module, "math"):
        module.math = lenient  # as in machine code, the logarithm of zero is no error
try:
    kernels.sparse.csr_scores(np.array([0, 1]), np.array([3]), np.ones(1), np.ones((3, 2)), np.empty((1, 2)))
except IndexError:
    print("indices are checked")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for name, fit in FITS.items():
        PARAMETERS["max_laps"] = 2 if "topics" in name else 8  # two laps of topics run every line that four do
        fit(np.random.default_rng(0))
print("models are fitted")
sys.exit(pytest.main(sys.argv[1:]))
"""
# They are about machine code, or start processes of their own, or are the fits above.
OTHERS = ("test_bounds.py", "test_jit.py", "test_inlined.py", "test_unrolling.py", "test_places.py")
# Other kernels have the same indices in both precisions; many draws, steps, tokens and laps repeat the same loops, slowly.
SLOW = ("a_fit", "tokens_stay", "draws", "drawn_as_often", "ends_at_a_maximum", "best_of_all_sets", "fits_and_readings")
CHOSEN = " and not ".join(("(not float32 or test_documents)", *SLOW))


def test_no_kernel_reads_or_writes_outside_its_arrays():
    """Compiled anew with checks of indices, the kernels take longer to compile than loops of Python over so few numbers."""
    folder = Path(__file__).parent
    command = [sys.executable, "-c", SCRIPT, str(folder), "-q", "-x", "-p", "no:cacheprovider", "-k", CHOSEN]
    command += ["-W", "ignore::RuntimeWarning"]  # of whole numbers that wrap around, and of logarithms of zero
    for name in OTHERS:
        command += ["--ignore", str(folder / name)]
    places = str(folder.parent), *filter(None, [os.environ.get("PYTHONPATH")])
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(places)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert "indices are checked" in ran.stdout
    assert "models are fitted" in ran.stdout
