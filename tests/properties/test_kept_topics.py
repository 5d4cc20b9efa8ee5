"""`TopicModel(most_kept=L)`: hard documents, no limit, births that leave room, new documents, files."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import gammaln

import stickbreak
from stickbreak import TopicModel
from stickbreak.allocations import HierarchicalDirichletProcess
from stickbreak.data import BagSource
from stickbreak.likelihoods import Multinomial, Sample
from stickbreak.model import BAGS, Batch, Model
from stickbreak.model.kind import share_of_limit

FLOAT = np.dtype(float)


@pytest.fixture(scope="module")
def bags():
    """Counts (60, 30) of four topics, and the topics."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(30, 0.1), 4)
    return rng.poisson(40.0 * rng.dirichlet(np.full(4, 0.3), 60) @ topics), topics


@pytest.fixture(scope="module")
def fitted(bags):
    """A model for each limit."""
    X, topics = bags
    return {L: TopicModel(init=topics, moves=(), most_kept=L, random_state=0, n_jobs=1).fit(X) for L in (1, 2, 4, None)}


def same(one, other, X):
    assert one.lower_bounds_ == other.lower_bounds_
    for name in ("N", "S", "H", "P", "Q"):
        np.testing.assert_array_equal(getattr(one.summary_, name), getattr(other.summary_, name))
    np.testing.assert_array_equal(one.transform(X), other.transform(X))


def test_a_limit_that_is_never_reached_changes_nothing(bags, fitted):
    X, topics = bags
    same(fitted[4], fitted[None], X)
    free, limited = (
        TopicModel(init=topics, most_kept=L, tol=1.0, random_state=0, n_jobs=1).fit(X[:30]) for L in (None, 10_000)
    )
    same(limited, free, X)


def test_the_bound_never_falls_and_grows_with_the_limit(fitted):
    for model in fitted.values():
        bounds = np.array(model.lower_bounds_)
        assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()
    assert fitted[1].lower_bound_ < fitted[2].lower_bound_ < fitted[None].lower_bound_
    assert np.abs(fitted[1].summary_.H).max() < 1e-9


def test_new_documents_have_no_more_topics(bags, fitted):
    X, _ = bags
    n = X.sum(axis=1, keepdims=True)
    for L in (1, 2):
        prior = fitted[L].model_.posterior(fitted[L].summary_).step.prior[:4]
        counts = fitted[L].transform(X) * (n + prior.sum()) - prior
        assert ((counts > 1e-9).sum(axis=1) <= L).all()
        assert ((counts > 1e-9).sum(axis=1) == L).any()


def test_new_documents_of_one_topic_score_by_dense_arithmetic(bags, fitted):
    X, _ = bags
    model = fitted[1]
    prior = model.model_.posterior(model.summary_).step.prior
    n = X.sum(axis=1)
    values = X @ np.log(model.topics_).T + gammaln(prior[:4] + n[:, None]) - gammaln(prior[:4])
    want = values.max(axis=1) + gammaln(prior.sum()) - gammaln(prior.sum() + n)
    assert model.score(X) == pytest.approx(want.sum() / n.sum(), rel=1e-9)


def test_a_file_keeps_the_limit(bags, fitted, tmp_path):
    X, _ = bags
    fitted[2].save(tmp_path / "topics.safetensors")
    again = stickbreak.load(tmp_path / "topics.safetensors")
    assert again.model_.kind == replace(BAGS, most_kept=2)
    np.testing.assert_array_equal(again.transform(X), fitted[2].transform(X))


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "two", True])
def test_a_limit_must_be_a_count(bags, wrong):
    with pytest.raises((ValueError, TypeError), match="most_kept"):
        TopicModel(most_kept=wrong).fit(bags[0])


@given(
    L=st.integers(1, 12), parts=st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(lambda parts: sum(parts) > 0)
)
def test_moves_of_one_lap_share_the_limit(L, parts):
    total = sum(parts)
    shares = share_of_limit(L, np.array(parts), np.full(len(parts), total))
    assert shares.sum() <= L
    if total <= L:
        assert (shares >= parts).all()


@pytest.mark.parametrize("L", [1, 2, 3, 5])
def test_two_births_of_one_lap_leave_no_document_with_more(bags, L):
    X, topics = bags
    model = Model(
        Multinomial(0.1).resolve(Sample.of(X.astype(float))),
        HierarchicalDirichletProcess(2.0, 1.0),
        replace(BAGS, most_kept=L),
    )
    kind, source = model.kind, BagSource(sparse.csr_array(X.astype(float)))
    S = topics * X.sum() / 4.0
    parameters = model.parameters(model.start(S.sum(axis=1), S), FLOAT)
    batch = Batch(*source.read(source.batches(1)[0][0]))
    summary, kept = kind.local_step(
        model.likelihood, kind.prepare(model.likelihood, parameters, source), batch, True, True
    )
    assert (summary.counts > 0.0).sum(axis=0).max() == min(L, 4)
    own = np.random.default_rng(1).dirichlet(np.full(30, 0.3), 3) * X.sum() / 12.0
    children = model.parameters(model.start(own.sum(axis=1), own), FLOAT)
    prepared = kind.prepare(model.likelihood, children, source)
    born = [kind.track(model.likelihood, prepared, (k,), batch, kept, summary) for k in (0, 1)]
    after = summary.exchange((0, 1), born[0].exchange((), born[1]))
    assert after.N.sum() == pytest.approx(X.sum())
    assert ((after.counts > 0.0).sum(axis=0) <= L).all()
    handed = [np.flatnonzero(summary.counts[k] > 0.0) for k in (0, 1)]
    assert all((part.counts[:, some] > 0.0).any(axis=0).all() for part, some in zip(born, handed))
