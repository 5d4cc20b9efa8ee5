"""The priors of hidden Markov models against numerical derivatives, Monte Carlo, and probabilities one step after another."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logit

from stickbreak.allocations import Duration, FiniteMarkovChain, HDPMarkovChain
from stickbreak.allocations._sticks import expected_logs, stick_weight
from stickbreak.allocations.markov import SMALL
from stickbreak.kernels.special import log_rise
from stickbreak.model import SEQUENCES, SequenceSummary, Summary

SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=5)
NAMES = ("stickiness", "transition_concentration", "start_concentration", "concentration")


def paths(seed, K=4, lengths=(30, 1, 12, 7), stay=0.8):
    """States of some sequences."""
    rng = np.random.default_rng(seed)
    found = []
    for n in lengths:
        z = [int(rng.integers(K))]
        for _ in range(n - 1):
            z.append(z[-1] if rng.random() < stay else int(rng.integers(K)))
        found.append(z)
    return found


def of_paths(found, K):
    M, begins = np.zeros((K, K)), np.zeros(K)
    for z in found:
        begins[z[0]] += 1.0
        np.add.at(M, (z[:-1], z[1:]), 1.0)
    return of_counts(M, begins)


def of_counts(M, begins):
    K = len(begins)
    return SequenceSummary.of(Summary(begins + M.sum(axis=0), np.zeros((K, 0)), np.zeros(K), np.zeros(())), M, begins)


def summary(seed, K=4):
    """Expected counts of a chain whose states mostly stay; the last state is hardly in use."""
    rng = np.random.default_rng(seed)
    M = rng.gamma(0.3, 10.0, (K, K)) + np.diag(rng.gamma(1.0, 50.0, K))
    M[-1] *= 1e-3
    M[:, -1] *= 1e-3
    return of_counts(M, rng.gamma(0.5, 3.0, K))


def dirichlet_multinomial(n, a):
    """Log probability of a sequence of draws with counts n (..., K) where a Dirichlet has pseudo-counts a (..., K)."""
    a = np.maximum(a, 1e-300)
    return (gammaln(n + a) - gammaln(a)).sum(-1) + gammaln(a.sum(-1)) - gammaln(a.sum(-1) + n.sum(-1))


def log_probability(prior, s, shares):
    """Log probability of first states and transitions given shares of the states and of the rest."""
    begins, M = np.append(s.begins, 0.0), np.column_stack([s.M, np.zeros(s.K)])
    total = dirichlet_multinomial(begins, prior.start_concentration * shares)
    for j in range(s.K):
        a = prior.transition_concentration * shares
        a[j] += prior.stickiness
        total += dirichlet_multinomial(M[j], a)
    return total


ALLOCATIONS = [
    HDPMarkovChain(1.0, 50.0, 10.0, 5.0),
    HDPMarkovChain(8.0, 0.0, 3.0, 1.0),
    HDPMarkovChain(2.0, 0.5, 1.0, 2.0),
    FiniteMarkovChain(6, 6.0, 0.0, 10.0),
    FiniteMarkovChain(9, 2.0, 30.0, 1.0),
]
every = pytest.mark.parametrize("allocation", ALLOCATIONS, ids=str)
KAPPAS = [0.0, 0.5, 1.0, 5.0, 100.0]


@pytest.mark.parametrize("kappa", KAPPAS)
@few
@given(seed=SEEDS, K=st.integers(1, 5), alpha=st.sampled_from([0.1, 3.0, 100.0]), gamma=st.sampled_from([0.3, 5.0]))
def test_the_gradient_is_that_of_the_value(kappa, seed, K, alpha, gamma):
    rng, s = np.random.default_rng(seed), summary(seed, K)
    prior, x = HDPMarkovChain(alpha, kappa, 2.0, gamma), rng.normal(0.0, 1.5, K)
    counted = np.vstack([s.begins, s.M])
    value = prior._objective(counted, gamma)
    gradient = value(x)[1]
    for k in range(K):
        h = 1e-5 * np.eye(K)[k]
        numeric = (value(x + h)[0] - value(x - h)[0]) / 2e-5
        assert gradient[k] == pytest.approx(numeric, rel=1e-5, abs=1e-4 * (1.0 + np.abs(gradient).max()))


@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("alpha", [0.3, 3.0, 40.0])
def test_the_surrogate_is_below_the_expectation_and_close(kappa, alpha):
    """E[c(alpha beta + kappa delta_j)] by Monte Carlo over q(u), and theta at the means."""
    rng, gamma, first, K = np.random.default_rng(1), 1.5, 2.5, 3
    prior, s = HDPMarkovChain(alpha, kappa, first, gamma), summary(2, K)
    counted = np.vstack([s.begins, s.M])
    u = np.array([0.4, 0.3, 0.6])
    w = stick_weight(u, prior._exponents(K), gamma, prior._strengths(K))
    draws = rng.beta(u * w, (1.0 - u) * w, (60_000, K))
    beta = np.column_stack([draws, np.ones(len(draws))])
    beta[:, 1:] *= np.cumprod(1.0 - draws, axis=1)
    mean = np.append(u, 1.0) * np.append(1.0, np.cumprod(1.0 - u))
    log_u, log_v = expected_logs(u, w)
    want = K * np.log(gamma) + ((gamma - 1.0) * log_v).sum() - ((u * w - 1.0) * log_u).sum()
    want -= (((1.0 - u) * w - 1.0) * log_v + gammaln(w) - gammaln(u * w) - gammaln((1.0 - u) * w)).sum()
    normaliser = np.zeros(len(draws))
    for j in range(K + 1):
        strength = first if j == 0 else alpha
        stays = np.zeros(K + 1)
        if j:
            stays[j - 1] = kappa
        a = strength * beta + stays
        normaliser += gammaln(a.sum(axis=1)) - gammaln(a).sum(axis=1)
        theta = strength * mean + stays + np.append(counted[j], 0.0)
        want -= gammaln(theta.sum()) - gammaln(theta).sum()
    want += normaliser.mean()
    error = 5.0 * normaliser.std() / np.sqrt(len(draws))
    found = prior._objective(counted, gamma)(logit(u))[0]
    variance = beta.var(axis=0)
    slack = (K * alpha**2 + first**2) * np.pi**2 / 12.0 * variance.sum()
    shifted = 0.0 < kappa < SMALL * alpha
    if shifted:  # log Gamma(kappa + x) as if a count more were seen
        slack += np.log1p(kappa / (alpha * beta[:, :K])).sum(axis=1).mean()
    assert want - slack - error <= found <= want + error
    close = 0.25 if 0.0 < kappa < 1.0 else 0.2
    assert shifted or alpha > 10.0 or found >= want - close * (K + 1) - error


@every
@few
@given(seed=SEEDS, K=st.integers(1, 6))
def test_the_global_step_is_an_optimum(allocation, seed, K):
    rng, s = np.random.default_rng(seed), summary(seed, K)
    best, shares = allocation.bound(s), allocation.solve(s).shares
    assert shares.shape == (K + 1,)
    assert (shares >= 0.0).all()
    assert shares.sum() == pytest.approx(1.0)
    assert allocation.bound_at(s, allocation.at(s, shares)) == pytest.approx(best, rel=1e-8)
    assert allocation.mean_weights(s).sum() == pytest.approx(1.0)
    if not isinstance(allocation, HDPMarkovChain):
        return
    for spread in (0.05, 0.5, 3.0):
        other = shares * np.exp(rng.normal(0.0, spread, K + 1))
        assert allocation.bound_at(s, allocation.at(s, other / other.sum())) <= best + 1e-6 * abs(best)


@every
@few
@given(seed=SEEDS, K=st.integers(1, 6))
def test_pseudo_counts_means_and_potentials_belong_together(allocation, seed, K):
    s = summary(seed, K)
    solution = allocation.solve(s)
    theta, means = allocation.counts(s, solution.shares), allocation.means(s)
    update = allocation.update(s, solution).prior
    assert theta.shape == (K + 1, K + 1)
    assert means.shape == update.shape == (K + 1, K)
    strength = allocation.transition_concentration + allocation.stickiness
    np.testing.assert_allclose(theta[0].sum(), allocation.start_concentration + s.begins.sum())
    np.testing.assert_allclose(theta[1:].sum(axis=1), strength + s.M.sum(axis=1))
    prior = allocation.prior_counts(allocation.solve(s).shares)
    np.testing.assert_allclose(theta[:, :-1] - np.vstack([s.begins, s.M]), prior[:, :-1], rtol=1e-7, atol=1e-9)
    own = allocation.transition_concentration * allocation.solve(s).shares[:K]
    np.testing.assert_allclose(prior[1:].diagonal(), own + allocation.stickiness)
    np.testing.assert_allclose(means.sum(axis=1), 1.0)
    assert (update > 0.0).all()
    assert (update <= means).all()
    assert (update.sum(axis=1) < 1.0 + 1e-12).all()


@every
@settings(max_examples=3)
@given(seed=SEEDS)
def test_learning_never_lowers_the_bound(allocation, seed):
    s = summary(seed)
    for name in NAMES:
        assert allocation.tuned(s, (name,), allocation.solve(s))[0].bound(s) >= allocation.bound(s)
    before, found = allocation.bound(s), allocation
    for _ in range(6):
        found = found.tuned(s, NAMES, found.solve(s))[0]
        assert found.bound(s) >= before - 1e-9 * abs(before)
        before = found.bound(s)
    assert allocation.tuned(s, (), allocation.solve(s))[0] == allocation
    assert (found.stickiness > 0.0) == (allocation.stickiness > 0.0)  # zero means no stickiness


@every
def test_learning_ends_where_nothing_is_gained(allocation):
    s = of_paths(paths(5, K=4, lengths=(300, 200, 150)), 4)
    found = allocation
    for _ in range(40):
        found = found.tuned(s, NAMES, found.solve(s))[0]
    for name in NAMES[:3]:
        value = getattr(found, name)
        for factor in (0.7, 1.4):
            other = replace(found, **{name: min(max(value * factor, 1e-12), 1e6)})
            assert other.bound(s) <= found.bound(s) + 2e-3


@pytest.mark.parametrize("allocation", [HDPMarkovChain(), FiniteMarkovChain(6, stickiness=1.0)])
def test_the_strength_of_rows_much_alike_is_learnt_in_a_few_steps(allocation):
    """All states last equally long and lead to all others alike, so that each row says what the others say."""
    K = 6
    s = of_counts(np.full((K, K), 200.0) + np.diag(np.full(K, 18_800.0)), np.ones(K))
    found = allocation
    for _ in range(20):
        found = found.tuned(s, ("stickiness", "transition_concentration"), found.solve(s))[0]
    strongest = max(
        replace(found, stickiness=kappa, transition_concentration=alpha).bound(s)
        for kappa in np.geomspace(1e3, 1e6, 7)
        for alpha in kappa * np.geomspace(0.04, 0.1, 5)
    )
    assert found.bound(s) > strongest - 0.1


@few
@given(seed=SEEDS, kappa=st.sampled_from([0.0, 0.5, 20.0]), K=st.integers(1, 4), more=st.integers(0, 3))
def test_the_finite_chain_one_step_after_another(seed, kappa, K, more):
    """The bound of hard assignments is their log probability, by the urn of each row of transitions."""
    prior, z = FiniteMarkovChain(K + more, 2.5, kappa, 3.0), paths(seed, K)
    n = prior.n_states
    seen, begun, total = np.zeros((n, n)), np.zeros(n), 0.0
    for path in z:
        total += np.log((begun[path[0]] + 3.0 / n) / (begun.sum() + 3.0))
        begun[path[0]] += 1.0
        for j, k in pairwise(path):
            total += np.log((seen[j, k] + 2.5 / n + kappa * (j == k)) / (seen[j].sum() + 2.5 + kappa))
            seen[j, k] += 1.0
    s = of_paths(z, K)
    assert prior.bound(s) == pytest.approx(total, rel=1e-11)
    assert prior.bound(s) == pytest.approx(log_probability(prior, s, prior.solve(s).shares), rel=1e-11)
    for extra in range(1, more + 1):
        assert prior.bound(s.insert_empty(extra)) == pytest.approx(total, rel=1e-11)
    order = np.random.default_rng(seed).permutation(K)
    assert prior.bound(s.take(order)) == pytest.approx(total, rel=1e-11)


def test_room_for_states():
    prior = FiniteMarkovChain(4)
    assert prior.max_clusters == 4
    assert prior.of_states(9).n_states == 9
    assert HDPMarkovChain().of_states(100) == HDPMarkovChain()
    assert HDPMarkovChain().max_clusters > 10**9


@every
@few
@given(seed=SEEDS, K=st.integers(2, 6))
def test_what_merges_gain_is_a_difference_of_log_probabilities(allocation, seed, K):
    """Given shares; of the process both shares go to the state merged, of the finite chain one is left to no state."""
    s, shares = summary(seed, K), allocation.solve(summary(seed, K)).shares
    first, second = np.triu_indices(K, 1)
    gains = allocation.merge_gains(s, shares, first, second)
    before = log_probability(allocation, s, shares)
    for gain, a, b in zip(gains, first, second):
        joined = allocation.merged_shares(shares, a, b)
        assert joined[b] == 0.0
        joined = np.delete(joined, b)
        if isinstance(allocation, FiniteMarkovChain):
            want = allocation.bound(s.merge(a, b)) - allocation.bound(s)
            joined[-1] += 1.0 / allocation.n_states
        else:
            want = log_probability(allocation, s.merge(a, b), joined) - before
        assert joined.sum() == pytest.approx(1.0)
        assert gain == pytest.approx(log_probability(allocation, s.merge(a, b), joined) - before, rel=1e-9, abs=1e-7)
        assert gain == pytest.approx(want, rel=1e-9, abs=1e-7)
    twice = allocation.merge_gains(s, shares, second, first)
    np.testing.assert_allclose(twice, gains, rtol=1e-9, atol=1e-7)


def test_an_empty_state_lowers_the_bound_of_the_process():
    """It takes a share that no row uses."""
    for seed in range(3):
        s = of_paths(paths(seed), 4)
        assert HDPMarkovChain().bound(s.insert_empty(1)) < HDPMarkovChain().bound(s)


@pytest.mark.parametrize("kappa", [0.0, 0.5, 50.0])
def test_the_process_has_a_bound_below_the_probability_of_its_states(kappa):
    """log p(z) with z given: by Monte Carlo over the sticks of the prior, for few steps."""
    rng, prior = np.random.default_rng(0), HDPMarkovChain(1.3, kappa, 2.0, 1.5)
    s = of_paths([[0, 0, 1, 1], [1]], 2)
    u = rng.beta(1.0, prior.concentration, (100_000, 2))
    beta = np.column_stack([u, np.ones(len(u))])
    beta[:, 1:] *= np.cumprod(1.0 - u, axis=1)
    p = np.exp(dirichlet_multinomial(np.append(s.begins, 0.0), prior.start_concentration * beta))
    for j in range(2):
        a = prior.transition_concentration * beta + kappa * np.eye(3)[j]
        p *= np.exp(dirichlet_multinomial(np.append(s.M[j], 0.0), a))
    assert prior.bound(s) <= np.log(p.mean()) + 5.0 * p.std() / p.mean() / np.sqrt(len(p))
    assert prior.bound(s) >= np.log(p.mean()) - (3.0 if 0.0 < kappa < 1.0 else 1.5)


@every
def test_counts_of_rows_alone(allocation):
    """A start that knows no transitions: states mostly stay."""
    N = np.array([100.0, 50.0, 2.0])
    s = SEQUENCES.start(Summary(N, np.zeros((3, 0)), np.zeros(3), np.zeros(())))
    means = allocation.means(s)
    assert np.isfinite(allocation.bound(s))
    np.testing.assert_allclose(means.sum(axis=1), 1.0)
    assert (means[1:3].diagonal() > 0.5).all()
    np.testing.assert_array_equal(allocation.order(s), [0, 1, 2])
    nothing = SEQUENCES.start(Summary(np.zeros(2), np.zeros((2, 0)), np.zeros(2), np.zeros(())))
    assert np.isfinite(allocation.update(nothing, allocation.solve(nothing)).prior).all()


def test_durations():
    assert Duration(20).stickiness(1.0) == 19.0
    assert Duration(1.0).stickiness(3.0) == 0.0
    assert Duration(11.0).stickiness(0.5) == 5.0
    assert Duration(1e6).stickiness(1e3) == 1e6
    rng, kappa, beta = np.random.default_rng(0), Duration(8.0).stickiness(2.0), 1e-6
    stays = rng.beta(kappa + 2.0 * beta, 2.0 * (1.0 - beta), 100_000)
    assert 1.0 / (1.0 - stays.mean()) == pytest.approx(8.0, rel=0.02)
    for wrong in (0.5, 0.0, -1.0, np.nan, np.inf, 1e7):
        with pytest.raises(ValueError, match="steps must be a number from 1 to 1e"):
            Duration(wrong)


@pytest.mark.parametrize("kind", [HDPMarkovChain, FiniteMarkovChain])
def test_hyperparameters_out_of_range(kind):
    for name in ("transition_concentration", "start_concentration"):
        for wrong in (0.0, 1e-13, -1.0, np.nan, np.inf, 1e7):
            with pytest.raises(ValueError, match=f"{name} must be a positive number from 1e-12 to 1e"):
                kind(**{name: wrong})
    for wrong in (-1.0, np.nan, np.inf, 1e7):
        with pytest.raises(ValueError, match="stickiness must be a number from 0 to"):
            kind(stickiness=wrong)
    with pytest.raises(ValueError, match="concentration must be a positive number"):
        HDPMarkovChain(concentration=0.0)
    for wrong in (0, -3, 2.5):
        with pytest.raises(ValueError, match="n_states must be a whole number"):
            FiniteMarkovChain(wrong)


@pytest.mark.parametrize("prior", [1e-3, 0.7, 30.0, 999.0, 1001.0, 1e6])
def test_ratios_of_gammas_are_products(prior):
    """Gamma(a + n) / Gamma(a) = a (a + 1) ... (a + n - 1)."""
    counts = np.array([0, 1, 2, 17])
    want = [np.log(prior + np.arange(n)).sum() for n in counts]
    np.testing.assert_allclose(log_rise(counts.astype(float), np.full(4, prior)), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [1e-9, 1e-3, 1e3, 1e6])
def test_the_search_for_shares_ends_at_an_optimum_for_every_concentration(name, value):
    prior = replace(HDPMarkovChain(), **{name: value})
    for K in (2, 12):
        s = summary(3, K)
        objective = prior._objective(np.vstack([s.begins, s.M]), prior.concentration)
        found, slope = objective(logit(prior.solve(s).shares[:-1] / np.cumsum(prior.solve(s).shares[::-1])[::-1][:-1]))
        assert np.abs(slope).max() < 1e-2
        assert found == pytest.approx(prior.bound(s), abs=1e-6)
        assert (
            prior.bound(s) > log_probability(prior, s, prior.solve(s).shares) - 25.0 * K
        )  # what not knowing the shares costs


@pytest.mark.parametrize("prior", [1e-3, 1.0, 1e3, 1e6])
def test_large_starts_cost_what_shares_of_a_multinomial_do(prior):
    """With first states drawn from the shares themselves, the bound no longer falls with the concentration."""
    s = summary(1, 5)
    one, larger = HDPMarkovChain(start_concentration=prior).bound(s), HDPMarkovChain(start_concentration=10.0).bound(s)
    assert one > larger - 100.0
