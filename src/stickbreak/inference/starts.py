"""Starts of mixtures by name: clusters of a sample of the rows, scaled to all of them."""

from collections.abc import Mapping
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource
from ..model import Model, Summary, local_step
from .init import Sampled, from_seeds

FLOAT = np.dtype(np.float64)
MOST_STEPS = 100  # of hard assignments
SHARE = 20  # a block of rows in random order has at most one in so many of those before it


class Start(Protocol):
    """How a fit may begin."""

    def __call__(self, model: Model, source: ArraySource, K: int, *, rng: np.random.Generator) -> Summary:
        """A start of K clusters, or fewer."""
        ...


def hard_clusters(model: Model, source: ArraySource, K: int, rng: np.random.Generator) -> Summary:
    """Bregman k-means: seeds far apart, then hard assignments until none changes (Thesis Alg. 2.1).

    A row goes to the cluster with the largest E[log pi_k] + E[log p(x | phi_k)].  These are expectations under the posterior,
    given the rows that the clusters have, in place of the point estimates of the Thesis, so each step raises the bound of hard
    assignments.
    """
    sample = Sampled.of(model, source, K, rng)
    summary = sample.seeded(model, K, True, rng)
    for _ in range(MOST_STEPS):
        parameters = model.parameters(summary, FLOAT)
        after, _ = local_step(model.likelihood, parameters, sample.X, sample.weights, base=False, most_kept=1)
        after = after.take(np.flatnonzero(after.N > 0.0))
        if after.K == summary.K and np.array_equal(after.S, summary.S) and np.array_equal(after.N, summary.N):
            break
        summary = after
    return sample.scaled(model, summary)


def in_random_order(model: Model, source: ArraySource, K: int, rng: np.random.Generator) -> Summary:
    """One pass over rows in random order, each added to the clusters that the rows before it imply (BJ section 3).

    Rows are added in blocks, the first ones one by one, of a twentieth of the rows before them at most.
    """
    sample = Sampled.of(model, source, K, rng)
    order = rng.permutation(len(sample.weights))
    summary = Summary.zeros(K, model.likelihood.n_statistics)
    place = 0
    while place < len(order):
        rows = _block(order, place)
        parameters = model.parameters(summary, FLOAT)
        seen, _ = local_step(model.likelihood, parameters, sample.X[rows], sample.weights[rows], base=False)
        summary = summary + seen
        place += len(rows)
    return sample.scaled(model, summary)


def _block(order: NDArray[np.integer], place: int) -> NDArray[np.integer]:
    """The next rows, in the order of the data."""
    return np.sort(order[place : place + max(1, place // SHARE)])


STARTS: Mapping[str, Start] = {
    "k-means++": partial(from_seeds, distance_biased=True),
    "random": partial(from_seeds, distance_biased=False),
    "k-means": hard_clusters,
    "permutation": in_random_order,
}
