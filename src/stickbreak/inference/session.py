"""What all ascents of a search share: where tasks run, who is told of laps, and a journal to take the search up again."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from .executor import Executor
from .trace import Lap

OUTCOME = "outcome"  # of a fit, among the results in its journal


class Leg(NamedTuple):
    """The state after the last lap of an ascent so far, and its laps."""

    state: Any
    laps: tuple[Lap, ...]


@dataclass
class Journal:
    """The ascents of all searches of a fit in their order, each with its last state: the state of the fit.

    A search decides what to do next from the data and from what its ascents came to, with random numbers that follow from a
    seed.  So one that is given the journal of another, and begins like it, makes the same decisions: it does not repeat the
    laps of the journal, goes on with the last ascent where it was, and ends in the same bits.

    Attributes
    ----------
    legs : one for each ascent so far, and one for each time that an ascent went on to another tolerance
    fit : what was fitted to what, a hash for each part by its name, if that is known; another fit can do nothing with the legs
    seed : of the fit, once it is drawn
    keeps_batches : whether the search looks at the summaries of the batches of ascents that are over
    results : what is known of the fit by name; with its outcome it is over, and needs no legs
    """

    legs: list[Leg] = field(default_factory=list)
    fit: Mapping[str, str] | None = None
    seed: int | None = None
    keeps_batches: bool = False
    results: dict[str, Any] = field(default_factory=dict)
    _place: int = 0

    def open(self, fit: Callable[[], Mapping[str, str]]) -> None:
        """Begin a fit, or take it up again, from the first ascent."""
        now = fit()
        if self.fit is not None and self.fit != now:
            names = sorted(name for name in {**self.fit, **now} if self.fit.get(name) != now.get(name))
            raise ValueError(
                f"{self.name} is that of another fit: other {', '.join(names)}.  Give the same, or begin without it."
            )
        self.fit = now
        self._place = 0

    @property
    def name(self) -> str:
        """What messages call it."""
        return "the journal"

    def seeded(self, seed: int) -> int:
        """The seed of the fit: as it is now, unless the fit had begun with another one that nobody gave."""
        if self.seed is None:
            self.seed = seed
        return self.seed

    def next(self) -> Leg | None:
        """What is known of the ascent that begins or goes on now."""
        known = self.legs[self._place] if self._place < len(self.legs) else None
        self._place += 1
        return known

    def note(self, leg: Leg) -> None:
        """What is known of it now, after another lap."""
        self.legs[self._place - 1 :] = [leg]

    @property
    def is_over(self) -> bool:
        """Whether the fit is over, and its outcome known."""
        return OUTCOME in self.results

    def check(self, value: Any) -> None:
        """Refuse a value that the journal could not keep."""

    def leave(self, over: bool) -> None:
        """A search ends.  Unless it is over, what its ascents still hold is kept, so that it can go on."""

    def close(self, outcome: Any) -> None:
        """The fit is over: with an outcome, or None if it ran out of laps or was interrupted, and can go on."""
        if outcome is not None:
            self.results[OUTCOME] = outcome
            self.legs = []


class NoJournal(Journal):
    """Of a search that is not to be taken up again."""

    def open(self, fit: Callable[[], Mapping[str, str]]) -> None:
        """Nothing is kept."""

    def note(self, leg: Leg) -> None:
        """Nothing is kept."""

    def close(self, outcome: Any) -> None:
        """Nothing is kept."""


@dataclass
class Session:
    """What all ascents of a search share.

    Attributes
    ----------
    executor : where tasks run
    on_lap : is told of every lap
    journal : what is known of the ascents, if the search is taken up again
    history : the laps so far
    began : when the search began, on the clock of `time.perf_counter`
    """

    executor: Executor
    on_lap: Callable[[Lap], None] = lambda lap: None
    journal: Journal = field(default_factory=NoJournal)
    history: list[Lap] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)

    def aside(self) -> Self:
        """For ascents whose laps are not those of the search."""
        return self.told(lambda lap: None)

    def told(self, on_lap: Callable[[Lap], None]) -> Self:
        """For another search, of whose laps ``on_lap`` is told."""
        return replace(self, on_lap=on_lap, history=[])

    def known(self, laps: Sequence[Lap]) -> None:
        """Laps that a journal has; the clock goes on from there."""
        self.history += laps
        self.began = min(self.began, time.perf_counter() - laps[-1].seconds)

    def add(self, lap: Lap) -> None:
        """Another lap."""
        self.history.append(lap)
        self.on_lap(lap)
