"""The search for topics: annealing where documents are words, excursions of splits where they are groups of rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from ...allocations.topics import TopicPrior
from ...data import BagSource
from ...model import DocumentSummary, Summary
from ...moves import Schedule
from ...moves.agglomeration import with_groups
from ...moves.better import WORTH
from ..laps import Laps
from ..state import Options
from . import annealing, ascents, growth, long_ascents
from .annealing import Annealing
from .ascents import TopicAscents
from .dissolving import dissolve
from .even_mixing import EvenMixing
from .gibbs import Chain
from .growth import Growth
from .long_ascents import LongAscents
from .restarts import Restarts
from .splits import Splits
from .unmixed import UnmixedAscents


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py and benchmarks/topics.py.

    Attributes
    ----------
    fine_fewer : times as many topics in an excursion where laps are fast, once half as many are too few
    very_fast : laps are, if those with so many times the topics of the first excursion are fast
    mixing_a_little : times the alpha of documents of one topic each, from which these are mixed at the end, in turn
    """

    fine_fewer: float = 0.8
    very_fast: int = 4
    mixing_a_little: tuple[float, ...] = (10.0, 100.0, 1000.0)


TUNING = Tuning()


class WordParts(NamedTuple):
    """The parts of a search for topics of words."""

    restarts: Restarts
    splits: Splits
    annealing: Annealing
    growth: Growth
    unmixed: UnmixedAscents
    even: EvenMixing
    long: LongAscents

    @classmethod
    def of(cls, search: TopicAscents, restarts: Restarts, splits: Splits, chain: Chain) -> Self:
        """Those of a search with a sampler."""
        begun = Annealing(search, chain)
        grown = Growth(search, begun)
        unmixed = UnmixedAscents(search, begun)
        even = EvenMixing(search, begun, restarts)
        return cls(restarts, splits, begun, grown, unmixed, even, LongAscents(search, begun, grown, restarts))


