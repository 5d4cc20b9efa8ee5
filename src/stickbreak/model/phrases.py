"""The local step of hidden Markov models where stretches of rows repeat: one step for all rows of a phrase.

A row x turns forward messages alpha into alpha A diag(L_x), so a phrase is one matrix, the product of those of its parts
(Lifshits, Mozes, Weimann and Ziv-Ukelson 2009, Speeding up HMM decoding and training by exploiting sequence repetitions,
Algorithmica 54).  What happens within it need not be known occurrence by occurrence.  Of a phrase with the matrix B, up to
scale, let

    X = sum over occurrences of  alpha' beta' / (alpha B beta'),

alpha before it and beta after it.  Then X_jk B_jk is how often the state is j before it and k at its last row, and if B is a
product B_1 B_2,  X B_2'  is the same sum for the occurrences of the first part in it, and  B_1' X  for those of the second.
So from the longest phrases down to rows all expected counts follow, in a time that does not depend on how often phrases occur.
All is exact, as is the bound.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.phrases import Phrases
from ..data.sequences import Sequences, SequenceSource
from ..kernels.phrases import backward_symbols, forward_symbols, scale_matrix

Array = NDArray[np.floating]

MADE = 1 << 18  # multiply-adds of messages in the time of making a phrase and sharing out its counts, products apart
PRODUCT = 0.2  # the time of a multiply-add in such a product, beside one that messages take forth and back
MATRICES = 1 << 23  # numbers in the matrices of all phrases, at most
MESSAGES = 1 << 23  # numbers in the messages of a chunk, at most


class Matrices(NamedTuple):
    """The matrices of phrases under some parameters.

    phrases : the phrases
    B, Bt : (P, Kp, Kp) their matrices, of which the largest entry is 1, and transposed
    scale : (P,) the largest entry of the product of a phrase's parts, by which it was divided
    logs : (U + P,) the logarithms of all such scales within a symbol, of rows zero
    """

    phrases: Phrases
    B: Array
    Bt: Array
    scale: Array
    logs: Array

    @classmethod
    def of(cls, phrases: Phrases, A: Array, L: Array) -> "Matrices":
        """Those of a chain with transitions A (Kp, Kp) and rows with likelihoods L (U, Kp)."""
        P = len(phrases.parts)
        U = len(L)
        Kp = len(A)
        B = np.empty((P, Kp, Kp))
        Bt = np.empty((P, Kp, Kp))
        scale = np.empty(P)
        logs = np.zeros(U + P)
        for i, (left, right) in enumerate(phrases.parts.tolist()):
            np.matmul(_matrix(left, A, L, B), _matrix(right, A, L, B), out=B[i])
            scale[i] = scale_matrix(B[i], Bt[i])
            logs[U + i] = logs[left] + logs[right] + np.log(scale[i])
        return cls(phrases, B, Bt, scale, logs)


class Smooth(NamedTuple):
    """What the rows of a chunk say of the chain.

    counts : (U, Kp) expected numbers of rows like each distinct one in each state
    begins : (Kp,) expected first states;  M : (Kp, Kp), of which A * M are the expected transitions
    log_scale : (Kp,) the logarithms of the normalisers of all rows, shared out among the states
    """

    counts: Array
    begins: Array
    M: Array
    log_scale: Array


def matrices(source: SequenceSource, A: Array, L: Array) -> Matrices | None:
    """The matrices of the phrases of a source, or of the most frequent ones, where they save more than they cost."""
    Kp = len(A)
    chunks = -(-source.n_rows // source.steps)
    best, least = None, float(source.n_rows * Kp**2)
    for phrases in source.fewer_phrases:
        P = len(phrases.parts)
        cost = len(phrases.symbols) * Kp**2 + P * (chunks * MADE + (1 + 2 * chunks) * PRODUCT * Kp**3)
        if cost < least and P * Kp**2 <= MATRICES and len(phrases.symbols) // chunks * Kp <= MESSAGES:
            best, least = phrases, cost
    return None if best is None else Matrices.of(best, A, L)


def smooth_symbols(
    found: Matrices, X: Sequences, L: Array, start: Array, A: Array, At: Array, alpha: Array, beta: Array
) -> Smooth:
    """Forward and backward messages of a chunk, from the messages (Kp,) ``alpha`` to its beginning, and ``beta`` to its end.

    L : (U, Kp) likelihoods of the distinct rows;  start, A, At : see `stickbreak.model.potentials.Prepared`
    """
    symbols, first = symbols_of(found, X)
    Kp = len(A)
    forth, scale = _forward(found, symbols, first, L, start, A, alpha)
    counts = np.zeros(L.shape)
    begins = np.zeros(Kp)
    G = np.empty((len(symbols), Kp))
    backward_symbols(L, symbols, first, At, found.Bt, forth, beta.copy(), counts, begins, G)
    M = _transitions(found, symbols, forth, G, A, At, L, counts)
    log_scale = np.log(scale).sum() + found.logs[symbols].sum()
    rows = counts.sum(axis=0)
    return Smooth(counts, begins, M, log_scale * (rows / rows.sum()))  # of a whole phrase only the sum is known


def log_scale_of_symbols(found: Matrices, X: Sequences, L: Array, start: Array, A: Array, alpha: Array) -> float:
    """The sum of the logarithms of the normalisers of all rows of a chunk."""
    symbols, first = symbols_of(found, X)
    scale = _forward(found, symbols, first, L, start, A, alpha)[1]
    return float(np.log(scale).sum() + found.logs[symbols].sum())


def symbols_of(found: Matrices, X: Sequences) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The symbols of a chunk, and with which of them a sequence begins."""
    symbols, begins = found.phrases.within(X.source.codes, X.chunk)
    return symbols, np.isin(begins, X.source.edges[:-1], assume_unique=True)


