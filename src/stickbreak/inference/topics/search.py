"""The search for topics: annealing where documents are words, excursions of splits where they are groups of rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...allocations.topics import TopicPrior
from ...data import BagSource, SparseSource
from ...model import DocumentSummary, Summary
from ...moves import Schedule
from ...moves.agglomeration import with_groups
from ...moves.better import WORTH
from ..laps import Laps
from ..state import Options
from . import ascents, growth, long_ascents
from .gibbs import Annealed, Chain
from .long_ascents import LongAscents
from .one_topic import OneTopicEach, OneTopicSearch


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py and benchmarks/topics.py.

    Attributes
    ----------
    coarse : excursions of groups of rows are compared when settled to this multiple of the tolerance
    settle : laps before the topics of such an excursion must pay
    worthwhile : an excursion that gains less than this multiple of the tolerance, for each topic, is the last
    split_tries : splits of settled topics, of documents drawn anew, that gain nothing, after which there are no more
    very_fast : laps are, if those with so many times the topics of the first excursion are fast
    unmixed : alpha from which documents of one topic each begin
    mixing_a_little : times that alpha from which documents are mixed at the end, in turn
    fewest_unmixed : topics from which mixtures of documents are fitted first, then from twice as many, and so on
    """

    coarse: float = 100.0
    settle: int = 12
    worthwhile: float = 30.0
    split_tries: int = 2
    very_fast: int = 4
    unmixed: float = 1e-4
    mixing_a_little: tuple[float, ...] = (10.0, 100.0, 1000.0)
    fewest_unmixed: int = 16


TUNING = Tuning()


