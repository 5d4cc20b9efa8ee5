"""Annealing: words that occur nowhere, and words that occur very often, take no time."""

import numpy as np
import pytest
from scipy import sparse

from stickbreak.allocations import HierarchicalDirichletProcess
from stickbreak.data import BagSource
from stickbreak.inference.executor import Threads
from stickbreak.inference.topics import gibbs
from stickbreak.inference.topics.pace import Pace
from stickbreak.likelihoods import Multinomial
from stickbreak.model import BAGS, Model, Summary

V, K = 5000, 3


@pytest.fixture
def source():
    counts = np.random.default_rng(0).poisson(2.0, (30, 20)).astype(float)
    wide = np.zeros((30, V))
    wide[:, 10 * np.arange(20) + 7] = counts
    return BagSource(sparse.csr_array(wide))


def test_sweeps_are_over_the_words_that_occur(source, monkeypatch):
    sizes, sweep = [], gibbs.gibbs_sweep
    monkeypatch.setattr(gibbs, "gibbs_sweep", lambda *given: (sizes.append(given[3].shape), sweep(*given))[1])
    likelihood = Multinomial(concentration=np.full(V, 0.03), length=40.0)
    model = Model(likelihood, HierarchicalDirichletProcess(), BAGS)
    chain = gibbs.Chain(model, source, np.random.default_rng(0), True)
    start = Summary(np.ones(K), np.zeros((K, V)), np.zeros(K), np.zeros(()))
    with Threads(1) as threads:
        found = chain.from_summary(start, gibbs.Sweeps(5), threads).summary
        again = chain.from_topics(np.full(len(chain.words), -1, np.int32), K, gibbs.Sweeps(5), threads).summary
    assert set(sizes) == {(20, K)}
    for summary in (found, again):
        assert summary.S.shape[1] == V
        np.testing.assert_allclose(summary.S.sum(axis=0), source.X.sum(axis=0))
        np.testing.assert_allclose(summary.N, summary.S.sum(axis=1))


def sweeps_of(likelihoods, most, share):
    """How many sweeps there are where these follow each other, and in which of them the prior is learnt."""
    pace = Pace.of(most, share)
    learnt = []
    for likelihood in likelihoods:
        if pace.over:
            break
        if pace.learns:
            learnt.append(pace.sweep)
        pace = pace.after(likelihood)
    return pace.sweep, learnt


def test_sweeps_go_on_while_tokens_get_likelier():
    assert sweeps_of(np.arange(1000.0), 100, 0.6) == (100, list(range(60, 100, 3)))
    assert sweeps_of(np.arange(1000.0), 25, 0.1) == (25, list(range(3, 25, 3)))
    assert sweeps_of(np.arange(1000.0), 1, 0.1) == (1, [])


def test_sweeps_end_where_tokens_get_no_likelier():
    assert sweeps_of(np.zeros(1000), 200, 0.6) == (60, [30, 33, 36, 39, 42, 45, 48, 51, 54, 57])
    rising = np.concatenate([np.arange(35.0), np.full(1000, 34.0)])
    assert sweeps_of(rising, 500, 0.6)[0] == 70 + 30
    assert sweeps_of(np.full(1000, np.nan), 200, 0.6)[0] == 40


def test_a_chain_ends_where_sweeps_have_nothing_to_gain():
    rng = np.random.default_rng(0)
    topics = np.repeat(np.eye(K), 10, axis=1) / 10
    X = rng.multinomial(40, rng.dirichlet(np.full(K, 0.3), 200) @ topics)
    model = Model(Multinomial(concentration=np.full(10 * K, 0.03), length=40.0), HierarchicalDirichletProcess(), BAGS)
    chain = gibbs.Chain(model, BagSource(sparse.csr_array(X.astype(float))), rng, True)
    sweep, done = chain._sweep, []
    chain._sweep = lambda *given: (done.append(1), sweep(*given))[1]
    with Threads(1) as threads:
        found = chain.from_summary(Summary.zeros(K, 10 * K), gibbs.Sweeps(200), threads).summary
    assert 20 <= len(done) < 300  # of 1,000
    assert np.sort(found.S, axis=1)[:, -10:].sum() > 0.98 * X.sum()  # each topic has words of its own


def test_documents_have_fewer_topics_after_cold_sweeps():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(40, 0.3), 5)
    X = rng.multinomial(40, rng.dirichlet(np.full(5, 0.5), 200) @ topics)
    model = Model(Multinomial(concentration=np.full(40, 0.03), length=40.0), HierarchicalDirichletProcess(), BAGS)
    topics_of_documents = []
    for cold in (0, 5):
        chain = gibbs.Chain(model, BagSource(sparse.csr_array(X.astype(float))), np.random.default_rng(0), True)
        start = model.start(np.full(5, 1600.0), 1600.0 * topics)
        with Threads(1) as threads:
            found = chain.from_summary(start, gibbs.Sweeps(5, cold), threads)
        assert found.summary.N.sum() == X.sum()
        documents = np.repeat(np.arange(200), 40)
        topics_of_documents.append(len(np.unique(5 * documents + found.topics)))
    assert topics_of_documents[1] < 0.9 * topics_of_documents[0]


