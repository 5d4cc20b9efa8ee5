"""What documents say to the global step and to the bound, at the end of their iterations.

Entries, tables and topics that are left out are those of `stickbreak.kernels.documents`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._jit import jit as _jit
from ._jit import part as _part
from ._prefetch import prefetch
from .documents import FAINT, FLOOR, SHARE
from .own_topics import above, copied, pays, room_for, sum_below, take
from .single_topic import add_prior, add_single_topic, prior_for, single_topic
from .special import digamma
from .vectors import clear, sum_of

Array = NDArray[np.floating]

AHEAD = 2  # entries before which rows of R are asked for


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
        least = total if total < least else least
    return least


@_part
def own_topics(own, E, p, limited, room, q, Z):
    """How many topics a document has, K if none may be left out: their numbers in the room, their factors in q, and all Z_e.

    limited : whether the document has the topics with factors p (K,) above zero alone
    """
    K = p.size
    m = above(p, 0.0 if limited else FAINT, room.topics)
    few = limited or pays(m, K, own.size, room)
    while True:
        for k in range(K):
            q[k] = p[k]
        table = E
        at = own
        if few:
            take(q, room.topics[:m])
            table = copied(E, own, room.topics[:m], room)
            at = room.order[: own.size]
        else:
            m = K
            for k in range(K):
                room.topics[k] = k
        least = _masses(table, at, q[:m], Z)
        if limited or not few or sum_below(p, FAINT) <= SHARE * least:
            return m
        few = False


@_part
def _add_shares(table, at, counts, Z, log_mass, acc, logs):
    """Add a document's sums of c_e E_ek / Z_e, and of these times log Z_e - log_mass_e.

    Z : (n,) in, and its logarithms out
    """
    for e in range(at.size):
        row = table[at[e]]
        s = counts[e] / Z[e]
        Z[e] = math.log(Z[e])
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
        s = counts[e] * math.exp(-log_Z[e])
        out = R[own[e]]
        if q.size == out.size:
            for k in range(q.size):
                out[k] += s * row[k] * q[k]
        else:
            ahead = own[min(e + AHEAD, at.size - 1)]
            prefetch(R, ahead, topics)
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
        bound += work.gains[j] - acc[j] * math.log(work.q[j])
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
        sums[2, k] += n * math.log(work.q[j])
        sums[3, k] += work.logs[j]


@_part
def _add_single(own, counts, mass, prior, data, rho, N, R, sums):
    """The same of a document of a single topic, whose probabilities rho (K,) are times ``mass``; and add to the rows of R."""
    n = sum_of(counts) / mass
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
        limit = limits[d] if limits[d] < K else K
        most = limit if limit > most else most
    room = room_for(indptr, rows, E, most)
    work = Work(np.empty(K), np.empty(K), np.empty(K), np.empty(K))
    data = np.empty(K)
    known = prior_for(prior)
    factor = np.empty(K)
    for k in range(K):
        f = math.exp(known.psi[k])
        factor[k] = f if f > FLOOR else FLOOR
    for d in range(indptr.size - 1):
        some = slice(indptr[d], indptr[d + 1])
        own = rows[some]
        c = counts[some]
        mass = log_mass[some] if log_mass.size else log_mass
        limit = limits[d] if limits.size else K
        logs = log_Z[some]
        add_prior(known, sums)
        given = single[d] and not choose
        share = math.exp(mass[0]) if given and mass.size else 1.0
        m = K
        bound = -np.inf
        if not given:
            for k in range(K):
                n = N[d, k]
                if n > 0.0:
                    f = math.exp(digamma(n + prior[k]))
                    p[d, k] = f if f > FLOOR else FLOOR
                else:
                    p[d, k] = 0.0 if limits.size else factor[k]
            m = own_topics(own, E, p[d], limits.size > 0, room, work.q, logs)
        table = E if m == K else room.table[: own.size * m].reshape(own.size, m)
        at = own if m == K else room.order[: own.size]
        if not given:
            bound = mixed(table, at, c, logs, mass, known, room.topics, m, work)
        may = given or (choose and K > 1 and sum_of(c) >= 1.0)
        wins = may and single_topic(own, c, share, scores, known, bound, limit, data, p[d])
        single[d] = given or wins
        if single[d]:
            clear(logs)
            _add_single(own, c, share, known, data, p[d], N[d], R, sums)
        else:
            add_responsibilities(table, at, own, c, logs, room.topics[:m], work.q[:m], R)
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
            mass[e] = total if single[d] else total / math.exp(log_Z[e])
