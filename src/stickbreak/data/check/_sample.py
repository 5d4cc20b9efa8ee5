"""What the data check looks at: a sample of rows, sorted column by column, and extreme values of all rows."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..distinct import value_codes
from ..sources import ArraySource, SparseSource

Array = NDArray[np.floating]

MOST_ROWS, FEW_ROWS, FEWEST_ROWS = 10_000, 1000, 100  # of samples of narrow, wide and very wide tables
FEW_NUMBERS, MOST_NUMBERS = 200_000, 1_000_000  # that these hold at most
FAR = 50.0  # robust spreads from the median
KEPT = 1000  # far values kept of a chunk
LEAST_KNOWN = 20  # values that a spread takes


@dataclass(frozen=True)
class SampledRows:
    """Rows of a table, drawn evenly.

    X : (n, D) float64, missing values as NaN
    n_rows : the rows of the table that have a positive weight
    """

    X: Array
    n_rows: int

    @cached_property
    def sorted(self) -> Array:
        """The values of each column in ascending order, missing ones last, (D, n)."""
        return np.sort(np.ascontiguousarray(self.X.T), axis=1)

    @cached_property
    def n_observed(self) -> NDArray[np.intp]:
        """The number of values observed in each column, (D,)."""
        return np.asarray((~np.isnan(self.sorted)).sum(axis=1))

    @cached_property
    def least(self) -> Array:
        """The smallest value of each column, (D,); NaN where there are none."""
        return self.quantile(0.0)

    @cached_property
    def largest(self) -> Array:
        """The largest value of each column, (D,)."""
        return self.quantile(1.0)

    @cached_property
    def median(self) -> Array:
        """The median of each column, (D,)."""
        return self.quantile(0.5)

    @cached_property
    def spread(self) -> Array:
        """A standard deviation of each column, (D,), by the larger of its central ranges of 50% and 90%."""
        half, most = (self.quantile(1.0 - tail) - self.quantile(tail) for tail in (0.25, 0.05))
        return np.asarray(np.maximum(half / 1.349, most / 3.29))

    @cached_property
    def n_distinct(self) -> NDArray[np.intp]:
        """The number of distinct values observed in each column, (D,)."""
        steps = self.sorted[:, 1:] > self.sorted[:, :-1]
        return np.asarray(steps.sum(axis=1) + (self.n_observed > 0))

    @cached_property
    def n_off_median(self) -> NDArray[np.intp]:
        """The number of values of each column that are not its median, (D,)."""
        return np.asarray(self.n_observed - (self.sorted == self.median[:, None]).sum(axis=1))

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        """The columns (D,) that hold nothing but whole numbers."""
        return np.asarray((np.isnan(self.X) | (np.floor(self.X) == self.X)).all(axis=0))

    def quantile(self, share: float) -> Array:
        """A quantile of each column, (D,)."""
        places = np.rint(share * (self.n_observed - 1)).astype(np.intp)
        return np.asarray(self.sorted[np.arange(len(places)), np.maximum(places, 0)])

    def limits(self) -> tuple[Array, Array]:
        """Values below and above which a column is far from its median, (D,); infinite where it has no spread."""
        known = (self.n_observed >= LEAST_KNOWN) & (self.spread > 0.0) & np.isfinite(self.spread)
        reach = np.where(known, FAR * self.spread, np.inf)
        center = np.where(known, self.median, 0.0)
        return center - reach, center + reach


def sampled_rows(source: ArraySource) -> SampledRows | None:
    """Rows of a source, drawn evenly; None of sparse rows, which are not checked, or where there are none."""
    n_rows = source.n_present
    if isinstance(source, SparseSource) or n_rows == 0:
        return None
    D = source.n_columns
    wide = max(FEWEST_ROWS, min(FEW_ROWS, MOST_NUMBERS // D))
    n = max(wide, min(MOST_ROWS, FEW_NUMBERS // D))
    return SampledRows(source.take(source.spaced(n))[0].astype(np.float64), n_rows)


class Extremes(NamedTuple):
    """The extreme values of a chunk of rows.

    least, largest : (D,)
    counts : (D,) values of each column beyond the limits
    rows, columns, values : those values, at most `KEPT` of them
    picked : (m, D) the rows that were picked to be compared with each other
    picked_weights : (m,)
    """

    least: Array
    largest: Array
    counts: NDArray[np.intp]
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    values: Array
    picked: Array
    picked_weights: Array


@dataclass(frozen=True)
class Picked:
    """Which rows are compared with each other: all, or those whose value in one column has a small hash code.

    Equal rows are picked together, so the share of rows that repeat others is the same as in all rows, up to chance.

    columns : (D,) bool, in which rows are compared
    key : the column whose hash codes decide
    share : of all codes, up to which rows are picked
    """

    columns: NDArray[np.bool_]
    key: int
    share: float

    @classmethod
    def of(cls, sample: SampledRows, columns: NDArray[np.bool_], measured: NDArray[np.bool_]) -> "Picked | None":
        """About as many rows as the sample has, by the measured column with most values; None where none is measured.

        None of a single column, too, where equal values, such as ratios of small counts, may be natural.
        """
        if not measured.any() or columns.sum() < 2:
            return None
        key = int(np.where(measured, sample.n_distinct, -1).argmax())
        return cls(columns, key, min(1.0, len(sample.X) / sample.n_rows))

    @property
    def all_rows(self) -> bool:
        """Whether every row is compared."""
        return self.share >= 1.0

    def among(self, X: Array) -> NDArray[np.bool_]:
        """Which of rows X (n, D) are picked, (n,); of zeros and missing values, often repeated, none."""
        if self.all_rows:
            return np.ones(len(X), np.bool_)
        values = X[:, self.key]
        codes = value_codes(values)
        return np.asarray((codes > 0) & (codes < np.uint64(self.share * 2.0**64)) & ~np.isnan(values))


@dataclass
class Watch:
    """Collects extreme values, and rows to be compared, in a pass over all rows.

    low, high : (D,) the limits beyond which values are far
    picked : which rows are compared with each other; None for none
    seen : of each chunk, in order
    """

    low: Array
    high: Array
    picked: Picked | None = None
    seen: list[Extremes] = field(default_factory=list)

    def look(self, X: Array, weights: Array, start: int) -> Extremes:
        """The extremes of rows X (n, D), of which the first has the number ``start``."""
        with np.errstate(invalid="ignore"):
            far = np.less(X, self.low) | np.greater(X, self.high)
        absent = weights <= 0.0
        picked = np.zeros(len(X), np.bool_) if self.picked is None else self.picked.among(X) & ~absent
        compared = X[picked], weights[picked]
        if absent.any():
            far[absent] = False
            X = np.where(absent[:, None], np.nan, X)
        rows, columns = (places[:KEPT] for places in np.nonzero(far)) if far.any() else (np.empty(0, np.intp),) * 2
        extremes = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
        return Extremes(*extremes, far.sum(axis=0), rows + start, columns, X[rows, columns], *compared)

    def add(self, extremes: Extremes) -> None:
        """Add the extremes of a chunk, in the order of the chunks."""
        self.seen.append(extremes)

    def total(self) -> Extremes:
        """The extremes of all chunks together."""
        least, largest, counts, *lists = zip(*self.seen)
        joined = (np.concatenate(parts) for parts in lists)
        return Extremes(np.fmin.reduce(least), np.fmax.reduce(largest), np.sum(counts, axis=0), *joined)