def mean_topics(alpha, learn=True):
    """How many topics documents that mix all ten have after sweeps from the true ones, of 100 tokens."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(100, 0.1), 10)
    X = rng.multinomial(100, rng.dirichlet(np.full(10, 3.0), 200) @ topics)
    model = Model(Multinomial(concentration=np.full(100, 0.03), length=100.0), HierarchicalDirichletProcess(), BAGS)
    chain = gibbs.Chain(model, BagSource(sparse.csr_array(X.astype(float))), np.random.default_rng(0), learn)
    with Threads(1) as threads:
        found = chain.from_summary(
            model.start(np.full(10, 2000.0), 2000.0 * topics), gibbs.Sweeps(5, 0, alpha), threads
        )
    return len(np.unique(10 * np.repeat(np.arange(200), 100) + found.topics)) / 200


def test_documents_have_more_topics_where_they_are_known_to_mix_many():
    assert mean_topics(30.0) > mean_topics(0.0) + 1.0
    assert mean_topics(0.5) == mean_topics(0.0)  # 0.1 for each topic is more
    assert mean_topics(30.0, learn=False) == mean_topics(0.0, learn=False)  # alpha is given


def test_a_word_is_sampled_no_more_than_so_often(source):
    source.X.data[:] = 1e4
    model = Model(Multinomial(concentration=np.full(V, 0.03), length=40.0), HierarchicalDirichletProcess(), BAGS)
    chain = gibbs.Chain(model, source, np.random.default_rng(0), True)
    assert len(chain.words) == gibbs.MOST_REPEATS * source.X.nnz
    assert gibbs.MOST_REPEATS <= 1000
    assert chain.scale * len(chain.words) == source.total_weight


def test_of_long_documents_some_tokens_are_sampled_before_documents_are_left_out():
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.multinomial(500_000, rng.dirichlet(np.full(V, 2.0), 100)).astype(float))
    model = Model(Multinomial(concentration=np.full(V, 0.03), length=40.0), HierarchicalDirichletProcess(), BAGS)
    chain = gibbs.Chain(model, BagSource(X), np.random.default_rng(0), True)
    sizes = np.diff(chain.indptr)
    assert len(sizes) == 100
    assert abs(sizes.mean() - gibbs.LONG[1]) < 50
    assert chain.scale * len(chain.words) == pytest.approx(X.sum())
    shares = np.bincount(chain.used[chain.words], minlength=V) / len(chain.words)
    np.testing.assert_allclose(shares, X.sum(axis=0) / X.sum(), atol=0.01)


def test_no_more_counts_are_read_than_tokens_may_be_sampled(monkeypatch):
    monkeypatch.setattr(gibbs, "TOKENS", 1000)
    monkeypatch.setattr(gibbs, "LONG", (2, 5))
    X = sparse.csr_array(np.full((100, 40), 1000.0))
    model = Model(Multinomial(concentration=np.full(40, 0.03), length=40.0), HierarchicalDirichletProcess(), BAGS)
    chain = gibbs.Chain(model, BagSource(X), np.random.default_rng(0), True)
    assert len(chain.indptr) - 1 == 1000 // 40
    assert chain.scale * len(chain.words) == pytest.approx(X.sum())


def test_pseudo_counts_beyond_single_precision(source):
    model = Model(Multinomial(concentration=np.full(V, 1e300), length=40.0), HierarchicalDirichletProcess(), BAGS)
    chain = gibbs.Chain(model, source, np.random.default_rng(0), True)
    with Threads(1) as threads:
        found = chain.from_topics(np.zeros(len(chain.words), np.int32), K, gibbs.Sweeps(5), threads).summary
    assert found.S.sum() == source.total_weight


def test_whole_counts_are_tokens_and_draw_nothing():
    rng = np.random.default_rng(0)
    tokens = gibbs._whole(np.array([3.0, 0.0, 7.0], np.float32), rng)
    np.testing.assert_array_equal(tokens, [3, 0, 7])
    assert rng.integers(1000) == np.random.default_rng(0).integers(1000)


def test_counts_that_are_whole_multiples_of_the_smallest_are_these_multiples():
    tokens = gibbs._whole(np.array([0.5, 0.0, 1.5, 1.0]), np.random.default_rng(0))
    np.testing.assert_array_equal(tokens, [1, 0, 3, 2])


def test_tokens_are_in_proportion_to_other_counts_and_four_on_average_at_most():
    counts = np.repeat([0.001, 0.2, 0.7], 20_000)
    tokens = gibbs._whole(counts, np.random.default_rng(0)).reshape(3, -1).mean(axis=1)
    np.testing.assert_allclose(tokens, np.array([0.001, 0.2, 0.7]) * 4.0 / counts.mean(), rtol=0.02, atol=0.003)
