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
    lower_bound : the ELBO after this lap and its moves, in nats
    n_clusters : K after this lap and its moves
    moves : what became of the proposals verified in this lap, by kind
    rows_per_second : speed of this lap
    """

    number: int
    seconds: float
    lower_bound: float
    n_clusters: int
    moves: tuple[MoveRecord, ...]
    rows_per_second: float

    @property
    def accepted(self) -> int:
        """Moves accepted in this lap."""
        return sum(record.accepted for record in self.moves)
