"""Bags of words with answers: the local step of documents that an answer pulls at, and sums of pairs of topics (Thesis 8.3)."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..data import BagSource
from ..kernels.answered import answered_counts, answered_statistics
from ..likelihoods import Likelihood
from ..responses import Reading, Terms
from .bags import BagKind, Words
from .document_step import CHANGE, ITERATIONS, NOTHING, Entries, Kept, Tables, document_step, sizes_of, summed
from .document_summary import DocumentSummary
from .documents import Observed
from .kind import Batch
from .parameters import Parameters
from .summary import Summary, cluster_axes

Array = NDArray[np.floating]

FEWEST = 1e-6  # tokens of a document whose answer counts: shares of fewer are not told from none


@dataclass(frozen=True)
class AnsweredSummary(DocumentSummary):
    """What documents with answers say: beside what all documents do, the sums of `stickbreak.responses`.

    The summary of topics that a move adds says two things more, while it is judged.

    Attributes
    ----------
    M : (K, K) sum_d h_d m_d m_d', with m_d the shares of the topics among the tokens of document d
    B : (K, C) sum_d m_d t_d'
    Y : () sum_d c_d
    A : () the weights of the documents that have answers, added up
    cross : (J, K) of topics J that a move adds: sum_d h_d m_dj m_dk with all topics as they were; (K, 0) of others
    members : (J, K) of topics J that are sums of topics k: positive for these; (K, 0) of others
    """

    M: Array = cluster_axes(2)
    B: Array = cluster_axes(1)
    Y: Array = cluster_axes(0)
    A: Array = cluster_axes(0)
    cross: Array = cluster_axes(1)
    members: Array = cluster_axes(1)

    @classmethod
    def without_answers(cls, documents: DocumentSummary, n_outputs: int) -> Self:
        """What documents say that have no answers to a response of so many outputs."""
        K = documents.K
        none = np.zeros((K, 0))
        own = {f.name: getattr(documents, f.name) for f in fields(documents)}
        zero = np.zeros(())
        return cls(
            **own, M=np.zeros((K, K)), B=np.zeros((K, n_outputs)), Y=zero, A=zero.copy(), cross=none, members=none
        )

    @property
    def as_start(self) -> Summary:
        """The topics alone, and no answer: what is known of documents changes with them."""
        return self.without_answers(DocumentSummary.of(self), self.B.shape[1])

    @property
    def excludes_others(self) -> bool:
        """Whether these topics are new in other ways than as sums of others."""
        return not self.members.any(axis=1).all()

    def exchange(self, removed: Sequence[int] | NDArray[np.integer], added: Self) -> Self:
        """As `Summary.exchange`, with the sums of pairs of topics that stay and that are added."""
        if self.cross.shape[1] or not added.cross.shape[1]:  # topics that moves add, or topics alone, side by side
            return super().exchange(removed, added)
        plain = replace(added, cross=added.cross[:, :0], members=added.members[:, :0])
        joined = super().exchange(removed, plain)
        kept = np.delete(np.arange(self.K), np.asarray(removed, np.intp))
        M = joined.M.copy()
        old = len(kept)
        M[old:, :old] = added.cross[:, kept]
        M[:old, old:] = added.cross[:, kept].T
        M[old:, old:] = _between(added)
        return replace(joined, M=M)

    def check(self, F: int) -> None:
        """As for documents; also, M is a sum of squares of shares, symmetric."""
        super().check(F)
        scale = np.abs(self.M).max(initial=0.0)
        if not self.M.min(initial=0.0) >= -1e-9 * scale or np.abs(self.M - self.M.T).max(initial=0.0) > 1e-9 * scale:
            raise ValueError("the summary's M is no sum of squares of shares.")
        if not self.A >= 0.0:
            raise ValueError(f"the summary is of {self.A:g} answers.")

    def trailing_axes(self, name: str, F: int) -> tuple[int, ...]:
        """As for documents; B has as many columns as it has."""
        if name == "B":
            return np.shape(self.B)[1:]
        return (0,) if name in ("cross", "members") else super().trailing_axes(name, F)


def _between(added: AnsweredSummary) -> Array:
    """The sums of pairs of topics that are added, (J, J): where one is a sum of topics, what the other says of these."""
    members = (added.members > 0.0).astype(np.float64)
    sums = members.sum(axis=1) > 0.0
    known = added.cross @ members.T
    return np.where(sums[None, :], known, np.where(sums[:, None], known.T, added.M))


class Prepared(NamedTuple):
    """What is made once for all chunks of words, and how answers pull at topics; None where there are none."""

    words: Words
    reading: Reading | None


class Answers(NamedTuple):
    """What the answers of a chunk's documents add to a bound.

    documents : (n,) the numbers of those that have answers
    sizes : (n,) their tokens;  m : (n, K) the shares of topics;  terms : their parabolas
    """

    documents: NDArray[np.intp]
    sizes: Array
    m: Array
    terms: Terms


@dataclass(frozen=True)
class AnsweredBagKind(BagKind):
    """Bags of words of which some have answers: then each token has a topic of its own.

    Parameters
    ----------
    n_outputs : C of the response
    """

    n_outputs: int = 1

    summary: ClassVar[type[Summary]] = AnsweredSummary

    def start(self, rows: Summary) -> AnsweredSummary:
        """A start that knows of no document."""
        return AnsweredSummary.without_answers(DocumentSummary.of(rows), self.n_outputs)

    def prepare(self, likelihood: Likelihood, parameters: Parameters, source: BagSource) -> Any:
        """The tables of the words, made once for all chunks, and how answers pull at topics."""
        return Prepared(super().prepare(likelihood, parameters, source), parameters.response)

    def observed(self, likelihood: Likelihood, prepared: Any, X: Any) -> Observed:
        """The tables of the words."""
        return Observed(prepared.words.tables)

    def weights(self, prepared: Any) -> Array:
        """W (K, F)."""
        return np.asarray(prepared.words.W)

    def local_step(
        self, likelihood: Likelihood, prepared: Prepared, batch: Batch, base: bool, keep: bool
    ) -> tuple[AnsweredSummary, Kept]:
        """Responsibilities and summary of a chunk of documents; those without an answer as ever."""
        entries = self.entries(batch.X)
        n = len(entries.indptr) - 1
        y = batch.answers
        answered = np.zeros(n, np.bool_) if y is None else ~np.isnan(y) & (sizes_of(entries) >= FEWEST)
        if y is None or prepared.reading is None or not answered.any():
            summary, kept = super().local_step(likelihood, prepared, batch, base, keep)
            return AnsweredSummary.without_answers(summary, self.n_outputs), kept
        own = prepared.words.tables
        warm = None if batch.start is None or batch.start.shape[1] != n else batch.start.T
        some = np.flatnonzero(answered)
        found = answered_step(
            own, entries.of_documents(some), y[some], prepared.reading, None if warm is None else warm[some]
        )
        summary, kept = found
        kept = kept._replace(answers=kept.answers._replace(documents=some))
        if len(some) < n:
            others = np.flatnonzero(~answered)
            rest = document_step(own, entries.of_documents(others), NOTHING, None if warm is None else warm[others])
            summary, kept = _joined(entries, (some, others), (summary, kept), rest)
        likelihood.carry(self.weights(prepared), summary.S)
        return summary, kept

    def track(
        self,
        likelihood: Likelihood,
        prepared: Any,
        removed: tuple[int, ...],
        batch: Batch,
        kept: Kept,
        summary: DocumentSummary,
    ) -> AnsweredSummary:
        """As for all documents, with the sums of pairs of the topics that get the mass and all topics as they are."""
        documents, counts = self._tracked(likelihood, prepared, removed, batch, kept, summary)
        tracked = AnsweredSummary.without_answers(documents, self.n_outputs)
        members = np.zeros((tracked.K, summary.K))
        if prepared is None:
            members[:, list(removed)] = 1.0
        answers = kept.answers
        if answers is None:
            return replace(tracked, cross=np.zeros(members.shape), members=members)
        m = counts[answers.documents] / answers.sizes[:, None]
        weighted = m * answers.terms.weights[:, None]
        return replace(
            tracked, M=weighted.T @ m, B=m.T @ answers.terms.targets, cross=weighted.T @ answers.m, members=members
        )


def answered_step(
    own: Tables, entries: Entries, y: Array, reading: Reading, start: Array | None
) -> tuple[AnsweredSummary, Kept]:
    """Iterate documents with answers y (n,) to their fixed point, and sum up.

    No document is empty.

    start : (n, K) counts to start from; None: those that the words alone lead to
    """
    if start is None:
        start = document_step(own, entries, NOTHING, None)[1].counts
    sizes = sizes_of(entries)
    N = np.array(start, np.float64, order="C")
    N *= (sizes / N.sum(axis=1))[:, None]  # counts were kept in float32
    x = np.zeros(N.shape)
    A = np.ascontiguousarray(reading.curvature)
    diagonal = np.diagonal(A)
    spread = float(np.max(diagonal[:, None] + diagonal - 2.0 * A))
    for _ in range(reading.rounds):
        terms = reading.terms(y, N / sizes[:, None])
        g = terms.targets @ reading.slopes.T
        answered_counts(*entries, own.E, own.prior, g, terms.weights, A, spread, CHANGE, ITERATIONS, N, x)
    totals = sizes + own.prior.sum() + own.rest
    p = np.empty(N.shape)
    log_Z = np.empty(len(entries.rows))
    R = np.zeros(own.E.shape)
    sums = np.zeros((4, N.shape[1]))
    answered_statistics(*entries, own.E, own.prior, x, N, p, log_Z, R, sums)
    m = N / sizes[:, None]
    terms = reading.terms(y, m)
    answers = Answers(np.arange(len(y)), sizes, m, terms)
    documents = summed(own, sums, R, None, totals, N)
    summary = replace(
        AnsweredSummary.without_answers(documents, terms.targets.shape[1]),
        M=(m * terms.weights[:, None]).T @ m,
        B=m.T @ terms.targets,
        Y=np.array(terms.constants.sum()),
        A=np.array(reading.weight * len(y)),
    )
    return summary, Kept(own, np.zeros(len(y), np.bool_), p, log_Z, totals, N, answers)


def _joined(
    entries: Entries,
    documents: tuple[NDArray[np.intp], NDArray[np.intp]],
    answered: tuple[AnsweredSummary, Kept],
    others: tuple[DocumentSummary, Kept],
) -> tuple[AnsweredSummary, Kept]:
    """The documents of a chunk, of which some have answers, in their order."""
    summary, kept = answered
    rest, kept_rest = others
    n = len(entries.indptr) - 1
    K = summary.K
    totals = np.empty(n)
    single = np.zeros(n, np.bool_)
    p = np.empty((n, K))
    counts = np.empty((n, K))
    log_Z = np.empty(len(entries.rows))
    for some, part in zip(documents, (kept, kept_rest)):
        totals[some] = part.totals
        single[some] = part.single
        p[some] = part.p
        counts[some] = part.counts
        log_Z[entries.places(some)] = part.log_Z
    both = summary + AnsweredSummary.without_answers(rest, summary.B.shape[1])
    both = replace(both, counts=np.ascontiguousarray(counts.T, dtype=np.float32))
    return both, Kept(kept.tables, single, p, log_Z, totals, counts, kept.answers)
