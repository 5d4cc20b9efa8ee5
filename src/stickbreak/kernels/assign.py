"""Turning scores into sparse responsibilities, and reading sparse responsibilities.

Responsibilities travel as compressed sparse rows: the entries of row n are ``indices[indptr[n]:indptr[n + 1]]`` (clusters,
ascending) and the same slice of ``values``.  `softmax_rows_reference` is the plain NumPy statement of the main kernel.
"""

import numpy as np
from numpy.typing import NDArray

from ._jit import jit as _jit
from .vectors import sum_of

Array = NDArray[np.floating]
Index = NDArray[np.integer]


@_jit
def softmax_rows(C, bias, threshold, largest, indptr, indices, values):
    """Softmax of ``C + bias`` along each row, keeping the entries above ``threshold`` and renormalising them.

    C : (n, K) in: scores; out: the same responsibilities, dense
    bias : (K,) in
    largest : the largest size of a row's best score; rows beyond it, or whose best score is not a number, are refused
    indptr : (n + 1,), indices, values : (n * K,) out: the kept entries
    returns : the number of kept entries, or -1 if a row is refused; the outputs are then incomplete
    """
    n, K = C.shape
    floor = np.log(threshold)
    count = 0
    indptr[0] = 0
    for i in range(n):
        top = C[i, 0] + bias[0]
        for k in range(K):
            C[i, k] += bias[k]
            top = max(top, C[i, k])
        if not abs(top) <= largest:
            return -1
        total = 0.0
        start = count
        for k in range(K):
            gap = C[i, k] - top
            C[i, k] = 0.0
            if gap > floor:
                r = np.exp(gap)
                indices[count] = k
                values[count] = r
                count += 1
                total += r
        scale = 1.0 / total
        for p in range(start, count):
            values[p] *= scale
            C[i, indices[p]] = values[p]
        indptr[i + 1] = count
    return count


def softmax_rows_reference(C: Array, bias: Array, threshold: float) -> Array:
    """The responsibilities of `softmax_rows` as a dense (n, K) array."""
    scores = C + bias
    R = np.exp(scores - scores.max(axis=1, keepdims=True))
    R[threshold >= R] = 0.0
    return np.asarray(R / R.sum(axis=1, keepdims=True))


@_jit
def _largest(values, best):
    """The largest numbers, as many as ``best`` has room for, in decreasing order, into ``best``."""
    L = best.size
    for p in range(values.size):
        place = min(p, L)
        while place > 0 and values[p] > best[place - 1]:
            if place < L:
                best[place] = best[place - 1]
            place -= 1
        if place < L:
            best[place] = values[p]


@_jit
def keep_largest(indptr, indices, values, most, C):
    """Keep the ``most[i]`` largest responsibilities of each row i and renormalise them, in place  (Thesis Alg. 7.2).

    Of equal ones, those of the first clusters are kept.

    most : (n,) in, at least 1;  C : (n, K) in and out: the same responsibilities, dense
    returns : the number of kept entries
    """
    room = np.empty(C.shape[1], values.dtype)
    count = 0
    first = indptr[0]
    for i in range(indptr.size - 1):
        last = indptr[i + 1]
        best = room[: min(most[i], last - first)]
        _largest(values[first:last], best)
        least = best[-1]
        total = sum_of(best)
        equal = 0  # how many of those equal to the smallest are yet to be kept
        for q in range(best.size):
            equal += best[q] == least
        begin = count
        for p in range(first, last):
            r = values[p]
            C[i, indices[p]] = 0.0
            if r > least or (r == least and equal > 0):
                equal -= r == least
                indices[count] = indices[p]
                values[count] = r / total if r < total else 1.0  # a reciprocal of the total times it may be less than 1
                count += 1
        for p in range(begin, count):
            C[i, indices[p]] = values[p]
        first = last
        indptr[i + 1] = count
    return count


def keep_largest_reference(R: Array, most: NDArray[np.integer]) -> Array:
    """The responsibilities of `keep_largest` as a dense (n, K) array."""
    ranks = np.argsort(np.argsort(-R, axis=1, kind="stable"), axis=1)
    kept = np.where(ranks < most[:, None], R, 0.0)
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))


@_jit
def count_and_entropy(indptr, indices, values, weights, mass, N, H):
    """Add the counts and assignment entropies of responsibilities ``r = mass * value`` to N and H.

    N_k += sum_n w_n r_nk,  H_k += - sum_n w_n r_nk log r_nk                          (Thesis Eq. 3.35 and 3.51)

    weights, mass : (n,) in
    N, H : (K,) in and out, float64
    """
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            r = np.float64(values[p]) * mass[i]
            if r > 0.0:
                N[indices[p]] += weights[i] * r
                H[indices[p]] -= weights[i] * r * np.log(r)


@_jit
def accumulate(indptr, indices, values, weights, T, S):
    """Add the statistics of sparse responsibilities to S:  S_k += sum_n w_n r_nk t(x_n).

    weights : (n,) in;  T : (n, F) in;  S : (K, F) in and out, float64
    """
    F = T.shape[1]
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            r = weights[i] * np.float64(values[p])
            row = S[indices[p]]
            for f in range(F):
                row[f] += r * T[i, f]


@_jit
def gather_mass(indptr, indices, values, member, rows, mass):
    """List the rows with responsibility on a set of clusters, and how much.

    member : (K,) bool, in: the set
    rows, mass : (n,) out: row numbers and sum of their responsibilities over the set
    returns : the number of rows listed
    """
    count = 0
    for i in range(indptr.size - 1):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            if member[indices[p]]:
                total += values[p]
        if total > 0.0:
            rows[count] = i
            mass[count] = total
            count += 1
    return count


