"""A lower bound on the expected log probability of the partition of soft assignments, whatever its labels."""

from typing import Any

import numpy as np
from scipy.special import entr, gammaln, psi

from ..kernels.special import log_rise
from ._base import Array
from .summaries import Counts


def applies(summary: Counts, discount: float) -> bool:
    """Whether `log_partition` is defined: there is a row, and every cluster in use has more of them than the discount."""
    used = summary.N > 0.0
    return bool(summary.N.sum() >= 1.0 and (summary.N[used] > discount).all())


def log_partition(summary: Counts, concentration: Any, discount: float) -> Array:
    """A lower bound on E[log p(partition)] less the entropy of labels given the partition, under the Pitman-Yor process.

    With q(z) = prod_n q(z_n), the assignments of rows to K labels, log p(X) >= E[log p(partition)] + E[log p(X | z)]
    + H(partition), and H(partition) = H(z) - H(z | partition).  Let P_k be the probability that cluster k has no row, and e_k
    the probability that its surest row is in another.  As the mean of -log r_nk, weighted by r_nk, is H_k / N_k,

        e_k <= 1 - exp(-H_k / N_k),    P_k <= min(e_k, exp(-N_k)).

    With f(n) = log Gamma(n - d) - log Gamma(1 - d), which is convex, a cluster of random size adds to the probability of the
    partition (`PitmanYor`) at least f(N_k) + P_k min(0, N_k f'(N_k) - f(N_k) - log(gamma + (K - 1) d)).  Labels follow from the
    partition where the surest row of each is in its cluster.  So H(z | partition) is at most the sum over k of

        min(log K, h(e_k) + 2 e_k log K),    h(e) = -e log e - (1 - e) log(1 - e).

    If all rows are certain, e = 0, and this is log p(partition).

    concentration : one, or several (n, 1); the bound is (), or (n,)
    """
    used = summary.N > 0.0
    N = summary.N[used]
    K = len(N)
    f = gammaln(N - discount) - gammaln(1.0 - discount)
    unsure = -np.expm1(-np.maximum(summary.H[used], 0.0) / N)
    empty = np.minimum(unsure, np.exp(-N))
    without = N * psi(N - discount) - f - np.log(concentration + (K - 1) * discount)
    seated = f + empty * np.minimum(without, 0.0)
    tables = np.log(concentration + discount * np.arange(1.0, K)).sum(axis=-1)
    first = np.squeeze(concentration, axis=-1) if np.ndim(concentration) else concentration
    rows = log_rise(max(N.sum() - 1.0, 0.0), first + 1.0)
    return np.asarray(tables + (seated - _naming(unsure, K)).sum(axis=-1) - rows)


def _naming(unsure: Array, K: int) -> Array:
    """What labels of clusters add to their entropy given the partition, (K,)."""
    anchored = entr(unsure) + entr(1.0 - unsure) + 2.0 * unsure * np.log(K)
    return np.asarray(np.where(unsure < 0.5, np.minimum(anchored, np.log(K)), np.log(K)))
