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
from ..model import Batch, DocumentSummary, Drawn
from ..model.bags import BagKind, Words
from ..model.document_step import Kept, Tables, sizes_of, tables
from .devices import Device
from .document_step import Entries, Own, Part, document_statistics, fixed_point, rows_of
from .groups import Group, Groups
from .special import digamma
from .staging import Lane

Array = NDArray[np.floating]


class Bag(NamedTuple):
    """Documents: counts X (n, V), CSR; their entries in groups of documents, and those in groups of words.

    by_word : groups of the words, of entries in the order of words;  of_words : (nnz,) the entries in that order
    """

    X: Any
    documents: Groups
    by_word: Groups
    of_words: NDArray[np.int64]


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
        totals = sizes_of(self.entries(bag.X)) + own.prior.sum() + own.rest
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
            mixed = rows_of(xp, E, device.array(words[group.entries])) @ q[:, :, None]
            values.append(xp.where(alone, xp.sum(q, axis=1, keepdims=True), mixed[:, :, 0]))
        total = bag.documents.joined_entries(device, values) / xp.exp(found.log_Z)
        return np.asarray(np.maximum(device.host(total), FLOOR))

    def _counted(
        self, bag: Bag, own: Tables, counts: Array, log_mass: Array | None, start: Array | None, single: Any
    ) -> Counted:
        """Documents iterated to their fixed point, and what they say (see `stickbreak.model.document_step.document_step`).

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
                N = xp.astype(fixed_point(device, on, entries, first), xp.float64)
            given = None if single is None else xp.take(single, device.array(group.members))
            parts.append(document_statistics(xp, on, entries, N, given, K > 1 and own.words))
        return _joined(device, bag, on, parts, c, logs)


def _filled(values: NDArray[np.integer]) -> NDArray[np.int64]:
    """Numbers of words with one more, that of entries that there are not."""
    return np.append(values, 0).astype(np.int64)


def _split(group: Group, most: int) -> Sequence[Group]:
    """A group in groups of at most so many entries, or of one document."""
    pieces = -(-group.entries.size // max(most, group.entries.shape[1]))
    return [Group(*both) for both in zip(np.array_split(group.members, pieces), np.array_split(group.entries, pieces))]


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
        both = weights @ rows_of(xp, p, device.array(documents[group.entries]))
        values.append(xp.take(on.E, device.array(group.members), axis=0) * both[:, 0, :] + both[:, 1, :])
    used = sum(len(group.members) for group in bag.by_word.groups)
    nothing = device.empty((V - used, K), np.float64)  # words of no document, and statistics that are no words
    nothing[...] = 0.0
    n_words = bag.by_word.n_rows
    R = bag.by_word.joined_rows(device, values, nothing[: n_words - used, :])
    return xp.concat([R, nothing[n_words - used :, :]], axis=0)


def _summary(device: Device, own: Tables, found: Counted, totals: Array) -> DocumentSummary:
    """The summary of documents at their fixed point."""
    R = device.host(found.R)
    H = found.sums[3] - found.sums[2] - (R * own.scores).sum(axis=0)
    return DocumentSummary.of_sums(own.prior, own.rest, found.sums, H, np.array(R.T), totals, device.host(found.N))
