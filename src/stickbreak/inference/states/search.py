"""The search for the states of hidden Markov models: excursions of several kinds, on a sample first where rows are many."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...data import SequenceSource
from ...likelihoods import Likelihood
from ...model import Model, Summary
from ...model.learning import OF_LIKELIHOOD
from ...moves import Schedule, states
from ...moves.agglomeration import reduced
from ...moves.blocks import block_states
from ...moves.segments import alike, halved, in_pieces, own_states, regrouped
from ...moves.spectral import spectral_states
from ..descent import Descent, of_states, wide_start
from ..laps import Laps
from ..paths import best_paths
from ..search import Search
from ..state import Options
from .pairs import PairSearch


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_states.py, benchmarks/state_labels.py and benchmarks/hmm_chromatin.py.

    Attributes
    ----------
    patience, at_first : excursions without gain after which there are no more: once one has gained, and before
    coarse : excursions are compared when settled to this multiple of the tolerance
    per_row, coarsest : nats for each state: the tolerance of excursions grows with the rows, up to a limit
    settle : laps before the states of an excursion, or of a given start, must pay
    longer : the same of excursions where rows are not many: states that last two rows part slowly
    long_settle : the same where laps take long: asking whether a removal pays takes as long as a lap
    long_first : laps before excursions there
    longest_excursion, long_removals : laps of an excursion after these, and where laps take long
    hopeless : an excursion is over if it would take more laps than this, each like the last, to reach the model in hand
    most_quiet : quiet laps, after which moves that are left are not tried
    several : states, of which a part is not all
    few : share of the states from which another ascent begins
    blocks, block_rows : from which it begins where that would be one state, and their rows
    many_rows : a search of more begins on a sample
    smaller, sample_rows : a sample has one row in so many, and no fewer than these
    on_sample, on_all_rows : the patience on a sample, and on all rows after a sample
    long_lap : rows times pairs of states, beyond which a lap takes so long that there are few excursions
    longest_lap : the same of an excursion with phrases in place of rows, beyond which there are none
    path_rows : of more rows no path is looked at, and there are no excursions
    """

    patience: int = 14
    at_first: int = 8
    coarse: float = 10.0
    per_row: float = 1e-4
    coarsest: float = 0.5
    settle: int = 5
    longer: int = 15
    long_settle: int = 20
    long_first: int = 10
    longest_excursion: int = 25
    long_removals: int = 10
    hopeless: float = 10.0
    most_quiet: int = 2
    several: int = 3
    few: float = 0.3
    blocks: int = 4
    block_rows: int = 20
    many_rows: int = 120_000
    smaller: int = 3
    sample_rows: int = 60_000
    on_sample: int = 3
    on_all_rows: int = 4
    long_lap: int = 1 << 28
    longest_lap: int = 1 << 31
    path_rows: int = 1 << 23


TUNING = Tuning()


class Kind(NamedTuple):
    """A kind of excursions.

    origin : what they begin with, as the history shows it
    change : makes a start of the model in hand, or None where there is none of the kind
    given : whether the prior of rows is again as it was before any was learnt
    slow : whether the states part slowly: where rows are not many, the tolerance does not grow with them
    """

    origin: str
    change: Callable[[Laps], Summary | None]
    given: bool = False
    slow: bool = False


