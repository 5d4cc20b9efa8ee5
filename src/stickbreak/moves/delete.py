"""Delete: the mass of a cluster and of its neighbours is shared out among the neighbours (Thesis 4.3)."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..likelihoods import Multinomial
from ..model import Model, Posterior, Summary
from .better import NEGLIGIBLE
from .proposal import Proposal

Array = NDArray[np.floating]

N_ABSORBERS = 5
MOST_MIXED, STEPS = 50, 20  # topics, the smallest, of which mixtures are sought, and steps of EM


def propose_deletes(
    posterior: Posterior, dtype: np.dtype[np.floating], limit: int, may: Callable[[int], bool]
) -> list[Proposal]:
    """Clusters whose rows others explain almost as well.

    Without cluster k the bound saves the cost of its parameters, KL(q(phi_k) || prior), and loses at most N_k times the
    divergence to its nearest neighbour, or of topics, which a document may mix, to a mixture of the others.  Clusters where
    the loss is below twice the saving are proposed, cheapest first, with those others as absorbers.
    Clusters that are named in advance stay.

    may : whether a cluster may still be tried
    """
    model = posterior.model
    summary = posterior.summary
    saving = posterior.cost
    if summary.K < 2:
        return []
    parameters = posterior.parameters(dtype)
    distance = posterior.divergences + np.diag(np.full(summary.K, np.inf))
    loss = summary.N * distance.min(axis=1)
    open_ = ~model.named(summary)
    hopeless = -saving - NEGLIGIBLE
    if model.kind.has_documents and isinstance(model.likelihood.plain, Multinomial):
        open_ &= np.fromiter(map(may, range(summary.K)), np.bool_, summary.K)
        limit = max(5, limit // 2)
        smallest = np.argsort(summary.N, kind="stable")[: max(MOST_MIXED, summary.K // 8)]
        some = smallest[open_[smallest]]
        if len(some):
            loss, distance = _mixture_losses(model, summary, some, loss, distance)
            hopeless[some] = -np.inf  # documents may mix topics, each as it likes
    estimates = saving - loss
    proposals = []
    cheapest = np.argsort(-estimates, kind="stable")
    for k in cheapest[open_[cheapest]][:limit]:
        if may(int(k)) and estimates[k] > hopeless[k]:
            absorbers = np.argsort(distance[k], kind="stable")[: min(N_ABSORBERS, summary.K - 1)]
            removed = (int(k), *map(int, absorbers))
            estimate = float(estimates[k])
            takers = parameters.take(absorbers)
            proposals.append(Proposal("delete", removed, takers, estimate, n_absorbers=len(absorbers)))
    return proposals


def _mixture_losses(
    model: Model, summary: Summary, some: NDArray[np.integer], loss: Array, distance: Array
) -> tuple[Array, Array]:
    """Losses (K,) and distances (K, K) where some topics may be explained by a mixture of others, found by EM.

    loss_k = sum_v s_kv (log p_kv - log sum_j w_j p_jv);  the nearest others are those of the largest weight w_j.
    """
    p = model.likelihood.posterior(summary.N, summary.S).probabilities
    S = np.maximum(summary.S[some, : p.shape[1]], NEGLIGIBLE)  # a topic may have no words at all
    w = np.full((len(some), summary.K), 1.0 / (summary.K - 1))
    w[np.arange(len(some)), some] = 0.0
    totals = S.sum(axis=1, keepdims=True)
    for _ in range(STEPS):
        w *= ((S / (w @ p)) @ p.T) / totals
    loss = loss.copy()
    distance = distance.copy()
    loss[some] = np.minimum(loss[some], (S * np.log(p[some] / (w @ p))).sum(axis=1))
    distance[some] = -w
    return loss, distance
