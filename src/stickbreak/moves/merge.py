"""Merge: two clusters become one (Thesis 4.1)."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..model import Model, Summary
from .proposal import Proposal

Array = NDArray[np.floating]

CANDIDATES_PER_CLUSTER = 4


def propose_merges(
    model: Model, summary: Summary, divergence: Array, limit: int, may: Callable[[tuple[int, ...]], bool]
) -> list[Proposal]:
    """Pairs whose merge could raise the bound.

    The m-score (Thesis 4.1.4) is the gain of the data and allocation terms.  Merging can only lose assignment entropy
    (Eq. 4.7), so a pair whose score is not positive is never accepted and is not proposed.

    divergence : (K, K) what a row of cluster a loses if b explains it; the closest pairs are scored
    may : whether a pair is worth trying (again)
    """
    if summary.K < 2:
        return []
    loss = summary.N[:, None] * divergence
    first, second = np.triu_indices(summary.K, 1)
    nearest = np.argsort(np.minimum(loss, loss.T)[first, second], kind="stable")[: CANDIDATES_PER_CLUSTER * summary.K]
    nearest = np.array([i for i in nearest if may((int(first[i]), int(second[i])))], dtype=np.intp)
    first, second = first[nearest], second[nearest]
    scores = merge_scores(model, summary, first, second)
    best = [i for i in np.argsort(-scores, kind="stable") if scores[i] > 0][:limit]
    return [Proposal("merge", (int(first[i]), int(second[i])), None, float(scores[i])) for i in best]


def merge_scores(model: Model, summary: Summary, first: NDArray[np.integer], second: NDArray[np.integer]) -> Array:
    """Gain of data and allocation terms when clusters first[i] and second[i] become one (Thesis Eq. 4.6 and 4.9)."""
    marginal = model.log_marginal(summary)
    together = model.likelihood.log_marginal(summary.N[first] + summary.N[second], summary.S[first] + summary.S[second])
    slim, now = summary.without_statistics(), model.allocation.bound(summary)
    allocation = []
    for a, b in zip(first, second):
        allocation.append(model.allocation.bound(model.ordered(slim.merge(a, b))) - now)
    return np.asarray(together - marginal[first] - marginal[second] + np.array(allocation))
