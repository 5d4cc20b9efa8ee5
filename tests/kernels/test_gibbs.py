"""The kernels of Gibbs sampling: chances that are known, and plain NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import psi

from stickbreak.kernels import gibbs

SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("known", [False, True])
def test_a_sweep_draws_from_the_conditional(known, power):
    """Documents of one token, or of two of which one is sure: the chances are known."""
    K, n = 3, 60_000
    E = np.array([[0.5, 0.3, 0.2], [1e-12, 1.0, 1e-12]], np.float32) ** power
    a = np.array([0.5, 1.0, 0.1]) ** power
    cumulative = np.cumsum(E * a, axis=1).astype(np.float32)
    indptr = np.arange(0, (1 + known) * n + 1, 1 + known)
    words = np.tile([1, 0] if known else [0], n).astype(np.int32)
    z = np.tile([1, -1] if known else [-1], n).astype(np.int32)
    ends, totals = cumulative[:, -1].copy(), np.zeros(K, np.float32)
    gibbs.gibbs_sweep(indptr, words, z, E, cumulative, ends, totals, power == 2, 7)
    chances = E[0] * (a + known * np.array([0.0, 1.0, 0.0]))
    chances /= chances.sum()
    found = np.bincount(z[words == 0], minlength=K) / n
    np.testing.assert_allclose(found, chances, atol=5.0 * np.sqrt(0.25 / n))


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_a_sweep_says_how_likely_the_tokens_are(scale):
    """Documents of one token, whose masses do not depend on what is drawn; their product leaves the range of float64."""
    rng = np.random.default_rng(0)
    E = (scale * rng.random((5, 3))).astype(np.float32)
    a = np.array([0.5, 1.0, 0.1])
    cumulative = np.cumsum(E * a, axis=1).astype(np.float32)
    words = rng.integers(5, size=100).astype(np.int32)
    z = np.full(100, -1, np.int32)
    said = gibbs.gibbs_sweep(
        np.arange(101), words, z, E, cumulative, cumulative[:, -1].copy(), np.zeros(3, np.float32), False, 7
    )
    assert said == pytest.approx(np.log((E * a).sum(axis=1))[words].sum(), rel=1e-6)


@pytest.mark.parametrize("power", [1, 2])
def test_a_token_draws_without_what_it_adds_to_its_topic(power):
    """Documents of three tokens, all in the first topic: one draws by what the other two say, and the tables less itself."""
    n = 60_000
    totals = np.array([10.0, 5.0], np.float32)
    E = np.array([[0.6, 0.5], [1e-12, 1.0], [1.0, 1e-12]], np.float32)  # of a word of six tokens, and two that are sure
    prior = np.array([0.2, 0.4])
    cumulative = np.cumsum(E**power * prior**power, axis=1).astype(np.float32)
    words = np.tile([0, 1, 2], n).astype(np.int32)
    z = np.tile([0, 1, 0], n).astype(np.int32)
    indptr = np.arange(0, 3 * n + 1, 3)
    gibbs.gibbs_sweep(indptr, words, z, E**power, cumulative, cumulative[:, -1].copy(), totals, power == 2, 7)
    own = np.array([0.5, 0.5])  # 5 of 10 without the token
    chances = own**power + prior**power * E[0] ** power
    found = np.bincount(z[words == 0], minlength=2) / n
    np.testing.assert_allclose(found, chances / chances.sum(), atol=5.0 * np.sqrt(0.25 / n))


@given(seed=SEEDS, K=st.integers(1, 6), cold=st.booleans())
def test_sweeps_depend_on_the_seed_alone(seed, K, cold):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 9, 6)
    words = rng.integers(7, size=lengths.sum()).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    prior = np.exp(rng.normal(-2.0, 2.0, K))
    S = rng.exponential(1.0, (7, K))
    E = (S / S.sum(axis=0)).astype(np.float32)
    cumulative, totals = np.cumsum(E * prior, axis=1).astype(np.float32), S.sum(axis=0).astype(np.float32)
    ends = []
    for _ in range(2):
        z = np.full(len(words), -1, np.int32)
        for sweep in range(3):
            gibbs.gibbs_sweep(
                indptr, words, z, E, cumulative, cumulative[:, -1].copy(), (sweep > 0) * totals, cold, seed + sweep
            )
            assert ((z >= 0) & (z < K)).all()
        ends.append(z)
    np.testing.assert_array_equal(*ends)


@given(seed=SEEDS, K=st.integers(1, 6), power=st.integers(1, 2))
def test_tables_of_words_equal_numpy(seed, K, power):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 5, 7)
    z = rng.integers(K, size=sizes.sum()).astype(np.int32)
    smooth = rng.exponential(1.0, 7)
    prior = rng.exponential(1.0, K)
    counts = np.zeros((7, K))
    np.add.at(counts, (np.repeat(np.arange(7), sizes), z), 1.0)
    owners = rng.permutation(K)[: rng.integers(K + 1)]  # topics with pseudo-counts of their own
    more = rng.exponential(1.0, (len(owners), 7))
    totals = (counts.sum(axis=0) + smooth.sum()).astype(np.float32)
    E = np.empty((7, K), np.float32)
    cumulative = np.empty_like(E)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    tokens = rng.permutation(len(z))
    topics = np.empty_like(z)
    topics[tokens] = z
    gibbs.word_tables(indptr, tokens, topics, smooth, owners, more, totals, prior, power == 2, E, cumulative)
    counts[:, owners] += more.T
    want = ((counts + smooth[:, None]) / totals) ** power
    np.testing.assert_allclose(E, want, rtol=1e-6)
    np.testing.assert_allclose(cumulative, np.cumsum(want * prior**power, axis=1), rtol=1e-6)


@given(seed=SEEDS, K=st.integers(1, 6))
def test_gains_of_the_prior_equal_scipy(seed, K):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 30, 7)
    z = rng.integers(K, size=sizes.sum()).astype(np.int32)
    prior = np.exp(rng.normal(-2.0, 2.0, K))
    n = np.zeros((7, K))
    np.add.at(n, (np.repeat(np.arange(7), sizes), z), 1.0)
    gains = np.ones(K)
    gibbs.prior_gains(np.concatenate([[0], np.cumsum(sizes)]), z, prior, gains)
    np.testing.assert_allclose(gains, 1.0 + (psi(n + prior) - psi(prior)).sum(axis=0), rtol=1e-9, atol=1e-9)
