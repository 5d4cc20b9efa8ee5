"""What pairs of clusters share of the rows of a block."""

import math

from ._jit import jit as _jit


@_jit
def shared_entropies(indptr, indices, values, weights, shared):
    """Add the assignment entropy that is lost where two clusters become one to ``shared``.

    shared_ab += sum_n w_n [ (r_na + r_nb) log (r_na + r_nb) - r_na log r_na - r_nb log r_nb ],  zero unless both have a part

    indptr, indices, values : in, sparse responsibilities, clusters ascending;  weights : (n,) in
    shared : (K, K) in and out, its upper triangle
    """
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            a = values[p]
            if a <= 0.0:
                continue
            for q in range(p + 1, indptr[i + 1]):
                b = values[q]
                if b > 0.0:
                    lost = a * math.log1p(b / a) + b * math.log1p(a / b)
                    shared[indices[p], indices[q]] += weights[i] * lost
