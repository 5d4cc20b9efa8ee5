"""States of rows that repeat, from pairs of nearby rows: what one row says of those around it depends on the state alone.

If nearby rows are independent given their state, the matrix of how often two distinct rows stand near each other has as many
eigenvalues beyond chance as there are states (Hsu, Kakade and Zhang 2012, A spectral algorithm for learning hidden Markov
models, section 3).  Its eigenvectors say what each distinct row tells of its state; their mean over the rows nearby tells more,
and rows with like means share a state.
"""

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import eigsh

from ..data import Chunk, SequenceSource
from ..model import Model, Summary
from ..model.sequences import labelled
from .k_means import centers_of, nearest

Array = NDArray[np.floating]

REACHES = (1, 3, 8)  # rows to either side that count as nearby
MOST_DIRECTIONS = 64  # eigenvectors
DENSE = 500  # distinct rows, up to which all eigenvectors are computed
MORE = 2  # states beyond the number of eigenvalues, which merge if they do not pay
MOST_ROWS = 20_000  # among which the centers of k-means are found
BLOCK = 1 << 12  # rows that are looked at together
# Times the mean number of neighbours, which every distinct row has beside its own (Chaudhuri et al. 2012)
REGULAR = 0.1
ORDERS = 3  # random ones, which show the largest eigenvalue of chance
# What SciPy draws vectors from, where it can be told (from 1.17 on)
DRAWS = {"rng"} & signature(eigsh).parameters.keys()


def spectral_states(
    model: Model,
    source: SequenceSource,
    rng: np.random.Generator,
    reach: int | None = None,
    most: int = MOST_DIRECTIONS,
) -> Summary | None:
    """States from pairs of nearby rows; None where rows do not repeat or tell nothing of each other.

    reach : rows to either side that count as nearby, by default drawn anew each time: few for states that do not last
    most : eigenvectors at most
    """
    if source.codes is None:
        return None
    reach = int(rng.choice(REACHES)) if reach is None else reach
    directions = _directions(source, reach, most, rng)
    if directions is None:
        return None
    return grouped(model, source, partial(_smoothed, source, directions, reach), MORE + 1 + directions.shape[1], rng)


def grouped(
    model: Model,
    source: SequenceSource,
    placed: Callable[[Chunk], Array],
    K: int,
    rng: np.random.Generator,
    tries: int = 1,
) -> Summary:
    """Up to K states of rows near each other, which are placed at some points, (n, r); the closest groups of some tries."""
    T = source.n_rows
    blocks = [Chunk(a, min(a + BLOCK, T)) for a in range(0, T, BLOCK)]
    some = np.ones(T, np.bool_)
    if T > MOST_ROWS:
        some[:] = False
        some[rng.choice(T, MOST_ROWS, replace=False)] = True
    chosen = [np.flatnonzero(some[rows.start : rows.stop]) for rows in blocks]
    places = np.concatenate([placed(rows)[at] for rows, at in zip(blocks, chosen)])
    centers = centers_of(places, min(K, model.room), rng, tries)
    labels = np.concatenate([nearest(placed(rows), centers) for rows in blocks])
    total = labelled(model.likelihood, source, labels)
    return total.take(np.flatnonzero(total.N > 0.0))


def _directions(source: SequenceSource, reach: int, most: int, rng: np.random.Generator) -> Array | None:
    """What each distinct row tells of its state, (U, r): r singular vectors beyond chance; None if there is none.

    Chance is the largest eigenvalue of the same rows in random orders.
    """
    codes = source.codes
    U = len(source.X)
    if U < 3:
        return None
    near, scale = _near(source, codes, reach)
    if not near.nnz:
        return None
    values, vectors = _eigen(near, most + 1, rng)
    chance = by_chance(source, lambda codes: np.abs(_eigen(_near(source, codes, reach)[0], 2, rng)[0]), rng)
    order = np.argsort(-np.abs(values), kind="stable")[1 : 1 + most]
    kept = order[np.abs(values[order]) > chance]
    return np.asarray(scale[:, None] * vectors[:, kept]) if len(kept) else None


