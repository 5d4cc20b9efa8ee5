"""Which clusters the visits of a lap look at: all of them, or for each row those near its own at the last visit."""

from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..model import Model, NearKind
from ..model.near import UNKNOWN
from .state import Problem, State
from .visit import Visit

NEGLIGIBLE = 0.01  # nats for each cluster, that a lap may lose for looking only at near clusters
BYTES = 1 << 30  # for the clusters of all rows, four each


class Looked(NamedTuple):
    """What a visit to a batch tells of the next, if that is to look only at near clusters.

    Attributes
    ----------
    owners : the identity of the cluster of each row, in order
    outside : nats, to first order, that the next visit is to lose, for each breadth of what is near (`Owners.outside`)
    """

    owners: NDArray[np.int32]
    outside: NDArray[np.floating]


class Sight(NamedTuple):
    """What the visits of a lap look at.

    Attributes
    ----------
    near : whether they look only at clusters near those of the last visit
    kind : the kind that is to say which cluster each row has; None where it is not asked for
    owners : for each batch, the place of the cluster of each row at the last visit, or -1; None where nothing is known
    identities : of the clusters
    """

    near: bool
    kind: NearKind | None
    owners: list[NDArray[np.integer] | None]
    identities: NDArray[np.int32]

    @classmethod
    def of(cls, problem: Problem, state: State, model: Model) -> tuple[Self, Model]:
        """What the visits of the next lap look at, and the model for them.

        They look only at near clusters where that costs next to nothing; those that begin clusters in single batches look at
        all.
        """
        identities = np.array(state.schedule.ids, np.int32)
        posterior = state.posterior
        source = problem.source
        kind: NearKind | None = None
        asked = problem.birth is None and problem.executor.looks_near
        if asked and not source.far and 4 * source.n_rows <= BYTES:
            kind = model.kind.near(model.likelihood, len(identities), lambda: posterior.divergences, source)
        nothing: list[NDArray[np.integer] | None] = [None for _ in problem.batches]
        within = [i for i, lost in enumerate(state.outside) if lost <= NEGLIGIBLE * state.total.K]
        if kind is None or not (state.near and state.owners and within):
            return cls(False, kind, nothing, identities), model
        kind = kind.within(within[0])
        most = max(identities.max(), *(owners.max(initial=0) for owners in state.owners))
        places = np.full(1 + most, UNKNOWN, np.int32)
        places[identities] = np.arange(len(identities))
        return cls(True, kind, [places[owners] for owners in state.owners], identities), replace(model, kind=kind)

    def looked(self, seen: Visit) -> Looked:
        """What a visit to a batch tells of the next."""
        owners = np.concatenate([self.identities[chunk.clusters] for chunk in seen.owners])
        return Looked(owners, np.sum([chunk.outside for chunk in seen.owners], axis=0))
