"""Classes of rows from labels near them: the harmonic function of a graph, and Bayes' rule where labels may be wrong."""

import numpy as np
import pytest

from stickbreak.inference.class_graph import NEIGHBOURS, propagated
from stickbreak.likelihoods import DiagonalGaussian, Labelled, Sample


def labelled(X, codes, n_classes=2, error=0.0):
    """The likelihood of rows with labels 1, ..., C or 0, and the rows."""
    likelihood = Labelled(DiagonalGaussian().resolve(Sample.of(X)), X.shape[1], n_classes, error)
    return likelihood, np.column_stack([X, codes])


def neighbours(likelihood, rows):
    """Which rows are among the nearest of each other, by brute force, (N, N)."""
    apart = likelihood.divergence(rows, rows)
    np.fill_diagonal(apart, np.inf)
    near = np.argsort(apart, axis=1)[:, :NEIGHBOURS]
    one_way = np.zeros(apart.shape)
    np.put_along_axis(one_way, near, 1.0, axis=1)
    return one_way + one_way.T


def test_facts_are_the_boundary_of_a_harmonic_function():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    codes = np.where(rng.random(60) < 0.2, rng.integers(1, 4, size=60), 0)
    likelihood, rows = labelled(X, codes, 3)
    W = neighbours(likelihood, rows)
    known = codes > 0
    Y = np.eye(3)[codes[known] - 1]
    laplacian = np.diag(W.sum(axis=1)) - W
    want = np.linalg.solve(laplacian[np.ix_(~known, ~known)], W[np.ix_(~known, known)] @ Y)
    q = propagated(likelihood, rows, np.full((60, 3), 1.0 / 3.0))
    np.testing.assert_allclose(q[known], Y)
    np.testing.assert_allclose(q[~known], want, atol=1e-4)


def test_classes_go_along_chains_past_nearer_labels():
    """The far end of each chain is nearer to the label of the other chain than to its own."""
    x = np.arange(80.0)
    X = np.column_stack([np.tile(x, 2), np.repeat([0.0, 30.0], 80)])
    codes = np.zeros(160)
    codes[0] = 1  # the beginning of the lower chain
    codes[-1] = 2  # the end of the upper
    likelihood, rows = labelled(X, codes)
    q = propagated(likelihood, rows, np.full((160, 2), 0.5))
    np.testing.assert_array_equal(q.argmax(axis=1), np.repeat([0, 1], 80))


@pytest.mark.parametrize(("error", "outvoted"), [(0.0, False), (0.1, True)])
def test_a_label_that_may_be_wrong_is_outvoted_by_those_around_it(error, outvoted):
    X = np.random.default_rng(0).normal(size=(41, 2))
    codes = np.full(41, 1)
    odd = np.square(X).sum(axis=1).argmin()
    codes[odd] = 2
    likelihood, rows = labelled(X, codes, error=error)
    q = propagated(likelihood, rows, np.full((41, 2), 0.5))
    assert (q[odd].argmax() == 0) == outvoted
    assert (q[codes == 1, 0] > 0.9).all()


def test_rows_that_no_label_is_tied_to_keep_what_clusters_say():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(30, 2)), rng.normal(100.0, 1.0, size=(30, 2))])
    codes = np.zeros(60)
    codes[0] = 1
    likelihood, rows = labelled(X, codes)
    chances = np.repeat([[0.5, 0.5], [0.2, 0.8]], 30, axis=0)
    q = propagated(likelihood, rows, chances)
    np.testing.assert_allclose(q[30:], chances[30:])
    np.testing.assert_allclose(q.sum(axis=1), 1.0)
    assert (q[:30, 0] > 0.99).all()


def test_two_rows_are_enough():
    likelihood, rows = labelled(np.array([[0.0], [1.0]]), np.array([2, 0]))
    np.testing.assert_allclose(propagated(likelihood, rows, np.full((2, 2), 0.5)), [[0.0, 1.0], [0.0, 1.0]], atol=1e-6)


def test_a_single_row_has_no_neighbours():
    likelihood, rows = labelled(np.zeros((1, 2)), np.array([2]))
    np.testing.assert_array_equal(propagated(likelihood, rows, np.full((1, 2), 0.5)), [[0.0, 1.0]])
