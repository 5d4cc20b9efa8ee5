"""How much faster a lap over chromatin is on several processes: the thesis, section 6.6.4 and Figure 6.6, bottom.

The sequences of `thesis_chromatin.py`, all 672,261 bins of the chromosome, K = 50 states that begin with blocks of rows and
stay.  Seconds of a lap, from fits of 2 and of 7 laps, on one thread of this process, and on 1, 2, 4, ... workers of a Dask
cluster on this machine, each a process with one thread, up to the number of its processors.  The thesis has a third of 15.4
million bins, and 64 workers that are 25 times as fast as one.

    python benchmarks/papers/thesis_chromatin_speed.py [--small] [--seeds 1]

Times are those of a clock: the machine must have nothing else to do.  The full version takes a minute on 2 processors, the
small one (4,000 bins, K = 5) 10 seconds.
"""

import os
import time
import warnings

import numpy as np
from dask import array
from frame import Experiment, Outcome
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from thesis_chromatin import PRIOR, lengths_of, marks

from dask_cluster import cluster
from stickbreak import HMM, DaskExecutor

ALL_BINS = 672_261
FEW, MORE = 2, 7  # laps of the fits whose difference is that of settled laps
SERIAL = "this process"


def seconds(K: int, n_laps: int, X: object, lengths: np.ndarray, executor: DaskExecutor | None) -> float:
    """Of a fit of so many laps."""
    model = HMM(
        PRIOR,
        init="blocks",
        n_init_states=K,
        moves=(),
        learn=False,
        tol=0.0,
        max_laps=n_laps,
        n_jobs=1,
        random_state=0,
        executor=executor,
    )
    began = time.perf_counter()
    model.fit(X, lengths=lengths)
    return time.perf_counter() - began


def lap(K: int, X: object, lengths: np.ndarray, executor: DaskExecutor | None, repeats: int) -> float:
    """Seconds of a lap, the least of several measurements."""
    seconds(K, 1, X, lengths, executor)  # compiles, and brings rows to their workers
    return min(
        (seconds(K, MORE, X, lengths, executor) - seconds(K, FEW, X, lengths, executor)) / (MORE - FEW)
        for _ in range(repeats)
    )


def workers(small: bool) -> list[int]:
    """1, 2, 4, ... up to the number of processors."""
    most = 1 if small else os.cpu_count() or 1
    return [2**i for i in range(most.bit_length())]


def measure(small: bool, seeds: int) -> Outcome:
    warnings.simplefilter("ignore", ConvergenceWarning)
    n_bins, K = (4_000, 5) if small else (ALL_BINS, 50)
    X = marks(n_bins)
    lengths = lengths_of(X)
    runs = [{"where": SERIAL, "processes": 1, "seconds a lap": lap(K, X, lengths, None, seeds)}]
    for n in workers(small):
        with cluster(n) as there:
            parts = array.from_array(X, chunks=(-(-len(X) // (4 * n)), X.shape[1]))
            found = lap(K, parts, lengths, DaskExecutor(there.client), seeds)
        runs.append({"where": "workers", "processes": n, "seconds a lap": found})
    serial = runs[0]["seconds a lap"]
    table = [run | {"speed-up": serial / run["seconds a lap"]} for run in runs]
    return Outcome(table, runs)


def draw(outcome: Outcome, picture: Figure) -> None:
    """Speed-up by processes (Figure 6.6, bottom)."""
    picture.set_size_inches(4.0, 3.2)
    axes = picture.subplots()
    serial, *spread = outcome.runs
    n = [run["processes"] for run in spread]
    axes.plot(n, [serial["seconds a lap"] / run["seconds a lap"] for run in spread], "o-", label="measured")
    axes.plot(n, n, "k:", label="as many times as fast")
    axes.set(xlabel="processes", ylabel="speed-up of a lap", xticks=n)
    axes.legend(fontsize=8)


EXPERIMENT = Experiment("thesis_chromatin_speed", __doc__, measure, draw)

if __name__ == "__main__":
    EXPERIMENT.main()
