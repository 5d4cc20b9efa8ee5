"""What the data check looks at: a sample of rows, sorted column by column, and extreme values of all rows."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    """

    least: Array
    largest: Array
    counts: NDArray[np.intp]
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    values: Array


@dataclass
class Watch:
    """Collects extreme values in a pass over all rows.

    low, high : (D,) the limits beyond which values are far
    seen : of each chunk, in order
    """

    low: Array
    high: Array
    seen: list[Extremes] = field(default_factory=list)

    def look(self, X: Array, weights: Array, start: int) -> Extremes:
        """The extremes of rows X (n, D), of which the first has the number ``start``."""
        with np.errstate(invalid="ignore"):
            far = np.less(X, self.low) | np.greater(X, self.high)
        absent = weights <= 0.0
        if absent.any():
            far[absent] = False
            X = np.where(absent[:, None], np.nan, X)
        rows, columns = (places[:KEPT] for places in np.nonzero(far)) if far.any() else (np.empty(0, np.intp),) * 2
        extremes = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
        return Extremes(*extremes, far.sum(axis=0), rows + start, columns, X[rows, columns])

    def add(self, extremes: Extremes) -> None:
        """Add the extremes of a chunk, in the order of the chunks."""
        self.seen.append(extremes)

    def total(self) -> Extremes:
        """The extremes of all chunks together."""
        least, largest, counts, rows, columns, values = zip(*self.seen)
        joined = (np.concatenate(parts) for parts in (rows, columns, values))
        return Extremes(np.fmin.reduce(least), np.fmax.reduce(largest), np.sum(counts, axis=0), *joined)
