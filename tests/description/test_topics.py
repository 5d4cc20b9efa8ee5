"""Top words, coherence and the input of pyLDAvis."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from stickbreak.description.topics import coherence, pyldavis, top_words

TOPICS = np.array([[0.5, 0.3, 0.2, 0.0], [0.1, 0.1, 0.2, 0.6]])
SHARES = np.array([0.5, 0.1, 0.2, 0.2])
WORDS = ["the", "cat", "sat", "dog"]
COUNTS = sparse.csr_array(np.array([[3, 1, 0, 0], [0, 0, 0, 0], [1, 0, 2, 1], [2, 0, 1, 4]]))


def test_top_words_by_probability():
    assert top_words(TOPICS, WORDS, 2) == [[("the", 0.5), ("cat", 0.3)], [("dog", 0.6), ("sat", 0.2)]]
    assert top_words(TOPICS)[1] == [("x3", 0.6), ("x2", 0.2), ("x0", 0.1), ("x1", 0.1)]


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_top_words_by_relevance(weight):
    expected = weight * np.log(TOPICS[1]) + (1 - weight) * np.log(TOPICS[1] / SHARES)
    order = np.argsort(-expected, kind="stable")
    words, values = zip(*top_words(TOPICS, WORDS, 4, weight, SHARES)[1])
    assert list(words) == [WORDS[w] for w in order]
    np.testing.assert_array_equal(values, TOPICS[1, order])


def test_words_of_probability_or_share_zero_come_last():
    top = top_words(TOPICS, WORDS, 4, 0.0, [0.0, 0.2, 0.4, 0.4])
    assert top[0] == [("cat", 0.3), ("sat", 0.2), ("the", 0.5), ("dog", 0.0)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vocabulary": WORDS[:3]}, "one word for each of the 4 columns of topics; got 3"),
        ({"n": 0}, "n must be a whole number of at least 1; got 0"),
        ({"relevance": 1.2, "word_shares": SHARES}, r"relevance must be a number from 0 to 1; got 1.2"),
        ({"relevance": np.nan, "word_shares": SHARES}, "got nan"),
        ({"relevance": 0.6}, "relevance needs word_shares, such as"),
        ({"relevance": 0.6, "word_shares": SHARES[:2]}, r"shape \(4,\), one for each word; got \(2,\)"),
        ({"topics": TOPICS[0]}, r"shape \(topics, words\); got \(4,\)"),
    ],
)
def test_top_words_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        top_words(**{"topics": TOPICS, **arguments})


def npmi(X, i, j):
    p_i, p_j, p_ij = (X[:, i] > 0).mean(), (X[:, j] > 0).mean(), ((X[:, i] > 0) & (X[:, j] > 0)).mean()
    if p_ij in (0.0, 1.0):
        return 2.0 * p_ij - 1.0
    return np.log(p_ij / (p_i * p_j)) / -np.log(p_ij)


@pytest.mark.parametrize("n", [2, 5, 40])
def test_coherence_equals_the_mean_over_pairs(n):
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(0.3, 1.0, (50, 30)))
    X[:, 3], X[:, 4], X[:, 5] = 1, 2, 0
    topics = rng.dirichlet(np.full(30, 0.3), 6)
    topics[0, [3, 4, 5]] = 1.0, 2.0, 3.0
    best = [np.argsort(-p)[:n] for p in topics]
    expected = [np.mean([npmi(X, i, j) for i, j in combinations(top, 2)]) for top in best]
    np.testing.assert_allclose(coherence(topics, sparse.csr_array(X), n), expected)


def test_coherence_is_that_of_the_words_shown():
    rng = np.random.default_rng(1)
    X = rng.poisson(rng.gamma(0.3, 1.0, (50, 12)))
    topics = rng.dirichlet(np.full(12, 0.3), 4)
    shares = rng.dirichlet(np.ones(12))
    shown = [[int(word[1:]) for word, _ in top] for top in top_words(topics, None, 4, 0.3, shares)]
    expected = [np.mean([npmi(X, i, j) for i, j in combinations(top, 2)]) for top in shown]
    np.testing.assert_allclose(coherence(topics, sparse.csr_array(X), 4, 0.3, shares), expected)
    assert not np.allclose(coherence(topics, sparse.csr_array(X), 4), expected)


def test_coherence_by_hand():
    X = np.array([[1, 1, 1, 0, 1, 0], [2, 3, 0, 1, 1, 0], [1, 0, 1, 0, 0, 0], [5, 0, 0, 1, 0, 0]])
    pairs = {(1, 4): 1.0, (2, 3): -1.0, (1, 3): 0.0, (0, 5): -1.0, (0, 1): 0.0}  # together, never, independent, unseen
    topics = np.zeros((len(pairs), 6))
    for k, pair in enumerate(pairs):
        topics[k, pair] = 0.5
    np.testing.assert_allclose(coherence(topics, sparse.csr_array(X), 2), list(pairs.values()), atol=1e-15)
    np.testing.assert_allclose(coherence(topics[:1], sparse.csr_array(np.ones((3, 6))), 2), 1.0)  # in all documents


def test_coherence_counts_a_document_once():
    stored = sparse.csr_array((np.array([1, 2, 0, 1, 1]), np.array([0, 0, 1, 0, 1]), np.array([0, 3, 5, 5])), (3, 2))
    np.testing.assert_allclose(coherence(np.full((1, 2), 0.5), stored), npmi(stored.toarray(), 0, 1))
    np.testing.assert_array_equal(stored.data, [1, 2, 0, 1, 1])


@pytest.mark.parametrize(
    ("topics", "counts", "n", "message"),
    [
        (TOPICS, COUNTS, 1, "n must be a whole number of at least 2; got 1"),
        (TOPICS[:, :1], COUNTS[:, [0]], 10, r"shape \(4, 1\)"),
        (TOPICS, COUNTS[:0], 10, r"shape \(0, 4\)"),
        (TOPICS[:, :3], COUNTS, 10, "counts have 4 columns and topics 3"),
    ],
)
def test_coherence_refuses(topics, counts, n, message):
    with pytest.raises(ValueError, match=message):
        coherence(topics, counts, n)


def test_pyldavis_scales_rows_and_drops_what_is_empty():
    topics = np.array([[5.0, 3.0, 0.0, 2.0], [1.0, 1.0, 0.0, 8.0]], dtype=np.float32)
    proportions = np.array([[3.0, 1.0], [0.5, 0.5], [0.0, 0.0], [1.0, 9.0]])
    given = pyldavis(topics, [0.4, 0.6], COUNTS, proportions, WORDS)
    np.testing.assert_allclose(given["topic_term_dists"], [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    np.testing.assert_allclose(given["doc_topic_dists"], [[0.75, 0.25], [0.4, 0.6], [0.1, 0.9]])
    np.testing.assert_array_equal(given["doc_lengths"], [4, 4, 7])
    assert given["vocab"] == ["the", "cat", "dog"]
    np.testing.assert_array_equal(given["term_frequency"], [6, 1, 5])


@pytest.mark.filterwarnings("ignore")
def test_pyldavis_accepts_it():
    prepare = pytest.importorskip("pyLDAvis", reason="pyLDAvis is not installed").prepare
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.poisson(1.0, (40, 50)))
    given = pyldavis(rng.dirichlet(np.ones(50), 4), np.full(4, 0.25), X, rng.dirichlet(np.ones(4), 40))
    assert len(prepare(**given, R=10, n_jobs=1).topic_coordinates) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shares": [1.0]}, r"shares must have the shape \(2,\), to fit topics and counts; got \(1,\)"),
        ({"proportions": np.ones((3, 2))}, r"proportions must have the shape \(4, 2\)"),
        ({"counts": COUNTS[:, :3]}, "counts have 3 columns and topics 4"),
        ({"vocabulary": ["the"]}, "got 1"),
    ],
)
def test_pyldavis_refuses(arguments, message):
    good = {"topics": TOPICS, "shares": [0.5, 0.5], "counts": COUNTS, "proportions": np.ones((4, 2))}
    with pytest.raises(ValueError, match=message):
        pyldavis(**{**good, **arguments})
