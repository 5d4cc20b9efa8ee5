"""Topics from anchor words: against dense references, on separable topics, on degenerate counts."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment, minimize

from stickbreak.inference.topics import anchors
from stickbreak.inference.topics.anchors import _anchors, _Cooccurrence, _mixtures, anchor_topics


def separable(K=5, V=100, D=3000, length=60, seed=0):
    """Counts of documents of topics that each have one anchor of probability 0.05, and the topics."""
    rng = np.random.default_rng(seed)
    topics = np.hstack([0.05 * np.eye(K), 0.95 * rng.dirichlet(np.full(V - K, 0.2), K)])
    proportions = rng.dirichlet(np.full(K, 0.3), D)
    return sparse.csr_array(np.array([rng.multinomial(length, p / p.sum()) for p in proportions @ topics])), topics


def errors(found, topics):
    """The L1 distance of each topic from the one matched to it."""
    distance = np.abs(topics[:, None] - found).sum(axis=2)
    return distance[linear_sum_assignment(distance)]


def dense_q(X):
    X = X[X.sum(axis=1) >= 2].astype(float)
    n = X.sum(axis=1)
    return sum((np.outer(x, x) - np.diag(x)) / (m * (m - 1)) for x, m in zip(X, n))


@pytest.fixture(scope="module")
def corpus():
    return separable()


@pytest.fixture
def small():
    rng = np.random.default_rng(1)
    X = rng.poisson(rng.gamma(0.3, 2.0, (40, 12)))
    X[0], X[1] = 0, np.eye(12)[3]
    return X


def test_recovers_separable_topics(corpus):
    X, topics = corpus
    found = anchor_topics(X, 5, np.random.default_rng(0))
    assert errors(found, topics).max() < 0.15
    assert (found > 0.0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_recovers_from_a_sample_of_documents(corpus):
    X, topics = corpus
    found = [anchor_topics(X, 5, np.random.default_rng(0), max_documents=1500) for _ in range(2)]
    np.testing.assert_array_equal(*found)
    assert errors(found[0], topics).max() < 0.25


def test_counts_of_next_to_nothing_are_none(small):
    X = small.astype(float)
    X[:, 5] = 0.0
    traces = X.copy()
    traces[3:9, 5] = 5e-324, 1e-310, 1e-200, 1e-161, 1e-120, 0.0
    found, want = (anchor_topics(sparse.csr_array(x), 3, np.random.default_rng(0), 1) for x in (traces, X))
    np.testing.assert_array_equal(found, want)


def test_cooccurrence_is_that_of_pairs_of_tokens(small, monkeypatch):
    monkeypatch.setattr(anchors, "BLOCK_NUMBERS", 20)
    Q, dense = _Cooccurrence.of(sparse.csr_array(small), 100, np.random.default_rng(0)), dense_q(small)
    np.testing.assert_allclose(Q.mass, dense.sum(axis=1))
    rows = dense / dense.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(Q.norms(np.arange(12)), (rows**2).sum(axis=1))
    np.testing.assert_allclose(Q.products(4), rows @ rows[4])


def test_anchors_are_furthest_from_the_span_of_the_others(small):
    Q, dense = _Cooccurrence.of(sparse.csr_array(small), 100, np.random.default_rng(0)), dense_q(small)
    rows = dense / dense.sum(axis=1, keepdims=True)

    def furthest(others, rows=rows):
        basis = np.linalg.svd(rows[others], full_matrices=False)[2][: len(others)]
        return int(((rows - rows @ basis.T @ basis) ** 2).sum(axis=1).argmax())

    expected = []
    for _ in range(4):
        expected.append(furthest(expected))
    for k in range(4):
        expected[k] = furthest(expected[:k] + expected[k + 1 :])
    found, B = _anchors(Q, np.arange(12), 4)
    assert found.tolist() == expected
    np.testing.assert_allclose(B, rows @ rows[found].T)


def test_mixtures_minimise_the_squared_error():
    rng = np.random.default_rng(2)
    rows, words = rng.dirichlet(np.full(20, 0.3), 3), rng.dirichlet(np.full(20, 0.3), 6)
    C = _mixtures(rows @ rows.T, words @ rows.T, np.full(6, 1e-8), 5000)
    for c, word in zip(C, words):
        simplex = {"bounds": [(0, 1)] * 3, "constraints": {"type": "eq", "fun": lambda p: p.sum() - 1.0}}
        best = minimize(lambda p, w=word: ((w - p @ rows) ** 2).sum(), np.full(3, 1 / 3), **simplex)
        np.testing.assert_allclose(c, best.x, atol=3e-3)


def test_two_topics_without_a_word_in_common():
    pairs = {(2, 0, 0, 0): 4, (1, 1, 0, 0): 8, (0, 2, 0, 0): 4, (0, 0, 2, 0): 1, (0, 0, 1, 1): 6, (0, 0, 0, 2): 9}
    X = sparse.csr_array(np.repeat(list(pairs), list(pairs.values()), axis=0))
    found = anchor_topics(X, 2, np.random.default_rng(0), min_documents=1)
    np.testing.assert_allclose(found[np.argsort(-found[:, 0])], [[0.5, 0.5, 0, 0], [0, 0, 0.25, 0.75]], atol=0.02)


def test_one_topic_is_the_mean_of_the_documents(small):
    used = small[small.sum(axis=1) >= 2]
    mean = (used / used.sum(axis=1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(anchor_topics(sparse.csr_array(small), 1, np.random.default_rng(0))[0], mean)


def test_words_never_seen_get_the_same_tiny_mass_and_empty_documents_none(corpus):
    X, _ = corpus
    X = sparse.csr_array(X[:1000])
    padded = sparse.csr_array((X.data, X.indices, np.append(X.indptr, [X.indptr[-1]] * 50)), (1050, 103))
    found, expected = (anchor_topics(x, 5, np.random.default_rng(0)) for x in (padded, X))
    unseen = found[:, 100:]
    assert (unseen > 0.0).all()
    assert unseen.max() < 1e-3
    np.testing.assert_allclose(unseen, unseen[0, 0])
    np.testing.assert_allclose(found[:, :100], expected, atol=1e-3)


def test_counts_are_left_as_they_are():
    data, indices, indptr = np.array([1.0, 2.0, 0.0, 3.0, 1.0]), np.array([1, 1, 0, 0, 1]), np.array([0, 3, 5])
    X = sparse.csr_array((data, indices, indptr), (2, 2))
    found = anchor_topics(X, 1, np.random.default_rng(0))
    np.testing.assert_allclose(found, [[0.375, 0.625]])
    np.testing.assert_array_equal(X.data, [1.0, 2.0, 0.0, 3.0, 1.0])


@pytest.mark.parametrize(
    ("counts", "K", "min_documents", "message"),
    [
        (np.eye(4), 2, None, "2 topics need 2 anchor words, but only 0 words .* or bring more documents"),
        (np.zeros((0, 4)), 1, None, "only 0 words"),
        (np.ones((5, 4)), 6, None, "6 topics need 6 anchor words, but only 4 .* ask for fewer topics"),
        (np.array([[1, 1, 0], [1, 1, 1]]), 3, 2, "only 2 words are in at least 2 documents .* lower min_documents"),
        (np.ones((5, 4)), 0, None, "at least 1; got 0"),
    ],
)
def test_too_few_anchors(counts, K, min_documents, message):
    with pytest.raises(ValueError, match=message):
        anchor_topics(sparse.csr_array(counts), K, np.random.default_rng(0), min_documents)


def test_words_that_do_not_differ_cannot_be_anchors():
    # rows 0 and 1 of Qbar, and rows 2 and 3, are equal: (0, 0, 1/2, 1/2) and (1/2, 1/2, 0, 0)
    X = sparse.csr_array(np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]]))
    with pytest.raises(ValueError, match="only 2 words differ enough to be anchors: ask for 2 topics"):
        anchor_topics(X, 3, np.random.default_rng(0))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("K", [10, 20])
@pytest.mark.parametrize("seed", range(3))
def test_anchors_that_rounding_hardly_tells_apart(seed, K):
    """Many tokens and no topics: beyond the first anchor all words are as good as the same."""
    X = np.random.default_rng(seed).poisson(1e3, (300, 30))
    found = anchor_topics(sparse.csr_array(X), K, np.random.default_rng(0))
    assert (found > 0.0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
