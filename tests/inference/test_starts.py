"""Starts of mixtures by name, against what they promise."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from stickbreak import Mixture
from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource
from stickbreak.data.distinct import distinct_rows
from stickbreak.inference.starts import STARTS
from stickbreak.model import Model, local_step

FLOAT = np.dtype(float)


def begun(family, name, n=120, K=5, seed=0, weights=None):
    X = family.rows(np.random.default_rng(3), n, 6 if family.name == "categorical" else 2)
    model = Model(family.likelihood(X), DirichletProcess(1.0))
    start = STARTS[name](model, ArraySource(X, weights), K, rng=np.random.default_rng(seed))
    return model, X, start


@pytest.fixture(
    scope="module", params=["gaussian-given", "categorical-many_levels", "product-missing", "student_t-given"]
)
def family(request, known_families):
    return known_families[request.param]


@pytest.mark.parametrize("name", STARTS)
def test_a_start_has_the_weight_of_all_rows_whatever_the_seed(family, name):
    weights = np.linspace(0.5, 2.0, 120)
    _, _, start = begun(family, name, weights=weights)
    assert 1 <= start.K <= 5
    assert start.N.sum() == pytest.approx(weights.sum())
    assert (begun(family, name, weights=weights)[2].S == start.S).all()


def test_hard_assignments_are_settled(family):
    """A further step changes no row's cluster: a fixed point of Thesis Alg. 2.1."""
    model, X, start = begun(family, "k-means")
    after, _ = local_step(model.likelihood, model.parameters(start, FLOAT), X, np.ones(len(X)), most_kept=1)
    np.testing.assert_allclose(after.N, start.N, atol=1e-9)
    if model.likelihood.hidden is None:
        np.testing.assert_allclose(after.S, start.S, rtol=1e-9, atol=1e-9)


def test_hard_assignments_raise_the_bound_of_seeds(known_families):
    family = known_families["gaussian-given"]
    bounds = [
        [model.bound(model.ordered(start)) for model, _, start in (begun(family, name, seed=seed),)]
        for name in ("k-means++", "k-means")
        for seed in range(5)
    ]
    assert (np.array(bounds[5:]) >= np.array(bounds[:5]) - 1e-9).all()


def test_a_pass_in_random_order_by_hand(known_families):
    """Each of the first rows is shared out by the clusters that the rows before it imply."""
    family = known_families["gaussian-given"]
    model, X, start = begun(family, "permutation", n=15, K=3)
    rng = np.random.default_rng(0)
    source = ArraySource(X)
    sample = source.sample(5000, rng)
    rows, _ = sample.take(sample.present())
    distinct = np.unique(rows, axis=0)
    assert len(distinct) == len(X)
    total = start * 0.0
    ordered, weights = distinct_rows(rows, np.ones(len(rows)))
    for i in rng.permutation(len(ordered)):
        seen, _ = local_step(model.likelihood, model.parameters(total, FLOAT), ordered[[i]], weights[[i]], base=False)
        total = total + seen
    np.testing.assert_allclose(start.S, total.S, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", STARTS)
def test_fits_from_every_start_find_separated_clusters(name):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(center, 1.0, (60, 2)) for center in (-20, 0, 20)])
    model = Mixture("gaussian", init=name, random_state=0, n_jobs=1).fit(X)
    assert adjusted_rand_score(np.repeat(np.arange(3), 60), model.labels_) == 1.0
