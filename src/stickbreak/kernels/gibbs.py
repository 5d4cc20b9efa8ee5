"""Collapsed Gibbs sampling of the topics of words: a sweep over documents, and the tables for the next one, by word."""

import math

import numpy as np

from ._jit import jit as _jit
from ._jit import part as _part
from ._prefetch import prefetch
from .special import digamma
from .vectors import clear

TINY, HUGE = 1e-200, 1e200  # a product of masses is not taken further; each mass is a number of float32
AHEAD = 4  # tokens before which entries of E are asked for: no processor foresees what draws will read


@_part
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


@_part
def _clear(n, present, many):
    """Set the counts of the first so many topics that are present to zero."""
    for j in range(many):
        n[present[j]] = 0.0


@_part
def _first_at_least(x, value):
    """The place of the first of the increasing numbers x that is not below a value; how many they are, if all are below."""
    start = 0
    stop = x.size
    while start < stop:
        middle = (start + stop) // 2
        if x[middle] < value:
            start = middle + 1
        else:
            stop = middle
    return start


@_part
def _power(x, cold):
    """A factor of a chance, squared in a cold sweep."""
    return x * x if cold else x


@_part
def _shrunk(e, total, cold):
    """What e, an entry of E for a word and a topic, is to be multiplied by for the topic without one token of the word."""
    own = math.sqrt(e) if cold else e
    return _power(np.float32(1.0) - np.float32(1.0) / (own * total), cold)


@_part
def _multiplied(product, factor):
    """The product, and zero; where it comes near the limits of float64, one, and its logarithm."""
    product *= factor
    if TINY < product < HUGE:
        return product, 0.0
    return 1.0, math.log(product)


@_jit
def gibbs_sweep(indptr, words, z, E, cumulative, ends, totals, cold, seed):
    """One sweep of collapsed Gibbs sampling over documents: each token draws its topic given all others of its document.

    The topic of a token of word v has probability in proportion to (n_dk + a_k) E_vk, where n_d counts the other tokens of the
    document and E is that of the last sweep, for the token's own topic as it is without the token.  The part of a_k is drawn
    from cumulative sums, that of n_d from the topics present, so that the cost hardly grows with K (Yao et al. 2009).

    A cold sweep draws in proportion to (n_dk^2 + a_k^2) E_vk^2, from tables with squares: at a temperature of one half, but for
    the product of n_dk and a_k.

    returns : the sum over tokens of log sum_k (n_dk + a_k) E_vk, which rises while topics get better

    words, z : (n,) in, in and out: topic of each token, -1 at first
    E, cumulative : (V, K) float32 in: E and running sums of E a;  ends : (V,) float32 in: the last of these
    totals : (K,) float32 in: what E_vk, before it was squared, was divided by, 0 for no correction
    cold : whether this sweep is, and the tables are for one
    seed : a number for each sweep and chunk
    """
    K = E.shape[1]
    n = np.empty(K, np.float32)
    clear(n)
    place = np.empty(K, np.int64)
    present = np.empty(K, np.int64)
    weight = np.empty(K, np.float32)
    state = np.uint64(seed)
    log_masses = 0.0
    product = 1.0
    for d in range(indptr.size - 1):
        many = _count_topics(z[indptr[d] : indptr[d + 1]], n, present, place)
        for i in range(indptr[d], indptr[d + 1]):
            ahead = words[min(i + AHEAD, indptr[d + 1] - 1)]
            prefetch(E, ahead, present[:many])
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
                    shrink = _shrunk(row[old], totals[old], cold)
            total = np.float32(0.0)
            for j in range(many):
                k = present[j]
                total += _power(n[k], cold) * row[k] * (shrink if k == old else np.float32(1.0))
                weight[j] = total
            state += np.uint64(0x9E3779B97F4A7C15)
            h = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            u = np.float32(np.float64((h ^ (h >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53)
            mass = total + ends[words[i]]
            u *= mass
            product, logs = _multiplied(product, np.float64(mass))
            log_masses += logs
            if u < total:
                j = 0
                while j < many - 1 and weight[j] <= u:
                    j += 1
                new = present[j]
            else:
                new = _first_at_least(cumulative[words[i]], u - total)
                new = new if new < K else K - 1
            if n[new] == 0.0:
                present[many], place[new] = new, many
                many += 1
            n[new] += 1.0
            z[i] = new
        _clear(n, present, many)
    return log_masses + math.log(product)


@_jit
def prior_gains(indptr, z, prior, gains):
    """Add sum_d psi(n_dk + a_k) - psi(a_k) to ``gains`` (K,), by which the prior of documents is learnt (Minka 2000, Eq. 55).

    z : (n,) in: topic of each token, of which n_dk are counts;  prior : (K,) in: a
    """
    K = prior.size
    n = np.empty(K)
    clear(n)
    place = np.empty(K, np.int64)
    present = np.empty(K, np.int64)
    least = np.empty(K)
    for k in range(K):
        least[k] = digamma(prior[k])
    for d in range(indptr.size - 1):
        many = _count_topics(z[indptr[d] : indptr[d + 1]], n, present, place)
        for j in range(many):
            k = present[j]
            gains[k] += digamma(n[k] + prior[k]) - least[k]
        _clear(n, present, many)


@_jit
def word_tables(indptr, tokens, z, smooth, owners, more, totals, prior, cold, E, cumulative):
    """The tables of a sweep for words whose tokens, tokens[indptr[v] : indptr[v + 1]], have topics in z.

    E_vk = (n_vk + smooth_v + sum_{g : owners_g = k} more_gv) / totals_k,   cumulative_vk = sum_{j <= k} E_vj a_j

    For a cold sweep, E_vk and a_j are squared.

    smooth : (V,) in: pseudo-count of each word
    owners, more : (G,), (G, V) in: topics with pseudo-counts of their own beside;  totals : (K,) in;  prior : (K,) in: a
    E, cumulative : (V, K) float32 out
    """
    K = E.shape[1]
    n = np.empty(K)
    for v in range(indptr.size - 1):
        for k in range(K):
            n[k] = smooth[v]
        for g in range(owners.size):
            n[owners[g]] += more[g, v]
        for i in range(indptr[v], indptr[v + 1]):
            n[z[tokens[i]]] += 1.0
        for k in range(K):
            n[k] = _power(n[k] / totals[k], cold)
            E[v, k] = n[k]
        for k in range(K):
            n[k] *= _power(prior[k], cold)
        for k in range(1, K):
            n[k] += n[k - 1]
        for k in range(K):
            cumulative[v, k] = n[k]
