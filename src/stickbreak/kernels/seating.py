"""Collapsed Gibbs sampling of the clusters of rows: the rows of a block in turn, up to the first that changes its cluster."""

import math

import numpy as np

from ._jit import jit as _jit


@_jit
def next_move(first, labels, gains, alone, counts, concentration, discount, least, uniform):
    """Draw the cluster of row after row, each given all others, and stop at the first that leaves its cluster.

    Row i joins cluster k with weight (N_k - discount) exp(gains[i, k]), where N_k counts the other rows, and begins one of its
    own with weight (concentration + discount K) exp(alone[i]).

    labels : (n,) in, clusters of the rows of the block;  gains : (n, K) in;  alone : (n,) in;  counts : (K,) in, of all rows
    least : weights of a new cluster up to this are none
    uniform : (n,) in, a random number for each row
    returns : the place of the row and its new cluster, K for a new one; n, -1 if no other row moves
    """
    n = labels.size
    K = counts.size
    logs = np.empty(K)
    scores = np.empty(K + 1)
    for k in range(K):
        logs[k] = math.log(counts[k] - discount) if counts[k] > 0.0 else -np.inf
    for i in range(first, n):
        own = labels[i]
        rest = counts[own] - 1.0
        lonely = rest < 0.5
        best = -np.inf
        for k in range(K):
            scores[k] = logs[k] + gains[i, k]
        scores[own] = -np.inf if lonely else math.log(rest - discount) + gains[i, own]
        new = concentration + discount * (K - 1 if lonely else K)
        scores[K] = math.log(new) + alone[i] if new > least else -np.inf
        for k in range(K + 1):
            best = max(best, scores[k])
        total = 0.0
        for k in range(K + 1):
            scores[k] = math.exp(scores[k] - best)
            total += scores[k]
        left = uniform[i] * total
        chosen = -1
        for k in range(K + 1):
            if scores[k] > 0.0:
                chosen = k
                left -= scores[k]
                if left < 0.0:
                    break
        if chosen != own and not (lonely and chosen == K):
            return i, chosen
    return n, -1


@_jit
def draw_labels(C, bias, uniform, labels):
    """Draw the cluster of every row with chances in proportion to exp(C + bias).

    C : (n, K) in;  bias : (K,) in;  uniform : (n,) in, random numbers;  labels : (n,) out
    """
    n, K = C.shape
    chances = np.empty(K)
    for i in range(n):
        best = -np.inf
        for k in range(K):
            chances[k] = C[i, k] + bias[k]
            best = max(best, chances[k])
        total = 0.0
        for k in range(K):
            chances[k] = math.exp(chances[k] - best)
            total += chances[k]
        left = uniform[i] * total
        chosen = 0
        for k in range(K):
            if chances[k] > 0.0:
                chosen = k
                left -= chances[k]
                if left < 0.0:
                    break
        labels[i] = chosen


@_jit
def by_appearance(labels, place, out):
    """Number the clusters of rows by their first appearance, so that equal partitions have equal labels.

    labels : (n,) in, 0, ..., K - 1;  place : (K,) scratch;  out : (n,) out
    """
    place[:] = -1
    many = 0
    for i in range(labels.size):
        k = labels[i]
        if place[k] < 0:
            place[k] = many
            many += 1
        out[i] = place[k]


@_jit
def pairs_together(first, second, counts):
    """Ordered pairs of rows, (i, i) among them, that are together in both of two partitions.

    first, second : (n,) in;  counts : (K, L) scratch for K and L clusters, at least
    """
    counts[:] = 0
    for i in range(first.size):
        counts[first[i], second[i]] += 1
    total = 0.0
    for a in range(counts.shape[0]):
        for b in range(counts.shape[1]):
            total += float(counts[a, b]) * float(counts[a, b])
    return total


@_jit
def together(labels, counts):
    """How many of M partitions have each pair of rows in one cluster.

    labels : (n, M) in;  counts : (n, n) out
    """
    n, M = labels.shape
    for i in range(n):
        for j in range(i + 1):
            same = 0
            for m in range(M):
                same += labels[i, m] == labels[j, m]
            counts[i, j] = same
            counts[j, i] = same
