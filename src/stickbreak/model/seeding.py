"""First guesses: rows drawn as seeds, and hard assignments to them."""

import numpy as np
from numpy.typing import NDArray

from .model import Model
from .summary import Summary

Array = NDArray[np.floating]


def nearest_seeds(
    model: Model,
    X: Array,
    weights: Array,
    J: int,
    rng: np.random.Generator,
    distance_biased: bool = True,
) -> NDArray[np.intp]:
    """Label each row with the nearest of up to J rows drawn as seeds, (n,).

    Seeds are drawn with chances in proportion to weight and, if ``distance_biased``, to the divergence from the nearest
    seed so far (Bregman k-means++, Thesis Alg. 2.2).
    """
    nearest = np.full(len(X), np.inf)
    labels = np.zeros(len(X), dtype=np.intp)
    seed = int(rng.choice(len(X), p=weights / weights.sum()))
    for j in range(J):
        distance = model.likelihood.divergence(X, X[seed : seed + 1])[:, 0]
        closer = distance < nearest
        labels[closer], nearest[closer] = j, distance[closer]
        chance = weights * nearest if distance_biased else weights * (nearest > 0.0)
        if not chance.sum() > 0.0:
            break
        seed = int(rng.choice(len(X), p=chance / chance.sum()))
    return labels


def hard_summary(T: Array, weights: Array, labels: NDArray[np.intp]) -> Summary:
    """The summary of rows with features T (n, F) each assigned wholly to the cluster of its label."""
    J = int(labels.max()) + 1
    R = np.zeros((len(T), J), dtype=T.dtype)
    R[np.arange(len(T)), labels] = weights
    return Summary(R.sum(axis=0, dtype=np.float64), (R.T @ T).astype(np.float64), np.zeros(J), np.zeros(()))


def distinct_rows(X: Array, weights: Array) -> tuple[Array, Array]:
    """The distinct rows of X with a positive weight, in an order that depends only on their values, and their weights.

    So what is drawn from them is the same whether a row is repeated or has a weight, and in whatever order rows come.
    """
    present = weights > 0.0
    X, weights = X[present], weights[present]
    words = np.ascontiguousarray(X, dtype=np.float64).view(np.uint64)
    mixers = np.random.default_rng(0).integers(2**63, size=X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    words = (words ^ (words >> np.uint64(29))) * mixers
    codes = (words ^ (words >> np.uint64(32))).sum(axis=1, dtype=np.uint64)
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return X[first], np.bincount(inverse, weights, minlength=len(first)).astype(np.float64)
