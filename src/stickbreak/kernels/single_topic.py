"""Documents of a single topic: all tokens of a document have the same one, and which is uncertain.

With q(z_d1 = ... = z_dn = k) = rho_k and q(pi_d | k) = Dirichlet(prior + n e_k), a document's part of the bound is

    sum_k rho_k { log Gamma(prior_k + n) - log Gamma(prior_k) + sum_e c_e log E_ek - log rho_k }

up to what no choice of q changes, and its maximum is the logarithm of the sum of exp{...} over topics, without the last term.
A mean-field q gives up the uncertainty that is the same for all tokens; this one gives up all but that.

Counts need not be whole, but n >= 1: by Hoelder's inequality sum_k prod_e x_ek^c_e <= prod_e (sum_k x_ek)^c_e only then, with
x_ek = pi_k E_ek, and the right-hand side is what mean-field q bounds.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._jit import part as _part
from .special import digamma
from .vectors import any_above, place_of_largest, place_of_smallest, sum_of

Array = NDArray[np.floating]

FAINT = 1e-18  # probabilities of topics, beside the largest, that are rounding
_BETWEEN = 2  # entries between two looks at whether there is still a chance
_KEPT = 64  # whole numbers of tokens for which the rises of log Gamma are kept


class Prior(NamedTuple):
    """Pseudo-counts of the topics in every document, and functions of them.

    counts, psi, log_gamma : (K,)
    rises : (_KEPT, K) log Gamma(counts + n) - log Gamma(counts) for n tokens; 0 where not known yet
    largest, smallest : where the largest and the smallest of the counts are
    """

    counts: Array
    psi: Array
    log_gamma: Array
    rises: Array
    largest: int
    smallest: int


@_part
def prior_for(prior):
    """What is known of pseudo-counts (K,)."""
    K = prior.size
    largest = place_of_largest(prior)
    known = Prior(prior, np.empty(K), np.empty(K), np.empty((_KEPT, K)), largest, place_of_smallest(prior))
    for k in range(K):
        for n in range(_KEPT):
            known.rises[n, k] = 0.0
        known.psi[k] = digamma(prior[k])
        known.log_gamma[k] = math.lgamma(prior[k])
    return known


@_part
def add_prior(known, sums):
    """Add what a document without observations says to sums (at least 2, K): E[psi(theta_dk)] and E[log Gamma(theta_dk)]."""
    for k in range(known.counts.size):
        sums[0, k] += known.psi[k]
        sums[1, k] += known.log_gamma[k]


@_part
def _rise(prior, k, n):
    """Log Gamma(prior_k + n) - log Gamma(prior_k)."""
    i = int(n) if n < _KEPT else 0
    if i != n:
        return math.lgamma(prior.counts[k] + n) - prior.log_gamma[k]
    if prior.rises[i, k] == 0.0:
        prior.rises[i, k] = math.lgamma(prior.counts[k] + n) - prior.log_gamma[k]
    return prior.rises[i, k]


@_part
def _log_likelihoods(own, counts, scores, least, data):
    """Write sum_e c_e scores_ek to data (K,); whether the largest is above ``least``, if not, some entries may be missing.

    scores : (V, K) in, none positive
    """
    for k in range(data.size):
        data[k] = 0.0
    for e in range(own.size):
        row = scores[own[e]]
        c = counts[e]
        for k in range(data.size):
            data[k] += c * row[k]
        if e % _BETWEEN == _BETWEEN - 1 and not any_above(data, least):
            return False
    return any_above(data, least)


@_part
def _cut(x, limit):
    """Make all but the largest ``limit`` of the numbers x (K,) -inf; of equal ones the first are kept."""
    last = -1  # where the smallest of those kept is
    for _ in range(limit):
        best = -1
        for k in range(x.size):
            later = last < 0 or x[k] < x[last] or (x[k] == x[last] and k > last)
            if later and (best < 0 or x[k] > x[best]):
                best = k
        last = best
    least = x[last]
    for k in range(x.size):
        if x[k] < least or (x[k] == least and k > last):
            x[k] = -np.inf


@_part
def single_topic(own, counts, mass, scores, prior, least, limit, data, rho):
    """The best probabilities rho (K,) of topics of which one explains all of a document; whether their bound beats another.

    At most ``limit`` topics have any: the most probable ones, renormalised, which are the best so many (Thesis Alg. 7.2).

    own, counts : the entries; counts are those of the tokens times ``mass``, the probability that they have one of these topics
    least : the bound to beat: if it is not beaten, rho means nothing; -inf for none
    data : (K,) out: sum_e c_e log E_ek, of whole counts
    """
    n = sum_of(counts) / mass
    scale = 1.0 / mass
    K = rho.size
    most = _rise(prior, prior.largest, n)
    if not _log_likelihoods(own, counts, scores, (least - most - math.log(K)) * mass, data):
        return False
    for k in range(K):
        data[k] *= scale
    lowest = data[place_of_largest(data)] - (most - _rise(prior, prior.smallest, n)) + math.log(FAINT)
    best = -np.inf
    for k in range(K):
        value = data[k] + _rise(prior, k, n) if data[k] > lowest else -np.inf
        rho[k] = value
        best = value if value > best else best
    if limit < K:
        _cut(rho, limit)
    shares = 0.0
    for k in range(K):
        shares += math.exp(rho[k] - best) if rho[k] > -np.inf else 0.0
    bound = best + math.log(shares)
    if not bound > least:
        return False
    for k in range(K):
        share = math.exp(rho[k] - bound) if rho[k] > -np.inf else 0.0
        rho[k] = share if share > FAINT else 0.0
    return True


@_part
def add_single_topic(n, rho, prior, psi_theta, log_gamma_theta, entropies):
    """Add what a document of n tokens says to sums (K,) over documents, less what its prior says: E[psi(theta_dk)],
    E[log Gamma(theta_dk)], and - rho_k log rho_k.

    rho : (K,) in: probabilities of the topics
    """
    for k in range(rho.size):
        r = rho[k]
        if r > 0.0:
            psi_theta[k] += r * (digamma(prior.counts[k] + n) - prior.psi[k])
            log_gamma_theta[k] += r * _rise(prior, k, n)
            entropies[k] -= r * math.log(r)
