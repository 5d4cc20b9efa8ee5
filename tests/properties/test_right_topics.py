"""The number of topics: none where there are none, those that there are, and no simple rival with a higher bound."""

import warnings

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning

import stickbreak
from stickbreak import Mixture, TopicModel

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


def _of_mixture(found, X):
    """The bound of a mixture of the documents, with the words in a given order."""
    orders = gammaln(X.sum(axis=1) + 1.0).sum() - gammaln(X + 1.0).sum()
    return Mixture(found.model_.likelihood, random_state=0, n_jobs=1).fit(X).lower_bound_ - orders


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_corpus_without_topics_has_one(seed):
    rng = np.random.default_rng(seed)
    X = rng.multinomial(50, rng.dirichlet(np.ones(100)), size=200)
    found = fit(X, random_state=seed)
    assert found.n_topics_ == 1
    assert found.lower_bound_ >= fit(X, n_init_topics=1, moves=()).lower_bound_ - 1.0
    assert found.lower_bound_ >= fit(X, init=found).lower_bound_ - 0.01


@pytest.mark.parametrize("alpha", [1e-6, 1.0, 1e4])
def test_one_topic_costs_next_to_nothing_more_than_one_cluster(alpha):
    """The share of what is not in use must not hold documents back, whatever alpha is."""
    rng = np.random.default_rng(0)
    X = rng.multinomial(50, rng.dirichlet(np.ones(100)), size=500)
    found = fit(X, n_init_topics=1, moves=(), document_concentration=alpha, learn=False)
    ahead = _of_mixture(found, X) - found.lower_bound_
    assert -1.0 < ahead < 1.5 * np.log(len(X))
    assert found.n_laps_ < 12


@pytest.mark.parametrize("alpha", ["learn", 1e-12, 1e6])
@pytest.mark.parametrize("scale", [1e-3, 1e-20, 1e-90])
def test_one_topic_of_next_to_no_words(scale, alpha):
    """Also where one document is empty: all that there is may be less than one token."""
    rng = np.random.default_rng(0)
    X = rng.multinomial(50, rng.dirichlet(np.ones(40)), size=60) * scale
    X[3] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        found = fit(X, n_init_topics=1, moves=(), document_concentration=alpha)
    assert np.isfinite(found.lower_bound_)


@pytest.mark.parametrize(("K", "seed"), [(3, 0), pytest.param(5, 1, marks=pytest.mark.long)])
def test_no_rival_has_a_higher_bound(K, seed):
    X, topics = corpus(K, seed)
    found = fit(X)
    assert found.n_topics_ == K
    assert found.lower_bound_ >= fit(X, init=topics, moves=()).lower_bound_ - 1.0 * K
    assert found.lower_bound_ >= fit(X, n_init_topics=K, moves=()).lower_bound_ - 1.0 * K
    assert found.lower_bound_ >= fit(X, n_init_topics=1, moves=()).lower_bound_
    assert found.lower_bound_ >= fit(X, init=found).lower_bound_ - 1.0 * K


@pytest.mark.long
def test_starts_agree():
    X, _ = corpus(5, 3, D=200)
    bounds = []
    for start in ({}, {"init": "k-means++", "n_init_topics": 1}):
        found = fit(X, max_laps=150, **start)
        assert found.n_topics_ == 5
        bounds.append(found.lower_bound_)
    assert np.ptp(bounds) < NEAR * abs(bounds[0])


def of_one_topic():
    """Counts of short documents, each of one of four topics."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(V, 0.05), 4)
    return np.stack([rng.multinomial(8, topics[k]) for k in rng.integers(4, size=400)])


def test_documents_of_one_topic_are_no_worse_than_their_mixture():
    X = of_one_topic()
    found = fit(X)
    assert found.n_topics_ == 4
    assert found.document_concentration_ < 0.01
    ahead = _of_mixture(found, X) - found.lower_bound_
    assert ahead < 0.5 * np.log(len(X)) * found.n_topics_  # what not knowing the shares may cost


def repeated_documents():
    """Counts (180, 200) of documents of 30 words without topics: 60 that differ, each three times."""
    rng = np.random.default_rng(0)
    return np.tile(rng.multinomial(30, rng.dirichlet(np.ones(200)), 60), (3, 1))


def bursty_documents():
    """Counts (60, 300) of documents of 100 words, each with frequencies of its own around those of all."""
    rng = np.random.default_rng(0)
    return rng.multinomial(100, rng.dirichlet(20.0 * rng.dirichlet(np.full(300, 0.5)), 60))


@pytest.mark.parametrize("documents", [pytest.param(repeated_documents, marks=pytest.mark.long), bursty_documents])
def test_documents_of_one_topic_each_lack_no_cluster_of_their_mixture(documents):
    X = documents()
    found = fit(X)
    ahead = _of_mixture(found, X) - found.lower_bound_
    assert ahead < 0.5 * np.log(len(X)) * found.n_topics_  # what not knowing the shares may cost
    assert fit(X, init=found).lower_bound_ < found.lower_bound_ + 5.0


@pytest.mark.long
def test_growth_from_one_topic_goes_as_far_as_from_many():
    X, _ = corpus(6, 1, D=300, alpha=1.0)
    starts = ({"init": "k-means++", "n_init_topics": 1}, {})
    assert [fit(X, max_laps=200, **start).n_topics_ for start in starts] == [6, 6]


@pytest.fixture(scope="module", params=[corpus(4, 1, D=150)[0], of_one_topic()], ids=["mixed", "one topic each"])
def known(request):
    """Documents, and a model of them."""
    return request.param, fit(request.param, n_init_topics=8, max_laps=200)


def test_a_fit_is_no_lower_than_the_model_that_it_begins_with(known):
    X, found = known
    again = fit(X, init=found)
    assert again.lower_bound_ >= found.lower_bound_
    assert again.document_concentration_ == pytest.approx(found.document_concentration_, rel=0.1)
    for settings in ({"moves": ()}, {"max_laps": 1}, {"max_laps": 1, "moves": (), "n_batches": 3}):
        again = fit(X, init=found, **settings)
        assert again.lower_bound_ >= found.lower_bound_
        assert again.lower_bounds_[-1] == pytest.approx(again.lower_bound_, rel=1e-12)
        assert again.lower_bound_ == pytest.approx(again.model_.bound(again.summary_), rel=1e-12)


def test_a_model_of_other_documents_says_nothing_of_these(known, tmp_path):
    """Also where lengths of documents, and counts of words in all of them, are the same."""
    X, found = known
    words = np.random.default_rng(0).permutation(np.repeat(np.tile(np.arange(V), len(X)), X.ravel()))
    shuffled = np.stack([np.bincount(own, minlength=V) for own in words.reshape(len(X), -1)])
    assert (shuffled.sum(axis=0) == X.sum(axis=0)).all()
    other = fit(shuffled, init=found, moves=(), max_laps=1)
    assert other.lower_bound_ < found.lower_bound_ - 1000.0
    found.save(tmp_path / "found.safetensors")
    loaded = stickbreak.load(tmp_path / "found.safetensors")
    assert fit(X, init=loaded, max_laps=1).lower_bound_ == pytest.approx(found.lower_bound_, rel=1e-12)
    loaded.partial_fit(shuffled)
    documents = fit(X, init=loaded, moves=(), max_laps=1).summary_.D
    assert documents == len(X)
