"""The sums of summaries, S += R' T, where responsibilities R, features T or both may be sparse."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..kernels.assign import accumulate
from ..kernels.sparse import csr_accumulate
from .local import Responsibilities

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


def add_kept(kept: Responsibilities, weights: Array, T: Any, S: Array) -> None:
    """Add the statistics of sparse responsibilities ``kept`` of weighted rows to S (K, F), for T (n, F) dense or CSR."""
    if sparse.issparse(T):
        csr_accumulate(*kept, weights, T.indptr, T.indices, T.data, S)
    else:
        accumulate(*kept, weights, T, S)