@dataclass
class TopicSearch(LongAscents):
    """Find the best topics that moves can reach (see `Search` and `MergingSearch`).

    Topics of words have poor local optima in such numbers that every ascent starts by annealing
    (`stickbreak.inference.topics.gibbs`).

    make_chain : makes the sampler for topics of words, from random numbers; None for groups of rows
    """

    make_chain: Callable[[np.random.Generator], Chain | None] = lambda rng: None
    _mixture: tuple[OneTopicSearch, OneTopicEach] | None = None  # the best mixture of documents, and the search for it

    def run(self, start: Summary) -> None:
        """Search from the parameters that ``start`` implies; the outcome is ``best``."""
        chain = self.make_chain(self.rng)
        if chain is None:
            self._run_without_annealing(start)
        else:
            self._run_with_annealing(chain, start)
        if chain is None or self._is_fast():
            self._restart_all(self.options)
        if chain is not None and self._is_fast() and self._unmixed is None:
            self._split_and_anneal(chain)
        if self._mixture is not None and self._is_fast() and self._may_grow():
            self._unmix_at_last(*self._mixture)
        if chain is not None and self._is_fast() and self._unmixed is not None:
            self._mix_a_little(chain)
        if chain is not None and chain.seeds is None and self._may_merge() and self._is_fast():
            self._try_one_topic()
        if self.total.K == 1 and self._laps_left > 0:
            self._settle_one_topic()
        if chain is not None and (self.total.K == 1 or self._unmixed is not None):
            self._mix_evenly(chain)
        self._dissolve_at_last()

    def _dissolve_at_last(self) -> None:
        """Dissolve topics of the best model while that gains, and look again for what is better beside those that are left.

        Not topics of documents of one topic each, which have no others to share out their tokens among.
        """
        while self._is_fast() and self._unmixed is None and self._dissolve():
            self._settle()
            self._restart_all(self.options)
            self._split_at_last()

    def _mix_evenly(self, chain: Chain) -> None:
        """Look for topics that documents mix evenly, where none that they mix were found and laps are fast.

        Alpha follows topics from the first lap: those of such documents seem to be worth nothing until words settle in them.
        Unless laps are very fast, only where one topic is best, and not for long if that is far better.
        """
        very_fast = self._is_fast_with(TUNING.very_fast * self._first_of_growth)
        alone = self.total.K == 1 and self._is_fast_with(self._first_of_growth // 2)
        if not (self._may_grow() and self._learns_alpha and (very_fast or alone)):
            return
        best = self._in_hand
        patience = np.inf if very_fast else ascents.TUNING.fresh_patience
        self._try_mixing(lambda: self._try_even(chain, patience))
        if self._in_hand is not best:
            self._grow_on(chain, self.options)
            self._ascend_long_while_merging(chain, self._compared(self.total.K))
            self._restart_all(self.options)
            self._split_and_anneal(chain)

    def _try_one_topic(self) -> None:
        """One topic in place of all, which has learnt what is learnt late: growth compared others with one that had not."""
        best = self._in_hand
        alone = self._laps(self.model, (), self.options, best, origin="all merged")
        alone.run(with_groups(self.total, [list(range(self.total.K))]))
        alone = self._with_best_rest(alone, best)
        alone.polish(self.options.at_last)
        self._keep(best, alone)

    def _settle_one_topic(self) -> None:
        """The best share of the rest beside the only topic, and what is learnt late."""
        best = self.outcome
        self._keep(best, self._with_best_rest(best, best))
        if self.options.learn_late and self._laps_left > 0:
            self.outcome.polish(self.options.at_last)

    def _with_best_rest(self, laps: Laps, best: Laps) -> Laps:
        """An ascent of an only topic from the best share of the rest, which laps approach by one part in D.

        best : the ascent with the best model so far, whose bound the history shows
        """
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
        alone = self._laps(laps.model, (), self.options, best, origin="one topic")
        alone.run(total.of_one_topic(sizes, alpha * (1.0 - rest), alpha * rest), laps.counts)
        return alone if alone.beats(laps) else laps

    def _run_without_annealing(self, start: Summary) -> None:
        """Search for topics of rows: ascents from ever more topics, compared before they have settled."""
        coarse = replace(self.options, tol=TUNING.coarse * self.options.tol)
        self.best = self._laps(self.model, self.moves, coarse)
        self.best.run(start)
        self._split_while_better(self.best, coarse)
        self._settle()

    def _split_while_better(self, laps: Laps, options: Options) -> None:
        """Excursions from all promising splits at once of the topics of an ascent, then of the last excursion."""
        while self._may_grow():
            start = self._split(laps)
            if start is None:
                break
            best = self.outcome
            settle = TUNING.settle
            trial = self._laps(best.model, self._removals, options, best, settle=settle, origin="splits", draws=True)
            trial.run(start)
            self._keep_with_restarts(trial, options)
            if self.outcome.bound - best.bound <= TUNING.worthwhile * self.options.tol * self.total.K:
                break
            laps = self.outcome

    def _split_at_last(self) -> None:
        """Look once more for topics that the best model lacks, now that it has settled: all promising splits at once.

        Growth ends where a few more topics, annealed, are no better, and words and documents that begin elsewhere change what
        topics are worth.  So do those that begin elsewhere after splits, and splits are fitted to documents drawn by chance.
        """
        in_vain = 0
        while in_vain < TUNING.split_tries and self._may_grow():
            best = self.outcome
            laps = self._laps(best.model, self.moves, self.options, best, origin="settled", draws=True)
            laps.run(best.total, best.counts)
            self._keep(best, laps)
            settled = self.outcome
            self._split_while_better(laps, self.options)
            in_vain += 1
            if self.outcome is not settled:
                in_vain = 0
                self._settle()
                self._restart_all(self.options)

    def _split_and_anneal(self, chain: Chain) -> None:
        """Look once more for topics, and if there are more, anneal all of them: those that splits have found were not annealed.

        None of them is left out.  Where sizes are very unequal, small topics are, wherever they are annealed before.
        """
        K = self.total.K
        self._split_at_last()
        if self.total.K <= K or self._laps_left <= 0:
            return
        best = self.outcome
        trial = self._laps(
            best.model, self._removals, self.options, best, settle=long_ascents.TUNING.settle, origin="annealing"
        )
        trial.run(self._annealed(chain, best.total, growth.TUNING.last_sweeps).summary)
        self._restart(trial, self.options)
        if self.outcome is not best:
            self._restart_all(self.options)

    def _mix_a_little(self, chain: Chain) -> None:
        """Ascents from topics of documents of one each, mixing ever more of them at first, until one gains or loses by that.

        Laps hardly move an alpha next to zero, and the first alpha may be far above that of documents that mix a little.
        """
        bound = found = self.outcome.bound
        near = WORTH * self.total.K
        for times in TUNING.mixing_a_little if self._learns_alpha else ():
            if abs(found - bound) > near or not self._may_restart():
                break
            found = self._restart_mixed(times, self.options)
        if self.outcome.bound > bound + near:
            self._unmixed = None
            self._restart_all(self.options)
            self._split_and_anneal(chain)

    def _run_with_annealing(self, chain: Chain, start: Summary) -> None:
        """Search for topics of words: growth, documents of one topic each, long ascents, and the end.

        Whether laps are fast is asked anew before each part, since the number of topics changes.
        """
        coarse = self._compared(start.K)
        self.draws = False  # most ascents have no births
        first = self._ascend_first(self._annealed(chain, start, growth.TUNING.sweeps), coarse)
        if self._first_of_growth <= start.K:
            self._note(first)
        self._merge_all(first, coarse)
        if self._may_grow():
            self._begin_growth(chain, start.K, coarse, hopeful=not first.gave_up)
            coarse = self._find_number(chain, coarse)
        if self._unmixed is not None:  # annealing mixes
            self._settle()
        elif self._is_fast():
            self._ascend_long_while_merging(chain, coarse)
        else:
            self._ascend_long_in_a_row(chain, coarse)
        if self._is_fast():
            self._try_far_fewer(chain, coarse)
        if not self._is_fast():
            self._keep(self._in_hand, self._with_words_restarted(self.outcome, coarse))
            self._finish(options=coarse)
        last = self._last_options()
        if self.outcome.options != last:
            self.outcome.polish(last)
        while self._is_fast() and self._unmixed is None and self._grows_at_last(chain, coarse):
            self._settle()

    def _try_far_fewer(self, chain: Chain, options: Options) -> None:
        """Excursions from half of the topics that were best so far, and so on, and then a fifth fewer each time.

        Only if the best model has more than half of the fewest topics that were tried.

        Merges of topics of which there are far too many may gain nothing: those of documents that are there twice.  Where sizes
        are uneven, many topics are merged as they settle, which leaves small ones that splits of few would not find.  So this
        comes after long ascents.
        """

        def attempt() -> None:
            for times in (1.0 / growth.TUNING.growth, growth.TUNING.fine_fewer):
                self._try_others(chain, self._tried.best, times, options, np.inf)

        best = self._in_hand
        if self._may_grow() and self._tried.sizes[0] < growth.TUNING.growth * self.total.K:
            self._try_mixing(attempt)
        if self._in_hand is not best:
            self._grow_on(chain, options)
            self._ascend_long_while_merging(chain, options)

    def _find_number(self, chain: Chain, options: Options) -> Options:
        """Growth, and documents of one topic each; how far annealed ascents settle that are compared then.

        Where one topic was better than many, documents of one each come first unless laps are very fast: fewer topics need not
        be tried for long where these are far better.
        """
        alone = self.total.K == 1
        unmixed_first = alone and not self._is_fast_with(TUNING.very_fast * self._first_of_growth)
        if unmixed_first:
            self._with_one_topic_each(chain, options)
        if alone:
            self._try_mixing(lambda: self._try_fewer(chain, options))
        if self._unmixed is None or self.total.K == 1:
            self._try_mixing(lambda: self._grow_on(chain, options))
            options = self._compared(self.total.K)
            if not self._is_fast():
                self._ascend_long_first(chain, options)
        if not unmixed_first:
            self._with_one_topic_each(chain, options)
        if self._unmixed is not None and self.total.K > 1:
            self._mix(chain, options)
        return options

    def _ascend_first(self, annealed: Annealed, options: Options) -> Laps:
        """The first ascent, which is given up if one topic is too far above."""
        start = annealed.summary
        settled = self._of_growth(options, start.K)
        self.best = self._laps(self.model, (), settled, patience=ascents.TUNING.fresh_patience)
        may_be_one = len(annealed.owners) < 2 and self._may_grow() and "merge" in self.moves
        if may_be_one and start.K > 1:
            none = Schedule((), self.model.kind.recipe)
            unused = np.random.default_rng(0)  # laps without moves draw nothing
            alone = Laps(self.model, self.source, none, self.session.aside(), unused, settled)
            alone.run(with_groups(start, [list(range(start.K))]))
            self.best.goal = alone.bound
        self.best.run(start)
        self.best.goal = -np.inf
        self._began = self.best, annealed
        return self.best

    def _with_one_topic_each(self, chain: Chain, options: Options) -> None:
        """An ascent from documents of one topic each, where these explain about as much: laps hardly ever get there."""
        assert isinstance(self.source, SparseSource)
        learn = tuple(name for name in (*options.learn, *options.learn_late) if name.startswith("likelihood."))
        search = OneTopicSearch(self.model, self.source, self.session, Options(tol=options.tol, learn=learn))
        if not search.has_a_chance(self.total, self.outcome.bound, self.rng.spawn(1)[0]):
            return
        found = search.best(self._ever_more(chain), self.rng.spawn(1)[0])
        if found is None:
            return
        self._mixture = search, found
        if found.topics.K > 1 or self.total.K == 1 or not self._is_fast():  # several topics gain more as they settle
            self._ascend_from_mixture(found, options)

    def _ascend_from_mixture(self, found: OneTopicEach, options: Options) -> bool:
        """An ascent from a mixture of documents; whether it beats the best model."""
        best = self._in_hand
        first = self._with_alpha(found.model, TUNING.unmixed)
        patience = ascents.TUNING.fresh_patience
        trial = self._laps(first, (), options, best, origin="one topic each", patience=patience)
        trial.run(first.kind.start(found.topics), found.counts)
        self._keep(best, trial)
        self._merge_all(trial, options)
        if self._in_hand is best:
            return False
        self._unmixed = first
        return True

    def _unmix_at_last(self, search: OneTopicSearch, found: OneTopicEach) -> None:
        """Look once more for clusters that the mixture of documents lacks, if it explains them about as well as topics do."""
        if found.agreed or not search.is_near(found.bound, self.outcome.bound):
            return
        better = search.with_births(found, self.rng.spawn(1)[0])
        if better is None and found.topics.K == 1 < self.total.K:
            better = found
        if better is not None and self._ascend_from_mixture(better, self.options):
            self._settle()
            self._restart_all(self.options)

    def _mix(self, chain: Chain, options: Options) -> None:
        """Let documents mix the topics of documents of one each; if that is better, growth goes on from there.

        Of few documents, growth may end with so many poor topics that documents of one each are better although they mix.
        """
        self._try_mixing(lambda: self._ascend_alone(self.total, (), options, self.model))
        if self._unmixed is None:
            self._double(chain, options)

    def _try_mixing(self, attempt: Callable[[], None]) -> None:
        """An attempt at a better model in which documents mix topics; where it succeeds, ascents begin with the first alpha."""
        best = self._in_hand
        attempt()
        if self._in_hand is not best:
            self._unmixed = None

    def _ever_more(self, chain: Chain) -> Iterator[Summary]:
        """Annealed topics, twice as many each time."""
        many = TUNING.fewest_unmixed
        while many <= self._most:
            yield self._at_random(chain, many).summary
            many *= 2
