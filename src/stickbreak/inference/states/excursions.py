"""Excursions among states: one from its start to the verdict, and the turns of kinds until none has paid for a while."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import cycle
from typing import Any

import numpy as np

from ...data import SequenceSource
from ...model import Model, Summary
from ...model.learning import OF_LIKELIHOOD
from ...moves import Schedule, states
from ...moves.agglomeration import reduced
from ..descent import of_states
from ..laps import Laps
from ..search import Search
from ..state import Options
from .kinds import USUAL, ExcursionKind, ExcursionKinds, Terms
from .sizes import has_long_laps, has_many_rows


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_states.py and benchmarks/state_labels.py.

    Attributes
    ----------
    patience, at_first : excursions without gain after which there are no more: once one has gained, and before
    coarse : excursions are compared when settled to this multiple of the tolerance
    per_row, coarsest : nats for each state: the tolerance of excursions grows with the rows, up to a limit
    settle : laps before the states of an excursion, or of a given start, must pay
    longer : the same of excursions whose states part slowly, and of all excursions where rows are not many: states may last two
        rows
    long_settle : the same where laps take long: asking whether a removal pays takes as long as a lap
    longest_excursion, long_removals : the most laps of an excursion once its states have settled, also where laps take long
    hopeless : an excursion is over if it would take more laps than this, each like the last, to reach the model in hand
    most_quiet : quiet laps, after which moves that are left are not tried
    few : share of the states from which another ascent begins
    cells : of rows alike, that may be states where there would be one
    context_cells : the same of rows that are told apart by those of their neighbours
    wider : times as many states as words show beyond chance
    fits : of the prior of transitions to those of a start
    """

    patience: int = 14
    at_first: int = 8
    coarse: float = 10.0
    per_row: float = 1e-4
    coarsest: float = 0.5
    settle: int = 5
    longer: int = 15
    long_settle: int = 20
    longest_excursion: int = 25
    long_removals: int = 10
    hopeless: float = 10.0
    most_quiet: int = 2
    few: float = 0.3
    cells: tuple[int, ...] = (2, 4, 32)
    context_cells: int = 4
    wider: tuple[int, ...] = (1, 3)
    fits: int = 8


TUNING = Tuning()


