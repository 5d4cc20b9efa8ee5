"""The search for topics: annealing where documents are words, excursions of splits where they are groups of rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import SparseSource
from ..model import Model, Summary
from ..moves.agglomeration import Level, level_start, levels_of
from ..moves.better import WORTH
from .document_survey import DocumentSurvey, document_survey
from .gibbs import Annealed, Chain
from .laps import Laps
from .merging import MergingSearch
from .one_topic import OneTopicSearch
from .state import Options

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py and benchmarks/topics.py.

    Attributes
    ----------
    coarse : excursions are compared when settled to this multiple of the tolerance
    settle, settle_topics : laps before the topics of an excursion must pay: of groups of rows, and of words
    worthwhile : an excursion that gains less than this multiple of the tolerance, for each topic, is the last
    growth : times as many topics in the next excursion: first, and where laps are fast, when that is too many
    longer : times as many topics as are best in growth, from which the long ascents begin, where laps take long: topics that
        are merged from more have better optima
    worthwhile_topic : share of what its parameters cost: the topics that an excursion adds must gain as much each, or it is
        the last
    fewest : topics of the first excursion
    sweeps, split_sweeps, last_sweeps : of annealing, at the start of an ascent from nothing, from split topics, and of the
        last ones
    fresh_patience : laps, each like the last, in which an ascent from the topics alone must reach the model in hand
    fast : tokens times topics, beyond which laps take long
    refreshes : ascents in a row from the topics alone, where laps are fast
    fewer : where they are not, long ascents follow from ever this share of the topics, merged, while that gains
    unmixed : alpha from which documents of one topic each begin
    fewest_unmixed : topics from which mixtures of documents are fitted first, then from twice as many, and so on
    coarse_topics : annealed ascents are compared when settled to this tolerance, in nats for each topic; one that gains less
        than that gains nothing
    """

    coarse: float = 100.0
    settle: int = 12
    settle_topics: int = 4
    worthwhile: float = 30.0
    growth: tuple[float, ...] = (2.0, 1.125)
    longer: float = 1.25
    worthwhile_topic: float = 0.02
    fewest: int = 64
    sweeps: int = 60
    split_sweeps: int = 45
    last_sweeps: int = 180
    fresh_patience: float = 30.0
    fast: int = 1 << 24
    refreshes: int = 4
    fewer: float = 0.9
    unmixed: float = 1e-4
    fewest_unmixed: int = 16
    coarse_topics: float = 3.0


TUNING = Tuning()


