"""The number of topics: none where there are none, those that there are, and no simple rival with a higher bound."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from stickbreak import TopicModel

V, WORDS = 60, 60
NEAR = 5e-4  # of the bound: documents of few words have local optima of their own, so near to each other


def corpus(K, seed, D=300, alpha=0.4):
    """Counts of documents that mix K topics, and the topics."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(V, 0.05), K)
    return rng.multinomial(WORDS, rng.dirichlet(np.full(K, alpha), D) @ topics), topics


def fit(X, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return TopicModel(**{"random_state": 0, "n_jobs": 1, **parameters}).fit(X)


@pytest.mark.parametrize("seed", range(4))
def test_a_corpus_without_topics_has_one(seed):
    rng = np.random.default_rng(seed)
    X = rng.multinomial(50, rng.dirichlet(np.ones(100)), size=200)
    found = fit(X, random_state=seed)
    assert found.n_topics_ == 1
    assert found.lower_bound_ >= fit(X, n_init_topics=1, moves=()).lower_bound_ - 1.0


@pytest.mark.parametrize("K", [3, 5])
@pytest.mark.parametrize("seed", range(2))
def test_no_rival_has_a_higher_bound(K, seed):
    X, topics = corpus(K, seed)
    found = fit(X)
    assert found.n_topics_ == K
    slack = NEAR * abs(found.lower_bound_)
    assert found.lower_bound_ >= fit(X, init=topics, moves=()).lower_bound_ - slack
    assert found.lower_bound_ >= fit(X, n_init_topics=K, moves=()).lower_bound_ - slack
    assert found.lower_bound_ >= fit(X, n_init_topics=1, moves=()).lower_bound_
    assert found.lower_bound_ >= fit(X, init=found).lower_bound_ - 1.0 * K


def test_starts_agree():
    X, _ = corpus(5, 3)
    bounds = []
    for start in (1, 20, 64):
        found = fit(X, n_init_topics=start)
        assert found.n_topics_ == 5
        bounds.append(found.lower_bound_)
    assert np.ptp(bounds) < NEAR * abs(bounds[0])
