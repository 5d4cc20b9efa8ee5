"""The search for the clusters of a mixture whose prior is learnt along with them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..data import Chunk
from ..likelihoods.features import Rows
from ..model import Model, Summary
from ..model.learning import OF_LIKELIHOOD
from ..model.local import responsibilities_of
from .crossing import Assignment, crossed
from .init import RowsByLevels, from_responsibilities, from_seeds, one_cluster
from .laps import Laps
from .linked_columns import linked_columns
from .row_search import RowSearch
from .search import PSEUDO_COUNTS
from .state import Options

Rival = Assignment


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_number.py.

    Attributes
    ----------
    seeds : at least so many, from which the first ascent with a prior that is learnt begins
    linked_rows : at most, that show which columns go together
    settle : laps before the clusters of rivals must pay: the prior is learnt meanwhile
    wider : times as many groups of rows as categories show beyond chance
    affordable : numbers that a lap looks at, beyond which there are no ascents from distant rows
    rival : the same for the ascents from clusters that rivals found, one for each
    more : times as many seeds as clusters were found
    crossed : times as many seeds, and pieces, as clusters in hand, in turn, for models whose clusters those are crossed with
    fine : times the tolerance, to which ascents from pieces settle
    least : nats that these ascents must gain: others have come to the same clusters
    agree : of them that come to the same number of clusters and the same bound, after which there are no more
    tries : of these in a row that come to nothing, after which there are no more
    again : times that whatever has failed is tried again with other draws, the last time that it gained something
    doubtful : nats for each cluster more than one: where one with the same prior loses less, several are doubtful
    """

    seeds: int = 10
    linked_rows: int = 5000
    settle: int = 6
    wider: tuple[int, ...] = (1, 3)
    affordable: int = 1 << 29
    rival: int = 1 << 31
    more: int = 2
    crossed: tuple[int, ...] = (2, 4, 8)
    fine: float = 20.0
    least: float = 0.1
    agree: int = 2
    tries: int = 5
    again: int = 3
    doubtful: float = 10.0


TUNING = Tuning()


