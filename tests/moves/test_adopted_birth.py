"""Births that all rows adopt (2013): their sums, what is collected and created, and what fits find."""

import numpy as np
import pytest

from published_births import CORNERS, MODELS, fitted_with, model_of, rows
from stickbreak import HMM, Mixture, load
from stickbreak.data import ArraySource
from stickbreak.inference import AdoptedSearch, Options, Session, Threads
from stickbreak.inference.adopted_births import adopted
from stickbreak.inference.init import from_seeds
from stickbreak.inference.state import Problem
from stickbreak.inference.visit import visit
from stickbreak.model import Memo
from stickbreak.model.local import responsibilities_of
from stickbreak.moves import AdoptedBirth, BatchBirth


def fitted(X, birth=None, **options):
    return fitted_with(AdoptedBirth(n_new=6) if birth is None else birth, X, **options)


def test_the_total_after_an_adoption_is_that_of_the_responsibilities(naive):
    """Batch after batch, at parameters of the total with S', by matrix products of dense responsibilities."""
    X = rows(centres=CORNERS / 8.0)  # that overlap
    model, source = model_of(X), ArraySource(X)
    with Threads(1) as threads:
        problem = Problem(source, threads, Options(3))
        start = from_seeds(model, source, 2, True, np.random.default_rng(0))
        memo = Memo(3)
        for b, chunks in enumerate(problem.batches):
            parameters = model.parameters(start, X.dtype)
            memo.replace(b, visit(model, parameters, source, chunks, threads).summary)
        before = memo.total
        born = from_seeds(model, ArraySource(X[:60]), 3, True, np.random.default_rng(1))
        found = adopted(model, memo, born, problem, np.random.default_rng(2))
    here = [np.concatenate([np.arange(c.start, c.stop) for c in chunks]) for chunks in problem.batches]
    R = np.zeros((len(X), 5))
    R[:, :2] = responsibilities_of(model.likelihood, model.parameters(start, X.dtype), X)
    for b in np.random.default_rng(2).permutation(3):
        whole = naive.summarise(model.likelihood, X, R)
        whole.N[2:] += born.N
        whole.S[2:] += born.S
        R[here[b]] = responsibilities_of(model.likelihood, model.parameters(whole, X.dtype), X[here[b]])
    expected = model.ordered(naive.summarise(model.likelihood, X, R))
    naive.assert_same(found, expected, rtol=1e-8)
    assert found.N.sum() == pytest.approx(len(X), rel=1e-12)  # no row counts twice
    assert memo.total is before
    assert before.K == 2


def test_rows_of_the_target_are_collected_and_small_clusters_are_not_kept():
    X = rows()
    model, source = model_of(X), ArraySource(X)
    with Threads(1) as threads:
        birth = AdoptedBirth(n_new=6, n_rows=40)
        search = AdoptedSearch(model, source, (), Session(threads), np.random.default_rng(0), Options(3), birth=birth)
        search.best = search._laps(model, (), search.options)
        search.best.run(from_seeds(model, source, 2, True, np.random.default_rng(1)))
        best = search.best
        R = responsibilities_of(model.likelihood, best.posterior.parameters(X.dtype), X)
        larger = int(best.total.N.argmax())
        collected = search._collected(best, larger)
        created = search._created(model, np.flatnonzero(R[:, larger] > 0.1))
        assert search._created(model, np.arange(1)) is None
    assert len(set(collected)) == len(collected)
    assert 20 <= len(collected) <= 60
    assert (R[collected, larger] > 0.1).all()
    assert created.K >= 2
    assert created.N.min() >= 0.05 * created.N.sum()


@pytest.mark.parametrize("name", MODELS)
def test_the_bound_never_falls_and_clusters_are_found_from_one(name):
    X = rows()
    model, source = model_of(X, name), ArraySource(X)
    with Threads(1) as threads:
        session = Session(threads)
        rng, options = np.random.default_rng(0), Options(3, check=True)
        search = AdoptedSearch(model, source, ("merge", "delete"), session, rng, options, birth=AdoptedBirth(6))
        search.run(from_seeds(model, source, 1, False, np.random.default_rng(1)))
    assert search.converged
    assert search.total.K == 3
    bounds = [lap.lower_bound for lap in session.history]
    assert (np.diff(bounds) >= -1e-9 * abs(bounds[0])).all()
    assert bounds[-1] == pytest.approx(model.bound(search.total), rel=1e-12)


def test_a_cluster_that_should_split_does_and_no_other():
    centres = np.array([[0.0, 0.0], [0.0, 6.0], [40.0, 0.0]])
    X = rows(300, 3, centres)
    start = (X[:, 0] > 20.0).astype(int)  # the first two as one
    found = fitted(X, init=start)
    assert found.n_clusters_ == 3
    births = [lap for lap in found.history_ if lap.origin == "adopted birth"]
    assert births[-1].explored_bound <= found.lower_bound_ + 1e-6
    assert fitted(np.random.default_rng(0).standard_normal((200, 2))).n_clusters_ == 1


def test_more_clusters_are_found_than_by_single_batches():
    X = rows(600, 4, 9.0 * np.random.default_rng(4).standard_normal((12, 2)))
    assert fitted(X).lower_bound_ > fitted(X, BatchBirth(n_new=6)).lower_bound_ + 10.0


def test_threads_change_nothing():
    alone, together = (fitted(rows(), n_jobs=n) for n in (1, 3))
    assert alone.lower_bounds_ == together.lower_bounds_
    np.testing.assert_array_equal(alone.summary_.S, together.summary_.S)


def test_a_model_file_keeps_the_births(tmp_path):
    birth = AdoptedBirth(n_new=4, n_rows=50, n_laps=7)
    model = fitted(rows(120), birth)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert tuple(again.moves) == (birth, "merge", "delete")
    assert again.lower_bound_ == model.lower_bound_


@pytest.mark.parametrize(
    "values", [{"n_new": 1}, {"n_new": 2.0}, {"n_rows": 1}, {"n_rows": "20"}, {"n_laps": 0}, {"n_laps": True}]
)
def test_wrong_values_are_refused(values):
    with pytest.raises(ValueError, match=f"{next(iter(values))} must be"):
        AdoptedBirth(**values)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"moves": (AdoptedBirth(), "birth")}, "moves"),
        ({"moves": (AdoptedBirth(), BatchBirth())}, "moves"),
        ({"moves": (AdoptedBirth, "merge")}, "moves"),
        ({"moves": (AdoptedBirth(),), "algorithm": "stochastic"}, "algorithm"),
    ],
)
def test_moves_that_do_not_fit_are_refused(given, named):
    with pytest.raises(ValueError, match=f"{named} must be"):
        Mixture("gaussian", **given).fit(rows(30))


def test_only_mixtures_take_them():
    with pytest.raises(ValueError, match="moves must be"):
        HMM("gaussian", moves=(AdoptedBirth(),)).fit(rows(30))
