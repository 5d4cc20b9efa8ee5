"""The tests of fits on Dask, in a process of their own: dask leaves threads behind, which tests of interrupts count."""

import subprocess
import sys
from pathlib import Path


def test_fits_on_dask():
    cases = Path(__file__).with_name("fits_on_dask.py")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "0",
        "-q",
        "--show-capture=no",
        "-p",
        "no:cacheprovider",
        str(cases),
    ]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-8000:]
