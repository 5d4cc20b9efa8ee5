"""Rows that repeat others exactly although their columns are continuous."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..distinct import row_codes
from ._finding import SEEN, Array, Finding, Table

SHARE = 0.05  # of the rows repeat others, at least
FEWEST = 10  # distinct rows that occur more than once: one or two are special values, such as zeros
ROUNDING = 1e-3  # of sums of weights
BEYOND = 10.0  # times as many rows repeat as values of the column would by chance
STEP = 1.5  # smallest differences: values no further apart are neighbours on the grid to which a column was rounded
UNEVEN = 0.2  # the smaller of two consecutive gaps over their sum, which is less than this in
OFTEN = 0.2  # that share of places at least; of independent continuous values in 0.4 of them


def duplicates(table: Table, found: Sequence[Finding]) -> list[Finding]:
    """Rows that repeat others exactly in all columns, more often than values of a continuous column would by chance.

    The evidence is in the columns of measurements, each by itself: rows are equal no more often than their values in any
    one column.  So dependence between columns makes no false alarm, and columns that were all rounded coarsely tell nothing.
    """
    kept = table.watch.picked
    if kept is None:
        return []
    seen = table.watch.total()
    rows = seen.picked
    if not len(rows):
        return []
    _, first, inverse, counts = np.unique(
        row_codes(rows[:, kept.columns]), return_index=True, return_inverse=True, return_counts=True
    )
    counts = np.where(_count_twice(inverse, seen.picked_weights), counts, 1)
    n_repeats = int((counts - 1).sum())
    if n_repeats < SHARE * len(rows) or (counts > 1).sum() < FEWEST:
        return []
    checked = np.flatnonzero(table.roles.measured & table.varied)
    columns = [int(d) for d in checked if _is_continuous(rows[first, d], counts, n_repeats)]
    if not columns:
        return []
    N = table.sample.n_rows
    number = f"{n_repeats:,} of {N:,}" if kept.all_rows else f"about {n_repeats / len(rows):.0%} of the {N:,}"
    where = "exactly in all columns, with continuous values in {}"
    message = f"{number} rows repeat others {where}, so too many clusters are found"
    cure = (
        "drop repeats (pandas: drop_duplicates), or give each row the sample_weight 1 / (times it occurs); in sequences, make "
        "rows missing (NaN) where a sensor stood still"
    )
    return [table.finding("duplicates", columns, message, cure)]


def _count_twice(inverse: NDArray[np.intp], weights: Array) -> NDArray[np.bool_]:
    """The distinct rows that weigh more than one row: those to which weights below one have not been given.

    inverse, weights : (m,) which distinct row each row is, and its weight
    """
    largest = np.ones(inverse.max() + 1)
    np.maximum.at(largest, inverse, weights)
    return np.asarray(np.bincount(inverse, weights) > (1.0 + ROUNDING) * largest)


def _is_continuous(values: Array, counts: NDArray[np.intp], n_repeats: int) -> bool:
    """Whether a column is too fine for ``n_repeats`` of its values to be equal by chance.

    values : (n,) of the distinct rows
    counts : (n,) how often each of them occurs
    """
    observed = ~np.isnan(values)
    levels, inverse = np.unique(values[observed], return_inverse=True)
    if len(levels) < SEEN or n_repeats < BEYOND * (observed.sum() - len(levels)):
        return False  # rows that differ are equal in this column
    gaps = np.diff(levels)
    if n_repeats < BEYOND * _expected_repeats(gaps):
        return False
    is_repeated = np.bincount(inverse, counts[observed] > 1, minlength=len(levels)) > 0
    return _are_uneven(gaps, is_repeated)


def _expected_repeats(gaps: Array) -> float:
    """The number of repeats that L values on a grid of steps h expect.

    With lambda values a place, the place after a value is taken with probability f = 1 - exp(-lambda), and a place that is
    taken has lambda / f values.  So L (lambda / f - 1) repeat.  Of continuous values h is the smallest of all gaps, f is about
    1 / L, and the number is about 1/2.
    """
    L = len(gaps) + 1
    f = np.count_nonzero(gaps <= STEP * gaps.min()) / L
    return float(L * (-np.log1p(-f) / f - 1.0))


def _are_uneven(gaps: Array, is_repeated: NDArray[np.bool_]) -> bool:
    """Whether gaps around repeated values are as uneven as those of independent values, and not those of a grid.

    This also tells continuous values from functions of whole numbers, such as logarithms, whose steps are not all the same.
    """
    left, right = gaps[:-1], gaps[1:]
    inner = is_repeated[1:-1]
    if not inner.any():
        return False
    uneven = np.minimum(left, right) < UNEVEN * (left + right)
    return bool(uneven[inner].mean() >= OFTEN)
