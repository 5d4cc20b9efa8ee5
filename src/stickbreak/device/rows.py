"""The local step of rows on a device: `stickbreak.model.local`, block by block, on arrays of any library."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource, Chunk
from ..likelihoods import Likelihood
from ..likelihoods.features import largest_terms
from ..likelihoods.responsibilities import Responsibilities, join
from ..model import Batch, Drawn, Parameters, RowKind, Summary
from ..model.kind import THRESHOLD, share_of_limit
from ..model.local import responsibility_threshold, restricted_step
from .devices import Device
from .staging import Lane, held, lane_of

Array = NDArray[np.floating]


class Rows(NamedTuple):
    """Rows X (n, D) on a device, and their weights (n,) in float64."""

    X: Any
    weights: Any


@dataclass(frozen=True)
class DeviceRows(RowKind):
    """Rows whose responsibilities are computed on a device; what is kept of a block is R (n, K), which stays there."""

    device: Device = field(kw_only=True)

    def block_rows(self, likelihood: Likelihood, parameters: Parameters) -> int:
        """The most rows of a block."""
        K, F = parameters.W.shape
        size = parameters.W.dtype.itemsize
        numbers = F * (2 * size + 8) + K * (3 * size + 40)  # T, and again in float64; R, and five arrays in float64
        return int(max(1, self.device.block_bytes // numbers))

    def read(self, source: ArraySource, chunk: Chunk, lane: Lane) -> tuple[Any, Any]:
        """Rows and weights of a chunk, on the device."""
        return held(self.device, source).read(source, chunk, lane)

    def local_step(
        self, likelihood: Likelihood, parameters: Parameters, batch: Batch, base: bool, keep: bool
    ) -> tuple[Summary, Any]:
        """Summary and responsibilities of a block of rows."""
        xp = self.device.xp
        n = batch.X.shape[0]
        most = None if self.most_kept is None else self.device.array(np.full(n, self.most_kept))
        ones = xp.ones_like(batch.weights)
        summary, R = row_step(self.device, likelihood, parameters, Rows(batch.X, batch.weights), ones, most)
        if base:
            log_base = likelihood.log_base(self.device.host(batch.X))
            summary.base[...] = np.dot(log_base, self.device.host(batch.weights))
        return summary, R

    def track(
        self,
        likelihood: Likelihood,
        parameters: Parameters | None,
        removed: tuple[int, ...],
        batch: Batch,
        kept: Any,
        summary: Summary,
    ) -> Summary:
        """The summary of clusters J with ``parameters`` (None: one that takes everything) that get the mass of ``removed``."""
        xp = self.device.xp
        columns = self.device.array(np.array(removed, np.int64))
        inside = xp.take(kept, columns, axis=1)
        mass = xp.sum(xp.astype(inside, xp.float64), axis=1)
        if parameters is None:
            own = list(removed)
            entropy = -xp.sum(batch.weights * _times_log(xp, mass, mass))
            H = np.array([float(entropy)])
            return Summary(
                summary.N[own].sum(keepdims=True), summary.S[own].sum(axis=0, keepdims=True), H, np.zeros(())
            )
        (rows,) = xp.nonzero(mass > 0.0)
        most = None
        if self.most_kept is not None:
            among = xp.sum(xp.astype(xp.take(inside, rows, axis=0) > 0.0, xp.int64), axis=1)
            total = xp.sum(xp.astype(xp.take(kept, rows, axis=0) > 0.0, xp.int64), axis=1)
            most = self.device.array(share_of_limit(self.most_kept, self.device.host(among), self.device.host(total)))
        some = Rows(xp.take(batch.X, rows, axis=0), xp.take(batch.weights, rows))
        return row_step(self.device, likelihood, parameters, some, xp.take(mass, rows), most)[0]

    def draw(self, batch: Batch, kept: Any, summary: Summary, limits: Array, salt: int) -> Drawn:
        """Rows drawn for each cluster, with chance ``limits`` (K,) per unit of weight; the same as on a processor."""
        return draw_rows(self.device, batch, kept, limits, salt)


@dataclass(frozen=True)
class ReturnedRows(DeviceRows):
    """Rows of this computer whose responsibilities are computed on a device and come back, kept sparse."""

    def local_step(
        self, likelihood: Likelihood, parameters: Parameters, batch: Batch, base: bool, keep: bool
    ) -> tuple[Summary, Responsibilities]:
        """Responsibilities and summary of a chunk of rows."""
        n = batch.X.shape[0]
        rows = self.block_rows(likelihood, parameters)
        summary = Summary.zeros(*parameters.W.shape)
        pieces = []
        for start in range(0, n, rows):
            block = slice(start, min(start + rows, n))
            with lane_of(self.device) as lane:
                weights = lane.upload(np.asarray(batch.weights[block], np.float64))
                there = batch._replace(X=lane.upload(np.ascontiguousarray(batch.X[block])), weights=weights)
                part, R = super().local_step(likelihood, parameters, there, base, keep)
                pieces.append(_sparse(self.device, R))
            summary.add_in_place(part)
        return summary, join(pieces)


def _sparse(device: Device, R: Any) -> Responsibilities:
    """Responsibilities R (n, K) on a device as sparse ones here."""
    xp = device.xp
    n, K = R.shape
    flat = xp.reshape(R, (-1,))
    (place,) = xp.nonzero(flat > 0.0)
    values = np.array(device.host(xp.take(flat, place)))
    where = device.host(place)
    indptr = np.searchsorted(where, K * np.arange(n + 1)).astype(np.int64)
    return Responsibilities(indptr, (where % K).astype(np.int32), values)


def draw_rows(device: Device, batch: Batch, R: Any, limits: Array, salt: int) -> Drawn:
    """Rows drawn for each cluster by responsibilities R (n, K), those that `stickbreak.model.rows.drawn_rows` draws."""
    xp = device.xp
    n, K = R.shape
    chance = xp.clip(batch.weights[:, None] * device.array(limits, np.float64)[None, :], min=0.0, max=1.0)
    uniform = uniforms(device, batch.first, n, salt)
    drawn = xp.reshape((R > THRESHOLD) & (uniform[:, None] < chance), (-1,))
    (place,) = xp.nonzero(drawn)
    share = xp.astype(xp.take(xp.reshape(R, (-1,)), place), xp.float64)
    chosen = device.host(share / xp.take(xp.reshape(chance, (-1,)), place))
    where = device.host(place)
    return Drawn((where % K).astype(np.int32), where // K + batch.first, chosen)


def row_step(
    device: Device, likelihood: Likelihood, parameters: Parameters, rows: Rows, mass: Any, most: Any
) -> tuple[Summary, Any]:
    """The local step of a block when row n has only ``mass[n]`` to give: its summary, and p (n, K) with r_nk = mass_n p_nk.

    As in `stickbreak.model.local.block_step`, scores are formed in the precision of the weights and sums in float64.  Rows too
    far from every cluster for their scores to be told apart are done on the processor, from differences of scores.

    mass : (n,) float64;  most : (n,) the most clusters that each row may use, at least 1; None for no limit
    """
    xp = device.xp
    X = rows.X
    dtype = parameters.W.dtype
    K = len(parameters.bias)
    T = device.empty((X.shape[0], likelihood.n_statistics), dtype)
    likelihood.features(xp.astype(X, T.dtype, copy=False), T)
    R = xp.matmul(T, device.array(np.ascontiguousarray(parameters.W.T))) + device.array(parameters.bias)
    top = xp.max(R, axis=1)
    near = xp.abs(top) <= largest_terms(dtype)  # False also where it is not a number
    R = softmax(xp, R, top, responsibility_threshold(dtype))
    if bool(xp.all(near)):
        R = R if most is None else largest_shares(xp, R, most)
        summary = _summed(device, T, R, rows.weights, mass)
        likelihood.carry(parameters.W, summary.S)
        return summary, R
    (far,) = xp.nonzero(~near)
    R = xp.where(near[:, None], R, xp.zeros_like(R))
    T = xp.where(near[:, None], T, xp.zeros_like(T))
    R = R if most is None else largest_shares(xp, R, most)
    summary = _summed(device, T, R, rows.weights, mass)
    place = device.host(far)
    limits = None if most is None else device.host(most)[place]
    own, weight, share = (device.host(xp.take(values, far, axis=0)) for values in (X, rows.weights, mass))
    of_far, kept = restricted_step(likelihood, parameters, own, weight, share, limits)
    summary.add_in_place(of_far)
    dense = np.zeros((len(place), K), dtype)
    dense[np.repeat(np.arange(len(place)), np.diff(kept.indptr)), kept.indices] = kept.values
    order = np.arange(R.shape[0])
    order[place] = len(order) + np.arange(len(place))
    return summary, xp.take(xp.concat([R, device.array(dense)], axis=0), device.array(order), axis=0)


def softmax(xp: Any, C: Any, top: Any, threshold: float) -> Any:
    """Responsibilities of scores C (n, K) with the largest ``top`` (n,), those above a threshold, renormalised."""
    R = xp.exp(C - top[:, None])
    R = xp.where(threshold < R, R, xp.zeros_like(R))
    return R / xp.sum(R, axis=1, keepdims=True)


def largest_shares(xp: Any, R: Any, most: Any) -> Any:
    """The ``most[n]`` largest responsibilities of each row, the first of equal ones, renormalised  (Thesis Eq. 7.5)."""
    order = xp.argsort(-R, axis=1, stable=True)
    ranks = xp.argsort(order, axis=1, stable=True)
    R = xp.where(ranks < most[:, None], R, xp.zeros_like(R))
    total = xp.sum(R, axis=1, keepdims=True)
    return R / xp.where(total > 0.0, total, xp.ones_like(total))


def _summed(device: Device, T: Any, R: Any, weights: Any, mass: Any) -> Summary:
    """N, S and H of responsibilities mass_n R_nk of rows with features T, in float64."""
    xp = device.xp
    q = xp.astype(R, xp.float64) * mass[:, None]
    N = xp.sum(weights[:, None] * q, axis=0)
    H = -xp.sum(weights[:, None] * _times_log(xp, q, q), axis=0)
    S = xp.matmul(xp.matrix_transpose(q * weights[:, None]), xp.astype(T, xp.float64))
    own = np.array(device.host(N)), np.array(device.host(S)), np.array(device.host(H))
    return Summary(*own, np.zeros(()))


def _times_log(xp: Any, p: Any, q: Any) -> Any:
    """The products p log q, 0 where q is 0."""
    return p * xp.log(xp.where(q > 0.0, q, xp.ones_like(q)))


MULTIPLIERS = -0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15  # of SplitMix64, as signed numbers


def uniforms(device: Device, first: int, n: int, salt: int) -> Any:
    """The pseudo-random numbers (n,) of rows from ``first`` on: those of `stickbreak.kernels.assign.select_rows`."""
    xp = device.xp
    signed = salt - (1 << 64) if salt >= 1 << 63 else salt
    z = device.array(np.arange(first + 1, first + n + 1)) * MULTIPLIERS[0] + signed
    z = (z ^ _shifted(xp, z, 30)) * MULTIPLIERS[1]
    z = (z ^ _shifted(xp, z, 27)) * MULTIPLIERS[2]
    return xp.astype(_shifted(xp, z ^ _shifted(xp, z, 31), 11), xp.float64) * 2.0**-53


def _shifted(xp: Any, z: Any, places: int) -> Any:
    """Signed numbers shifted right as if they were not signed."""
    return (z >> places) & ((1 << (64 - places)) - 1)
