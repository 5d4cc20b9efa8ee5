"""Correlated clusters with missing cells: how many are found, and what a lap takes.

Three clusters in five columns, each with a covariance of its own, of which a share of the cells is missing at random: clusters,
and agreement with those that rows were drawn from (adjusted Rand index), by the default family, by independent columns, and by
full covariances from the true clusters.  "null" is one correlated Gaussian.  Then a lap of ten clusters, as a multiple of
that of complete rows.

    python benchmarks/missing_cells.py
    python benchmarks/missing_cells.py --laps
"""

import sys
import time
import warnings

import numpy as np
from sklearn.metrics import adjusted_rand_score

from common import report
from stickbreak import Mixture
from stickbreak.allocations import DirichletProcess
from stickbreak.likelihoods import Gaussian, Sample
from stickbreak.model import Model, Summary, local_step

SHARES = 0.0, 0.01, 0.1, 0.4
SEEDS = 5
FLOAT = np.dtype(np.float64)


def clusters(rng: np.random.Generator, n: int, D: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of correlated Gaussian clusters, and their labels."""
    z = rng.integers(K, size=n)
    mixing = rng.standard_normal((K, D, D)) + 0.5 * np.eye(D)
    return 3.0 * rng.standard_normal((K, D))[z] + np.einsum("nij,nj->ni", mixing[z], rng.standard_normal((n, D))), z


def with_gaps(X: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(X.shape) < share, np.nan, X)


def found(seed: int, share: float) -> dict[str, object]:
    """What is found in one table of clusters and one of a single Gaussian."""
    rng = np.random.default_rng(seed)
    X, z = clusters(rng, 1500, 5, 3)
    X = with_gaps(X, share, rng)
    row: dict[str, object] = {"missing": share, "seed": seed}
    starts = {"auto": "one", "diagonal_gaussian": "one", "gaussian": z}
    for family, init in starts.items():
        model = Mixture(family, init=init, random_state=0, n_jobs=1).fit(X)
        name = "from the truth" if family == "gaussian" else family
        row[name] = f"{model.n_clusters_} ({adjusted_rand_score(z, model.labels_):.3f})"
        row[f"{name}, nats"] = round(model.lower_bound_, 1)
    one = rng.standard_normal((1500, 5)) @ rng.standard_normal((5, 5))
    row["null"] = Mixture(random_state=0, n_jobs=1).fit(with_gaps(one, share, rng)).n_clusters_
    return row


def lap(n: int, D: int, share: float) -> float:
    """Process seconds of a local step of ten clusters."""
    rng = np.random.default_rng(0)
    X, z = clusters(rng, n, D, 10)
    X = with_gaps(X, share, rng)
    model = Model(Gaussian().resolve(Sample.of(X)), DirichletProcess(1.0))
    R = np.eye(10)[z]
    T = model.likelihood.features(X, np.empty((n, model.likelihood.n_statistics)))
    summary = Summary(R.sum(axis=0), R.T @ T, np.zeros(10), np.zeros(()))
    times = []
    for _ in range(5):
        parameters = model.parameters(summary, FLOAT)
        began = time.process_time()
        summary, _ = local_step(model.likelihood, parameters, X, np.ones(n))
        times.append(time.process_time() - began)
    return min(times)


def laps() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for n, D in ((20_000, 6), (10_000, 20), (4000, 60)):
        seconds = {share: lap(n, D, share) for share in SHARES}
        times = {f"{share:.0%}": round(seconds[share] / seconds[0.0], 1) for share in SHARES}
        rows.append({"rows": n, "columns": D, "complete, ms": round(1e3 * seconds[0.0], 1), **times})
    return rows


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if "--laps" in sys.argv:
        report("missing_cells_laps", laps())
    else:
        report("missing_cells", [found(seed, share) for share in SHARES for seed in range(SEEDS)])
