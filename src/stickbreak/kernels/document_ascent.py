"""Steps of the ascent of a document, in float64, and its part of the bound.

The counts N_k of a document are a point of its ascent: with p = exp(psi(N + prior)), the responsibilities r_ek = E_ek p_k / Z_e
and the counts N'_k = sum_e c_e r_ek that follow, its part of the bound is, up to a constant,

    L(N) = sum_e c_e log Z_e - sum_k N'_k log p_k + sum_k [ log Gamma(N'_k + prior_k) - log Gamma(prior_k) ]

(Thesis Eq. 5.27 at theta = N' + prior), which the iteration N <- N' never lowers.
"""

import math

import numpy as np

from ._jit import part as _part
from .documents import FLOOR
from .special import digamma


@_part
def own_likelihoods(E, own, topics):
    """The likelihoods (size, m) of the entries of a document, in rows ``own`` of E, for some topics."""
    table = np.empty((own.size, topics.size))
    for e in range(own.size):
        row = E[own[e]]
        for j in range(topics.size):
            table[e, j] = row[topics[j]]
    return table


@_part
def step(table, counts, prior, n, p, acc, Z):
    """One iteration from counts n (m,): the counts that follow, in ``n``.

    table : (size, m) the likelihoods of the document's entries;  acc : (m,) room for numbers
    p : (m,), Z : (size,) out: factors and masses where it began
    """
    m = n.size
    for k in range(m):
        p[k] = max(math.exp(digamma(n[k] + prior[k])), FLOOR)
        acc[k] = 0.0
    for e in range(counts.size):
        row = table[e]
        total = 0.0
        for k in range(m):
            total += row[k] * p[k]
        Z[e] = total
    for e in range(counts.size):
        row = table[e]
        s = counts[e] / Z[e]
        for k in range(m):
            acc[k] += s * row[k]
    for k in range(m):
        n[k] = acc[k] * p[k]


@_part
def bound_before(counts, prior, n, p, Z):
    """L of where a step began, from what it wrote."""
    value = 0.0
    for e in range(counts.size):
        value += counts[e] * math.log(Z[e])
    for k in range(n.size):
        value += math.lgamma(n[k] + prior[k]) - math.lgamma(prior[k]) - n[k] * math.log(p[k])
    return value
