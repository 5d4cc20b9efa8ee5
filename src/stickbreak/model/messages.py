"""The messages of hidden Markov chains, block by block: scores of rows, forward and backward, and the most probable path."""

import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.sequences import Sequences, SequenceSource
from ..kernels.markov import FLOOR, WIDTH, add_rows, backward, clear_least, forward, shift_rows
from ..likelihoods import Likelihood
from ..likelihoods.features import largest_terms, prefers_sparse
from .local import exact_scores, scores_of
from .parameters import Parameters
from .phrases import Matrices, Smooth, log_scale_of_symbols, matrices, smooth_symbols

Array = NDArray[np.floating]

BLOCK = 1 << 19  # numbers in a block of messages: 4 MiB, so that threads seldom wait for each other between blocks
KEPT = 1 << 24  # numbers of forward messages, scores and features to keep; of longer chunks they are computed twice
RUN_UP, SETTLED = 32, 1e-13  # rows before a part of a sequence, at first; the change of messages at which they suffice
LANES = 4  # of a chunk
LANE = 1024  # rows of a lane that does not begin with a sequence, at least
NEAR = 0.25  # of a lane: how far from where it would begin a sequence may begin, to be its beginning


class Scores(NamedTuple):
    """Of distinct rows, or of the rows of a block: log likelihoods less the largest of each, exponentials, and features.

    C, L : (U, Kp);  top : (U,) the largest;  T : (U, F), dense or CSR
    codes : (n,) which row each is
    """

    C: Array
    L: Array
    top: Array
    T: Any
    codes: NDArray[np.integer]


class Prepared(NamedTuple):
    """Parameters and the chain's potentials, filled up with zeros to Kp states (`stickbreak.kernels.markov`).

    log_start : (K,), log_A : (K, K) log potentials;  start : (Kp,), A, At : (Kp, Kp) their exponentials, and A transposed
    table : of the distinct rows, where there are few
    phrases : of the phrases of distinct rows, where they save time
    arbitrary : (2, Kp) two messages in which neither states nor any set of them have the same mass
    """

    parameters: Parameters
    log_start: Array
    log_A: Array
    start: Array
    A: Array
    At: Array
    table: Scores | None
    phrases: Matrices | None
    arbitrary: Array

    @property
    def K(self) -> int:
        """Number of states."""
        return len(self.log_start)


class Smoothed(NamedTuple):
    """A block: rows of each lane, one lane after another, where these begin, scores, scales (n,), and what `backward` makes.

    alpha, G : (n + lanes, Kp), of which alpha[t + i] is the message from the row before row t of lane i;  R : (n, Kp)
    The arrays are used again for the next block.
    """

    lanes: list[slice]
    edges: NDArray[np.intp]
    scores: Scores
    alpha: Array
    scale: Array
    R: Array
    G: Array

    @property
    def rows(self) -> NDArray[np.intp]:
        """Which rows of the chunk these are, (n,)."""
        return np.concatenate([np.arange(lane.start, lane.stop) for lane in self.lanes])


