"""States of rows that repeat, from words of rows, one right after the other: what stands before tells what comes after.

If rows are independent given their state, the matrix of how often one word of rows is followed by another has one singular
value beyond chance for each state but the first, as far as there are words enough (Hsu, Kakade and Zhang 2012, A spectral
algorithm for learning hidden Markov models, section 3).  Its left singular vectors say what a word tells of the next, and its
right ones what it tells of the one before.  Both together place every row, and rows at like places share a state.  Pairs
without an order (`stickbreak.moves.spectral`) tell less where states take turns: of a cycle of four two states look alike.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from ..data import Chunk, SequenceSource
from ..model import Model, Summary
from .spectral import MOST_DIRECTIONS, Array, by_chance, grouped, leading, scale_of

TRIES = 4  # of k-means
MOST_WORDS = 500  # that rows of a word may form, where it is of several
FEW = 4  # times as many words as singular values, below which all of these are computed
OCCURRENCES = 30  # of a word of several rows, on average
LEAST = 3.0  # of any word, on average: fewer tell nothing of what comes next
MOST = 5000  # words, beyond which singular values take long


class _Words(NamedTuple):
    """Of each row the number of the word that ends with it, and of that which begins with it, (T,); -1 where there is none.

    n : distinct words
    """

    ends: NDArray[np.integer]
    begins: NDArray[np.integer]
    n: int


class _Told(NamedTuple):
    """Singular values (r,), and what each word tells of the words before and after it, (n, r) each."""

    values: Array
    of_before: Array
    of_next: Array


def states_in_order(
    model: Model, source: SequenceSource, rng: np.random.Generator, wider: int = 1, length: int = 1
) -> Summary | None:
    """States from words of so many rows; None where rows do not repeat or words tell nothing of each other.

    wider : times as many singular values as are beyond chance: where rows are few, others tell states apart, too
    """
    if source.codes is None:
        return None
    words = _words(source, source.codes, length)
    if words.n > min(MOST, source.n_rows / LEAST):
        return None
    told = _told(source, words, length, wider, rng)
    if told is None:
        return None
    return grouped(model, source, partial(_places, source, words, told), 1 + len(told.values), rng, TRIES)


def longest_word(source: SequenceSource) -> int:
    """Rows of the longest words that occur often enough to be counted."""
    most = min(MOST_WORDS, source.n_rows / OCCURRENCES)
    U = len(source.X)
    length = 1
    while 1 < U <= most ** (1.0 / (length + 1)):
        length += 1
    return length


def _told(source: SequenceSource, words: _Words, length: int, wider: int, rng: np.random.Generator) -> _Told | None:
    """What words tell of those right before and after them; None if they tell nothing.

    Chance is the largest singular value of the same rows in random orders.
    """
    if words.n < 3:
        return None
    after, before_scale, after_scale = _after(source, words)
    if not after.nnz:
        return None
    left, values, right = _singular(after, MOST_DIRECTIONS + 1, rng)
    chance = by_chance(
        source, lambda codes: _singular(_after(source, _words(source, codes, length))[0], 2, rng)[1], rng
    )
    beyond = int((values[1:] > chance).sum())
    if not beyond:
        return None
    kept = slice(1, 1 + min(wider * beyond, MOST_DIRECTIONS))
    return _Told(values[kept], after_scale[:, None] * right[:, kept], before_scale[:, None] * left[:, kept])


def _words(source: SequenceSource, codes: NDArray[np.integer], length: int) -> _Words:
    """The words of so many observed rows of a sequence."""
    T = source.n_rows
    begins = np.where(source.observed(Chunk(0, T)) > 0.0, codes, -1)
    one = begins
    for further in range(1, length):
        follows = np.full(T, -1)
        follows[:-further] = np.where(_together(source, further), one[further:], -1)
        both = (begins >= 0) & (follows >= 0)
        begins = np.where(both, begins * len(source.X) + follows, -1)
    has = begins >= 0
    distinct, numbers = np.unique(begins[has], return_inverse=True)
    begins = np.full(T, -1)
    begins[has] = numbers
    ends = np.full(T, -1)
    ends[length - 1 :] = begins[: T - length + 1]
    return _Words(ends, begins, len(distinct))


def _together(source: SequenceSource, distance: int) -> NDArray[np.bool_]:
    """Of rows but the last ones, whether that so far on is of the same sequence, (T - distance,)."""
    sequence = np.repeat(np.arange(source.n_sequences), np.diff(source.edges))
    return np.asarray(sequence[:-distance] == sequence[distance:])


def _after(source: SequenceSource, words: _Words) -> tuple[Any, Array, Array]:
    """How often a word is right after another, beside what their numbers explain, (n, n), and its scales (n,) each."""
    first = np.flatnonzero(_together(source, 1) & (words.ends[:-1] >= 0) & (words.begins[1:] >= 0))
    pair = words.ends[first], words.begins[first + 1]
    after = sparse.coo_array((np.ones(len(first)), pair), (words.n, words.n)).tocsr()
    before_scale = scale_of(after.sum(axis=1))
    after_scale = scale_of(after.sum(axis=0))
    return sparse.diags_array(before_scale) @ after @ sparse.diags_array(after_scale), before_scale, after_scale


def _singular(after: Any, n: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Singular values of a sparse matrix, the largest first, beside the left and right vectors: all, or the n largest."""
    if after.shape[0] < FEW * n:
        left, values, right = np.linalg.svd(after.toarray())
    else:
        operator = aslinearoperator(after)
        spanned = np.linalg.qr(leading(operator.H @ operator, n, rng)[1])[0]
        left, values, turned = np.linalg.svd(after @ spanned, full_matrices=False)
        right = turned @ spanned.T
    return left, values, right.T


def _places(source: SequenceSource, words: _Words, told: _Told, rows: Chunk) -> Array:
    """What the words around each of some rows tell, (n, 2r): of where it begins, and of where it ends.

    Where a row begins, a word ends and another begins, and either tells of the other; where it ends, likewise.
    """
    T = source.n_rows
    at = np.arange(*rows)
    before = np.where((at > 0) & _is_led(source, at), words.ends[at - 1], -1)
    after = np.where(
        (at + 1 < T) & _is_led(source, np.minimum(at + 1, T - 1)), words.begins[np.minimum(at + 1, T - 1)], -1
    )
    start = _of(told.of_next * told.values, before) + _of(told.of_before, words.begins[at])
    end = _of(told.of_next, words.ends[at]) + _of(told.of_before * told.values, after)
    return np.concatenate([start, end], axis=1)


def _is_led(source: SequenceSource, at: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether rows have others before them in their sequence."""
    return np.asarray(source.edges[np.searchsorted(source.edges, at, side="right") - 1] < at)


def _of(told: Array, words: NDArray[np.integer]) -> Array:
    """What some words tell, (n, r): nothing where there is none."""
    return np.where(words[:, None] >= 0, told[words], 0.0)
