"""The local step of topic models: documents to their expected topic counts, in the linear domain.

The entries of document d are ``indptr[d]:indptr[d + 1]``; entry e is one distinct observation, row ``rows[e]`` of a table of
likelihoods E = exp(C), seen ``counts[e]`` times.  Its responsibilities are r_ek = E_ek p_k / Z_e with p_k = exp(psi(theta_dk))
and Z_e = sum_k E_ek p_k, so that no exponential is taken per entry.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ._jit import jit as _jit
from .special import digamma

Array = NDArray[np.floating]


FLOOR = 1e-150  # of E and of p in float64: their product stays a number
FAINT = 1e-12  # responsibilities below add no more than rounding to an entropy
_LARGEST_EXPONENT = 60.0
_EXP = np.exp(-np.arange(int(8 * _LARGEST_EXPONENT) + 1) / 8.0).astype(np.float32)


@_jit
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


@_jit
def _first_factors(N, prior, x, p):
    """The factors p = exp(psi(N + prior)) for a document's counts N (K,), or the prior where they are NaN."""
    if np.isnan(N[0]):
        p[:] = prior
        return
    for k in range(N.size):
        x[k] = N[k] + prior[k]
    _exp_digamma(x, p)


@_jit
def document_counts(indptr, rows, counts, E, prior, tiny, tol, most, N):
    """Iterate each document to its fixed point (Thesis Alg. 5.1); N (n, K) is the start and the result.

    A document whose counts start at NaN starts from r proportional to E_ek prior_k.

    E : (V, K), counts : (nnz,), prior : (K,) in, alpha E[pi];  N : (n, K) in and out; all float32, or all float64
    tiny : of the same type, the smallest number of which the inverse is a number
    tol : the mean change of a document's K counts at which it has converged;  most : iterations at most
    returns : iterations done, of all documents
    """
    K = E.shape[1]
    x = np.empty_like(prior)
    p = np.empty_like(prior)
    acc = np.empty_like(prior)
    done = 0
    for d in range(indptr.size - 1):
        if indptr[d] == indptr[d + 1]:
            N[d] = 0.0
            continue
        _first_factors(N[d], prior, x, p)
        for _ in range(most):
            done += 1
            acc[:] = 0.0
            for e in range(indptr[d], indptr[d + 1]):
                row = E[rows[e]]
                Z = np.float32(0.0)
                for k in range(K):
                    Z += row[k] * p[k]
                s = counts[e] / max(Z, tiny)
                for k in range(K):
                    acc[k] += s * row[k]
            change = np.float32(0.0)
            for k in range(K):  # in a loop of its own: see `jit`
                change += abs(acc[k] * p[k] - N[d, k])
            for k in range(K):
                new = acc[k] * p[k]
                N[d, k] = new
                x[k] = new + prior[k]
            if change <= tol * K:  # false for NaN, after a cold start
                break
            _exp_digamma(x, p)
    return done


@_jit
def document_statistics(indptr, rows, counts, log_mass, E, prior, N, p, log_Z, R, sums):
    """The exact responsibilities that document-topic counts N imply, in float64, and what the bound needs of them.

    p = exp(psi(N + prior)) and r = E p / Z; then N <- sum_e c_e r_e, and theta = N + prior is optimal for these r.

    log_mass : (nnz,) in: log of the mass of which each count is a part (restricted steps), or (0,) for none
    E : (V, K) float64 in;  prior : (K,) in;  N : (n, K) float64 in: start, out: counts
    p : (n, K), log_Z : (nnz,) out: the factors of the responsibilities
    R : (V, K) float64 in and out: responsibilities by row of the table, added up
    sums : (4, K) in and out: sum_d [psi(theta_dk)], sum_d log Gamma(theta_dk), sum_d N_dk log p_dk, sum_e c_e r_ek log Z_e
    """
    K = E.shape[1]
    acc = np.empty(K)
    logs = np.empty(K)
    for d in range(indptr.size - 1):
        q = p[d]
        for k in range(K):
            q[k] = max(np.exp(digamma(N[d, k] + prior[k])), FLOOR)
        acc[:] = 0.0
        logs[:] = 0.0
        for e in range(indptr[d], indptr[d + 1]):
            row = E[rows[e]]
            out = R[rows[e]]
            Z = 0.0
            for k in range(K):
                Z += row[k] * q[k]
            log_Z[e] = np.log(Z)
            s = counts[e] / Z
            part = log_Z[e] - (log_mass[e] if log_mass.size else 0.0)
            for k in range(K):
                t = s * row[k]
                acc[k] += t
                logs[k] += t * part
                out[k] += t * q[k]
        for k in range(K):
            n = acc[k] * q[k]
            N[d, k] = n
            theta = n + prior[k]
            sums[0, k] += digamma(theta)
            sums[1, k] += math.lgamma(theta)
            sums[2, k] += n * np.log(q[k])
            sums[3, k] += logs[k] * q[k]


