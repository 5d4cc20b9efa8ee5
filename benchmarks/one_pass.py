"""One pass over many rows (`Sequential`): seconds, clusters, and nats a row below the truth as a start of laps.

    python benchmarks/one_pass.py [--millions 1] [--clusters 50] [--columns 32] [--seeds 1] [--family gaussian]

Rows are from well separated Gaussians of unit variance, in random order; hyperparameters are learnt on a sample.
"""

import argparse
import time

import numpy as np
from sklearn.metrics import adjusted_rand_score

from common import memory, report
from many_rows import WARM, gaussians
from stickbreak import Mixture
from stickbreak.inference import Sequential


def measure(X: np.ndarray, truth: np.ndarray, family: str, seed: int, n_jobs: int | None) -> dict[str, object]:
    """A fit in one pass, and one from the true clusters by a lap or two."""
    began, busy = time.perf_counter(), time.process_time()
    fit = Mixture(family, algorithm=Sequential(), random_state=seed, n_jobs=n_jobs).fit(X)
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    best = Mixture(fit.model_.likelihood, init=truth, moves=(), learn=False, n_jobs=n_jobs).fit(X)
    return {
        "rows": len(X),
        "columns": X.shape[1],
        "family": family,
        "seed": seed,
        "seconds": seconds,
        "CPU seconds": busy,
        "K": fit.n_clusters_,
        "ARI": float(adjusted_rand_score(truth, fit.labels_)),
        "nats a row below the truth": (best.lower_bound_ - fit.lower_bound_) / len(X),
        "peak MB": memory(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=float, default=1.0)
    parser.add_argument("--clusters", type=int, default=50)
    parser.add_argument("--columns", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--family", default="gaussian")
    parser.add_argument("--jobs", type=int, default=None)
    options = parser.parse_args()
    X, truth = gaussians(int(1e6 * options.millions), options.clusters, options.columns)
    Mixture(options.family, algorithm=Sequential(), random_state=0).fit(X[:WARM])
    report("one_pass", [measure(X, truth, options.family, seed, options.jobs) for seed in range(options.seeds)])


if __name__ == "__main__":
    main()
