"""Sparse restarts of documents against the bound written out, and in fits and readings."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import gammaln, psi, xlogy

import stickbreak
from stickbreak import TopicModel
from stickbreak.inference.topics import speed
from stickbreak.kernels.restarts import restart_documents

SEEDS = st.integers(0, 2**32 - 1)


def values(counts, E, prior, N):
    """The part of the bound of each document that depends on q(z) and q(pi) (Thesis Eq. 5.27), from responsibilities."""
    p = np.exp(psi(N + prior))
    R = E[None] * p[:, None]
    R /= R.sum(axis=2, keepdims=True)
    C = counts[:, :, None] * R
    theta = C.sum(axis=1) + prior
    data = (C * np.log(E)[None]).sum(axis=(1, 2)) - (counts[:, :, None] * xlogy(R, R)).sum(axis=(1, 2))
    return data + (gammaln(theta) - gammaln(prior)).sum(axis=1)


def corpus(rng, D=6, V=8, K=5):
    E = rng.gamma(0.5, 1.0, (V, K)) + 1e-3
    counts = rng.poisson(2.0, (D, V)).astype(float)
    return counts, E / E.max(axis=1, keepdims=True), rng.uniform(0.01, 0.3, K)


def settled(counts, E, prior, N, steps=500):
    for _ in range(steps):
        R = E[None] * np.exp(psi(N + prior))[:, None]
        N = (counts[:, :, None] * R / R.sum(axis=2, keepdims=True)).sum(axis=1)
    return N


@given(seed=SEEDS, most=st.integers(1, 6))
def test_a_document_is_changed_only_for_a_higher_bound(seed, most):
    rng = np.random.default_rng(seed)
    counts, E, prior = corpus(rng)
    X = sparse.csr_array(counts)
    before = settled(counts, E, prior, rng.exponential(3.0, (6, 5)))
    after = before.copy()
    tried, emptied = restart_documents(X.indptr, X.indices, X.data, E, prior, most, after)
    changed = (after != before).any(axis=1)
    was, now = values(counts, E, prior, before), values(counts, E, prior, after)
    assert (now >= was - 1e-9 * (1.0 + np.abs(was))).all()
    assert (now[changed] > was[changed]).all()
    assert emptied >= changed.sum()
    assert tried <= most * 6
    assert (changed.sum() == 0) == (emptied == 0)


def test_a_junk_topic_is_emptied():
    """Two words of one topic, which a second one explains nearly as well; ascent from both keeps both (Thesis 5.3.4)."""
    E = np.array([[1.0, 0.9], [1.0, 0.9]])
    prior = np.full(2, 0.05)
    counts = np.array([[20.0, 20.0]])
    before = settled(counts, E, prior, np.array([[20.0, 20.0]]), 3)
    X = sparse.csr_array(counts)
    after = before.copy()
    assert restart_documents(X.indptr, X.indices, X.data, E, prior, 25, after) == (2, 1)
    assert after[0].min() < 1e-6 < before[0].min()


def test_fits_and_readings_with_restarts(tmp_path):
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(30, 0.1), 4)
    X = rng.poisson(40.0 * rng.dirichlet(np.full(4, 0.3), 60) @ topics)
    plain = TopicModel(init=topics, moves=(), random_state=0, n_jobs=1).fit(X)
    model = TopicModel(init=topics, moves=(), restarts=25, random_state=0, n_jobs=1).fit(X)
    bounds = np.array(model.lower_bounds_)
    assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()
    assert model.lower_bound_ > plain.lower_bound_ - 1e-6 * abs(plain.lower_bound_)
    model.save(tmp_path / "topics.safetensors")
    again = stickbreak.load(tmp_path / "topics.safetensors")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    few = again.set_params(restarts=0)
    assert model.score(X) >= few.score(X)


@pytest.mark.parametrize("fast", [pytest.param(speed.TUNING.fast, marks=pytest.mark.long), 1 << 12])
def test_documents_have_left_topics_at_the_end_of_a_fit(fast, monkeypatch):
    """Also where laps take long: restarts in every lap then find next to nothing more."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(300, 0.1), 10)
    X = np.stack([rng.multinomial(60, rng.dirichlet(np.full(10, 0.1)) @ topics) for _ in range(300)])
    monkeypatch.setattr(speed, "TUNING", replace(speed.TUNING, fast=fast))
    found = TopicModel(random_state=0, n_jobs=1).fit(X)
    again = TopicModel(random_state=0, n_jobs=1, init=found, restarts=50, moves=()).fit(X)
    assert found.n_topics_ == 10
    assert again.lower_bound_ < found.lower_bound_ + 6.0
    bounds = np.array(found.lower_bounds_)
    assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()
    assert found.model_.kind.restarts == 0


@pytest.mark.parametrize("wrong", [-1, 2.5, None, "few", True])
def test_restarts_must_be_a_count(wrong):
    with pytest.raises((ValueError, TypeError), match="restarts"):
        TopicModel(restarts=wrong).fit(np.ones((3, 4)))
