"""What a fit reports lap by lap."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from ..moves import MoveRecord
from ..moves.proposal import KINDS

MOST = 10_000  # laps in the history of a stream


@dataclass(frozen=True)
class Lap:
    """One pass over the data.

    Attributes
    ----------
    number : laps done so far, from 1; the laps of a long stream of `partial_fit` are listed in twos, fours, ...
    seconds : since the start of the fit
    lower_bound : the ELBO of the best model so far, in nats, after this lap and its moves
    n_clusters : its K
    explored_bound, explored_clusters : the same of the configuration this lap worked on; lower than the best during an
        excursion (see `stickbreak.inference.search`), equal to it otherwise
    moves : what became of the proposals verified in this lap, by kind
    rows_per_second : speed of this lap
    ascent : the number of the ascent that the lap belongs to, from 1
    origin : what that ascent began with: "start", or for an excursion what was changed in the best model so far
    sample_rows : rows of the sample that the lap and its bounds are of; 0 for all rows
    """

    number: int
    seconds: float
    lower_bound: float
    n_clusters: int
    explored_bound: float
    explored_clusters: int
    moves: tuple[MoveRecord, ...]
    rows_per_second: float
    ascent: int = 1
    origin: str = "start"
    sample_rows: int = 0

    @property
    def accepted(self) -> int:
        """Moves accepted in this lap."""
        return sum(record.accepted for record in self.moves)


@dataclass(frozen=True)
class Ascent:
    """The laps (at least one) from one start to where they settled."""

    laps: tuple[Lap, ...]

    @property
    def last(self) -> Lap:
        """Its last lap."""
        return self.laps[-1]

    @property
    def is_excursion(self) -> bool:
        """Whether it began with a change of the best model."""
        return self.last.origin != "start"

    @property
    def kept(self) -> bool:
        """Whether it reached the best bound so far on the same rows, so that the search went on from here."""
        return self.last.explored_bound == self.last.lower_bound

    @property
    def moves(self) -> dict[str, int]:
        """Accepted moves by kind."""
        records = [record for lap in self.laps for record in lap.moves]
        return {kind: sum(r.accepted for r in records if r.kind == kind) for kind in KINDS}


def ascents(history: Sequence[Lap]) -> list[Ascent]:
    """The ascents that a search was made of, in order.

    The moves of those that were kept are how the clusters of the result were found; what the others did was undone.
    """
    return [Ascent(tuple(laps)) for _, laps in groupby(history, lambda lap: (lap.sample_rows, lap.ascent))]


def shortened(history: Sequence[Lap]) -> list[Lap]:
    """The laps of a stream; if there are `MOST` or more, each pair becomes the later lap with the moves of both."""
    if len(history) < MOST:
        return list(history)
    began = [0.0, *(lap.seconds for lap in history)]
    rows = [lap.rows_per_second * (stop - start) for lap, (start, stop) in zip(history, pairwise(began), strict=True)]
    pairs = [slice(i, i + 2) for i in range(0, len(history), 2)]
    return [_joined(history[pair], sum(rows[pair]), began[pair.start]) for pair in pairs]


def _joined(laps: Sequence[Lap], rows: float, began: float) -> Lap:
    last = laps[-1]
    moves = tuple(record for lap in laps for record in lap.moves)
    return replace(last, moves=moves, rows_per_second=rows / max(last.seconds - began, 1e-9))