class Workspace(threading.local):
    """Scratch arrays of a thread: allocating them anew would cost more than what is computed in them."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[str, Any], NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, int], dtype: Any = np.float64) -> NDArray[Any]:
        """An array of a shape, whatever it holds; the one of the same name and type given out before is no longer valid."""
        key = (name, dtype)
        size = shape[0] * shape[1]
        if key not in self._arrays or self._arrays[key].size < size:
            self._arrays[key] = np.empty(size, dtype)
        return self._arrays[key][:size].reshape(shape)


WORKSPACE = Workspace()


def prepared_for(likelihood: Likelihood, parameters: Parameters, source: SequenceSource) -> Prepared:
    """What the local step of every chunk shares; of distinct rows the scores."""
    assert parameters.prior is not None
    logs = np.log(np.maximum(parameters.prior, np.exp(FLOOR)))
    K = len(parameters.bias)
    start = _padded(np.exp(logs[:1]))[0]
    A = np.zeros((padded(K), padded(K)))
    A[:K, :K] = np.exp(logs[1:])
    table = None
    phrases = None
    if source.codes is not None:
        weights = np.ones(len(source.X)) if source.weights is None else source.weights
        table = _table(likelihood, parameters, np.asarray(source.X, dtype=source.dtype), weights)
        phrases = matrices(source, A, table.L)
    At = np.ascontiguousarray(A.T)
    return Prepared(parameters, logs[0], logs[1:], start, A, At, table, phrases, _arbitrary(K))


def padded(K: int) -> int:
    """Kp, the columns of arrays of K states."""
    return -(-K // WIDTH) * WIDTH


def _arbitrary(K: int) -> Array:
    """Two arbitrary starting messages to K states, (2, Kp)."""
    messages = _padded(np.stack([np.random.default_rng(seed).random(K) for seed in range(2)]))
    return np.asarray(messages / messages.sum(axis=1, keepdims=True))


def _padded(values: Array) -> Array:
    filled = np.zeros((len(values), padded(values.shape[1])))
    filled[:, : values.shape[1]] = values
    return filled


def _table(likelihood: Likelihood, parameters: Parameters, X: Array, weights: Array) -> Scores:
    """Scores of distinct rows X (U, D)."""
    (C, L), top = np.empty((2, len(X), padded(len(parameters.bias)))), np.empty(len(X))
    T = _exponentials(likelihood, parameters, X, weights, C, L, top)
    return Scores(C, L, top, T, np.empty(0, np.int32))


def _exponentials(
    likelihood: Likelihood,
    parameters: Parameters,
    X: Array,
    weights: Array,
    C: Array,
    L: Array,
    top: Array,
    out: Array | None = None,
    product: Array | None = None,
) -> Any:
    """Fill C, L and top (see `Scores`) for rows X, and return their features; ``out`` and ``product`` are optional buffers."""
    T, product = scores_of(likelihood, parameters, X, out, product)
    with np.errstate(invalid="ignore"):
        shift_rows(product, parameters.bias, weights, C, L, top)
    if not np.abs(top).max(initial=0.0) <= largest_terms(parameters.W.dtype):
        T, product, best = exact_scores(likelihood, parameters, X)
        shift_rows(product, np.zeros(product.shape[1]), weights, C, L, top)
        top += weights * best
    np.exp(L, out=L)
    clear_least(L)
    return T


class Blocks:
    """The blocks of a chunk, of as many rows of each of its lanes; their scores, and where these and the messages are kept."""

    def __init__(self, likelihood: Likelihood, prepared: Prepared, X: Sequences, edges: list[int]) -> None:
        self.likelihood, self.prepared, self.X, self.lanes = likelihood, prepared, X, len(edges) - 1
        self.pieces = blocks(edges, prepared.K)
        self.edges = [np.cumsum([0, *(piece.stop - piece.start for piece in pieces)]) for pieces in self.pieces]
        self.begins = np.cumsum([0, *(edges[-1] for edges in self.edges)])
        n = len(X)
        Kp = len(prepared.start)
        F = likelihood.n_statistics
        self.dense = prepared.table is None and not prefers_sparse(likelihood)
        self.keep = n * (Kp if prepared.table is not None else 3 * Kp + F * self.dense) <= KEPT
        self.known: dict[int, Scores] = {}

    def array(self, name: str, i: int, columns: int, more: int = 0, dtype: Any = np.float64) -> NDArray[Any]:
        """What is to hold the rows of block i, and ``more``, of its own where blocks are kept."""
        n = int(self.edges[i][-1]) + more
        if not self.keep:
            return WORKSPACE.array(name, (int(self.edges[0][-1]) + more, columns), dtype)[:n]
        everything = WORKSPACE.array(name, (len(self.X) + more * len(self.pieces), columns), dtype)
        start = int(self.begins[i]) + more * i
        return everything[start : start + n]

    def joined(self, i: int, read: Callable[[slice], Any]) -> Any:
        """What ``read`` tells of each lane's rows of block i, one lane after another."""
        return np.concatenate([read(piece) for piece in self.pieces[i]])

    def scores(self, i: int) -> Scores:
        """Scores of block i; zero for rows of weight zero."""
        if self.prepared.table is not None:
            return self.prepared.table._replace(codes=self.joined(i, self.X.codes))
        if i in self.known:
            return self.known[i]
        W = self.prepared.parameters.W
        bias = self.prepared.parameters.bias
        X = self.joined(i, self.X.rows)
        held = self.array("T", i, self.likelihood.n_statistics, 0, W.dtype) if self.dense else None
        C = self.array("C", i, len(self.prepared.start))
        L = self.array("L", i, len(self.prepared.start))
        product = WORKSPACE.array("product", (len(X), len(bias)), W.dtype)
        top = np.empty(len(X))
        weights = self.joined(i, self.X.weights)
        T = _exponentials(self.likelihood, self.prepared.parameters, X, weights, C, L, top, held, product)
        found = Scores(C, L, top, T, np.arange(len(X)))
        if self.keep:
            self.known[i] = found
        return found

    def ahead(self, i: int, begin: Array) -> tuple[Scores, Array, Array]:
        """Scores, forward messages and scales of block i, from the messages (lanes, Kp) to the beginning of each lane."""
        prepared = self.prepared
        edges = self.edges[i]
        found = self.scores(i)
        alpha = self.array("alpha", i, len(prepared.start), self.lanes)
        scale = self.array("scale", i, 1)[:, 0]
        alpha[edges[:-1] + np.arange(self.lanes)] = begin
        forward(found.L, found.codes, self.joined(i, self.X.first), edges, prepared.start, prepared.A, alpha, scale)
        return found, alpha, scale

    def filtered(self, begin: Array) -> Iterator[tuple[int, tuple[Scores, Array, Array]]]:
        """Each block, the last one first, with its scores, forward messages and scales.

        Messages are kept where memory allows, or else only those at the ends of blocks, and computed again.
        """
        ends = [begin]
        stored: tuple[Scores, Array, Array] | None = None
        for i in range(len(self.pieces)):
            stored = self.ahead(i, ends[i])
            ends.append(self.ends(i, stored[1]))
        Kp = len(self.prepared.start)
        for i in range(len(self.pieces) - 1, -1, -1):
            if self.keep:
                stored = self.scores(i), self.array("alpha", i, Kp, self.lanes), self.array("scale", i, 1)[:, 0]
            yield i, stored if stored is not None else self.ahead(i, ends[i])
            stored = None

    def ends(self, i: int, alpha: Array) -> Array:
        """The messages (lanes, Kp) from the last row of each lane of block i."""
        return np.asarray(alpha[self.edges[i][1:] + np.arange(self.lanes)])


