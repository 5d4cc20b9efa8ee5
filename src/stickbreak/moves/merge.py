"""Merge: two clusters become one (Thesis 4.1)."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..allocations.mixture import MixturePrior
from ..model import Posterior
from .proposal import Proposal

Array = NDArray[np.floating]

FEWEST = 20  # all pairs of few clusters
SUMS = 1 << 17  # numbers in the sums of pairs that are scored at once


def propose_merges(
    posterior: Posterior, limit: int, may: Callable[[tuple[int, ...]], bool]
) -> tuple[list[Proposal], list[tuple[int, int]]]:
    """Merges that could raise the bound, best first, and the pairs of clusters that were looked at in vain.

    The m-score (Thesis 4.1.4) is the gain of the data and allocation terms.  Merging can only lose assignment entropy
    (Eq. 4.7), so a pair whose score is not positive is never accepted and is not proposed.  The closest pairs are scored.

    limit : the most merges that are proposed
    may : whether a pair is worth trying (again)
    """
    model = posterior.model
    summary = posterior.summary
    if summary.K < 2:
        return [], []
    loss = summary.N[:, None] * posterior.divergences
    first, second = np.triu_indices(summary.K, 1)
    named = model.named(summary)
    free = ~(named[first] & named[second])  # of two clusters that are named in advance none may go
    first = first[free]
    second = second[free]
    nearest = np.argsort(np.minimum(loss, loss.T)[first, second], kind="stable")
    nearest = nearest[: max(FEWEST, int(model.kind.recipe.pairs * summary.K))]
    pairs = [(int(a), int(b)) for a, b in zip(first[nearest], second[nearest]) if may((int(a), int(b)))]
    if not pairs:
        return [], []
    scores = merge_scores(posterior, *np.array(pairs, dtype=np.intp).T)
    order = np.argsort(-scores, kind="stable")
    least = 0.0 if model.kind.recipe.scored else -np.inf
    best = [Proposal("merge", pairs[i], None, float(scores[i])) for i in order if scores[i] > least]
    return best[:limit], [pairs[i] for i in order if not scores[i] > least]


def merge_scores(posterior: Posterior, first: NDArray[np.integer], second: NDArray[np.integer]) -> Array:
    """Gain of data and allocation terms when clusters first[i] and second[i] become one (Thesis Eq. 4.6 and 4.9).

    Of documents that of the data term alone: sums do not tell what the others will be.
    """
    marginal = posterior.log_marginal
    summary = posterior.summary
    N = summary.N
    S = summary.S
    at_once = max(1, SUMS // max(1, S.shape[1]))
    pieces = [slice(i, i + at_once) for i in range(0, len(first), at_once)]
    pairs = [(first[piece], second[piece]) for piece in pieces]
    likelihood = posterior.model.likelihood
    together = np.concatenate([likelihood.log_marginal(N[a] + N[b], S[a] + S[b]) for a, b in pairs])
    data = np.asarray(together - marginal[first] - marginal[second])
    allocation = posterior.model.allocation
    if not isinstance(allocation, MixturePrior):
        return data
    return np.asarray(data + allocation.exact_merge_gains(summary, posterior.solution, first, second))
