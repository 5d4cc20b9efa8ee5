"""The local step and the model's functions of a summary, against dense numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import xlogy

from stickbreak.model import Summary, local, local_step, restricted_step

SEEDS = st.integers(0, 2**32 - 1)


def parameters_of(p, dtype=np.float64):
    return p.model.parameters(p.summary, np.dtype(dtype))


@given(seed=SEEDS, n=st.integers(1, 60), K=st.integers(1, 6), D=st.integers(1, 3))
def test_local_step_equals_dense_algebra(problem, naive, seed, n, K, D):
    p = problem(seed, n, K, D)
    parameters = parameters_of(p)
    summary, kept = local_step(p.model.likelihood, parameters, p.X, p.weights)
    R, q = naive.responsibilities(p.model, parameters, p.X), naive.latent(p.model, parameters, p.X)
    np.testing.assert_allclose(naive.dense(kept, K), R, rtol=1e-8, atol=1e-14)
    naive.assert_same(summary, naive.summarise(p.model.likelihood, p.X, R, p.weights, q))


@given(seed=SEEDS, K=st.integers(1, 4))
def test_restricted_step_shares_out_the_mass_of_each_row(problem, naive, seed, K):
    p = problem(seed, K=K)
    parameters, mass = parameters_of(p), p.rng.choice([0.0, 1e-9, 0.3, 1.0], len(p.X))
    summary, kept = restricted_step(p.model.likelihood, parameters, p.X, p.weights, mass)
    R, q = naive.responsibilities(p.model, parameters, p.X), naive.latent(p.model, parameters, p.X)
    np.testing.assert_allclose(naive.dense(kept, K), R, rtol=1e-8, atol=1e-14)
    want = naive.summarise(p.model.likelihood, p.X, mass[:, None] * R, p.weights, q)
    assert summary.base == 0.0
    np.testing.assert_allclose(summary.H, -(p.weights @ xlogy(mass[:, None] * R, mass[:, None] * R)), atol=1e-11)
    naive.assert_same(summary + Summary(0 * want.N, 0 * want.S, 0 * want.H, want.base), want)


@pytest.mark.parametrize("dense_share", [-1.0, 2.0])
@pytest.mark.parametrize("numbers", [1, 1 << 18])
def test_blocks_and_the_two_products_give_the_same(problem, naive, monkeypatch, dense_share, numbers):
    p = problem(1, n=700, K=5)
    parameters = parameters_of(p)
    want, want_kept = local_step(p.model.likelihood, parameters, p.X, p.weights)
    monkeypatch.setattr(local, "DENSE_SHARE", dense_share)
    monkeypatch.setattr(local, "BLOCK_NUMBERS", numbers)
    assert local.block_rows(10, 5) == (128 if numbers == 1 else 4096)
    summary, kept = local_step(p.model.likelihood, parameters, p.X, p.weights)
    naive.assert_same(summary, want, rtol=1e-13)
    np.testing.assert_allclose(naive.dense(kept, 5), naive.dense(want_kept, 5), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("F", [3, local.LONG])
def test_scores_of_few_and_of_many_statistics_are_one_product(dtype, F):
    rng = np.random.default_rng(F)
    T, W = rng.standard_normal((50, F)).astype(dtype), rng.standard_normal((4, F)).astype(dtype)
    out = np.empty((50, 4), dtype)
    found = local.product_with(T, W, out)
    assert found is out
    np.testing.assert_allclose(found, np.einsum("nf,kf->nk", T, W), rtol=1e-3, atol=100 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(local.product_with(T, W), found)


@given(seed=SEEDS)
def test_weights_are_repetitions_and_summaries_add(problem, naive, seed):
    p = problem(seed)
    parameters, times = parameters_of(p), p.rng.integers(0, 4, len(p.X))
    weighted, _ = local_step(p.model.likelihood, parameters, p.X, times.astype(float))
    repeated = np.repeat(p.X, times, axis=0)
    naive.assert_same(weighted, local_step(p.model.likelihood, parameters, repeated, np.ones(len(repeated)))[0])
    halves = [
        local_step(p.model.likelihood, parameters, X, w)[0]
        for X, w in [(p.X[:20], p.weights[:20]), (p.X[20:], p.weights[20:])]
    ]
    naive.assert_same(halves[0] + halves[1], local_step(p.model.likelihood, parameters, p.X, p.weights)[0])


def test_no_rows_give_nothing(problem):
    p = problem(2)
    summary, kept = local_step(p.model.likelihood, parameters_of(p), p.X[:0], p.weights[:0])
    assert not any(np.any(a) for a in (summary.N, summary.S, summary.H, summary.base))
    assert kept.indptr.tolist() == [0]
    assert kept.indices.size == kept.values.size == 0


def test_single_precision_is_close(problem, naive):
    p = problem(3, n=300)
    X = p.X.astype(np.float32)
    single, kept = local_step(p.model.likelihood, parameters_of(p, np.float32), X, p.weights)
    double, _ = local_step(p.model.likelihood, parameters_of(p), X.astype(np.float64), p.weights)
    assert kept.values.dtype == (np.float32 if p.model.likelihood.cells is None else np.float64)
    assert single.S.dtype == single.N.dtype == np.float64
    naive.assert_same(single, double, rtol=1e-5)
    assert p.model.bound(single) == pytest.approx(p.model.bound(double), rel=1e-5)


@given(seed=SEEDS, K=st.integers(1, 5))
def test_local_and_global_steps_never_lower_the_bound(problem, seed, K):
    p = problem(seed, K=K)
    summary, bounds = p.summary, [p.model.bound(p.summary)]
    for _ in range(6):
        summary = p.model.ordered(summary)
        bounds.append(p.model.bound(summary))
        summary, _ = local_step(p.model.likelihood, p.model.parameters(summary, np.dtype(float)), p.X, p.weights)
        bounds.append(p.model.bound(summary))
    assert np.all(np.diff(bounds) > -1e-11 * np.abs(bounds[0]))


@given(seed=SEEDS)
def test_local_step_is_the_best_one_for_its_parameters(problem, naive, seed):
    """max over r of  sum_nk w_n r_nk (scores_nk - log r_nk)  is  sum_n w_n logsumexp_k(scores_nk)."""
    p = problem(seed)
    parameters = parameters_of(p)
    summary, _ = local_step(p.model.likelihood, parameters, p.X, p.weights)
    value = np.sum(summary.S * parameters.W) + summary.N @ parameters.bias + summary.H.sum()
    best = p.weights @ np.logaddexp.reduce(naive.scores(p.model, parameters, p.X), axis=1)
    assert value == pytest.approx(best, rel=1e-10)


@given(seed=SEEDS, K=st.integers(1, 5))
def test_divergences_are_average_losses_of_rows(problem, naive, seed, K):
    p = problem(seed, K=K)
    p.summary = p.summary.insert_empty(1)
    W, b = p.model.likelihood.weights(p.summary.N, p.summary.S)
    scores = naive.features(p.model.likelihood, p.X) @ W.T + b
    r = p.weights[:, None] * p.R
    got = p.model.divergences(p.summary)
    for a in range(K):
        want = [r[:, a] @ (scores[:, a] - scores[:, c]) / max(r[:, a].sum(), 1e-300) for c in range(K + 1)]
        np.testing.assert_allclose(got[a], want, rtol=1e-9, atol=1e-9 * np.abs(scores).max())
    assert np.all(np.diagonal(got) == 0.0)
    assert np.isfinite(got).all()


@given(seed=SEEDS, K=st.integers(1, 5))
def test_parameter_cost_is_a_divergence_from_the_prior(problem, seed, K):
    p = problem(seed, K=K)
    cost = p.model.parameter_cost(p.summary.insert_empty(1))
    assert cost[-1] == 0.0
    assert np.all(cost[:-1] > -1e-10 * np.abs(p.model.log_marginal(p.summary)).max())
