"""Fits of children to samples: what they find, and when they are given up."""

from dataclasses import replace

import numpy as np
import pytest

from stickbreak.allocations import DirichletProcess
from stickbreak.likelihoods import Gaussian, Sample
from stickbreak.model import Model
from stickbreak.model.sampled import Sampled
from stickbreak.model.seeding import hard_summary
from stickbreak.moves.birth import Start, Target, fit_children


def mixture(sizes, D=4, apart=8.0, seed=0):
    """Rows of Gaussians on a line, their labels, and a model of them."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.standard_normal((len(labels), D))
    X[:, 0] += apart * labels
    return X, labels, Model(Gaussian().resolve(Sample.of(X)), DirichletProcess(1.0))


def target(model, X, *starts, seed=0, least=0.0):
    weights = np.ones(len(X))
    whole = hard_summary(Sampled.of(model, X, weights).T, weights, np.zeros(len(X), np.intp))
    return Target(0, whole, X, weights, starts, seed, least)


def bound_of(model, X, labels):
    weights = np.ones(len(X))
    return model.bound(model.ordered(hard_summary(Sampled.of(model, X, weights).T, weights, labels)))


@pytest.mark.parametrize("seed", range(3))
def test_many_children_become_the_clusters_that_are_there(seed):
    X, labels, model = mixture((300, 200, 100), seed=seed)
    children, gain = fit_children(model, target(model, X, Start(10), seed=seed))
    assert children.K == 3
    np.testing.assert_allclose(children.N, [300, 200, 100], atol=1.0)
    truth = bound_of(model, X, labels) - bound_of(model, X, np.zeros(len(X), np.intp))
    assert gain == pytest.approx(truth, abs=1.0)


@pytest.mark.parametrize("children", [2, 10])
def test_nothing_is_gained_by_children_of_one_cluster(children):
    for seed in range(5):
        X, _, model = mixture((500,), seed=seed)
        assert fit_children(model, target(model, X, Start(children), seed=seed))[1] < 0.0


def test_of_several_starts_the_best_is_followed():
    X, labels, model = mixture((20, 600), apart=10.0)
    few, many = Start(2, 20), Start(2, 400)
    gains = [fit_children(model, target(model, X, start))[1] for start in (few, many)]
    both = [fit_children(model, target(model, X, *starts)) for starts in ((few, many), (many, few))]
    for children, gain in both:
        assert gain == pytest.approx(max(gains), abs=1e-6)
        np.testing.assert_allclose(children.N, [600, 20], atol=0.1)
    assert max(gains) == pytest.approx(bound_of(model, X, labels) - bound_of(model, X, 0 * labels), abs=1.0)


def test_a_fit_ends_where_it_cannot_gain_what_is_wanted():
    X, _, model = mixture((2000, 2000), apart=4.0)
    patient = target(model, X, Start(2), least=-np.inf)
    gain = fit_children(model, patient)[1]
    assert fit_children(model, replace(patient, least=gain - 1.0))[1] == gain
    assert fit_children(model, replace(patient, least=1e6))[1] < gain


def test_a_thorough_fit_goes_on_where_shares_stand_still():
    """Of two clusters that overlap: their shares of the rows turn before the steps have gained what is to be gained."""
    X, _, model = mixture((3000, 3000), D=2, apart=2.0)
    for seed in range(3):
        quick = target(model, X, Start(2), seed=seed, least=-np.inf)
        assert fit_children(model, quick)[1] < 0.0
        assert fit_children(model, replace(quick, thorough=True))[1] > 40.0


def test_children_among_odd_rows_also_get_rows_that_are_not():
    X, _, model = mixture((100, 2000), apart=10.0)
    children, _ = fit_children(model, target(model, X, Start(6, 40), Start(2, 10)))
    np.testing.assert_allclose(children.N, [2000, 100], atol=0.1)
