"""The messages of hidden Markov chains, forward and backward, block by block; what they add up to."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.sequences import Sequences
from ..kernels.markov import add_rows, backward, forward
from ..likelihoods import Likelihood
from ..likelihoods.features import prefers_sparse
from .phrases import Smooth, log_scale_of_symbols, smooth_symbols
from .potentials import WORKSPACE, Array, Prepared, Scores, fill_scores, padded
from .run_ups import boundary_messages, lanes_of

BLOCK = 1 << 19  # numbers in a block of messages: 4 MiB, so that threads seldom wait for each other between blocks
KEPT = 1 << 24  # numbers of forward messages, scores and features to keep; of longer chunks they are computed twice


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
        T = fill_scores(self.likelihood, self.prepared.parameters, X, weights, C, L, top, held, product)
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
    edges, begin, beta = lanes_of(likelihood, prepared, X)
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
    edges, begin, _ = lanes_of(likelihood, prepared, X, forth_only=True)
    work = Blocks(likelihood, prepared, X, edges)
    total = 0.0
    work.keep = False
    for i in range(len(work.pieces)):
        found, alpha, scale = work.ahead(i, begin)
        begin = work.ends(i, alpha)
        total += float(np.log(scale).sum() + found.top[found.codes].sum())
    return total
