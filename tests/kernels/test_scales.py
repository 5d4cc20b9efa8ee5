"""Kernels of latent scales against their statements in NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from stickbreak.kernels import scales
from stickbreak.kernels.latent import multiplied

SEEDS = st.integers(0, 2**32 - 1)
DTYPES = [np.float32, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
@given(seed=SEEDS, n=st.integers(0, 9), K=st.integers(1, 5), size=st.sampled_from([1e-3, 1.0, 1e8, 1e25]))
def test_scales_are_integrated_out(dtype, seed, n, K, size):
    rng = np.random.default_rng(seed)
    C = (1.0 - size * rng.chisquare(3.0, (n, K))).astype(dtype)
    tails, shape = float(np.exp(rng.uniform(0.0, 9.0))), 4.0
    want = scales.integrate_scales_reference(C.astype(float), 1.0, tails, shape, 0.5)
    U = np.empty_like(C)
    assert scales.integrate_scales(C, 1.0, tails, shape, 0.5, dtype == np.float64, U)
    for got, wanted in zip((C, U), want):
        assert got.dtype == dtype
        np.testing.assert_allclose(got, wanted, rtol=30 * np.finfo(dtype).eps)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_scores_beyond_the_range_are_refused_or_the_largest(bad):
    single = np.array([[0.0, bad]], np.float32)
    assert not scales.integrate_scales(single, 0.0, 3.0, 2.0, 0.0, False, np.empty_like(single))
    double, U = single.astype(float), np.empty((1, 2))
    assert scales.integrate_scales(double, 0.0, 3.0, 2.0, 0.0, True, U)
    assert double[0, 1] == pytest.approx(-2.0 * np.log(scales.FARTHEST / 3.0))
    assert U[0, 1] > 0.0


@pytest.mark.parametrize("dtype", DTYPES)
@given(seed=SEEDS, n=st.integers(0, 9), K=st.integers(1, 5))
def test_sums_of_scales_equal_reference(dtype, seed, n, K):
    rng = np.random.default_rng(seed)
    R = softmax(rng.normal(0.0, 9.0, (n, K)), axis=1).astype(dtype)
    R[R < 1e-3] = 0.0
    weights, U = rng.random(n), rng.gamma(2.0, 1.0, (n, K)).astype(dtype)
    rows, indices = np.nonzero(R)
    indptr, values = np.concatenate([[0], np.cumsum((R > 0.0).sum(axis=1))]), R[rows, indices]
    S, before = np.ones((K, 5)), np.ones((K, 5))
    scales.add_scales(indptr, indices.astype(np.int32), values, weights, U, 0.3, -0.7, S)
    before[:, 3:] += scales.add_scales_reference(R.astype(float), weights, U.astype(float), 0.3, -0.7)
    np.testing.assert_allclose(S, before, rtol=1e-11, atol=1e-11)
    scaled = np.empty_like(values)
    multiplied(indptr, indices.astype(np.int32), values, U, scaled)
    np.testing.assert_array_equal(scaled, values * U[rows, indices])
