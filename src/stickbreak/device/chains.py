"""The local step of hidden Markov models on a device: messages of all segments at once, and a scan over segments."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..data import Chunk, Sequences, SequenceSource
from ..kernels.markov import LEAST
from ..likelihoods import Likelihood
from ..likelihoods.features import largest_terms
from ..model import Batch, Drawn, Summary
from ..model.local import exact_scores
from ..model.potentials import Prepared
from ..model.run_ups import boundary_messages
from ..model.sequences import SequenceKind, SequenceSummary
from .devices import Device
from .rows import draw_rows
from .run_ups import RunUps
from .segments import LANE, SHORT, Segments, segment_length
from .staging import Lane, held

Array = NDArray[np.floating]


class Steps(NamedTuple):
    """Rows of sequences: those of the source; and on a device the rows (n, D), or None where they are looked up by codes."""

    sequences: Sequences
    rows: Any


class Scored(NamedTuple):
    """Of the rows of a block on a device: features, log likelihoods less the largest of each, and what exactness asks for.

    T : (n, F), zero for rows ``far``;  C : (n, K) float64
    far : (m,) rows that were scored on the processor, and their features (m, F)
    """

    T: Any
    C: Any
    far: NDArray[np.intp]
    T_far: Any


class Chain(NamedTuple):
    """The potentials of a chain on a device: start (K,), A (K, K), and A transposed."""

    start: Any
    A: Any
    At: Any


@dataclass(frozen=True)
class DeviceSequences(SequenceKind):
    """Sequences whose messages are computed on a device; what is kept of a block is R (n, K), which stays there."""

    device: Device = field(kw_only=True)

    def block_rows(self, likelihood: Likelihood, prepared: Prepared) -> int:
        """The most rows of a block."""
        K, F = prepared.parameters.W.shape
        numbers = F * (2 * prepared.parameters.W.dtype.itemsize + 8) + 120 * K
        return int(max(1, self.device.block_bytes // numbers))

    def read(self, source: SequenceSource, chunk: Chunk, lane: Lane) -> tuple[Steps, Any]:
        """Rows of a chunk and whether each is observed, on the device."""
        X, observed = source.read(chunk)
        if source.codes is not None:
            return Steps(X, None), lane.upload(np.array(observed, np.float64))
        rows, weights = held(self.device, source).read(source, chunk, lane)
        return Steps(X, rows), weights

    def local_step(
        self, likelihood: Likelihood, prepared: Prepared, batch: Batch, base: bool, keep: bool
    ) -> tuple[SequenceSummary, Any]:
        """Smoothed states and summary of the sequences of a block, as `SequenceKind.local_step` has them."""
        device = self.device
        xp = device.xp
        X: Sequences = batch.X.sequences
        n = len(X)
        first = X.first(slice(0, n))
        begins = np.union1d([0], np.flatnonzero(first))
        K = prepared.K
        found = self._scored(likelihood, prepared, batch)
        L = xp.where(found.C > LEAST, xp.exp(found.C), xp.zeros_like(found.C))
        chain = Chain(*(device.array(a) for a in (prepared.start[:K], prepared.A[:K, :K], prepared.At[:K, :K])))
        outer = [boundary_messages(likelihood, prepared, X, [row], row == 0, np.inf) for row in (0, n)]
        ends = Ends(first, *(np.asarray(message)[0, :K] for message in outer))
        segments, begin, end = cut(device, chain, begins, L, ends, prepared.arbitrary[:, :K])
        order = device.array(segments.order)
        C = xp.take(found.C, order, axis=0)
        smooth = smoothed(device, chain, segments, xp.take(L, order, axis=0), first[segments.starts], begin, end)
        S, N = _sums(device, found, smooth.R, xp.take(batch.weights, order), segments.order)
        M = device.host(chain.A * smooth.M)
        starts = device.host(smooth.starts)
        R = smooth.R
        energies = xp.where(R > 0.0, R * (xp.log(smooth.scale)[:, None] - C), xp.zeros_like(R))
        H = device.host(xp.sum(energies, axis=0))
        H = H - (M * prepared.log_A).sum(axis=0) - starts * prepared.log_start
        log_base = np.zeros(())
        if base:
            log_base[...] = device.host(batch.weights) @ likelihood.log_base(X.rows(slice(0, n)))
        summary = SequenceSummary.of(Summary(N, S, H, log_base), np.ascontiguousarray(M), np.array(starts))
        return summary, xp.take(smooth.R, device.array(np.argsort(segments.order)), axis=0) if keep else None

    def draw(self, batch: Batch, kept: Any, summary: Summary, limits: Array, salt: int) -> Drawn:
        """Rows drawn for each state, with chance ``limits`` (K,) per row; the same as on a processor."""
        return draw_rows(self.device, batch, kept, limits, salt)

    def _scored(self, likelihood: Likelihood, prepared: Prepared, batch: Batch) -> Scored:
        """Features and log likelihoods of the rows of a block."""
        steps: Steps = batch.X
        device = self.device
        xp = device.xp
        if prepared.table is not None:
            codes = device.array(np.asarray(steps.sequences.codes(slice(0, len(steps.sequences))), np.int64))
            dense = prepared.table.T.toarray() if sparse.issparse(prepared.table.T) else prepared.table.T
            C = xp.take(device.array(prepared.table.C[:, : prepared.K]), codes, axis=0)
            none = np.empty(0, np.intp)
            return Scored(xp.take(device.array(dense), codes, axis=0), C, none, None)
        W = prepared.parameters.W
        bias = prepared.parameters.bias
        X = steps.rows
        T = device.empty((X.shape[0], likelihood.n_statistics), W.dtype)
        likelihood.features(xp.astype(X, T.dtype, copy=False), T)
        product = xp.matmul(T, device.array(np.ascontiguousarray(W.T)))
        C = batch.weights[:, None] * (xp.astype(product, xp.float64) + device.array(bias, np.float64))
        top = xp.max(C, axis=1)
        near = xp.abs(top) <= largest_terms(W.dtype)  # False also where it is not a number
        C = C - top[:, None]
        if bool(xp.all(near)):
            return Scored(T, C, np.empty(0, np.intp), None)
        far = device.host(xp.nonzero(~near)[0])
        places = device.array(far)
        T_far, scores, _ = exact_scores(likelihood, prepared.parameters, device.host(xp.take(X, places, axis=0)))
        scores = device.host(xp.take(batch.weights, places))[:, None] * scores
        known = np.arange(X.shape[0])
        known[far] = len(known) + np.arange(len(far))
        C = xp.take(xp.concat([C, device.array(scores, np.float64)], axis=0), device.array(known), axis=0)
        T = xp.where(near[:, None], T, xp.zeros_like(T))
        return Scored(T, C, far, T_far)


class Smooth(NamedTuple):
    """What the rows of a block say of the chain, in the order of the segments.

    R : (n, K) smoothed states;  scale : (n,) c_t;  starts : (K,) first states;  M : (K, K), of which A * M are the transitions
    """

    R: Any
    scale: Any
    starts: Any
    M: Any


def smoothed(
    device: Device, chain: Chain, segments: Segments, L: Any, fresh: NDArray[np.bool_], begin: Any, end: Any
) -> Smooth:
    """Forward and backward messages of all segments in lock-step  (Thesis 6.3.3).

        alpha_t = (alpha_{t-1} A) * L_t / c_t,    beta_{t-1} = A (L_t * beta_t),    R_t = alpha_t * beta_t,    up to factors

    L : (n, K) likelihoods, in the order of the segments
    fresh : (G,) whether a sequence begins with each segment
    begin, end : (G, K) messages from the row before each segment, and to its last row from those that follow
    """
    xp = device.xp
    G = len(segments.starts)
    new = device.array(fresh)[:, None]
    edges = segments.edges.tolist()
    aheads = [xp.where(new, chain.start[None, :], xp.matmul(begin, chain.A))]
    alphas: list[Any] = []
    for t in range(segments.n_steps):
        a, b = edges[t], edges[t + 1]
        if t > 0:
            aheads.append(xp.matmul(alphas[-1][: b - a, :], chain.A))
        message = aheads[-1] * L[a:b, :]
        alphas.append(message / xp.sum(message, axis=1, keepdims=True))
    betas: list[Any] = []
    waiting = end
    for t in range(segments.n_steps - 1, -1, -1):
        a, b = edges[t], edges[t + 1]
        betas.append(waiting[: b - a, :])
        message = xp.matmul(betas[-1] * L[a:b, :], chain.At)
        message = message / xp.sum(message, axis=1, keepdims=True)
        waiting = message if b - a == G else xp.concat([message, waiting[b - a :, :]], axis=0)
    ahead = xp.concat(aheads, axis=0)
    alpha = xp.concat(alphas, axis=0)
    beta = xp.concat(betas[::-1], axis=0)
    R = alpha * beta
    R = R / xp.sum(R, axis=1, keepdims=True)
    back = L * beta
    back = back / xp.sum(ahead * back, axis=1, keepdims=True)
    starts = xp.sum(xp.where(new, R[:G, :], xp.zeros_like(R[:G, :])), axis=0)
    inside = xp.where(new, xp.zeros_like(begin), back[:G, :])
    M = xp.matmul(xp.matrix_transpose(begin), inside)
    if segments.n_steps > 1:
        before = xp.take(alpha, device.array(segments.before), axis=0)
        M = M + xp.matmul(xp.matrix_transpose(before), back[G:, :])
    return Smooth(R, xp.sum(ahead * L, axis=1), starts, M)


class Ends(NamedTuple):
    """Which rows of a block begin a sequence (n,), and messages (K,) from the row before the block, and to its last row."""

    first: NDArray[np.bool_]
    begin: Array
    end: Array


def cut(
    device: Device, chain: Chain, begins: NDArray[np.intp], L: Any, ends: Ends, arbitrary: Array
) -> tuple[Segments, Any, Any]:
    """Segments, messages (G, K) from the row before each, and to its last row from those that follow.

    Long sequences are cut into short segments, whose messages come from run-ups; or where a chain does not forget, into
    segments whose messages come from a scan, if that takes fewer steps than whole sequences.

    L : (n, K) likelihoods, in the order of the rows
    """
    n, K = L.shape
    if np.diff([*begins.tolist(), n]).max() > SHORT:
        segments = Segments.of(begins, n, LANE)
        fresh = ends.first[segments.starts]
        own = _at_ends(segments, ends)
        run_ups = RunUps(device, segments, device.xp.take(L, device.array(segments.order), axis=0), arbitrary)
        begin = run_ups.forward(own[0], fresh, chain.start, chain.A)
        end = None if begin is None else run_ups.backward(own[1], chain.At)
        if end is not None:
            return segments, begin, end
    most = device.block_bytes // (24 * K * K)
    segments = Segments.of(begins, n, segment_length(begins, n, K, device.is_card, most))
    first, last = _at_ends(segments, ends)
    if max(len(part) for part in segments.parts) == 1:
        return segments, device.array(first), device.array(last)
    ordered = device.xp.take(L, device.array(segments.order), axis=0)
    P, logs = _products(device, chain, segments, ordered, ends.first[segments.starts])
    parts = sorted((part for part in segments.parts if len(part) > 1), key=len, reverse=True)
    back = [part[::-1] for part in parts]
    begin = _handed_on(device, P, logs, parts, first, _onward)
    return segments, begin, _handed_on(device, P, logs, back, last, _backward)


def _at_ends(segments: Segments, ends: Ends) -> tuple[Array, Array]:
    """Messages (G, K) to the first segment of each part from the rows before, and to the last row of the last; else uniform."""
    begin, end = (np.full((len(segments.starts), len(ends.begin)), 1.0 / len(ends.begin)) for _ in range(2))
    begin[segments.parts[0][0]] = ends.begin
    end[segments.parts[-1][-1]] = ends.end
    return begin, end


def _products(device: Device, chain: Chain, segments: Segments, L: Any, fresh: NDArray[np.bool_]) -> tuple[Any, Any]:
    """The product P (G, K, K) of the matrices A diag(L_t) of each segment, its rows divided by exp(logs) (G, K) to sum to one.

    Of a segment with which a sequence begins, every row is what follows from the first states.
    """
    xp = device.xp
    G = len(segments.starts)
    K = L.shape[1]
    edges = segments.edges.tolist()
    ahead = xp.where(device.array(fresh)[:, None, None], chain.start[None, None, :], chain.A[None, :, :])
    P = ahead * L[:G, None, :]
    total = xp.sum(P, axis=2)
    P = P / total[:, :, None]
    logs = xp.log(total)
    for t in range(1, segments.n_steps):
        a, b = edges[t], edges[t + 1]
        g = b - a
        further = xp.reshape(xp.matmul(xp.reshape(P[:g, :, :], (g * K, K)), chain.A), (g, K, K)) * L[a:b, None, :]
        total = xp.sum(further, axis=2)
        P[:g, :, :] = further / total[:, :, None]
        logs[:g, :] += xp.log(total)
    return P, logs


def _handed_on(
    device: Device, P: Any, logs: Any, parts: Sequence[NDArray[np.intp]], own: Array, over: Callable[..., Any]
) -> Any:
    """Messages (G, K) handed from segment to segment of each part, of which the first of each has its ``own``."""
    xp = device.xp
    place = np.arange(len(own))
    messages = device.array(own)
    known = [messages]
    current = xp.take(messages, device.array(np.array([part[0] for part in parts])), axis=0)
    count = len(own)
    for j in range(len(parts[0]) - 1):
        live = [part for part in parts if len(part) > j + 1]
        at = device.array(np.array([part[j] for part in live]))
        current = over(xp, current[: len(live), :], xp.take(P, at, axis=0), xp.take(logs, at, axis=0))
        known.append(current)
        place[[part[j + 1] for part in live]] = count + np.arange(len(live))
        count += len(live)
    return xp.take(xp.concat(known, axis=0), device.array(place), axis=0)


def _onward(xp: Any, message: Any, P: Any, logs: Any) -> Any:
    """Forward messages (p, K) through segments with matrices diag(exp(logs)) P."""
    scores = xp.log(message) + logs
    weights = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
    after = xp.matmul(weights[:, None, :], P)[:, 0, :]
    return after / xp.sum(after, axis=1, keepdims=True)


def _backward(xp: Any, message: Any, P: Any, logs: Any) -> Any:
    """Backward messages (p, K) through the same."""
    scores = xp.log(xp.matmul(P, message[:, :, None])[:, :, 0]) + logs
    before = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
    return before / xp.sum(before, axis=1, keepdims=True)


def _sums(device: Device, found: Scored, R: Any, weights: Any, order: NDArray[np.intp]) -> tuple[Array, Array]:
    """Statistics S (K, F) and counts N (K,) of smoothed states R (n, K) in another order than that of the rows."""
    xp = device.xp
    weighted = weights[:, None] * R
    T = xp.take(found.T, device.array(order), axis=0)
    S = np.array(device.host(xp.matmul(xp.matrix_transpose(weighted), xp.astype(T, xp.float64))))
    if len(found.far):
        place = np.argsort(order)[found.far]
        S += device.host(xp.take(weighted, device.array(place), axis=0)).T @ found.T_far
    return S, np.array(device.host(xp.sum(weighted, axis=0)))
