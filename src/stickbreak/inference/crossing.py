"""Crossings: a start from the pieces into which the clusters of two models cut each other.

Where clusters overlap, ascents from different starts end in different local optima, one right here and the other there.  The
pieces hold what both have found, and merges and deletes put together what belongs together.  So a model that is much worse as
a whole still mends a better one.  Hybrid genetic algorithms for k-means recombine local optima to the same end (Gribel and
Vidal, *HG-means: A scalable hybrid genetic algorithm for minimum sum-of-squares clustering*, 2019).
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource, Chunk
from ..likelihoods.features import Rows
from ..model import Model, Summary
from .executor import Executor
from .init import from_responsibilities

Array = NDArray[np.floating]
Assignment = Callable[[Rows], Array]  # responsibilities (n, K) of rows (n, D)

LEAST = 1.0  # rows of a piece


def crossed(
    model: Model, one: Assignment, other: Assignment, source: ArraySource, executor: Executor, most: int
) -> Summary:
    """The summary of the pieces that have rows, ``most`` at most, largest first."""
    chunks = [chunk for batch in source.batches(1) for chunk in batch]
    shared: Array = np.add.reduce(list(executor.over(source, partial(_shared, one, other), chunks)))
    largest = np.argsort(-shared, axis=None, kind="stable")[:most]
    pieces = largest[shared.flat[largest] >= LEAST]
    pairs = np.unravel_index(pieces, shared.shape)
    return from_responsibilities(model, source, partial(_products, one, other, pairs), executor)


def _shared(one: Assignment, other: Assignment, source: ArraySource, chunk: Chunk) -> Array:
    """The rows of a chunk that each cluster of the one shares with each of the other, (K, J)."""
    X, weights = source.read(chunk)
    return np.asarray((one(X) * weights[:, None]).T @ other(X), np.float64)


def _products(one: Assignment, other: Assignment, pairs: tuple[NDArray[np.intp], ...], chunk: Chunk, X: Rows) -> Array:
    """The probability that a row belongs to both clusters of each pair."""
    return one(X)[:, pairs[0]] * other(X)[:, pairs[1]]
