"""Hyperparameters that are learnt: they raise the bound, and nothing else about a fit changes."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from stickbreak import Mixture
from stickbreak.allocations import DirichletProcess, FiniteDirichlet
from stickbreak.likelihoods import Bernoulli, Gaussian
from stickbreak.model import Model, local_step
from stickbreak.model.learning import tuned

ALLOCATIONS = {"dp": DirichletProcess(3.0), "finite": FiniteDirichlet(5, 0.7)}
every_allocation = pytest.mark.parametrize("allocation", ALLOCATIONS)


def data(family, n=200):
    rng = np.random.default_rng(0)
    return family.rows(rng, n, 3), rng.integers(3, size=n)


def fit(family, X, **parameters):
    defaults = {"likelihood": family.make(X.shape[1]), "random_state": 0, "n_jobs": 1, "max_laps": 40}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Mixture(**{**defaults, **parameters}).fit(X)


@every_allocation
def test_learning_never_lowers_the_bound_and_ends_above_a_fit_without(family, allocation):
    """From where the fit without ended: from labels, the two may end at different optima."""
    X, labels = data(family)
    options = {"allocation": ALLOCATIONS[allocation], "moves": (), "tol": 1e-6}
    plain = fit(family, X, init=labels, **options)
    found, other = (fit(family, X, empirical_bayes=True, init=init, **options) for init in (plain, labels))
    for bounds in (np.array(found.lower_bounds_), np.array(other.lower_bounds_)):
        assert np.all(np.diff(bounds) >= -1e-9 * np.abs(bounds[1:]))
    assert found.lower_bound_ >= plain.lower_bound_ - 1e-9 * abs(plain.lower_bound_)
    assert found.lower_bound_ == found.model_.bound(found.summary_)
    assert found.model_.allocation.concentration != ALLOCATIONS[allocation].concentration
    likelihood, before = found.model_.likelihood, plain.model_.likelihood
    N, S = found.summary_.N, found.summary_.S
    assert likelihood.log_marginal(N, S).sum() > before.log_marginal(N, S).sum()


@pytest.mark.parametrize("algorithm", ["full", "memoized", "stochastic"])
def test_learning_works_with_moves_and_every_algorithm(known_families, algorithm):
    for name in ("gaussian-default", "poisson-default", "product-missing"):
        X, _ = data(known_families[name])
        found = fit(known_families[name], X, algorithm=algorithm, n_batches=2, empirical_bayes=True)
        bounds = np.array(found.lower_bounds_)
        assert np.isfinite(bounds).all()
        if algorithm != "stochastic":
            assert np.all(np.diff(bounds) >= -1e-9 * np.abs(bounds[1:]))
        R = found.predict_proba(X)
        assert R.shape == (len(X), found.n_clusters_)
        again = fit(known_families[name], X, algorithm=algorithm, n_batches=2, empirical_bayes=True)
        assert again.lower_bounds_ == found.lower_bounds_


def test_one_step_of_learning_is_the_best_factor_of_each_hyperparameter(family, naive):
    """Or better: against a grid of factors, one hyperparameter after the other; the data terms do not change."""
    X, labels = data(family)
    model = Model(family.likelihood(X), DirichletProcess(3.0))
    summary = model.ordered(naive.summarise(model.likelihood, X, np.eye(3)[labels]))
    found = tuned(model, summary, ("likelihood", "concentration"))
    assert found.bound(summary) >= model.bound(summary)
    grid = np.exp(np.linspace(-2.0, 2.0, 201))

    def gains(likelihoods):
        with np.errstate(all="ignore"):
            values = np.array([q.log_marginal(summary.N, summary.S).sum() for q in likelihoods])
        return np.nan_to_num(values, nan=-np.inf)

    likelihood = model.likelihood
    for name in likelihood.tunables():
        candidates = [likelihood.scaled(name, factor) for factor in grid]
        likelihood = candidates[gains(candidates).argmax()]
    near = 0.02 + 1e-4 * abs(gains([likelihood])[0])  # the grid has steps of two percent
    assert gains([found.likelihood])[0] >= gains([likelihood])[0] - near
    allocations = [model.allocation.scaled(factor).bound(summary) for factor in grid]
    assert found.allocation.bound(summary) == pytest.approx(max(allocations), abs=1e-3)


def test_the_prior_of_many_clusters_is_recovered():
    """Coins whose chances come from Beta(2, 6): empirical Bayes finds its mean and its width."""
    rng = np.random.default_rng(1)
    chance = rng.beta(2.0, 6.0, (40, 150))
    labels = np.repeat(np.arange(40), 50)
    X = (rng.random((2000, 150)) < chance[labels]).astype(float)
    found = Mixture(Bernoulli(1.0, 1.0), init=labels, moves=(), empirical_bayes=True, n_jobs=1, max_laps=100).fit(X)
    a, b = found.model_.likelihood.a, found.model_.likelihood.b
    assert (a / (a + b)).mean() == pytest.approx(0.25, abs=0.02)
    assert (a + b).mean() == pytest.approx(8.0, rel=0.15)


def test_hyperparameters_given_are_learnt_from():
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(m, 1.0, (60, 2)) for m in (-9.0, 0.0, 9.0)])
    options = {"init": np.repeat([0, 1, 2], 60), "moves": (), "n_jobs": 1, "max_laps": 300, "tol": 1e-9}
    given = Gaussian(scale=np.diag([400.0, 0.01]))
    found = Mixture(given, empirical_bayes=True, **options).fit(X)
    plain = Mixture(given, **options).fit(X)
    assert found.lower_bound_ > plain.lower_bound_
    assert given.scale[0, 0] == 400.0  # an object of the user is not changed
    factor = np.diag(found.model_.likelihood.scale) / np.diag(given.scale)
    assert factor[0] == pytest.approx(factor[1], rel=1e-12)  # one for all
    assert factor[0] != 1.0
    assert found.get_params()["likelihood"] is given


@pytest.mark.parametrize("value", [None, 1, "yes", np.nan])
def test_it_is_true_or_false(value):
    with pytest.raises(ValueError, match="empirical_bayes must be True or False"):
        Mixture(empirical_bayes=value).fit(np.eye(5))


def test_a_learnt_model_is_saved_and_continued(tmp_path, known_families):
    from stickbreak import load

    family = known_families["product-missing"]
    X, labels = data(family)
    found = fit(family, X, empirical_bayes=True, init=labels, moves=())
    found.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.lower_bound_ == found.lower_bound_
    assert again.get_params()["empirical_bayes"] is True
    np.testing.assert_array_equal(again.predict_proba(X), found.predict_proba(X))
    for (part, _), (other, _) in zip(again.model_.likelihood.parts.values(), found.model_.likelihood.parts.values()):
        for name in part.tunables():
            np.testing.assert_array_equal(getattr(part, name), getattr(other, name))


def test_learning_is_a_step_that_only_the_prior_sees(known_families, naive):
    """The responsibilities of the next lap follow from the new prior by plain variational inference."""
    family = known_families["poisson-default"]
    X, labels = data(family)
    options = {"init": labels, "moves": (), "algorithm": "full"}
    one, two = (fit(family, X, empirical_bayes=True, max_laps=n, **options) for n in (1, 2))
    parameters = one.model_.parameters(one.summary_, np.dtype(float))
    summary, _ = local_step(one.model_, parameters, X, np.ones(len(X)))
    naive.assert_same(one.model_.ordered(summary), two.summary_, rtol=1e-9)
