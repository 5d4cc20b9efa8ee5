"""What merging two states adds to the log probability of first states and transitions given the shares of the states."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.special import log_rise
from ._base import Array

SMALLEST = 1e-300  # pseudo-count
AT_ONCE = 1 << 18  # numbers of a block of pairs


class Concentrations(NamedTuple):
    """Those of a row of transitions, of staying, and of first states."""

    alpha: float
    kappa: float
    first: float


def merge_gains(
    counted: Array,
    shares: Array,
    at: Concentrations,
    pairs: tuple[NDArray[np.integer], NDArray[np.integer]],
    merged: Array,
) -> Array:
    """What merging states a[i] and b[i] adds, (n,).

        log p = sum_j { sum_k log Gamma(M_jk + alpha_j m_k + kappa [k = j]) / Gamma(alpha_j m_k + kappa [k = j])
                        - log Gamma(M_j. + alpha_j + kappa) / Gamma(alpha_j + kappa) },    j = 0: first states, without kappa

    Only columns a and b, and rows a and b, change.

    counted : M (K + 1, K), first states and then the transitions from each state
    shares : m (K + 1,);  pairs : a, b, (n,) each;  merged : (n,) share of the merged state
    """
    K = counted.shape[1]
    m = shares[:K]
    states = np.arange(K)
    strengths = np.append(at.first, np.full(K, at.alpha))
    stays = counted[states + 1, states]
    total = counted[1:].sum(axis=1)
    whole = at.alpha + at.kappa
    rises = _rise((counted, stays[None], total[None]), (np.outer(strengths, m), at.alpha * m + at.kappa, whole))
    apart = rises[: K + 1]  # without kappa
    row = apart[1:].sum(axis=1) - apart[states + 1, states] + rises[K + 1] - rises[K + 2]  # what goes with each row
    gains = np.empty(len(merged))
    size = max(1, AT_ONCE // (K + 1))
    for start in range(0, len(merged), size):
        some = slice(start, start + size)
        a, b = (one[some] for one in pairs)
        n = np.arange(len(a))
        both = counted[a + 1] + counted[b + 1]
        inside = stays[a] + stays[b] + counted[a + 1, b] + counted[b + 1, a]
        share = merged[some]
        counts = (counted[:, a] + counted[:, b], both.T, inside[None], (total[a] + total[b])[None])
        rises = _rise(counts, (np.outer(strengths, share), at.alpha * m[:, None], at.alpha * share + at.kappa, whole))
        rises[: K + 1] -= apart[:, a] + apart[:, b]
        for one in (a, b):
            rises[one + 1, n] = 0.0
            rises[K + 1 + one, n] = 0.0
        rises[-1] *= -1.0
        gains[some] = rises.sum(axis=0) - row[a] - row[b]
    return gains


def _rise(counts: tuple[Array, ...], priors: tuple[Array | float, ...]) -> Array:
    """Log Gamma(count + prior) - log Gamma(prior) of counts (any, n), one below the other; priors are broadcast."""
    wide = [np.broadcast_to(prior, count.shape) for count, prior in zip(counts, priors)]
    return log_rise(np.concatenate(counts), np.maximum(np.concatenate(wide), SMALLEST))
