"""Delete: the mass of a cluster and of its neighbours is shared out among the neighbours (Thesis 4.3)."""

import numpy as np
from numpy.typing import NDArray

from ..model import Parameters, Summary
from .proposal import Proposal

Array = NDArray[np.floating]

N_ABSORBERS = 5
NEGLIGIBLE = 0.01  # nats; see `verify`


def propose_deletes(
    summary: Summary, parameters: Parameters, saving: Array, divergence: Array, limit: int
) -> list[Proposal]:
    """Clusters whose rows others explain almost as well.

    Without cluster k the bound saves the cost of its parameters, KL(q(phi_k) || prior), and loses at most N_k times the
    divergence to its nearest neighbour.  Clusters where the loss is below twice the saving are proposed, cheapest first,
    with the nearest neighbours as absorbers.

    saving : (K,) the cost of each cluster's parameters
    divergence : (K, K) what a row of cluster a loses if b explains it
    """
    if summary.K < 2:
        return []
    distance = divergence + np.diag(np.full(summary.K, np.inf))
    estimates = saving - summary.N * distance.min(axis=1)
    proposals = []
    for k in np.argsort(-estimates, kind="stable")[:limit]:
        if estimates[k] > -saving[k] - NEGLIGIBLE:
            absorbers = np.argsort(distance[k], kind="stable")[: min(N_ABSORBERS, summary.K - 1)]
            removed = (int(k), *map(int, absorbers))
            proposals.append(Proposal("delete", removed, parameters.take(absorbers), float(estimates[k])))
    return proposals
