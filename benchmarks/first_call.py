"""What the first call costs: CPU seconds of imports and of a default fit of 1,000 rows, documents or steps.

"Cold" is the first process after an installation, with an empty folder for machine code, "warm" the next one.  The package is
a copy with Python's bytecode, as pip leaves it.  CPU seconds are those of all threads.  "compiled" counts the kernels, without
what they call of NumPy.

    python benchmarks/first_call.py [--models mixture hmm topics] [--ahead]

With --ahead there is one process for each model, after `stickbreak compile` in an empty folder.
"""

import argparse
import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import stickbreak
from common import report

N = 1000
COMPILE = "from stickbreak.cli.compiling import compile_loops; compile_loops(quiet=True)"


def fit(model: str) -> Any:
    from stickbreak import HMM, Mixture, TopicModel

    rng = np.random.default_rng(0)
    if model == "mixture":
        centers = rng.normal(0.0, 8.0, (5, 4))
        return Mixture(random_state=0).fit(centers[np.arange(N) % 5] + rng.standard_normal((N, 4)))
    if model == "hmm":
        states = np.repeat(rng.integers(3, size=N // 25), 25)
        return HMM(random_state=0).fit(rng.normal(10.0 * states[:, None], 1.0, (N, 2)))
    topics = rng.dirichlet(np.full(200, 0.05), 5)
    words = rng.dirichlet(np.full(5, 0.3), N) @ topics
    return TopicModel(random_state=0).fit(np.array([rng.multinomial(100, p) for p in words]))


def one_process(model: str) -> None:
    """Fit once in this process, and print what that took as JSON, the start of Python among imports."""
    from numba.core import event

    import stickbreak.estimators  # noqa: F401  (what is timed)

    imported = time.process_time()
    with event.install_recorder("numba:compile") as seen:
        fit(model)
    fitted = time.process_time()
    names = {e.data["dispatcher"].py_func for _, e in seen.buffer}
    kernels = sum(f.__module__.startswith("stickbreak") for f in names)
    print(json.dumps({"import": imported, "fit": fitted - imported, "compiled": kernels}))


def install(folder: Path) -> None:
    """Copy the package to a folder, with its bytecode."""
    source = Path(stickbreak.__file__).parent
    shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(folder, quiet=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", default=["mixture", "hmm", "topics"])
    parser.add_argument("--ahead", action="store_true", help="compile ahead")
    parser.add_argument("--in-process", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.in_process:
        one_process(arguments.in_process)
        return
    rows = []
    for model in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            install(Path(folder, "site"))
            places = [str(Path(folder, "site")), str(Path(__file__).parent)]
            environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "PYTHONPATH": os.pathsep.join(places)}
            if arguments.ahead:
                subprocess.run([sys.executable, "-c", COMPILE], env=environment, check=True)
            for state in ("ahead",) if arguments.ahead else ("cold", "warm"):
                command = [sys.executable, __file__, "--in-process", model]
                said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
                rows.append({"model": model, "process": state, **json.loads(said.splitlines()[-1])})
    report("first_call", rows)


if __name__ == "__main__":
    main()
