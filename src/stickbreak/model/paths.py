"""Paths of states through sequences: the most probable one, and one drawn from the posterior."""

import numpy as np
from numpy.typing import NDArray

from ..data.sequences import Sequences
from ..kernels.markov import best_path, draw_path, follow
from ..kernels.phrases import best_between, best_symbols, follow_symbols
from ..likelihoods import Likelihood
from .messages import Blocks
from .phrases import Matrices, symbols_of
from .potentials import Prepared, Scores

Array = NDArray[np.floating]

STATES = 1 << 25  # before each symbol, for every state at its last row, at most


def viterbi(likelihood: Likelihood, prepared: Prepared, X: Sequences) -> NDArray[np.intp]:
    """The most probable path of each sequence of a chunk, (n,), block by block from the scores at their ends."""
    K = prepared.K
    phrases = prepared.phrases
    if phrases is not None and prepared.table is not None and len(phrases.phrases.symbols) * K <= STATES:
        return _by_phrases(prepared, prepared.table, phrases, X)
    work = Blocks(likelihood, prepared, X, [0, len(X)])
    A = np.ascontiguousarray(prepared.log_A)
    pieces = [pieces[0] for pieces in work.pieces]
    ends: list[Array] = [np.zeros(K)]
    path = np.empty(len(X), np.intp)

    def ahead(i: int) -> tuple[Array, NDArray[np.int16]]:
        rows = pieces[i]
        found = work.scores(i)
        C = found.C[found.codes]
        score = ends[i].copy()
        back = np.empty((len(C), K), np.int16)
        best_path(np.ascontiguousarray(C[:, :K]), X.first(rows), prepared.log_start, A, score, back)
        return score, back

    last = None
    for i in range(len(pieces)):
        score, last = ahead(i)
        ends.append(score)
    state = int(ends[-1].argmax())
    for i in range(len(pieces) - 1, -1, -1):
        back = last if last is not None else ahead(i)[1]
        last = None
        state = follow(back, state, path[pieces[i]])
    return path


def _by_phrases(prepared: Prepared, table: Scores, found: Matrices, X: Sequences) -> NDArray[np.intp]:
    """The same, each step through a phrase: the best path through it is known for all states before it and at its last row."""
    K = prepared.K
    U = len(table.C)
    C = np.ascontiguousarray(table.C[:, :K])
    A = np.ascontiguousarray(prepared.log_A)
    parts = found.phrases.parts
    best = np.empty((len(parts), K, K))
    middle = np.empty((len(parts), K, K), np.int16)
    for i, pair in enumerate(parts.tolist()):
        left, right = (A + C[symbol] if symbol < U else best[symbol - U] for symbol in pair)
        best_between(left, right, best[i], middle[i])
    symbols, first = symbols_of(found, X)
    back = np.empty((len(symbols), K), np.int16)
    state = best_symbols(C, symbols, first, prepared.log_start, A, best, back)
    path = np.empty(len(X), np.intp)
    follow_symbols(parts, found.phrases.sizes(U), middle, symbols, back, state, path)
    return path


def drawn_path(
    likelihood: Likelihood, prepared: Prepared, X: Sequences, uniform: Array, path: NDArray[np.integer]
) -> None:
    """Draw the states of the sequences of a chunk given the parameters: filter forward, sample backward.

    uniform : (n,) random numbers;  path : (n,) out
    """
    work = Blocks(likelihood, prepared, X, [0, len(X)])
    after = -1
    for i, (_, alpha, _) in work.filtered(np.zeros((1, len(prepared.start)))):
        rows = work.pieces[i][0]
        after = draw_path(alpha[1:], prepared.At, X.first(rows), uniform[rows], after, path[rows])
