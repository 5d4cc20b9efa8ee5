"""Samples of the rows of clusters, to which births are fitted."""

import numpy as np
import pytest
from scipy import sparse

from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource
from stickbreak.inference import Threads
from stickbreak.inference.visit import visit
from stickbreak.likelihoods import DiagonalGaussian, Sample
from stickbreak.likelihoods.features import features
from stickbreak.model import Drawn, Model, Summary
from stickbreak.moves.sample import Poor, by_cluster, plan_draw, poor_targets, targets


def problem(n=6000, n_batches=1, weights=None, seed=0):
    """A model of two clusters, its summary, a source, and rows drawn in one visit."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    X = rng.normal(20.0 * labels[:, None], 1.0, (n, 2))
    model = Model(DiagonalGaussian().resolve(Sample.of(X)), DirichletProcess(1.0))
    w = np.ones(n) if weights is None else weights
    T = features(model.likelihood, X) * w[:, None]
    members = np.eye(2)[labels]
    total = Summary(members.T @ w, members.T @ T, np.zeros(2), np.zeros(()))
    source = ArraySource(X, weights)
    draw = plan_draw(model, source, total.N, [7, 3], np.random.default_rng(1))
    drawn = []
    with Threads(1) as threads:
        for batch in source.batches(n_batches):
            drawn += visit(model, model.parameters(total, X.dtype), source, batch, threads, draw=draw).drawn
    return model, total, source, drawn


def test_a_cluster_smaller_than_a_sample_is_drawn_whole():
    model, total, source, drawn = problem(n=2000)
    X, weights = model.kind.sample(source, drawn, 7, float(total.N[0]))
    np.testing.assert_array_equal(np.sort(X, axis=0), np.sort(source.X[::2], axis=0))
    np.testing.assert_allclose(weights, 1.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sample_stands_for_the_mass_of_its_cluster(weighted):
    n = 40_000
    weights = np.random.default_rng(2).choice([0.5, 4.0], n) if weighted else None
    model, total, source, drawn = problem(n, weights=weights)
    X, w = model.kind.sample(source, drawn, 3, float(total.N[1]))
    assert w.sum() == pytest.approx(total.N[1])
    assert 2000 < len(X) < 4000
    assert (X.mean(axis=0) > 15.0).all()
    assert w @ X[:, 0] / w.sum() == pytest.approx(20.0, abs=0.1)


def test_batches_make_no_difference():
    """What is drawn depends on the number of the row alone."""
    samples = []
    for n_batches in (1, 4):
        model, total, source, drawn = problem(20_000, n_batches)
        samples.append(model.kind.sample(source, drawn, 7, float(total.N[0])))
    np.testing.assert_array_equal(samples[0][0], samples[1][0])
    np.testing.assert_array_equal(samples[0][1], samples[1][1])


def test_targets_are_the_clusters_with_children():
    model, total, source, drawn = problem()
    rng = np.random.default_rng(0)
    found = targets(model, total, [7, 3], source, drawn, lambda k: 4 if k == 1 else 1, rng)
    assert [target.cluster for target in found] == [1]
    assert found[0].weights.sum() == pytest.approx(total.N[1])
    assert targets(model, total, [7, 99], source, drawn, lambda k: 4 if k == 1 else 1, rng) == []  # nothing drawn


def test_rows_explained_worst_are_all_there_with_weights_of_their_own():
    model, total, source, drawn = problem(40_000)
    odd = np.arange(0, 600, 2)
    poor = Poor(np.zeros(len(odd), np.intp), odd, np.ones(len(odd)), np.linspace(-9.0, -5.0, len(odd)))
    found = poor_targets(model, total, [7, 3], source, drawn, poor, np.random.default_rng(0))
    assert [target.cluster for target in found] == [0]
    X, weights = found[0].X, found[0].weights
    n = len(odd)
    np.testing.assert_array_equal(np.sort(X[:n, 0]), np.sort(source.X[odd, 0]))
    np.testing.assert_array_equal(weights[:n], 1.0)
    assert weights.sum() == pytest.approx(total.N[0])
    assert (weights[n:] > 1.0).all()  # each of the others stands for several


@pytest.mark.parametrize("parts", ["none", "rows", "counts"])
def test_what_was_drawn_is_sorted_by_cluster_in_the_order_of_the_chunks(parts):
    rng = np.random.default_rng(0)
    drawn = []
    for first, n in ((0, 30), (30, 0), (40, 20)):
        own = {
            "none": None,
            "rows": rng.random((n, 2)),
            "counts": sparse.random_array((n, 3), density=0.5, format="csr"),
        }
        drawn.append(Drawn(rng.integers(5, 9, n), first + np.arange(n), rng.random(n), own[parts]))
    found = by_cluster(drawn)
    assert sorted(found) == [5, 6, 7, 8]
    for cluster, mine in found.items():
        np.testing.assert_array_equal(mine.owners, cluster)
        np.testing.assert_array_equal(mine.rows, np.concatenate([part.rows[part.owners == cluster] for part in drawn]))
        np.testing.assert_array_equal(
            mine.chosen, np.concatenate([part.chosen[part.owners == cluster] for part in drawn])
        )
        if parts == "rows":
            want = np.concatenate([part.parts[part.owners == cluster] for part in drawn])
            np.testing.assert_array_equal(mine.parts, want)
        if parts == "counts":
            want = sparse.vstack([part.parts[part.owners == cluster] for part in drawn]).toarray()
            np.testing.assert_array_equal(mine.parts.toarray(), want)
    assert by_cluster([]) == {}
