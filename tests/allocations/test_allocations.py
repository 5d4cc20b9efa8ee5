"""Allocations against the urn they come from, derivatives, and brute force over orders."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stickbreak.allocations import (
    DirichletProcess,
    FiniteDirichlet,
    GammaConcentration,
    PitmanYor,
    TruncatedDirichletProcess,
)

COUNTS = st.lists(st.integers(0, 7), min_size=1, max_size=5).map(lambda counts: np.array(counts, float))
SIZES = st.lists(st.floats(0.0, 50.0), min_size=1, max_size=5).map(np.array)


def next_label(allocation, N):
    """p(z = k | labels with counts N): the means of pi_k, from the posterior written out."""
    if isinstance(allocation, FiniteDirichlet):
        share = allocation.concentration / allocation.n_clusters
        return (N + share) / (N.sum() + allocation.concentration)
    gamma, p, left = allocation.concentration, np.empty(len(N)), 1.0
    d = getattr(allocation, "discount", 0.0)
    for k in range(len(N)):
        stop, go = 1.0 - d + N[k], gamma + (k + 1) * d + sum(N[k + 1 :])
        p[k] = left * stop / (stop + go)
        left *= go / (stop + go)
    return p


@given(N=COUNTS)
def test_bound_of_whole_counts_is_the_probability_of_the_labels(allocation, naive, N):
    """Labels one after the other from their predictive: log p(z_1 ... z_N), in any order of rows."""
    urn, seen = 0.0, np.zeros(len(N))
    for k in np.random.default_rng(1).permutation(np.repeat(np.arange(len(N)), N.astype(int))):
        urn += np.log(next_label(allocation, seen)[k])
        seen[k] += 1.0
    assert allocation.bound(naive.counted(N)) == pytest.approx(urn, rel=1e-11, abs=1e-11)


@given(N=SIZES)
def test_update_is_the_derivative_of_the_bound(allocation, naive, N):
    """d bound / d N_k = E[log pi_k]."""
    h = 2e-3
    for k, e in enumerate(h * np.eye(len(N))):
        near = allocation.bound(naive.counted(N + 1 + e)) - allocation.bound(naive.counted(N + 1 - e))
        far = allocation.bound(naive.counted(N + 1 + 2 * e)) - allocation.bound(naive.counted(N + 1 - 2 * e))
        assert (8 * near - far) / (12 * h) == pytest.approx(
            log_weights(allocation, naive.counted(N + 1))[k], rel=1e-8, abs=1e-8
        )


def log_weights(allocation, summary):
    return allocation.update(summary, allocation.solve(summary)).log_weights


@given(N=SIZES)
def test_mean_weights_are_the_normalised_predictive(allocation, naive, N):
    p = next_label(allocation, N)
    np.testing.assert_allclose(allocation.mean_weights(naive.counted(N)), p / p.sum(), rtol=1e-12)
    assert allocation.mean_weights(naive.counted(N)).sum() == pytest.approx(1.0, rel=1e-14)


@given(N=SIZES)
def test_order_maximises_the_bound_over_all_permutations(allocation, naive, N):
    best = max(allocation.bound(naive.counted(N[list(order)])) for order in permutations(range(len(N))))
    chosen = N[allocation.order(naive.counted(N))]
    assert np.array_equal(chosen, np.sort(N)[::-1])
    assert allocation.bound(naive.counted(chosen)) == pytest.approx(best, rel=1e-13, abs=1e-13)


@given(N=SIZES, empty=st.integers(1, 2))
def test_empty_clusters_cost_exactly_nothing(allocation, naive, N, empty):
    wider = np.append(N, np.zeros(empty))
    if len(wider) <= allocation.max_clusters:
        assert allocation.bound(naive.counted(wider)) == allocation.bound(naive.counted(N))
        np.testing.assert_array_equal(
            log_weights(allocation, naive.counted(wider))[: len(N)], log_weights(allocation, naive.counted(N))
        )


def test_ties_keep_their_order(allocation, naive):
    assert allocation.order(naive.counted(np.array([2.0, 5.0, 2.0, 5.0, 0.0]))).tolist() == [1, 3, 0, 2, 4]


def test_limits_on_the_number_of_clusters():
    assert FiniteDirichlet(3).max_clusters == 3
    assert DirichletProcess().max_clusters > 10**9


@pytest.mark.parametrize("kind", [DirichletProcess, FiniteDirichlet, PitmanYor])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_bad_concentration_is_refused_by_name(kind, value):
    with pytest.raises(
        ValueError, match=f"^concentration must be a positive number from 1e-300 to 1e.300; got {value!r}"
    ):
        kind(concentration=value)


@pytest.mark.parametrize("value", [0, -3, 2.5])
def test_bad_number_of_clusters_is_refused_by_name(value):
    with pytest.raises(ValueError, match=f"^n_clusters must be .*; got {value!r}"):
        FiniteDirichlet(n_clusters=value)


MERGED = (
    DirichletProcess(0.6),
    DirichletProcess(1e-3),
    DirichletProcess(200.0),
    DirichletProcess(GammaConcentration(2.0, 1.0)),
    FiniteDirichlet(6, 0.6),
    FiniteDirichlet(7, 20.0),
    PitmanYor(1.5, 0.4),
    TruncatedDirichletProcess(5, 3.0),
)


@pytest.mark.parametrize("prior", MERGED, ids=str)
@given(N=SIZES)
def test_gains_of_merges_are_differences_of_bounds_in_the_best_orders(prior, naive, N):
    pairs = [pair for a, b in combinations(range(len(N)), 2) for pair in ((a, b), (b, a))]
    if not pairs:
        return
    now = naive.counted(N)
    gains = prior.exact_merge_gains(now, prior.solve(now), *np.array(pairs).T)
    for (a, b), gain in zip(pairs, gains):
        merged = np.delete(N, b) + np.where(np.delete(np.arange(len(N)), b) == a, N[b], 0.0)
        best = prior.bound(naive.counted(merged[prior.order(naive.counted(merged))]))
        assert gain == pytest.approx(best - prior.bound(now), rel=1e-10, abs=1e-10)
