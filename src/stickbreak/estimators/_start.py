"""Where an estimator starts: one cluster, seeds, given assignments, or another model."""

from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..data import ArraySource, Chunk
from ..data.arrays import as_array, is_date, is_missing, numbers
from ..data.frames import Levels
from ..inference import Executor, LearningSearch, Options, Session
from ..inference.init import from_responsibilities, from_seeds, one_cluster
from ..inference.reader import Reader
from ..inference.starts import STARTS
from ..likelihoods.features import Rows
from ..model import Model, Summary
from . import _choices as choices
from ._base import first_trouble, usable
from ._distinct import Distinct

Array = NDArray[np.floating]

SEARCH_ROWS = 20_000  # rows of the sample on which stochastic inference finds its clusters
ON_SAMPLE = 0.1  # the least tolerance of that search, in nats for each of them


def choose_start(
    estimator: Any,
    model: Model,
    distinct: Distinct,
    session: Session,
    rng: np.random.Generator,
    learn: tuple[str, ...],
) -> Summary:
    """The summary that ``estimator.init`` stands for; ``learn`` names the hyperparameters to learn."""
    init = estimator.init
    source = distinct.rows
    if isinstance(init, type(estimator)):
        return _from_model(init, estimator.levels_, model, source, session.executor)
    if not isinstance(init, str):
        return _from_array(as_array(init, "init"), model, distinct, session.executor)
    if init != "one":
        return STARTS[init](model, source, estimator.n_init_clusters, rng=rng)
    if not choices.algorithm(estimator).searches:
        return _found_on_sample(estimator, model, source, session, rng, learn)
    return _alone(model, source, rng)


def _alone(model: Model, source: ArraySource, rng: np.random.Generator) -> Summary:
    """One cluster; where rows have latent variables that of a sample: under the prior alone all rows would be background."""
    return one_cluster(model) if model.likelihood.latent is None else from_seeds(model, source, 1, False, rng)


def _found_on_sample(
    estimator: Any,
    model: Model,
    source: ArraySource,
    session: Session,
    rng: np.random.Generator,
    learn: tuple[str, ...],
) -> Summary:
    sample = source.sample(SEARCH_ROWS, rng)
    options = Options(1, estimator.max_laps, max(estimator.tol, ON_SAMPLE), learn=learn)
    search = LearningSearch(model, sample, choices.MOVES, session.aside(), rng, options)
    search.run(_alone(model, sample, rng))
    return search.total * (source.total_weight / sample.total_weight)


def _from_model(other: Any, levels: Levels, model: Model, source: ArraySource, executor: Executor) -> Summary:
    check_is_fitted(other)
    columns = other.n_features_in_ + other.n_targets_
    if columns != source.n_columns:
        raise ValueError(f"init has {columns} columns, but X has {source.n_columns}.")
    translate = Translation.between(levels, other)
    may_miss = other.model_.likelihood.may_miss(source.n_columns)
    reader = Reader.of(other.model_, other.summary_, may_miss, source.dtype)
    latent = other.model_.likelihood.latent
    alike = latent is not None and isinstance(latent, type(model.likelihood.latent))
    means = partial(reader.latent_means, latent) if alike else None
    return from_responsibilities(model, source, OfModel(reader, translate, may_miss), executor, means)


def _from_array(given: NDArray[Any], model: Model, distinct: Distinct, executor: Executor) -> Summary:
    N = distinct.n_given
    if given.ndim not in (1, 2) or len(given) != N:
        raise ValueError(
            f"init must be labels (N,) or responsibilities (N, K) for N = {N} rows; got shape {given.shape}."
        )
    R: Any = _from_labels(given) if given.ndim == 1 else numbers(given, "init").astype(np.float64)
    if given.ndim == 2 and not (np.isfinite(R).all() and (R >= 0).all() and np.allclose(R.sum(axis=1), 1.0, atol=1e-4)):
        raise ValueError(
            "init: responsibilities must be non-negative and sum to one in each row, without masked values."
        )
    if distinct.collapsed is not None:
        R = distinct.collapsed.average(R)
    return model.ordered(from_responsibilities(model, distinct.rows, OfArray(R), executor))


