"""Checks of columns that follow from other columns."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ._finding import SEEN, Array, Finding, Table

MOST_COLUMNS = 500  # of which pairs are compared
EXACT = 1e-6  # standard deviations: a column that is never further from another, shifted and scaled, repeats it
ROUNDED = 1e-2  # the same, where one of the two is a logarithm, which has been rounded, or was rounded before
SIMILAR = 0.999  # the correlation of columns that may be the same but for noise
DEPENDENT = 1e-5  # the variance of a combination of standardised columns that is next to constant
FEWEST_OFF = 10  # rows that are not at the median: fewer may be alike by chance
SHOWING_NOISE = 50  # rows: fewer do not tell noise from clusters
LOCAL = 0.5  # of the deviation that columns of their own would have between neighbours
NEIGHBOUR_ROWS = 600  # among which neighbours are looked for
SEVERAL = 60  # of them are nearer than the neighbour: noise is small beside the step
FEW = 6  # of them are nearer: steps stay within clusters, however many there are
PART = 0.02  # of the largest coefficient of a combination: columns with less do not belong to it
FARTHEST = 20.0  # interquartile ranges from the median: farther values count as if they were there
FEWEST_PER_COLUMN = 2  # rows for each column, from which dependence may be seen


def repeated(table: Table, found: Sequence[Finding]) -> list[Finding]:
    """Columns that are another, shifted and scaled, or that with a little noise; categories that are others by new names.

    Numbers on another scale are the logarithms or powers of others: wherever clusters are found on the log scale, they repeat
    these.
    """
    findings = [_repeats(table, group, "the same categories in {}") for group in _same_categories(table)]
    exact, near = _copies(table)
    findings += [_repeats(table, group, "the same numbers, but for their units, in {}") for group in exact]
    findings += [_repeats(table, group, "almost the same numbers, but for their units, in {}") for group in near]
    known = {d for finding in findings for d in finding.columns[1:]}
    findings += [_repeats(table, group, "the same numbers on other scales in {}") for group in _rescaled(table, known)]
    return findings


def one_hot(table: Table, found: Sequence[Finding]) -> list[Finding]:
    """Columns of zeros and ones of which each row has exactly one one."""
    sample = table.sample
    bits = ~table.roles.ignored & (sample.least == 0.0) & (sample.largest == 1.0)
    bits &= (sample.n_distinct == 2) & (sample.n_observed == len(sample.X)) & (len(sample.X) >= SEEN)
    columns = np.flatnonzero(bits)[:MOST_COLUMNS]
    ones = sample.X[:, columns]
    together = ones.T @ ones
    cure = "make them one column of categories"
    findings = []
    left = np.ones(len(columns), np.bool_)
    for first in range(len(columns)):
        group = _exclusive(together, first, left, len(ones)) if left[first] else []
        if len(group) > 2:
            findings.append(table.finding("one-hot", columns[group], "a single one in each row of {}", cure))
            left[group] = False
    return findings


def collinear(table: Table, found: Sequence[Finding]) -> list[Finding]:
    """Columns that are a linear combination of others."""
    spare = {d for finding in found if finding.kind in ("repeated", "one-hot") for d in finding.columns[1:]}
    measured = table.roles.measured & table.varied & (2 * table.sample.n_observed > len(table.sample.X))
    columns = np.array([d for d in np.flatnonzero(measured) if d not in spare], np.intp)
    X = table.near[:, columns]
    X = X[~np.isnan(X).any(axis=1)]
    if not 2 < len(columns) <= MOST_COLUMNS or len(X) < max(SEEN, FEWEST_PER_COLUMN * len(columns)):
        return []
    Z = _standardised(X)
    variances, directions = np.linalg.eigh(Z.T @ Z / len(Z))
    findings = []
    for weights in _echelon(directions[:, variances < DEPENDENT].T):
        part = np.abs(weights) > PART * np.abs(weights).max()
        if part.sum() > 2 and _holds_locally(Z[:, part], weights[part]):
            message = "a linear dependence among {}"
            findings.append(table.finding("collinear", columns[part], message, "leave one of them out"))
    return findings


def _repeats(table: Table, group: Sequence[int], message: str) -> Finding:
    return table.finding("repeated", group, message, "leave all but one out")


def _same_categories(table: Table) -> Iterator[list[int]]:
    """Columns of categories in which the same rows have equal values."""
    groups: dict[bytes, list[int]] = {}
    columns = np.flatnonzero(table.roles.nominal & ~table.roles.ignored & table.varied)
    for d in columns[:MOST_COLUMNS]:
        column = table.sample.X[:, d]
        _, first, codes, counts = np.unique(column, return_index=True, return_inverse=True, return_counts=True)
        if len(column) - counts.max() >= FEWEST_OFF and len(counts) < len(column):
            groups.setdefault(first[codes].tobytes(), []).append(int(d))
    yield from (group for group in groups.values() if len(group) > 1)


def _copies(table: Table) -> tuple[list[list[int]], list[list[int]]]:
    """Groups of columns of numbers that are the same but for shift and scale: exactly, and but for a little noise."""
    sample = table.sample
    columns = np.flatnonzero(table.numeric & table.varied & (sample.n_off_median >= FEWEST_OFF))
    if not 1 < len(columns) <= MOST_COLUMNS:
        return [], []
    Z = _standardised(table.near[:, columns])
    r = _correlations(Z)
    alike = np.abs(np.triu(r, 1)) > SIMILAR
    if not alike.any():
        return [], []
    local = _correlations(_between_neighbours(Z, SEVERAL))
    groups: tuple[dict[int, list[int]], dict[int, list[int]]] = ({}, {})
    grouped: set[int] = set()
    enough = len(Z) >= SHOWING_NOISE
    for i, j in zip(*(places.tolist() for places in np.nonzero(alike))):
        if i in grouped or j in grouped:
            continue
        exact = bool(np.nanmax(np.abs(Z[:, j] - np.sign(r[i, j]) * Z[:, i])) <= EXACT)
        if exact or (enough and local[i, j] * np.sign(r[i, j]) > 1.0 - LOCAL**2):
            groups[0 if exact else 1].setdefault(i, [i]).append(j)
            grouped.add(j)
    exact_groups, near_groups = ([columns[group].tolist() for group in kind.values()] for kind in groups)
    return exact_groups, near_groups


def _rescaled(table: Table, known: set[int]) -> list[list[int]]:
    """Groups of columns of numbers that are logarithms or powers of each other, without those ``known`` to repeat others."""
    numbers = table.numeric & table.varied & (table.sample.n_off_median >= FEWEST_OFF)
    numbers[list(known)] = False
    columns = np.flatnonzero(numbers)
    positive = np.flatnonzero(table.sample.least[columns] > 0.0)
    if not 1 < len(columns) <= MOST_COLUMNS or not len(positive):
        return []
    X = table.near[:, columns]
    Z = _standardised(np.hstack([X, np.log(X[:, positive])]))
    owners = np.concatenate([np.arange(len(columns)), positive])
    r = _correlations(Z)
    alike = np.abs(np.triu(r, 1)) > SIMILAR
    alike[:, : len(columns)] = False  # of which neither is a logarithm
    if not alike.any():
        return []
    local = _correlations(_between_neighbours(Z, SEVERAL))
    groups: dict[int, list[int]] = {}
    grouped: set[int] = set()
    for a, b in zip(*(places.tolist() for places in np.nonzero(alike))):
        i, j = sorted((int(owners[a]), int(owners[b])))
        if i == j or i in grouped or j in grouped:
            continue
        pair = Z[:, [a, b]]
        one, other = _standardised(pair[~np.isnan(pair).any(axis=1)]).T
        same = np.abs(other - np.sign(r[a, b]) * one).max() <= ROUNDED
        if same and local[a, b] * np.sign(r[a, b]) > 1.0 - LOCAL**2:
            groups.setdefault(i, [i]).append(j)
            grouped.add(j)
    return [columns[group].tolist() for group in groups.values()]


def _standardised(X: Array) -> Array:
    """Columns with mean zero and variance one, or zero where there is no variance; missing values stay."""
    seen = ~np.isnan(X)
    count = np.maximum(seen.sum(axis=0), 1)
    Z = X - X[np.argmax(seen, axis=0), np.arange(X.shape[1])]  # an offset costs no precision
    size = np.fmax.reduce(np.abs(Z), axis=0)  # squares may overflow
    Z /= np.where(size > 0.0, size, 1.0)
    Z -= np.where(seen, Z, 0.0).sum(axis=0) / count
    deviation = np.sqrt(np.where(seen, Z * Z, 0.0).sum(axis=0) / count)
    return np.asarray(Z / np.where(deviation > 0.0, deviation, 1.0))


def _correlations(Z: Array) -> Array:
    """Correlations of columns with mean zero, over the rows in which both are observed; NaN where there is no variance."""
    seen = ~np.isnan(Z)
    with np.errstate(divide="ignore", invalid="ignore"):
        if seen.all():
            products = Z.T @ Z
            squares = np.diag(products)
            return np.asarray(products / np.sqrt(np.outer(squares, squares)))
        filled = np.where(seen, Z, 0.0)
        weights = seen.astype(np.float64)
        squares = (filled**2).T @ weights
        together = weights.T @ weights >= SEEN
        return np.where(together, filled.T @ filled / np.sqrt(squares * squares.T), np.nan)


def _between_neighbours(Z: Array, nearer: int) -> Array:
    """Differences of rows that are near each other, (m, C): what columns do within clusters, however far these are apart.

    nearer : the number of rows, of `NEIGHBOUR_ROWS`, that are nearer
    """
    rows = Z[np.unique(np.linspace(0, len(Z) - 1, NEIGHBOUR_ROWS).astype(np.intp))]
    quartiles = np.nanquantile(rows, (0.25, 0.5, 0.75), axis=0)
    size = quartiles[2] - quartiles[0]
    places = np.nan_to_num(np.clip((rows - quartiles[1]) / np.where(size > 0.0, size, 1.0), -FARTHEST, FARTHEST))
    squares = (places**2).sum(axis=1)
    distances = squares[:, None] + squares - 2.0 * places @ places.T
    nearest = max(1, nearer * len(rows) // NEIGHBOUR_ROWS)
    neighbour = np.argpartition(distances, nearest, axis=1)[:, nearest]
    away = distances[np.arange(len(rows)), neighbour]
    near = away <= np.median(away)  # rows of small clusters have their neighbours elsewhere
    return np.asarray((rows - rows[neighbour])[near])


def _holds_locally(Z: Array, weights: Array) -> bool:
    """Whether a combination that is next to constant is so within clusters, too."""
    if np.abs(Z @ weights).max() <= EXACT:
        return True
    steps = _between_neighbours(Z, FEW)
    own = np.sqrt(((steps * weights) ** 2).sum())
    return bool(np.sqrt(((steps @ weights) ** 2).sum()) < LOCAL * own)


def _echelon(rows: Array) -> Array:
    """The reduced echelon form of independent rows (m, C), by the largest entry left each time."""
    rows, left = rows.copy(), list(range(len(rows)))
    while left:
        sizes = np.abs(rows[left])
        at, column = np.unravel_index(sizes.argmax(), sizes.shape)
        pivot = left.pop(int(at))
        rows[pivot] /= rows[pivot, column]
        others = np.arange(len(rows)) != pivot
        rows[others] -= np.outer(rows[others, column], rows[pivot])
    return rows


def _exclusive(together: Array, first: int, left: NDArray[np.bool_], n: int) -> list[int]:
    """A column and later ones that are never one together, if there is a one among them in each of n rows; else none.

    together : (C, C) the number of rows in which two columns are one
    """
    ones = np.diag(together)
    free = left & (together[first] == 0.0)
    free[: first + 1] = False
    group = [first]
    total = ones[first]
    while total < n and total + ones[free].sum() >= n:
        d = int(free.argmax())
        group.append(d)
        total += ones[d]
        free &= together[d] == 0.0
    return group if total == n else []
