"""The messages of hidden Markov chains, block by block: scores of rows, forward and backward, and the most probable path."""

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.sequences import Sequences, SequenceSource
from ..kernels.markov import FLOOR, WIDTH, backward, best_path, clear_least, follow, forward, shift_rows
from ..likelihoods._base import features, prefers_sparse
from .local import product_with
from .model import Model, Parameters

Array = NDArray[np.floating]

BLOCK = 1 << 17  # numbers in a block of messages: 1 MiB
KEPT = 1 << 24  # numbers of forward messages, scores and features to keep; of longer chunks they are computed twice
RUN_UP, SETTLED = 256, 1e-13  # rows before a part of a sequence, at first; the change of messages at which they suffice


class Scores(NamedTuple):
    """Of distinct rows, or of the rows of a block: log likelihoods less the largest of each, exponentials, and features.

    C, L : (U, Kp);  T : (U, F), dense or CSR
    codes : (n,) which row each is
    """

    C: Array
    L: Array
    T: Any
    codes: NDArray[np.integer]


class Prepared(NamedTuple):
    """Parameters and the chain's potentials, filled up with zeros to Kp states (`stickbreak.kernels.markov`).

    log_start : (K,), log_A : (K, K) log potentials;  start : (Kp,), A, At : (Kp, Kp) their exponentials, and A transposed
    table : of the distinct rows, where there are few
    """

    parameters: Parameters
    log_start: Array
    log_A: Array
    start: Array
    A: Array
    At: Array
    table: Scores | None

    @property
    def K(self) -> int:
        """Number of states."""
        return len(self.log_start)


class Smoothed(NamedTuple):
    """A block of rows: where it is in the chunk, forward messages (n + 1, Kp) and scales (n,), R and G of `backward` (n, Kp).

    The arrays are used again for the next block.
    """

    rows: slice
    scores: Scores
    alpha: Array
    scale: Array
    R: Array
    G: Array


