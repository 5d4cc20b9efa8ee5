"""Where a fit starts: the summary whose global step gives the first parameters."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..data import ArraySource, Chunk
from ..data.distinct import distinct_rows
from ..likelihoods.features import Rows, entries, features
from ..likelihoods.responsibilities import Responsibilities
from ..model import Model, Summary
from ..model.products import add_product
from ..model.seeding import hard_summary, nearest_seeds
from ..moves.correspondence import Correspondence, correspondence, levels_of
from .executor import Executor

Array = NDArray[np.floating]

SAMPLE_ROWS = 5000
SAMPLE_NUMBERS = 1 << 23
LEVEL_ROWS = 20_000  # in which levels of columns are looked at, at most
LEAST_ROWS = 1000  # the same at least, where there are as many
LEVEL_NUMBERS = 1 << 24  # in these rows
FILLED = 3  # times that missing cells are filled in by clusters of given responsibilities


def one_cluster(model: Model) -> Summary:
    """One cluster: whatever its parameters, it takes every row in the first lap."""
    return model.start(np.zeros(1), np.zeros((1, model.likelihood.n_statistics)))


class Sampled(NamedTuple):
    """Distinct rows X (n, D) of a random sample, their features T, weights (n,), and the weight of all rows."""

    X: Rows
    T: Any
    weights: Array
    total: float

    @classmethod
    def of(cls, model: Model, source: ArraySource, K: int, rng: np.random.Generator) -> Self:
        """A sample that K clusters can begin with."""
        F = entries(model.likelihood, source.row_size)
        sample = source.sample(max(min(SAMPLE_ROWS, SAMPLE_NUMBERS // F), 4 * K), rng)
        X, weights = distinct_rows(*sample.take(sample.present()))
        return cls(X, features(model.likelihood, X), weights, float(source.total_weight))

    def seeded(self, model: Model, K: int, distance_biased: bool, rng: np.random.Generator) -> Summary:
        """Up to K rows as seeds, each row with its nearest (Thesis 3.5.4)."""
        labels = nearest_seeds(model, self.X, self.weights, K, rng, distance_biased)
        return hard_summary(self.T, self.weights, labels)

    def scaled(self, model: Model, summary: Summary) -> Summary:
        """A start for all rows, from a summary of these."""
        return model.kind.start(summary) * float(self.total / self.weights.sum())


def from_seeds(model: Model, source: ArraySource, K: int, distance_biased: bool, rng: np.random.Generator) -> Summary:
    """K rows of a random sample as seeds, each sampled row with its nearest (Thesis 3.5.4), scaled to the whole data set.

    distance_biased : Bregman k-means++ (Thesis Alg. 2.2); otherwise the seeds are drawn at random
    """
    sample = Sampled.of(model, source, K, rng)
    return sample.scaled(model, sample.seeded(model, K, distance_biased, rng))


class RowsByLevels(NamedTuple):
    """Rows X (n, D) of a random sample, their weights (n,), the weight of all rows, and what levels of columns tell of them."""

    X: Rows
    weights: Array
    total: float
    told: Correspondence

    @classmethod
    def of(cls, model: Model, source: ArraySource, nominal: NDArray[np.bool_], rng: np.random.Generator) -> Self | None:
        """None where levels tell nothing of each other, or columns are too many to look at.

        nominal : the columns that hold levels, (D,)
        """
        most = min(LEVEL_ROWS, LEVEL_NUMBERS // len(nominal))
        if nominal.sum() < 2 or most < min(LEAST_ROWS, source.n_rows):
            return None
        sample = source.sample(most, rng)
        X, weights = sample.take(sample.present())
        Z = X[:, nominal]
        levels = levels_of(np.asarray(Z.toarray() if sparse.issparse(Z) else Z, dtype=np.float64))
        few = rng.permutation(len(weights))[: levels.most_rows]
        told = correspondence(levels.take(few), weights[few], rng)
        return None if told is None else cls(X[few], weights[few], float(source.total_weight), told)

    def grouped(self, model: Model, rng: np.random.Generator, wider: int = 1) -> Summary:
        """Groups of rows whose levels occur together more often than by chance, scaled to all rows."""
        labels = self.told.groups(model.max_clusters, rng, wider)
        summary = hard_summary(features(model.likelihood, self.X), self.weights, labels)
        return model.kind.start(summary) * float(self.total / self.weights.sum())


def from_responsibilities(
    model: Model,
    source: ArraySource,
    given: Callable[[Chunk, Rows], Array],
    executor: Executor,
    means: Callable[[Rows], Array] | None = None,
) -> Summary:
    """The summary of responsibilities ``given(chunk, X)`` (n, K) for the rows of every chunk; empty clusters are dropped.

    means : of the latent variables of rows (n, K), where they are known
    """
    chunks = [chunk for batch in source.batches(1) for chunk in batch]
    total: Summary = executor.total(source, partial(_assigned, model, given, means, None), chunks)
    for _ in range(FILLED if model.likelihood.cells is not None else 0):
        W = model.likelihood.weights(total.N, total.S)[0]
        total = executor.total(source, partial(_assigned, model, given, means, W), chunks)
    return total.take(np.flatnonzero(total.N > 0.0))


def _assigned(
    model: Model,
    given: Callable[[Chunk, Rows], Array],
    means: Callable[[Rows], Array] | None,
    W: Array | None,
    source: ArraySource,
    chunk: Chunk,
) -> Summary:
    """The summary of one chunk, given responsibilities; where missing cells are latent, those of the weights W, if known."""
    X, weights = source.read(chunk)
    R = np.asarray(given(chunk, X) * weights[:, None], dtype=np.float64)
    S = np.zeros((R.shape[1], model.likelihood.n_statistics))
    T = features(model.likelihood, X)
    latent = model.likelihood.latent
    if latent is None or means is None:
        add_product(R, T, S)
        if W is not None and model.likelihood.cells is not None:
            model.likelihood.cells.add(Responsibilities.of(R), np.ones(len(R)), T, W, S)
    else:
        U = means(X)
        add_product(R * U, T, S)
        latent.add(Responsibilities.of(R), np.ones(len(R)), U, S)
    return model.start(R.sum(axis=0), S)
