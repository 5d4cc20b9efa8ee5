"""The kinds of excursions: what each begins with, and how that is made of the model in hand."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...data import SequenceSource
from ...model import Model, Summary
from ...model.sequences import labelled
from ...moves import states
from ...moves.ages import aged, aged_smoothly, may_age
from ...moves.agglomeration import reduced, with_groups
from ...moves.blocks import block_states
from ...moves.contexts import cells_of_rows, in_contexts
from ...moves.durations import best_phases, in_order
from ...moves.in_order import longest_word, states_in_order
from ...moves.segments import alike, halved, in_pieces, own_states, regrouped, segments_of
from ...moves.spectral import spectral_states
from ..descent import of_states
from ..executor import Executor
from ..laps import Laps
from ..paths import best_paths


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_states.py.

    Attributes
    ----------
    several : states, of which a part is not all
    blocks, block_rows : from which another ascent begins where a few states would be one, and their rows
    contexts : times as many states, at most, where they are apart by their neighbours
    aged : starts from blocks beside the states in hand, whose durations are learnt
    again : nats for each state, by which a model must be better for durations to be learnt again
    """

    several: int = 3
    blocks: int = 4
    block_rows: int = 20
    contexts: float = 3.0
    aged: int = 2
    again: float = 1.0


TUNING = Tuning()


class Terms(NamedTuple):
    """On what terms an excursion is made.

    unlearnt : whether the prior of rows is again as it was before any was learnt
    transitions_unlearnt : the same of the prior of transitions
    transitions_fitted : whether that is learnt from the start, before the first lap
    slow : whether the states part slowly: they may settle for longer, to a tolerance that does not grow with the rows
    at_last : whether everything is learnt from the first lap on, as at the end of the search, even of one state
    smoothed : whether laps under a smoothed prior of rows come first (`Likelihood.smoothed`), which bars no state from what it
        has not shown
    """

    unlearnt: bool = False
    transitions_unlearnt: bool = False
    transitions_fitted: bool = False
    slow: bool = False
    at_last: bool = False
    smoothed: bool = False


USUAL = Terms()


class ExcursionKind(NamedTuple):
    """A kind of excursions.

    origin : what they begin with, as the history shows it
    change : makes a start of the model in hand, or None where there is none of the kind
    terms : on what terms they are made
    told : whether there is one only where the rows tell that it may pay: that it has not says nothing of the other kinds
    """

    origin: str
    change: Callable[[Laps], Summary | None]
    terms: Terms = USUAL
    told: bool = False

    @property
    def as_given(self) -> "ExcursionKind":
        """The same start under the prior of rows as it was before any was learnt, which that of one state always is."""
        return ExcursionKind(
            f"{self.origin}, prior as given",
            lambda laps: self.change(laps) if laps.total.K > 1 else None,
            self.terms._replace(unlearnt=True),
        )


class _Phased(NamedTuple):
    """States in phases, and the bound that they may have."""

    hoped: float
    start: Summary


