"""Sparse restarts of documents: a topic of a document is emptied, and stays so if that is better in the end (Thesis Alg. 5.2).

Points of the ascent of a document and their part of the bound are those of `stickbreak.kernels.document_ascent`.
"""

import numpy as np

from ._jit import jit as _jit
from ._jit import part as _part
from .document_ascent import bound_before, own_likelihoods, step
from .vectors import gather, largest_first, put

LEAST = 0.1  # tokens of a topic that is worth emptying
STEPS = 5  # iterations after a topic was emptied, before the document is judged


@_part
def _restarted(table, counts, prior, n, most):
    """Try to empty the topics of one document, the smallest first; ``n`` (m,) are its counts, in and out.

    returns : topics tried and emptied
    """
    m = n.size
    p = np.empty(m)
    acc = np.empty(m)
    Z = np.empty(counts.size)
    trial = np.empty(m)
    before = np.empty(m)
    order = np.empty(m, np.int64)
    largest_first(n, order)
    value = -np.inf
    tried = 0
    emptied = 0
    for i in range(m, -1, -1):  # first as it is; one call of each part, of which there is one copy
        put(n, trial)
        if i < m:
            k = order[i]
            if n[k] <= LEAST:
                continue
            if tried == most:
                break
            tried += 1
            trial[k] = 0.0
        for _ in range(STEPS + 1 if i < m else 1):
            put(trial, before)
            step(table, counts, prior, trial, p, acc, Z)
        other = bound_before(counts, prior, trial, p, Z)
        if i == m:
            value = other
        elif other > value:
            put(before, n)
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
    n = np.empty(K)
    a = np.empty(K)
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
        table = own_likelihoods(E, rows[indptr[d] : indptr[d + 1]], own[:m])
        gather(N[d], own[:m], n)
        gather(prior, own[:m], a)
        some = _restarted(table, counts[indptr[d] : indptr[d + 1]], a[:m], n[:m], most)
        tried += some[0]
        emptied += some[1]
        for j in range(m):
            N[d, own[j]] = n[j]
    return tried, emptied
