"""Parts of kernels for many small symmetric matrices, of which several go together.

Rows of matrices of a few dozen columns are short.  So elements of W (D, D, lanes) that are side by side are of one place in one
matrix each, and LLVM makes one instruction of what is done to them.
"""

import math

from ._jit import part as _part
from ._jit import part_apart as _part_apart

LANES = 8


@_part_apart
def gather(S, n, first, place, base, weight, rounding, W):
    """Write upper triangles of matrices (see `log_determinants`) from ``first`` on to W, the last again in lanes to spare."""
    D = base.shape[0]
    last = n.size - 1
    for i in range(D):
        for j in range(i, D):
            at = place[i, j]
            is_count = at == S.shape[1]
            times = weight[i] if i == j else 1.0
            rounded = rounding[i] if i == j else 0.0
            for lane in range(LANES):
                k = min(first + lane, last)
                W[i, j, lane] = base[i, j] + ((n[k] if is_count else S[k, at]) * times + n[k] * rounded)


@_part_apart
def divided(row, share):
    """Set ``share`` (m, lanes) to a row divided by its first element."""
    for j in range(len(row) - 1, -1, -1):
        for lane in range(LANES):
            share[j, lane] = row[j, lane] / row[0, lane]


@_part_apart
def subtract(row, share, one):
    """Subtract from a row (m, lanes) its share (lanes,) of another."""
    for j in range(len(row)):
        for lane in range(LANES):
            row[j, lane] -= share[lane] * one[j, lane]


@_part_apart
def subtract_four(row, a, b, c, d, w, x, y, z):
    """Subtract from a row (m, lanes) its shares (lanes,) of four others."""
    for j in range(len(row)):
        for lane in range(LANES):
            of_first = a[lane] * w[j, lane] + b[lane] * x[j, lane]
            row[j, lane] -= of_first + c[lane] * y[j, lane] + d[lane] * z[j, lane]


@_part
def eliminate(W, first, last, share):
    """Subtract from the rows of W after them what they have of rows ``first`` to ``last``.

    share : (4, D, lanes) for what this needs
    """
    D = W.shape[0]
    for p in range(first, last, 4):
        end = min(p + 4, last)
        for i in range(p, end):
            divided(W[i, i:], share[i - p, i:])
            for j in range(i + 1, D if end - p < 4 else end):
                subtract(W[j, j:], share[i - p, j], W[i, j:])
        if end - p == 4:
            for j in range(end, D):
                a, b, c, d = share[0, j], share[1, j], share[2, j], share[3, j]
                subtract_four(W[j, j:], a, b, c, d, W[p, j:], W[p + 1, j:], W[p + 2, j:], W[p + 3, j:])


@_part
def log_product(W, first, last, lane):
    """The sum of the logarithms of diagonal elements of one matrix."""
    total = 0.0
    for i in range(first, last):
        total += math.log(W[i, i, lane])
    return total
