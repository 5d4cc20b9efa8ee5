"""Topics that are dissolved: what that gains, against sums over documents one by one, and what it finds."""

import numpy as np
import pytest
from scipy import sparse

from stickbreak import TopicModel
from stickbreak.data import BagSource
from stickbreak.inference.topics.dissolving import Dissolving
from stickbreak.inference.topics.restarts import Restarts
from stickbreak.inference.topics.splits import Splits

K = 4


@pytest.fixture(scope="module")
def fit():
    """Documents (12, 9), a model of them with four topics, and the tokens (K, 12) that documents have of each."""
    rng = np.random.default_rng(0)
    X = rng.multinomial(30, rng.dirichlet(np.full(9, 0.5), 12))
    found = TopicModel(n_init_topics=K, moves=(), max_laps=5, random_state=0, n_jobs=1)
    with pytest.warns(match="not converged"):
        found.fit(X)
    return X, found.model_.posterior(found.summary_), (found.transform(X) * 30.0).T


def test_documents_share_out_the_tokens_of_topics_among_their_others(fit):
    X, posterior, counts = fit
    dissolving = Dissolving.of(posterior, counts)
    C = dissolving.counts
    start = dissolving.start([0, 2])
    expected = {j: posterior.summary.S[j].copy() for j in (1, 3)}
    for k in (0, 2):
        handed = {j: sum(C[k, d] * C[j, d] / (C[1, d] + C[3, d]) for d in range(12)) for j in (1, 3)}
        for j in (1, 3):
            expected[j] += handed[j] / sum(handed.values()) * posterior.summary.S[k]
    np.testing.assert_allclose(start.S, [expected[1], expected[3]])
    np.testing.assert_allclose(start.N, start.S.sum(axis=1))
    np.testing.assert_allclose(start.S.sum(axis=0), X.sum(axis=0), rtol=1e-6)


def test_the_gain_is_that_of_the_likelihood_of_words_and_the_cost_of_parameters(fit):
    X, posterior, counts = fit
    dissolving = Dissolving.of(posterior, counts)
    likelihood = posterior.model.likelihood
    total = posterior.summary
    phi = likelihood.posterior(total.N, total.S).probabilities
    pi = (dissolving.counts / dissolving.counts.sum(axis=0)).T
    gains = dissolving.gains(BagSource(sparse.csr_array(X)))
    for k in range(K):
        others = [j for j in range(K) if j != k]
        handed = dissolving.handed([k])[0, others]
        S = total.S[others] + handed[:, None] * total.S[k] / total.N[k]
        without = (
            pi[:, others]
            / pi[:, others].sum(axis=1, keepdims=True)
            @ likelihood.posterior(S.sum(axis=1), S).probabilities
        )
        assert gains[k] == pytest.approx((X * np.log(without / (pi @ phi))).sum() + posterior.cost[k])


def test_topics_of_words_that_others_have_left_over_are_dissolved(monkeypatch):
    """Eight topics without their rare words, and two of these words: a fit from the true topics is no better."""
    for owner, name in ((Restarts, "all"), (Splits, "at_last"), (Splits, "while_better")):  # they take long
        monkeypatch.setattr(owner, name, lambda *given: None)
    rng = np.random.default_rng(3)
    zipf = 1.0 / (np.arange(1, 401) + 2.7) ** 1.05
    own = zipf[:100] / zipf[:100].sum()
    topics = np.tile(0.2 * zipf / zipf.sum(), (8, 1))
    for topic in topics:
        topic[rng.permutation(400)[:100]] += 0.8 * own
    X = rng.multinomial(250, rng.dirichlet(np.full(8, 0.4), 80) @ topics)
    rare = np.where(topics < 0.003, topics, 0.0)
    start = np.vstack([topics - rare, rare[::2].sum(axis=0), rare[1::2].sum(axis=0)])
    found = TopicModel(init=start / start.sum(axis=1, keepdims=True), random_state=0, n_jobs=1).fit(X)
    truth = TopicModel(init=topics, moves=(), random_state=0, n_jobs=1).fit(X)
    assert found.n_topics_ == 8
    assert found.lower_bound_ > truth.lower_bound_
