"""The search for states that goes on from those of a stream, on a sample of it."""

from dataclasses import dataclass
from itertools import cycle

from ...model import Summary
from .excursions import TUNING as OF_EXCURSIONS
from .excursions import ExcursionSearch

PATIENCE = 4  # excursions without gain after which there are no more


@dataclass
class StateRenewal(ExcursionSearch):
    """Whether other states explain sequences better than those that a stream has (see `ExcursionSearch`).

    One ascent from these states with all moves, and excursions of the usual kinds until a few have not paid.
    """

    at_first: int = PATIENCE
    patience: int = PATIENCE

    def run(self, start: Summary) -> None:
        """Search from the states of the stream; the outcome is ``best``."""
        self.begin(start, OF_EXCURSIONS.most_quiet)
        self._in_turn(cycle(self._kinds()), self.at_first)
        self.outcome.polish(self.options.at_last)
