"""Latent variables of rows: responsibilities times their means."""

from ._jit import jit as _jit


@_jit
def multiplied(indptr, indices, values, means, products):
    """Sparse responsibilities times means of latent variables (n, K):  products = r E[u]."""
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            products[p] = values[p] * means[i, indices[p]]
