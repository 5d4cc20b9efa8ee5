"""Restarts of words against the bound written out, and in fits."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import gammaln, psi, xlogy
from sklearn.exceptions import ConvergenceWarning

from stickbreak import TopicModel
from stickbreak.data import BagSource
from stickbreak.inference import Threads
from stickbreak.inference.topics import word_restarts as restarts
from stickbreak.kernels.word_restarts import _begin, restart_words

SEEDS = st.integers(0, 2**32 - 1)


def values(counts, E, prior, N):
    """The part of the bound of each word (counts (V, n), E (n, K), prior and N (V, K)) that depends on it alone."""
    R = E[None] * np.exp(psi(N + prior))[:, None]
    R /= R.sum(axis=2, keepdims=True)
    C = counts[:, :, None] * R
    theta = C.sum(axis=1) + prior
    data = (C * np.log(E)[None]).sum(axis=(1, 2)) - (counts[:, :, None] * xlogy(R, R)).sum(axis=(1, 2))
    return data + (gammaln(theta) - gammaln(prior)).sum(axis=1)


def settled(counts, E, prior, N, steps=300):
    for _ in range(steps):
        R = E[None] * np.exp(psi(N + prior))[:, None]
        N = (counts[:, :, None] * R / R.sum(axis=2, keepdims=True)).sum(axis=1)
    return N


def restarted(counts, E, prior, N):
    X = sparse.csr_array(counts)
    after = N.copy()
    return restart_words(X.indptr, X.indices, X.data, E, np.log(E), prior, after), after


@given(seed=SEEDS)
def test_a_word_begins_elsewhere_only_for_a_higher_bound_and_gains_what_it_says(seed):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(1.0, (8, 6)).astype(float)
    E = rng.gamma(0.5, 1.0, (6, 5)) + 1e-3
    E /= E.max(axis=1, keepdims=True)
    prior = rng.uniform(0.01, 0.3, (8, 5))
    before = settled(counts, E, prior, rng.exponential(3.0, (8, 5)))
    (changed, gained), after = restarted(counts, E, prior, before)
    other = (after != before).any(axis=1)
    was, now = values(counts, E, prior, before), values(counts, E, prior, after)
    assert changed == other.sum()
    assert (now[other] > was[other]).all()
    assert gained >= 0.0
    if (before.max(axis=0) > 0.1).all():  # else topics with few tokens are left out
        assert (now - was).sum() == pytest.approx(gained, abs=0.5)


def test_a_word_leaves_a_topic_in_which_it_would_stay():
    """All tokens are in the first topic, where they settle; the second explains them twice as well."""
    counts = np.array([[3.0, 3.0]])
    E = np.array([[0.5, 1.0, 0.01], [0.5, 1.0, 0.01]])
    prior = np.full((1, 3), 0.01)
    before = settled(counts, E, prior, np.array([[6.0, 0.0, 0.0]]), 20)
    assert before[0, 0] > 5.9
    (changed, gained), after = restarted(counts, E, prior, before)
    assert changed == 1
    assert after[0, 1] > 5.9
    assert gained == pytest.approx(6.0 * np.log(2.0), rel=0.01)


def corpus(D=250):
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(400, 0.05), 4)
    return rng.multinomial(60, rng.dirichlet(np.full(4, 0.4), D) @ topics), topics


def fit(X, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return TopicModel(**{"random_state": 0, "n_jobs": 1, **parameters}).fit(X)


def test_starts_are_the_word_as_it_is_spread_in_one_topic_and_without_each_of_its_topics():
    n = np.array([3.0, 0.0, 1.0, 2.0])
    order, trial = np.empty(4, np.int64), np.empty(4)
    starts = [trial.tolist() for i in range(8) if _begin(i, n, 2, order, trial)]
    alone = [[6.0, 0.0, 0.0, 0.0], [0.0, 6.0, 0.0, 0.0]]
    without = [[3.0, 0.0, 0.0, 2.0], [3.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 2.0]]
    assert starts == [n.tolist(), [1.5] * 4, *alone, *without]


@pytest.mark.long
def test_a_fit_ends_with_words_where_they_are_best():
    X, topics = corpus()
    found = fit(X)
    words = [lap for lap in found.history_ if lap.origin == "words"]
    earlier = max(lap.lower_bound for lap in found.history_ if lap.number < words[0].number)
    assert found.n_topics_ == 4
    assert found.lower_bound_ > earlier + 4.0
    bounds = np.array(found.lower_bounds_)
    assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()
    for rival in ({"init": found}, {"init": topics, "moves": ()}, {"n_init_topics": 4, "moves": ()}):
        assert fit(X, **rival).lower_bound_ < found.lower_bound_ + 1.0


@pytest.mark.parametrize("seeds", [None, {"first": [0, 1, 2], "second": [7]}])
def test_tokens_stay_as_many_and_names_where_they_are_on_any_number_of_threads(seeds, monkeypatch):
    X = corpus()[0]
    model = fit(X, n_init_topics=4, moves=(), seeds=seeds, max_laps=3)
    source = BagSource(sparse.csr_array(X))
    counts = np.float32(model.transform(X).T * X.sum(axis=1))
    monkeypatch.setattr(restarts, "ENTRIES", 500)
    outcomes = []
    for n in (1, 2):
        with Threads(n) as executor:
            outcomes.append(restarts.words_restarted(model.model_, model.summary_, source, counts, executor))
    first, second = outcomes
    assert np.array_equal(first.S, second.S)
    assert first.S[:, :400].sum(axis=0) == pytest.approx(X.sum(axis=0), abs=0.5)
    assert first.S[:, :400].sum(axis=1) == pytest.approx(first.N)
    assert np.array_equal(first.S[:, 400:], model.summary_.S[:, 400:])
