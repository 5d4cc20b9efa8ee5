"""An installation that cannot be written to, without a home: the library works, with at most one warning."""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

import stickbreak

from .attacker import FINE, Attacker, Outcome

PROGRAM = """
import warnings, numpy as np
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import stickbreak.kernels.special
    from stickbreak import Mixture
    X = (np.arange(40).reshape(20, 2) % 3 == 0).astype(float)
    Mixture("bernoulli", moves=(), n_jobs=1, max_laps=2, random_state=0).fit(X).predict(X)
said = [str(w.message) for w in caught if "not converged" not in str(w.message)]
assert len(said) <= 1, said
assert all("NUMBA_CACHE_DIR" in text for text in said), said
assert stickbreak.__file__.startswith({folder!r}), stickbreak.__file__
print("works")
"""


@dataclass(frozen=True)
class Install:
    """Where a user without a home would have one, and whether a cache folder of its own is named."""

    home: str = "/dev/null"
    cache: str = ""


CASES = st.builds(
    Install, st.sampled_from(("/dev/null", "/proc/nowhere", "")), st.sampled_from(("", "/dev/null/cache"))
)


def run(case: Install) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="hostile") as name:
        folder = Path(name) / "site"
        source = Path(stickbreak.__file__).parent
        shutil.copytree(source, folder / "stickbreak", ignore=shutil.ignore_patterns("__pycache__"))
        for place in [p for p in (folder / "stickbreak").rglob("*") if p.is_dir()] + [folder / "stickbreak"]:
            (place / "__pycache__").write_text("")  # a file, so that not even root can put anything there
        given = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
        given |= {"PYTHONPATH": str(folder), "HOME": case.home, "PYTHONDONTWRITEBYTECODE": "1"}
        given |= {"XDG_CACHE_HOME": "/dev/null/cache"} | ({"NUMBA_CACHE_DIR": case.cache} if case.cache else {})
        program = PROGRAM.replace("{folder!r}", repr(str(folder)))
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=given, cwd=name)
    if done.returncode == 0 and done.stdout.strip() == "works":
        return Outcome(FINE)
    return Outcome("cannot be used", done.stderr[-400:])


ATTACKERS = [Attacker("readonly", CASES, run, {"Install": Install}, seconds=400.0)]