@dataclass
class StateSearch(Search):
    """Find the best hidden Markov model that moves can reach (see `Search`).

    Excursions are of several kinds, in turn: where rows repeat, pairs of nearby rows tell the states
    (`stickbreak.moves.spectral`); the segments of the best path are merged anew into states, all of them or those of
    some states that are alike; states are split by their rows; some segments become states of their own; all states of
    another ascent are added, which began with few, so that both together find which of them explain what best; or some states
    are in two at random.  What does not pay is then merged or deleted.  When none has paid for a while, all states are halved,
    others are in two at random, then all rows are given to the states as if they had no neighbours, and then the prior of rows
    is learnt anew; where none of these pays, the search ends.

    Where many rows repeat and pairs of them show so many states that laps take long, `stickbreak.inference.states.pairs`
    comes first, and a few excursions follow if it has found so few that laps are quick.

    Where other rows are many, the search begins on a sample, which has a smaller one if its rows are many, and a few excursions
    follow on more rows: they show states that a sample cannot.  Where laps take long, on a sample each kind has its turns once;
    on all rows all states are halved after a few laps, and then some are in two at random.  The prior of rows is learnt anew
    at the end of the former, and after each of the latter that has paid, since states settle under the prior of fewer.  If the
    number is given there are no excursions on all rows: there are as many from the beginning (`stickbreak.inference.descent`).

    at_first, patience : excursions without gain after which there are no more: before one has paid, and after
    """

    at_first: int = TUNING.at_first
    patience: int = TUNING.patience
    sampled: bool = False  # whether it began with the outcome of a search of a sample
    unlearnt: Likelihood = field(init=False)  # with the prior as it was before any was learnt
    _undivided: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_), init=False)

    def __post_init__(self) -> None:
        self.unlearnt = self.model.likelihood

    def run(self, start: Summary) -> None:
        """Search from the parameters that ``start`` implies; the outcome is ``best``."""
        many = start.K == 1 and "birth" in self.moves and self.source.n_rows > TUNING.many_rows
        given = self.model.allocation.max_clusters < sys.maxsize
        if many and given:
            descent = Descent(self.model, self._sequences, self.session.aside(), self.rng.spawn(1)[0], self.options)
            start = descent.run(wide_start(self.model, self._sequences, self.rng.spawn(1)[0]))
            self.model = descent.model
        elif many and self._laps_left > 1 and self._begins_with_pairs():
            if not self._few_excursions(self.total.K):
                self._explore_again()
            self.outcome.polish(self.options.at_last)
            return
        elif many and self._laps_left > 1:
            options = self.options if self.sample_rows else self._coarse
            sampled = self._sampled(max(TUNING.sample_rows, self.source.n_rows // TUNING.smaller), options)
            sampled.at_first = sampled.patience = TUNING.on_sample
            start = self._begin_with(sampled, start)
            self.sampled = True
        may = self.source.n_rows <= TUNING.path_rows and not (many and given)
        if may and self.sampled and self._few_excursions(start.K) and self._quick(2.0 * start.K) and self._may_grow():
            self._begin_briefly(start)
        else:
            self.begin(start)
        if may and not self._few_excursions(self.total.K):
            if self.sampled and not self.sample_rows:
                self._explore_again()
            else:
                self._explore()
        elif may and self.sampled:
            self._explore_long()
        self.outcome.polish(self.options.at_last)

    def _begins_with_pairs(self) -> bool:
        """Whether pairs of rows show so many states that laps take long; the search is then one of starts from pairs."""
        source = self._sequences
        if self.sample_rows or source.codes is None or source.n_rows > TUNING.path_rows:
            return False
        most = int(np.sqrt(TUNING.longest_lap / source.n_steps))
        rng = self.rng.spawn(1)[0]
        pairs = PairSearch(self.model, source, self.moves, self.session, rng, self._coarse)
        starts = [start for start in pairs.starts(most) if self._is_long(start.K)]
        if not starts:
            return False
        try:
            pairs.cross(starts)
        finally:
            self.best, self.trial = pairs.best, pairs.trial
        return True

    def begin(self, start: Summary, most_quiet: int = sys.maxsize) -> None:
        """Ascend once with all moves, once given states have settled: what comes before excursions.

        most_quiet : quiet laps in a row, after which moves that are left are not tried
        """
        settle = TUNING.settle if start.K > 1 else 0
        self.best = self._laps(self.model, self.moves, self._coarse, settle=settle, most_quiet=most_quiet)
        self.best.run(start)

    def go_on(self, options: Options) -> None:
        """Go on with that ascent, unless it is over, with other options."""
        self.options = options
        if not self.converged and self._laps_left > 0:
            self._in_hand.polish(self._coarse)

    def _is_long(self, K: int) -> bool:
        """Whether laps with so many states take so long that there are few excursions."""
        rows = self.source.n_rows
        return rows > TUNING.many_rows and rows * K**2 > TUNING.long_lap

    def _few_excursions(self, K: int) -> bool:
        """Whether that is so on all rows."""
        return not self.sample_rows and self._is_long(K)

    def _quick(self, K: float) -> bool:
        """Whether laps with so many states are not too long for an excursion."""
        return self.source.n_steps * K**2 <= TUNING.longest_lap

    def _begin_briefly(self, start: Summary) -> None:
        """A few laps without moves, which suffice before an excursion that changes all states."""
        few = replace(self._coarse, max_laps=min(self.options.max_laps, len(self.history) + TUNING.long_first))
        self.best = self._laps(self.model, self._removals, few, settle=TUNING.long_first)
        self.best.run(start)

    def _explore_long(self) -> None:
        """The excursions where laps take long: halves and pieces, and after each that pays the prior is learnt anew."""
        for kind, times in ((Kind("halves", self._halved), 2.0), (Kind("pieces", self._in_pieces), 4.0 / 3.0)):
            if self._quick(times * self.total.K) and self._may_grow() and self._pays(kind) and self._may_grow():
                self._pays(self._anew)

    @property
    def _many(self) -> bool:
        """Whether rows are so many that the search begins, or began, on a sample."""
        return self.sample_rows > 0 or self.sampled

    @property
    def _sequences(self) -> SequenceSource:
        assert isinstance(self.source, SequenceSource)
        return self.source

    @property
    def _coarse(self) -> Options:
        """The options of excursions: of many rows there is more to gain, and the tolerance is larger."""
        return replace(
            self.options,
            tol=max(TUNING.coarse * self.options.tol, min(TUNING.per_row * self.source.n_rows, TUNING.coarsest)),
        )

    def _explore_again(self) -> None:
        """Excursions on all rows, after a search of a sample of them or from pairs of rows, which has found most states."""
        self.sampled = True
        self.at_first = self.patience = TUNING.on_all_rows
        self._explore()

    def _explore(self) -> None:
        """Excursions of all kinds in turn, until none pays, not even those that change all states at once.

        Where laps take long, the prior is learnt anew in place of these, and that is all.
        """
        kinds = cycle(self._kinds())
        patience = self.at_first
        while self._may_grow():
            self._in_turn(kinds, patience)
            if self._is_long(self.total.K) and self._may_grow():
                self._pays(self._anew)
                return
            paid = [self._pays(kind) for kind in self._last_kinds()]
            if not any(paid):
                return
            patience = self.patience

    def _in_turn(self, kinds: Iterator[Kind], patience: int) -> None:
        """Excursions of these kinds, until so many in a row have not paid, or ``patience`` once one has."""
        failures = 0
        while self._may_grow() and failures < patience:
            paid = self._pays(next(kinds))
            if paid:
                failures = 0
                patience = self.patience
            elif paid is not None:
                failures += 1

    def _pays(self, kind: Kind) -> bool | None:
        """Whether an excursion of a kind gains more than an ascent may leave undone; None where there is none of the kind."""
        before = self.outcome.bound
        start = kind.change(self.outcome)
        if start is None:
            return None
        self._excursion(start, kind.origin, kind.given, kind.slow)
        least = max(self.options.tol, min(self._coarse.tol, TUNING.coarsest))
        return self.outcome.bound - before > least * self.outcome.total.K

    def _kinds(self) -> list[Kind]:
        """What excursions begin with, and how they are made, in their order.

        Of many rows new states are what excursions find most, and those of a sample are not found anew on all rows.
        """
        anew = [Kind("regrouped", self._regrouped), Kind("partly regrouped", self._partly_regrouped)]
        added = [
            Kind("splits", self._split),
            Kind("segments", self._with_segments),
            Kind("another ascent", self._with_another),
            Kind("pieces", self._in_pieces, slow=True),
        ]
        if self._sequences.codes is not None and (self.sample_rows or not self.sampled):
            anew.insert(0, Kind("pairs of rows", self._from_pairs))
            added.append(Kind("pairs added", self._with_pairs))
        if self._many:
            return [kind for pair in zip(added, cycle(anew)) for kind in pair]
        return [kind for pair in zip(cycle(anew), added) for kind in pair]

    @property
    def _anew(self) -> Kind:
        return Kind("prior as given", self._learning_anew, given=True)

    def _last_kinds(self) -> list[Kind]:
        """Those that are tried once all others fail: they change all states at once.

        On all rows after a sample states are not halved: laps take four times as long then.
        """
        last = [Kind("softened", self._softened), self._anew]
        if not self._many:
            last = [*2 * [Kind("pieces", self._in_pieces, slow=True)], *last]
        return last if self.sampled and not self.sample_rows else [Kind("halves", self._halved), *last]

    def _excursion(self, start: Summary, origin: str, given: bool = False, slow: bool = False) -> None:
        """Lap from a start, merge and delete what does not pay, and keep the outcome if it is better.

        given, slow : see `Kind`
        """
        if self._laps_left <= 0:
            return
        best = self.outcome
        coarse = self._coarse
        model = self.model if best.total.K == 1 else best.model  # of one state nothing is learnt about transitions
        if given:
            model = replace(model, likelihood=self.unlearnt)
        start = reduced(model, start, model.room)
        if model.allocation.max_clusters < start.K:
            start = self._settled(model, start, replace(coarse, max_laps=2 * TUNING.settle))
        settle = TUNING.settle if self._many else TUNING.longer
        longest = TUNING.longest_excursion
        if self._few_excursions(start.K):
            settle = TUNING.long_settle
            longest = TUNING.long_removals
        limit = min(self.options.max_laps, len(self.history) + settle + longest)
        tol = TUNING.coarse * self.options.tol if slow and not self._many else coarse.tol
        options = replace(coarse, max_laps=limit, tol=tol)
        trial = self._laps(
            model, self._removals, options, best, settle, origin, TUNING.most_quiet, patience=TUNING.hopeless
        )
        trial.run(model.ordered(start))
        self._keep(best, trial)

    def _settled(self, model: Model, start: Summary, options: Options) -> Summary:
        """More states than there may be, after some laps, merged until there are as many as may be, in two steps."""
        wide = of_states(model, start.K)
        most = model.allocation.max_clusters
        rng = self.rng.spawn(1)[0]
        for K in (start.K, int(np.sqrt(start.K * most))):
            start = reduced(wide, start, K)
            laps = Laps(wide, self.source, Schedule((), model.kind.recipe), self.session.aside(), rng, options)
            laps.run(wide.ordered(start))
            start = laps.total
        return reduced(wide, start, most)

    def _split(self, laps: Laps) -> Summary | None:
        promising = [(k, children) for _, k, children in self._promising_splits(laps)]
        found: Summary = states.split(laps.total, promising)
        return found if promising else None

    def _from_pairs(self, laps: Laps) -> Summary | None:
        return spectral_states(laps.model, self._sequences, self.rng.spawn(1)[0])

    def _with_pairs(self, laps: Laps) -> Summary | None:
        found = self._from_pairs(laps)
        return None if found is None else states.side_by_side(laps.total, found)

    def _with_segments(self, laps: Laps) -> Summary:
        path = self._path(laps)
        rng = self.rng.spawn(1)[0]
        found: Summary = states.side_by_side(
            laps.total, own_states(laps.model, self._sequences, path, laps.total.K, rng)
        )
        return found

    def _regrouped(self, laps: Laps) -> Summary:
        among = np.ones(laps.total.K, np.bool_)
        return regrouped(laps.model, self._sequences, self._path(laps), among, self.rng.spawn(1)[0])

    def _partly_regrouped(self, laps: Laps) -> Summary | None:
        if TUNING.several > laps.total.K:
            return None
        rng = self.rng.spawn(1)[0]
        return regrouped(laps.model, self._sequences, self._path(laps), alike(laps.model, laps.total, rng), rng)

    def _halved(self, laps: Laps) -> Summary | None:
        return halved(laps.model, self._sequences, self._path(laps), self.rng.spawn(1)[0])

    def _in_pieces(self, laps: Laps) -> Summary:
        """A third of the states in two: random ones, those of more rows rather than others, and others the next times."""
        K = laps.total.K
        if len(self._undivided) != K or not self._undivided.any():
            self._undivided = np.ones(K, np.bool_)
        weights = np.where(self._undivided, laps.total.N, 0.0)
        n = min(-(-K // 3), int(self._undivided.sum()))
        rng = self.rng.spawn(1)[0]
        among = np.isin(np.arange(K), rng.choice(K, n, replace=False, p=weights / weights.sum()))
        self._undivided &= ~among
        return in_pieces(laps.model, self._sequences, self._path(laps), among, rng)

    def _learning_anew(self, laps: Laps) -> Summary | None:
        """The states in hand, whose prior of rows is learnt anew; None where none is learnt.

        Under a learnt prior, a symbol of which a state has none may be so improbable there that it never gets any.
        """
        names = self.options.learn + self.options.learn_late
        learns = any(name.startswith(OF_LIKELIHOOD) for name in names)
        return laps.total if learns and laps.total.K > 1 else None

    def _softened(self, laps: Laps) -> Summary | None:
        return states.softened(laps.total) if laps.total.K > 1 else None

    def _with_another(self, laps: Laps) -> Summary:
        few = int(TUNING.few * laps.total.K)
        if few > 1:
            self._excursion(reduced(laps.model, laps.total, few), "few states")
        else:
            self._excursion(
                block_states(laps.model, self._sequences, TUNING.blocks, TUNING.block_rows, self.rng.spawn(1)[0]),
                "blocks",
            )
        if self.trial is not None:
            self._excursion(self._regrouped(self.trial), "regrouped")
        found: Summary = states.side_by_side(laps.total, laps.total if self.trial is None else self.trial.total)
        return found

    def _path(self, laps: Laps) -> NDArray[np.intp]:
        """The most probable state of every row, given all rows, (T,)."""
        return best_paths(laps.model, laps.total, self._sequences, self.executor)
