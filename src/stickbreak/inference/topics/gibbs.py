"""Annealing: collapsed Gibbs sweeps that shake topics out of poor local optima before variational laps refine them."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import psi

from ...allocations.topics import TopicPrior
from ...data import BagSource
from ...kernels.gibbs import gibbs_sweep, prior_gains, word_tables
from ...likelihoods import Multinomial, Seeded
from ...model import Model, Summary
from ..executor import Executor
from .pace import Pace

Array = NDArray[np.floating]

TOKENS = 1 << 24  # about the most tokens that are sampled, and counts of words that are read for that
LONG = 2000, 10_000  # where there are more: the least and the most tokens that long documents keep on average
MOST_OF_FRACTIONS = 4.0  # tokens for each count on average, where counts are not whole
MOST_REPEATS = 1000  # of a word in a document; more are sampled as if they were this many
CHUNK_TOKENS = 1 << 16  # about the tokens of a chunk
PLENTY = 1_000_000  # with fewer tokens there are more sweeps, by the root of the ratio, but at most `MOST_SWEEPS` times as many
MOST_SWEEPS = 5.0
FIRST_PRIOR = 0.1  # pseudo-count of a topic in a document at first
SMALLEST_PRIOR = 1e-4
GENEROUS = 0.6  # the largest share of the sweeps with the first prior: documents of many topics let topics move
BRIEFLY = 0.1  # the same where topics are known: they need not find their places any more
ENOUGH = 0.02  # nats for each topic by which a sweep must raise the likelihood of the tokens (`Pace`)
DISSOLVED = 0.1  # share of the mean size below which a topic is dissolved
NO_OWNERS = np.empty(0, np.intp)


class Sweeps(NamedTuple):
    """How topics are annealed.

    most : sweeps of a million tokens; fewer tokens have more, and there are fewer where these would gain nothing
    cold : sweeps at a temperature of one half that follow: less of the outcome is left to chance
    alpha : the sum of the pseudo-counts of topics in a document at first, if it is learnt and this is more than
        `FIRST_PRIOR` for each topic: learning takes only a few steps, which lead from documents of few topics to others of few
    """

    most: int
    cold: int = 0
    alpha: float = 0.0


class Annealed(NamedTuple):
    """The outcome of some sweeps.

    summary : of the last sweep, topics in decreasing size
    topics : of every token
    owners : (G,) the topic of each of those that are named in advance
    """

    summary: Summary
    topics: NDArray[np.int32]
    owners: NDArray[np.intp]


class Tables(NamedTuple):
    """What a sweep draws topics by (`gibbs_sweep`): of each word in each topic, and of the topics.

    cold : whether they are for a sweep at a temperature of one half
    """

    E: NDArray[np.float32]
    cumulative: NDArray[np.float32]
    ends: NDArray[np.float32]
    totals: NDArray[np.float32]
    cold: bool = False


class WordPart(NamedTuple):
    """Some words: where the tokens of each begin, which these are, and the pseudo-count of each word.

    topics : of every token of all documents
    more : (G, n) the pseudo-counts that each word has beside those in topics that are named in advance
    """

    indptr: NDArray[np.int64]
    tokens: NDArray[np.intp]
    topics: NDArray[np.int32]
    smooth: Array
    more: Array


class Part(NamedTuple):
    """Some documents: where each begins, the word and the topic of every token, and a seed."""

    indptr: NDArray[np.int64]
    words: NDArray[np.int32]
    topics: NDArray[np.int32]
    seed: int


class Chain:
    """A sampler of the topic of every token of some documents, for a model with a Multinomial likelihood.

    Sweeps are those of approximate distributed LDA (Newman et al. 2009): exact within a document, with the word counts of the
    last sweep.  Chunks have random numbers of their own, so the result does not depend on the number of threads.

    learn : whether to learn the sum of the pseudo-counts of topics in a document, which is otherwise that of the model
    """

    def __init__(self, model: Model, source: BagSource, rng: np.random.Generator, learn: bool) -> None:
        X, tokens = _sampled(source, rng)
        seen = np.zeros(X.shape[1], np.bool_)
        seen[X.indices[tokens > 0]] = True
        self.used = np.flatnonzero(seen)  # sweeps take time in proportion to the words that occur, not to V
        self.words = np.repeat((np.cumsum(seen) - 1)[X.indices], tokens).astype(np.int32)
        self.indptr = np.concatenate([[0], np.cumsum(tokens)])[X.indptr]
        self.scale = source.total_weight / max(len(self.words), 1)
        self.edges = _cuts(self.indptr)
        self.by_word = np.argsort(self.words, kind="stable")
        self.word_indptr = np.searchsorted(self.words[self.by_word], np.arange(len(self.used) + 1))
        self.word_edges = _cuts(self.word_indptr)
        self.longer = float(np.clip(np.sqrt(PLENTY / max(len(self.words), 1)), 1.0, MOST_SWEEPS))
        self.model = model
        self.rng = rng
        self.learn = learn
        self.n_words = X.shape[1]
        likelihood = model.likelihood.plain
        assert isinstance(likelihood, Multinomial)
        self.prior, self.unused = likelihood.concentration[seen], float(likelihood.concentration[~seen].sum())
        self.seeds = model.likelihood if isinstance(model.likelihood, Seeded) else None
        more = np.zeros((0, self.n_words)) if self.seeds is None else np.asarray(self.seeds.sums, np.float64)
        self.more = more[:, seen]
        self.more_totals = more.sum(axis=1)

    def from_summary(self, start: Summary, sweeps: Sweeps, executor: Executor) -> Annealed:
        """Sweep from the topics of a summary, and those that are named in advance."""
        start = self.model.begun(start)
        owners = NO_OWNERS if self.seeds is None else self.seeds.owners(start.S)
        z = np.full(len(self.words), -1, np.int32)
        return self._run(z, start.S.T[self.used], owners, sweeps, executor)

    def pruned(self, annealed: Annealed, sweeps: Sweeps, executor: Executor) -> Annealed:
        """Sweep on without topics much smaller than the mean, until there are none such but those named in advance."""
        while True:
            sizes = annealed.summary.N
            kept = sizes >= DISSOLVED * sizes.mean()
            kept[annealed.owners] = True
            if kept.all():
                return annealed
            place = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
            owners = place[annealed.owners].astype(np.intp)
            annealed = self.from_topics(place[annealed.topics], int(kept.sum()), sweeps, executor, owners)

    def from_topics(
        self,
        topics: NDArray[np.int32],
        K: int,
        sweeps: Sweeps,
        executor: Executor,
        owners: NDArray[np.intp] = NO_OWNERS,
    ) -> Annealed:
        """Sweep on from the topic of every token, one of K, or -1 for none.

        owners : (G,) the topic of each of those that are named in advance
        """
        placed = topics >= 0
        S = np.bincount(self.words[placed].astype(np.int64) * K + topics[placed], minlength=len(self.used) * K)
        return self._run(topics.copy(), S.reshape(len(self.used), K).astype(np.float64), owners, sweeps, executor)

    def split(self, annealed: Annealed, wanted: int) -> NDArray[np.int32]:
        """The topic of every token when topics are split at random, the largest first, so that there are ``wanted``."""
        K = annealed.summary.K
        fresh = annealed.topics + K * self.rng.integers(-(-wanted // K), size=len(annealed.topics))
        return np.where(fresh < wanted, fresh, annealed.topics).astype(np.int32)

    def _run(
        self, z: NDArray[np.int32], S: Array, owners: NDArray[np.intp], sweeps: Sweeps, executor: Executor
    ) -> Annealed:
        """Sweep on from the topic z of every token, which is changed in place, or from counts of words where it is -1.

        S : (number of words that occur, K) their counts in each topic
        owners : as in `from_topics`
        """
        K = S.shape[1]
        prior = self._first_prior(K, sweeps.alpha)
        sizes: NDArray[Any] = np.bincount(z[z >= 0], minlength=K)
        tables = self._first_tables(z, S, sizes, prior, owners)
        pace = Pace.of(int(sweeps.most * self.longer), BRIEFLY if S.any() else GENEROUS, ENOUGH * K)
        while not pace.over:
            if pace.sweep > 0:
                tables = self._tables(z, sizes, prior, owners, executor)
            log_masses, sizes = self._sweep(z, tables, executor)
            if pace.learns:
                prior = self._prior(z, prior, executor)
            pace = pace.after(log_masses - self._log_sizes(prior))
        for _ in range(sweeps.cold):
            sizes = self._sweep(z, self._tables(z, sizes, prior, owners, executor, cold=True), executor)[1]
        return self._outcome(z, K, owners)

    def _first_prior(self, K: int, learnt: float) -> Array:
        """The pseudo-count of each topic in a document at first, (K,)."""
        if self.learn:
            return np.full(K, max(FIRST_PRIOR, learnt / K))
        allocation = self.model.allocation
        assert isinstance(allocation, TopicPrior)
        return np.full(K, allocation.document_concentration / K)

    def _first_tables(
        self, z: NDArray[np.int32], S: Array, sizes: NDArray[Any], prior: Array, owners: NDArray[np.intp]
    ) -> Tables:
        """What the first sweep draws topics by: counts of words, of which tokens without a topic are not a part."""
        K = S.shape[1]
        smooth = S + self.prior[:, None]
        smooth[:, owners] += self.more.T
        unused = np.full(K, self.unused)
        unused[owners] += self.more_totals - self.more.sum(axis=1)
        E = smooth / (smooth.sum(axis=0) + unused)
        cumulative = np.cumsum(E * prior, axis=1).astype(np.float32)
        totals = np.zeros(K, np.float32) if (z < 0).any() else self._totals(sizes, owners)
        return Tables(E.astype(np.float32), cumulative, cumulative[:, -1].copy(), totals)

    def _outcome(self, z: NDArray[np.int32], K: int, owners: NDArray[np.intp]) -> Annealed:
        """The topics of tokens in decreasing size, without those that have none, unless these are named in advance."""
        n_words = len(self.used)
        counts_of_words = np.bincount(self.words.astype(np.int64) * K + z, minlength=n_words * K)
        S = counts_of_words.reshape(n_words, K).astype(np.float64)
        sizes = S.sum(axis=0)
        if self.seeds is not None:
            counts = np.zeros((K, self.n_words))
            counts[:, self.used] = S.T
            marked = np.hstack([counts, self.seeds.marks_of(owners, K)])
            owners = self.seeds.owners(self.seeds.renamed(sizes, marked))
        stays = sizes > 0.0
        stays[owners] = True
        order = np.argsort(-sizes, kind="stable")
        order = order[stays[order]]
        place = np.zeros(K, np.int32)
        place[order] = np.arange(len(order))
        z = place[z]
        owners = place[owners].astype(np.intp)
        counted = np.zeros((len(order), self.n_words))
        counted[:, self.used] = S.T[order]
        N = counted.sum(axis=1)
        if self.seeds is not None:
            counted = np.hstack([counted, self.seeds.marks_of(owners, len(order))])
        summary = self.model.start(N, counted) * self.scale
        return Annealed(summary, z, owners)

    def _sweep(self, z: NDArray[np.int32], tables: Tables, executor: Executor) -> tuple[float, NDArray[np.integer]]:
        """Draw every topic once; the sum over tokens of the logarithms of `gibbs_sweep`, and the tokens of topics (K,)."""
        seeds = self.rng.integers(2**63, size=len(self.edges))
        sizes = np.zeros(len(tables.totals), np.int64)
        place = 0
        total = 0.0
        for topics, some, log_masses in executor.map(partial(_swept, tables), self._parts(z, seeds)):
            z[place : place + len(topics)] = topics
            place += len(topics)
            sizes += some
            total += log_masses
        return total, sizes

    def _log_sizes(self, prior: Array) -> float:
        """The sum over tokens of log(n_d - 1 + sum_k a_k), by which the masses of `gibbs_sweep` are to be divided."""
        lengths = np.diff(self.indptr)
        return float((lengths * np.log(np.maximum(lengths - 1, 0) + prior.sum())).sum())

    def _totals(self, sizes: NDArray[np.integer], owners: NDArray[np.intp]) -> NDArray[np.float32]:
        """What counts of words are divided by, (K,)."""
        totals = sizes + (self.prior.sum() + self.unused)
        totals[owners] += self.more_totals
        return np.asarray(np.minimum(totals, np.finfo(np.float32).max), dtype=np.float32)

    def _tables(
        self,
        z: NDArray[np.int32],
        sizes: NDArray[np.integer],
        prior: Array,
        owners: NDArray[np.intp],
        executor: Executor,
        cold: bool = False,
    ) -> Tables:
        """What the next sweep draws topics by."""
        totals = self._totals(sizes, owners)
        E = np.empty((len(self.used), len(prior)), np.float32)
        cumulative = np.empty_like(E)
        place = 0
        for parts in executor.map(partial(_counted, totals, prior, owners, cold), self._word_parts(z)):
            some = slice(place, place + len(parts[0]))
            E[some], cumulative[some] = parts
            place = some.stop
        return Tables(E, cumulative, cumulative[:, -1].copy(), totals, cold)

    def _word_parts(self, z: NDArray[np.int32]) -> Iterator[WordPart]:
        """The words, some at a time."""
        for first, last in pairwise(self.word_edges):
            indptr = self.word_indptr[first : last + 1]
            tokens = self.by_word[indptr[0] : indptr[-1]]
            yield WordPart(indptr - indptr[0], tokens, z, self.prior[first:last], self.more[:, first:last])

    def _parts(self, z: NDArray[np.int32], seeds: NDArray[np.int64]) -> Iterator[Part]:
        """The documents, some at a time."""
        for i, (first, last) in enumerate(pairwise(self.edges)):
            indptr = self.indptr[first : last + 1]
            tokens = slice(indptr[0], indptr[-1])
            yield Part(indptr - indptr[0], self.words[tokens], z[tokens], int(seeds[i]))

    def _prior(self, z: NDArray[np.int32], prior: Array, executor: Executor) -> Array:
        """One step to the prior that makes the counts most probable (Minka 2000, Eq. 55)."""
        total = prior.sum()
        parts = self._parts(z, np.zeros(len(self.edges), np.int64))
        gains = np.sum(list(executor.map(partial(_prior_gains, prior), parts)), axis=0)
        lengths = np.diff(self.indptr)
        new = prior * gains / (psi(lengths + total) - psi(total)).sum()
        new = np.maximum(new, SMALLEST_PRIOR)
        return np.asarray(new if self.learn else new * (total / new.sum()))


def _sampled(source: BagSource, rng: np.random.Generator) -> tuple[Any, NDArray[np.int64]]:
    """Counts of documents (CSR), and how many tokens of each entry are sampled, in all about `TOKENS` at most.

    Long documents lose a random share of their tokens first, and documents are left out only then.
    """
    total = source.n_tokens
    mean = total / source.n_rows
    share = min(1.0, float(np.clip(TOKENS / source.n_rows, *LONG)) / mean) if total > TOKENS else 1.0
    per_document = max(share * mean, source.row_size) if share < 1.0 else mean
    X = source.sample(max(1, int(TOKENS / max(per_document, 1.0 / source.n_rows))), rng).X
    tokens = _whole(X.data, rng)
    if share < 1.0:
        tokens = rng.binomial(tokens, share)
    return X, np.minimum(tokens, MOST_REPEATS)


def _whole(counts: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """Whole numbers of tokens: counts that are whole as they are, others in proportion.

    Others are multiplied until the smallest is one, if then they are no more than `MOST_OF_FRACTIONS` on average; tokens are
    one of the two whole numbers next to each, at random, with that mean.
    """
    if not (counts % 1.0).any():
        return counts.astype(np.int64)
    counts = counts.astype(np.float64)
    least = counts[counts > 0.0].min()
    counts *= max(1.0, min(1.0 / least, min(MOST_OF_FRACTIONS * len(counts), TOKENS) / counts.sum()))
    tokens = np.floor(counts)
    return np.asarray(tokens + (rng.random(len(counts)) < counts - tokens), dtype=np.int64)


def _cuts(indptr: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where chunks of about `CHUNK_TOKENS` tokens begin, an even number of them if possible, and where the last ends."""
    n_tokens = int(indptr[-1])
    cuts = np.linspace(0, n_tokens, 2 * max(1, round(n_tokens / (2 * CHUNK_TOKENS))) + 1)
    return np.unique(np.append(np.searchsorted(indptr, cuts[:-1]), len(indptr) - 1))


def _swept(tables: Tables, part: Part) -> tuple[NDArray[np.int32], NDArray[np.integer], float]:
    """The topic of every token of some documents, drawn once, the tokens of topics (K,), and how likely these are."""
    topics = part.topics.copy()
    log_masses = gibbs_sweep(part.indptr, part.words, topics, *tables, part.seed)
    return topics, np.bincount(topics, minlength=len(tables.totals)), log_masses


def _prior_gains(prior: Array, part: Part) -> Array:
    """What some documents say of the prior."""
    gains = np.zeros_like(prior)
    prior_gains(part.indptr, part.topics, prior, gains)
    return gains


def _counted(
    totals: NDArray[np.float32], prior: Array, owners: NDArray[np.intp], cold: bool, part: WordPart
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The tables of some words."""
    E = np.empty((len(part.smooth), len(prior)), np.float32)
    cumulative = np.empty_like(E)
    word_tables(
        part.indptr, part.tokens, part.topics, part.smooth, owners, part.more, totals, prior, cold, E, cumulative
    )
    return E, cumulative
