"""The classes of clusters without labels: by rows that clusters share, which are known by integration."""

import numpy as np
import pytest
from scipy import stats

from stickbreak.allocations import DirichletProcess
from stickbreak.likelihoods import DiagonalGaussian, Gaussian, Labelled, LinearRegression, Sample
from stickbreak.likelihoods.features import features
from stickbreak.model import Model
from stickbreak.model.cluster_classes import cluster_classes, shared_rows


def model_of(centers, labels, family=DiagonalGaussian, n=4000, widths=None):
    """A model with clusters of n rows at centers on a line, and its summary; labels are -1 for none."""
    rng = np.random.default_rng(0)
    widths = np.ones(len(centers)) if widths is None else np.asarray(widths)
    X = rng.normal(np.repeat(centers, n), np.repeat(widths, n))[:, None]
    likelihood = Labelled(family().resolve(Sample.of(X)), 1, 2)
    codes = np.zeros(len(X))
    codes[::n] = np.asarray(labels) + 1  # one row of each
    T = np.asarray(features(likelihood, np.column_stack([X, codes])))
    S = T.reshape(len(centers), n, -1).sum(axis=1)
    model = Model(likelihood, DirichletProcess(1.0))
    return model, model.start(np.full(len(centers), float(n)), S)


def test_rows_that_clusters_share_are_those_of_integration():
    """With the densities of the clusters at their mean parameters."""
    centers = np.array([0.0, 2.0, 5.0])
    model, summary = model_of(centers, [0, -1, 1])
    x = np.linspace(-8.0, 13.0, 20_001)
    density = stats.norm.pdf(x[:, None], centers, 1.0)
    R = density / density.sum(axis=1, keepdims=True)
    want = 4000.0 * np.trapezoid(R[:, :, None] * R[:, None] * density.sum(axis=1)[:, None, None], x, axis=0)
    np.fill_diagonal(want, 0.0)
    found = shared_rows(model.likelihood, summary)
    np.testing.assert_allclose(found, want, rtol=0.3, atol=4.0)
    np.testing.assert_allclose(found, found.T)
    np.testing.assert_array_equal(shared_rows(model.likelihood, summary), found)  # the same rows each time
    q = cluster_classes(model, summary)
    of_first = found[1, 0] / (found[1, 0] + found[1, 2])
    np.testing.assert_allclose(q, [[1.0, 0.0], [of_first, 1.0 - of_first], [0.0, 1.0]], atol=1e-9)


@pytest.mark.parametrize("widths", [None, [1.0, 1.0, 1.0, 1.0, 8.0]])
def test_classes_are_handed_on_from_cluster_to_cluster(widths):
    """The third is nearer to the wide cluster on the right by its density, but tied to the first by a chain of others."""
    model, summary = model_of([0.0, 3.0, 6.0, 9.0, 28.0], [0, -1, -1, -1, 1], widths=widths)
    q = cluster_classes(model, summary)
    np.testing.assert_allclose(q.sum(axis=1), 1.0)
    assert (q[:4, 0] > 0.5).all()
    assert q[4].tolist() == [0.0, 1.0]


def test_clusters_that_nothing_ties_take_after_the_nearest():
    model, summary = model_of([0.0, 300.0, 303.0, 700.0], [0, -1, -1, 1])
    q = cluster_classes(model, summary)
    assert (q[1:3, 0] > 0.9).all()


def test_all_or_no_clusters_have_a_class():
    model, summary = model_of([0.0, 5.0], [0, 1])
    np.testing.assert_array_equal(cluster_classes(model, summary), np.eye(2))
    model, summary = model_of([0.0, 5.0], [-1, -1])
    np.testing.assert_array_equal(cluster_classes(model, summary), np.full((2, 2), 0.5))


def test_families_that_describe_some_columns_draw_no_rows():
    X = np.random.default_rng(0).normal(size=(50, 2))
    family = LinearRegression().resolve(Sample.of(X))
    likelihood = Labelled(family, 2, 2)
    T = np.asarray(features(likelihood, np.column_stack([X, np.zeros(50)])))
    model = Model(likelihood, DirichletProcess(1.0))
    summary = model.start(np.array([25.0, 25.0]), np.stack([T[:25].sum(axis=0), T[25:].sum(axis=0)]))
    assert not shared_rows(likelihood, summary).any()
    assert Gaussian().describes(2).all()
