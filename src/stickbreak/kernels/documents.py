"""The local step of topic models: documents to their expected topic counts, in the linear domain.

The entries of document d are ``indptr[d]:indptr[d + 1]``; entry e is one distinct observation, row ``rows[e]`` of a table of
likelihoods E = exp(C), seen ``counts[e]`` times.  Its responsibilities are r_ek = E_ek p_k / Z_e with p_k = exp(psi(theta_dk))
and Z_e = sum_k E_ek p_k, so that no exponential is taken per entry.

A document has few of many topics: the factor p_k of a topic without counts is exp(psi(prior_k)), which is next to nothing where
priors are small.  Such topics are left out of a document while the sum of their factors is too small, beside every Z_e, to
matter in the precision of the numbers (E is at most 1); if it is not, no topic is left out.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ._jit import jit as _jit
from ._jit import part as _part
from .own_topics import above, copied, pays, room_for, sum_below, take
from .special import digamma
from .vectors import clear

Array = NDArray[np.floating]


FLOOR = 1e-150  # of E and of p in float64: their product stays a number
FAINT, FAINT32 = 1e-17, 1e-15  # factors of topics that may be left out of a document, in float64 and in float32
SHARE, SHARE32 = 1e-13, 1e-7  # what the sum of these factors may be of a mass Z
_LARGEST_EXPONENT = 60.0
_EXP = np.exp(-np.arange(int(8 * _LARGEST_EXPONENT) + 1) / 8.0).astype(np.float32)


@_part
def _exp_digamma(x, y):
    """The numbers exp(psi(x)), in float32 to 3e-6 of their size for x > 0.1, and at least 1e-26.

    By recurrence to x + 6 and the series at z = x + 5.5; float64 arrays by `digamma`.

    x, y : (K,) float32, in and out
    """
    if x.itemsize == 8:
        for k in range(x.size):
            y[k] = max(math.exp(digamma(x[k])), FLOOR)
        return
    one = np.float32(1.0)
    for k in range(x.size):
        a = max(x[k], np.float32(1e-3))
        b = a * (a + np.float32(5.0))
        c = b + np.float32(4.0)
        d = b + np.float32(6.0)
        s = (np.float32(2.0) * a + np.float32(5.0)) * (one / b + one / c + one / d)  # 1/a + ... + 1/(a + 5), by pairs
        if not s < np.float32(_LARGEST_EXPONENT):  # nor a number: the table ends there
            s = np.float32(_LARGEST_EXPONENT)
        j = np.int32(s * np.float32(8.0))
        t = s - np.float32(j) * np.float32(0.125)
        u = one - t * (one - t * (np.float32(0.5) - t * (np.float32(1 / 6) - t * np.float32(1 / 24))))
        z = a + np.float32(5.5)
        i = one / z
        y[k] = _EXP[j] * u * (z + i * (np.float32(1 / 24) - np.float32(37 / 5760) * i * i))


@_part
def _factors(n, prior, known, x, p):
    """The factors p = exp(psi(n + prior)) for a document's counts n (m,) if they are known, or the prior."""
    for k in range(n.size):
        x[k] = n[k] + prior[k]
        p[k] = prior[k]
    if known:
        _exp_digamma(x, p)


@_part
def _add_entries(table, at, counts, p, tiny, acc):
    """Add sum_e c_e E_ek / Z_e to acc (K,), where row at[e] of the table is E_e; the smallest Z_e."""
    zero = p[0] - p[0]
    least = zero + np.inf
    for e in range(at.size):
        row = table[at[e]]
        Z = zero
        for k in range(p.size):
            Z += row[k] * p[k]
        s = counts[e] / (Z if tiny < Z else tiny)
        for k in range(p.size):
            acc[k] += s * row[k]
        least = Z if least > Z else least
    return least


@_part
def _fixed_point(own, counts, E, prior, tiny, tol, most, leave_out, room, work, start):
    """Iterate one document from its counts ``start`` (K,), which are replaced.

    own : the rows of its observations;  work : (5, K) room for numbers
    leave_out : whether topics may be left out
    returns : iterations done, and whether it ended because a topic that was left out may matter
    """
    x = work[0]  # rows by number are known to be contiguous
    p = work[1]
    acc = work[2]
    a = work[3]
    n = work[4]
    K = prior.size
    faint = FAINT if n.itemsize == 8 else FAINT32
    share = SHARE if n.itemsize == 8 else SHARE32
    for k in range(K):
        n[k] = start[k]
        a[k] = prior[k]
        room.topics[k] = k
    known = not math.isnan(n[0])  # else the first factors are the prior
    table = E
    at = own
    m = K
    outside = 0.0
    matters = False
    done = 0
    while done < most:
        _factors(n[:m], a[:m], known, x[:m], p[:m])
        done += 1
        kept = above(p[:m], faint, room.chosen) if leave_out and known else m
        if pays(kept, m, own.size, room):
            chosen = room.chosen[:kept]
            outside += sum_below(p[:m], faint)
            table = copied(table, at, chosen, room)
            at = room.order[: own.size]
            take(room.topics, chosen)
            take(a, chosen)
            take(n, chosen)
            take(p, chosen)
            m = kept
        for k in range(m):
            acc[k] = 0.0
        matters = outside > share * _add_entries(table, at, counts, p[:m], tiny, acc[:m])
        if matters:
            break
        change = np.float32(0.0)
        for k in range(m):  # in a loop of its own: see `jit`
            change += abs(acc[k] * p[k] - n[k])
        for k in range(m):
            n[k] = acc[k] * p[k]
        if change <= tol * K:  # false for NaN, after a cold start
            break
        known = True
    clear(start)
    for j in range(m):
        start[room.topics[j]] = n[j]
    return done, matters


@_jit
def document_counts(indptr, rows, counts, E, prior, tiny, tol, most, N):
    """Iterate each document to its fixed point (Thesis Alg. 5.1); N (n, K) is the start and the result.

    A document whose counts start at NaN starts from r proportional to E_ek prior_k.  Topics that are left out have none.

    E : (V, K), at most 1, counts : (nnz,), prior : (K,) in, alpha E[pi];  N : (n, K) in and out; all float32, or all float64
    tiny : of the same type, the smallest number of which the inverse is a number
    tol : the mean change of a document's K counts at which it has converged;  most : iterations at most
    returns : iterations done, of all documents
    """
    room = room_for(indptr, rows, E)
    work = np.empty((5, prior.size), prior.dtype)
    done = 0
    for d in range(indptr.size - 1):
        if indptr[d] == indptr[d + 1]:
            clear(N[d])
            continue
        own = rows[indptr[d] : indptr[d + 1]]
        c = counts[indptr[d] : indptr[d + 1]]
        matters = True
        for attempt in range(2):  # one call, of which there is one copy
            if matters:
                some, matters = _fixed_point(own, c, E, prior, tiny, tol, most, attempt == 0, room, work, N[d])
                done += some
    return done
