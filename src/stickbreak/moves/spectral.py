"""States of rows that repeat, from pairs of rows: what one row says of those around it depends on the state alone.

If nearby rows are independent given their state, the matrix of how often two distinct rows stand near each other has as many
eigenvalues beyond chance as there are states (Hsu, Kakade and Zhang 2012, A spectral algorithm for learning hidden Markov
models, section 3).  Its eigenvectors say what each distinct row tells of its state; their mean over the rows nearby tells more,
and rows with like means share a state.

Where states do not last, what stands before a row differs from what stands after it.  The matrix of how often one distinct row
follows another is not symmetric then: its left singular vectors say what a row tells of the next, and its right ones what a
row tells of the one before.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import eigsh, svds

from ..data import Chunk, SequenceSource
from ..model import Model, Summary
from ..model.sequences import labelled

Array = NDArray[np.floating]

REACHES = (1, 3, 8)  # rows to either side that count as nearby
MOST_DIRECTIONS = 64  # eigenvectors
DENSE = 500  # distinct rows, up to which all eigenvectors are computed
MORE = 2  # states beyond the number of eigenvalues, which merge if they do not pay
ROUNDS = 20  # of k-means
TRIES = 4  # of k-means where states do not last
MOST_ROWS = 20_000  # among which its centers are found
BLOCK = 1 << 12  # rows that are looked at together
REGULAR = (
    0.1  # times the mean number of neighbours, which every distinct row has beside its own (Chaudhuri et al. 2012)
)
ORDERS = 3  # random ones, which show the largest eigenvalue of chance


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
    return _grouped(model, source, partial(_smoothed, source, directions, reach), MORE + 1 + directions.shape[1], rng)


def states_in_order(model: Model, source: SequenceSource, rng: np.random.Generator, wider: int = 1) -> Summary | None:
    """States from pairs of rows, one right after the other; None where rows do not repeat or tell nothing of each other.

    If one distinct row follows another as often as their states do, given these, the matrix of how often they do has one
    singular value beyond chance for each state but the first.

    wider : times as many singular values: where rows are few, some that are not beyond chance tell states apart, too
    """
    if source.codes is None:
        return None
    pairs = _pairs_in_order(source, wider, rng)
    if pairs is None:
        return None
    return _grouped(model, source, partial(_between, source, pairs), 1 + len(pairs.values), rng, TRIES)


def _grouped(
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
    found = [_centers(places, min(K, model.room), rng) for _ in range(tries)]
    centers = min(found, key=partial(_distance, places)) if tries > 1 else found[0]
    labels = np.concatenate([_nearest(placed(rows), centers) for rows in blocks])
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
    chance = _chance(source, lambda codes: np.abs(_eigen(_near(source, codes, reach)[0], 2, rng)[0]), rng)
    order = np.argsort(-np.abs(values), kind="stable")[1 : 1 + most]
    kept = order[np.abs(values[order]) > chance]
    return np.asarray(scale[:, None] * vectors[:, kept]) if len(kept) else None


class _PairsInOrder(NamedTuple):
    """Singular values (r,) beyond chance; what each distinct row tells of the row before it and of the next, (U, r) each."""

    values: Array
    of_before: Array
    of_next: Array


def _pairs_in_order(source: SequenceSource, wider: int, rng: np.random.Generator) -> _PairsInOrder | None:
    """What distinct rows tell of those right before and after them; None if they tell nothing.

    Chance is the largest singular value of the same rows in random orders.
    """
    if len(source.X) < 3:
        return None
    after, before_scale, after_scale = _after(source, source.codes)
    if not after.nnz:
        return None
    left, values, right = _singular(after, MOST_DIRECTIONS + 1, rng)
    chance = _chance(source, lambda codes: _singular(_after(source, codes)[0], 2, rng)[1], rng)
    beyond = int((values[1:] > chance).sum())
    if not beyond:
        return None
    kept = slice(1, 1 + min(wider * beyond, MOST_DIRECTIONS))
    return _PairsInOrder(values[kept], after_scale[:, None] * right[:, kept], before_scale[:, None] * left[:, kept])


def _chance(source: SequenceSource, sizes: Callable[[NDArray[np.integer]], Array], rng: np.random.Generator) -> float:
    """The largest that the second of some sizes is, when rows are in random orders: the first says how frequent rows are."""
    seen = np.flatnonzero(source.observed(Chunk(0, source.n_rows)) > 0.0)
    chance = 0.0
    for _ in range(ORDERS):
        shuffled = source.codes.copy()
        shuffled[seen] = rng.permutation(source.codes[seen])
        chance = max(chance, float(np.sort(sizes(shuffled))[-2]))
    return chance


def _near(source: SequenceSource, codes: NDArray[np.integer], reach: int) -> tuple[Any, Array]:
    """How often distinct rows stand near each other, beside what their numbers explain, (U, U), and its scale (U,).

    Each has a few neighbours more than it has (`REGULAR`), or else rare rows that meet once would have the largest eigenvalues.
    """
    U = len(source.X)
    near = sparse.csr_array((U, U))
    for distance in range(1, min(reach, source.n_rows - 1) + 1):
        near = near + _pairs(source, codes, distance)
    near = near + near.T
    scale = _scale(near.sum(axis=1))
    return sparse.diags_array(scale) @ near @ sparse.diags_array(scale), scale


def _after(source: SequenceSource, codes: NDArray[np.integer]) -> tuple[Any, Array, Array]:
    """How often one distinct row is right after another, beside what their numbers explain, (U, U), and its scales (U,)."""
    after = _pairs(source, codes, 1)
    first, second = _scale(after.sum(axis=1)), _scale(after.sum(axis=0))
    return sparse.diags_array(first) @ after @ sparse.diags_array(second), first, second


def _pairs(source: SequenceSource, codes: NDArray[np.integer], distance: int) -> Any:
    """How often one distinct row stands so many rows before another in a sequence, (U, U)."""
    U = len(source.X)
    first = _followed(source, Chunk(0, source.n_rows), distance)
    pair = codes[first], codes[first + distance]
    return sparse.coo_array((np.ones(len(first)), pair), (U, U)).tocsr()


def _followed(source: SequenceSource, rows: Chunk, distance: int = 1) -> NDArray[np.intp]:
    """Which of some rows, counted from their first, are observed and so is the one, also of them, so far on in the sequence."""
    sequence = np.searchsorted(source.edges, np.arange(*rows), side="right")
    seen = source.observed(rows) > 0.0
    both = (sequence[:-distance] == sequence[distance:]) & seen[:-distance] & seen[distance:]
    return np.flatnonzero(both)


def _scale(degrees: Array) -> Array:
    return np.asarray(1.0 / np.sqrt(np.maximum(degrees + REGULAR * degrees.mean(), 1e-300)))


def _eigen(near: Any, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of a symmetric sparse matrix: all, or the n largest in size."""
    if near.shape[0] <= DENSE:
        values, vectors = np.linalg.eigh(near.toarray())
    else:
        values, vectors = eigsh(near, n, v0=rng.standard_normal(near.shape[0]))
    return values, vectors


