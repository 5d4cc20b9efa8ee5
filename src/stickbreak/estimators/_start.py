"""Where an estimator starts: one cluster, seeds, given assignments, or another model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..data import ArraySource, Chunk
from ..data.distinct import Collapsed
from ..inference import Options, Search, Threads
from ..inference.init import from_responsibilities, from_seeds, one_cluster
from ..likelihoods._base import Rows
from ..model import Model, Summary
from . import _choices as choices
from ._reader import Reader

Array = NDArray[np.floating]

SEARCH_ROWS = 20_000  # rows of the sample on which stochastic inference finds its clusters


def choose_start(
    estimator: Any,
    model: Model,
    source: ArraySource,
    collapsed: Collapsed | None,
    threads: Threads,
    rng: np.random.Generator,
) -> Summary:
    """The summary that ``estimator.init`` stands for.

    collapsed : how the source came about, where repeated rows were collapsed
    """
    init = estimator.init
    if isinstance(init, type(estimator)):
        return _from_model(init, model, source, threads)
    if not isinstance(init, str):
        return _from_array(np.asarray(init), model, source, collapsed, threads)
    if init != "one":
        return from_seeds(model, source, estimator.n_init_clusters, init == "k-means++", rng)
    if choices.stochastic(estimator.algorithm) is not None:
        return _found_on_sample(estimator, model, source, threads, rng)
    return one_cluster(model)


def _found_on_sample(
    estimator: Any, model: Model, source: ArraySource, threads: Threads, rng: np.random.Generator
) -> Summary:
    sample = source.sample(SEARCH_ROWS, rng)
    options = Options(1, estimator.max_laps, max(estimator.tol, 1e-5))
    search = Search(model, sample, choices.MOVES, threads, rng, options)
    search.run(one_cluster(model))
    return search.total * (source.total_weight / sample.total_weight)


def _from_model(other: Any, model: Model, source: ArraySource, threads: Threads) -> Summary:
    check_is_fitted(other)
    columns = other.n_features_in_ + other.n_targets_
    if columns != source.n_columns:
        raise ValueError(f"init has {columns} columns, but X has {source.n_columns}.")
    may_miss = model.likelihood.may_miss(source.n_columns)
    reader = Reader.of(other.model_, other.summary_, may_miss, source.dtype)
    return from_responsibilities(model, source, lambda chunk, X: reader.responsibilities(X), threads)


def _from_array(
    given: NDArray[Any], model: Model, source: ArraySource, collapsed: Collapsed | None, threads: Threads
) -> Summary:
    N = source.n_rows if collapsed is None else len(collapsed.inverse)
    if given.ndim not in (1, 2) or len(given) != N:
        raise ValueError(
            f"init must be labels (N,) or responsibilities (N, K) for N = {N} rows; got shape {given.shape}."
        )
    R: Any = _from_labels(given) if given.ndim == 1 else np.asarray(given, dtype=np.float64)
    if given.ndim == 2 and not (np.isfinite(R).all() and (R >= 0).all() and np.allclose(R.sum(axis=1), 1.0, atol=1e-4)):
        raise ValueError("init: responsibilities must be non-negative and sum to one in each row.")
    if collapsed is not None:
        R = collapsed.average(R)

    def rows(chunk: Chunk, X: Rows) -> Array:
        here = R[chunk.start : chunk.stop]
        return np.asarray(here.toarray() if sparse.issparse(here) else here)

    return model.ordered(from_responsibilities(model, source, rows, threads))


def _from_labels(labels: NDArray[Any]) -> sparse.csr_array:
    """Responsibilities (N, K) of rows with the given labels."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("init: labels must not be NaN or infinite.")
    codes = np.unique(labels, return_inverse=True)[1]
    return sparse.csr_array((np.ones(len(codes)), codes, np.arange(len(codes) + 1)))
