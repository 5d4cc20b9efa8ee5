"""The tests of this folder with every index of the kernels checked, as in no other run: they are compiled anew for it."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
import numpy as np
import pytest
from stickbreak.kernels.sparse import csr_scores

try:
    csr_scores(np.array([0, 1]), np.array([3]), np.ones(1), np.ones((3, 2)), np.empty((1, 2)))
except IndexError:
    print("indices are checked")
sys.exit(pytest.main(sys.argv[1:]))
"""


def test_no_kernel_reads_or_writes_outside_its_arrays(tmp_path):
    """Compiled code that was stored knows nothing of the option, so it gets a folder of its own; it need not be quick."""
    options = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1", "NUMBA_LOOP_VECTORIZE": "0", "NUMBA_SLP_VECTORIZE": "0"}
    environment = os.environ | options | {"NUMBA_CACHE_DIR": str(tmp_path)}
    folder = Path(__file__).parent
    command = [sys.executable, "-c", SCRIPT, str(folder), "-q", "-x", "-p", "no:cacheprovider"]
    # Other kernels have the same indices in both precisions; smaller fits call the same kernels as whole ones.
    command += ["-k", "(not float32 or test_documents) and not a_fit"]
    for name in (Path(__file__).name, "test_jit.py"):  # which start processes of their own
        command += ["--ignore", str(folder / name)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert "indices are checked" in ran.stdout
