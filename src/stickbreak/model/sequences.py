"""The local step of hidden Markov models: sequences to smoothed states to a summary."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..data.sequences import Sequences, SequenceSource
from ..kernels.assign import accumulate, select_rows
from ..kernels.markov import FLOOR, WIDTH, add_rows, backward, best_path, compress, follow, forward
from ..likelihoods._base import features
from .local import (
    DENSE_SHARE,
    THRESHOLD,
    Drawn,
    Responsibilities,
    RowUnit,
    join,
    product_with,
    responsibility_threshold,
)
from .model import Model, Parameters
from .summary import Array, Summary, cluster_axes

BLOCK = 1 << 17  # numbers in a block of messages: 1 MiB
KEPT = 1 << 28  # bytes of messages to keep; of longer chunks the forward ones are computed twice
SHOWN = 1 << 20  # rows of a chunk whose responsibilities are kept for samples


@dataclass(frozen=True)
class SequenceSummary(Summary):
    """What sequences say to the global step and to the bound, beside what their rows say.

    H_k is state k's part of the entropy of q(z), -E[log q(z_1)] - sum_t E[log q(z_t | z_{t-1})]  (Thesis Eq. 6.25).

    Attributes
    ----------
    M : (K, K) expected transitions, sum_t q(z_{t-1} = j, z_t = k)                                  (Thesis Eq. 6.27)
    begins : (K,) expected first states, sum_d q(z_d1 = k)
    """

    M: Array = cluster_axes(2)
    begins: Array = cluster_axes(1)

    @classmethod
    def of(cls, summary: Summary, M: Array, begins: Array) -> Self:
        """A summary of rows with transitions."""
        return cls(summary.N, summary.S, summary.H, summary.base, M, begins)


class Scores(NamedTuple):
    """Log likelihoods of rows, less the largest of each row, (n, Kp), their exponentials, and where codes tell rows apart T."""

    C: Array
    L: Array
    T: Any = None


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
    """A block of rows: where it is in the chunk, smoothed probabilities R and G (`backward`), forward messages, scales."""

    rows: slice
    scores: Scores
    alpha: Array
    scale: Array
    R: Array
    G: Array


class Shown(NamedTuple):
    """Responsibilities of every ``stride``-th row of a chunk."""

    kept: Responsibilities
    stride: int


class SequenceUnit:
    """What visits do with sequences, whose rows depend on each other through their states (see `RowUnit`)."""

    sample_size = RowUnit.sample_size

    def prepare(self, model: Model, parameters: Parameters, source: Any) -> Prepared:
        """What the local step of every chunk shares; of distinct rows the scores."""
        assert parameters.prior is not None
        logs = np.log(np.maximum(parameters.prior, np.exp(FLOOR)))
        K = len(parameters.bias)
        start, A = _padded(np.exp(logs[:1]))[0], np.zeros((padded(K), padded(K)))
        A[:K, :K] = np.exp(logs[1:])
        table = None
        if source.codes is not None:
            weights = np.ones(len(source.X)) if source.weights is None else source.weights
            table = scores(model, parameters, source.X, weights)
        return Prepared(parameters, logs[0], logs[1:], start, A, np.ascontiguousarray(A.T), table)

    def local_step(
        self, model: Model, prepared: Prepared, X: Sequences, weights: Array, base: bool, start: Array | None
    ) -> tuple[SequenceSummary, Shown]:
        """Smoothed states and summary of the sequences of a chunk (Thesis 6.3.3): the optimal q(z) for the parameters.

        H = sum_t log c_t - E[log potentials],   since q(z) is the product of all potentials over prod_t c_t.
        """
        K, table = prepared.K, prepared.table
        summary = Summary.zeros(*prepared.parameters.W.shape)
        M, begins, N = np.zeros(prepared.A.shape), np.zeros(K), np.zeros(K)
        per_code = None if table is None else np.zeros(table.C.shape)
        shown, stride = list[Responsibilities](), -(-len(X) // SHOWN)
        for block in smoothed(model, prepared, X, weights):
            R = np.ascontiguousarray(block.R[:, :K])
            M += block.alpha[:-1].T @ block.G
            begins += R[X.first(block.rows)].sum(axis=0)
            summary.H.__iadd__(np.log(block.scale) @ R)
            sparse_R = _compressed(R)
            if per_code is not None:
                add_rows(block.R, X.codes(block.rows), per_code)
            else:
                here = weights[block.rows]
                wR = R * here[:, None]
                N += wR.sum(axis=0)
                summary.H.__isub__((R * block.scores.C[:, :K]).sum(axis=0))
                if sparse_R.values.size > DENSE_SHARE * R.size:
                    summary.S.__iadd__(wR.T @ block.scores.T.astype(np.float64, copy=False))
                else:
                    accumulate(*sparse_R, np.array(here), block.scores.T, summary.S)
                if base:
                    summary.base.__iadd__(here @ model.likelihood.log_base(X.rows(block.rows)))
            shown.append(sparse_R if stride == 1 else _compressed(R[(-block.rows.start) % stride :: stride]))
        if per_code is not None and table is not None:
            source = X.source
            use = np.ones(len(source.X)) if source.weights is None else source.weights
            summary.H.__isub__((per_code * table.C).sum(axis=0)[:K])
            weighted = per_code[:, :K] * use[:, None]
            N, S = weighted.sum(axis=0), np.asarray((table.T.T @ weighted).T, dtype=np.float64)
            summary = replace(summary, S=np.ascontiguousarray(S))
            if base:
                summary.base.__iadd__(weighted.sum(axis=1) @ model.likelihood.log_base(source.X))
        M = (prepared.A * M)[:K, :K]
        summary.H.__isub__((M * prepared.log_A).sum(axis=0) + begins * prepared.log_start)
        found = SequenceSummary(N, summary.S, summary.H, summary.base, np.ascontiguousarray(M), begins)
        return found, Shown(join(shown[::-1]), stride)

    def track(
        self,
        model: Model,
        prepared: Prepared | None,
        removed: tuple[int, ...],
        X: Sequences,
        weights: Array,
        kept: Shown,
        summary: SequenceSummary,
    ) -> SequenceSummary:
        """The summary under the states of a candidate, all of which may take part of the mass of those that are removed."""
        assert prepared is not None
        return self.local_step(model, prepared, X, weights, False, None)[0]

    def draw(
        self, X: Sequences, weights: Array, kept: Shown, summary: Summary, limits: Array, salt: int, first: int
    ) -> Drawn:
        """Rows drawn for each state, with chance ``limits`` (K,) per row."""
        R, stride = kept
        n = R.values.size
        clusters, rows, chosen = np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n)
        here = np.ascontiguousarray(weights[::stride]) * float(stride)
        count = select_rows(*R, here, THRESHOLD, limits, np.uint64(salt), first, clusters, rows, chosen)
        return Drawn(clusters[:count].copy(), rows[:count] * stride + first, chosen[:count] * stride)

    def sample(self, source: SequenceSource, drawn: list[Drawn], cluster: int, mass: float) -> tuple[Array, Array]:
        """The rows drawn for one state, and weights with which they stand for its ``mass``."""
        return RowUnit().sample(source, drawn, cluster, mass)


def padded(K: int) -> int:
    """Kp, the columns of arrays of K states."""
    return -(-K // WIDTH) * WIDTH


def _padded(values: Array) -> Array:
    filled = np.zeros((len(values), padded(values.shape[1])))
    filled[:, : values.shape[1]] = values
    return filled


def _compressed(R: Array) -> Responsibilities:
    indptr = np.empty(len(R) + 1, np.int64)
    indices, values = np.empty(R.size, np.int32), np.empty(R.size)
    count = compress(R, responsibility_threshold(R.dtype), indptr, indices, values)
    return Responsibilities(indptr, indices[:count], values[:count])


def scores(model: Model, parameters: Parameters, X: Array, weights: Array) -> Scores:
    """Scores of rows X (n, D); zero for rows of weight zero."""
    T = features(model.likelihood, X)
    C: Array = product_with(T, parameters.W).astype(np.float64, copy=False) + parameters.bias
    C *= weights[:, None]
    C -= C.max(axis=1, keepdims=True)
    C = _padded(C)
    L = np.exp(C)
    L[:, len(parameters.bias) :] = 0.0
    return Scores(C, L, T)


def block_scores(model: Model, prepared: Prepared, X: Sequences, weights: Array, rows: slice) -> Scores:
    """Scores of a block of rows; where rows are codes, without C and T."""
    if prepared.table is not None:
        return Scores(np.empty((0, 0)), prepared.table.L[X.codes(rows)])
    return scores(model, prepared.parameters, X.rows(rows), weights[rows])


def blocks(n: int, K: int) -> list[slice]:
    """N rows in blocks of messages to K states."""
    size = max(256, BLOCK // padded(K))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def smoothed(model: Model, prepared: Prepared, X: Sequences, weights: Array) -> Iterator[Smoothed]:
    """Forward and backward messages of a chunk, block by block, the last block first.

    Forward messages are kept where memory allows, or else only those at the ends of blocks, and computed again.
    """
    Kp, K, n = len(prepared.start), prepared.K, len(X)
    keep = 3 * n * Kp * 8 <= KEPT
    pieces = blocks(n, K)
    stored: list[tuple[Scores, Array, Array] | None] = []
    ends: list[Array] = [np.zeros(Kp)]

    def ahead(i: int) -> tuple[Scores, Array, Array]:
        rows = pieces[i]
        found = block_scores(model, prepared, X, weights, rows)
        alpha, scale = np.empty((len(found.L) + 1, Kp)), np.empty(len(found.L))
        alpha[0] = ends[i]
        forward(found.L, X.first(rows), prepared.start, prepared.A, alpha, scale)
        return found, alpha, scale

    for i in range(len(pieces)):
        done = ahead(i)
        ends.append(done[1][-1])
        stored.append(done if keep or i == len(pieces) - 1 else None)
    beta: Array = np.full(Kp, 1.0 / Kp)
    for i in range(len(pieces) - 1, -1, -1):
        found, alpha, scale = stored[i] or ahead(i)
        stored[i] = None
        R, G = np.empty(found.L.shape), np.empty(found.L.shape)
        backward(found.L, X.first(pieces[i]), prepared.At, alpha, beta, R, G)
        yield Smoothed(pieces[i], found, alpha, scale, R, G)


def viterbi(model: Model, prepared: Prepared, X: Sequences, weights: Array) -> NDArray[np.intp]:
    """The most probable path of each sequence of a chunk, (n,), block by block from the scores at their ends."""
    K, pieces = prepared.K, blocks(len(X), prepared.K)
    A = np.ascontiguousarray(prepared.log_A)
    ends: list[Array] = [np.zeros(K)]
    path = np.empty(len(X), np.intp)

    def ahead(i: int) -> tuple[Array, NDArray[np.int16]]:
        rows = pieces[i]
        table = prepared.table
        C = table.C[X.codes(rows)] if table is not None else block_scores(model, prepared, X, weights, rows).C
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
