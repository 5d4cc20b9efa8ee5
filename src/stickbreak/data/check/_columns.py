"""Checks of single columns."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._finding import LISTED, SEEN, Array, Finding, Table, columns_of, in_words
from ._sample import FAR, Extremes, SampledRows

FEWEST = 10  # rows that show that a column is constant
UNIQUE = 0.5  # levels for each row, above which categories name the rows
COUNTING = 1.5  # times the rows: the range of whole numbers that count them
MOST_CODES = 12  # distinct values that may be codes
REPEATS = 10  # rows for each of them
OFF_MEDIAN = 0.05  # the share of rows, for each of them but one, that are not at the median
SENTINEL_SHARE, SENTINEL_ROWS = 0.005, 5  # rows that hold the same extreme value
OTHER_VALUES = 10  # distinct values beside it
CODES = (0.0, -1.0, *(sign * (10.0**digits - 1.0) for digits in range(1, 7) for sign in (1.0, -1.0)))  # 9, -9, 99, ...
CODE_GAP = 2.0  # robust spreads between such a code and all other values
ANY_GAP = 1.5  # times the central range of 98% between any other value and the rest
ISOLATED = 5.0  # times as far from the median as all rows before, and
HEAVY = 2.0  # times as much as these are farther than the last in a hundred of them, as heavy tails are
MOST_NAMED = 100  # rows of a finding
LAST = 0.99  # of the rows that are not far
SINGLE = 3  # far rows are not a cluster
GROUP = 10.0  # robust spreads within which several far rows are a cluster
SKEWED = 5.0  # the distance from the median to the quantile of 99% over that to 1%
LONGER = 1.5  # the same between the quantiles of 95% and 5%, where the log scale may be better
FEW_ZEROS = 0.05  # of the rows, at most: more zeros are no part of a tail
SYMMETRIC = 2.5  # the same after the logarithm, at most, for all tails
TINY = float(np.finfo(np.float64).tiny)
TAILS = (0.01, 0.05, 0.1, 0.25)


def constant(table: Table, found: Sequence[Finding]) -> list[Finding]:
    """Columns of measurements that are all the same, or that are all missing."""
    sample = table.sample
    seen = table.watch.total()
    checked = table.roles.measured & (sample.n_rows >= FEWEST)
    empty = checked & np.isnan(seen.largest)
    same = checked & (sample.n_observed >= FEWEST) & (seen.least == seen.largest)
    return [
        *_one(table, "constant", empty, "no values in {}", "leave such columns out"),
        *_one(table, "constant", same, "a single value in {}", "leave constant columns out"),
    ]


def set_aside(table: Table, found: Sequence[Finding]) -> list[Finding]:
    """Columns that name the rows and were left out for that."""
    message = "identifiers of the rows, left out of the clusters, in {}"
    cure = 'to keep one, name a likelihood such as "gaussian" or a Product in place of "auto"'
    return _one(table, "set aside", table.roles.aside, message, cure)


def nearly_unique(table: Table, found: Sequence[Finding]) -> list[Finding]:
    """Columns that name the rows: almost as many categories as rows, or whole numbers that count them."""
    sample = table.sample
    seen = table.watch.total()
    enough = ~table.roles.ignored & (sample.n_observed >= SEEN)
    names = enough & table.roles.nominal & (sample.n_distinct > UNIQUE * sample.n_observed)
    with np.errstate(over="ignore", invalid="ignore"):
        counting = seen.largest - seen.least < COUNTING * sample.n_rows
    numbers = enough & table.numeric & sample.whole & (sample.n_distinct == sample.n_observed) & counting
    cure = "leave identifiers out"
    return [
        *_one(table, "nearly unique", names, "almost as many levels as rows in {}", cure),
        *_one(table, "nearly unique", numbers, "whole numbers that count the rows in {}", cure),
    ]


def sentinels(table: Table, found: Sequence[Finding]) -> list[Finding]:
    """Columns whose least or largest value is held by several rows and is far from all others, such as -999."""
    sample = table.sample
    held: dict[int, float] = {}
    for d in np.flatnonzero(table.numeric & table.varied & (sample.n_distinct > OTHER_VALUES)):
        values = sample.sorted[d, : sample.n_observed[d]]
        for sign, ascending in ((1.0, values), (-1.0, -values[::-1])):
            value = float(sign * ascending[0])
            natural = value == 0.0 and not table.roles.measured[d]  # of counts and durations
            if not natural and _is_sentinel(ascending, value):
                held[int(d)] = value
    if not held:
        return []
    shown = in_words([f"{value:g}" for value in dict.fromkeys(held.values())])
    message = f"a value far from all others, {shown}, in many rows of {{}}"
    return _one(
        table, "sentinels", list(held), message, "if it stands for a missing value, make it NaN or drop such rows"
    )


def outliers(table: Table, found: Sequence[Finding]) -> list[Finding]:
    """Rows that are far from all others in some column, while hardly any other is."""
    sample = table.sample
    seen = table.watch.total()
    most = max(1, min(sample.n_rows // 100, 10), sample.n_rows // 1000)
    few = table.numeric & (seen.counts > 0) & (seen.counts <= most)
    few[list(columns_of(found, "sentinels"))] = False
    rows = {int(d): _isolated(table, seen, int(d)) for d in np.flatnonzero(few)}
    columns = [d for d, own in rows.items() if len(own)]
    if not columns:
        return []
    every = np.unique(np.concatenate([rows[d] for d in columns]))
    which = in_words([str(row) for row in every])
    message = f"row{'s' * (len(every) > 1)} {which} far from all others in {{}}"
    return [
        table.finding("outliers", columns, message, "correct or drop such rows if they are errors", every[:MOST_NAMED])
    ]


def integer_coded(table: Table, found: Sequence[Finding]) -> list[Finding]:
    """Columns of few distinct values, such as whole numbers or these standardised, that are taken for measurements."""
    sample = table.sample
    few = (sample.n_distinct <= MOST_CODES) & (REPEATS * sample.n_distinct <= sample.n_observed)
    frequent = sample.n_off_median >= OFF_MEDIAN * (sample.n_distinct - 1) * sample.n_observed
    coded = table.roles.measured & table.varied & few & frequent
    coded[list(columns_of(found, "one-hot"))] = False
    cure = "make codes categories (text in a frame, or a Product with a Categorical part); scores may stay"
    return _one(table, "integer-coded", coded, "few distinct values, taken for measurements, in {}", cure)


def skewed(table: Table, found: Sequence[Finding]) -> list[Finding]:
    """Columns of positive numbers with a long tail, which the logarithm makes symmetric."""
    sample = table.sample
    long = table.roles.measured & table.varied & (sample.least >= 0.0) & (sample.n_observed >= 5 * SEEN)
    long &= sample.quantile(FEW_ZEROS) > 0.0
    long &= _tail_ratio(sample.quantile, TAILS[0]) >= SKEWED
    long[list(columns_of(found, "integer-coded"))] = False

    def logs(share: float) -> Array:
        values = np.where(long, sample.quantile(share), 1.0)
        return np.where(sample.least > 0.0, np.log(np.maximum(values, TINY)), np.log1p(values))

    for tail in TAILS:
        ratio = _tail_ratio(logs, tail)
        long &= (ratio <= SYMMETRIC) & (ratio >= 1.0 / SYMMETRIC)
    message = "positive numbers with a long tail in {}"
    zeros = long & (sample.least <= 0.0)
    return [
        *_one(table, "skewed", long & ~zeros, message, _log_scale(table, np.flatnonzero(long & ~zeros))),
        *_one(table, "skewed", zeros, message, "take the logarithm of one more"),
    ]


def _log_scale(table: Table, columns: NDArray[np.intp]) -> str:
    """What to write for columns on the log scale."""
    shown = ", ".join(repr(d if table.names is None else str(table.names[d])) for d in columns.tolist()[:LISTED])
    more = ", ..." * (len(columns) > LISTED)
    return f'try LogScale(Gaussian(), columns=[{shown}{more}]), as likelihood="auto" does where the ELBO is higher'


def long_tailed(sample: SampledRows) -> NDArray[np.bool_]:
    """Columns (D,) of positive numbers that reach further up than down, and less so on the log scale.

    Mixtures of narrow clusters may do so, too, so that this is no finding: the bound tells.
    """
    above = _tail_ratio(sample.quantile, TAILS[1])
    positive = (sample.least > 0.0) & (sample.n_observed >= SEEN) & (sample.n_distinct > MOST_CODES)
    logs = _tail_ratio(lambda share: np.log(np.where(positive, sample.quantile(share), 1.0)), TAILS[1])
    with np.errstate(all="ignore"):
        return np.asarray(positive & (above >= LONGER) & (np.abs(np.log(logs)) < np.log(above)))


def _one(table: Table, kind: str, which: Any, message: str, cure: str) -> list[Finding]:
    """One finding for all columns of a mask or list, or none."""
    columns = np.flatnonzero(which) if isinstance(which, np.ndarray) else which
    return [table.finding(kind, columns, message, cure)] if len(columns) else []


def _is_sentinel(values: Array, code: float) -> bool:
    """Whether the first of ascending values stands apart from the others; ``code`` is what it is in the data."""
    count = int(np.searchsorted(values, values[0], side="right"))
    others = values[count:]
    if count < max(SENTINEL_ROWS, SENTINEL_SHARE * len(values)) or len(others) < SEEN:
        return False
    if len(np.unique(others)) < OTHER_VALUES:
        return False
    low, first, third, high = np.quantile(others, (0.01, 0.25, 0.75, 0.99))
    gap = others[0] - values[0]
    return bool(gap > ANY_GAP * (high - low) or (code in CODES and gap > CODE_GAP * (third - first) / 1.349))


def _isolated(table: Table, seen: Extremes, d: int) -> NDArray[np.intp]:
    """The rows that are far in column d and lie beyond a gap that no tail has."""
    sample = table.sample
    own = seen.columns == d
    if own.sum() < seen.counts[d]:  # not all were kept
        return np.empty(0, np.intp)
    rows: NDArray[np.intp] = seen.rows[own]
    values = seen.values[own]
    if len(values) > SINGLE and 0.0 < np.ptp(values) <= GROUP * sample.spread[d]:
        return np.empty(0, np.intp)
    away = np.abs(values - sample.median[d])
    order = np.argsort(away)
    inside = np.abs(sample.sorted[d, : sample.n_observed[d]] - sample.median[d])
    inside = np.sort(inside[inside <= FAR * sample.spread[d]])
    tail = inside[-1] / inside[int(LAST * (len(inside) - 1))]
    before = np.concatenate([inside[-1:], away[order][:-1]])
    gaps = np.flatnonzero(away[order] > max(ISOLATED, HEAVY * tail) * before)
    return rows[order[gaps[0] :]] if len(gaps) else rows[:0]


def _tail_ratio(quantile: Callable[[float], Array], tail: float) -> Array:
    """The distance of the median from the upper quantile over that from the lower one, (D,)."""
    low, middle, high = (quantile(share) for share in (tail, 0.5, 1.0 - tail))
    with np.errstate(all="ignore"):
        return np.asarray((high - middle) / (middle - low))
