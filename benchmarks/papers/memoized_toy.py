"""The toy of the 2013 paper, section 4.1: 100,000 patches of 5 x 5 pixels from 8 zero-mean Gaussians with strong edges.

Each Gaussian has one edge through the patch, at one of 8 angles: pixels on the same side vary together, those on opposite sides
independently.  All 8 must be found from one cluster, visiting 100 batches.

    python benchmarks/papers/memoized_toy.py [--small] [--seeds 10]

The full version takes 3 CPU minutes, the small one (10,000 patches) 3 seconds.
"""

import time

import numpy as np
from frame import Experiment, Outcome
from matplotlib.figure import Figure

from stickbreak import Mixture


def edge_covariances(size: int = 5, n: int = 8) -> np.ndarray:
    """Covariances (n, size^2, size^2) of patches with an edge at n angles."""
    y, x = np.mgrid[:size, :size] - (size - 1) / 2.0
    covariances = []
    for angle in np.arange(n) * np.pi / n:
        side = np.tanh(2.0 * (x * np.cos(angle) + y * np.sin(angle)).ravel())
        left, right = (1.0 + side) / 2.0, (1.0 - side) / 2.0
        covariances.append(np.outer(left, left) + np.outer(right, right) + 0.05 * np.eye(size * size))
    return np.array(covariances)


def edge_patches(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n_rows, 25) and the Gaussian each came from."""
    rng = np.random.default_rng(seed)
    factors = np.linalg.cholesky(edge_covariances())
    labels = rng.integers(len(factors), size=n_rows)
    noise = rng.standard_normal((n_rows, factors.shape[1]))
    return np.einsum("nij,nj->ni", factors[labels], noise), labels


def fit(seed: int, n_rows: int) -> dict[str, object]:
    """One fit of the library, from one cluster, with 100 batches."""
    X, _ = edge_patches(n_rows, seed)
    began = time.process_time()
    model = Mixture("zero_mean_gaussian", n_batches=100, random_state=seed, learn=False).fit(X)
    passes = np.cumsum([(lap.sample_rows or n_rows) / n_rows for lap in model.history_]).tolist()
    closest = np.array([[np.abs(c - t).max() for t in edge_covariances()] for c in model.covariances_])
    return {
        "method": "stickbreak",
        "seed": seed,
        "K": model.n_clusters_,
        "found": len(set(closest.argmin(axis=1)[closest.min(axis=1) < 0.1])),
        "CPU seconds": time.process_time() - began,
        "passes": passes,
        "ELBO": [lap.explored_bound / n_rows for lap in model.history_],
    }


def measure(small: bool, seeds: int) -> Outcome:
    n_rows = 10_000 if small else 100_000
    runs = [fit(seed, n_rows) for seed in range(seeds)]
    right = sum(run["K"] == run["found"] == 8 for run in runs)
    return Outcome([{"what": "runs that find all 8", "paper": "10 of 10", "ours": f"{right} of {seeds}"}], runs)


def draw(outcome: Outcome, picture: Figure) -> None:
    axes = picture.subplots()
    for run in outcome.runs:
        axes.plot(run["passes"], run["ELBO"])
    axes.set(xlabel="passes through the data", ylabel="ELBO per patch (nats)")


EXPERIMENT = Experiment("memoized_toy", __doc__, measure, draw, seeds=10)

if __name__ == "__main__":
    EXPERIMENT.main()
