"""The one move: hand the responsibility mass of clusters A to clusters J, and count what that gives over a lap."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..model import Parameters

Array = NDArray[np.floating]

KINDS = ("birth", "merge", "delete")  # of moves that estimators take by name, in the order in which they are shown


@dataclass(frozen=True)
class Proposal:
    """Replace clusters A by clusters J:  r'_nj = (sum_{k in A} r_nk) p_nj.

    A merge has one J and p = 1.  Births and deletes have several, with p_n the softmax of their scores for row n (the
    restricted local step of Thesis 4.2.1 and 4.3.1).  Any p gives a valid bound, so J's parameters stay as they were
    proposed while the data are visited, and the summaries of J over a lap are exact.

    Attributes
    ----------
    kind : the name of the move, such as "birth", "merge" or "delete"
    removed : the clusters A, as columns of the current summary
    parameters : of the clusters J, or None for a single cluster that takes everything
    estimate : the gain of the ELBO that is hoped for, in nats
    whole : whether J are all clusters, those that are not removed first: for sequences, see `stickbreak.moves.states`
    n_absorbers : how many of the clusters A, the last ones, are among J: they only take mass, and the move is not about them
    """

    kind: str
    removed: tuple[int, ...]
    parameters: Parameters | None
    estimate: float
    whole: bool = False
    n_absorbers: int = 0

    @property
    def n_added(self) -> int:
        """The number of clusters J."""
        return 1 if self.parameters is None else len(self.parameters.bias)

    @property
    def subjects(self) -> tuple[int, ...]:
        """The clusters that the move is about, under which its failures are remembered: A without absorbers."""
        return self.removed[: len(self.removed) - self.n_absorbers]

    @property
    def split(self) -> Array:
        """How the clusters J share the prior of the clusters A, (J,); for rows, where it is not needed, equally."""
        if self.parameters is None or self.parameters.prior is None:
            return np.full(self.n_added, 1.0 / self.n_added)
        prior = self.parameters.prior[: self.n_added]
        return np.asarray(prior / prior.sum())


@dataclass(frozen=True)
class MoveRecord:
    """What became of the proposals of one kind in one lap: how many were verified, and the gains of those accepted."""

    kind: str
    tried: int
    gains: tuple[float, ...]

    @property
    def accepted(self) -> int:
        """How many were accepted."""
        return len(self.gains)
