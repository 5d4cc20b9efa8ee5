"""What all ascents of a search share: where tasks run, who is told of laps, and a journal to take the search up again."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from .executor import Executor
from .trace import Lap


class Leg(NamedTuple):
    """The state after the last lap of an ascent so far, and its laps."""

    state: Any
    laps: tuple[Lap, ...]


@dataclass
class Journal:
    """The ascents of a search in their order, each with its last state: the state of the search.

    A search decides what to do next from the data and from what its ascents came to, with random numbers that follow from a
    seed.  So one that is given the journal of another, and begins like it, makes the same decisions: it does not repeat the
    laps of the journal, goes on with the last ascent where it was, and ends in the same bits.

    Attributes
    ----------
    legs : one for each ascent so far, and one for each time that an ascent went on to another tolerance
    fit : what was fitted to what, if that is known; another fit can do nothing with the legs
    """

    legs: list[Leg] = field(default_factory=list)
    fit: str | None = None
    _place: int = 0

    def open(self, fit: Callable[[], str]) -> None:
        """Begin a fit, or take it up again, from the first ascent."""
        now = fit()
        if self.fit is not None and self.fit != now:
            raise ValueError(
                "the journal is that of another fit: the data, a parameter of the estimator or the version of stickbreak "
                "differ.  Give the same, or begin without the journal."
            )
        self.fit = now
        self._place = 0

    def next(self) -> Leg | None:
        """What is known of the ascent that begins or goes on now."""
        known = self.legs[self._place] if self._place < len(self.legs) else None
        self._place += 1
        return known

    def note(self, leg: Leg) -> None:
        """What is known of it now, after another lap."""
        self.legs[self._place - 1 :] = [leg]


class NoJournal(Journal):
    """Of a search that is not to be taken up again."""

    def open(self, fit: Callable[[], str]) -> None:
        """Nothing is kept."""

    def note(self, leg: Leg) -> None:
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
        return replace(self, on_lap=lambda lap: None, history=[])

    def add(self, lap: Lap) -> None:
        """Another lap."""
        self.history.append(lap)
        self.on_lap(lap)
