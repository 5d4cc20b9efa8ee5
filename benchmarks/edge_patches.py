"""The toy of the 2013 paper, section 4.1: 100,000 patches of 5 x 5 pixels from 8 zero-mean Gaussians with strong edges.

Each Gaussian has one edge through the patch, at one of 8 angles: pixels on the same side vary together, those on opposite sides
independently.  All 8 must be found from one cluster, visiting 100 batches.

    python benchmarks/edge_patches.py [--seeds 10]
"""

import argparse
import time

import numpy as np
from sklearn.metrics import adjusted_rand_score

from common import report
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


def run(seed: int) -> dict[str, object]:
    X, truth = edge_patches(100_000, seed)
    began = time.perf_counter()
    model = Mixture("zero_mean_gaussian", n_batches=100, random_state=seed, learn=False).fit(X)
    found = time.perf_counter() - began
    ideal = Mixture("zero_mean_gaussian", init=truth, moves=(), learn=False).fit(X)
    closest = np.array([[np.abs(c - t).max() for t in edge_covariances()] for c in model.covariances_])
    return {
        "seed": seed,
        "K": model.n_clusters_,
        "Gaussians found": len(set(closest.argmin(axis=1)[closest.min(axis=1) < 0.1])),
        "adjusted Rand": float(adjusted_rand_score(truth, model.labels_)),
        "adjusted Rand of the truth's fit": float(adjusted_rand_score(truth, ideal.labels_)),
        "ELBO": model.lower_bound_,
        "ELBO from the truth": ideal.lower_bound_,
        "laps": model.n_laps_,
        "seconds": found,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    report("edge_patches", [run(seed) for seed in range(parser.parse_args().seeds)])