@dataclass
class TopicSearch(TopicAscents):
    """Find the best topics that moves can reach: the order in which the parts of the search have their turns.

    Topics of words have poor local optima in such numbers that every ascent starts by annealing
    (`stickbreak.inference.topics.gibbs`).

    make_chain : makes the sampler for topics of words, from random numbers; None for groups of rows
    """

    make_chain: Callable[[np.random.Generator], Chain | None] = lambda rng: None

    def run(self, start: Summary) -> None:
        """Search from the parameters that ``start`` implies; the outcome is ``best``.

        The search has no reference to its parts, so its memory is free once it is over.
        """
        restarts = Restarts(self)
        splits = Splits(self, restarts)
        chain = self.make_chain(self.rng)
        if chain is None:
            splits.run(start)
            restarts.all(self.options)
            self._settle_one_topic()
        else:
            parts = WordParts.of(self, restarts, splits, chain)
            self._find(parts, start)
            self._look_again(parts)
            self._settle_one_topic()
            self._mix_evenly(parts)
        self._dissolve(restarts, splits)

    def _find(self, parts: WordParts, start: Summary) -> None:
        """Topics of words: growth, documents of one topic each, long ascents, and the end.

        Whether laps are fast is asked anew before each part, since the number of topics changes.
        """
        coarse = self.speed.compared(self.options, start.K)
        self.draws = False  # most ascents have no births
        first = self._ascend_first(parts, start, coarse)
        if parts.growth.first <= start.K:
            parts.growth.note(first)
        self.merge_all(first, coarse)
        if self.may_grow():
            parts.growth.begin(start.K, coarse, hopeful=not first.gave_up)
            coarse = self._find_number(parts, coarse)
        if self.unmixed is not None:  # annealing mixes
            self.settle()
        elif self.is_fast():
            parts.long.while_merging(coarse)
        else:
            parts.long.in_a_row(coarse)
        if self.is_fast():
            self._try_far_fewer(parts, coarse)
        if not self.is_fast():
            self.keep(parts.restarts.words(self.outcome, coarse))
            parts.long.finish(coarse)
        last = self.speed.at_last(self.options, self.total.K)
        if self.outcome.options != last:
            self.outcome.polish(last)
        while self.is_fast() and self.unmixed is None and parts.growth.grows_at_last(coarse):
            self.settle()

    def _ascend_first(self, parts: WordParts, start: Summary, options: Options) -> Laps:
        """The first ascent, which is given up if one topic is too far above."""
        annealed = parts.annealing.of(start, annealing.TUNING.sweeps)
        topics = annealed.summary
        settled = self.speed.of_growth(options, topics.K)
        goal = -np.inf
        if len(annealed.owners) < 2 and self.may_grow() and "merge" in self.moves and topics.K > 1:
            goal = self._bound_of_one(topics, settled)
        first = self.begin(topics, settled, patience=ascents.TUNING.fresh_patience, goal=goal)
        parts.annealing.note(first, annealed)
        return first

    def _bound_of_one(self, topics: Summary, options: Options) -> float:
        """The bound of all topics as one."""
        none = Schedule((), self.model.kind.recipe)
        unused = np.random.default_rng(0)  # laps without moves draw nothing
        alone = Laps(self.model, self.source, none, self.session.aside(), unused, options)
        alone.run(with_groups(topics, [list(range(topics.K))]))
        return alone.bound

    def _find_number(self, parts: WordParts, options: Options) -> Options:
        """Growth, and documents of one topic each; how far annealed ascents settle that are compared then.

        Where one topic was better than many, documents of one each come first unless laps are very fast: fewer topics need not
        be tried for long where these are far better.
        """
        alone = self.total.K == 1
        unmixed_first = alone and not self._is_very_fast(parts)
        if unmixed_first:
            parts.unmixed.run(options)
        if alone:
            self.try_mixing(lambda: parts.growth.try_fewer(options))
        if self.unmixed is None or self.total.K == 1:
            self.try_mixing(lambda: parts.growth.grow_on(options))
            options = self.speed.compared(self.options, self.total.K)
            if not self.is_fast():
                parts.long.first(options)
        if not unmixed_first:
            parts.unmixed.run(options)
        if self.unmixed is not None and self.total.K > 1:
            self._mix(parts, options)
        return options

    def _is_very_fast(self, parts: WordParts) -> bool:
        """Whether laps are."""
        return self.speed.is_fast(TUNING.very_fast * parts.growth.first)

    def _mix(self, parts: WordParts, options: Options) -> None:
        """Let documents mix the topics of documents of one each; if that is better, growth goes on from there.

        Of few documents, growth may end with so many poor topics that documents of one each are better although they mix.
        """
        self.try_mixing(lambda: self.ascend_alone(self.total, options, first=self.model))
        if self.unmixed is None:
            parts.growth.double(options)

    def _try_far_fewer(self, parts: WordParts, options: Options) -> None:
        """Excursions from half of the topics that were best so far, and so on, and then a fifth fewer each time.

        Only if the best model has more than half of the fewest topics that were tried.

        Merges of topics of which there are far too many may gain nothing: those of documents that are there twice.  Where sizes
        are uneven, many topics are merged as they settle, which leaves small ones that splits of few would not find.  So this
        comes after long ascents.
        """
        tried = parts.growth.tried

        def attempt() -> None:
            for times in (1.0 / growth.TUNING.growth, TUNING.fine_fewer):
                parts.growth.try_others(tried.best, times, options)

        best = self.outcome
        if self.may_grow() and tried.sizes[0] < growth.TUNING.growth * self.total.K:
            self.try_mixing(attempt)
        if self.outcome is not best:
            parts.growth.grow_on(options)
            parts.long.while_merging(options)

    def _look_again(self, parts: WordParts) -> None:
        """What may be better than the best topics once these have settled, where laps are fast."""
        if self.is_fast():
            parts.restarts.all(self.options)
        if self.is_fast() and self.unmixed is None:
            self._split_and_anneal(parts)
        if self.is_fast() and self.may_grow() and parts.unmixed.run_at_last():
            self.settle()
            parts.restarts.all(self.options)
        if self.is_fast() and self.unmixed is not None:
            self._mix_a_little(parts)
        if self.is_fast() and self.may_merge() and parts.annealing.chain.seeds is None:
            self._try_one_topic()

    def _split_and_anneal(self, parts: WordParts) -> None:
        """Look once more for topics, and if there are more, anneal all of them: those that splits have found were not annealed.

        None of them is left out.  Where sizes are very unequal, small topics are, wherever they are annealed before.
        """
        K = self.total.K
        parts.splits.at_last()
        if self.total.K <= K or not self.may_lap():
            return
        best = self.outcome
        start = parts.annealing.of(best.total, annealing.TUNING.last_sweeps).summary
        settle = long_ascents.TUNING.settle
        trial = self.ascend(best.model, start, self.options, "annealing", removes=True, settle=settle)
        parts.restarts.of(trial, self.options)
        if self.outcome is not best:
            parts.restarts.all(self.options)

    def _mix_a_little(self, parts: WordParts) -> None:
        """Ascents from topics of documents of one each, mixing ever more of them at first, until one gains or loses by that.

        Laps hardly move an alpha next to zero, and the first alpha may be far above that of documents that mix a little.
        """
        bound = found = self.outcome.bound
        near = WORTH * self.total.K
        for times in TUNING.mixing_a_little if self.learns_alpha else ():
            if abs(found - bound) > near or not parts.restarts.possible():
                break
            found = parts.restarts.mixed(times, self.options)
        if self.outcome.bound > bound + near:
            self.unmixed = None
            parts.restarts.all(self.options)
            self._split_and_anneal(parts)

    def _mix_evenly(self, parts: WordParts) -> None:
        """Look for topics that documents mix evenly, where none that they mix were found and laps are fast.

        Alpha follows topics from the first lap: those of such documents seem to be worth nothing until words settle in them.
        Unless laps are very fast, only where one topic is best, and not for long if that is far better.
        """
        if self.total.K > 1 and self.unmixed is None:
            return
        most = parts.growth.first
        very_fast = self._is_very_fast(parts)
        alone = self.total.K == 1 and self.speed.is_fast(most // 2)
        if not (self.may_grow() and self.learns_alpha and (very_fast or alone)):
            return
        best = self.outcome
        patience = np.inf if very_fast else ascents.TUNING.fresh_patience
        self.try_mixing(lambda: parts.even.run(most, patience))
        if self.outcome is not best:
            parts.growth.grow_on(self.options)
            parts.long.while_merging(self.speed.compared(self.options, self.total.K))
            parts.restarts.all(self.options)
            self._split_and_anneal(parts)

    def _dissolve(self, restarts: Restarts, splits: Splits) -> None:
        """Dissolve topics of the best model while that gains, and look again for what is better beside those that are left.

        Not topics of documents of one topic each, which have no others to share out their tokens among.
        """
        while self.is_fast() and self.unmixed is None and dissolve(self, restarts):
            self.settle()
            restarts.all(self.options)
            splits.at_last()

    def _try_one_topic(self) -> None:
        """One topic in place of all, which has learnt what is learnt late: growth compared others with one that had not."""
        start = with_groups(self.total, [list(range(self.total.K))])
        alone = self._with_best_rest(self.ascend(self.model, start, self.options, "all merged"))
        alone.polish(self.options.at_last)
        self.keep(alone)

    def _settle_one_topic(self) -> None:
        """The best share of the rest beside the only topic, and what is learnt late; nothing where there are several."""
        if self.total.K > 1 or not self.may_lap():
            return
        self.keep(self._with_best_rest(self.outcome))
        if self.options.learn_late and self.may_lap():
            self.outcome.polish(self.options.at_last)

    def _with_best_rest(self, laps: Laps) -> Laps:
        """An ascent of an only topic from the best share of the rest, which laps approach by one part in D."""
        allocation = laps.model.allocation
        total = laps.total
        if not (isinstance(self.source, BagSource) and isinstance(total, DocumentSummary)):
            return laps
        assert isinstance(allocation, TopicPrior)
        sizes = self.source.sizes
        rest = allocation.rest_of_one(sizes)
        if rest is None:
            return laps
        alpha = allocation.document_concentration
        start = total.of_one_topic(sizes, alpha * (1.0 - rest), alpha * rest)
        alone = self.ascend(laps.model, start, self.options, "one topic", counts=laps.counts)
        return alone if alone.beats(laps) else laps
