"""Pieces into which the clusters of two models cut each other, and searches that begin again from them."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from stickbreak import Mixture
from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource
from stickbreak.inference import LearningSearch, Options, Session, Threads, learning_search
from stickbreak.inference.crossing import crossed
from stickbreak.inference.init import from_responsibilities, one_cluster
from stickbreak.inference.learning_search import TUNING
from stickbreak.inference.row_search import RowSearch
from stickbreak.inference.state import Floor, Problem
from stickbreak.inference.trace import ascents
from stickbreak.likelihoods import Gaussian, Sample
from stickbreak.model import Model
from stickbreak.model.learning import OF_LIKELIHOOD
from stickbreak.model.local import responsibilities_of

MOVES = ("birth", "merge", "delete")


@pytest.fixture(scope="module")
def X():
    """Four clusters in a square."""
    rng = np.random.default_rng(0)
    centers = np.array([[-8, -8], [-8, 8], [8, -8], [8, 8]], float)
    return rng.permutation(np.repeat(centers, (10, 20, 30, 40), axis=0) + rng.standard_normal((100, 2)))


def assignment(X, model, labels, executor):
    """Responsibilities under the clusters that rows with these labels imply."""
    R = np.eye(int(labels.max()) + 1)[labels]
    start = from_responsibilities(model, ArraySource(X), lambda chunk, rows: R[chunk.start : chunk.stop], executor)
    return partial(responsibilities_of, model.likelihood, model.parameters(start, X.dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("most", [1, 3, 4, 100])
def test_pieces_are_what_clusters_share(X, most, dtype):
    rows = X.astype(dtype)
    model = Model(Gaussian().resolve(Sample.of(rows)), DirichletProcess(1.0))
    with Threads(2) as threads:
        one = assignment(rows, model, (rows[:, 0] > 0).astype(int), threads)
        other = assignment(rows, model, (rows[:, 1] > 0).astype(int), threads)
        pieces = crossed(model, one, other, ArraySource(rows), threads, most)
    R, Q = (each(rows).astype(float) for each in (one, other))
    counts = np.sort((R[:, :, None] * Q[:, None, :]).sum(axis=0).ravel())[::-1]
    np.testing.assert_allclose(np.sort(pieces.N)[::-1], counts[:most], rtol=1e-5)
    if most >= 4:
        np.testing.assert_allclose(np.sort(pieces.N), [10, 20, 30, 40], rtol=1e-3)
        np.testing.assert_allclose(pieces.N.sum(), len(rows), rtol=1e-5)


def test_the_same_clusters_cut_nothing(X):
    model = Model(Gaussian().resolve(Sample.of(X)), DirichletProcess(1.0))
    with Threads(1) as threads:
        same = assignment(X, model, (X[:, 0] > 0).astype(int), threads)
        assert crossed(model, same, same, ArraySource(X), threads, 100).K == 2


def searched(X, restarts, max_laps=1000):
    model = Model(Gaussian().resolve(Sample.of(X)), DirichletProcess(1.0))
    learn = tuple(OF_LIKELIHOOD + name for name in Gaussian().not_given())
    with Threads(1) as threads:
        search = LearningSearch(
            model,
            ArraySource(X),
            MOVES,
            Session(threads),
            np.random.default_rng(0),
            Options(check=True, learn=learn, max_laps=max_laps),
            restarts=restarts,
        )
        search.run(one_cluster(model))
    return search


@pytest.fixture(scope="module")
def overlapping():
    return load_diabetes().data


@pytest.fixture(scope="module")
def alone(overlapping):
    return searched(overlapping, restarts=False)


@pytest.mark.long
def test_crossings_find_what_rounds_do_not(overlapping, alone):
    crossing = searched(overlapping, restarts=True)
    assert crossing.outcome.bound > alone.outcome.bound + 1.0
    assert crossing.converged
    assert {"seeds", "crossing"} <= {lap.origin for lap in crossing.history}
    assert not {"seeds", "crossing"} & {lap.origin for lap in alone.history}


def test_they_keep_to_the_laps_there_may_be(overlapping, alone):
    short = searched(overlapping, restarts=True, max_laps=len(alone.history) + 5)
    assert len(short.history) <= len(alone.history) + 5
    assert "seeds" in {lap.origin for lap in short.history}


def test_ascents_that_agree_end_them(X):
    """Clusters that are far apart are the same from everywhere."""
    found = searched(X, restarts=True)
    assert found.total.K == 4
    origins = [ascent.last.origin for ascent in ascents(found.history)]
    assert origins.count("seeds") == TUNING.agree
    assert "crossing" not in origins


@pytest.mark.parametrize("again", [1, 3])
def test_what_has_failed_is_tried_again_until_it_has_gained_nothing_so_often(X, monkeypatch, again):
    rounds = []
    improve = RowSearch._improve

    def counted(self):
        rounds.append(self.outcome.bound)
        improve(self)

    monkeypatch.setattr(learning_search, "TUNING", replace(TUNING, again=again))
    monkeypatch.setattr(LearningSearch, "_cross", lambda self: True)
    monkeypatch.setattr(RowSearch, "_improve", counted)
    searched(X, restarts=True)
    assert len(rounds) == 1 + again


def test_what_an_ascent_must_gain_is_asked_of_the_history_too():
    floor = Floor(-10.0, 3, least=0.1)
    with Threads(1) as threads:
        problem = Problem(ArraySource(np.zeros((3, 1))), threads, Options(), floor=floor)
    assert problem.reported(-9.95, 3) == floor
    assert problem.reported(-9.85, 3).bound == -9.85


@pytest.mark.parametrize("changed", [{"init": "k-means++"}, {"moves": ("birth", "delete")}, {"moves": ()}], ids=str)
def test_a_given_start_and_fewer_moves_cross_nothing(overlapping, changed):
    fit = Mixture("gaussian", random_state=0, n_jobs=1, **changed).fit(overlapping)
    assert "crossing" not in {lap.origin for lap in fit.history_}
