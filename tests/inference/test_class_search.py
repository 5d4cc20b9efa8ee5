"""Births inside the classes: an excursion that labels guide and that the bound of all rows judges."""

import numpy as np
import pytest

from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource
from stickbreak.data.labelled_rows import with_classes
from stickbreak.inference import ClassSearch, Options, Session, Threads
from stickbreak.likelihoods import Gaussian, Labelled, Sample
from stickbreak.likelihoods.features import features
from stickbreak.model import Model
from stickbreak.model.seeding import hard_summary


def problem(share=0.1, n=60):
    """Two classes of two clusters each, in a row as a, b, a, b; and a start with one cluster for each class."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(4), n)
    X = np.column_stack([8.0 * cluster, np.zeros(4 * n)]) + rng.normal(size=(4 * n, 2))
    codes = np.where(rng.random(4 * n) < share, cluster % 2 + 1, 0)
    model = Model(Labelled(Gaussian().resolve(Sample.of(X)), 2, 2), DirichletProcess(1.0))
    source = with_classes(ArraySource(X), codes)
    rows, weights = source.take(np.arange(4 * n))
    start = hard_summary(np.asarray(features(model.likelihood, rows)), weights, cluster % 2)
    return model, source, start


@pytest.mark.parametrize("moves", [("birth", "merge", "delete"), ("merge",)])
def test_clusters_inside_the_classes_are_found_and_kept_where_the_bound_is_higher(moves):
    model, source, start = problem()
    with Threads(1) as threads:
        search = ClassSearch(model, source, moves, Session(threads), np.random.default_rng(0), Options(max_laps=200))
        search.best = search._laps(model, (), Options(max_laps=3))
        search.best.run(model.ordered(model.start(start.N, start.S)))
        before = search.best.bound
        assert search.total.K == 2
        classes = search._row_classes(search.found, search.total)
        assert (classes[source.codes > 0] == source.codes[source.codes > 0] - 1).all()
        kept = search._search_inside_classes()
        again = search._search_inside_classes()
    assert kept == ("birth" in moves)
    assert not again
    if not kept:
        assert search.best.bound == before
        return
    assert search.total.K == 4
    assert search.outcome.bound > before + 50.0
    np.testing.assert_allclose(np.sort(search.total.N), 60.0, atol=1.0)
    labels = search.found.likelihood.label_counts(search.total.S)
    assert (labels.min(axis=1) == 0.0).all()
    assert labels.sum() == pytest.approx((source.codes > 0).sum())
    bounds = [lap.lower_bound for lap in search.history]
    assert (np.diff(bounds) >= -1e-9 * abs(bounds[-1])).all()


def test_one_class_is_not_searched_by_itself():
    model, source, start = problem()
    source = with_classes(ArraySource(source.X), np.minimum(source.codes, 1))
    with Threads(1) as threads:
        moves = "birth", "merge", "delete"
        search = ClassSearch(model, source, moves, Session(threads), np.random.default_rng(0), Options(max_laps=200))
        search.best = search._laps(model, (), Options(max_laps=2))
        search.best.run(model.start(start.N[:1], start.S[:1]))
        assert not search._search_inside_classes()


def test_a_crossing_has_what_either_of_two_ascents_found():
    """Each has two of the four clusters as one: one of the pairs in the one, the other in the other."""
    model, source, _ = problem(share=0.0)
    rows, weights = source.take(np.arange(240))
    T = np.asarray(features(model.likelihood, rows))
    with Threads(1) as threads:
        moves = "merge", "delete"
        search = ClassSearch(model, source, moves, Session(threads), np.random.default_rng(0), Options(max_laps=200))
        found = []
        for clusters in ([0, 1, 2, 2], [0, 0, 1, 2]):
            start = hard_summary(T, weights, np.repeat(clusters, 60))
            search.best = search._laps(model, (), Options(max_laps=3))
            search.best.run(model.start(start.N, start.S))
            found.append(search.best)
        search._cross_with(found[1], found[0], search.options, 4)
    assert [ascent.total.K for ascent in found] == [3, 3]
    assert search.total.K == 4
    assert search.best.bound > max(ascent.bound for ascent in found) + 20.0
    np.testing.assert_allclose(np.sort(search.total.N), 60.0, atol=1.0)


def test_labels_of_near_rows_give_classes_where_clusters_hold_two():
    """One cluster of all rows says nothing of classes; labels of rows near each other do."""
    model, source, _ = problem(share=0.2)
    rows, weights = source.take(np.arange(240))
    one = hard_summary(np.asarray(features(model.likelihood, rows)), weights, np.zeros(240, np.intp))
    with Threads(1) as threads:
        moves = "birth", "merge", "delete"
        search = ClassSearch(model, source, moves, Session(threads), np.random.default_rng(0), Options(max_laps=200))
        classes = search._row_classes(model, model.start(one.N, one.S))
    assert (classes == np.repeat([0, 1, 0, 1], 60)).mean() > 0.97