@dataclass
class ExcursionSearch(Search):
    """A search whose excursions are of several kinds, in turn, until none has paid for a while (see `Search`).

    Where rows repeat, pairs of nearby rows tell the states; the segments of the best path are merged anew into states, all of
    them or those of some states that are alike; states are split by their rows; some segments become states of their own; all
    states of another ascent are added, which began with few, so that both together find which of them explain what best;
    states whose durations vary little are in several phases, as the best path tells them or as they are learnt; or some states
    are in two at random.  What does not pay is then merged or deleted.  When none has paid for a while, all states are halved,
    others are in two at random, then all rows are given to the states as if they had no neighbours, and then the prior of rows
    is learnt anew.  Where none of these pays, the prior of transitions is learnt anew, all rows are one state, states are
    divided under the prior of rows as it was given, words of rows tell states where rows repeat, and states, or where there is
    one, rows that are alike, are told apart by their neighbours; where none of these pays either, the search ends.

    at_first, patience : excursions without gain after which there are no more: before one has paid, and after
    sampled : whether the search began with the outcome of another: of a sample, or from pairs of rows
    learnt : the model with the hyperparameters that were learnt along with a given start, if they are known
    given : the model with its priors as they were before any was learnt
    """

    at_first: int = TUNING.at_first
    patience: int = TUNING.patience
    sampled: bool = False
    learnt: Model | None = None
    given: Model = field(init=False)

    def __post_init__(self) -> None:
        self.given = self.model

    def begin(self, start: Summary, most_quiet: int = sys.maxsize, model: Model | None = None) -> None:
        """Ascend once with all moves, once given states have settled: what comes before excursions.

        most_quiet : quiet laps in a row, after which moves that are left are not tried
        model : that the ascent begins with, if it is another than that of the search
        """
        settle = TUNING.settle if start.K > 1 else 0
        self.best = self._laps(model or self.model, self.moves, self._coarse, settle=settle, most_quiet=most_quiet)
        self.best.run(start)

    def go_on(self, options: Options) -> None:
        """Go on with that ascent, unless it is over, with other options."""
        self.options = options
        if not self.converged and self._laps_left > 0:
            self._in_hand.polish(self._coarse)

    def begin_with_blocks(self, options: Options) -> None:
        """Ascend from blocks of rows, and from their segments merged anew; the outcome is kept where it is better."""
        self.options = options
        if self._may_grow():
            self._from_blocks(self.outcome)

    def explore_briefly(self, options: Options, failures: int) -> None:
        """Excursions of most kinds in turn, until so many in a row have not paid."""
        self.options = options
        self.patience = failures
        self._in_turn(self._turns(), failures)

    def _explore(self) -> None:
        """Excursions of all kinds in turn, until none pays, not even those that change all states at once.

        Where laps take long, the prior is learnt anew in place of these, and that is all.
        """
        kinds = self._turns()
        patience = self.at_first
        while self._may_grow():
            self._in_turn(kinds, patience)
            if has_long_laps(self._sequences, self.total.K) and self._may_grow():
                self._pays(self._prior_anew)
                return
            paid = [self._pays(kind) for kind in self._last_kinds()]
            if not any(paid) and not any(self._pays(kind) for kind in self._kinds_at_the_end()):
                return
            patience = self.patience

    def _in_turn(self, kinds: Iterator[ExcursionKind], patience: int) -> None:
        """Excursions of these kinds, until so many in a row have not paid, or ``patience`` once one has."""
        failures = 0
        while self._may_grow() and failures < patience:
            kind = next(kinds)
            paid = self._pays(kind)
            if paid:
                failures = 0
                patience = self.patience
            elif paid is not None and not kind.told:
                failures += 1

    def _kinds(self) -> list[ExcursionKind]:
        """The kinds in the order of their turns.

        Of many rows new states are what excursions find most, and those of a sample are not found anew on all rows.  As there
        are few turns, the kind that finds what neither a row nor a segment shows has an early one.
        """
        kinds = self.kinds
        regrouped = [kinds.regrouped, kinds.partly_regrouped]
        splits = ExcursionKind("splits", self._split)
        others = [kinds.segments, ExcursionKind("another ascent", self._with_another)]
        added = [splits, kinds.pieces, *others] if self._uses_samples else [splits, *others, kinds.pieces]
        if self._sequences.codes is not None and (self.sample_rows or not self.sampled):
            regrouped.insert(0, kinds.pairs_of_rows)
            added.append(kinds.pairs_added)
        if self._uses_samples:
            return [kind for pair in zip(added, cycle(regrouped)) for kind in pair]
        return [kind for pair in zip(cycle(regrouped), added) for kind in pair]

    def _turns(self) -> Iterator[ExcursionKind]:
        """The kinds in turn, without end, and phases, if durations are worth them, before states are divided at random."""
        found = self._kinds()
        first = [kind.origin for kind in found].index(self.kinds.pieces.origin)
        kinds = self.kinds
        in_phases = [kinds.phases, kinds.phases_anew, kinds.ages, kinds.ages_anew]
        return cycle([*found[:first], *in_phases, *found[first:]])

    def _last_kinds(self) -> list[ExcursionKind]:
        """Those that are tried once all others fail: they change all states at once.

        On all rows after a sample states are not halved: laps take four times as long then.
        """
        last = [self.kinds.softened, self._prior_anew]
        if not self._uses_samples:
            last = [*2 * [self.kinds.pieces], *last]
        return last if self.sampled and not self.sample_rows else [self.kinds.halves, *last]

    def _kinds_at_the_end(self) -> list[ExcursionKind]:
        """Those with which the search ends, unless one of them pays: they can only raise the bound of all that came before."""
        kinds = self.kinds
        found = []
        if self.options.learn + self.options.learn_late:
            found.append(kinds.transitions_as_given)
        if self._learns:
            found.append(kinds.one_state)
            if not self.sampled or self.sample_rows:
                found += [kinds.halves.as_given, kinds.pieces.as_given]
        if not has_many_rows(self._sequences):
            if self._sequences.codes is not None:
                found += [kinds.words(wider, long) for long in (False, True) for wider in TUNING.wider]
            found += [kinds.in_context(steps) for steps in ((-1, 1), (-1,), (1,))]
            found += [kinds.cells(self.given, n) for n in TUNING.cells]
            found.append(kinds.cells(self.given, TUNING.context_cells, (-1, 1)))
        return found

    @cached_property
    def kinds(self) -> ExcursionKinds:
        """How starts are made."""
        return ExcursionKinds(self._sequences, self.executor, self.rng)

    @property
    def _prior_anew(self) -> ExcursionKind:
        return self.kinds.prior_as_given(self._learns)

    @property
    def _learns(self) -> bool:
        """Whether the prior of rows is learnt."""
        names = self.options.learn + self.options.learn_late
        return any(name.startswith(OF_LIKELIHOOD) for name in names)

    @property
    def _uses_samples(self) -> bool:
        """Whether this is the search of a sample, or began with the outcome of another (`sampled`): rows are many."""
        return self.sample_rows > 0 or self.sampled

    def _few_excursions(self, K: int) -> bool:
        """Whether laps on all rows with so many states take so long that there are few excursions."""
        return not self.sample_rows and has_long_laps(self._sequences, K)

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

    def _pays(self, kind: ExcursionKind) -> bool | None:
        """Whether an excursion of a kind gains more than an ascent may leave undone; None where there is none of the kind."""
        if self._laps_left <= 0:
            return None
        before = self.outcome.bound
        start = kind.change(self.outcome)
        if start is None:
            return None
        self._excursion(start, kind.origin, kind.terms)
        least = max(self.options.tol, min(self._coarse.tol, TUNING.coarsest))
        return self.outcome.bound - before > least * self.outcome.total.K

    def _excursion(self, start: Summary, origin: str, terms: Terms = USUAL) -> None:
        """Lap from a start, merge and delete what does not pay, and keep the outcome if it is better."""
        if self._laps_left <= 0:
            return
        best = self.outcome
        coarse = self._coarse.at_last if terms.at_last else self._coarse
        model = self.model if best.total.K == 1 else best.model  # of one state nothing is learnt about transitions
        if terms.unlearnt:
            model = replace(model, likelihood=self.given.likelihood)
        if terms.transitions_unlearnt:
            model = replace(model, allocation=self.given.allocation)
        start = reduced(model, start, model.room)
        if model.allocation.max_clusters < start.K:
            start = self._settled(model, start, replace(coarse, max_laps=2 * TUNING.settle))
        if terms.transitions_fitted:
            model = replace(model, allocation=self._fitted(start))
        if terms.smoothed:
            start = self._smoothed(model, start, self._coarse)
        settle = TUNING.longer if terms.slow or not self._uses_samples else TUNING.settle
        longest = TUNING.longest_excursion
        tol = TUNING.coarse * self.options.tol if terms.slow else coarse.tol
        if self._few_excursions(start.K):
            settle = TUNING.long_settle
            longest = TUNING.long_removals
            tol = coarse.tol
        limit = min(self.options.max_laps, len(self.history) + settle + longest)
        options = replace(coarse, max_laps=limit, tol=tol)
        trial = self._laps(
            model,
            self._removals,
            options,
            best,
            settle=settle,
            origin=origin,
            most_quiet=TUNING.most_quiet,
            patience=TUNING.hopeless,
        )
        trial.run(model.ordered(start))
        self._keep(best, trial)

    def _fitted(self, start: Any) -> Any:
        """The prior of transitions, learnt from those of a start."""
        names = tuple(name for name in self.options.at_last.learn if not name.startswith(OF_LIKELIHOOD))
        allocation: Any = self.given.allocation
        for _ in range(TUNING.fits):
            allocation, _ = allocation.tuned(start, names, allocation.solve(start))
        return allocation

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

    def _with_another(self, laps: Laps) -> Summary:
        """All states of another ascent beside those in hand: of one that begins with few, and of its segments merged anew."""
        few = int(TUNING.few * laps.total.K)
        if few > 1:
            self._excursion(reduced(laps.model, laps.total, few), "few states")
            self._look_at_trial()
            self._regroup_trial()
        else:
            self._from_blocks(laps)
        found: Summary = states.side_by_side(laps.total, laps.total if self.trial is None else self.trial.total)
        return found

    def _from_blocks(self, laps: Laps) -> None:
        """An excursion from blocks of rows, and one from its segments merged anew."""
        self._excursion(self.kinds.blocks(laps), "blocks")
        self._look_at_trial()
        self._regroup_trial()

    def _regroup_trial(self) -> None:
        """An excursion from the segments of the last one, merged anew."""
        if self.trial is not None:
            self._excursion(self.kinds.merged_anew(self.trial), "regrouped")
            self._look_at_trial()

    def _look_at_trial(self) -> None:
        """Whether states of the last excursion last as long each time: few states tell durations best."""
        if self.trial is not None:
            self.kinds.look_at_durations(self.trial)