@dataclass
class TopicSearch(MergingSearch[DocumentSurvey]):
    """Find the best topics that moves can reach (see `Search` and `MergingSearch`).

    Topics of words have poor local optima in such numbers that every ascent starts by annealing (`stickbreak.inference.gibbs`).

    make_chain : makes the sampler for topics of words, from random numbers; None for groups of rows
    """

    make_chain: Callable[[np.random.Generator], Chain | None] = lambda rng: None
    _tried: dict[int, float] = field(default_factory=dict)  # the highest bound of growth for each number of topics
    _wanted: int = 0  # topics from which the first long ascent begins, if growth has told
    _grown: Laps | None = None  # the last ascent of the growth, before merges
    _first: Model = field(init=False)  # with the alpha from which ascents from topics alone begin

    def __post_init__(self) -> None:
        self._first = self.model

    def run(self, start: Summary) -> None:
        """Search from the parameters that ``start`` implies; the outcome is ``best``."""
        chain = self.make_chain(self.rng)
        if chain is None:
            self._run_coarse(start)
        else:
            self._run_annealed(chain, start)
        if self.total.K == 1 and self.options.learn_late and self._laps_left > 0:
            self.outcome.polish(self.options.at_last)

    def _run_coarse(self, start: Summary) -> None:
        """Search for topics of rows: ascents from ever more topics, compared before they have settled."""
        coarse = replace(self.options, tol=TUNING.coarse * self.options.tol)
        self.best = self._laps(self.model, self.moves, coarse)
        self.best.run(start)
        while self._may_grow():
            trial_start = self._split(self.best)
            if trial_start is None:
                break
            trial = self._laps(self.best.model, self._removals, coarse, self.best, TUNING.settle, "splits")
            trial.run(trial_start)
            if self._keep(self.best, trial) <= TUNING.worthwhile * self.options.tol * self.best.total.K:
                break
        self._settle()

    def _run_annealed(self, chain: Chain, start: Summary) -> None:
        """Search for topics: ever more, until those that are new gain too little; then long ascents, until none merges any."""
        coarse = replace(self.options, tol=max(TUNING.coarse_topics, self.options.tol))
        self.draws = False  # there are no births
        annealed = chain.from_summary(start, TUNING.sweeps, self.executor)
        self.best = self._laps(self.model, (), coarse)
        self.best.run(annealed.summary)
        self._note(self.best)
        self._merge_all(self.best, coarse)
        begun = False
        if self._may_grow():
            self._grow_from(chain, start, coarse)
            begun = self._anneal_first(chain, coarse)
            self._with_one_topic_each(chain, coarse)
        self._anneal_all(chain, coarse, begun)
        if self.outcome.options is not self.options:
            self.outcome.polish(self.options)
        while self._is_fast() and self._grows_at_last(chain, coarse):
            self._settle()

    def _grow_from(self, chain: Chain, start: Summary, options: Options) -> None:
        """Excursions from ever more topics, and no fewer than `Tuning.fewest`."""
        first = min(TUNING.fewest, self.model.max_clusters)
        if first > start.K:
            self._excursion(self._at_random(chain, first), options)
        if self.total.K == 1:
            self._try_many(chain, options)
        self._double(chain, options)
        while self._is_fast() and self._grow(chain, self._times(TUNING.growth[1]), options):
            self._wanted = 0

    def _at_random(self, chain: Chain, K: int) -> Annealed:
        """So many topics from nothing, annealed."""
        return chain.from_summary(Summary.zeros(K, self.total.S.shape[1]), TUNING.sweeps, self.executor)

    def _try_many(self, chain: Chain, options: Options) -> None:
        """Excursions from ever more topics at random, while these gain: one topic may be better than some of very many."""
        (*_, (many, bound)) = self._tried.items()
        better = True
        while better and self._may_grow():
            many = int(np.ceil(TUNING.growth[0] * many))
            if many > self.model.max_clusters:
                break
            trial = self._excursion(self._at_random(chain, many), options)
            better = trial.bound > bound
            bound = trial.bound

    def _double(self, chain: Chain, options: Options) -> None:
        """Excursions from twice as many topics, until these gain too little; then what all of them tell."""
        self._note(self.outcome)
        while self._grow(chain, self._times(TUNING.growth[0]), options):
            continue
        sizes = sorted(self._tried)
        bounds = [self._tried[K] for K in sizes]
        i = min(int(np.argmax(bounds)), len(sizes) - 2)  # the last may be as good as the one before
        if i > 0:
            top = np.exp(_top(np.log(sizes[i - 1 : i + 2]), bounds[i - 1 : i + 2]))
            self._wanted = min(int(np.ceil(TUNING.longer * min(top, sizes[i + 1]))), self.model.max_clusters)

    def _note(self, laps: Laps) -> None:
        """Keep the bound of an ascent of the growth."""
        K = laps.total.K
        self._tried[K] = max(laps.bound, self._tried.get(K, -np.inf))

    def _anneal_all(self, chain: Chain, options: Options, begun: bool) -> None:
        """Long ascents: until none merges any topics; or where laps take long, from ever fewer topics, while these gain.

        begun : whether the first was made
        """
        if not self._is_fast():
            if not begun:
                self._anneal(chain, self.total, options)
            self._anneal_ever_fewer(chain, options)
            return
        K = self.total.K + 1
        while self._laps_left > 0 and self.total.K < K:
            K = self.total.K
            if not begun:
                self._anneal(chain, self.total, options)
            begun = False
            fewer = self._nearly_as_good()
            if fewer is not None:
                self._anneal(chain, fewer, options)

    def _anneal_ever_fewer(self, chain: Chain, options: Options) -> None:
        """Long ascents from ever fewer topics; if already the first gains nothing, one more from all of them."""
        best = self._in_hand
        gain = np.inf
        while gain > TUNING.coarse_topics * self.total.K and not self._is_fast() and self._may_merge():
            bound = self.outcome.bound
            self._anneal(chain, self._somewhat_fewer(), options)
            gain = self.outcome.bound - bound
        if self._in_hand is best and self._laps_left > 0:
            self._anneal(chain, self.total, options)

    def _somewhat_fewer(self) -> Summary:
        """The topics of the best model, merged at a loss to `Tuning.fewer` of them, or to those that are nearly as good."""
        K = self.total.K
        wanted = max(int(TUNING.fewer * K), 1)
        near = self._nearly_as_good()
        return near if near is not None and wanted > near.K else self._merged_from(self._in_hand, wanted)

    def _anneal_first(self, chain: Chain, options: Options) -> bool:
        """Where laps take long, the first long ascent, from as many topics as growth says are best; whether it was made."""
        if self._is_fast() or self._laps_left <= 0:
            return False
        K = self.total.K
        grown = self._grown
        if self._may_merge() and grown is not None and K < self._wanted < grown.total.K:
            self._anneal(chain, self._merged_from(grown, self._wanted), options)
        elif self._wanted > K:
            self._ascend_annealed(chain, self._with_split(chain, self._wanted, TUNING.last_sweeps), options)
        else:
            self._anneal(chain, self.total, options)
        return True

    def _times(self, times: float) -> int:
        """So many times the topics in hand, of which there may be no more than some."""
        return min(int(np.ceil(times * self.total.K)), self.model.max_clusters)

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
        best = self.outcome
        first = self._unmixed(found.model)
        trial = self._laps(first, (), options, best, origin="one topic each", patience=TUNING.fresh_patience)
        trial.run(first.kind.start(found.topics), found.counts)
        if self._keep(best, trial) > 0.0:
            self._first = first
        self._merge_all(trial, options)

    def _unmixed(self, model: Model) -> Model:
        """The model with an alpha next to zero, where that is learnt."""
        if "document_concentration" not in self.options.learn:
            return model
        allocation: Any = model.allocation
        return replace(model, allocation=replace(allocation, document_concentration=TUNING.unmixed))

    def _ever_more(self, chain: Chain) -> Iterator[Summary]:
        """Annealed topics, twice as many each time."""
        many = TUNING.fewest_unmixed
        while many <= self.model.max_clusters:
            yield self._at_random(chain, many).summary
            many *= 2

    def _anneal(self, chain: Chain, start: Summary, options: Options) -> None:
        """A long ascent from topics, annealed, and what follows from the best model then."""
        self._ascend_annealed(chain, chain.from_summary(start, TUNING.last_sweeps, self.executor), options)

    def _ascend_annealed(self, chain: Chain, annealed: Annealed, options: Options) -> None:
        """An ascent from annealed topics, and what follows from the best model then."""
        best = self.outcome
        if self._removals:
            annealed = chain.pruned(annealed, self.executor)
        trial = self._laps(best.model, self._removals, options, best, TUNING.settle_topics, "annealing")
        trial.run(annealed.summary)
        self._keep(best, trial)
        if self._is_fast():
            self._settle()
        else:
            self._merge_more(self._in_hand, options)

    def _nearly_as_good(self) -> Summary | None:
        """The fewest topics, merged as they are, that lack no more than ascents are compared to."""
        if not self._may_merge():
            return None
        levels = self._levels_in_hand()
        least = levels[0].bound - max(TUNING.coarse_topics, self.options.tol) * self.total.K
        near = [level for level in levels[1:] if level.bound > least]
        return self._merged_to(near[-1]) if near else None

    def _may_merge(self) -> bool:
        """Whether topics of the best model may be merged, and ascents follow."""
        return "merge" in self.moves and self.total.K > 1 and self._laps_left > 0

    def _levels_in_hand(self) -> list[Level]:
        """The best model with ever fewer topics, merged as they are."""
        return self._levels_down(self._in_hand)

    def _levels_down(self, laps: Laps) -> list[Level]:
        """The same of an ascent."""
        surveyed = self._survey(laps)
        return levels_of(laps.model, surveyed.seen.total, surveyed.steps, surveyed.seen.nodes)

    def _merged_to(self, level: Level) -> Summary:
        """The topics of one of the levels of the best model."""
        seen = self._survey(self._in_hand).seen
        return level_start(self._in_hand.model, seen.total, seen.nodes, level)[0]

    def _merged_from(self, laps: Laps, wanted: int) -> Summary:
        """The topics of an ascent, merged to so many."""
        seen = self._survey(laps).seen
        level = self._levels_down(laps)[laps.total.K - wanted]
        return level_start(laps.model, seen.total, seen.nodes, level)[0]

    def _grow(self, chain: Chain, wanted: int, options: Options) -> bool:
        """An excursion from ``wanted`` topics, the largest split, annealed and then merged; whether it gained enough."""
        before = self.outcome.result
        if not self._may_grow() or before is None or wanted <= before.total.K:
            return False
        self._grown = self._excursion(self._with_split(chain, wanted, TUNING.split_sweeps), options)
        gain = self.outcome.bound - before.bound
        more = self.total.K - before.total.K
        cost = float(self.outcome.posterior.cost.mean())
        return more > 0 and gain > TUNING.worthwhile_topic * cost * more

    def _grows_at_last(self, chain: Chain, options: Options) -> bool:
        """Whether a few more topics are better once they are as settled as the model in hand: growth compares both before."""
        best = self.outcome
        wanted = self._times(TUNING.growth[-1])
        if not self._may_grow() or wanted <= self.total.K:
            return False
        trial = self._laps(self.model, (), options, best, origin="splits")
        trial.run(self._with_split(chain, wanted, TUNING.last_sweeps).summary)
        self._keep(best, trial)
        self._ascend_alone(trial.total, self._removals, self.options)
        return self.outcome.bound > best.bound + WORTH * self.total.K

    def _with_split(self, chain: Chain, wanted: int, sweeps: int) -> Annealed:
        """``wanted`` topics: those in hand, the largest split, annealed."""
        annealed = chain.from_summary(self.total, 1, self.executor)
        return chain.from_topics(chain.split(annealed, wanted), wanted, sweeps, self.executor, annealed.owners)

    def _excursion(self, annealed: Annealed, options: Options) -> Laps:
        """An ascent from more topics, then merged, at last without what is known of documents; that ascent before merges."""
        best = self.outcome
        trial = self._laps(self.model, (), options, best, origin="splits")
        trial.run(annealed.summary)
        self._note(trial)
        self._keep(best, trial)
        if self._in_hand is best and not self._is_fast():
            return trial
        merged = self._merge_all(trial, options)
        if self._in_hand is best and merged is not trial and self._is_fast():
            self._ascend_alone(merged.total, (), options)
        return trial

    def _settle(self) -> None:
        """Ascents from the topics alone and from fewer of them, until these gain nothing."""
        while True:
            tries = TUNING.refreshes if self._is_fast() else 1
            while tries > 0 and self._refresh() > WORTH * self.total.K:
                tries -= 1
            if not self._merge_more(self._in_hand, self.options):
                break

    def _is_fast(self) -> bool:
        """Whether laps with the topics in hand are quick."""
        return bool(self.source.total_weight * self.total.K <= TUNING.fast)

    def _refresh(self) -> float:
        """What an ascent gains from the topics alone: counts of documents and concentrations may be poor local optima."""
        bound = self.outcome.bound
        self._ascend_alone(self.total, self._removals, self.options)
        if self.outcome.options is not self.options:
            self.outcome.polish(self.options)
        return self.outcome.bound - bound

    def _ascend_alone(self, total: Summary, moves: tuple[str, ...], options: Options) -> None:
        """An ascent from topics without what is known of documents."""
        if self._laps_left <= 0:
            return
        best = self.outcome
        again = self._laps(self._first, moves, options, best, origin="topics alone", patience=TUNING.fresh_patience)
        again.run(total.as_start)
        self._keep(best, again)

    def _merge_all(self, laps: Laps, options: Options) -> Laps:
        """Merge what is better merged as it is, again after each ascent from there that raises the bound; the last of them."""
        while self._laps_left > 0:
            self._merge_more(laps, options, through_losses=False)
            merged = self._merged
            if merged is None or merged.bound <= laps.bound:
                break
            laps = merged
        return laps

    def _look(self, laps: Laps, parents: NDArray[np.int64]) -> DocumentSurvey:
        return document_survey(laps.model, laps.total, self.source, self.executor, parents, laps.counts)

    def _is_large(self, K: int) -> bool:
        return True

    def _order(self, losses: Array) -> Sequence[int]:
        """One merge, two, four and so on: all are worth about the same until many are made."""
        return [2**i - 1 for i in range(len(losses).bit_length())]

    def _counts(self, laps: Laps, groups: list[list[int]]) -> Array | None:
        counts = laps.counts
        return None if counts is None else np.stack([counts[group].sum(axis=0) for group in groups])


def _top(x: Array, y: Sequence[float]) -> float:
    """Where the parabola through three points, x increasing, has its top; the last x if it has none."""
    first = (y[1] - y[0]) / (x[1] - x[0])
    second = (y[2] - y[1]) / (x[2] - x[1])
    if not first > second:
        return float(x[2])
    return float(0.5 * (x[0] + x[1]) + 0.5 * (x[2] - x[0]) * first / (first - second))