def _singular(after: Any, n: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Singular values of a sparse matrix, the largest first, beside the left and right vectors: all, or the n largest."""
    if after.shape[0] <= DENSE:
        left, values, right = np.linalg.svd(after.toarray())
    else:
        left, values, right = svds(after, n, v0=rng.standard_normal(after.shape[0]))
        order = np.argsort(-values, kind="stable")
        left, values, right = left[:, order], values[order], right[order]
    return left, values, right.T


def _centers(places: Array, K: int, rng: np.random.Generator) -> Array:
    """The means of up to K groups of rows near each other, by Lloyd's rounds from distant rows, (K, r)."""
    centers = places[rng.integers(len(places), size=1)]
    nearest = np.full(len(places), np.inf)
    while len(centers) < K:
        nearest = np.minimum(nearest, ((places - centers[-1]) ** 2).sum(axis=1))
        if not nearest.any():
            break
        chosen = rng.choice(len(places), p=nearest / nearest.sum())
        centers = np.vstack([centers, places[chosen]])
    for _ in range(ROUNDS):
        labels = np.unique(_nearest(places, centers), return_inverse=True)[1]
        members = sparse.csr_array((np.ones(len(labels)), labels, np.arange(len(labels) + 1)))
        centers = (members.T @ places) / np.bincount(labels)[:, None]
    return centers


def _nearest(places: Array, centers: Array) -> NDArray[np.intp]:
    """The center nearest to each row, (n,)."""
    return np.asarray(((centers**2).sum(axis=1) - 2.0 * places @ centers.T).argmin(axis=1))


def _distance(places: Array, centers: Array) -> float:
    """The sum of squared distances of rows from the center nearest to each."""
    return float(((places - centers[_nearest(places, centers)]) ** 2).sum())


def _between(source: SequenceSource, pairs: _PairsInOrder, rows: Chunk) -> Array:
    """What each of some rows tells of the ones before and after it, and these of it, side by side, (n, 2r)."""
    low = max(rows.start - 1, 0)
    around = Chunk(low, min(rows.stop + 1, source.n_rows))
    codes = source.codes[slice(*around)]
    seen = source.observed(around) > 0.0
    from_before = pairs.of_before[codes] * seen[:, None]
    from_after = pairs.of_next[codes] * seen[:, None]
    first = _followed(source, around)
    from_before[first + 1] += pairs.of_next[codes[first]] * pairs.values
    from_after[first] += pairs.of_before[codes[first + 1]] * pairs.values
    return np.concatenate([from_before, from_after], axis=1)[rows.start - low : rows.stop - low]


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
