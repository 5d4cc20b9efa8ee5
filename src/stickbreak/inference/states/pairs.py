"""The search for the states of many rows that repeat: several starts from pairs of rows, crossed one after another."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...data import SequenceSource
from ...model import Model, Summary
from ...moves.agglomeration import reduced
from ...moves.spectral import spectral_states
from ..laps import Laps
from ..paths import best_paths
from ..search import Search
from .crossing import crossed_states


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/hmm_chromatin.py.

    Attributes
    ----------
    reaches, directions : rows to either side in the pairs of each start, and eigenvectors at most
    first, crossing : laps from a start, and from states that are crossed
    wider : times the states of the ascent that is crossed with the model in hand, to begin with
    pause : laps in which merges, or deletes, wait after none was accepted
    most_quiet : quiet laps, after which moves that are left are not tried
    """

    reaches: tuple[int, ...] = (8, 3, 1)
    directions: int = 128
    first: int = 20
    crossing: int = 25
    wider: float = 1.3
    pause: int = 4
    most_quiet: int = 2


TUNING = Tuning()


@dataclass
class PairSearch(Search):
    """Find states where rows repeat, and are so many that laps take long (see `Search`).

    Pairs of nearby rows show most states at once (`stickbreak.moves.spectral`), in every start some others, so that each
    ascent from one is crossed with the model in hand (`stickbreak.inference.states.crossing`).  No moves are asked for
    until crossed states have settled: to judge one takes as long as a lap.
    """

    def starts(self, most: int) -> list[Summary]:
        """States from pairs of rows near and far, where these tell any; ``most`` states at most when they are crossed."""
        room = min(TUNING.directions, int(most / TUNING.wider))
        if room < 1:
            return []
        tasks = list(zip(TUNING.reaches, self.rng.spawn(len(TUNING.reaches))))
        found = self.executor.over(self.source, partial(_states_within, self.model, room), tasks)
        return [start for start in found if start is not None]

    def run(self, start: Summary) -> None:
        """Search from one start."""
        self.cross([start])

    def cross(self, starts: Sequence[Summary]) -> None:
        """Ascents from starts, each crossed with the model in hand; then what does not pay is merged or deleted."""
        for start in starts:
            before = self.best
            if before is not None and self._laps_left <= 0:
                return
            trial = self._ascent(self.model, start, "pairs of rows", TUNING.first)
            if before is not None and self._laps_left > 0:
                self._cross(before, trial)
        if self._laps_left > 0:
            best = self._in_hand
            self._ascent(best.model, best.total, "removals", sys.maxsize, self._removals)

    def _cross(self, one: Laps, other: Laps) -> None:
        """An ascent from the pieces into which the states of two ascents cut each other."""
        most = max(one.total.K, int(TUNING.wider * other.total.K))
        path, other_path = self._path(one), self._path(other)
        crossed = crossed_states(one.model, self._sequences, path, other_path, most)
        self._ascent(one.model, crossed, "crossed", TUNING.crossing)

    def _ascent(self, model: Model, start: Summary, origin: str, laps: int, moves: tuple[str, ...] = ()) -> Laps:
        """So many laps from a start, and the outcome kept if it is better."""
        best = self.best
        options = replace(self.options, max_laps=min(self.options.max_laps, len(self.history) + laps))
        trial = self._laps(model, moves, options, best, origin=origin, most_quiet=TUNING.most_quiet, pause=TUNING.pause)
        if best is None:
            self.best = trial
        trial.run(model.ordered(reduced(model, start, model.room)))
        if best is not None:
            self._keep(best, trial)
        return trial

    def _path(self, laps: Laps) -> NDArray[np.intp]:
        """The most probable state of every row, given all rows, (T,)."""
        return best_paths(laps.model, laps.total, self._sequences, self.executor)

    @property
    def _sequences(self) -> SequenceSource:
        assert isinstance(self.source, SequenceSource)
        return self.source


def _states_within(
    model: Model, most: int, source: SequenceSource, task: tuple[int, np.random.Generator]
) -> Summary | None:
    """States from pairs of rows within a reach, of at most so many eigenvectors."""
    reach, rng = task
    return spectral_states(model, source, rng, reach, most)
