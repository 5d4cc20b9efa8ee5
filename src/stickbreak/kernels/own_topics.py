"""The topics that a document has, few of many: their numbers, and the likelihoods of its observations copied together."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._jit import part as _part

Array = NDArray[np.floating]

FEWER = 0.75  # share of the topics that are left, so that it pays to copy their likelihoods
MOST = 1 << 18  # numbers that are copied at most


class Room(NamedTuple):
    """Where a document's own topics are kept, while it is visited.

    table : the likelihoods of its observations, copied;  order : (longest,) 0, 1, 2 ...: where these are
    topics : (K,) their numbers, the first so many;  chosen : (K,) of these
    """

    table: Array
    order: NDArray[np.integer]
    topics: NDArray[np.int64]
    chosen: NDArray[np.int64]


@_part
def room_for(indptr, rows, E, fewest=0):
    """Room for any of the documents, and at least for the likelihoods of its ``fewest`` topics."""
    longest = 0
    for d in range(indptr.size - 1):
        size = indptr[d + 1] - indptr[d]
        longest = size if size > longest else longest
    K = E.shape[1]
    size = longest * K if longest * K < MOST else MOST
    least = longest * fewest
    order = np.empty(longest, rows.dtype)
    for i in range(longest):
        order[i] = i
    return Room(
        np.empty(size if size > least else least, E.dtype),
        order,
        np.empty(K, np.int64),
        np.empty(K, np.int64),
    )


@_part
def above(p, cut, chosen):
    """Write the numbers of the factors above ``cut`` to ``chosen``; how many there are."""
    m = 0
    for k in range(p.size):
        if p[k] > cut:
            chosen[m] = k
            m += 1
    return m


@_part
def sum_below(p, cut):
    """The sum of the factors that are not above ``cut``."""
    total = 0.0
    for k in range(p.size):
        if not p[k] > cut:
            total += p[k]
    return total


@_part
def pays(kept, m, size, room):
    """Whether it pays to copy the likelihoods of ``size`` observations for ``kept`` of m topics."""
    return 0 < kept <= FEWER * m and 0 < size * kept <= room.table.size


@_part
def take(x, chosen):
    """Move the numbers x[chosen], in increasing order, to the front."""
    for j in range(chosen.size):
        x[j] = x[chosen[j]]


@_part
def copied(table, at, chosen, room):
    """The columns ``chosen`` of the rows ``at`` of a table, in the room, where that may be, too."""
    out = room.table[: at.size * chosen.size].reshape(at.size, chosen.size)
    for i in range(at.size):
        row = table[at[i]]
        for j in range(chosen.size):
            out[i, j] = row[chosen[j]]
    return out
