"""Responsibilities for at most L clusters a row (Thesis 7.1): the best of their kind, exact, and monotone with all moves."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.special import softmax

import stickbreak
from stickbreak import Mixture
from stickbreak.data import ArraySource
from stickbreak.inference import Options, RowSearch, Session, Threads
from stickbreak.inference.init import one_cluster
from stickbreak.model import Batch, RowKind, local_step

FLOAT = np.dtype(float)
FAMILIES = ("gaussian-given", "student_t-given", "categorical-many_levels", "product-missing")


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, known_families):
    return known_families[request.param]


def model_of(family, L, X):
    D = X.shape[1]
    likelihood = family.likelihood(X)
    return stickbreak.model.Model(likelihood, stickbreak.allocations.DirichletProcess(1.0), RowKind(L)), D


@pytest.mark.parametrize("L", [1, 2, 3])
def test_the_kept_are_the_best_of_their_kind(problem, naive, L):
    p = problem(3, n=12, K=4)
    parameters = p.model.parameters(p.summary, FLOAT)
    _, kept = local_step(p.model.likelihood, parameters, p.X, p.weights, most_kept=L)
    R = naive.dense(kept, 4)
    assert ((R > 0.0).sum(axis=1) <= L).all()
    scores = naive.scores(p.model, parameters, p.X)
    value = (np.where(R > 0.0, scores, 0.0) * R - np.where(R > 0.0, R * np.log(np.maximum(R, 1e-300)), 0.0)).sum(axis=1)
    best = np.full(len(p.X), -np.inf)
    for chosen in combinations(range(4), L):  # Thesis Eq. 7.4, for every set of L clusters
        r = softmax(scores[:, chosen], axis=1)
        best = np.maximum(best, (r * scores[:, chosen] - r * np.log(r)).sum(axis=1))
    np.testing.assert_allclose(value, best, rtol=1e-9, atol=1e-9)


def test_no_limit_and_one_that_is_never_reached_are_the_same(problem, naive):
    p = problem(4, K=3)
    parameters = p.model.parameters(p.summary, FLOAT)
    naive.assert_same(
        local_step(p.model.likelihood, parameters, p.X, p.weights, most_kept=3)[0],
        local_step(p.model.likelihood, parameters, p.X, p.weights)[0],
    )


@pytest.mark.parametrize("L", [1, 2])
def test_a_birth_leaves_no_row_with_more(problem, naive, L):
    p = problem(5, n=40, K=4)
    kind = RowKind(L)
    parameters = p.model.parameters(p.summary, FLOAT)
    batch = Batch(p.X, p.weights)
    summary, kept = kind.local_step(p.model.likelihood, parameters, batch, True, True)
    children = p.model.parameters(p.summary.take(np.array([0, 1, 2])), FLOAT)
    added = kind.track(p.model.likelihood, children, (1,), batch, kept, summary)
    R = naive.dense(kept, 4)
    shares = softmax(naive.scores(p.model, children, p.X), axis=1)
    room = L - (np.delete(R, 1, axis=1) > 0.0).sum(axis=1)
    ranks = np.argsort(np.argsort(-shares, axis=1), axis=1)
    shares = np.where(ranks < np.maximum(room, 1)[:, None], shares, 0.0)
    handed = R[:, [1]] * shares / shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(added.N, p.weights @ handed, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("L", [1, 2])
def test_the_bound_never_falls_whatever_moves_do(family, L):
    X = family.rows(np.random.default_rng(0), 150, 6 if family.name == "categorical" else 2)
    model, _ = model_of(family, L, X)
    with Threads(1) as threads:
        options = Options(n_batches=3, check=True, max_laps=60)
        moves = ("birth", "merge", "delete")
        search = RowSearch(model, ArraySource(X), moves, Session(threads), np.random.default_rng(0), options)
        search.run(one_cluster(model))
    unlimited = replace(model, kind=RowKind())
    posterior = search.model.posterior(search.total)
    freed, _ = unlimited.kind.local_step(
        search.model.likelihood, posterior.parameters(FLOAT), Batch(X, np.ones(len(X))), True, False
    )
    if model.likelihood.hidden is None:
        assert search.model.posterior(freed).bound >= posterior.bound - 1e-9 * abs(posterior.bound)
    if L == 1:
        np.testing.assert_allclose(search.total.N, np.round(search.total.N), atol=1e-9)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(center, 1.0, (80, 2)) for center in (-7.0, 0.0, 4.0)])


def test_hard_assignments_have_no_entropy_and_a_lower_bound(rows, tmp_path):
    soft = Mixture("gaussian", random_state=0, n_jobs=1).fit(rows)
    hard = Mixture("gaussian", random_state=0, n_jobs=1, most_kept=1).fit(rows)
    assert hard.n_clusters_ == soft.n_clusters_ == 3
    assert np.abs(hard.summary_.H).sum() == 0.0
    assert hard.lower_bound_ < soft.lower_bound_
    np.testing.assert_allclose(hard.predict_proba(rows).sum(axis=1), 1.0)
    hard.save(tmp_path / "hard.safetensors")
    again = stickbreak.load(tmp_path / "hard.safetensors")
    assert again.model_.kind.most_kept == 1
    assert again.partial_fit(rows[:10]).summary_.H.sum() == 0.0


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "two", True])
def test_a_limit_must_be_a_count(rows, wrong):
    with pytest.raises((ValueError, TypeError), match="most_kept"):
        Mixture(most_kept=wrong).fit(rows)