@dataclass
class LearningSearch(RowSearch):
    """Find the best mixture and its prior, from one cluster where the start is that.

    A prior learnt from one cluster makes that cost nothing and bars every split, and the default prior may bar what a learnt
    one allows.  So where a search begins, on the smallest sample, several ascents compete, and that with the highest bound
    goes on: from one cluster with the prior as it is, then learnt; from the clusters that rivals found; and from distant
    rows, twice as many as there are clusters in hand, learning from the first lap, until more do not help; from groups of rows
    whose categories occur together more often than by chance (`stickbreak.moves.correspondence`); and from distant rows with
    clusters that are alike in all columns but those that go together (`linked_columns`).  Starts of categories have some laps
    under a smoothed prior first (`PSEUDO_COUNTS`).  The rounds that follow learn all along.

    Where laps take long, there are one from one cluster, which learns once no more clusters are born, and those from what
    rivals found.  One cluster that is left of all rows is split with the prior as it was, too: more rows may show what a
    sample did not.

    When nothing else helps and laps are quick, the best model is crossed with others (`stickbreak.inference.crossing`), each
    an ascent from seeds, or, every other time, from such groups of rows.

    rivals : the responsibilities (n, K) of rows X (n, D) according to other models, such as those of simpler families
    restarts : whether ascents from elsewhere compete when the rounds are over: not where a start was given, or only some moves
    """

    rivals: Sequence[Rival] = ()
    restarts: bool = False
    given: Model | None = None  # with the prior as it was

    def __post_init__(self) -> None:
        self.given = self.given or self.model

    def follow(self, rival: Rival) -> None:
        """Ascend from the clusters that a rival found, with merges and deletes, and no further."""
        start = self._found_by(rival)
        followed = self._laps(self.model, self._removals, self._coarse(start.K), settle=TUNING.settle)
        self.best = followed
        followed.run(start)
        if followed.total.K == 1:
            return
        one = self._compete(followed.model, one_cluster(followed.model), self.options)
        if one is not None and self._doubtful(followed) and not followed.beats(one):
            self.best = one

    def _sampled(self, rows: int, options: Options) -> Self:
        return replace(super()._sampled(rows, options), rivals=self.rivals, restarts=self.restarts, given=self.given)

    def _improve(self) -> None:
        """The rounds and crossings, then what has failed again, with other draws, until that gains nothing several times."""
        super()._improve()
        in_vain = 0
        while self.restarts and in_vain < TUNING.again and not self._takes_long(self._in_hand.total.K):
            best = self._in_hand
            bound = best.bound
            least = self._worthwhile(best)
            if in_vain == 0 and not self._cross():
                break
            for change in self._changes:
                change.in_vain = -np.inf
            super()._improve()
            in_vain = 0 if self._in_hand.bound - bound > least else in_vain + 1

    def _begin(self, start: Summary, options: Options) -> None:
        if start.K > 1 or self._found_on_sample > 0 or not options.learn or "birth" not in self.moves:
            super()._begin(start, options)
            return
        if not self._affords(TUNING.seeds):
            super()._begin(start, replace(options, learn=(), learn_late=options.learn))
            if self._in_hand.total.K == 1:
                self._compete(self._in_hand.model, self._in_hand.total, options)
            self._compete_from_rivals(options)
            return
        super()._begin(start, replace(options, learn=()))
        self._learn()
        self._compete_from_rivals(options)
        self._compete_from_seeds(self.model, options)
        self._compete_from_levels(options)
        narrow = self._of_linked_columns()
        if narrow is not None:
            self._compete_from_seeds(narrow, options)

    def _learn(self) -> None:
        """An ascent that learns, from the clusters in hand; settled, so that others must be better by what clusters are worth.

        Where several are doubtful, one learns before: a prior so narrow that all clusters are alike costs nothing, and several
        that are alike explain rows a little better than one.
        """
        best = self._in_hand
        if self._doubtful(best):
            self._compete(best.model, one_cluster(best.model), self.options)
        self._compete(best.model, best.total, self.options)

    def _doubtful(self, laps: Laps) -> bool:
        """Whether several clusters are hardly better than one with the same prior."""
        total = laps.total
        if total.K == 1:
            return False
        N = total.N.sum(keepdims=True)
        S = total.S.sum(axis=0, keepdims=True)
        one = replace(total.take([0]), N=N, S=S, H=np.zeros(1))
        return laps.bound - laps.model.bound(one) < TUNING.doubtful * (total.K - 1)

    def _compete_from_seeds(self, model: Model, options: Options) -> None:
        """Ascents from ever more distant rows, until more do not help."""
        better = True
        while better and self._laps_left > 0:
            seeds = min(max(TUNING.seeds, TUNING.more * self._in_hand.total.K), model.max_clusters)
            if not self._affords(seeds):
                break
            start = self._smoothed(model, self._seeds(model, seeds), options)
            better = self._compete(model, start, options) is self._in_hand

    def _compete_from_levels(self, options: Options) -> None:
        """Ascents from groups of rows whose categories occur together more often than by chance; from more, if that helps."""
        for wider in TUNING.wider:
            found = self._grouped(self.model, wider)
            if found is None or not self._affords(found.K):
                return
            if self._compete(self.model, self._smoothed(self.model, found, options), options) is not self._in_hand:
                return

    def _grouped(self, model: Model, wider: int) -> Summary | None:
        """Groups of rows whose categories occur together more often than by chance."""
        rows = self._rows_by_levels
        return None if rows is None else model.ordered(rows.grouped(model, self.rng.spawn(1)[0], wider))

    @cached_property
    def _rows_by_levels(self) -> RowsByLevels | None:
        """What categories tell of rows, where there are such."""
        D = self.source.n_columns
        likelihood = self.model.likelihood
        nominal = likelihood.nominal(D) & likelihood.describes(D)
        return RowsByLevels.of(self.model, self.source, nominal, self.rng.spawn(1)[0]) if nominal.sum() > 1 else None

    def _of_linked_columns(self) -> Model | None:
        """The model whose clusters are alike in columns that go together with no other; None where that is no help."""
        total = self._in_hand.total
        sample = self.source.sample(TUNING.linked_rows, self.rng.spawn(1)[0])
        likelihood = self.model.likelihood
        rows, weights = sample.take(sample.present())
        X = likelihood.on_own_scale(rows)
        learnt = [name.removeprefix(OF_LIKELIHOOD) for name in self.options.learn]
        if likelihood.narrowed(np.ones(X.shape[1], np.bool_), learnt, total.N, total.S) is None:
            return None
        linked = linked_columns(X, weights)
        if linked is None or linked.all():
            return None
        narrow = likelihood.narrowed(linked, learnt, total.N, total.S)
        return None if narrow is None else replace(self.model, likelihood=narrow)

    def _split_again(self, laps: Laps, options: Options) -> bool:
        """Of one cluster with the prior as it was: one that is learnt from it bars every split."""
        if laps.total.K > 1 or not options.learn or self.given is None or not self._may_grow():
            return super()._split_again(laps, options)
        alone = self._laps(self.given, (), replace(options, learn=()), self._in_hand, origin="splits")
        alone.run(laps.total)
        drawn = self._survey(alone).seen.drawn or alone.drawn
        return self._split_from(alone, self._telling_splits(alone, drawn), options)

    def _cross(self) -> bool:
        """Ascents from elsewhere, and from the pieces of their clusters and those of the best model; whether any differed."""
        in_vain = 0
        agreed = 0
        differed = False
        fine = self._fine
        for turn in count():
            best = self._in_hand
            most = self._most_crossed(turn)
            if in_vain == TUNING.tries or agreed == TUNING.agree:
                break
            in_vain += 1
            if self._takes_long(most):
                continue
            start = self._elsewhere(best.model, most, turn)
            other = self._compete(best.model, start, self._coarse(most), origin="seeds", least=TUNING.least)
            if other is None:
                break
            if other.total.K == best.total.K and abs(other.bound - best.bound) < fine.tol * best.total.K:
                agreed += 1
                continue
            differed = True
            self._cross_with(best, other, fine, most, self._pseudo_counts(turn))
            if self._in_hand.bound - best.bound > self._worthwhile(best):
                in_vain = 0
        return differed

    def _most_crossed(self, turn: int) -> int:
        """How many distant rows an ascent begins from, and the most pieces that another does."""
        best = self._in_hand
        times = TUNING.crossed[turn % len(TUNING.crossed)]
        return min(max(TUNING.seeds, times * best.total.K), best.model.max_clusters)

    def _elsewhere(self, model: Model, seeds: int, turn: int) -> Summary:
        """Where an ascent begins whose clusters are crossed: groups of rows by their categories every other turn, or seeds."""
        found = self._grouped(model, 1 + turn // 2 % max(TUNING.wider)) if turn % 2 == 0 else None
        start = self._seeds(model, seeds) if found is None else found
        return self._smoothed(model, start, self._coarse(start.K), self._pseudo_counts(turn))

    def _pseudo_counts(self, turn: int) -> float:
        """Of an outcome under a smoothed prior: others in every other pair of turns."""
        return PSEUDO_COUNTS[turn // 2 % len(PSEUDO_COUNTS)]

    @property
    def _fine(self) -> Options:
        """How well ascents from pieces settle."""
        return replace(self.options, tol=TUNING.fine * self.options.tol)

    def _cross_with(
        self, best: Laps, other: Laps, options: Options, most: int, least: float = PSEUDO_COUNTS[0]
    ) -> None:
        """An ascent from the pieces, ``most`` at most, into which the clusters of two ascents cut each other.

        least : pseudo-counts of an outcome under a smoothed prior, which comes first
        """
        both = self._assignment(best), self._assignment(other)
        pieces = crossed(best.model, *both, self.source, self.executor, most)
        if pieces.K > best.total.K:
            start = self._smoothed(best.model, best.model.ordered(pieces), options, least)
            self._compete(best.model, start, options, origin="crossing", least=TUNING.least)

    def _assignment(self, laps: Laps) -> Assignment:
        """The responsibilities of rows under the parameters of an ascent."""
        parameters = laps.model.parameters(laps.total, self.source.dtype)
        return partial(responsibilities_of, laps.model.likelihood, parameters)

    def _seeds(self, model: Model, K: int) -> Summary:
        """So many distant rows, each with those of a sample that are nearest."""
        return model.ordered(from_seeds(model, self.source, K, True, self.rng.spawn(1)[0]))

    def _affords(self, K: int) -> bool:
        """Whether laps with K clusters are quick enough for ascents that may come to nothing."""
        return self._numbers(K) <= TUNING.affordable

    def _compete_from_rivals(self, options: Options) -> None:
        """Ascents from the clusters that each rival found."""
        for rival in self.rivals:
            found = self._found_by(rival)
            affordable = affords_rival(self.source.n_rows, found.K, self.model.likelihood.n_statistics)
            if self.model.max_clusters >= found.K and affordable:
                self._compete(self.model, found, options, TUNING.settle)

    def _found_by(self, rival: Rival) -> Summary:
        """The clusters that a rival found."""
        found = from_responsibilities(self.model, self.source, partial(_of_rival, rival), self.executor)
        return self.model.ordered(found)

    def _compete(
        self,
        model: Model,
        start: Summary,
        options: Options,
        settle: int = 0,
        origin: str = "start",
        least: float = 0.0,
    ) -> Laps | None:
        """An ascent that learns, with merges and deletes; births can wait.  None where no laps are left.

        It is in hand if it is better than the best model, by more than ``least`` nats.
        """
        best = self._in_hand
        if self._laps_left <= 0:
            return None
        trial = self._laps(model, self._removals, options, best, settle=settle, origin=origin)
        if trial.floor is not None:
            trial.floor = trial.floor._replace(least=least)
        trial.run(start)
        self._keep(best, trial)
        return trial


def _of_rival(rival: Rival, chunk: Chunk, X: Rows) -> NDArray[np.floating]:
    """The responsibilities of the rows of a chunk according to a rival."""
    return rival(X)


def affords_rival(rows: int, K: int, F: int) -> bool:
    """Whether laps over so many rows of F statistics are quick enough for an ascent from the K clusters that a rival found."""
    return rows * K * F <= TUNING.rival
