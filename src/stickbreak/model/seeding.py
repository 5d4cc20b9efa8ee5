"""First guesses: rows drawn as seeds, and hard assignments to them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..likelihoods.features import Rows
from .model import Model
from .products import add_product
from .summary import Summary

Array = NDArray[np.floating]


def nearest_seeds(
    model: Model,
    X: Rows,
    weights: Array,
    J: int,
    rng: np.random.Generator,
    distance_biased: bool = True,
) -> NDArray[np.intp]:
    """Label each row with the nearest of up to J rows drawn as seeds, (n,).

    Seeds are drawn with chances in proportion to weight and, if ``distance_biased``, to the divergence from the nearest
    seed so far (Bregman k-means++, Thesis Alg. 2.2).
    """
    nearest = np.full(len(weights), np.inf)
    labels = np.zeros(len(weights), dtype=np.intp)
    seed = int(rng.choice(len(weights), p=weights / weights.sum()))
    divergence = model.likelihood.divergence_of(X)
    for j in range(J):
        join_nearer(divergence(X[seed : seed + 1])[:, 0], j, labels, nearest)
        chance = weights * nearest if distance_biased else weights * (nearest > 0.0)
        if not chance.sum() > 0.0:
            break
        seed = int(rng.choice(len(weights), p=chance / chance.sum()))
    return labels


def join_nearer(distance: Array, label: int, labels: NDArray[np.intp], nearest: Array) -> None:
    """Give ``label`` to the rows whose ``distance`` (n,) is less than ``nearest`` (n,), which becomes that distance."""
    closer = distance < nearest
    labels[closer], nearest[closer] = label, distance[closer]


def hard_summary(T: Any, weights: Array, labels: NDArray[np.intp]) -> Summary:
    """The summary of rows with features T (n, F), dense or CSR, each assigned wholly to the cluster of its label."""
    n = len(labels)
    J = int(labels.max()) + 1
    R = sparse.csr_array((weights, labels, np.arange(n + 1)), (n, J))
    S = np.zeros((J, T.shape[1]))
    add_product(R, T, S)
    return Summary(np.asarray(R.sum(axis=0)), S, np.zeros(J), np.zeros(()))
