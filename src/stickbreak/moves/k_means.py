"""k-means: groups of points near each other."""

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.floating]

ROUNDS = 20  # of Lloyd's


def centers_of(points: Array, K: int, rng: np.random.Generator, tries: int = 1) -> Array:
    """The means of up to K groups of points (n, r), from distant ones; of several tries those nearest to all points, (K, r)."""
    found = [_lloyd(points, K, rng) for _ in range(tries)]
    return min(found, key=partial(_distance, points)) if tries > 1 else found[0]


def nearest(points: Array, centers: Array) -> NDArray[np.intp]:
    """The center nearest to each point, (n,)."""
    return np.asarray(((centers**2).sum(axis=1) - 2.0 * points @ centers.T).argmin(axis=1))


def _lloyd(points: Array, K: int, rng: np.random.Generator) -> Array:
    centers = points[rng.integers(len(points), size=1)]
    far = np.full(len(points), np.inf)
    while len(centers) < K:
        far = np.minimum(far, ((points - centers[-1]) ** 2).sum(axis=1))
        if not far.any():
            break
        chosen = rng.choice(len(points), p=far / far.sum())
        centers = np.vstack([centers, points[chosen]])
    for _ in range(ROUNDS):
        labels = np.unique(nearest(points, centers), return_inverse=True)[1]
        members = sparse.csr_array((np.ones(len(labels)), labels, np.arange(len(labels) + 1)))
        centers = (members.T @ points) / np.bincount(labels)[:, None]
    return centers


def _distance(points: Array, centers: Array) -> float:
    """The sum of squared distances of points from the center nearest to each."""
    return float(((points - centers[nearest(points, centers)]) ** 2).sum())
