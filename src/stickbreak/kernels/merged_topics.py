"""What documents say of topics that are merged along a tree, for all its nodes in one visit."""

import math

import numpy as np

from ._jit import jit as _jit
from ._jit import part as _part
from .single_topic import add_prior, add_single_topic, prior_for
from .special import digamma
from .vectors import sum_of

FAINT = 1e-12  # responsibilities below add no more than rounding to an entropy


@_part
def _branches(p, parents, seen, nodes):
    """Write the nodes that are topics with factors p > 0, or above one, to ``nodes``; how many.

    seen : (nodes,) room
    """
    for j in range(parents.size):
        seen[j] = j < p.size and p[j] > 0.0
    m = 0
    for j in range(parents.size):
        if seen[j]:
            nodes[m] = j
            m += 1
            if parents[j] >= 0:
                seen[parents[j]] = True
    return m


@_part
def _add_single(p, size, own, parents, prior, r, sums):
    """Add what a document of a single topic says to the sums of the nodes ``own``; r (nodes,) is room for probabilities."""
    for j in range(r.size):
        r[j] = p[j] if j < p.size else 0.0
    for j in own:
        if parents[j] >= 0:
            r[parents[j]] += r[j]
    add_single_topic(size, r, prior, sums[0], sums[1], sums[2])


@_part
def _add_counts(N, own, parents, prior, n, sums):
    """Add what the counts N (K,) of a document say to the sums of the nodes ``own``; n (nodes,) is room for counts."""
    for j in range(n.size):
        n[j] = N[j] if j < N.size else 0.0
    for j in own:
        if parents[j] >= 0:
            n[parents[j]] += n[j]
        theta = n[j] + prior.counts[j]
        sums[0, j] += digamma(theta) - prior.psi[j]
        sums[1, j] += math.lgamma(theta) - prior.log_gamma[j]


@_part
def _add_entropy(likelihoods, scale, count, p, own, parents, r, entropies):
    """Add the entropy of the responsibilities of an entry, likelihoods (K,) times p (K,) and ``scale``; r (nodes,) is room."""
    for j in own:
        r[j] = likelihoods[j] * p[j] * scale if j < p.size else 0.0
    for j in own:
        if r[j] > FAINT:
            entropies[j] -= count * r[j] * math.log(r[j])
            if parents[j] >= 0:
                r[parents[j]] += r[j]


@_jit
def merged_statistics(indptr, rows, counts, E, prior, single, p, log_Z, N, parents, sums):
    """What the bound needs of topics that are merged along trees, responsibilities added: sums for each of its nodes.

    E (V, K), p (n, K), log_Z (nnz,) in: factors of the responsibilities;  N : (n, K) in: counts of the documents
    single : (n,) in: whether all tokens of a document have the same topic, of which p then holds the probabilities
    prior : (nodes,) in: pseudo-counts of the nodes;  parents : (nodes,) in: each after its children, -1 for roots
    sums : (3, nodes) in and out: sum_d E[psi(theta_d)], sum_d E[log Gamma(theta_d)], and - sum_e c_e r_e log r_e or, of
        documents of a single topic, - r log r
    """
    room = np.empty(parents.size)
    for j in range(parents.size):
        room[j] = 0.0
    known = prior_for(prior)
    nodes = np.empty(parents.size, np.int64)
    seen = np.empty(parents.size, np.bool_)
    for d in range(indptr.size - 1):
        own = nodes[: _branches(p[d], parents, seen, nodes)]
        add_prior(known, sums)
        if single[d]:
            _add_single(p[d], sum_of(N[d]), own, parents, known, room, sums)
            continue
        _add_counts(N[d], own, parents, known, room, sums)
        for e in range(indptr[d], indptr[d + 1]):
            _add_entropy(E[rows[e]], math.exp(-log_Z[e]), counts[e], p[d], own, parents, room, sums[2])
