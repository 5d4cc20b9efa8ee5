"""What all ascents of a search share: where tasks run, who is told of laps, and a journal to take the search up again."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from .executor import Executor
from .trace import Lap


class Leg(NamedTuple):
    """The state after the last lap of an ascent so far, its laps, and whether it is over."""

    state: Any
    laps: tuple[Lap, ...]
    over: bool


@dataclass
class Journal:
    """The ascents of a search in their order, each with its last state: the state of the search.

    A search decides what to do next from the data and from what its ascents came to, with random numbers that follow from a
    seed.  So one that is given the journal of another, and begins like it, makes the same decisions, takes the outcome of
    every ascent that was over from the journal, goes on with the last one where it was, and ends in the same bits.

    Attributes
    ----------
    legs : so far
    """

    legs: list[Leg] = field(default_factory=list)
    _place: int = 0

    def next(self) -> Leg | None:
        """What is known of the ascent that begins or goes on now."""
        known = self.legs[self._place] if self._place < len(self.legs) else None
        self._place += 1
        return known

    def note(self, leg: Leg) -> None:
        """What is known of it now, after another lap."""
        self.legs[self._place - 1 :] = [leg]

    def reopened(self) -> "Journal":
        """The same journal, to be read from the beginning."""
        return Journal(list(self.legs))


class NoJournal(Journal):
    """Of a search that is not to be taken up again."""

    def note(self, leg: Leg) -> None:
        """Nothing is kept."""


@dataclass
class Session:
    """What all ascents of a search share.

    Attributes
    ----------
    executor : where tasks run
    on_lap : is told of every lap
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
        return replace(self, on_lap=lambda lap: None, history=[])

    def add(self, lap: Lap) -> None:
        """Another lap."""
        self.history.append(lap)
        self.on_lap(lap)
