"""What documents say to the global step and to the bound, at the end of their iterations.

Entries, tables and topics that are left out are those of `stickbreak.kernels.documents`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._jit import jit as _jit
from ._jit import part as _part
from .documents import FAINT, FLOOR, SHARE
from .own_topics import above, copied, pays, room_for, sum_below, take
from .single_topic import add_prior, add_single_topic, prior_for, single_topic
from .special import digamma

Array = NDArray[np.floating]


class Work(NamedTuple):
    """Room for what one document says, of the topics that it has.

    q : (K,) factors;  acc : (K,) counts;  logs : (K,) sum_e c_e r_ek log Z_e
    gains : (K,) log Gamma(N_k + prior_k) - log Gamma(prior_k)
    """

    q: Array
    acc: Array
    logs: Array
    gains: Array


@_part
def _masses(table, at, q, Z):
    """Z_e = sum_k E_ek q_k for entries in rows ``at`` of a table; the smallest of them."""
    least = np.inf
    for e in range(at.size):
        row = table[at[e]]
        total = 0.0
        for k in range(q.size):
            total += row[k] * q[k]
        Z[e] = total
        least = min(least, total)
    return least


@_part
def own_topics(own, E, p, room, q, Z):
    """How many topics a document has, K if none may be left out: their numbers in the room, their factors in q, and all Z_e."""
    for k in range(p.size):
        q[k] = p[k]
    m = above(p, FAINT, room.topics)
    if pays(m, p.size, own.size, room):
        take(q, room.topics[:m])
        table = copied(E, own, room.topics[:m], room)
        if sum_below(p, FAINT) <= SHARE * _masses(table, room.order[: own.size], q[:m], Z):
            return m
    for k in range(p.size):
        q[k] = p[k]
        room.topics[k] = k
    _masses(E, own, q, Z)
    return p.size


@_part
def _kept_topics(own, E, N, p, room, q, Z):
    """The same of a document that has the topics with counts N (K,) alone; p (K,) becomes 0 for the others."""
    for k in range(p.size):
        if not N[k] > 0.0:
            p[k] = 0.0
        q[k] = p[k]
    m = above(p, 0.0, room.topics)
    take(q, room.topics[:m])
    _masses(copied(E, own, room.topics[:m], room), room.order[: own.size], q[:m], Z)
    return m


@_part
def _add_shares(table, at, counts, Z, log_mass, acc, logs):
    """Add a document's sums of c_e E_ek / Z_e, and of these times log Z_e - log_mass_e.

    Z : (n,) in, and its logarithms out
    """
    for e in range(at.size):
        row = table[at[e]]
        s = counts[e] / Z[e]
        Z[e] = np.log(Z[e])
        part = Z[e] - (log_mass[e] if log_mass.size else 0.0)
        for k in range(acc.size):
            t = s * row[k]
            acc[k] += t
            logs[k] += t * part


@_part
def add_responsibilities(table, at, own, counts, log_Z, topics, q, R):
    """Add c_e r_ek of a document to the rows of R."""
    for e in range(at.size):
        row = table[at[e]]
        s = counts[e] * np.exp(-log_Z[e])
        out = R[own[e]]
        if q.size == out.size:
            for k in range(q.size):
                out[k] += s * row[k] * q[k]
        else:
            for j in range(q.size):
                out[topics[j]] += s * row[j] * q[j]


@_part
def _add_same(own, counts, mass, rho, R):
    """Add c_e rho_k to the rows of R, where all tokens of a document have the same topic."""
    for e in range(own.size):
        c = counts[e] / mass
        out = R[own[e]]
        for k in range(rho.size):
            out[k] += c * rho[k]


@_part
def mixed(table, at, counts, log_Z, log_mass, prior, topics, m, work):
    """What a document of m topics says when each token has its own, in ``work``; its part of the bound, up to a constant."""
    acc = work.acc[:m]
    logs = work.logs[:m]
    for j in range(m):
        acc[j] = 0.0
        logs[j] = 0.0
    _add_shares(table, at, counts, log_Z, log_mass, acc, logs)
    for j in range(m):
        k = topics[j]
        acc[j] *= work.q[j]
        logs[j] *= work.q[j]
        work.gains[j] = math.lgamma(acc[j] + prior.counts[k]) - prior.log_gamma[k]
    bound = 0.0
    for j in range(m):  # in a loop of its own: see `jit`
        bound += work.gains[j] - acc[j] * np.log(work.q[j])
    for e in range(counts.size):
        bound += counts[e] * log_Z[e]
    return bound


@_part
def add_mixed(prior, topics, m, work, p, N, sums):
    """Write the factors p and counts N (K,) of such a document, and add what it says to the sums, less what its prior says."""
    for k in range(p.size):
        p[k] = 0.0
        N[k] = 0.0
    for j in range(m):
        k = topics[j]
        n = work.acc[j]
        p[k] = work.q[j]
        N[k] = n
        sums[0, k] += digamma(n + prior.counts[k]) - prior.psi[k]
        sums[1, k] += work.gains[j]
        sums[2, k] += n * np.log(work.q[j])
        sums[3, k] += work.logs[j]


@_part
def _add_single(own, counts, mass, prior, data, rho, N, R, sums):
    """The same of a document of a single topic, whose probabilities rho (K,) are times ``mass``; and add to the rows of R."""
    n = counts.sum() / mass
    for k in range(rho.size):
        rho[k] *= mass
        N[k] = n * rho[k]
        sums[3, k] += rho[k] * data[k]
    add_single_topic(n, rho, prior, sums[0], sums[1], sums[3])
    _add_same(own, counts, mass, rho, R)


@_jit
def document_statistics(indptr, rows, counts, log_mass, E, scores, prior, limits, choose, single, N, p, log_Z, R, sums):
    """The exact responsibilities that document-topic counts N imply, in float64, and what the bound needs of them.

    p = exp(psi(N + prior)) and r = E p / Z; then N <- sum_e c_e r_e, and theta = N + prior is optimal for these r.  Topics that
    are left out of a document have r = 0 there.  Where a single topic for all tokens of a document has the higher bound
    (`stickbreak.kernels.single_topic`), p has the probabilities of the topics, and r = p.  Documents with limits have only the
    topics that have counts in N, or the most probable ones as their single topic.

    log_mass : (nnz,) in: log of the mass of which each count is a part (restricted steps), or (0,) for none
    E : (V, K) float64 in, at most 1, scores : log E;  prior : (K,) in;  N : (n, K) float64 in: start, out: counts
    limits : (n,) in: the most topics of each document, or (0,) for no limits
    choose : whether documents may have a single topic, if that has the higher bound, or are as ``single`` says
    single : (n,) bool in and out: whether a document has a single topic
    p : (n, K), log_Z : (nnz,) out: the factors of the responsibilities, 0 of topics left out
    R : (V, K) float64 in and out: responsibilities by row of the table, added up
    sums : (4, K) in and out: sum_d E[psi(theta_dk)], sum_d E[log Gamma(theta_dk)], sum_d N_dk log p_dk, sum_e c_e r_ek log Z_e;
        of documents of a single topic, the last has entropies and sum_e c_e p_k scores_ek
    """
    K = E.shape[1]
    most = 0
    for d in range(limits.size):
        most = max(most, min(limits[d], K))
    room = room_for(indptr, rows, E, most)
    work = Work(np.empty(K), np.empty(K), np.empty(K), np.empty(K))
    data = np.empty(K)
    known = prior_for(prior)
    factor = np.empty(K)
    for k in range(K):
        factor[k] = max(np.exp(known.psi[k]), FLOOR)
    for d in range(indptr.size - 1):
        some = slice(indptr[d], indptr[d + 1])
        own = rows[some]
        c = counts[some]
        mass = log_mass[some] if log_mass.size else log_mass
        limit = limits[d] if limits.size else K
        add_prior(known, sums)
        if single[d] and not choose:
            share = math.exp(mass[0]) if mass.size else 1.0
            single_topic(own, c, share, scores, known, -np.inf, limit, data, p[d])
            log_Z[some] = 0.0
            _add_single(own, c, share, known, data, p[d], N[d], R, sums)
            continue
        for k in range(K):
            p[d, k] = max(np.exp(digamma(N[d, k] + prior[k])), FLOOR) if N[d, k] > 0.0 else factor[k]
        if limits.size:
            m = _kept_topics(own, E, N[d], p[d], room, work.q, log_Z[some])
        else:
            m = own_topics(own, E, p[d], room, work.q, log_Z[some])
        table = E if m == K else room.table[: own.size * m].reshape(own.size, m)
        at = own if m == K else room.order[: own.size]
        bound = mixed(table, at, c, log_Z[some], mass, known, room.topics, m, work)
        may = choose and K > 1 and c.sum() >= 1.0
        single[d] = may and single_topic(own, c, 1.0, scores, known, bound, limit, data, p[d])
        if single[d]:
            log_Z[some] = 0.0
            _add_single(own, c, 1.0, known, data, p[d], N[d], R, sums)
        else:
            add_responsibilities(table, at, own, c, log_Z[some], room.topics[:m], work.q[:m], R)
            add_mixed(known, room.topics, m, work, p[d], N[d], sums)


@_jit
def entry_mass(indptr, rows, E, single, p, log_Z, columns, mass):
    """The responsibility of each entry on a set of columns, mass_e = sum_{k in columns} E_ek p_dk / Z_e.

    Where a document has a single topic, it is sum_{k in columns} p_dk.
    """
    for d in range(indptr.size - 1):
        for e in range(indptr[d], indptr[d + 1]):
            total = 0.0
            for k in columns:
                total += p[d, k] if single[d] else E[rows[e], k] * p[d, k]
            mass[e] = total if single[d] else total / np.exp(log_Z[e])
