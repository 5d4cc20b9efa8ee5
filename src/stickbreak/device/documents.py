"""The local step of topic models on a device: `stickbreak.model.documents`, with all documents of a group at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln, psi

from ..data import BagSource, Chunk
from ..kernels.documents import FLOOR
from ..likelihoods import Likelihood
from ..model import Batch, Drawn
from ..model.bags import BagKind, Words
from ..model.documents import CHANGE, ITERATIONS, TINY32, DocumentSummary, Kept, Tables, tables
from .devices import Device
from .groups import Group, Groups
from .special import digamma, exp_digamma, log_gamma
from .staging import Lane

Array = NDArray[np.floating]

LOOKS = 8  # iterations between two looks at which documents have converged
LEAST32 = 1e-26  # of factors in float32
FAINT = 1e-18  # probabilities of single topics, beside the largest, that are rounding


class Bag(NamedTuple):
    """Documents: counts X (n, V), CSR; their entries in groups of documents, and those in groups of words.

    by_word : groups of the words, of entries in the order of words;  of_words : (nnz,) the entries in that order
    """

    X: Any
    documents: Groups
    by_word: Groups
    of_words: NDArray[np.int64]


class Own(NamedTuple):
    """Tables on a device: likelihoods E and their logarithms (V, K), pseudo-counts (K,), and both as iterations take them."""

    E: Any
    scores: Any
    coarse: Any
    prior: Any
    rough: Any


class Counted(NamedTuple):
    """Documents at their fixed point: what is known of each, and sums over all.

    single : (n,) whether all tokens have the same topic;  p, N : (n, K) factors and counts;  log_Z : (nnz,)
    sums : (4, K) as of `stickbreak.kernels.document_statistics.document_statistics`;  R : (V, K) responsibilities of the words
    """

    single: Any
    p: Any
    N: Any
    log_Z: Any
    sums: Array
    R: Any


class OnCard(NamedTuple):
    """What is kept of a block on a device, with the tables and the sums of theta (n,) here."""

    tables: Tables
    totals: Array
    counted: Counted


@dataclass(frozen=True)
class DeviceBags(BagKind):
    """Bags of words whose documents are iterated on a device, without restarts and limits."""

    device: Device = field(kw_only=True)

    def block_rows(self, likelihood: Likelihood, prepared: Words) -> int:
        """The most documents of a block."""
        return int(max(1, self.device.block_bytes // (100 * prepared.tables.E.shape[1])))

    def read(self, source: BagSource, chunk: Chunk, lane: Lane) -> tuple[Bag, Array]:
        """The documents of a chunk, in groups."""
        X, weights = source.read(chunk)
        entries = sparse.csr_array((np.arange(X.nnz), X.indices, X.indptr), X.shape).tocsc()
        most = self.device.block_bytes // 4096
        return Bag(
            X, Groups.of(X.indptr, most), Groups.of(entries.indptr, most), entries.data.astype(np.int64)
        ), weights

    def local_step(
        self, likelihood: Likelihood, prepared: Words, batch: Batch, base: bool, keep: bool
    ) -> tuple[DocumentSummary, Any]:
        """Summary of a block of documents, and what stays on the device (`OnCard`)."""
        bag: Bag = batch.X
        own = prepared.tables
        n = bag.X.shape[0]
        counts = bag.X.data.astype(np.float64)
        sizes = np.diff(np.append(0.0, np.cumsum(counts))[bag.X.indptr])
        totals = sizes + own.prior.sum() + own.rest
        start = batch.start
        warm = None if start is None or start.shape[1] != n else start.T
        found = self._counted(bag, own, counts, None, warm, None)
        summary = _summary(self.device, own, found, totals)
        likelihood.carry(prepared.W, summary.S)
        return summary, OnCard(own, totals, found)

    def track(
        self,
        likelihood: Likelihood,
        prepared: Words | None,
        removed: tuple[int, ...],
        batch: Batch,
        kept: Any,
        summary: DocumentSummary,
    ) -> DocumentSummary:
        """The summary of topics J, prepared (None: one that takes everything), that get the mass of ``removed``."""
        bag: Bag = batch.X
        columns = np.array(removed)
        mass = self._mass(bag, kept, columns)
        prior = kept.tables.prior[columns].sum()
        own = tables(np.zeros((len(kept.tables.E), 1)), np.ones(1)) if prepared is None else prepared.tables
        shared = own._replace(prior=prior * own.prior / own.prior.sum(), rest=0.0)
        stays = columns[1:] if len(columns) == len(shared.prior) + 1 else columns[:0]  # of a delete, the absorbers
        start = summary.counts[np.setdiff1d(columns, stays)].sum(axis=0)[:, None] * (shared.prior / prior)
        if len(stays):
            start += summary.counts[stays].T
        found = self._counted(bag, shared, bag.X.data * mass, np.log(mass), start, kept.counted.single)
        tracked = _summary(self.device, shared, found, kept.totals)
        source = summary.S[columns].sum(axis=0, keepdims=True) if prepared is None else prepared.W
        likelihood.carry(source, tracked.S)
        nothing = np.zeros(())
        return replace(tracked, P_rest=nothing, Q_rest=nothing, D=nothing)

    def draw(self, batch: Batch, kept: Any, summary: Any, limits: Array, salt: int) -> Drawn:
        """Parts of documents drawn for each topic with chance ``limits`` (K,) per token of it; the same as on a processor."""
        single, p, N, log_Z = (self.device.host(values) for values in kept.counted[:4])
        here = Kept(kept.tables, single, p, log_Z, kept.totals, N)
        return super().draw(batch._replace(X=batch.X.X), here, summary, limits, salt)

    def _mass(self, bag: Bag, kept: OnCard, columns: NDArray[np.integer]) -> Array:
        """The responsibility of each entry on a set of topics, (nnz,), at least `FLOOR`."""
        device = self.device
        xp = device.xp
        found = kept.counted
        E = device.array(np.ascontiguousarray(kept.tables.E[:, columns]))
        words = _filled(bag.X.indices)
        p = xp.take(found.p, device.array(columns.astype(np.int64)), axis=1)
        values = []
        for group in bag.documents.groups:
            members = device.array(group.members)
            q = xp.take(p, members, axis=0)
            alone = xp.take(found.single, members)[:, None]
            mixed = _rows(xp, E, device.array(words[group.entries])) @ q[:, :, None]
            values.append(xp.where(alone, xp.sum(q, axis=1, keepdims=True), mixed[:, :, 0]))
        total = bag.documents.joined_entries(device, values) / xp.exp(found.log_Z)
        return np.asarray(np.maximum(device.host(total), FLOOR))

    def _counted(
        self, bag: Bag, own: Tables, counts: Array, log_mass: Array | None, start: Array | None, single: Any
    ) -> Counted:
        """Documents iterated to their fixed point, and what they say (see `stickbreak.model.documents.document_step`).

        counts : (nnz,);  log_mass : (nnz,) log of the mass of which they are a part, None where they are whole
        start : (n, K) counts to start from;  single : (n,) whether documents have a single topic, None if they may choose
        """
        device = self.device
        xp = device.xp
        K = own.E.shape[1]
        rough = own.prior.astype(own.coarse.dtype)
        on = Own(*(device.array(np.ascontiguousarray(a)) for a in (own.E, own.scores, own.coarse, own.prior, rough)))
        words = _filled(bag.X.indices)
        c = np.append(counts, 0.0)
        logs = None if log_mass is None else np.append(log_mass, 0.0)
        most = max(1, device.block_bytes // (64 * K))
        parts = []
        for group in (piece for whole in bag.documents.groups for piece in _split(whole, most)):
            first = None if start is None else start[group.members]
            entries = Entries(
                device.array(words[group.entries]),
                device.array(c[group.entries]),
                None if logs is None else device.array(logs[group.entries]),
            )
            N = device.empty((len(group.members), K), np.float64)
            N[...] = 0.0
            if K > 1:
                N = xp.astype(_fixed_point(device, on, entries, first), xp.float64)
            given = None if single is None else xp.take(single, device.array(group.members))
            parts.append(_document_statistics(xp, on, entries, N, given, K > 1 and own.words))
        return _joined(device, bag, on, parts, c, logs)


class Entries(NamedTuple):
    """The entries of a group of documents, (m, L) each: words, counts (0 where there are no more), and log masses, if any."""

    words: Any
    counts: Any
    log_mass: Any


class Part(NamedTuple):
    """`Counted` for a group of documents: log_Z and shares (m, L), of which the second are counts over Z or over the mass."""

    single: Any
    p: Any
    N: Any
    log_Z: Any
    share: Any
    sums: Any


def _filled(values: NDArray[np.integer]) -> NDArray[np.int64]:
    """Numbers of words with one more, that of entries that there are not."""
    return np.append(values, 0).astype(np.int64)


def _split(group: Group, most: int) -> Sequence[Group]:
    """A group in groups of at most so many entries, or of one document."""
    pieces = -(-group.entries.size // max(most, group.entries.shape[1]))
    return [Group(*both) for both in zip(np.array_split(group.members, pieces), np.array_split(group.entries, pieces))]


def _rows(xp: Any, table: Any, words: Any) -> Any:
    """Rows of a table (V, K) for words (m, L), (m, L, K)."""
    m, length = words.shape
    return xp.reshape(xp.take(table, xp.reshape(words, (-1,)), axis=0), (m, length, table.shape[1]))


def _fixed_point(device: Device, on: Own, entries: Entries, start: Array | None) -> Any:
    """Counts (m, K) of documents at their fixed point (Thesis Alg. 5.1), each iterated until it has converged.

    start : (m, K), or None for r proportional to E_ek prior_k
    """
    xp = device.xp
    kind = on.coarse.dtype
    tiny = TINY32 if kind == xp.float32 else FLOOR**2
    least = LEAST32 if kind == xp.float32 else FLOOR
    K = on.coarse.shape[1]
    E = _rows(xp, on.coarse, entries.words)
    c = xp.astype(entries.counts, kind)
    moving = np.arange(c.shape[0])
    if start is None:
        n = xp.zeros_like(E[:, 0, :])
        p = n + on.rough[None, :]
        known = False
    else:
        n = xp.astype(device.array(np.ascontiguousarray(start, np.float64)), kind)
        p = exp_digamma(xp, n + on.rough[None, :], least)
        known = True
    ends: list[Any] = []
    where: list[NDArray[np.intp]] = []
    done = xp.zeros_like(n[:, 0]) > 1.0
    for i in range(ITERATIONS):
        Z = xp.clip((E @ p[:, :, None])[:, :, 0], min=tiny)
        fresh = ((c / Z)[:, None, :] @ E)[:, 0, :] * p
        change = xp.sum(xp.abs(fresh - n), axis=1)
        n = xp.where(done[:, None], n, fresh)
        if known or i > 0:
            done = done | (change <= CHANGE * K)
        p = exp_digamma(xp, n + on.rough[None, :], least)
        if i % LOOKS == LOOKS - 1 or i == ITERATIONS - 1:
            over = device.host(done) if i < ITERATIONS - 1 else np.ones(len(moving), np.bool_)
            if not over.any():
                continue
            rest = np.flatnonzero(~over)
            ends.append(xp.take(n, device.array(np.flatnonzero(over)), axis=0))
            where.append(moving[over])
            if not len(rest):
                break
            left = device.array(rest)
            E, c, n, p, done = (xp.take(values, left, axis=0) for values in (E, c, n, p, done))
            moving = moving[rest]
    order = np.argsort(np.concatenate(where))
    return xp.take(xp.concat(ends, axis=0), device.array(order), axis=0)


def _document_statistics(xp: Any, on: Own, entries: Entries, N: Any, given: Any, choose: bool) -> Part:
    """`stickbreak.kernels.document_statistics.document_statistics` for a group of documents, without what it leaves out.

    given : (m,) whether documents have a single topic; None, if they may choose where ``choose``
    """
    c = entries.counts
    prior = on.prior[None, :]
    E = _rows(xp, on.E, entries.words)
    p = xp.clip(xp.exp(digamma(xp, N + prior)), min=FLOOR)
    Z = (E @ p[:, :, None])[:, :, 0]
    real = c > 0.0
    log_Z = xp.log(Z)
    part = log_Z if entries.log_mass is None else log_Z - entries.log_mass
    share = c / Z
    both = xp.stack([share, share * part], axis=1) @ E
    acc = both[:, 0, :] * p
    rises = log_gamma(xp, acc + prior) - log_gamma(xp, prior)
    sums = [digamma(xp, acc + prior), rises + log_gamma(xp, prior), acc * xp.log(p), both[:, 1, :] * p]
    none = xp.zeros_like(c[:, 0]) > 1.0
    single = none if given is None else given
    if given is None and not choose:
        return Part(single, p, acc, log_Z, share, xp.stack([xp.sum(s, axis=0) for s in sums]))
    mass = xp.ones_like(c[:, 0]) if entries.log_mass is None else xp.exp(entries.log_mass[:, 0])
    n = xp.sum(c, axis=1) / mass
    data = (c[:, None, :] @ _rows(xp, on.scores, entries.words))[:, 0, :] / mass[:, None]
    rise = log_gamma(xp, prior + n[:, None]) - log_gamma(xp, prior)
    rho = data + rise
    top = xp.max(rho, axis=1, keepdims=True)
    log_total = xp.log(xp.sum(xp.exp(rho - top), axis=1, keepdims=True)) + top
    if given is None:
        bound = xp.sum(rises - acc * xp.log(p), axis=1) + xp.sum(xp.where(real, c * log_Z, xp.zeros_like(c)), axis=1)
        single = (log_total[:, 0] > bound) & (xp.sum(c, axis=1) >= 1.0)
    rho = xp.exp(rho - log_total)
    rho = xp.where(rho > FAINT, rho, xp.zeros_like(rho)) * mass[:, None]
    entropy = -rho * xp.log(xp.where(rho > 0.0, rho, xp.ones_like(rho)))
    alone = [
        digamma(xp, prior) + rho * (digamma(xp, prior + n[:, None]) - digamma(xp, prior)),
        log_gamma(xp, prior) + rho * rise,
        xp.zeros_like(rho),
        rho * data + entropy,
    ]
    one = single[:, None]
    return Part(
        single,
        xp.where(one, rho, p),
        xp.where(one, n[:, None] * rho, acc),
        xp.where(one, xp.zeros_like(log_Z), log_Z),
        xp.where(one, c / mass[:, None], share),
        xp.stack([xp.sum(xp.where(one, a, b), axis=0) for a, b in zip(alone, sums)]),
    )


def _joined(device: Device, bag: Bag, on: Own, parts: list[Part], counts: Array, log_mass: Array | None) -> Counted:
    """What groups of documents say, in the order of documents and entries, and the responsibilities of words."""
    xp = device.xp
    groups = bag.documents
    K = on.E.shape[1]
    n_empty = groups.n_rows - sum(len(group.members) for group in groups.groups)
    nothing = device.empty((n_empty, K), np.float64)
    nothing[...] = 0.0
    bare = nothing + xp.clip(xp.exp(digamma(xp, on.prior)), min=FLOOR)[None, :]
    p = groups.joined_rows(device, [part.p for part in parts], bare)
    N = groups.joined_rows(device, [part.N for part in parts], nothing)
    single = groups.joined_rows(device, [part.single for part in parts], device.array(np.zeros(n_empty, np.bool_)))
    log_Z = groups.joined_entries(device, [part.log_Z for part in parts])
    share = groups.joined_entries(device, [part.share for part in parts])
    sums = np.zeros((4, K))
    for part in parts:
        sums += device.host(part.sums)
    prior = device.host(on.prior)
    sums[0] += n_empty * psi(prior)
    sums[1] += n_empty * gammaln(prior)
    return Counted(single, p, N, log_Z, sums, _responsibilities(device, bag, on, p, single, share))


def _responsibilities(device: Device, bag: Bag, on: Own, p: Any, single: Any, share: Any) -> Any:
    """The responsibilities of the words, (V, K), added up over their entries: c_e E_ek p_dk / Z_e, or c_e p_dk."""
    xp = device.xp
    V, K = on.E.shape
    document = np.repeat(np.arange(bag.X.shape[0]), np.diff(bag.X.indptr))[bag.of_words]
    documents = _filled(document)
    alone = xp.take(single, device.array(document.astype(np.int64)))
    share = xp.take(share, device.array(bag.of_words))
    zero = device.array(np.zeros(1))
    mixed = xp.concat([xp.where(alone, xp.zeros_like(share), share), zero])
    whole = xp.concat([xp.where(alone, share, xp.zeros_like(share)), zero])
    most = max(1, device.block_bytes // (64 * K))
    values = []
    for group in (piece for words in bag.by_word.groups for piece in _split(words, most)):
        places = xp.reshape(device.array(group.entries), (-1,))
        weights = xp.stack([xp.reshape(xp.take(w, places), group.entries.shape) for w in (mixed, whole)], axis=1)
        both = weights @ _rows(xp, p, device.array(documents[group.entries]))
        values.append(xp.take(on.E, device.array(group.members), axis=0) * both[:, 0, :] + both[:, 1, :])
    used = sum(len(group.members) for group in bag.by_word.groups)
    nothing = device.empty((V - used, K), np.float64)  # words of no document, and statistics that are no words
    nothing[...] = 0.0
    n_words = bag.by_word.n_rows
    R = bag.by_word.joined_rows(device, values, nothing[: n_words - used, :])
    return xp.concat([R, nothing[n_words - used :, :]], axis=0)


def _summary(device: Device, own: Tables, found: Counted, totals: Array) -> DocumentSummary:
    """The summary of documents at their fixed point, as `stickbreak.model.documents.document_step` has it."""
    R = device.host(found.R)
    n = len(totals)
    sums = found.sums
    psi_totals = psi(totals).sum()
    P = sums[0] - psi_totals
    Q = sums[1] - own.prior * P
    H = sums[3] - sums[2] - (R * own.scores).sum(axis=0)
    P_rest = n * psi(own.rest) - psi_totals if own.rest > 0.0 else 0.0
    Q_rest = n * gammaln(own.rest) - own.rest * P_rest if own.rest > 0.0 else 0.0
    Q_rest -= gammaln(totals).sum()
    N = device.host(found.N)
    scalars = (np.array(value, dtype=np.float64) for value in (0.0, P_rest, Q_rest, n))
    base, P_rest, Q_rest, D = scalars
    counts = np.ascontiguousarray(N.T, dtype=np.float32)
    return DocumentSummary(N.sum(axis=0), np.array(R.T), H, base, P, Q, P_rest, Q_rest, D, counts)
