"""Restarts of words: the tokens of a word begin elsewhere, and stay there if that is better in the end.

With q of the documents' proportions held, and the totals of topics to first order, the counts of a word's tokens in the topics
have the part of the bound that those of a document's tokens have (`stickbreak.kernels.document_ascent`): documents take the
place of words, and the pseudo-counts of the word that of the documents' prior.  So the poor local optima of a word are left as
those of a document are (Thesis Alg. 5.2), and also from starts with all tokens in one topic, or spread over all.
"""

import math

import numpy as np

from ._jit import jit as _jit
from ._jit import part as _part
from .document_ascent import bound_before, own_likelihoods, step
from .restarts import LEAST
from .vectors import clear, gather, largest_first, put, sum_of

STEPS = 1  # iterations from a start, before the word is judged
SINGLES = 5  # topics in which all tokens of a word begin, at most: those that explain them best
MORE = 0.01  # nats that a start must gain


@_part
def _best_alone(rows, counts, scores, prior, order):
    """Write the topics to ``order`` (K,), those `SINGLES` that explain all tokens of a word best first."""
    K = order.size
    size = sum_of(counts)
    alone = np.empty(K)
    for k in range(K):
        alone[k] = math.lgamma(prior[k] + size) - math.lgamma(prior[k])
    for e in range(rows.size):
        row = scores[rows[e]]
        for k in range(K):
            alone[k] += counts[e] * row[k]
    for k in range(K):
        order[k] = k
    for j in range(min(SINGLES, K)):
        best = j
        for k in range(j + 1, K):
            if alone[order[k]] > alone[order[best]]:
                best = k
        order[j], order[best] = order[best], order[j]


@_part
def _chosen(n, order, chosen):
    """Write some topics to ``chosen`` (K,): the first `SINGLES` of an order, then others with tokens of a word.

    returns : how many of each
    """
    singles = min(SINGLES, n.size)
    m = singles
    for j in range(n.size):
        if j < singles:
            chosen[j] = order[j]
        elif n[order[j]] > LEAST:
            chosen[m] = order[j]
            m += 1
    return singles, m


@_part
def _begin(i, n, singles, order, trial):
    """Write start i of a word whose counts are n (m,) to ``trial``; whether there is such a start.

    Starts are the word as it is, spread over all topics, in each of the first ``singles`` topics alone, and without one of the
    topics that it then has, the smallest first.
    """
    m = n.size
    k = i - 2
    if i == 0:
        put(n, trial)
    elif i < 2 + singles:
        size = sum_of(n)
        for j in range(m):
            trial[j] = size / m if i == 1 else 0.0
        if i > 1:
            trial[k] = size
    else:
        if i == 2 + singles:
            largest_first(n, order)
        k = order[1 + singles + m - i]
        put(n, trial)
        trial[k] = 0.0
        return n[k] > LEAST
    return True


@_part
def _restarted(table, counts, prior, n, singles):
    """Begin elsewhere with the counts n (m,) of one word, in and out; what its part of the bound has gained."""
    m = n.size
    p = np.empty(m)
    acc = np.empty(m)
    Z = np.empty(counts.size)
    trial = np.empty(m)
    before = np.empty(m)
    order = np.empty(m, np.int64)
    value = -np.inf
    first = -np.inf
    for i in range(2 + singles + m):  # one call of each part, of which there is one copy
        if not _begin(i, n, singles, order, trial):
            continue
        for _ in range(STEPS + 1):
            put(trial, before)
            step(table, counts, prior, trial, p, acc, Z)
        other = bound_before(counts, prior, trial, p, Z)
        if i == 0:
            first = other
        if i == 0 or other > value + MORE:
            put(before, n)
            value = other
    return value - first


@_jit
def restart_words(indptr, rows, counts, E, scores, prior, N):
    """Let words begin elsewhere where that raises their part of the bound; N (V, K) float64 are their counts, in and out.

    indptr, rows, counts : the documents ``rows[indptr[w]:indptr[w + 1]]`` of word w, and how often each has it
    E : (n, K), at most 1: exp(E[log pi_dk] - psi(total of topic k)) in proportion;  scores : log E
    prior : (V, K) pseudo-counts
    returns : how many words begin elsewhere, and what they gain together
    """
    K = prior.shape[1]
    order = np.empty(K, np.int64)
    chosen = np.empty(K, np.int64)
    n = np.empty(K)
    a = np.empty(K)
    changed = 0
    gained = 0.0
    for w in range(indptr.size - 1):
        own = rows[indptr[w] : indptr[w + 1]]
        if own.size == 0:
            continue
        c = counts[indptr[w] : indptr[w + 1]]
        _best_alone(own, c, scores, prior[w], order)
        singles, m = _chosen(N[w], order, chosen)
        gather(N[w], chosen[:m], n)
        gather(prior[w], chosen[:m], a)
        table = own_likelihoods(E, own, chosen[:m])
        gain = _restarted(table, c, a[:m], n[:m], singles)
        if gain > 0.0:
            clear(N[w])
            for j in range(m):
                N[w, chosen[j]] = n[j]
            changed += 1
            gained += gain
    return changed, gained
