"""The truncated Dirichlet process against enumerated labels, and its bound as a function of the truncation."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaln, logsumexp

from partitions import chinese_restaurant, growth_strings
from stickbreak import Mixture
from stickbreak.allocations import DirichletProcess, GammaConcentration, TruncatedDirichletProcess
from stickbreak.likelihoods import KnownCovarianceGaussian, Sample
from stickbreak.model import Model, local_step

SIZES = st.lists(st.floats(0.0, 30.0), min_size=1, max_size=5).map(np.array)


def log_labels(z, T, concentration):
    """log p(labels) one after the other, from the means of sticks of which the last is one."""
    seen, total = np.zeros(T), 0.0
    for k in z:
        for stick in range(min(k + 1, T - 1)):
            later = seen[stick + 1 :].sum()
            chance = (1.0 + seen[stick]) / (1.0 + concentration + seen[stick] + later)
            total += np.log(chance if stick == k else 1.0 - chance)
        seen[k] += 1.0
    return total


@pytest.mark.parametrize("concentration", [0.4, 3.0])
@pytest.mark.parametrize("T", [1, 2, 4])
def test_bound_of_certain_rows_is_the_probability_of_their_labels(naive, T, concentration):
    prior = TruncatedDirichletProcess(T, concentration)
    exact = [log_labels(z, T, concentration) for z in product(range(T), repeat=4)]
    found = [prior.bound(naive.counted(np.bincount(z, minlength=T))) for z in product(range(T), repeat=4)]
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-12)
    assert logsumexp(found) == pytest.approx(0.0, abs=1e-12)


@given(N=SIZES, concentration=st.floats(0.05, 20.0), prior=st.booleans())
def test_the_order_is_the_best_of_all_permutations(naive, N, concentration, prior):
    for T in (len(N), len(N) + 1):
        belief = GammaConcentration(2.0, 2.0 / concentration) if prior and len(N) < 4 else concentration
        allocation = TruncatedDirichletProcess(T, belief)
        best = max(allocation.bound(naive.counted(N[list(order)])) for order in permutations(range(len(N))))
        chosen = N[allocation.order(naive.counted(N))]
        assert allocation.bound(naive.counted(chosen)) == pytest.approx(best, rel=1e-11, abs=1e-11)


@given(N=SIZES, concentration=st.floats(0.05, 20.0))
def test_update_is_the_derivative_and_weights_add_up(naive, N, concentration):
    h = 2e-3
    for T in (len(N), len(N) + 2):
        prior = TruncatedDirichletProcess(T, concentration)
        here = naive.counted(N + 1)
        logs = prior.update(here, prior.solve(here)).log_weights
        for k, e in enumerate(h * np.eye(len(N))):
            near = prior.bound(naive.counted(N + 1 + e)) - prior.bound(naive.counted(N + 1 - e))
            far = prior.bound(naive.counted(N + 1 + 2 * e)) - prior.bound(naive.counted(N + 1 - 2 * e))
            assert (8 * near - far) / (12 * h) == pytest.approx(logs[k], rel=1e-8, abs=1e-8)
        joining = prior.joining(here)
        assert joining.sum() == pytest.approx(1.0, rel=1e-12)
        assert (joining[-1] < 1e-12) == (len(N) == T)


@given(N=SIZES, concentration=st.floats(0.05, 20.0))
def test_the_bound_as_a_function_of_the_truncation(naive, N, concentration):
    """From one cluster more than are in use on, it is that of the Dirichlet process; with as many, the last stick is free."""
    summary = naive.counted(N)
    nested = DirichletProcess(concentration).bound(summary)
    for T in range(len(N) + 1, len(N) + 4):
        assert TruncatedDirichletProcess(T, concentration).bound(summary) == nested
    last = betaln(1.0 + N[-1], concentration) - betaln(1.0, concentration)  # of the Dirichlet process
    free = TruncatedDirichletProcess(len(N), concentration).bound(summary)
    assert free - nested == pytest.approx(-last, rel=1e-9, abs=1e-9)


def test_the_bound_is_below_the_evidence_which_tends_to_that_of_the_dirichlet_process(naive):
    rng = np.random.default_rng(0)
    X = rng.normal([[0.0], [0.0], [4.0], [4.0], [-5.0]])
    likelihood = KnownCovarianceGaussian(covariance=1.0, mean_precision=0.1).resolve(Sample.of(X))
    T = naive.features(likelihood, X)
    base = likelihood.log_base(X).sum()
    concentration = 1.3

    def rows(z):
        R = np.eye(max(z) + 1)[list(z)]
        return likelihood.log_marginal(R.sum(axis=0), R.T @ T).sum()

    whole = logsumexp([chinese_restaurant(np.bincount(z), concentration, 0.0) + rows(z) for z in growth_strings(5)])
    distance = []
    for most in (1, 2, 3, 4, 6):
        labels = list(product(range(most), repeat=5))
        exact = logsumexp([log_labels(z, most, concentration) + rows(z) for z in labels])
        distance.append(abs(exact - whole))
        model = Model(likelihood, TruncatedDirichletProcess(most, concentration))
        for softness in (0.05, 5.0):
            summary = naive.summarise(likelihood, X, rng.dirichlet(np.full(most, softness), 5))
            bounds = [model.bound(summary)]
            for _ in range(6):
                summary = model.ordered(summary)
                summary, _ = local_step(likelihood, model.parameters(summary, np.dtype(float)), X, np.ones(5))
                bounds.append(model.bound(summary))
            assert max(bounds) <= exact + base + 1e-10
            assert np.all(np.diff(bounds) > -1e-10)
    assert np.all(np.diff(distance) < 0.0)
    assert distance[-1] < 0.05 * distance[0]


def test_a_fit_uses_no_more_clusters_than_allowed():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 1.0, (50, 1)) for m in (-30.0, 0.0, 30.0)])
    for T, expected in ((2, 2), (3, 3), (8, 3)):
        found = Mixture("gaussian", allocation=TruncatedDirichletProcess(T, 2.0), random_state=0, n_jobs=1).fit(X)
        assert found.n_clusters_ == expected
        assert np.all(np.diff(found.lower_bounds_) >= 0.0)
