"""Ascents from topics of documents: what all parts of a search for topics share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...allocations.topics import TopicPrior
from ...model import Model, Posterior, Summary
from ...moves.agglomeration import Level, Step, hopeful, level_start, levels_of, merges
from ...moves.better import WORTH
from ..laps import Laps
from ..merging import MergingSearch
from ..state import Options
from .speed import Speed
from .survey import DocumentSurvey, document_survey

Array = NDArray[np.floating]

ALPHA = "document_concentration"  # as it is named among what is learnt


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py and benchmarks/topics.py.

    Attributes
    ----------
    fresh_patience : laps, each like the last, in which an ascent from the topics alone must reach the model in hand
    refreshes : ascents in a row from the topics alone, where laps are fast
    most_merged : merges that are looked at, beyond those that gain most together
    """

    fresh_patience: float = 30.0
    refreshes: int = 4
    most_merged: int = 100


TUNING = Tuning()


@dataclass
class TopicAscents(MergingSearch[DocumentSurvey]):
    """A search that ascends from topics, and has the best model (see `Search` and `MergingSearch`).

    Its parts say what ascents begin with and which are kept.  They begin them by `ascend`, `ascend_alone`, `go_on` and by
    merges, and better the model in hand by `keep`.  What they know beside that model is their own.

    unmixed : the model that an ascent from documents of one topic each began with, if that led to the best; else None
    """

    unmixed: Model | None = field(default=None, init=False)

    @cached_property
    def speed(self) -> Speed:
        """How long laps take."""
        return Speed.of(self.source)

    @property
    def most(self) -> int:
        """The most topics: no more than documents, which could have one each."""
        return min(self.model.max_clusters, self.source.n_rows)

    def is_fast(self) -> bool:
        """Whether laps with the topics in hand are fast; otherwise they take long."""
        return self.speed.is_fast(self.total.K)

    def takes_seconds(self) -> bool:
        """Whether a lap with the topics in hand takes so long that it takes seconds."""
        return self.speed.takes_seconds(self.total.K)

    def may_lap(self) -> bool:
        """Whether there are laps left."""
        return self._laps_left > 0

    def may_grow(self) -> bool:
        """Whether topics may be born, and ascents follow."""
        return "birth" in self.moves and self.may_lap()

    def may_remove(self) -> bool:
        """Whether ascents may have merges or deletes."""
        return bool(self._removals)

    def may_merge(self) -> bool:
        """Whether topics of the best model may be merged, and ascents follow."""
        return "merge" in self.moves and self.total.K > 1 and self.may_lap()

    def begin(
        self,
        start: Summary,
        options: Options,
        *,
        moves: tuple[str, ...] = (),
        patience: float = np.inf,
        goal: float = -np.inf,
    ) -> Laps:
        """The first ascent, which is given up if a bound is out of reach.

        patience, goal : attributes of `Laps`
        """
        first = self.best = self._laps(self.model, moves, options, patience=patience)
        first.goal = goal
        first.run(start)
        first.goal = -np.inf
        return first

    def ascend(
        self,
        model: Model,
        start: Summary,
        options: Options,
        origin: str,
        *,
        counts: Array | None = None,
        removes: bool = False,
        settle: int = 0,
        patience: float = np.inf,
        draws: bool | None = None,
    ) -> Laps:
        """An excursion: an ascent from a change of the best model.

        Parameters
        ----------
        model : that it begins with
        start : the topics that it begins with
        origin : what was changed, as the history shows it
        counts : (K, N) of the documents, where they are known
        removes : whether it has merges and deletes
        settle, patience : attributes of `Laps`
        draws : whether laps draw rows to represent the topics, if not as ever
        """
        moves = self._removals if removes else ()
        best = self._in_hand
        trial = self._laps(model, moves, options, best, origin=origin, settle=settle, patience=patience, draws=draws)
        trial.run(start, counts)
        return trial

    def ascend_alone(
        self, total: Summary, options: Options, *, first: Model | None = None, removes: bool = False
    ) -> None:
        """An excursion from topics without what is known of documents, kept if it is better.

        first : the model that it begins with, which says how much documents mix topics at first
        """
        if not self.may_lap():
            return
        model = first or self.unmixed or self.model
        patience = TUNING.fresh_patience
        self.keep(self.ascend(model, total.as_start, options, "topics alone", removes=removes, patience=patience))

    def go_on(self, options: Options, births: bool) -> Laps:
        """An excursion from the best model as it is, with all moves, or at last with merges and deletes."""
        best = self._in_hand
        moves, settle = (self.moves, 0) if births else (self._removals, self._laps_left)
        last = self._laps(best.model, moves, options, best, settle=settle, origin="settled", draws=births)
        last.run(best.total, best.counts)
        return last

    def keep(self, trial: Laps) -> bool:
        """Keep an excursion if it is better than the best model; whether it is."""
        return self._keep(self._in_hand, trial) > 0.0

    def refresh(self) -> float:
        """What an ascent gains from the topics alone: counts of documents and concentrations may be poor local optima."""
        bound = self.outcome.bound
        self.ascend_alone(self.total, self.options, removes=True)
        if self.outcome.options is not self.options:
            self.outcome.polish(self.options)
        return self.outcome.bound - bound

    def settle(self) -> None:
        """Ascents from the topics alone and from fewer of them, until these gain nothing, or too little to begin again."""
        gain = np.inf
        while gain > WORTH * self.total.K:
            tries = TUNING.refreshes if self.is_fast() else 1
            while tries > 0 and self.refresh() > WORTH * self.total.K:
                tries -= 1
            bound = self.outcome.bound
            while self.merge_through_losses(self.options):
                continue
            gain = self.outcome.bound - bound

    def split(self, laps: Laps) -> Summary | None:
        """The topics of an ascent, each in two where that has a chance; None where it has not."""
        return self._with_splits(laps, self._promising_splits(laps))

    def merge_through_losses(self, options: Options) -> bool:
        """Ascents from fewer topics than the best model has, also through losses; whether one is better."""
        return self._merge_more(self._in_hand, options)

    def merge_all(self, laps: Laps, options: Options) -> Laps:
        """Merge what is better merged as it is, again after each ascent from there that raises the bound; the last of them."""
        while self.may_lap():
            self._merge_more(laps, options, through_losses=False)
            merged = self._merged
            if merged is None or merged.bound <= laps.bound:
                break
            laps = merged
        return laps

    def levels(self) -> list[Level]:
        """The best model with ever fewer topics, merged as they are."""
        surveyed = self._survey(self._in_hand)
        return levels_of(self._in_hand.model, surveyed.seen.total, surveyed.steps, surveyed.seen.nodes)

    def merged_to(self, level: Level) -> Summary:
        """The topics of one of the levels of the best model."""
        seen = self._survey(self._in_hand).seen
        return level_start(self._in_hand.model, seen.total, seen.nodes, level)[0]

    def try_mixing(self, attempt: Callable[[], None]) -> None:
        """An attempt at a better model in which documents mix topics; where it succeeds, ascents begin with the first alpha."""
        best = self._in_hand
        attempt()
        if self._in_hand is not best:
            self.unmixed = None

    @property
    def learns_alpha(self) -> bool:
        """Whether alpha is learnt."""
        return ALPHA in self.options.learn

    @property
    def learnt_alpha(self) -> float:
        """The alpha of the best model, zero where none is learnt: of one topic nothing is learnt about it."""
        if self.best is None or not self.learns_alpha or self.total.K == 1:
            return 0.0
        return alpha_of(self.outcome.model)

    def with_alpha(self, model: Model, alpha: float) -> Model:
        """The model with another alpha, where that is learnt."""
        if not self.learns_alpha:
            return model
        allocation = model.allocation
        assert isinstance(allocation, TopicPrior)
        return replace(model, allocation=allocation.with_document_concentration(alpha))

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


def alpha_of(model: Model) -> float:
    """Its alpha."""
    allocation = model.allocation
    assert isinstance(allocation, TopicPrior)
    return float(allocation.document_concentration)
