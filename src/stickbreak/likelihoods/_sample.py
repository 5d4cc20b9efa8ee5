"""A sample of the data, from which default priors are scaled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._hyperparameters import SMALLEST

Array = NDArray[np.floating]
Rows = Any  # (n, D): a dense array, missing values as NaN, or a `scipy.sparse.csr_array`

RESOLVED = 4.0 * float(np.finfo(np.float64).eps)  # times its mean: a column that spreads less is constant
FEW_ROWS = 10_000  # rows that show outliers and ties
TAIL = 0.05  # share of the values on either side of the middle of a column
FEW_TIES = 0.05  # share of the values that may be tied without meaning anything
FEW_VALUES = 4  # values of a column that are codes even where all are as frequent
SAME = 1e-12  # times the spread: values nearer to each other differ by rounding errors


@dataclass(frozen=True)
class Sample:
    """A sample of rows, from which `Likelihood.resolve` scales priors, and facts about all of the data.

    Attributes
    ----------
    X : (n, D) float64, missing values as NaN; or CSR
    weights : (n,)
    missing : (D,) bool, the columns with missing values anywhere in the data
    largest, smallest : (D,) the largest and the smallest value of each column anywhere in the data
    names : the names of the columns, where they have any
    levels : the names of the levels of columns that hold their codes, by the number of the column
    steps : (D,) the `resolution` of columns where it is known, NaN elsewhere, or None
    whole : the sample of which this has some of the columns, or None
    """

    X: Rows
    weights: Array
    missing: NDArray[np.bool_]
    largest: Array
    smallest: Array
    names: Sequence[str] | None = None
    levels: Mapping[int, Sequence[Any]] = field(default_factory=dict)
    steps: Array | None = None
    whole: "Sample | None" = None

    @classmethod
    def of(cls, X: Rows, weights: Array | None = None) -> "Sample":
        """A sample that is all of the data."""
        weights = np.ones(X.shape[0]) if weights is None else weights
        if sparse.issparse(X):
            largest, smallest = (np.asarray(limit.todense()).ravel() for limit in (X.max(axis=0), X.min(axis=0)))
            return cls(X, weights, np.zeros(X.shape[1], np.bool_), largest, smallest)
        X = np.asarray(X, dtype=np.float64)
        return cls(X, weights, np.isnan(X).any(axis=0), np.fmax.reduce(X, axis=0), np.fmin.reduce(X, axis=0))

    @property
    def D(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    def mean(self) -> Array:
        """Weighted mean of the observed values of each column, (D,); zero where there are none."""
        if sparse.issparse(self.X):
            return self._average(self.X)
        first = self._first()
        return np.asarray(first + self._average(self.X - first))  # an offset in the data costs no precision

    def median(self) -> Array:
        """Weighted median of the observed values of each column of dense rows, (D,); zero where there are none."""
        return self._quantile(0.5)

    def _quantile(self, share: float) -> Array:
        """The value of each column of dense rows below which there are so many of the observed, (D,); zero where none are."""
        order = np.argsort(self.X, axis=0, kind="stable")
        ranked = np.take_along_axis(self.X, order, axis=0)
        weights = np.where(np.isnan(ranked), 0.0, self.weights[order]).cumsum(axis=0)
        middle = (weights < share * weights[-1]).sum(axis=0)
        return np.asarray(np.nan_to_num(np.take_along_axis(ranked, middle[None], axis=0)[0]))

    def deviation(self, center: Array) -> Array:
        """Weighted standard deviation of each column of dense rows about ``center``, (D,); zero for constant columns.

        A column is constant if it spreads less than rounding errors.

        Raises
        ------
        ValueError : a column varies, but so little that squares of its deviations would underflow.
        """
        away = np.abs(self.X - center)
        size = np.fmax.reduce(away, axis=0, initial=0.0)
        scale = np.where(size > 0.0, size, 1.0)
        deviation = scale * np.sqrt(self._average((away / scale) ** 2))
        varies = deviation > RESOLVED * np.abs(center)
        lost = np.flatnonzero(varies & (deviation < SMALLEST))
        if len(lost):
            column = f"column {lost[0]}" + ("" if self.names is None else f" ({self.names[lost[0]]!r})")
            raise ValueError(
                f"{column} has a standard deviation of {deviation[lost[0]]:.3g}, too small to be squared. "
                "Multiply the column by a constant first."
            )
        return np.asarray(np.where(varies, deviation, 0.0))

    def varies(self) -> NDArray[np.bool_]:
        """The columns (D,) of dense rows that are not constant, or that have no values."""
        return np.asarray((self.deviation(self.mean()) > 0.0) | np.isnan(self.X).all(axis=0))

    def spread(self, center: Array) -> Array:
        """The `deviation` of each column about ``center``, (D,); 1 for constant columns."""
        deviation = self.deviation(center)
        return np.where(deviation > 0.0, deviation, 1.0)

    def correlations(self, center: Array, deviation: Array) -> Array:
        """Weighted correlations (D, D) of the columns of dense rows, missing values as ``center``; zero for constant columns.

        deviation : (D,) of the size of those of the columns about ``center``
        """
        Z = np.nan_to_num((self.X - center) / deviation)
        total = float(self.weights.sum())
        return clear_correlations((Z * (self.weights / total)[:, None]).T @ Z, total)

    def without_outliers(self) -> "Sample":
        """The sample of dense rows, with values far outside of the middle 90% of their column moved to its fences.

        The fences are as far from the middle on either side as it is wide: 4.9 standard deviations from the mean of a Gaussian.
        Columns of which the middle is a single value stay as they are.
        """
        few = self._few()
        low = few._quantile(TAIL)
        high = few._quantile(1.0 - TAIL)
        reach = np.where(high > low, high - low, np.inf)
        return replace(self, X=np.clip(self.X, low - reach, high + reach))

    def resolution(self) -> Array:
        """The step between values of each column of dense rows, as rounding leaves it, (D,).

        It is infinite for constant columns, zero where few values are more frequent than others, and otherwise the median,
        over tied values, of the distance to the nearest other value.
        """
        few = self._few()
        constant = ~self.varies()
        known = np.full(self.D, np.nan) if self.steps is None else self.steps
        steps = [few._step(d) if np.isnan(known[d]) else known[d] for d in range(self.D)]
        return np.where(constant, np.inf, steps)

    def take(self, columns: NDArray[np.integer]) -> "Sample":
        """The sample of some of the columns."""
        names = None if self.names is None else [self.names[d] for d in columns]
        levels = {j: self.levels[d] for j, d in enumerate(columns) if d in self.levels}
        steps = None if self.steps is None else self.steps[columns]
        facts = self.missing[columns], self.largest[columns], self.smallest[columns]
        return Sample(self.X[:, columns], self.weights, *facts, names, levels, steps, self.whole or self)

    @cached_property
    def lightest(self) -> float:
        """The weight of the distinct row, of all columns, that weighs least: how often rows are repeated as they are."""
        if self.whole is not None:
            return self.whole.lightest
        few = self._few()
        rows = np.ascontiguousarray(few.X)
        codes = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
        weights = np.bincount(np.unique(codes, return_inverse=True)[1], few.weights)
        return float(weights.min(initial=np.inf, where=weights > 0.0))

    def _few(self) -> "Sample":
        """Some of the rows, evenly spaced, that show what is common."""
        n = len(self.X)
        rows = np.unique(np.linspace(0, n - 1, min(n, FEW_ROWS)).astype(np.intp))
        return self if len(rows) == n else replace(self, X=self.X[rows], weights=self.weights[rows])

    def _step(self, column: int) -> float:
        """The `resolution` of a column that is not constant."""
        seen = ~np.isnan(self.X[:, column])
        values = self.X[seen, column]
        weights = self.weights[seen]
        if not len(values):
            return 0.0
        order = np.argsort(values, kind="stable")
        values = values[order]
        weights = weights[order]
        first = np.flatnonzero(np.diff(values, prepend=-np.inf) > SAME * (values[-1] - values[0]))
        if len(first) < 2:
            return 0.0
        gaps = np.concatenate([[np.inf], np.diff(values[first]), [np.inf]])
        tied = np.add.reduceat(weights, first)
        alone = self.lightest if len(tied) > FEW_VALUES else 1.0  # values of rows that are repeated are not tied
        tied = np.maximum(tied - alone, 0.0)
        if tied.sum() <= FEW_TIES * weights.sum():
            return 0.0
        nearest = np.minimum(gaps[:-1], gaps[1:])
        order = np.argsort(nearest, kind="stable")
        share = tied[order].cumsum()
        return float(nearest[order][np.searchsorted(share, 0.5 * share[-1])])

    def _average(self, values: Any) -> Array:
        weights = self.weights / self.weights.sum()
        if sparse.issparse(values):
            return np.asarray(values.T @ weights)
        seen = ~np.isnan(values)
        if seen.all():
            return np.asarray(np.average(values, axis=0, weights=weights))
        total = weights @ seen
        return np.asarray(weights @ np.where(seen, values, 0.0) / np.where(total > 0.0, total, 1.0))

    def _first(self) -> Array:
        """The first observed value of each column of dense rows, (D,); zero where there are none."""
        if not len(self.X):
            return np.zeros(self.D)
        rows = np.argmin(np.isnan(self.X), axis=0)
        return np.asarray(np.nan_to_num(self.X[rows, np.arange(self.D)]))


def clear_correlations(covariance: Array, n: float) -> Array:
    """The correlations (D, D) of a covariance of n rows, without those that n rows of independent columns have, too.

    Eigenvalues between (1 - sqrt(D / n))^2 and (1 + sqrt(D / n))^2 become 1 (Marchenko and Pastur 1967); those below, too,
    where there are no more rows than columns, some of which then seem to depend on others.
    """
    deviations = np.sqrt(np.diagonal(covariance))
    units = np.where(deviations > 0.0, deviations, 1.0)
    C = covariance / units / units[:, None]
    np.fill_diagonal(C, 1.0)
    values, vectors = np.linalg.eigh(C)
    edge = np.sqrt(len(C) / n)
    clear = (values > (1.0 + edge) ** 2) | ((edge < 1.0) & (values < (1.0 - edge) ** 2))
    C = np.eye(len(C)) + (vectors[:, clear] * (values[clear] - 1.0)) @ vectors[:, clear].T
    units = np.sqrt(np.diagonal(C))
    return np.asarray(C / units / units[:, None])
