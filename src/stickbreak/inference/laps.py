"""An ascent: lap after lap until nothing changes (Thesis Alg. 3.1 and 3.3)."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource
from ..model import Drawn, Kind, Model, Posterior, Summary
from ..moves import BatchBirth, Proposal, Schedule
from ..moves.better import accepts
from .known import check_state
from .lap import first_lap, lap
from .lap_end import Record
from .samplers.draws import Sampled
from .session import Leg, Session
from .state import Floor, Options, Problem, State
from .trace import Lap

Array = NDArray[np.floating]


class Result(NamedTuple):
    """What a lap leaves: the model, the summary of all rows, its ELBO, and the lap as the history shows it.

    sampled : the draws of a sampler
    """

    model: Model
    total: Summary
    bound: float
    lap: Lap
    sampled: Sampled | None = None


@dataclass
class Laps:
    """One ascent.  After the first lap it always has a complete, valid model, also after an interrupt at any moment.

    Attributes
    ----------
    schedule : which moves to try, and how often
    floor : a better model in hand while this ascent explores; the history then reports that one's bound
    settle : laps before the first moves are tried, other than deletes of clusters to which no row belongs
    most_quiet : laps in a row that changed little, after which an ascent is over although there are moves left to try
    patience : an excursion is over if it would take more laps than this, each like the last, to reach ``floor``
    goal : a bound that is known to be possible, which the ascent must be able to reach in as many laps, too
    origin : what the ascent begins with, as the history shows it (see `stickbreak.inference.trace.Lap`)
    sample_rows : rows of the source, if that is a sample; 0 for all rows
    birth : births that single batches decide on, if any
    """

    start_model: Model
    source: ArraySource
    schedule: Schedule
    session: Session
    rng: np.random.Generator
    options: Options
    floor: Floor | None = None
    settle: int = 0
    most_quiet: int = sys.maxsize
    patience: float = np.inf
    goal: float = -np.inf
    origin: str = "start"
    sample_rows: int = 0
    birth: BatchBirth | None = None
    _last: tuple[State, Lap] | None = field(default=None, init=False)
    _kind: Kind | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        history = self.session.history
        self._ascent = history[-1].ascent + 1 if history else 1

    def run(self, start: Summary, counts: Array | None = None) -> None:
        """Lap until converged or out of laps, from the parameters that ``start`` implies.

        counts : (K, N) of documents, if known, for their local steps to start from
        """

        def first(problem: Problem) -> tuple[State, Record]:
            return first_lap(problem, self.start_model, start, self.schedule, self.rng, self.settle, counts)

        self._climb(first)

    def polish(self, options: Options) -> None:
        """Lap on, to another tolerance."""
        self.options = options
        self._change(self.state._replace(done=False, near=True, rests=0))
        self._climb(None)

    def lap_as(self, kind: Kind) -> float:
        """One lap with the local steps of another kind, which may leave poor local optima; what it gains."""
        bound = self.bound
        options = self.options
        self.options = replace(options, max_laps=min(options.max_laps, len(self.history) + 1))
        self._kind = kind
        try:
            self._change(self.state._replace(before=None, done=False, near=True, rests=0))
            self._climb(None)
        finally:
            self.options = options
            self._kind = None
        return self.bound - bound

    def offer(self, proposals: Sequence[Proposal]) -> None:
        """Verify these proposals, too, over the next lap."""
        self._change(self.state._replace(proposals=[*self.state.proposals, *proposals]))

    def beats(self, other: "Laps") -> bool:
        """Whether the bound is higher, by more than rounding, what more clusters must be worth, and what ``floor`` asks for."""
        if self._last is None or other._last is None:
            return False
        least = 0.0 if self.floor is None else self.floor.least
        return accepts(self.bound - other.bound - least, self.total.K - other.total.K, other.bound)

    @property
    def history(self) -> list[Lap]:
        """The laps of the search so far."""
        return self.session.history

    @property
    def as_floor(self) -> Floor | None:
        """The bound and the number of clusters, for ascents that explore; None before the first lap."""
        return None if self._last is None else Floor(self.bound, self.total.K)

    @property
    def state(self) -> State:
        """The state after the last lap."""
        if self._last is None:
            raise RuntimeError("the ascent has not begun")
        return self._last[0]

    @property
    def result(self) -> Result | None:
        """What the last lap left, None before the first."""
        if self._last is None:
            return None
        state, lap = self._last
        return Result(state.model, state.total, state.bound, lap)

    @property
    def posterior(self) -> Posterior:
        """Of all rows, at the end of the last lap."""
        return self.state.posterior

    @property
    def model(self) -> Model:
        """The model, with its hyperparameters as they were learnt."""
        return self.start_model if self._last is None else self.state.model

    @property
    def total(self) -> Summary:
        """The summary of all rows at the end of the last lap."""
        return self.state.total

    @property
    def bound(self) -> float:
        """The ELBO at the end of the last lap."""
        return -np.inf if self._last is None else self.state.bound

    @property
    def drawn(self) -> Sequence[Drawn]:
        """Rows drawn in the last lap to represent the clusters."""
        return self.state.drawn

    @property
    def identities(self) -> list[int]:
        """Those of the clusters, by which rows are drawn."""
        return self.state.schedule.ids

    @property
    def converged(self) -> bool:
        """Whether the ascent ended by itself."""
        return self._last is not None and self.state.done

    @property
    def gave_up(self) -> bool:
        """Whether the ascent ended before it had settled, as it would hardly reach ``floor`` or ``goal``."""
        return self.converged and self.state.quiet == 0

    @property
    def counts(self) -> Array | None:
        """Counts (K, N) of all documents, from which local steps may start, if they are kept."""
        batches = self.problem.batches
        everything = np.empty((self.total.K, self.source.n_rows), np.float32)
        for summary, batch in zip(self.state.memo.batches, batches):
            counts = None if summary is None else summary.warm_start
            if counts is None or counts.shape[1] != sum(chunk.stop - chunk.start for chunk in batch):
                return None
            everything[:, np.concatenate([np.arange(*chunk) for chunk in batch])] = counts
        return everything

    @property
    def remembers(self) -> bool:
        """Whether the next lap begins with what the last one found of each document."""
        return all(summary is not None and summary.warm_start is not None for summary in self.state.memo.batches)

    @property
    def problem(self) -> Problem:
        """What its laps share."""
        return Problem(
            self.source,
            self.session.executor,
            self.options,
            most_quiet=self.most_quiet,
            floor=self.floor,
            patience=self.patience,
            goal=self.goal,
            birth=self.birth,
            kind=self._kind,
        )

    def _climb(self, first: Callable[[Problem], tuple[State, Record]] | None) -> None:
        """Lap until the ascent is over; what a journal has of it is not done again.

        first : the first lap, if that is still to be done
        """
        problem = self.problem
        journal = self.session.journal
        history = self.session.history
        known = journal.next()
        if known is not None and not self._is_own(known, first is not None):
            known = None
        laps = [] if known is None else list(known.laps)
        if known is not None:
            check_state(known.state, problem, self.start_model)
            if laps:
                self.session.known(laps)
                self._last = known.state, laps[-1]
            else:
                self._change(known.state)
        elif first is not None:
            laps.append(self._record(problem, *first(problem)))
            journal.note(Leg(self.state, tuple(laps)))
        while not self.state.done and len(history) < self.options.max_laps:
            laps.append(self._record(problem, *lap(problem, self.state)))
            journal.note(Leg(self.state, tuple(laps)))
        if known is None and not laps:
            journal.note(Leg(self.state, ()))

    def _is_own(self, known: Leg, begins: bool) -> bool:
        """Whether what a journal has is of this ascent: with more laps than before, others may come first."""
        if not known.laps:
            return not begins
        first = known.laps[0]
        own = (self._ascent, self.origin, self.sample_rows)
        return first.number == len(self.history) + 1 and own == (first.ascent, first.origin, first.sample_rows)

    def _record(self, problem: Problem, state: State, record: Record) -> Lap:
        """Make a state that of the ascent, and tell of the lap that led to it."""
        reported = problem.reported(state.bound, state.total.K)
        lap = Lap(
            number=len(self.session.history) + 1,
            seconds=time.perf_counter() - self.session.began,
            lower_bound=reported.bound,
            n_clusters=reported.K,
            explored_bound=state.bound,
            explored_clusters=state.total.K,
            moves=record.moves,
            rows_per_second=record.rows_per_second,
            ascent=self._ascent,
            origin=self.origin,
            sample_rows=self.sample_rows,
        )
        self._last = state, lap
        self.session.add(lap)
        return lap

    def _change(self, state: State) -> None:
        """Another state, after the same lap."""
        assert self._last is not None
        self._last = state, self._last[1]