class Workspace(threading.local):
    """Arrays of a thread that are used again and again: what is computed in them is soon done, new ones are slow."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[str, Any], NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, int], dtype: Any = np.float64) -> NDArray[Any]:
        """An array of a shape, whatever it holds; the one of the same name and type given out before is no longer valid."""
        key, size = (name, dtype), shape[0] * shape[1]
        if key not in self._arrays or self._arrays[key].size < size:
            self._arrays[key] = np.empty(size, dtype)
        return self._arrays[key][:size].reshape(shape)


WORKSPACE = Workspace()


def prepared_for(model: Model, parameters: Parameters, source: SequenceSource) -> Prepared:
    """What the local step of every chunk shares; of distinct rows the scores."""
    assert parameters.prior is not None
    logs = np.log(np.maximum(parameters.prior, np.exp(FLOOR)))
    K = len(parameters.bias)
    start, A = _padded(np.exp(logs[:1]))[0], np.zeros((padded(K), padded(K)))
    A[:K, :K] = np.exp(logs[1:])
    table = None
    if source.codes is not None:
        weights = np.ones(len(source.X)) if source.weights is None else source.weights
        table = _table(model, parameters, np.asarray(source.X, dtype=source.dtype), weights)
    return Prepared(parameters, logs[0], logs[1:], start, A, np.ascontiguousarray(A.T), table)


def padded(K: int) -> int:
    """Kp, the columns of arrays of K states."""
    return -(-K // WIDTH) * WIDTH


def _padded(values: Array) -> Array:
    filled = np.zeros((len(values), padded(values.shape[1])))
    filled[:, : values.shape[1]] = values
    return filled


def _table(model: Model, parameters: Parameters, X: Array, weights: Array) -> Scores:
    """Scores of distinct rows X (U, D)."""
    T = features(model.likelihood, X)
    C, L = np.empty((2, len(X), padded(len(parameters.bias))))
    _exponentials(product_with(T, parameters.W), parameters.bias, weights, C, L)
    return Scores(C, L, T, np.empty(0, np.int32))


def _exponentials(product: Array, bias: Array, weights: Array, C: Array, L: Array) -> None:
    shift_rows(product, bias, weights, C, L)
    np.exp(L, out=L)
    clear_least(L)


class _Blocks:
    """The blocks of a chunk, their scores, and where these and the forward messages are kept."""

    def __init__(self, model: Model, prepared: Prepared, X: Sequences) -> None:
        self.model, self.prepared, self.X = model, prepared, X
        self.pieces = blocks(len(X), prepared.K)
        n, Kp, F = len(X), len(prepared.start), model.likelihood.n_statistics
        self.size = max((piece.stop - piece.start for piece in self.pieces), default=0)
        self.dense = prepared.table is None and not prefers_sparse(model.likelihood)
        self.keep = n * (Kp if prepared.table is not None else 3 * Kp + F * self.dense) <= KEPT
        self.known: dict[int, Scores] = {}

    def array(self, name: str, i: int, columns: int, more: int = 0, dtype: Any = np.float64) -> NDArray[Any]:
        """What is to hold the rows of block i, and ``more``, of its own where blocks are kept."""
        n = self.pieces[i].stop - self.pieces[i].start + more
        if not self.keep:
            return WORKSPACE.array(name, (self.size + more, columns), dtype)[:n]
        everything = WORKSPACE.array(name, (len(self.X) + more * len(self.pieces), columns), dtype)
        start = self.pieces[i].start + more * i
        return everything[start : start + n]

    def scores(self, i: int) -> Scores:
        """Scores of block i; zero for rows of weight zero."""
        rows, table = self.pieces[i], self.prepared.table
        if table is not None:
            return table._replace(codes=self.X.codes(rows))
        if i in self.known:
            return self.known[i]
        likelihood, W, bias = self.model.likelihood, self.prepared.parameters.W, self.prepared.parameters.bias
        X = self.X.rows(rows)
        T = likelihood.features(X, self.array("T", i, likelihood.n_statistics, 0, X.dtype) if self.dense else None)
        C, L = self.array("C", i, len(self.prepared.start)), self.array("L", i, len(self.prepared.start))
        product = WORKSPACE.array("product", (len(X), len(bias)), W.dtype)
        _exponentials(product_with(T, W, product), bias, self.X.weights(rows), C, L)
        found = Scores(C, L, T, np.arange(len(X)))
        if self.keep:
            self.known[i] = found
        return found


def blocks(n: int, K: int) -> list[slice]:
    """Blocks of n rows for messages to K states."""
    size = max(128, BLOCK // padded(K))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def smoothed(model: Model, prepared: Prepared, X: Sequences) -> Iterator[Smoothed]:
    """Forward and backward messages of a chunk, block by block, the last block first.

    Forward messages are kept where memory allows, or else only those at the ends of blocks, and computed again.
    """
    Kp, work = len(prepared.start), _Blocks(model, prepared, X)
    ends: list[Array] = [_message(model, prepared, X, before=True)]

    def ahead(i: int) -> tuple[Scores, Array, Array]:
        found, alpha = work.scores(i), work.array("alpha", i, Kp, 1)
        scale = work.array("scale", i, 1)[:, 0]
        alpha[0] = ends[i]
        forward(found.L, found.codes, X.first(work.pieces[i]), prepared.start, prepared.A, alpha, scale)
        return found, alpha, scale

    stored: tuple[Scores, Array, Array] | None = None
    for i in range(len(work.pieces)):
        stored = ahead(i)
        ends.append(stored[1][-1].copy())
    beta = _message(model, prepared, X, before=False)
    for i in range(len(work.pieces) - 1, -1, -1):
        rows = work.pieces[i]
        if work.keep:
            stored = work.scores(i), work.array("alpha", i, Kp, 1), work.array("scale", i, 1)[:, 0]
        found, alpha, scale = stored if stored is not None else ahead(i)
        stored = None
        R, G = (WORKSPACE.array(name, (rows.stop - rows.start, Kp)) for name in "RG")
        backward(found.L, found.codes, X.first(rows), prepared.At, alpha, beta, R, G)
        yield Smoothed(rows, found, alpha, scale, R, G)


def _message(model: Model, prepared: Prepared, X: Sequences, before: bool) -> Array:
    """The message to a part of a sequence from the rows before it, or after it, (Kp,); uniform where there are none.

    A run-up from far enough forgets where it began: messages from two unlike beginnings must have become the same, or else it
    is made longer, up to the whole of the sequence.
    """
    Kp, K, rest = len(prepared.start), prepared.K, X.before if before else X.after
    uniform = np.zeros(Kp)
    uniform[:K] = 1.0 / K
    length = RUN_UP
    while rest:
        rows = slice(-min(length, rest), 0) if before else slice(len(X), len(X) + min(length, rest))
        found, first = _free_scores(model, prepared, X, rows), X.first(rows)
        begins = [uniform] if length >= rest else [_somehow(K, Kp, 0), _somehow(K, Kp, 1)]
        ends = []
        for beta in begins:
            alpha, scale = np.ones((len(first) + 1, Kp)), np.empty(len(first))
            if before:
                alpha[0] = beta
                forward(found.L, found.codes, first, prepared.start, prepared.A, alpha, scale)
                beta = alpha[-1].copy()
            else:
                R, G = np.empty((2, len(first), Kp))
                backward(found.L, found.codes, first, prepared.At, alpha, beta, R, G)
            ends.append(beta)
        if np.abs(ends[0] - ends[-1]).max() <= SETTLED:
            return ends[0]
        length *= 4
    return uniform


def _somehow(K: int, Kp: int, seed: int) -> Array:
    """One of two messages that have nothing in common: neither states nor any set of them have the same mass."""
    message = np.zeros(Kp)
    message[:K] = np.random.default_rng(seed).random(K)
    return np.asarray(message / message.sum())


def _free_scores(model: Model, prepared: Prepared, X: Sequences, rows: slice) -> Scores:
    """Scores of any rows, in arrays of their own."""
    if prepared.table is not None:
        return prepared.table._replace(codes=X.codes(rows))
    found = _table(model, prepared.parameters, X.rows(rows), X.weights(rows))
    return found._replace(codes=np.arange(rows.stop - rows.start))


def viterbi(model: Model, prepared: Prepared, X: Sequences) -> NDArray[np.intp]:
    """The most probable path of each sequence of a chunk, (n,), block by block from the scores at their ends."""
    K, work = prepared.K, _Blocks(model, prepared, X)
    A, pieces = np.ascontiguousarray(prepared.log_A), work.pieces
    ends: list[Array] = [np.zeros(K)]
    path = np.empty(len(X), np.intp)

    def ahead(i: int) -> tuple[Array, NDArray[np.int16]]:
        rows = pieces[i]
        found = work.scores(i)
        C = found.C[found.codes]
        score, back = ends[i].copy(), np.empty((len(C), K), np.int16)
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
