"""Kernels of bits of rows against their statements in NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from stickbreak.kernels import dust

SEEDS = st.integers(0, 2**32 - 1)
DTYPES = [np.float32, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
@given(seed=SEEDS, n=st.integers(0, 9), K=st.integers(1, 5), size=st.sampled_from([1e-3, 1.0, 30.0, 1e4, 1e25]))
def test_bits_are_integrated_out(dtype, seed, n, K, size):
    C = (size * np.random.default_rng(seed).standard_normal((n, K))).astype(dtype)
    want = dust.integrate_bits_reference(C.astype(float))
    U = np.empty_like(C)
    assert dust.integrate_bits(C, dust.FARTHEST, dtype == np.float64, U)
    for got, wanted in zip((C, U), want):
        assert got.dtype == dtype
        np.testing.assert_allclose(got, wanted, rtol=30 * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny)


def test_log_odds_beyond_the_range_are_refused_or_the_largest():
    for bad in (np.inf, -np.inf, np.nan, 1e5, -1e31):
        single = np.array([[0.0, bad]], np.float32)
        assert not dust.integrate_bits(single, 1e4, False, np.empty_like(single))
    double = np.array([[np.inf, -np.inf, np.nan, 1e308, -1e308]])
    U = np.empty((1, 5))
    want = dust.integrate_bits_reference(double)
    assert dust.integrate_bits(double, dust.FARTHEST, True, U)
    np.testing.assert_array_equal(double, want[0])
    np.testing.assert_array_equal(U, want[1])
    np.testing.assert_array_equal(U, [[1.0, 0.0, 0.0, 1.0, 0.0]])


@pytest.mark.parametrize("dtype", DTYPES)
@given(seed=SEEDS, n=st.integers(0, 9), K=st.integers(1, 5))
def test_sums_of_entropies_equal_reference(dtype, seed, n, K):
    rng = np.random.default_rng(seed)
    R = softmax(rng.normal(0.0, 9.0, (n, K)), axis=1).astype(dtype)
    R[R < 1e-3] = 0.0
    weights = rng.random(n)
    U = rng.choice([0.0, 1e-9, 0.3, 0.999, 1.0], (n, K)).astype(dtype)
    rows, indices = np.nonzero(R)
    indptr, values = np.concatenate([[0], np.cumsum((R > 0.0).sum(axis=1))]), R[rows, indices]
    S, before = np.ones((K, 5)), np.ones((K, 5))
    dust.add_bits(indptr, indices.astype(np.int32), values, weights, U, S)
    before[:, 4] += dust.add_bits_reference(R.astype(float), weights, U.astype(float))
    np.testing.assert_allclose(S, before, rtol=1e-11, atol=1e-11)