def _from_labels(labels: NDArray[Any]) -> sparse.csr_array:
    """Responsibilities (N, K) of rows with the given labels."""
    codes = label_codes(labels)
    return sparse.csr_array((np.ones(len(codes)), codes, np.arange(len(codes) + 1)))


def label_codes(labels: NDArray[Any]) -> NDArray[np.intp]:
    """Labels (N,) of any types as codes 0, ..., K - 1: in sorted order, else in order of first appearance.

    Raises
    ------
    ValueError : a label is missing, infinite or masked, a date, or not hashable; the message names its row.
    """
    if labels.dtype.kind == "f":
        wrong = ~np.isfinite(labels)
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                f"init must be labels of the rows: labels must not be NaN, infinite or masked; row {row} has {labels[row]}."
            )
    if labels.dtype.kind != "O":
        return np.unique(labels, return_inverse=True)[1]
    values = labels.tolist()
    for row, value in enumerate(values):
        if is_missing(value) or is_date(value) or not isinstance(value, Hashable):
            raise ValueError(f"init must be labels of the rows: labels must not be missing; row {row} has {value!r}.")
    known = list(dict.fromkeys(values))
    with suppress(TypeError):  # of mixed types
        known = sorted(known)
    code = {label: k for k, label in enumerate(known)}
    return np.array([code[value] for value in values], dtype=np.intp)


@dataclass(frozen=True)
class OfArray:
    """Responsibilities R (N, K) of all rows, dense or sparse."""

    R: Any

    def __call__(self, chunk: Chunk, X: Rows) -> Array:
        """Those of the rows X of a chunk."""
        here = self.R[chunk.start : chunk.stop]
        return np.asarray(here.toarray() if sparse.issparse(here) else here)


@dataclass(frozen=True)
class OfModel:
    """The responsibilities of rows according to another model.

    translate : to its codes
    may_miss : (D,) its columns in which values may be missing
    """

    reader: Reader
    translate: "Translation"
    may_miss: NDArray[np.bool_]

    def __call__(self, chunk: Chunk, X: Rows) -> Array:
        """Those of the rows X of a chunk; a ValueError names the first value that the other model cannot use."""
        likelihood = self.reader.model.likelihood
        rows = likelihood.known(self.translate(X))
        fine = usable(likelihood, rows, self.may_miss)
        if not fine.all():
            value, row, column = first_trouble(rows, fine, chunk.start)
            likelihood.refuse(value, column, f"row {row}, column {column}, which init is to assign to its clusters")
        return self.reader.responsibilities(rows)


@dataclass(frozen=True)
class Translation:
    """Codes of one table of levels as those of another; levels that the other does not have become missing values.

    codes : for each column, the other's code of each level, NaN if it has none
    """

    codes: Mapping[int, Array]

    @classmethod
    def between(cls, levels: Levels, other: Any) -> "Translation":
        """From the codes of ``levels`` to those of a fitted model.

        Raises
        ------
        ValueError : a column holds categories for one and numbers for the other.
        """
        for d in sorted(set(levels) ^ set(other.levels_)):
            here, there = ("categories", "numbers") if d in levels else ("numbers", "categories")
            raise ValueError(f"column {d} of X holds {here}, but {there} where init was fitted.")
        tables = {}
        for d, known in levels.items():
            position = {level: float(code) for code, level in enumerate(other.levels_[d])}
            if list(known) != list(other.levels_[d]):
                tables[d] = np.array([position.get(level, np.nan) for level in known])
        return cls(tables)

    def __call__(self, X: Rows) -> Rows:
        """Rows (n, D) with the other's codes."""
        if not self.codes:
            return X
        X = X.copy()
        for d, table in self.codes.items():
            seen = ~np.isnan(X[:, d])
            X[seen, d] = table[X[seen, d].astype(np.intp)]
        return X
