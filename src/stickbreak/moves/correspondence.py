"""Groups of rows of categories, from how often levels of two columns occur together: correspondence analysis.

If columns are independent given the cluster, as in a mixture, the table of how often level i of one column and level j of
another occur together exceeds what their frequencies explain by

    sum_k pi_k (p_ki - p_i) (p_kj - p_j),

which has one positive eigenvalue for each cluster but one.  Its eigenvectors beyond chance, with levels scaled by how frequent
they are (Greenacre 2017, Correspondence Analysis in Practice, chapters 18 and 19, without the tables of columns with
themselves), say what each level tells of the cluster; their mean over the columns of a row places the row, and rows at like
places are a group.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from .k_means import centers_of, nearest

Array = NDArray[np.floating]

MOST_LEVELS = 1000  # the most frequent ones, which are looked at
MOST_NUMBERS = 1 << 33  # rows times pairs of levels
MOST_DIRECTIONS = 64  # eigenvectors
REGULAR = 0.1  # times the mean number of occurrences, which every level has beside its own: rare ones would stand out
DRAWS = 3  # tables of independent columns, which show the largest eigenvalue of chance
TRIES = 4  # of k-means
MOST_PLACES = 4000  # of rows, that its centers are found among
MOST_DRAWN = 1 << 16  # rows that are drawn for each of these
BLOCK = 1 << 12  # rows that are looked at together


class Levels(NamedTuple):
    """The levels that occur in rows.

    codes : (n, D) numbers of levels, those of one column different from those of others; -1 where there is none
    column : (L,) of each level
    """

    codes: NDArray[np.intp]
    column: NDArray[np.intp]

    @property
    def most_rows(self) -> int:
        """The most rows that take little time to look at."""
        return MOST_NUMBERS // max(1, len(self.column)) ** 2

    def take(self, rows: NDArray[np.intp]) -> Self:
        """The levels of some rows."""
        return self._replace(codes=self.codes[rows])

    def occurrences(self, rows: slice) -> Array:
        """Whether each level occurs in each of some rows, (n, L)."""
        codes = self.codes[rows]
        own = np.zeros((len(codes), len(self.column) + 1), np.float32)
        own[np.arange(len(codes))[:, None], codes] = 1.0
        return own[:, :-1]


def levels_of(X: Array) -> Levels:
    """The most frequent levels of columns (n, D), NaN where missing."""
    codes = np.full(X.shape, -1)
    column: list[int] = []
    for d, x in enumerate(X.T):
        seen = ~np.isnan(x)
        values, numbers = np.unique(x[seen], return_inverse=True)
        codes[seen, d] = len(column) + numbers
        column += [d] * len(values)
    counts = np.bincount(codes[codes >= 0], minlength=len(column))
    frequent = np.sort(np.argsort(-counts, kind="stable")[:MOST_LEVELS])
    number = np.full(len(column) + 1, -1)
    number[frequent] = np.arange(len(frequent))
    return Levels(number[codes], np.asarray(column, dtype=np.intp)[frequent])


class Correspondence(NamedTuple):
    """What levels of columns that occur together tell of rows.

    places : (n, r) of rows, by the eigenvectors with the largest eigenvalues, largest first
    beyond : how many of these are beyond chance
    """

    places: Array
    beyond: int

    def groups(self, most: int, rng: np.random.Generator, wider: int = 1) -> NDArray[np.intp]:
        """The group of each row, (n,), of up to ``most``.

        wider : times as many eigenvectors as are beyond chance: where rows are few, others tell clusters apart, too
        """
        places = self.places[:, : wider * self.beyond]
        few = rng.permutation(len(places))[:MOST_PLACES]
        centers = centers_of(places[few], min(1 + places.shape[1], most), rng, TRIES)
        return np.unique(nearest(places, centers), return_inverse=True)[1]


def correspondence(levels: Levels, weights: Array, rng: np.random.Generator) -> Correspondence | None:
    """What levels tell of rows; None where those of two columns tell nothing of each other.

    weights : of rows, (n,)
    """
    n = len(weights)
    if len(levels.column) < 2:
        return None
    excess, scale = _excess(levels, weights)
    values, vectors = _largest(excess, MOST_DIRECTIONS)
    beyond = int((values > _chance(levels, weights, rng)).sum())
    if not beyond:
        return None
    told = scale[:, None] * vectors
    blocks = [slice(a, a + BLOCK) for a in range(0, n, BLOCK)]
    return Correspondence(np.concatenate([_means(levels.occurrences(rows), told) for rows in blocks]), beyond)


def _means(occur: Array, told: Array) -> Array:
    """What the levels of rows tell, on average, (n, r)."""
    return np.asarray((occur @ told) / np.maximum(occur.sum(axis=1, dtype=np.float64), 1.0)[:, None])


def _excess(levels: Levels, weights: Array) -> tuple[Array, Array]:
    """How much more often levels occur together than if columns were independent, on the scale of levels, (L, L) and (L,)."""
    L = len(levels.column)
    together = np.zeros((L, L))
    for first in range(0, len(weights), BLOCK):
        rows = slice(first, first + BLOCK)
        own = levels.occurrences(rows)
        together += (own * weights[rows, None].astype(np.float32)).T @ own
    counts = np.diag(together).copy()
    D = int(levels.column.max()) + 1
    member = (levels.column[:, None] == np.arange(D)).astype(float)
    both = member.T @ together @ member  # weight of rows in which two columns have levels that are looked at
    share = counts / np.maximum(both.diagonal()[levels.column], 1e-300)
    expected = both[levels.column[:, None], levels.column] * share[:, None] * share
    other = levels.column[:, None] != levels.column
    degrees = (together * other).sum(axis=1)
    scale = 1.0 / np.sqrt(np.maximum(degrees + REGULAR * degrees.mean(), 1e-300))
    return scale[:, None] * ((together - expected) * other) * scale, scale


def _chance(levels: Levels, weights: Array, rng: np.random.Generator) -> float:
    """The largest eigenvalue if columns are independent: of rows of as much weight, with columns drawn each on its own."""
    total = float(weights.sum())
    n = max(1, min(round(total), MOST_DRAWN, levels.most_rows))
    edges = np.cumsum(weights) / total
    found = 0.0
    for _ in range(DRAWS):
        rows = np.minimum(np.searchsorted(edges, rng.random((n, levels.codes.shape[1]))), len(weights) - 1)
        drawn = levels._replace(codes=np.take_along_axis(levels.codes, rows, axis=0))
        found = max(found, float(_largest(_excess(drawn, np.full(n, total / n))[0], 1)[0][0]))
    return found


def _largest(matrix: Array, n: int) -> tuple[Array, Array]:
    """The n largest eigenvalues of a symmetric matrix (L, L), largest first, and their eigenvectors; all if L is less."""
    L = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=(max(L - n, 0), L - 1))
    return values[::-1], vectors[:, ::-1]
