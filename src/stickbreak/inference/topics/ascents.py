"""What ascents from topics of documents share: how they settle, are merged, and begin once more from the topics alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...allocations.topics import TopicPrior
from ...data import BagSource
from ...model import Model, Posterior, Summary
from ...model.documents import DocumentKind
from ...moves.agglomeration import Level, Step, hopeful, level_start, levels_of, merges
from ...moves.better import WORTH
from ..laps import Laps
from ..merging import MergingSearch
from ..state import Options
from .dissolving import Dissolving
from .survey import DocumentSurvey, document_survey
from .word_restarts import words_restarted

Array = NDArray[np.floating]

ALPHA = "document_concentration"  # as it is named among what is learnt


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py and benchmarks/topics.py.

    Attributes
    ----------
    longest_step : where laps take long, as `Options.longest_step`
    coarse_topics : annealed ascents are compared when settled to this tolerance, in nats for each topic; one that gains less
        than that gains nothing
    fresh_patience : laps, each like the last, in which an ascent from the topics alone must reach the model in hand
    fast, seconds : tokens times topics: up to the first laps are fast, beyond it they take long, and beyond the second one lap
        takes seconds
    cold : sweeps of annealing at a temperature of one half, where laps take long
    refreshes : ascents in a row from the topics alone, where laps are fast
    word_restarts : ascents in a row from words that begin in other topics
    document_restarts : laps in which topics of documents are emptied on trial, of an ascent
    most_emptied : topics of a document that are, in such a lap
    mixing, most_mixed : times alpha with which ascents begin in which documents mix more, the first only where laps take long,
        and the largest alpha
    longest_mixed : the most laps of such an ascent before it settles
    most_merged : merges that are looked at, beyond those that gain most together
    dear : a topic is dissolved on trial if that seems to lose less than so many times what its parameters cost
    dissolving_trials : topics in a row that were dissolved in vain, after which no other is
    """

    longest_step: float = 0.5
    coarse_topics: float = 3.0
    fresh_patience: float = 30.0
    fast: int = 1 << 24
    seconds: int = 1 << 27
    cold: int = 20
    refreshes: int = 4
    word_restarts: int = 4
    document_restarts: int = 2
    most_emptied: int = 50
    mixing: tuple[float, ...] = (10.0, 1000.0)
    most_mixed: float = 1e4
    longest_mixed: int = 200
    most_merged: int = 100
    dear: float = 3.0
    dissolving_trials: int = 2


TUNING = Tuning()


