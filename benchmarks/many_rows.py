"""Default fits of many rows, nobody choosing anything: seconds, clusters, and whether the search ends by itself.

    python benchmarks/many_rows.py gaussians [--millions 1] [--clusters 100] [--columns 32] [--seeds 1] [--device cuda]
    python benchmarks/many_rows.py mnist [--seeds 3]

`gaussians` are well separated clusters of unit variance; `mnist` has 60,000 rows of 50 principal components, and their digits.
Rows are float64, with ``--single`` float32.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from common import memory, mnist50, report
from stickbreak import DataWarning, Mixture

SPREAD = 3.0  # standard deviation of the means of the clusters
WARM = 5000  # rows of a fit before any is timed, by which everything is compiled


def gaussians(N: int, K: int, D: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (N, D) of K clusters of unit variance and equal weight, and the cluster of each."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(K, D)) * SPREAD
    z = rng.integers(K, size=N)
    return means[z] + rng.normal(size=(N, D)), z


def measure(X: np.ndarray, truth: np.ndarray, seed: int, **how: object) -> dict[str, object]:
    """A default fit."""
    began, busy = time.perf_counter(), time.process_time()
    fit = Mixture(random_state=seed, **how).fit(X)
    return {
        "rows": len(X),
        "on": how["device"] or "processors",
        "seed": seed,
        "seconds": time.perf_counter() - began,
        "CPU seconds": time.process_time() - busy,
        "K": fit.n_clusters_,
        "peak K": max(lap.explored_clusters for lap in fit.history_),
        "ARI": float(adjusted_rand_score(truth, fit.labels_)),
        "bound": fit.lower_bound_,
        "laps": fit.n_laps_,
        "ended by itself": str(fit.converged_),
        **{f"at {t} s": bound_at(fit, t) for t in (15, 30, 60)},
        "peak MB": memory(),
    }


def bound_at(fit: Mixture, seconds: float) -> float:
    """The bound of all rows that the fit had after so many seconds; not a number where laps were on samples."""
    laps = [lap for lap in fit.history_ if lap.seconds <= seconds]
    return laps[-1].lower_bound if laps and laps[-1].sample_rows == 0 else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", choices=("gaussians", "mnist"))
    parser.add_argument("--millions", type=float, default=1.0, metavar="N")
    parser.add_argument("--clusters", type=int, default=100, metavar="K")
    parser.add_argument("--columns", type=int, default=32, metavar="D")
    parser.add_argument("--seeds", type=int, metavar="N", help="1 of gaussians, 3 of mnist")
    parser.add_argument("--jobs", type=int, metavar="N", help="threads, by default one for each processor")
    parser.add_argument("--likelihood", default="auto")
    parser.add_argument("--device", help='such as "cuda"')
    parser.add_argument("--single", action="store_true", help="rows in float32")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", DataWarning)
    if options.rows == "mnist":
        X, truth = mnist50()
    else:
        X, truth = gaussians(int(options.millions * 1e6), options.clusters, options.columns)
    X = X.astype(np.float32) if options.single else X
    how = {"likelihood": options.likelihood, "n_jobs": options.jobs, "device": options.device}
    Mixture(random_state=0, max_laps=3, **how).fit(X[:WARM])
    seeds = options.seeds or (3 if options.rows == "mnist" else 1)
    report(f"many_rows_{options.rows}", [measure(X, truth, seed, **how) for seed in range(seeds)])


if __name__ == "__main__":
    main()
