"""Where an estimator starts: one cluster, seeds, given assignments, or another model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..data import ArraySource
from ..inference import Options, Search, Threads
from ..inference.init import from_responsibilities, from_seeds, one_cluster
from ..model import Model, Summary
from . import _choices as choices

Array = NDArray[np.floating]

SEARCH_ROWS = 20_000  # rows of the sample on which stochastic inference finds its clusters


def choose_start(
    estimator: Any, model: Model, source: ArraySource, threads: Threads, rng: np.random.Generator
) -> Summary:
    """The summary that ``estimator.init`` stands for."""
    start = _start(estimator, model, source, threads, rng)
    most = model.allocation.max_clusters
    if most < start.K:
        raise ValueError(f"init has {start.K} clusters, but the allocation has no more than {most}.")
    return start


def _start(estimator: Any, model: Model, source: ArraySource, threads: Threads, rng: np.random.Generator) -> Summary:
    init = estimator.init
    if isinstance(init, type(estimator)):
        return _from_model(init, model, source, threads)
    if not isinstance(init, str):
        return _from_array(np.asarray(init), model, source, threads)
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
    if other.n_features_in_ != source.n_columns:
        raise ValueError(f"init has {other.n_features_in_} columns, but X has {source.n_columns}.")
    parameters = other._parameters(source.dtype)
    return from_responsibilities(
        model, source, lambda chunk, X: other._responsibilities(X, np.ones(len(X)), parameters), threads
    )


def _from_array(given: NDArray[Any], model: Model, source: ArraySource, threads: Threads) -> Summary:
    if given.ndim not in (1, 2) or len(given) != source.n_rows:
        raise ValueError(
            f"init must be labels (N,) or responsibilities (N, K) for N = {source.n_rows} rows; got shape {given.shape}."
        )
    if given.ndim == 1:
        if given.dtype.kind == "f" and not np.isfinite(given).all():
            raise ValueError("init: labels must not be NaN or infinite.")
        codes = np.unique(given, return_inverse=True)[1]
        clusters = np.arange(int(codes.max()) + 1)
        start = from_responsibilities(
            model, source, lambda chunk, X: codes[chunk.start : chunk.stop, None] == clusters, threads
        )
    else:
        R = np.asarray(given, dtype=np.float64)
        if not (np.isfinite(R).all() and (R >= 0).all() and np.allclose(R.sum(axis=1), 1.0, atol=1e-4)):
            raise ValueError("init: responsibilities must be non-negative and sum to one in each row.")
        start = from_responsibilities(model, source, lambda chunk, X: R[chunk.start : chunk.stop], threads)
    return model.ordered(start)