@dataclass
class TopicAscents(MergingSearch[DocumentSurvey]):
    """Ascents from topics of documents (see `stickbreak.inference.search.Search` and `MergingSearch`)."""

    _unmixed: Model | None = None  # that of documents of one topic each, if the best ascent began with such; else None
    _gained_by_restarts: float = 0.0  # nats that a round of restarts of all words and documents has gained at most

    @property
    def _tokens(self) -> float:
        """What laps take time for: tokens, or rows of groups."""
        return self.source.n_tokens if isinstance(self.source, BagSource) else self.source.total_weight

    def _is_fast(self) -> bool:
        """Whether laps with the topics in hand are fast; otherwise they take long."""
        return self._is_fast_with(self.total.K)

    def _is_fast_with(self, K: int) -> bool:
        """Whether laps with so many topics are."""
        return self._tokens * K <= TUNING.fast

    def _takes_seconds(self) -> bool:
        """Whether a lap with the topics in hand takes so long that it takes seconds."""
        return self._tokens * self.total.K > TUNING.seconds

    def _with_short_steps(self, options: Options, K: int) -> Options:
        """With shorter steps ahead where laps take long: ascents end there before longer steps pay, which are often undone."""
        return options if self._is_fast_with(K) else replace(options, longest_step=TUNING.longest_step)

    def _compared(self, K: int) -> Options:
        """How far annealed ascents settle that are compared, K topics in hand."""
        coarse = replace(self.options, tol=max(TUNING.coarse_topics, self.options.tol))
        return self._with_short_steps(coarse, K)

    def _settle(self) -> None:
        """Ascents from the topics alone and from fewer of them, until these gain nothing, or too little to begin again."""
        gain = np.inf
        while gain > WORTH * self.total.K:
            tries = TUNING.refreshes if self._is_fast() else 1
            while tries > 0 and self._refresh() > WORTH * self.total.K:
                tries -= 1
            bound = self.outcome.bound
            while self._merge_more(self._in_hand, self.options):
                continue
            gain = self.outcome.bound - bound

    def _restart_documents(self, laps: Laps) -> None:
        """Laps of an ascent in which topics of documents are emptied on trial, until these gain little."""
        kind = laps.model.kind
        assert isinstance(kind, DocumentKind)
        sparse_kind = replace(kind, restarts=max(kind.restarts, TUNING.most_emptied))
        for _ in range(TUNING.document_restarts if self.moves and laps.total.K > 1 else 0):
            if self._laps_left <= 0 or not laps.remembers:
                break
            gain = laps.lap_as(sparse_kind)
            laps.polish(laps.options)
            if gain <= laps.options.tol * laps.total.K:
                break

    def _restart_all(self, options: Options) -> None:
        """Restarts of documents and words, of the best model and then of its topics alone, documents mixing more at first.

        Documents of one topic each have been mixed before.  Where laps are fast, all of this again until it gains too little:
        what each restart gains may be little, and what all of them do is not.
        """
        again = True
        while again and self._may_restart():
            bound = self.outcome.bound
            self._restart(self.outcome, options)
            if self._unmixed is None:
                self._restart_all_mixed(options)
            gain = self.outcome.bound - bound
            self._gained_by_restarts = max(self._gained_by_restarts, gain)
            again = self._is_fast() and gain > WORTH * self.total.K

    def _restart_all_mixed(self, options: Options) -> None:
        """Restarts of the best topics alone, documents mixing ever more at first."""
        for times in TUNING.mixing if self._is_fast() and self._learns_alpha else TUNING.mixing[:1]:
            bound = -np.inf
            while self._may_restart() and self.outcome.bound > bound + WORTH * self.total.K:
                bound = self.outcome.bound
                self._restart_mixed(times, options)

    def _may_restart(self) -> bool:
        return self._laps_left > 0 and bool(self.moves) and self.total.K > 1

    def _restart_mixed(self, times: float, options: Options) -> float:
        """An ascent from the best topics alone with so many times their alpha, and restarts from there; its bound.

        Documents of few topics make alpha small, and a small alpha keeps them so: laps leave that optimum by little at a time.
        """
        best = self.outcome
        allocation = best.model.allocation
        assert isinstance(allocation, TopicPrior)
        alpha = min(times * allocation.document_concentration, TUNING.most_mixed)
        within = replace(options, max_laps=min(options.max_laps, len(self.history) + TUNING.longest_mixed))
        mixed = self._laps(self._with_alpha(best.model, alpha), (), within, best, origin="documents mixed")
        mixed.run(self.total.as_start)
        if not mixed.converged and not mixed.beats(best):  # alpha comes down by little at a time
            return mixed.bound
        fine = self._with_short_steps(self.options, best.total.K)
        mixed.polish(fine)
        self._restart_documents(mixed)
        self._restart(mixed, fine)
        return mixed.bound

    def _dissolve(self) -> bool:
        """Ascents from the best topics alone, ever more of them dissolved, the least missed first; whether one gains.

        Merges and deletes move the tokens of a topic by their words.  Where growth went too far, small topics have what many
        documents have left over of many topics: words that no other topic explains any more.
        """
        best = self._in_hand
        counts = best.counts if "delete" in self.moves and self.total.K > 1 else None
        if counts is None or not isinstance(self.source, BagSource):
            return False
        dissolving = Dissolving.of(best.posterior, counts)
        gains = dissolving.gains(self.source)
        gains[best.model.named(best.total)] = -np.inf
        order = np.argsort(-gains, kind="stable")
        gone: list[int] = []
        in_vain = 0
        for k in order[gains[order] > -TUNING.dear * best.posterior.cost[order]]:
            if in_vain == TUNING.dissolving_trials or self._laps_left <= 0 or len(gone) + 2 > best.total.K:
                break
            patience = TUNING.fresh_patience
            trial = self._laps(best.model, (), self.options, self._in_hand, origin="dissolved", patience=patience)
            trial.run(dissolving.start([*gone, int(k)]))
            if self._keep_with_restarts(trial, self.options):
                gone.append(int(k))
                in_vain = 0
            else:
                in_vain += 1
        return bool(gone)

    @property
    def _learns_alpha(self) -> bool:
        return ALPHA in self.options.learn

    @property
    def _learnt_alpha(self) -> float:
        """The alpha of the best model, zero where none is learnt: of one topic nothing is learnt about it."""
        if self.best is None or not self._learns_alpha or self.total.K == 1:
            return 0.0
        allocation = self.outcome.model.allocation
        assert isinstance(allocation, TopicPrior)
        return float(allocation.document_concentration)

    def _with_alpha(self, model: Model, alpha: float) -> Model:
        """The model with another alpha, where that is learnt."""
        if not self._learns_alpha:
            return model
        allocation = model.allocation
        assert isinstance(allocation, TopicPrior)
        return replace(model, allocation=allocation.with_document_concentration(alpha))

    def _restart(self, laps: Laps, options: Options) -> None:
        """Words of an ascent begin in other topics, and documents leave topics, until neither gains anything."""
        bound = -np.inf
        while laps.bound > bound + WORTH * laps.total.K:
            bound = laps.bound
            laps = self._with_words_restarted(laps, options)
            self._restart_documents(laps)
            self._keep(self._in_hand, laps)

    def _keep_with_restarts(self, trial: Laps, options: Options) -> bool:
        """Keep an excursion if it is better, after restarts if it is behind by less than these have gained; whether it is."""
        best = self._in_hand
        self._keep(best, trial)
        if self._in_hand is best and trial.bound > best.bound - self._gained_by_restarts:
            self._restart(trial, options)
        return self._in_hand is not best

    def _with_words_restarted(self, laps: Laps, options: Options) -> Laps:
        """The last ascent that gains from words that begin in other topics, the first from those of ``laps``."""
        for _ in range(TUNING.word_restarts if self.moves and isinstance(self.source, BagSource) else 0):
            counts = laps.counts
            if self._laps_left <= 0 or counts is None or laps.total.K == 1:
                break
            assert isinstance(self.source, BagSource)
            start = words_restarted(laps.model, laps.total, self.source, counts, self.executor)
            if start is None:
                break
            again = self._laps(laps.model, (), options, self._in_hand, origin="words")
            again.run(start, counts)
            gain = again.bound - laps.bound
            if gain > 0.0:
                laps = again
            if gain <= max(WORTH, options.tol) * laps.total.K:
                break
        return laps

    def _refresh(self) -> float:
        """What an ascent gains from the topics alone: counts of documents and concentrations may be poor local optima."""
        bound = self.outcome.bound
        self._ascend_alone(self.total, self._removals, self.options)
        if self.outcome.options is not self.options:
            self.outcome.polish(self.options)
        return self.outcome.bound - bound

    def _ascend_alone(
        self, total: Summary, moves: tuple[str, ...], options: Options, first: Model | None = None
    ) -> None:
        """An ascent from topics without what is known of documents.

        first : the model that it begins with, which says how much documents mix topics at first
        """
        if self._laps_left <= 0:
            return
        best = self.outcome
        model = first or self._unmixed or self.model
        again = self._laps(model, moves, options, best, origin="topics alone", patience=TUNING.fresh_patience)
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

    def _may_merge(self) -> bool:
        """Whether topics of the best model may be merged, and ascents follow."""
        return "merge" in self.moves and self.total.K > 1 and self._laps_left > 0

    def _nearly_as_good(self) -> Summary | None:
        """The fewest topics, merged as they are, that lack no more than ascents are compared to."""
        if not self._may_merge():
            return None
        levels = self._levels_in_hand()
        least = levels[0].bound - max(TUNING.coarse_topics, self.options.tol) * self.total.K
        near = [level for level in levels[1:] if level.bound > least]
        return self._merged_to(near[-1]) if near else None

    def _levels_in_hand(self) -> list[Level]:
        """The best model with ever fewer topics, merged as they are."""
        surveyed = self._survey(self._in_hand)
        return levels_of(self._in_hand.model, surveyed.seen.total, surveyed.steps, surveyed.seen.nodes)

    def _merged_to(self, level: Level) -> Summary:
        """The topics of one of the levels of the best model."""
        seen = self._survey(self._in_hand).seen
        return level_start(self._in_hand.model, seen.total, seen.nodes, level)[0]

    def _look(self, laps: Laps, parents: NDArray[np.int64]) -> DocumentSurvey:
        return document_survey(laps.model, laps.total, self.source, self.executor, parents, laps.counts)

    def _gives_up_early(self, K: int) -> bool:
        """Always, also where laps are fast."""
        return True

    def _merges(self, posterior: Posterior) -> list[Step]:
        return hopeful(merges(posterior), TUNING.most_merged)

    def _order(self, losses: Array) -> Sequence[int]:
        """One merge, two, four and so on: all are worth about the same until many are made."""
        return [2**i - 1 for i in range(len(losses).bit_length())]

    def _counts(self, laps: Laps, groups: list[list[int]]) -> Array | None:
        counts = laps.counts
        return None if counts is None else np.stack([counts[group].sum(axis=0) for group in groups])
