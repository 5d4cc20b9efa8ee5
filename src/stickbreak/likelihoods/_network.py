"""A directed network of columns: which few others each column depends on, chosen from data, and how to index its families."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ._base import Array
from ._hyperparameters import require
from ._sample import clear_correlations

NONE = -1  # in place of a parent
FEW_ROWS = 2000  # of which the nearest neighbours are looked for
NEAR, NEIGHBOURS = 0.05, 10  # share of the rows that are near, and how many of them differences are taken from


class Families(NamedTuple):
    """The families of a network: each column with its parents, m numbers in a row.

    first, second : (P,) the pairs of columns a <= b that are in a family together, and of each column with itself
    columns : (J,) the columns that have families: those that are not constant
    members : (J, m) the parents, padded with the column itself, and last the column
    real : (J, m) whether a place is no padding
    places : (J, m, m) the number of the pair of two members
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    columns: NDArray[np.intp]
    members: NDArray[np.intp]
    real: NDArray[np.bool_]
    places: NDArray[np.intp]

    @classmethod
    def of(cls, parents: NDArray[np.integer], columns: NDArray[np.intp]) -> Self:
        """Those of a network given as the parents (D, m - 1) of each column."""
        D = len(parents)
        own = np.arange(D)[:, None]
        members = np.hstack([np.where(parents == NONE, own, parents), own])
        real = np.hstack([parents != NONE, np.ones((D, 1), np.bool_)])
        one = members[:, :, None]
        other = members[:, None, :]
        codes = np.minimum(one, other) * D + np.maximum(one, other)
        pairs, places = np.unique(codes, return_inverse=True)
        places = places.reshape(codes.shape)
        return cls(pairs // D, pairs % D, columns, members[columns], real[columns], places[columns])

    @property
    def sizes(self) -> NDArray[np.intp]:
        """How many columns are in each family, (J,)."""
        return np.asarray(self.real.sum(axis=1))

    @property
    def both(self) -> NDArray[np.bool_]:
        """Which pairs of places are no padding, (J, m, m)."""
        return np.asarray(self.real[:, :, None] & self.real[:, None, :])


def choose_parents(Z: Array, most: int) -> NDArray[np.intp]:
    """The parents (D, most) of each column of a sample Z (n, D) in units of the columns, padded with `NONE`.

    What counts are correlations within clusters, as the differences of near rows show them (Art, Gnanadesikan and Kettenring
    1982): correlations of all rows are those of the clusters' means.  Columns come in the order in which a spanning tree of the
    highest correlations reaches them, and each takes, one by one, those before it that explain most of what is left of it, as
    many as together explain most beyond chance.
    """
    C = near_correlations(Z)
    n = min(len(Z), FEW_ROWS)
    parents = np.full((len(C), most), NONE)
    order = _spanning_order(C**2)
    for i, column in enumerate(order):
        chosen = _explaining(C, column, order[:i], min(most, i), n)
        parents[column, : len(chosen)] = chosen
    return parents


def near_correlations(Z: Array) -> Array:
    """Correlations (D, D) of the differences between each row of Z (n, D) and some of those near it, cleared of noise."""
    n, D = Z.shape
    rows = np.unique(np.linspace(0, n - 1, min(n, FEW_ROWS)).astype(np.intp))
    few = Z[rows]
    if len(few) < 2:
        return np.eye(D)
    squares = (few**2).sum(axis=1)
    distances = squares[:, None] + squares - 2.0 * few @ few.T
    np.fill_diagonal(distances, np.inf)
    near = min(max(NEIGHBOURS, int(NEAR * len(few))), len(few) - 1)
    ranks = np.unique(np.linspace(0, near - 1, min(NEIGHBOURS, near)).astype(np.intp))
    others = np.argsort(distances, axis=1, kind="stable")[:, ranks]
    differences = (few[:, None] - few[others]).reshape(-1, D)
    return clear_correlations(differences.T @ differences, float(len(few)))


def topological_order(parents: NDArray[np.integer]) -> NDArray[np.intp]:
    """The columns, each after its parents.

    Raises
    ------
    ValueError : there is none, or parents are no columns.
    """
    D = len(parents)
    fine = bool(((parents >= NONE) & (parents < D)).all())
    require(fine, "parents", parents, f"numbers of columns from 0 to {D - 1}, or {NONE}")
    placed = np.zeros(D + 1, np.bool_)
    order: list[int] = []
    placed[NONE] = True  # the last place
    while len(order) < D:
        ready = np.flatnonzero(placed[parents].all(axis=1) & ~placed[:D])
        require(len(ready) > 0, "parents", parents, "free of cycles")
        order.extend(ready.tolist())
        placed[ready] = True
    return np.array(order, np.intp)


def _spanning_order(weights: Array) -> NDArray[np.intp]:
    """The order in which Prim's algorithm reaches the nodes of the tree of the highest weights (D, D)."""
    D = len(weights)
    away = weights - np.diag(np.diagonal(weights))
    order = [int(np.argmax(away.sum(axis=1)))]
    reached = away[order[0]].copy()
    reached[order[0]] = -np.inf
    for _ in range(D - 1):
        order.append(int(np.argmax(reached)))
        reached = np.where(np.isneginf(reached), reached, np.maximum(reached, away[order[-1]]))
        reached[order[-1]] = -np.inf
    return np.array(order, np.intp)


def _explaining(C: Array, column: int, others: NDArray[np.intp], most: int, n: int) -> list[int]:
    """Up to ``most`` of the ``others`` that explain a column best, each given those before it."""
    with_column = C[column, others].copy()
    left = C[others, others].copy()
    chosen: list[int] = []
    swept = np.zeros((0, len(others)))
    remaining = float(C[column, column])
    fewest = 0
    highest = 0.0
    for _ in range(most):
        gains = np.where(left > 1e-9, with_column**2 / np.maximum(left, 1e-9), 0.0)
        best = int(np.argmax(gains))
        if gains[best] <= 0.0 or remaining <= 1e-9:
            break
        chosen.append(int(others[best]))
        row = (C[others[best], others] - swept[:, best] @ swept) / np.sqrt(left[best])
        part = with_column[best] / np.sqrt(left[best])
        swept = np.vstack([swept, row])
        with_column = with_column - part * row
        left = left - row**2
        left[best] = 0.0
        remaining = max(remaining - part**2, 1e-9)
        gain = -0.5 * n * np.log(remaining) - len(chosen) * np.log(n)
        if gain > highest:  # two may explain together what neither does alone
            fewest = len(chosen)
            highest = gain
    return chosen[:fewest]