def _forward(
    found: Matrices,
    symbols: NDArray[np.int64],
    first: NDArray[np.bool_],
    L: Array,
    start: Array,
    A: Array,
    begin: Array,
) -> tuple[Array, Array]:
    """Forward messages (n + 1, Kp) and their scales (n,)."""
    alpha = np.empty((len(symbols) + 1, len(A)))
    alpha[0] = begin
    scale = np.empty(len(symbols))
    forward_symbols(L, symbols, first, start, A, found.B, alpha, scale)
    return alpha, scale


def _transitions(
    found: Matrices, symbols: NDArray[np.int64], alpha: Array, G: Array, A: Array, At: Array, L: Array, counts: Array
) -> Array:
    """M (see `Smooth`); the rows in phrases are added to ``counts`` (U, Kp)."""
    U = len(L)
    order = np.argsort(symbols, kind="stable")
    edges = np.searchsorted(symbols[order], np.arange(U, U + len(found.B) + 1))
    rows = order[: edges[0]]
    M = alpha[rows].T @ G[rows]
    sums = np.zeros(found.B.shape)
    used = np.diff(edges) > 0
    for i in np.flatnonzero(used).tolist():
        here = order[edges[i] : edges[i + 1]]
        np.matmul(alpha[here].T, G[here], out=sums[i])
    for i in range(len(sums) - 1, -1, -1):
        if not used[i]:
            continue
        left, right = found.phrases.parts[i].tolist()
        share = sums[i] / found.scale[i]
        for symbol, part in (
            (left, share @ _transposed(right, At, L, found.Bt)),
            (right, _transposed(left, At, L, found.Bt) @ share),
        ):
            if symbol >= U:
                sums[symbol - U] += part
                used[symbol - U] = True
            else:
                part *= L[symbol]
                M += part
                counts[symbol] += (A * part).sum(axis=0)
    return M


def _matrix(symbol: int, A: Array, L: Array, B: Array) -> Array:
    """The matrix of a symbol, (Kp, Kp)."""
    return np.asarray(A * L[symbol] if symbol < len(L) else B[symbol - len(L)])


def _transposed(symbol: int, At: Array, L: Array, Bt: Array) -> Array:
    """The same, transposed."""
    return np.asarray(At * L[symbol][:, None] if symbol < len(L) else Bt[symbol - len(L)])
