"""The one move: hand the responsibility mass of clusters A to clusters J, and count what that gives over a lap."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..allocations import Responsibilities
from ..kernels.assign import gather_mass
from ..likelihoods._base import Rows
from ..model import Model, Parameters, Summary, restricted_step

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Proposal:
    """Replace clusters A by clusters J:  r'_nj = (sum_{k in A} r_nk) p_nj.

    A merge has one J and p = 1.  Births and deletes have several, with p_n the softmax of their scores for row n (the
    restricted local step of Thesis 4.2.1 and 4.3.1).  Any p gives a valid bound, so J's parameters stay as they were
    proposed while the data are visited, and the summaries of J over a lap are exact.

    Attributes
    ----------
    kind : "birth", "merge" or "delete"
    removed : the clusters A, as columns of the current summary
    parameters : of the clusters J, or None for a single cluster that takes everything
    estimate : the gain of the ELBO that is hoped for, in nats
    """

    kind: str
    removed: tuple[int, ...]
    parameters: Parameters | None
    estimate: float

    @property
    def n_added(self) -> int:
        """The number of clusters J."""
        return 1 if self.parameters is None else len(self.parameters.bias)

    @property
    def subjects(self) -> tuple[int, ...]:
        """The clusters the move is about: for a delete, the one to go, without its absorbers."""
        return self.removed[:1] if self.kind == "delete" else self.removed

    def track(self, model: Model, X: Rows, weights: Array, kept: Responsibilities, summary: Summary) -> Summary:
        """The summary of clusters J for a chunk of rows whose responsibilities and ordinary summary are given."""
        member = np.zeros(summary.K, dtype=np.bool_)
        member[list(self.removed)] = True
        rows, mass = np.empty(len(weights), dtype=np.int64), np.empty(len(weights))
        count = gather_mass(*kept, member, rows, mass)
        rows, mass = rows[:count], mass[:count]
        if self.parameters is None:
            columns = list(self.removed)
            entropy = -np.dot(weights[rows], mass * np.log(mass))
            return Summary(
                summary.N[columns].sum(keepdims=True),
                summary.S[columns].sum(axis=0, keepdims=True),
                np.array([entropy]),
                np.zeros(()),
            )
        return restricted_step(model, self.parameters, X[rows], weights[rows], mass)[0]


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