def by_chance(source: SequenceSource, sizes: Callable[[NDArray[np.integer]], Array], rng: np.random.Generator) -> float:
    """The largest that the second of some sizes is, when rows are in random orders: the first says how frequent rows are.

    sizes : of the codes of rows, at least one
    """
    seen = np.flatnonzero(source.observed(Chunk(0, source.n_rows)) > 0.0)
    chance = 0.0
    for _ in range(ORDERS):
        shuffled = source.codes.copy()
        shuffled[seen] = rng.permutation(source.codes[seen])
        chance = float(np.max(np.sort(sizes(shuffled))[-2:-1], initial=chance))
    return chance


def scale_of(degrees: Array) -> Array:
    """Of rows with so many neighbours, (U,); each counts a few more (`REGULAR`)."""
    return np.asarray(1.0 / np.sqrt(np.maximum(degrees + REGULAR * degrees.mean(), 1e-300)))


def _near(source: SequenceSource, codes: NDArray[np.integer], reach: int) -> tuple[Any, Array]:
    """How often distinct rows stand near each other, beside what their numbers explain, (U, U), and its scale (U,).

    Each has a few neighbours more than it has (`REGULAR`), or else rare rows that meet once would have the largest eigenvalues.
    """
    U = len(source.X)
    near = sparse.csr_array((U, U))
    sequence = np.repeat(np.arange(source.n_sequences), np.diff(source.edges))
    seen = source.observed(Chunk(0, source.n_rows)) > 0.0
    for distance in range(1, min(reach, source.n_rows - 1) + 1):
        both = (sequence[:-distance] == sequence[distance:]) & seen[:-distance] & seen[distance:]
        first = np.flatnonzero(both)
        pair = codes[first], codes[first + distance]
        near = near + sparse.coo_array((np.ones(len(first)), pair), (U, U)).tocsr()
    near = near + near.T
    scale = scale_of(near.sum(axis=1))
    return sparse.diags_array(scale) @ near @ sparse.diags_array(scale), scale


def _eigen(near: Any, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of a symmetric sparse matrix: all, or the n largest in size."""
    if near.shape[0] <= DENSE:
        values, vectors = np.linalg.eigh(near.toarray())
    else:
        values, vectors = leading(near, n, rng)
    return values, vectors


def leading(near: Any, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The n eigenvalues that are largest in size, and eigenvectors, of a symmetric sparse matrix or operator.

    Where the matrix has few distinct eigenvalues, the vectors that follow from the first run out, and ARPACK draws another.
    """
    values, vectors = eigsh(near, n, v0=rng.standard_normal(near.shape[0]), **dict.fromkeys(DRAWS, rng))
    return values, vectors


def _smoothed(source: SequenceSource, directions: Array, reach: int, rows: Chunk) -> Array:
    """The mean of ``directions`` over the observed rows within reach of each of some rows, in its sequence, (n, r)."""
    low = max(rows.start - reach, 0)
    high = min(rows.stop + reach, source.n_rows)
    codes = source.codes[low:high]
    seen = source.observed(Chunk(low, high)) > 0.0
    before = np.zeros((len(codes) + 1, directions.shape[1] + 1))  # sums of all rows before each, and how many these are
    before[1:, :-1] = directions[codes] * seen[:, None]
    before[1:, -1] = seen
    np.cumsum(before, axis=0, out=before)
    at = np.arange(rows.start, rows.stop)
    sequence = np.searchsorted(source.edges, at, side="right")
    begin = np.maximum(at - reach, source.edges[sequence - 1])
    end = np.minimum(at + reach + 1, source.edges[sequence])
    total = before[end - low] - before[begin - low]
    own = ~seen[at - low]
    total[own, :-1] = directions[codes[at[own] - low]]
    total[own, -1] = 1.0
    return np.asarray(total[:, :-1] / total[:, -1:])
