"""The search for topics: annealing where documents are words, excursions of splits where they are groups of rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..model import Summary
from .gibbs import CRUMB, Chain
from .laps import Laps
from .search import Search

COARSE = 100.0  # excursions are compared when settled to this multiple of the tolerance
SETTLE, SETTLE_TOPICS = 12, 4  # laps before the topics of an excursion must pay: of groups of rows, and of words
WORTHWHILE = 30.0  # an excursion that gains less than this multiple of the tolerance, for each topic, is the last
WORTHWHILE_TOPICS = 0.004  # twice as many topics must raise the bound by this share of its size
SWEEPS, LAST_SWEEPS = 60, 180  # of annealing, at the start of an ascent and of the last one
COARSE_TOPICS = 10.0  # annealed ascents are compared when settled to this tolerance, in nats for each topic


@dataclass
class TopicSearch(Search):
    """Find the best topics that moves can reach (see `Search`).

    Topics of words have poor local optima in such numbers that every ascent starts by annealing (`stickbreak.inference.gibbs`),
    and an excursion splits the largest until there are as many as the next power of two.  Of groups of rows an excursion splits
    every topic with a chance, laps until the pieces have settled, and merges what does not pay.

    make_chain : makes the sampler for topics of words, from random numbers; None for groups of rows
    """

    make_chain: Callable[[np.random.Generator], Chain | None] = lambda rng: None

    def run(self, start: Summary) -> None:
        """Search from the parameters that ``start`` implies; the outcome is ``best``."""
        chain = self.make_chain(self.rng)
        if chain is not None:
            self._run_annealed(chain, start)
            return
        coarse = replace(self.options, tol=COARSE * self.options.tol)
        self.best = self._laps(self.model, self.moves, coarse)
        self.best.run(start)
        while self._may_grow():
            trial_start = self._split(self.best)
            if trial_start is None:
                break
            trial = self._laps(self.best.model, self._removals, coarse, self.best, SETTLE, "splits")
            trial.run(trial_start)
            if self._keep(self.best, trial) <= WORTHWHILE * self.options.tol * self.best.total.K:
                break
        self.best.polish(self.options)

    def _run_annealed(self, chain: Chain, start: Summary) -> None:
        """Search for topics: the largest split, up to the next power of two, while that pays; then one long ascent."""
        coarse = replace(self.options, tol=max(COARSE_TOPICS, self.options.tol))
        annealed = chain.from_summary(start, SWEEPS, self.threads)
        self.best = self._laps(self.model, (), coarse)
        self.best.run(annealed.summary, annealed.counts)
        while self._may_grow():
            K = annealed.summary.K
            wanted = min(2 ** int(np.ceil(np.log2(1.1 * K + 1.0))), self.model.max_clusters)
            if wanted <= K:
                break
            annealed = chain.from_topics(chain.split(annealed, wanted), wanted, SWEEPS, self.threads)
            trial = self._laps(self.best.model, (), coarse, self.best, origin="splits")
            trial.run(annealed.summary, annealed.counts)
            if self._keep(self.best, trial) <= WORTHWHILE_TOPICS * np.log2(wanted / K) * abs(self.best.bound):
                break  # as it stands; more sweeps may tell otherwise
        if len(self.history) < self.options.max_laps:
            annealed = chain.from_topics(annealed.topics, annealed.summary.K, LAST_SWEEPS, self.threads)
            annealed = chain.pruned(annealed, self.threads)
            trial = self._laps(self.best.model, self._removals, self.options, self.best, SETTLE_TOPICS, "annealing")
            trial.run(annealed.summary, annealed.counts)
            self._keep(self.best, trial)
        if self.best.options is not self.options:
            self.best.polish(self.options)
        self._drop_crumbs(self.best)

    def _drop_crumbs(self, best: Laps) -> None:
        """An excursion without the topics much smaller than the mean: their deletion alone may pay only after some laps."""
        total, counts = best.total, best.counts
        kept = np.flatnonzero(CRUMB * total.N.mean() <= total.N)
        if counts is None or len(kept) == total.K or not self._removals or len(self.history) >= self.options.max_laps:
            return
        trial = self._laps(best.model, self._removals, self.options, best, SETTLE_TOPICS, "fewer topics")
        trial.run(Summary(total.N, total.S, total.H, total.base).take(kept), counts[kept])
        self._keep(best, trial)
