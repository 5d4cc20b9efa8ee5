"""What documents say of topics that are merged along a tree, for all its nodes in one visit."""

import math

import numpy as np

from ._jit import jit as _jit
from .special import digamma

FAINT = 1e-12  # responsibilities below add no more than rounding to an entropy


@_jit
def _branches(p, parents, seen, nodes):
    """Write the nodes of a tree that are topics with factors p > 0, or above one, to ``nodes``, the root last; how many.

    seen : (nodes,) room
    """
    seen[:] = False
    for k in range(p.size):
        seen[k] = p[k] > 0.0
    m = 0
    for j in range(parents.size):
        if seen[j]:
            nodes[m] = j
            m += 1
            if parents[j] >= 0:
                seen[parents[j]] = True
    return m


@_jit
def merged_statistics(indptr, rows, counts, E, prior, p, log_Z, N, parents, sums):
    """What the bound needs of topics that are merged along a tree, responsibilities added: sums for each of its nodes.

    E (V, K), p (n, K), log_Z (nnz,) in: factors of the responsibilities;  N : (n, K) in: counts of the documents
    prior : (nodes,) in: pseudo-counts of the nodes;  parents : (nodes,) in: each after its children, -1 for the root
    sums : (3, nodes) in and out: sum_d psi(theta_d), sum_d log Gamma(theta_d), - sum_e c_e r_e log r_e
    """
    K = E.shape[1]
    last = parents.size - 1
    n = np.empty(parents.size)
    r = np.zeros(parents.size)
    psi_prior = np.empty(parents.size)
    log_gamma_prior = np.empty(parents.size)
    nodes = np.empty(parents.size, np.int64)
    seen = np.empty(parents.size, np.bool_)
    for j in range(parents.size):
        psi_prior[j] = digamma(prior[j])
        log_gamma_prior[j] = math.lgamma(prior[j])
    for d in range(indptr.size - 1):
        own = nodes[: _branches(p[d], parents, seen, nodes)]
        n[:] = 0.0
        n[:K] = N[d]
        sums[0] += psi_prior
        sums[1] += log_gamma_prior
        for j in own:
            if j < last:
                n[parents[j]] += n[j]
            theta = n[j] + prior[j]
            sums[0, j] += digamma(theta) - psi_prior[j]
            sums[1, j] += math.lgamma(theta) - log_gamma_prior[j]
        for e in range(indptr[d], indptr[d + 1]):
            row = E[rows[e]]
            scale = np.exp(-log_Z[e])
            for j in own:
                r[j] = row[j] * p[d, j] * scale if j < K else 0.0
            for j in own:
                if j < last and r[j] > FAINT:
                    sums[2, j] -= counts[e] * r[j] * np.log(r[j])
                    r[parents[j]] += r[j]
            sums[2, last] -= counts[e] * r[last] * np.log(r[last])
