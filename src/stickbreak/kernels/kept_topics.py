"""Documents of at most L topics: which these are, and the counts of each (Thesis 7.3 and Alg. 7.4).

From a start with more topics, those with the smallest counts go, half of them at a time and a few iterations apart, until L
are left; the iterations then go on with these to their fixed point.  A document that is visited again begins with its own
topics, and others replace them only if their part of the bound is higher, so that no visit lowers it.

Points of the ascent of a document and their part of the bound are those of `stickbreak.kernels.document_ascent`.
"""

import numpy as np

from ._jit import jit as _jit
from ._jit import part as _part
from .document_ascent import bound_before, own_likelihoods, step
from .documents import FLOOR
from .own_topics import above, take
from .single_topic import prior_for, single_topic
from .vectors import clear, gather, largest_first, place_of_largest, put, sum_of

STEPS = 3  # iterations before topics go
LEAST = FLOOR**2  # of a mass Z in float64, of which the inverse is a number


@_part
def _first_counts(table, counts, prior, n, Z):
    """Write the counts n (m,) of responsibilities in proportion to E_ek prior_k."""
    clear(n)
    for e in range(counts.size):
        row = table[e]
        total = 0.0
        for k in range(n.size):
            total += row[k] * prior[k]
        s = counts[e] / max(total, LEAST)
        for k in range(n.size):
            n[k] += s * row[k]
    for k in range(n.size):
        n[k] *= prior[k]


@_part
def _fixed_point(table, counts, prior, tol, most, n, Z):
    """Iterate counts n (m,) until they change by no more than ``tol`` on average; their part of the bound."""
    m = n.size
    p = np.empty(m)
    acc = np.empty(m)
    before = np.empty(m)
    for _ in range(most):
        put(n, before)
        step(table, counts, prior, n, p, acc, Z)
        change = 0.0
        for k in range(m):
            change += abs(n[k] - before[k])
        if change <= tol * m:
            break
    value = bound_before(counts, prior, n, p, Z)
    put(before, n)
    return value


@_part
def _largest(n, kept):
    """The places of the ``kept`` largest of the counts n (m,), in increasing order; of equal ones those of the first."""
    order = np.empty(n.size, np.int64)
    largest_first(n, order)
    last = order[kept - 1]
    chosen = np.empty(kept, np.int64)
    found = 0
    for k in range(n.size):
        if n[k] > n[last] or (n[k] == n[last] and k <= last):
            chosen[found] = k
            found += 1
    return chosen


@_part
def _settled(own, counts, E, prior, limit, tol, most, topics, n):
    """Counts n (K,) of a document, NaN or 0 for a cold start, to their fixed point in at most ``limit`` topics.

    topics : (K,) out: the numbers of these, whose counts are then the first of n
    returns : how many topics, and their part of the bound
    """
    m = above(n, 0.0, topics)
    cold = m == 0
    if cold:
        m = n.size
        for k in range(m):
            topics[k] = k
    else:
        take(n, topics[:m])
    a = np.empty(m)
    gather(prior, topics[:m], a)
    Z = np.empty(own.size)
    p = np.empty(m)
    acc = np.empty(m)
    while True:
        table = own_likelihoods(E, own, topics[:m])
        if cold:
            _first_counts(table, counts, a, n, Z)
            cold = False
        if m <= limit:
            return m, _fixed_point(table, counts, a[:m], tol, most, n[:m], Z)
        for _ in range(STEPS):
            step(table, counts, a[:m], n[:m], p[:m], acc[:m], Z)
        kept = max(limit, m // 2)
        chosen = _largest(n[:m], kept)
        take(a, chosen)
        take(n, chosen)
        take(topics, chosen)
        m = kept


@_part
def _put(n, topics, out):
    """Write the counts n (m,) of some topics to ``out`` (K,), which has no others; one of them has some."""
    clear(out)
    for j in range(n.size):
        out[topics[j]] = n[j]
    if not out[place_of_largest(out)] > 0.0:
        out[topics[0]] = LEAST


@_jit
def kept_counts(indptr, rows, counts, E, scores, prior, limits, tol, most, N):
    """Iterate each document to a fixed point in at most ``limits`` (n,) topics; N (n, K) float64 is the start and the result.

    A document whose counts start at NaN starts from r proportional to E_ek prior_k.  With a limit of one it has the topic whose
    part of the bound is highest.

    E : (V, K), at most 1, scores : log E, counts : (nnz,), prior : (K,), limits : (n,) int64, at least 1, in
    tol : the mean change of a document's counts at which it has converged;  most : iterations at most
    """
    K = prior.size
    known = prior_for(prior)
    topics = np.empty(K, np.int64)
    n = np.empty(K)
    data = np.empty(K)
    for d in range(indptr.size - 1):
        own = rows[indptr[d] : indptr[d + 1]]
        c = counts[indptr[d] : indptr[d + 1]]
        if own.size == 0:
            clear(N[d])
        elif limits[d] == 1:
            single_topic(own, c, 1.0, scores, known, -np.inf, 1, data, n)
            topics[0] = place_of_largest(n)
            n[0] = sum_of(c)
            _put(n[:1], topics, N[d])
        else:
            put(N[d], n)
            warm = n[place_of_largest(n)] > 0.0
            value = -np.inf
            for attempt in range(2 if warm else 1):  # once more from none; one call, of which there is one copy
                if attempt == 1:
                    clear(n)
                m, found = _settled(own, c, E, prior, limits[d], tol, most, topics, n)
                if attempt == 0 or found > value:
                    value = found
                    _put(n[:m], topics, N[d])