def blocks(edges: list[int], K: int) -> list[list[slice]]:
    """Blocks for messages to K states, of rows of every lane, of which some may have no more."""
    size = max(128, BLOCK // (padded(K) * (len(edges) - 1)))
    longest = max(b - a for a, b in pairwise(edges))
    return [[slice(min(a + i, b), min(a + i + size, b)) for a, b in pairwise(edges)] for i in range(0, longest, size)]


def smoothed(likelihood: Likelihood, prepared: Prepared, X: Sequences) -> Iterator[Smoothed]:
    """Forward and backward messages of a chunk, block by block, the last block first.

    Forward messages are kept where memory allows, or else only those at the ends of blocks, and computed again.
    """
    edges, begin, beta = _lanes(likelihood, prepared, X)
    Kp = len(prepared.start)
    work = Blocks(likelihood, prepared, X, edges)
    for i, (found, alpha, scale) in work.filtered(begin):
        R = WORKSPACE.array("R", (len(scale), Kp))
        G = WORKSPACE.array("G", alpha.shape)
        backward(found.L, found.codes, work.joined(i, X.first), work.edges[i], prepared.At, alpha, beta, R, G)
        yield Smoothed(work.pieces[i], work.edges[i], found, alpha, scale, R, G)


def smoothed_counts(likelihood: Likelihood, prepared: Prepared, X: Sequences) -> Smooth:
    """What the distinct rows of a chunk say of the chain, where they are known; by phrases, if these save time."""
    assert prepared.table is not None
    table = prepared.table
    if prepared.phrases is not None:
        begin, end = (boundary_messages(likelihood, prepared, X, [row], row == 0, np.inf) for row in (0, len(X)))
        assert begin is not None
        assert end is not None
        chain = prepared.start, prepared.A, prepared.At
        return smooth_symbols(prepared.phrases, X, table.L, *chain, begin[0], end[0])
    Kp = len(prepared.start)
    found = Smooth(np.zeros(table.C.shape), np.zeros(Kp), np.zeros(prepared.A.shape), np.zeros(Kp))
    first = X.first(slice(0, len(X)))
    for block in smoothed(likelihood, prepared, X):
        found.M[...] += block.alpha.T @ block.G
        found.begins[...] += block.R[np.flatnonzero(first[block.rows])].sum(axis=0)
        add_rows(block.R, block.scores.codes, found.counts)
        found.log_scale[...] += np.log(block.scale) @ block.R
    return found


def log_normaliser(likelihood: Likelihood, prepared: Prepared, X: Sequences) -> float:
    """Log of the sum over all paths of the product of potentials, given the rows of the same sequence before the chunk."""
    if prepared.phrases is not None and prepared.table is not None:
        begin = boundary_messages(likelihood, prepared, X, [0], True, np.inf)
        assert begin is not None
        chain = prepared.start, prepared.A
        top = float(prepared.table.top[X.codes(slice(0, len(X)))].sum())
        return top + log_scale_of_symbols(prepared.phrases, X, prepared.table.L, *chain, begin[0])
    edges, begin, _ = _lanes(likelihood, prepared, X, forth_only=True)
    work = Blocks(likelihood, prepared, X, edges)
    total = 0.0
    work.keep = False
    for i in range(len(work.pieces)):
        found, alpha, scale = work.ahead(i, begin)
        begin = work.ends(i, alpha)
        total += float(np.log(scale).sum() + found.top[found.codes].sum())
    return total


def _lanes(
    likelihood: Likelihood, prepared: Prepared, X: Sequences, forth_only: bool = False
) -> tuple[list[int], Array, Array]:
    """Where the lanes of a chunk begin, and its end; the messages to each from the rows before it, and after it (lanes, Kp).

    They begin with sequences where these begin near enough, or else after a run-up that is shorter than they are.
    """
    n = len(X)
    starts = np.flatnonzero(X.first(slice(0, len(X))))
    starts = starts[starts > 0]
    edges = {0, n}
    for target in np.arange(1, LANES) * n // LANES:
        nearest = int(starts[np.abs(starts - target).argmin()]) if len(starts) else n
        if LANES * abs(nearest - target) <= NEAR * n or (n < LANES * LANE and nearest < n):
            edges.add(nearest)
        elif n >= LANES * LANE:
            edges.add(int(target))
    cuts = sorted(edges)
    most = n / LANES
    while True:
        begin = boundary_messages(likelihood, prepared, X, cuts[:-1], True, most)
        end = (
            begin if begin is None or forth_only else boundary_messages(likelihood, prepared, X, cuts[1:], False, most)
        )
        if begin is not None and end is not None:
            return cuts, begin, end
        cuts = [0, n]
        most = np.inf


def boundary_messages(
    likelihood: Likelihood, prepared: Prepared, X: Sequences, cuts: list[int], before: bool, most: float
) -> Array | None:
    """Messages to each of the rows ``cuts`` of a chunk from those before it, or to the row before from it and those after.

    Uniform where a sequence begins at the row, (n, Kp).  A run-up from far enough forgets where it began: messages from two
    unlike beginnings must have become the same, or else it is made longer, up to the whole of the sequence, or to ``most``
    rows.
    """
    Kp = len(prepared.start)
    K = prepared.K
    found = np.zeros((len(cuts), Kp))
    found[:, :K] = 1.0 / K
    rest = np.array([X.before(cut) if before else X.after(cut) for cut in cuts])
    left = np.flatnonzero(rest)
    length = RUN_UP
    while len(left):
        sizes = np.minimum(length, rest[left])
        if sizes.max() > most:
            return None
        pieces = [slice(cuts[i] - n, cuts[i]) if before else slice(cuts[i], cuts[i] + n) for i, n in zip(left, sizes)]
        begins = [np.where((sizes == rest[left])[:, None], found[left], message) for message in prepared.arbitrary]
        ends = _handed_over(likelihood, prepared, X, pieces, np.concatenate(begins), before).reshape(2, len(left), Kp)
        settled = np.abs(ends[0] - ends[1]).max(axis=1) <= SETTLED
        found[left[settled]] = ends[0, settled]
        left = left[~settled]
        length = 4 * length
    return found


def _handed_over(
    likelihood: Likelihood, prepared: Prepared, X: Sequences, pieces: list[slice], ends: Array, before: bool
) -> Array:
    """Messages (2 n, Kp) forward or backward through n pieces of rows, from one beginning of each, and from another."""
    lane = np.arange(2 * len(pieces))
    edges = np.cumsum([0, *2 * [piece.stop - piece.start for piece in pieces]])
    first = np.concatenate(2 * [X.first(piece) for piece in pieces])
    if prepared.table is None:
        rows, weights = (np.concatenate([read(piece) for piece in pieces]) for read in (X.rows, X.weights))
        L = _table(likelihood, prepared.parameters, rows, weights).L
        codes = np.tile(np.arange(len(rows)), 2)
    else:
        L = prepared.table.L
        codes = np.concatenate(2 * [X.codes(piece) for piece in pieces])
    alpha, R, G = (WORKSPACE.array(name, (len(codes) + len(lane), ends.shape[1])) for name in ("run-up", "R", "G"))
    if before:
        alpha[edges[:-1] + lane] = ends
        forward(L, codes, first, edges, prepared.start, prepared.A, alpha, np.empty(len(codes)))
        return np.asarray(alpha[edges[1:] + lane])
    alpha[:] = 1.0
    backward(L, codes, first, edges, prepared.At, alpha, ends, R, G)
    return ends