@_jit
def entry_mass(indptr, rows, E, p, log_Z, columns, mass):
    """The responsibility of each entry on a set of columns: mass_e = sum_{k in columns} E_ek p_dk / Z_e."""
    for d in range(indptr.size - 1):
        for e in range(indptr[d], indptr[d + 1]):
            total = 0.0
            for k in columns:
                total += E[rows[e], k] * p[d, k]
            mass[e] = total / np.exp(log_Z[e])


@_jit
def merged_statistics(indptr, rows, counts, E, prior, p, log_Z, N, parents, sums):
    """What the bound needs of topics that are merged along a tree, responsibilities added: sums for each of its nodes.

    E (V, K), p (n, K), log_Z (nnz,) in: factors of the responsibilities;  N : (n, K) in: counts of the documents
    prior : (nodes,) in: pseudo-counts of the nodes;  parents : (nodes,) in: each after its children, -1 for the root
    sums : (3, nodes) in and out: sum_d psi(theta_d), sum_d log Gamma(theta_d), - sum_e c_e r_e log r_e
    """
    K = E.shape[1]
    last = parents.size - 1
    n = np.zeros(parents.size)
    r = np.zeros(parents.size)
    for d in range(indptr.size - 1):
        n[:K] = N[d]
        n[K:] = 0.0
        for j in range(last):
            n[parents[j]] += n[j]
        for j in range(parents.size):
            theta = n[j] + prior[j]
            sums[0, j] += digamma(theta)
            sums[1, j] += math.lgamma(theta)
        for e in range(indptr[d], indptr[d + 1]):
            row = E[rows[e]]
            scale = np.exp(-log_Z[e])
            for k in range(K):
                r[k] = row[k] * p[d, k] * scale
            r[K:] = 0.0
            for j in range(last):
                if r[j] > FAINT:
                    sums[2, j] -= counts[e] * r[j] * np.log(r[j])
                    r[parents[j]] += r[j]
            sums[2, last] -= counts[e] * r[last] * np.log(r[last])


@_jit
def _count_topics(z, n, present, place):
    """Count the topics of a document's tokens, -1 for none, in n (K,), all zero before; how many topics are present."""
    many = 0
    for k in z:
        if k >= 0:
            if n[k] == 0.0:
                present[many], place[k] = k, many
                many += 1
            n[k] += 1.0
    return many


@_jit
def gibbs_sweep(indptr, words, z, E, cumulative, totals, seed, R):
    """One sweep of collapsed Gibbs sampling over documents: each token draws its topic given all others of its document.

    The topic of a token of word v has probability in proportion to (n_dk + a_k) E_vk, where n_d counts the other tokens of the
    document and E is that of the last sweep, for the token's own topic as it is without the token.  The part of a_k is drawn
    from cumulative sums, that of n_d from the topics present, so that the cost hardly grows with K (Yao et al. 2009).

    words, z : (n,) in, in and out: topic of each token, -1 at first
    E, cumulative : (V, K) float32 in: E and running sums of E a
    totals : (K,) in: what E_vk was divided by, 0 for no correction
    seed : a number for each sweep and chunk;  R : (V, K) int32 in and out: tokens by word and topic
    """
    K = E.shape[1]
    n = np.zeros(K, np.float32)
    place = np.empty(K, np.int64)
    present = np.empty(K, np.int64)
    weight = np.empty(K, np.float32)
    state = np.uint64(seed)
    for d in range(indptr.size - 1):
        many = _count_topics(z[indptr[d] : indptr[d + 1]], n, present, place)
        for i in range(indptr[d], indptr[d + 1]):
            row = E[words[i]]
            old = z[i]
            shrink = np.float32(1.0)
            if old >= 0:
                n[old] -= 1.0
                if n[old] == 0.0:
                    many -= 1
                    last = present[many]
                    present[place[old]] = last
                    place[last] = place[old]
                elif totals[old] > 0.0:
                    shrink -= np.float32(1.0) / (row[old] * totals[old])
            total = np.float32(0.0)
            for j in range(many):
                k = present[j]
                total += n[k] * row[k] * (shrink if k == old else np.float32(1.0))
                weight[j] = total
            state += np.uint64(0x9E3779B97F4A7C15)
            h = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            u = np.float32(np.float64((h ^ (h >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53)
            u *= total + cumulative[words[i], K - 1]
            if u < total:
                j = 0
                while j < many - 1 and weight[j] <= u:
                    j += 1
                new = present[j]
            else:
                new = min(np.searchsorted(cumulative[words[i]], u - total), K - 1)
            if n[new] == 0.0:
                present[many], place[new] = new, many
                many += 1
            n[new] += 1.0
            z[i] = new
            R[words[i], new] += 1
        n[present[:many]] = 0.0
