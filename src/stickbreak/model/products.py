"""The sums of summaries, S += R' T, where responsibilities R, features T or both may be sparse."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..kernels.assign import accumulate
from ..kernels.sparse import csr_accumulate
from ..likelihoods.responsibilities import Responsibilities

Array = NDArray[np.floating]


def add_product(R: Any, T: Any, S: Array) -> None:
    """Add R' T to S (K, F) in float64, for R (n, K) and T (n, F), each dense or CSR."""
    if sparse.issparse(T) and not sparse.issparse(R):
        S += np.asarray(
            (T.T @ R.astype(np.float64, copy=False)).T
        )  # with a dense factor on the right scipy makes no copy of T
        return
    product = R.T.astype(np.float64, copy=False) @ T.astype(np.float64, copy=False)
    S += product.toarray() if sparse.issparse(product) else product


def row_products(T: Any, W: Array, owner: NDArray[np.integer]) -> Array:
    """The products of the rows of T (n, F), dense or CSR, with the rows ``owner`` (n,) of W (K, F), (n,)."""
    if not sparse.issparse(T):
        return np.asarray(np.einsum("nf,nf->n", T, W[owner]))
    rows = np.repeat(np.arange(T.shape[0]), np.diff(T.indptr))
    return np.bincount(rows, T.data * W[owner[rows], T.indices], T.shape[0]).astype(np.float64)


def add_kept(kept: Responsibilities, weights: Array, T: Any, S: Array) -> None:
    """Add the statistics of sparse responsibilities ``kept`` of weighted rows to S (K, F), for T (n, F) dense or CSR."""
    if sparse.issparse(T):
        csr_accumulate(*kept, weights, T.indptr, T.indices, T.data, S)
    else:
        accumulate(*kept, weights, T, S)
