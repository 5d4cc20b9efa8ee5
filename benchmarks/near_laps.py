"""A settled lap that looks only at clusters near those of the last one, beside one that looks at all: seconds, in pairs.

    python benchmarks/near_laps.py [--rows 300000 1000000] [--clusters 100 250 500 1000] [--columns 32] [--repeats 5]
    python benchmarks/near_laps.py --fits mnist|gaussians [--rows 20000] [--clusters 60] [--columns 8] [--seeds 5]

Rows are Gaussians of unit variance, and laps have the batches that `Mixture` would take. "lost" is what the bound of the lap
lacks of that of all clusters, in nats.  --fits has whole fits from one cluster, with and without near laps, in pairs; few
columns make clusters that overlap.
"""

import argparse
import time

import numpy as np

from common import mnist50, report
from many_rows import gaussians
from stickbreak import Mixture
from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource
from stickbreak.inference import Options, Threads
from stickbreak.inference.lap import first_lap, lap
from stickbreak.inference.state import Problem, State
from stickbreak.likelihoods import Gaussian, Sample
from stickbreak.likelihoods.features import features
from stickbreak.model import Model, RowKind
from stickbreak.moves import Schedule

BATCHES = 10


def settled(X: np.ndarray, z: np.ndarray, K: int, threads: Threads) -> tuple[Problem, State]:
    """An ascent without moves, one lap after its start at the true clusters."""
    model = Model(Gaussian().resolve(Sample.of(X)), DirichletProcess(), RowKind(candidates=16))
    S = np.zeros((K, model.likelihood.n_statistics))
    for start in range(0, len(X), 4096):
        rows = slice(start, start + 4096)
        np.add.at(S, z[rows], features(model.likelihood, X[rows]))
    start = model.start(np.bincount(z, minlength=K).astype(float), S)
    problem = Problem(ArraySource(X), threads, Options(BATCHES, accelerate=False))
    return problem, first_lap(problem, model, start, Schedule(()), np.random.default_rng(0), 0)[0]


def measure(N: int, K: int, D: int, repeats: int) -> dict[str, object]:
    """Median seconds of both laps, taken in turns."""
    X, z = gaussians(N, K, D)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    busy: dict[bool, list[float]] = {False: [], True: []}
    bounds = {}
    with Threads() as threads:
        problem, state = settled(X, z, K, threads)
        for _ in range(repeats):
            for near in (False, True):
                began, used = time.perf_counter(), time.process_time()
                after, _ = lap(problem, state._replace(near=near))
                seconds[near].append(time.perf_counter() - began)
                busy[near].append(time.process_time() - used)
                bounds[near] = after.bound
    every, near = (float(np.median(seconds[kind])) for kind in (False, True))
    return {
        "rows": N,
        "columns": D,
        "K": K,
        "all clusters s": every,
        "near clusters s": near,
        "times faster": every / near,
        "all clusters CPU s": float(np.median(busy[False])),
        "near clusters CPU s": float(np.median(busy[True])),
        "lost": bounds[False] - bounds[True],
    }


def fits(data: str, N: int, K: int, D: int, seeds: int) -> list[dict[str, object]]:
    """Bounds, clusters and CPU seconds of fits of the same rows and random numbers."""
    X = mnist50()[0][:N] if data == "mnist" else gaussians(N, K, D)[0]
    rows = []
    for seed in range(seeds):
        row: dict[str, object] = {"data": data, "rows": len(X), "seed": seed}
        bounds = {}
        for name, candidates in (("all", None), ("near", 16)):
            used = time.process_time()
            fit = Mixture("gaussian", learn=False, candidates=candidates, random_state=seed).fit(X)
            bounds[name] = fit.lower_bound_
            row |= {f"{name} K": fit.n_clusters_, f"{name} CPU s": time.process_time() - used}
        rows.append(row | {"near is higher by": bounds["near"] - bounds["all"]})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[300_000, 1_000_000])
    parser.add_argument("--clusters", type=int, nargs="+", default=[100, 250, 500, 1000])
    parser.add_argument("--columns", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--fits", choices=["mnist", "gaussians"])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    if options.fits:
        K = options.clusters[0]
        report("near_fits", fits(options.fits, options.rows[0], K, options.columns, options.seeds))
        return
    rows = [measure(N, K, options.columns, options.repeats) for N in options.rows for K in options.clusters]
    report("near_laps", rows)


if __name__ == "__main__":
    main()
