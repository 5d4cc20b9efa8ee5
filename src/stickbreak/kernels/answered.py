"""The local step of documents with answers, whose topics an answer pulls at (Thesis 8.3).

Entries and tables are those of `stickbreak.kernels.documents`.  Beside its words a document of n tokens has a parabola
f(m) = g' m - h/2 m' A m of its shares m = N / n.  Responsibilities stay factored, r_ek = E_ek exp(x_k) / Z_e, and with the best
theta for their counts N a document's part of the objective is, up to a constant,

    J = sum_e c_e log Z_e - x' N + G(N),    G(N) = sum_k log Gamma(N_k + prior_k) + f(N / n).

The first sum of G is convex, so that its slope alone would do, as in documents without answers.  f is concave: a step to its
slope may go too far.  But f lies above its tangent less D / (4 n) times the Kullback-Leibler divergence of the tokens' old
responsibilities from the new ones, D = h max_kl (A_kk + A_ll - 2 A_kl), as by Pinsker's inequality a step of m is no longer
than that.  So

    x <- (1 - rho) x + rho dG/dN,    rho = 1 / (1 + D / (4 n)),

never lowers J.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ._jit import jit as _jit
from .document_statistics import Work, add_mixed, add_responsibilities, mixed, own_topics
from .documents import FLOOR
from .own_topics import room_for
from .single_topic import prior_for
from .special import digamma
from .vectors import clear, place_of_largest, put, sum_of

Array = NDArray[np.floating]

FITTED = 500  # steps at most to the responsibilities that have given counts
CLOSE = 1e-10  # of the tokens: counts that differ by less are the same
LEAST = 1e-300  # of counts, where their logarithm is taken
LONGER, SHORTER = 2.0, 0.25  # of a step that raised the objective, and of one that did not
ROUNDING = 1e-9  # of a document's objective: what two sums of the same terms may differ by


@_jit
def _to_factors(x, p):
    """Write exp(x - max x), at least `FLOOR`, to p (K,)."""
    most = x[place_of_largest(x)]
    for k in range(x.size):
        p[k] = max(math.exp(x[k] - most), FLOOR)


@_jit
def _counts_of(own, c, E, p, N):
    """Write the counts sum_e c_e E_ek p_k / Z_e of factors p (K,) to N (K,)."""
    clear(N)
    for e in range(own.size):
        row = E[own[e]]
        Z = 0.0
        for k in range(p.size):
            Z += row[k] * p[k]
        s = c[e] / Z
        for k in range(p.size):
            N[k] += s * row[k]
    for k in range(p.size):
        N[k] *= p[k]


@_jit
def _log_masses(own, c, E, p):
    """sum_e c_e log Z_e of factors p (K,)."""
    total = 0.0
    for e in range(own.size):
        row = E[own[e]]
        Z = 0.0
        for k in range(p.size):
            Z += row[k] * p[k]
        total += c[e] * math.log(Z)
    return total


@_jit
def _product(A, N, k):
    """(A N)_k."""
    total = 0.0
    row = A[k]
    for j in range(N.size):
        total += row[j] * N[j]
    return total


@_jit
def _slopes(N, n, prior, g, h, A, x):
    """Write dG/dN to x (K,)."""
    for k in range(N.size):
        x[k] = digamma(N[k] + prior[k]) + (g[k] - h * _product(A, N, k) / n) / n


@_jit
def _gain(N, n, prior, g, h, A):
    """G(N)."""
    total = 0.0
    for k in range(N.size):
        total += math.lgamma(N[k] + prior[k]) + N[k] / n * (g[k] - 0.5 * h * _product(A, N, k) / n)
    return total


@_jit
def _fit_counts(own, c, E, wanted, n, x, p, N):
    """Find factors x (K,) whose counts N (K,) are those wanted, by iterative scaling."""
    for k in range(x.size):
        x[k] = math.log(max(wanted[k], LEAST))
    for _ in range(FITTED):
        _to_factors(x, p)
        _counts_of(own, c, E, p, N)
        apart = 0.0
        for k in range(x.size):
            apart += abs(wanted[k] - N[k])
        if apart <= CLOSE * n:
            break
        for k in range(x.size):
            x[k] += math.log(max(wanted[k], LEAST)) - math.log(max(N[k], LEAST))


@_jit
def _ascend(own, c, E, prior, g, h, A, rho, tol, most, work, x, N):
    """Iterate one document from factors x (K,), in and out, whose counts then are N (K,)."""
    p = work[0]
    slopes = work[1]
    before = work[2]
    n = sum_of(c)
    K = x.size
    for i in range(most):
        put(N, before)
        _to_factors(x, p)
        _counts_of(own, c, E, p, N)
        change = 0.0
        for k in range(K):
            change += abs(N[k] - before[k])
        if i + 1 == most or (i > 0 and change <= tol * K * rho):
            break
        _slopes(N, n, prior, g, h, A, slopes)
        for k in range(K):
            x[k] = (1.0 - rho) * x[k] + rho * slopes[k]


@_jit
def _objective(own, c, E, prior, g, h, A, x, N, p, room):
    """J of factors x (K,) at counts N (K,): if these are others than theirs, no less than that of any q with these counts."""
    _to_factors(x, p)
    total = _log_masses(own, c, E, p)
    for k in range(x.size):
        room[k] = N[k] * math.log(p[k])
    return total - sum_of(room) + _gain(N, sum_of(c), prior, g, h, A)


@_jit
def _climb(own, c, E, prior, g, h, A, rho, tol, most, work, x, N):
    """As `_ascend`, with steps longer than rho while the objective rises, which is looked at after each; the objective."""
    p = work[0]
    slopes = work[1]
    tried = work[2]
    counts = work[3]
    room = work[4]
    n = sum_of(c)
    K = x.size
    _to_factors(x, p)
    _counts_of(own, c, E, p, N)
    value = _objective(own, c, E, prior, g, h, A, x, N, p, room)
    step = rho
    for _ in range(most):
        _slopes(N, n, prior, g, h, A, slopes)
        for k in range(K):
            tried[k] = (1.0 - step) * x[k] + step * slopes[k]
        _to_factors(tried, p)
        _counts_of(own, c, E, p, counts)
        found = _objective(own, c, E, prior, g, h, A, tried, counts, p, room)
        if found < value and step > rho:
            step = max(rho, SHORTER * step)
            continue
        change = 0.0
        for k in range(K):
            change += abs(counts[k] - N[k])
        put(tried, x)
        put(counts, N)
        value = found
        if change <= tol * K * step:
            break
        step = min(1.0, LONGER * step)
    return value


@_jit
def answered_counts(indptr, rows, counts, E, prior, g, h, A, spread, tol, most, N, x):
    """Iterate documents with answers from counts N (n, K) to their fixed point; N and the factors x (n, K) are the result.

    No document's objective ends below that of any responsibilities with the counts it began with.  Where rho is above 1/2 the
    slopes at these counts are a sound first step; elsewhere what they lead to is compared with an upper bound of what the
    counts can be worth, and if it is not above, the ascent begins from responsibilities that have these very counts.

    E : (V, K) in, at most 1;  prior : (K,) in
    g : (n, K), h : (n,), A : (K, K) in: the parabola of each document;  spread : max_kl (A_kk + A_ll - 2 A_kl)
    tol : the mean change of a document's K counts at which it has converged, over rho;  most : iterations at most
    returns : how many documents began from the very counts
    """
    K = prior.size
    work = np.empty((5, K))
    first = np.empty(K)
    again = np.empty(K)
    other = np.empty(K)
    refitted = 0
    for d in range(indptr.size - 1):
        some = slice(indptr[d], indptr[d + 1])
        own = rows[some]
        c = counts[some]
        n = sum_of(c)
        steep = h[d] * spread / (4.0 * n)
        rho = 1.0 / (1.0 + steep)
        put(N[d], first)
        _slopes(first, n, prior, g[d], h[d], A, x[d])
        if steep <= 1.0:
            _ascend(own, c, E, prior, g[d], h[d], A, rho, tol, most, work, x[d], N[d])
            continue
        least = _objective(own, c, E, prior, g[d], h[d], A, x[d], first, work[0], work[1])
        found = _climb(own, c, E, prior, g[d], h[d], A, rho, tol, most, work, x[d], N[d])
        if found >= least - ROUNDING * abs(least):
            continue
        refitted += 1
        _fit_counts(own, c, E, first, n, again, work[0], other)
        if _climb(own, c, E, prior, g[d], h[d], A, rho, tol, most, work, again, other) > found:
            put(again, x[d])
            put(other, N[d])
    return refitted


@_jit
def answered_statistics(indptr, rows, counts, E, prior, x, N, p, log_Z, R, sums):
    """The exact responsibilities that factors x (n, K) imply, and what the bound needs of them.

    It is `stickbreak.kernels.document_statistics.document_statistics` with given factors, of documents in which each token has
    a topic of its own; N, p, log_Z, R and sums are as there.
    """
    K = E.shape[1]
    room = room_for(indptr, rows, E)
    work = Work(np.empty(K), np.empty(K), np.empty(K), np.empty(K))
    known = prior_for(prior)
    none = np.empty(0)
    for d in range(indptr.size - 1):
        some = slice(indptr[d], indptr[d + 1])
        own = rows[some]
        c = counts[some]
        sums[0] += known.psi
        sums[1] += known.log_gamma
        _to_factors(x[d], p[d])
        m = own_topics(own, E, p[d], False, room, work.q, log_Z[some])
        table = E if m == K else room.table[: own.size * m].reshape(own.size, m)
        at = own if m == K else room.order[: own.size]
        mixed(table, at, c, log_Z[some], none, known, room.topics, m, work)
        add_responsibilities(table, at, own, c, log_Z[some], room.topics[:m], work.q[:m], R)
        add_mixed(known, room.topics, m, work, p[d], N[d], sums)
