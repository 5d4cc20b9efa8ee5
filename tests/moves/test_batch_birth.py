"""Births that single batches decide on (Thesis 4.2): their sums, when they are accepted, and what they find."""

import numpy as np
import pytest

from published_births import CORNERS, MODELS, fitted_with, model_of, rows
from stickbreak import HMM, Mixture, load
from stickbreak.data import ArraySource
from stickbreak.inference import Memoized, Options, PublishedSearch, Session, Threads
from stickbreak.inference.batch_births import BatchBirths
from stickbreak.inference.init import from_seeds
from stickbreak.inference.state import Problem
from stickbreak.inference.visit import visit
from stickbreak.likelihoods.features import features
from stickbreak.model import Memo, Summary
from stickbreak.model.local import responsibilities_of
from stickbreak.moves import BatchBirth, Schedule


def published(X, birth=None, **options):
    return fitted_with(BatchBirth(n_new=5) if birth is None else birth, X, **options)


def births(model):
    return [record for lap in model.history_ for record in lap.moves if record.kind == "birth"]


def dense(likelihood, X, R):
    """Counts, statistics and entropies of responsibilities R (N, K), by plain algebra."""
    with np.errstate(divide="ignore", invalid="ignore"):
        H = -np.nansum(R * np.log(R), axis=0)
    return R.sum(axis=0), R.T @ features(likelihood, X), H


@pytest.mark.parametrize("batch", [0, 2])
@pytest.mark.parametrize("target", [0, 1])
def test_the_total_after_a_birth_is_that_of_the_responsibilities_it_stands_for(batch, target):
    X = rows(centres=CORNERS / 10.0)  # that overlap
    model = model_of(X)
    rng = np.random.default_rng(0)
    source = ArraySource(X)
    with Threads(1) as threads:
        problem = Problem(source, threads, Options(3, accelerate=False))
        start = from_seeds(model, source, 2, True, rng)
        parameters = model.parameters(start, X.dtype)
        before = Memo(3)
        for b, chunks in enumerate(problem.batches):
            before.replace(b, visit(model, parameters, source, chunks, threads).summary)
        children = model.ordered(from_seeds(model, source, 3, True, rng))
        at_batch = BatchBirths(BatchBirth(), problem, Schedule(()), rng, set())
        memo = at_batch.handed_over(model, parameters, before, batch, target, children)
    R = np.concatenate([responsibilities_of(model.likelihood, parameters, X), np.zeros((len(X), 3))], axis=1)
    here = np.concatenate([np.arange(chunk.start, chunk.stop) for chunk in problem.batches[batch]])
    p = responsibilities_of(model.likelihood, model.shared(children, X.dtype), X[here])
    R[here, 2:] = R[here, target][:, None] * p
    R[here, target] = 0.0
    N, S, H = dense(model.likelihood, X, R)
    total = memo.total
    np.testing.assert_allclose(total.N, N, rtol=1e-9)
    np.testing.assert_allclose(total.S, S, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(total.H, H, rtol=1e-8, atol=1e-8)
    assert model.bound(total) == pytest.approx(model.bound(Summary(N, S, H, total.base)), rel=1e-12)
    assert before.total.K == 2  # the memo it began with is as it was
    for b, summary in enumerate(memo.batches):
        assert (summary.N[2:] > 0.0).all() if b == batch else not summary.N[2:].any()


@pytest.mark.parametrize("name", MODELS)
def test_the_bound_never_falls_and_clusters_are_found_from_one(name):
    X = rows()
    model = model_of(X, name)
    source = ArraySource(X)
    with Threads(1) as threads:
        session = Session(threads)
        options = Options(3, check=True)
        search = PublishedSearch(model, source, ("merge", "delete"), session, np.random.default_rng(0), options)
        search.run(from_seeds(model, source, 1, False, np.random.default_rng(1)))
    assert search.converged
    assert search.total.K == 3
    bounds = [lap.explored_bound for lap in session.history]
    assert (np.diff(bounds) >= -1e-9 * abs(bounds[0])).all()
    assert bounds[-1] == pytest.approx(model.bound(search.total), rel=1e-12)


def test_the_gain_of_a_birth_is_part_of_what_its_lap_gains():
    model = published(rows(), learn=False)
    first = next(i for i, record in enumerate(births(model)) if record.gains)
    lap = model.history_[first + 1]  # none is tried in the first lap
    assert lap.lower_bound - model.history_[first].lower_bound >= sum(births(model)[first].gains) > 0.0
    assert not any(record.kind == "birth" for record in model.history_[0].moves)


@pytest.mark.parametrize("seed", range(3))
def test_three_clusters_are_found_in_one_ascent(seed):
    model = published(rows(seed=seed), random_state=seed)
    assert model.n_clusters_ == 3
    assert model.converged_
    assert {(lap.ascent, lap.origin) for lap in model.history_} == {(1, "start")}
    np.testing.assert_allclose(model.means_[np.argsort(model.means_[:, 0])], CORNERS, atol=0.5)


def test_rows_of_one_cluster_stay_one_and_few_rows_are_not_targeted():
    one = np.random.default_rng(0).standard_normal((300, 2))
    assert published(one).n_clusters_ == 1
    assert sum(record.tried for record in births(published(one))) > 0
    few = published(rows(), BatchBirth(least_rows=200))  # a batch has 150
    assert few.n_clusters_ == 1
    assert not any(record.tried for record in births(few))


def test_threads_change_nothing():
    alone, together = (published(rows(), n_jobs=n) for n in (1, 3))
    assert alone.lower_bounds_ == together.lower_bounds_
    np.testing.assert_array_equal(alone.summary_.S, together.summary_.S)


def test_a_model_file_keeps_the_births(tmp_path):
    model = published(rows(), BatchBirth(n_new=4, least_rows=10))
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert tuple(again.moves) == (BatchBirth(n_new=4, least_rows=10), "merge", "delete")
    assert again.lower_bound_ == model.lower_bound_


@pytest.mark.parametrize(
    "values",
    [{"n_new": 1}, {"n_new": 2.0}, {"n_new": True}, {"least_rows": 0}, {"least_rows": "20"}, {"n_new": 2**31}],
)
def test_wrong_values_are_refused(values):
    with pytest.raises(ValueError, match=f"{next(iter(values))} must be"):
        BatchBirth(**values)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"moves": (BatchBirth(), "birth")}, "moves"),
        ({"moves": (BatchBirth(), BatchBirth(3))}, "moves"),
        ({"moves": (BatchBirth, "merge")}, "moves"),
        ({"moves": BatchBirth()}, "moves"),
        ({"moves": (BatchBirth(),), "algorithm": "stochastic"}, "algorithm"),
        ({"moves": (BatchBirth(),), "algorithm": "sequential"}, "algorithm"),
    ],
)
def test_moves_that_do_not_fit_are_refused(given, named):
    with pytest.raises(ValueError, match=f"{named} must be"):
        Mixture("gaussian", **given).fit(rows())


def test_only_mixtures_take_them():
    with pytest.raises(ValueError, match="moves must be"):
        HMM("gaussian", moves=(BatchBirth(),)).fit(rows())


def test_laps_are_not_extrapolated_whatever_the_algorithm_says():
    plain, fast = (published(rows(), algorithm=Memoized(accelerate=a)) for a in (False, True))
    assert plain.lower_bounds_ == fast.lower_bounds_
