"""Checkpoints: fits that are killed again and again end like fits that are not; and what writing costs.

    python benchmarks/checkpoints.py kills [--fits 50] [--only HMM]
    python benchmarks/checkpoints.py cost [--rows 200000] [--seconds 2]

`kills`: each fit runs in a process of its own, which is killed with SIGKILL at a random moment, and is taken up again, until
it is done.  Its checkpoint is written after every lap, so that many kills fall into the writing.  `cost`: the share of the
time of a fit that goes into the hash of the data and into writing.
"""

import argparse
import os
import signal
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from common import report
from stickbreak import HMM, Mixture, TopicModel
from stickbreak.storage import checkpoint

Fit = Callable[..., Mixture | TopicModel | HMM]


def rows(n: int, K: int, D: int) -> np.ndarray:
    """Rows (n, D) of K clusters."""
    rng = np.random.default_rng(0)
    return rng.normal(0.0, 6.0, (K, D))[rng.integers(K, size=n)] + rng.normal(size=(n, D))


def documents() -> np.ndarray:
    """Counts (80, 30) of words of three topics."""
    rng = np.random.default_rng(2)
    topics = rng.dirichlet(np.full(30, 0.1), 3)
    shares = rng.dirichlet(np.full(3, 0.3), 80)
    return np.array([rng.multinomial(40, p) for p in shares @ topics]).astype(float)


def series() -> np.ndarray:
    """A sequence (240, 2) of three states."""
    rng = np.random.default_rng(1)
    states = np.repeat(rng.integers(3, size=20), 12)
    return np.array([[0.0, 5.0], [5.0, 0.0], [9.0, 9.0]])[states] + rng.normal(size=(len(states), 2))


FITS: dict[str, Fit] = {
    "Mixture": lambda **given: Mixture(n_batches=3, random_state=0, n_jobs=1, **given).fit(rows(400, 4, 2)),
    "Mixture, from a sample": lambda **given: Mixture(
        "diagonal_gaussian", learn=(), random_state=0, n_jobs=1, max_laps=16, **given
    ).fit(rows(21_000, 4, 2)),
    "TopicModel": lambda **given: TopicModel(n_init_topics=6, random_state=0, n_jobs=1, **given).fit(documents()),
    "HMM": lambda **given: HMM(random_state=0, n_jobs=1, max_laps=60, **given).fit(series()),
}


def killed(fit: Callable[[], object], seconds: float) -> bool:
    """Fit in a process of its own, which is killed after so many seconds; whether it was."""
    child = os.fork()
    if child == 0:
        try:
            fit()
        finally:
            os._exit(0)
    ends = time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() >= ends:
            os.kill(child, signal.SIGKILL)
            return os.WIFSIGNALED(os.waitpid(child, 0)[1])
        time.sleep(0.001)
    return False


def same(found: Mixture | TopicModel | HMM, other: Mixture | TopicModel | HMM) -> bool:
    """Whether two fits are equal, bit for bit."""
    pairs = zip(vars(found.summary_).values(), vars(other.summary_).values(), strict=True)
    bounds = found.lower_bounds_ == other.lower_bounds_ and found.lower_bound_ == other.lower_bound_
    return bounds and all(np.array_equal(a, b) for a, b in pairs)


def kills(name: str, n: int, folder: Path) -> dict[str, object]:
    """So many fits, each killed until it is done."""
    FITS[name]()  # compiles
    began = time.monotonic()
    whole = FITS[name]()
    took = time.monotonic() - began
    rng = np.random.default_rng(0)
    checkpoint.SHARE = np.inf  # a writing after every lap
    equal = 0
    times = 0
    for i in range(n):
        path = folder / f"{name} {i}"
        given = {"checkpoint": path, "checkpoint_seconds": 0}
        while killed(partial(FITS[name], **given), took * rng.uniform(0.05, 0.7)):
            times += 1
        equal += same(FITS[name](**given), whole)
    return {"fit": name, "fits": n, "kills": times, "equal": equal}


def cost(n: int, seconds: float, folder: Path) -> dict[str, object]:
    """What a checkpoint adds to the time of a fit."""
    spent = []

    def timed(method: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object) -> object:
            began = time.process_time()
            found = method(*given)
            spent.append(time.process_time() - began)
            return found

        return call

    X = rows(n, 30, 16)
    path = folder / "cost"
    checkpoint.Checkpoint._write = timed(checkpoint.Checkpoint._write)
    checkpoint.Checkpoint.open = timed(checkpoint.Checkpoint.open)
    checkpoint.Checkpoint._lighten = timed(checkpoint.Checkpoint._lighten)
    sizes = []
    write = checkpoint.write

    def sized(*given: object) -> None:
        write(*given)
        sizes.append(path.stat().st_size)

    checkpoint.write = sized
    began = time.process_time()
    fit = Mixture("gaussian", random_state=0, n_jobs=1, checkpoint=path, checkpoint_seconds=seconds).fit(X)
    took = time.process_time() - began
    return {
        "rows": n,
        "CPU seconds": took,
        "share, %": 100.0 * sum(spent) / took,
        "writings": len(sizes),
        "largest file, MB": max(sizes) / 1e6,
        "K": fit.n_clusters_,
        "laps": fit.n_laps_,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["kills", "cost"])
    parser.add_argument("--fits", type=int, default=50)
    parser.add_argument("--only", nargs="*", choices=list(FITS))
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--seconds", type=float, default=2.0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        if given.what == "cost":
            report("checkpoints_cost", [cost(given.rows, given.seconds, Path(folder))])
            return
        found = []
        for name in given.only or FITS:
            found.append(kills(name, given.fits, Path(folder)))
            report("checkpoints_kills", found)


if __name__ == "__main__":
    main()
