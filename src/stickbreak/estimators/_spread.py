"""What users pass as X where a cluster is to read it: checked by its shape and type, as sources on the workers."""

from types import MappingProxyType
from typing import Any

import numpy as np

from ..cluster import executor_of, is_collection
from ..cluster.collections import Held, bags_of, dense, documents_in, in_files, rows_of, sequences_of
from ..cluster.sources import SpreadBags, SpreadSequences, SpreadSource
from ..data.frames import Levels
from ..data.opening import is_path, open_table
from ..data.stored import Stored
from ._given import check_columns, checked_weights, whole_numbers


def goes_to_workers(estimator: Any, X: Any, reset: bool) -> bool:
    """Whether workers are to read X: a Dask collection, or what a fit with an executor is given."""
    return is_collection(X) or (reset and estimator.executor is not None)


def spread_rows(estimator: Any, X: Any, sample_weight: Any, y: Any, reset: bool) -> SpreadSource:
    """Dense rows with their weights, remembering or comparing the columns."""
    if y is not None:
        raise TypeError("targets of rows on a cluster must be columns of X: use a Product with a LinearRegression.")
    client = executor_of(estimator.executor, X).client
    held = _held(estimator, client, X, reset)
    weights = None if sample_weight is None else checked_weights(sample_weight, sum(held.sizes))
    return rows_of(client, held, weights)


def spread_bags(estimator: Any, X: Any, reset: bool) -> SpreadBags:
    """Documents as counts of words, remembering or comparing the words."""
    client = executor_of(estimator.executor, X).client
    if hasattr(X, "map_partitions") and not hasattr(X, "chunks") and not hasattr(X, "columns"):
        known = None if reset else getattr(estimator, "feature_names_in_", None)
        held, names = documents_in(client, X, known, None if reset else estimator.n_features_in_)
        return bags_of(client, _remembered(estimator, held, names, reset))
    return bags_of(client, _held(estimator, client, X, reset))


def spread_sequences(estimator: Any, X: Any, lengths: Any, lags: int, reset: bool) -> SpreadSequences:
    """Sequences of dense rows, remembering or comparing the columns."""
    client = executor_of(estimator.executor, X).client
    held = _held(estimator, client, X, reset)
    T = sum(held.sizes)
    sizes = whole_numbers("lengths", [T] if lengths is None else np.asarray(lengths), 1, T)
    return sequences_of(client, held, sizes, lags)


def _held(estimator: Any, client: Any, X: Any, reset: bool) -> Held:
    """The blocks of a Dask array, a Dask frame or rows in files, with columns as expected."""
    if is_collection(X):
        names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
        return _remembered(estimator, dense(client, X), names, reset)
    if is_path(X):
        table = open_table(X, in_memory=0)
        X = table.X
        levels = X.levels if isinstance(X, Stored) else table.levels
        return _remembered(estimator, in_files(client, X), table.names, reset, levels)
    levels = X.levels if isinstance(X, Stored) else {}
    return _remembered(estimator, in_files(client, X), getattr(X, "names", None), reset, levels)


def _remembered(estimator: Any, held: Held, names: Any, reset: bool, levels: Levels = MappingProxyType({})) -> Held:
    """The blocks, once their columns are remembered or compared."""
    if not sum(held.sizes) or not held.n_columns:
        what = "sample" if not sum(held.sizes) else "feature"
        raise ValueError(f"Found array with 0 {what}(s) while a minimum of 1 is required.")
    if reset:
        estimator.levels_ = dict(levels)
    elif any(len(levels) for levels in estimator.levels_.values()):
        raise TypeError("this model was fitted to categories, which rows on a cluster cannot have; pass X.compute().")
    check_columns(estimator, names, held.n_columns, reset)
    return held
