"""Sparse restarts of documents: a topic of a document is emptied, and stays so if that is better in the end (Thesis Alg. 5.2).

The counts N_k of a document are a point of its ascent: with p = exp(psi(N + prior)), the responsibilities r_ek = E_ek p_k / Z_e
and the counts N'_k = sum_e c_e r_ek that follow, its part of the bound is, up to a constant,

    L(N) = sum_e c_e log Z_e - sum_k N'_k log p_k + sum_k [ log Gamma(N'_k + prior_k) - log Gamma(prior_k) ]

(Thesis Eq. 5.27 at theta = N' + prior), which the iteration N <- N' never lowers.
"""

import math

import numpy as np

from ._jit import jit as _jit
from .documents import FLOOR
from .special import digamma

LEAST = 0.1  # tokens of a topic that is worth emptying
STEPS = 5  # iterations after a topic was emptied, before the document is judged


@_jit
def _step(table, counts, prior, n, p, acc, Z):
    """One iteration from counts n (m,): the counts that follow, in ``n``, and L of where it began.

    table : (size, m) the likelihoods of the document's entries;  p, acc : (m,), Z : (size,) room for numbers
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
    value = 0.0
    for e in range(counts.size):
        value += counts[e] * math.log(Z[e])
    for k in range(m):
        n[k] = acc[k] * p[k]
    for k in range(m):
        value += math.lgamma(n[k] + prior[k]) - math.lgamma(prior[k]) - n[k] * math.log(p[k])
    return value


@_jit
def _restarted(table, counts, prior, n, most):
    """Try to empty the topics of one document, the smallest first; ``n`` (m,) are its counts, in and out.

    returns : topics tried and emptied
    """
    m = n.size
    p = np.empty(m)
    acc = np.empty(m)
    Z = np.empty(counts.size)
    trial = np.empty(m)
    best = n.copy()
    value = _step(table, counts, prior, best, p, acc, Z)
    order = np.argsort(n)
    tried = 0
    emptied = 0
    for k in order:
        if n[k] <= LEAST:
            continue
        if tried == most:
            break
        tried += 1
        trial[:] = n
        trial[k] = 0.0
        for _ in range(STEPS):
            other = _step(table, counts, prior, trial, p, acc, Z)
        before = trial.copy()
        other = _step(table, counts, prior, trial, p, acc, Z)
        if other > value:
            n[:] = before
            value = other
            emptied += 1
    return tried, emptied


@_jit
def restart_documents(indptr, rows, counts, E, prior, most, N):
    """Empty topics of documents where that raises their part of the bound; N (n, K) float64 are the counts, in and out.

    E : (V, K), at most 1;  counts : (nnz,);  prior : (K,);  most : topics of a document that are tried at most
    returns : topics tried and emptied, of all documents
    """
    K = prior.size
    own = np.empty(K, np.int64)
    tried = 0
    emptied = 0
    for d in range(indptr.size - 1):
        m = 0
        for k in range(K):
            if N[d, k] > 0.0:
                own[m] = k
                m += 1
        if m < 2:
            continue
        size = indptr[d + 1] - indptr[d]
        table = np.empty((size, m))
        for e in range(size):
            row = E[rows[indptr[d] + e]]
            for j in range(m):
                table[e, j] = row[own[j]]
        n = N[d][own[:m]]
        some = _restarted(table, counts[indptr[d] : indptr[d + 1]], prior[own[:m]], n, most)
        tried += some[0]
        emptied += some[1]
        for j in range(m):
            N[d, own[j]] = n[j]
    return tried, emptied
