"""What a fit reports lap by lap."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ..moves import MoveRecord

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
    """

    number: int
    seconds: float
    lower_bound: float
    n_clusters: int
    explored_bound: float
    explored_clusters: int
    moves: tuple[MoveRecord, ...]
    rows_per_second: float

    @property
    def accepted(self) -> int:
        """Moves accepted in this lap."""
        return sum(record.accepted for record in self.moves)


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
