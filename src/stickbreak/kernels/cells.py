"""Missing cells of Gaussian rows as latent variables: their best distributions, and what these add to statistics.

With precisions Q and natural means h of a cluster, both read from its weights W, and the values z of the observed cells,

    q(z_m) = Normal(mu, Q_mm^-1),   Q_mm mu = g = h_m - Q_mo z_o

Features have z_a z_b (a <= b) from the number ``first`` on, then z, then 1 where a cell of the columns ``holes`` is missing,
and last half the log determinant of the covariance of q.  Without parameters missing cells are Normal(0, 1) each: z is 0, the
square 1.
`best_cells_reference` is the plain NumPy statement.
"""

import numpy as np
from numpy.typing import NDArray

from ._jit import jit as _jit
from ._jit import part as _part

Array = NDArray[np.floating]

LARGE = 1e100  # products of pivots between this and its inverse stay in range
LEAST = 1e-15  # of its precision, that is left of a cell's precision given the cells before it, as rounding has it


@_part
def _of_rows(H, D):
    """Room for missing cells, L, M, h and y of rows that have the same."""
    return np.empty(H, np.int64), np.empty((H, H)), np.empty((H, D)), np.empty(H), np.empty(H)


@_part
def _of_sums(H, D):
    """Room for L^-1, V, means, and products across and within, of their sums."""
    return np.empty((H, H)), np.empty((H, H)), np.empty(H), np.empty((H, D)), np.empty((H, H))


@_part
def _cells_of(T, row, flags, holes, cells):
    """Write the missing cells of a row; returns how many there are."""
    count = 0
    for j in range(holes.size):
        if T[row, flags + j] > 0.0:
            cells[count] = holes[j]
            count += 1
    return count


