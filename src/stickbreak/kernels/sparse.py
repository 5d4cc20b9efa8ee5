"""The two matrix products for compressed sparse rows of statistics, at a cost in proportion to the entries stored."""

import numpy as np

from ._jit import jit as _jit
from .vectors import clear


@_jit
def csr_scores(indptr, indices, data, Wt, C):
    """Scores C = T W' of rows T stored as CSR.

    indptr : (n + 1,), indices, data : (nnz,) in: the rows
    Wt : (F, K) in: the weights, a statistic's K numbers together
    C : (n, K) out
    """
    K = C.shape[1]
    for i in range(C.shape[0]):
        row = C[i]
        clear(row)
        for p in range(indptr[i], indptr[i + 1]):
            value = data[p]
            w = Wt[indices[p]]
            for k in range(K):
                row[k] += value * w[k]


@_jit
def csr_accumulate(kept_indptr, kept_indices, kept_values, weights, indptr, indices, data, S):
    """Add the statistics of sparse responsibilities to S:  S_k += sum_n w_n r_nk t(x_n), for rows stored as CSR.

    kept_* : responsibilities as compressed sparse rows;  weights : (n,) in;  S : (K, F) in and out, float64
    """
    for i in range(indptr.size - 1):
        for q in range(kept_indptr[i], kept_indptr[i + 1]):
            r = weights[i] * np.float64(kept_values[q])
            row = S[kept_indices[q]]
            for p in range(indptr[i], indptr[i + 1]):
                row[indices[p]] += r * data[p]