@_jit
def merged_entropies(indptr, indices, values, weights, parents, H):
    """Add the assignment entropies of clusters that are merged, pair by pair, to H of the nodes of the tree of merges.

    H_v += - sum_n w_n r_nv log r_nv  for the sum r_nv of the responsibilities of the clusters below node v

    weights : (n,) in;  parents : (2 K - 1,) in: of the K clusters and of each merge, after its children; -1 for the root
    H : (2 K - 1,) in and out, float64
    """
    nodes = np.empty(parents.size, np.int64)
    masses = np.empty(parents.size)
    for i in range(indptr.size - 1):
        count = 0
        for p in range(indptr[i], indptr[i + 1]):
            r = np.float64(values[p])
            nodes[count], masses[count] = indices[p], r
            count += 1
            if r > 0.0:
                H[indices[p]] -= weights[i] * r * np.log(r)
        while count > 1:  # the lowest parent has no descendants left but its children
            parent = parents[nodes[0]]
            for p in range(1, count):
                if parents[nodes[p]] < parent:
                    parent = parents[nodes[p]]
            mass = 0.0
            left = 0
            for p in range(count):
                if parents[nodes[p]] == parent:
                    mass += masses[p]
                else:
                    nodes[left], masses[left] = nodes[p], masses[p]
                    left += 1
            nodes[left], masses[left] = parent, mass
            count = left + 1
            if mass > 0.0:
                H[parent] -= weights[i] * mass * np.log(mass)


@_jit
def near_scores(T, owners, nearest, W, bias, C):
    """Scores of rows under the clusters near their own:  C_ij = T_i . W_k + bias_k  with k = nearest[owners[i], j].

    Four rows of the same cluster at a time, so that each weight is read once for them.

    T : (n, F) in, features;  owners : (n,) in, clusters, equal ones side by side
    nearest : (K, c) in, clusters, of those that have fewer -1 last;  W : (K, F), bias : (K,) in
    C : (n, c) out; as it was where there is no cluster
    """
    n, F = T.shape
    zero = T.dtype.type(0)
    i = 0
    while i < n:
        own = owners[i]
        four = i + 4 <= n and owners[min(i + 3, n - 1)] == own
        for j in range(nearest.shape[1]):
            k = nearest[own, j]
            if k < 0:
                break
            w = W[k]
            t = T[i]
            first = zero
            if four:
                t1 = T[i + 1]
                t2 = T[i + 2]
                t3 = T[i + 3]
                second = zero
                third = zero
                fourth = zero
                for f in range(F):
                    first += t[f] * w[f]
                    second += t1[f] * w[f]
                    third += t2[f] * w[f]
                    fourth += t3[f] * w[f]
                C[i + 1, j] = second + bias[k]
                C[i + 2, j] = third + bias[k]
                C[i + 3, j] = fourth + bias[k]
            else:
                for f in range(F):
                    first += t[f] * w[f]
            C[i, j] = first + bias[k]
        i += 4 if four else 1


@_jit
def rearranged(indptr, indices, values, order, new_indptr, new_indices, new_values):
    """Put the responsibilities of rows taken in another order back into their own: entry i is of row ``order[i]``.

    order : (n,) in, a permutation
    new_indptr, new_indices, new_values : out, as large as those in
    """
    n = order.size
    new_indptr[0] = 0
    for i in range(n):
        new_indptr[order[i] + 1] = indptr[i + 1] - indptr[i]
    for i in range(n):
        new_indptr[i + 1] += new_indptr[i]
    for i in range(n):
        place = new_indptr[order[i]]
        for p in range(indptr[i], indptr[i + 1]):
            new_indices[place] = indices[p]
            new_values[place] = values[p]
            place += 1


@_jit
def owners(indptr, indices, values, owner, share):
    """The cluster with the largest responsibility for each row, and that responsibility; owner (n,), share (n,) out."""
    for i in range(indptr.size - 1):
        best = indptr[i]
        for p in range(best + 1, indptr[i + 1]):
            if values[p] > values[best]:
                best = p
        owner[i], share[i] = indices[best], values[best]


@_jit
def mass_outside(indptr, indices, values, weights, owner, nearest):
    """The weighted responsibilities of rows in clusters that are not among those near their own, in all.

    weights : (n,) in;  owner : (n,) in: the cluster of each row;  nearest : (K, C) in, of those that have fewer -1 last
    """
    outside = 0.0
    for i in range(indptr.size - 1):
        near = nearest[owner[i]]
        for p in range(indptr[i], indptr[i + 1]):
            found = False
            for cluster in near:
                found = found or cluster == indices[p]
            if not found:
                outside += weights[i] * values[p]
    return outside


@_jit
def select_rows(indptr, indices, values, weights, threshold, limits, salt, first, clusters, rows, chosen):
    """Draw rows for each cluster at random among those with responsibility above ``threshold``.

    Row ``first + i`` is drawn for cluster k when its pseudo-random number (SplitMix64 of the row number and ``salt``, so that
    it depends on neither batches nor threads) lies below its chance, ``limits[k]`` times its weight.
    Divided by that chance, the responsibilities of the rows drawn add up, on average, to those of all rows.

    weights : (n,) in;  limits : (K,) float64 in: chance per unit of weight
    clusters, rows, chosen : (nnz,) out: the cluster, the row within this chunk, its responsibility / chance
    returns : the number of draws
    """
    count = 0
    for i in range(indptr.size - 1):
        z = (np.uint64(first + i) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        uniform = np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53
        for p in range(indptr[i], indptr[i + 1]):
            chance = min(1.0, limits[indices[p]] * weights[i])
            if values[p] > threshold and uniform < chance:
                clusters[count] = indices[p]
                rows[count] = i
                chosen[count] = values[p] / chance
                count += 1
    return count
