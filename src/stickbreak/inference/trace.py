"""What a fit reports lap by lap."""

from dataclasses import dataclass

from ..moves import MoveRecord


@dataclass(frozen=True)
class Lap:
    """One pass over the data.

    Attributes
    ----------
    number : laps done so far, from 1
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