@dataclass
class ExcursionKinds:
    """The kinds of excursions whose starts need no ascent and no fits: the data and the model in hand tell them.

    rng : that of the search, which the starts use in the order of the excursions
    """

    source: SequenceSource
    executor: Executor
    rng: np.random.Generator
    _phased: _Phased | None = field(default=None, init=False)
    _aged: tuple[float, Summary] | None = field(default=None, init=False)
    _seen: tuple[int, float] = field(default=(1, -np.inf), init=False)
    _undivided: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_), init=False)

    @property
    def pairs_of_rows(self) -> ExcursionKind:
        """Other states, which pairs of nearby rows tell where rows repeat."""
        return ExcursionKind("pairs of rows", self._from_pairs)

    @property
    def pairs_added(self) -> ExcursionKind:
        """States that pairs of nearby rows tell, beside the states in hand."""
        return ExcursionKind("pairs added", self._with_pairs)

    @property
    def regrouped(self) -> ExcursionKind:
        """The segments of the best path, merged anew into states."""
        return ExcursionKind("regrouped", self.merged_anew)

    @property
    def partly_regrouped(self) -> ExcursionKind:
        """The segments of some states that are alike, merged anew; they may also be given to other states."""
        return ExcursionKind("partly regrouped", self._partly_regrouped)

    @property
    def segments(self) -> ExcursionKind:
        """Some segments become states of their own."""
        return ExcursionKind("segments", self._with_segments)

    @property
    def pieces(self) -> ExcursionKind:
        """A third of the states are in two at random."""
        return ExcursionKind("pieces", self._in_pieces, Terms(slow=True))

    @property
    def halves(self) -> ExcursionKind:
        """Every state is in two, its segments in the half that explains them better."""
        return ExcursionKind("halves", self._halved)

    @property
    def phases(self) -> ExcursionKind:
        """States are in several that pass in order, if that makes their durations more probable by more than it costs."""
        return ExcursionKind("phases", self._in_phases, Terms(slow=True), told=True)

    @property
    def phases_anew(self) -> ExcursionKind:
        """The same start again, if it has not led as far as hoped: a stickiness learnt for few states may hold phases back."""
        terms = Terms(transitions_unlearnt=True, slow=True)
        return ExcursionKind("phases, transitions as given", self._in_phases_anew, terms, told=True)

    @property
    def ages(self) -> ExcursionKind:
        """States are in several that pass in order, where durations that are learnt make that worth it.

        Where rows say little, the best path cuts segments in wrong places, and their durations look geometric.
        """
        return ExcursionKind("ages", self._by_age, Terms(transitions_fitted=True, slow=True), told=True)

    @property
    def ages_anew(self) -> ExcursionKind:
        """The same start again, if it has not paid: a prior that fits so many phases may hold all of them."""
        terms = Terms(transitions_unlearnt=True, slow=True)
        return ExcursionKind("ages, transitions as given", self._by_age_anew, terms, told=True)

    @property
    def softened(self) -> ExcursionKind:
        """All rows are given to the states as if they had no neighbours."""
        return ExcursionKind("softened", self._softened)

    def prior_as_given(self, learns: bool) -> ExcursionKind:
        """The states in hand, whose prior of rows is learnt anew, if any is learnt.

        Under a learnt prior, a symbol of which a state has none may be so improbable there that it never gets any.
        """
        terms = Terms(unlearnt=True, smoothed=True)
        return ExcursionKind("prior as given", lambda laps: laps.total if learns and laps.total.K > 1 else None, terms)

    @property
    def transitions_as_given(self) -> ExcursionKind:
        """The same as `softened`, and the prior of transitions is learnt anew.

        Under a learnt one, states that no short sequence leaves may be so sticky that none ever does.
        """
        return ExcursionKind("transitions as given", self._softened, Terms(transitions_unlearnt=True))

    @property
    def one_state(self) -> ExcursionKind:
        """All rows in one state, under the prior that is learnt for it: elsewhere none is learnt of one state."""
        return ExcursionKind("one state", self._as_one, Terms(at_last=True))

    def cells(self, given: Model, n: int, steps: tuple[int, ...] = ()) -> ExcursionKind:
        """From one state: up to n of rows that are alike, which need not last; or of rows whose neighbours are, too.

        given : with the prior of rows as it was given: under that of one state all rows may be alike
        steps : to the neighbours
        """
        origin = "rows in context" if steps else "rows alike"
        return ExcursionKind(origin, partial(self._in_cells, given, n, steps), Terms(slow=True))

    def words(self, wider: int, long: bool) -> ExcursionKind:
        """Other states, of which words of rows tell what comes right before and after, where rows repeat; they need not last.

        wider : times as many states as words show beyond chance
        long : whether words are as long as may be, where few rows are distinct, or single rows
        """
        terms = Terms(unlearnt=True, transitions_unlearnt=True, smoothed=True, slow=True)
        return ExcursionKind("long words" if long else "words", partial(self._from_words, wider, long), terms)

    def in_context(self, steps: tuple[int, ...]) -> ExcursionKind:
        """States are apart by those so many steps away, such as the one before (-1) and the one after (1)."""
        return ExcursionKind("states in context", partial(self._by_neighbours, steps), Terms(slow=True))

    def merged_anew(self, laps: Laps) -> Summary:
        """Start of the kind `regrouped`."""
        among = np.ones(laps.total.K, np.bool_)
        return regrouped(laps.model, self.source, self._path(laps), among, self.rng.spawn(1)[0])

    def blocks(self, laps: Laps) -> Summary:
        """Blocks of rows as states."""
        return block_states(laps.model, self.source, TUNING.blocks, TUNING.block_rows, self.rng.spawn(1)[0])

    def _from_pairs(self, laps: Laps) -> Summary | None:
        return spectral_states(laps.model, self.source, self.rng.spawn(1)[0])

    def _with_pairs(self, laps: Laps) -> Summary | None:
        found = self._from_pairs(laps)
        return None if found is None else states.side_by_side(laps.total, found)

    def _with_segments(self, laps: Laps) -> Summary:
        path = self._path(laps)
        rng = self.rng.spawn(1)[0]
        found: Summary = states.side_by_side(laps.total, own_states(laps.model, self.source, path, laps.total.K, rng))
        return found

    def _partly_regrouped(self, laps: Laps) -> Summary | None:
        if TUNING.several > laps.total.K:
            return None
        rng = self.rng.spawn(1)[0]
        return regrouped(laps.model, self.source, self._path(laps), alike(laps.model, laps.total, rng), rng)

    def _halved(self, laps: Laps) -> Summary | None:
        return halved(laps.model, self.source, self._path(laps), self.rng.spawn(1)[0])

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
        return in_pieces(laps.model, self.source, self._path(laps), among, rng)

    def look_at_durations(self, laps: Laps) -> None:
        """Keep a start of the kind `phases`, if the model in hand or that of another ascent has the best so far."""
        if laps.total.K == 1:
            return
        likelihood = laps.model.likelihood
        path = self._path(laps)
        segment = segments_of(self.source, path)
        numbers, gain = best_phases(likelihood, self.source, path, segment)
        hoped = laps.bound + gain
        if gain > 0.0 and (self._phased is None or self._phased.hoped < hoped):
            self._phased = _Phased(hoped, in_order(likelihood, self.source, path, segment, numbers))

    def _in_phases(self, laps: Laps) -> Summary | None:
        self.look_at_durations(laps)
        return None if self._phased is None else self._phased.start

    def _in_phases_anew(self, laps: Laps) -> Summary | None:
        before, self._phased = self._phased, None
        return None if before is None or laps.bound >= before.hoped else before.start

    def _by_age(self, laps: Laps) -> Summary | None:
        """Of the states in hand, or if some of these are worth phases, of blocks of rows: of the most probable chain."""
        K = laps.total.K
        if K == 1 or not may_age(laps.total, self.source) or not self._is_news(laps):
            return None
        model = laps.model
        found = [aged(model, laps.total, self.source)]
        if not found[0].is_promising:
            return None
        blocks = [block_states(model, self.source, K, TUNING.block_rows, rng) for rng in self.rng.spawn(TUNING.aged)]
        found += [aged_smoothly(model, start, self.source) for start in (laps.total, *blocks)]
        best = max((one for one in found if one.worth.any()), key=lambda one: one.bound)
        self._aged = laps.bound, best.start
        return best.start

    def _is_news(self, laps: Laps) -> bool:
        """Whether the model in hand is another than that whose durations were learnt last, or much better."""
        K, bound = self._seen
        if laps.total.K == K and laps.bound < bound + TUNING.again * K:
            return False
        self._seen = laps.total.K, laps.bound
        return True

    def _by_age_anew(self, laps: Laps) -> Summary | None:
        before, self._aged = self._aged, None
        return None if before is None or laps.bound > before[0] else before[1]

    def _softened(self, laps: Laps) -> Summary | None:
        return states.softened(laps.total) if laps.total.K > 1 else None

    def _as_one(self, laps: Laps) -> Summary | None:
        K = laps.total.K
        return with_groups(laps.total, [list(range(K))]) if K > 1 else None

    def _in_cells(self, given: Model, n: int, steps: tuple[int, ...], laps: Laps) -> Summary | None:
        if laps.total.K > 1:
            return None
        cells = cells_of_rows(given, self.source, n, self.rng.spawn(1)[0])
        return self._labelled(given, in_contexts(self.source, cells, steps) if steps else cells)

    def _from_words(self, wider: int, long: bool, laps: Laps) -> Summary | None:
        length = longest_word(self.source) if long else 1
        if long and length == 1:
            return None
        return states_in_order(laps.model, self.source, self.rng.spawn(1)[0], wider, length)

    def _by_neighbours(self, steps: tuple[int, ...], laps: Laps) -> Summary | None:
        K = laps.total.K
        if K == 1:
            return None
        apart = self._labelled(laps.model, in_contexts(self.source, self._path(laps), steps))
        return reduced(of_states(laps.model, apart.K), apart, int(TUNING.contexts * K))

    def _labelled(self, model: Model, labels: NDArray[np.intp]) -> Summary:
        total = labelled(model.likelihood, self.source, labels)
        return total.take(np.flatnonzero(total.N > 0.0))

    def _path(self, laps: Laps) -> NDArray[np.intp]:
        """The most probable state of every row, given all rows, (T,)."""
        return best_paths(laps.model, laps.total, self.source, self.executor)
