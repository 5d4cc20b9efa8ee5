"""Hidden Markov models that go on from a fitted one: no lower on its sequences, and as well as others on any."""

import numpy as np
import pytest

from stickbreak import HMM
from stickbreak.likelihoods import AutoregressiveGaussian, Categorical, Gaussian, Poisson, Product

SMALL = {"random_state": 0, "n_jobs": 1}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def frozen(seed, n, D, share):
    """Autoregressive rows in three states, in one of which a share of the rows repeat the row before; six decimals."""
    rng = np.random.default_rng(seed)
    z = np.repeat(rng.integers(3, size=n // 25), 25)
    keep, center, spread = rng.uniform(0.3, 0.95, (3, D)), rng.normal(0.0, 3.0, (3, D)), rng.uniform(0.2, 1.5, (3, D))
    X = np.zeros((n, D))
    for t in range(1, n):
        k = z[t]
        repeats = k == 0 and rng.random() < share
        moved = center[k] + keep[k] * (X[t - 1] - center[k]) + spread[k] * rng.standard_normal(D)
        X[t] = X[t - 1] if repeats else moved
    return np.round(X, 6)


def states(scale, n=600):
    """Rows about the means of three states."""
    rng = np.random.default_rng(1)
    z = np.repeat(rng.permutation(np.arange(n // 20) % 3), 20)
    return scale * rng.normal(8.0 * z[:, None], 1.0, (n, 2))


SERIES = {
    "autoregressive_gaussian": frozen(0, 300, 1, 0.5),
    "diagonal_gaussian": frozen(0, 400, 1, 0.8),
    "gaussian": frozen(5, 500, 2, 0.9),
    "product": np.hstack([frozen(0, 300, 1, 0.5), np.floor(np.abs(frozen(0, 300, 2, 0.5))).clip(max=5)]),
}
FAMILIES = {"product": Product({"g": (Gaussian(), [0]), "n": (Poisson(), [1]), "c": (Categorical(), [2])})}


@pytest.mark.parametrize("family", SERIES)
def test_a_fit_that_goes_on_never_ends_lower(family):
    X = SERIES[family]
    likelihood = FAMILIES.get(family, family)
    model = HMM(likelihood, max_laps=150, **SMALL).fit(X)
    again = HMM(likelihood, init=model, max_laps=30, random_state=1, n_jobs=1).fit(X)
    least = 1e-6 * abs(model.lower_bound_)
    assert again.lower_bounds_[0] >= model.lower_bound_ - least
    assert again.lower_bound_ >= model.lower_bound_ - least


@pytest.mark.parametrize("allocation", ["hdp", "finite"])
def test_a_fit_without_moves_begins_with_all_that_was_learnt(allocation):
    X = SERIES["gaussian"]
    options = {"allocation": allocation, "n_init_states": 5, "concentration": "learn", **SMALL}
    model = HMM("gaussian", max_laps=60, **options).fit(X)
    again = HMM("gaussian", init=model, moves=(), max_laps=1, **options).fit(X)
    assert again.lower_bound_ >= model.lower_bound_ - 1e-9 * abs(model.lower_bound_)


def test_what_was_given_stays_as_given():
    X = states(1.0)
    model = HMM("gaussian", **SMALL).fit(X)
    given = Gaussian(degrees_of_freedom=7.5)
    again = HMM(given, init=model, stickiness=3.0, **SMALL).fit(X)
    assert again.model_.likelihood.degrees_of_freedom == 7.5
    assert again.stickiness_ == 3.0


@pytest.mark.long
def test_one_state_goes_on_with_the_prior_that_was_learnt_for_it():
    """Of one state other ascents learn another prior here, a local optimum."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 1)) + 1e-4 * rng.standard_normal((300, 6))
    model = HMM("gaussian", **SMALL).fit(X)
    assert model.n_states_ == 1
    again = HMM("gaussian", init=model, moves=(), **SMALL).fit(X)
    assert again.lower_bound_ >= model.lower_bound_ - 1e-6 * abs(model.lower_bound_)


@pytest.mark.parametrize(
    ("likelihood", "scale"),
    [("diagonal_gaussian", 1e13), ("autoregressive_gaussian", 1.0), ("autoregressive_gaussian", 1e-13)],
)
def test_states_of_other_data_are_only_a_start(likelihood, scale):
    model = HMM(likelihood, max_laps=40, **SMALL).fit(SERIES["autoregressive_gaussian"].repeat(2, axis=1))
    X = states(scale)
    fresh = HMM(likelihood, max_laps=60, **SMALL).fit(X)
    again = HMM(likelihood, init=model, max_laps=60, **SMALL).fit(X)
    assert again.n_states_ == fresh.n_states_ == 3
    assert again.lower_bound_ == pytest.approx(fresh.lower_bound_, abs=0.1)


def test_regressions_of_another_shape_begin_with_the_default_prior():
    X = SERIES["autoregressive_gaussian"]
    model = HMM(AutoregressiveGaussian(), max_laps=20, **SMALL).fit(X)
    again = HMM(AutoregressiveGaussian(intercept=False), init=model, moves=(), max_laps=3, **SMALL).fit(X)
    assert again.model_.likelihood.mean.shape == (1, 1)


def test_the_family_that_a_fit_has_chosen_is_kept():
    rng = np.random.default_rng(0)
    X = states(1.0) @ np.array([[1.0, 0.9], [0.0, 0.4]])
    model = HMM(max_laps=20, **SMALL).fit(X)
    again = HMM(init=model, max_laps=20, **SMALL).fit(rng.normal(size=(200, 2)))
    assert again.selection_ == []
    assert type(again.model_.likelihood) is type(model.model_.likelihood) is Gaussian
