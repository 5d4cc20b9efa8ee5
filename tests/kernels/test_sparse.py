"""The products of compressed sparse rows equal those of dense ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from stickbreak.kernels.sparse import csr_accumulate, csr_scores


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(n=st.integers(0, 9), F=st.integers(1, 8), K=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_products_equal_dense_ones(dtype, n, F, K, seed):
    rng = np.random.default_rng(seed)
    T = sparse.csr_array(rng.poisson(0.5, (n, F)).astype(dtype))
    W, C = rng.normal(size=(K, F)).astype(dtype), np.full((n, K), np.nan, dtype)
    csr_scores(T.indptr, T.indices, T.data, np.ascontiguousarray(W.T), C)
    np.testing.assert_allclose(C, T @ W.T, rtol=1e-4, atol=1e-4)
    R = sparse.csr_array(rng.random((n, K)) * (rng.random((n, K)) < 0.6))
    weights, S = rng.random(n), rng.random((K, F))
    expected = S + (R.toarray() * weights[:, None]).T @ T
    csr_accumulate(R.indptr, R.indices, R.data, weights, T.indptr, T.indices, T.data, S)
    np.testing.assert_allclose(S, expected, rtol=1e-9)