@_part
def _factor(W, k, first, D, cells, count, L):
    """Write the Cholesky factor of Q_mm, with the reciprocals of its diagonal; returns half its log determinant."""
    half = 0.0
    pivots = 1.0
    for i in range(count):
        a = cells[i]
        for j in range(i):
            b = cells[j]
            left = -W[k, first + b * D - b * (b + 1) // 2 + a]
            for t in range(j):
                left -= L[i, t] * L[j, t]
            L[i, j] = left * L[j, j]
        left = -2.0 * W[k, first + a * D - a * (a + 1) // 2 + a]
        least = LEAST * left
        for t in range(i):
            left -= L[i, t] * L[i, t]
        pivot = np.sqrt(max(left, least))
        L[i, i] = 1.0 / pivot
        pivots *= pivot
        if not 1.0 / LARGE < pivots < LARGE:
            half += np.log(pivots)
            pivots = 1.0
    return half + np.log(pivots)


@_part
def _gather(W, k, first, D, cells, count, M, h):
    """Write -Q_mo, in the columns of the observed cells, and h_m."""
    linear = first + D * (D + 1) // 2
    for i in range(count):
        a = cells[i]
        for b in range(a):
            M[i, b] = W[k, first + b * D - b * (b + 1) // 2 + a]
        start = first + a * D - a * (a + 1) // 2
        for b in range(a, D):
            M[i, b] = W[k, start + b]
        h[i] = W[k, linear + a]


@_part
def _half_solved(T, row, linear, D, L, M, h, count, y):
    """Write y = L^-1 g of a row."""
    for i in range(count):
        left = h[i]
        for b in range(D):
            left += M[i, b] * T[row, linear + b]
        for t in range(i):
            left -= L[i, t] * y[t]
        y[i] = left * L[i, i]


@_part
def _solved(L, count, y):
    """Write mu = L'^-1 y in its place."""
    for back in range(count):
        i = count - 1 - back
        left = y[i]
        for t in range(i + 1, count):
            left -= L[t, i] * y[t]
        y[i] = left * L[i, i]


@_part
def _inverse(L, count, X, V):
    """Write V = Q_mm^-1 = X' X, lower triangle, with X = L^-1."""
    for i in range(count):
        for b in range(i):
            X[i, b] = 0.0
        for a in range(i):
            share = -L[i, i] * L[i, a]
            for b in range(a + 1):
                X[i, b] += share * X[a, b]
        X[i, i] = L[i, i]
        for b in range(i + 1):
            V[i, b] = 0.0
    for i in range(count):
        for a in range(i + 1):
            share = X[i, a]
            for b in range(a + 1):
                V[a, b] += share * X[i, b]


@_part
def _clear(count, means, across, within):
    """Write zeros."""
    for j in range(count):
        means[j] = 0.0
        for b in range(across.shape[1]):
            across[j, b] = 0.0
        for b in range(j + 1):
            within[j, b] = 0.0


@_part
def _add_row(T, row, linear, D, mu, r, count, means, across, within):
    """Add r times the means of the missing cells of a row, their products with the observed ones, and those with each other."""
    for j in range(count):
        share = r * mu[j]
        means[j] += share
        for b in range(D):
            across[j, b] += share * T[row, linear + b]
        for b in range(j + 1):
            within[j, b] += share * mu[b]


@_part
def _put(first, D, cells, count, total, V, means, across, within, sums):
    """Add means and products of missing cells, of covariance V in so many rows, to statistics that have Normal(0, 1) cells."""
    linear = first + D * (D + 1) // 2
    for j in range(count):
        for b in range(j + 1):
            within[j, b] += total * V[j, b]
        within[j, j] -= total
        a = cells[j]
        start = first + a * D - a * (a + 1) // 2
        for b in range(a):
            sums[first + b * D - b * (b + 1) // 2 + a] += across[j, b]
        for b in range(a, D):
            sums[start + b] += across[j, b]
        for b in range(j + 1):
            c = cells[b]
            sums[first + c * D - c * (c + 1) // 2 + a] += within[j, b]
        sums[linear + a] += means[j]


@_jit
def integrate_cells(T, order, starts, first, D, holes, W, C):
    """Add to scores what the best q of missing cells gains over Normal(0, 1):  y' y / 2 - log |L| - |m| / 2 + tr(Q_mm) / 2.

    T : (n, F) in, features;  W : (K, F) in;  C : (n, K) in and out
    order : the rows with missing cells;  starts : where those with the same cells begin among these, and where they end
    """
    linear = first + D * (D + 1) // 2
    cells, L, M, h, y = _of_rows(holes.size, D)
    for i in range(starts.size - 1):
        count = _cells_of(T, order[starts[i]], linear + D, holes, cells)
        for k in range(W.shape[0]):
            gain = -_factor(W, k, first, D, cells, count, L) - 0.5 * count
            for j in range(count):
                a = cells[j]
                gain -= W[k, first + a * D - a * (a + 1) // 2 + a]
            _gather(W, k, first, D, cells, count, M, h)
            for p in range(starts[i], starts[i + 1]):
                row = order[p]
                _half_solved(T, row, linear, D, L, M, h, count, y)
                square = 0.0
                for j in range(count):
                    square += y[j] * y[j]
                C[row, k] += gain + 0.5 * square


@_jit
def add_cells(T, order, starts, first, D, holes, W, indptr, indices, values, weights, S):
    """Add to sums what features of the best q of missing cells have more than those of Normal(0, 1).

    Responsibilities are sparse, clusters of each row in ascending order.

    T : (n, F) in, features;  W : (K, F) in;  weights : (n,) in;  S : (K, F) in and out, float64
    order : the rows with missing cells;  starts : where those with the same cells begin among these, and where they end
    """
    linear = first + D * (D + 1) // 2
    cells, L, M, h, mu = _of_rows(holes.size, D)
    X, V, means, across, within = _of_sums(holes.size, D)
    place = np.empty(order.size, np.int64)  # of the next cluster of each row
    for p in range(order.size):
        place[p] = indptr[order[p]]
    for i in range(starts.size - 1):
        count = _cells_of(T, order[starts[i]], linear + D, holes, cells)
        for k in range(W.shape[0]):
            total = 0.0
            half = 0.0
            for p in range(starts[i], starts[i + 1]):
                row = order[p]
                q = place[p]
                if q == indptr[row + 1] or indices[q] != k:
                    continue
                place[p] = q + 1
                if total == 0.0:
                    half = _factor(W, k, first, D, cells, count, L)
                    _gather(W, k, first, D, cells, count, M, h)
                    _clear(count, means, across, within)
                _half_solved(T, row, linear, D, L, M, h, count, mu)
                _solved(L, count, mu)
                r = weights[row] * np.float64(values[q])
                total += r
                _add_row(T, row, linear, D, mu, r, count, means, across, within)
            if total > 0.0:
                _inverse(L, count, X, V)
                _put(first, D, cells, count, total, V, means, across, within, S[k])
                S[k, linear + D + holes.size] -= total * half


@_jit
def fill_cells(T, order, starts, first, D, holes, W, owners):
    """Make features those of the best q of missing cells under the cluster ``owners[n]`` of each row.

    T : (n, F) in and out;  W : (K, F) in
    order : the rows with missing cells
    starts : where those with the same cells, of the same cluster, begin among these, and where they end
    """
    linear = first + D * (D + 1) // 2
    cells, L, M, h, mu = _of_rows(holes.size, D)
    X, V, means, across, within = _of_sums(holes.size, D)
    for i in range(starts.size - 1):
        row = order[starts[i]]
        k = owners[row]
        count = _cells_of(T, row, linear + D, holes, cells)
        half = _factor(W, k, first, D, cells, count, L)
        _gather(W, k, first, D, cells, count, M, h)
        _inverse(L, count, X, V)
        for p in range(starts[i], starts[i + 1]):
            row = order[p]
            _half_solved(T, row, linear, D, L, M, h, count, mu)
            _solved(L, count, mu)
            _clear(count, means, across, within)
            _add_row(T, row, linear, D, mu, 1.0, count, means, across, within)
            _put(first, D, cells, count, 1.0, V, means, across, within, T[row])
            T[row, linear + D + holes.size] = -half


def best_cells_reference(W: Array, z: Array, cells: Array, first: int) -> tuple[Array, Array]:
    """Means and covariance of the best q of the missing ``cells`` of one row z (D,) under weights W (F,)."""
    D = len(z)
    Q = np.zeros((D, D))
    Q[np.triu_indices(D)] = -W[first : first + D * (D + 1) // 2]
    Q = Q + Q.T
    h = W[first + D * (D + 1) // 2 :][:D]
    others = np.setdiff1d(np.arange(D), cells)
    V = np.linalg.inv(Q[np.ix_(cells, cells)])
    return V @ (h[cells] - Q[np.ix_(cells, others)] @ z[others]), V
