"""Log marginals under priors so strong that log Gamma of them leaves no digits: against sums of predictives, in closed form."""

import numpy as np
import pytest

from stickbreak.likelihoods import REGISTRY, Sample

ROWS = {
    "bernoulli": lambda rng: (rng.random((20, 2)) < 0.4).astype(float),
    "categorical": lambda rng: rng.integers(3, size=(20, 2)).astype(float),
    "exponential": lambda rng: rng.exponential(2.0, (20, 2)),
    "gamma": lambda rng: rng.gamma(3.0, 2.0, (20, 2)),
    "poisson": lambda rng: rng.poisson(4.0, (20, 2)).astype(float),
    "diagonal_gaussian": lambda rng: rng.normal(size=(20, 2)),
    "spherical_gaussian": lambda rng: rng.normal(size=(20, 2)),
}
STRENGTHS = {"bernoulli": ("a", "b"), "categorical": ("concentration",)}  # the others have shape and rate


def strong(name, X, strength):
    """A prior that knows its parameters: those of the default, many times as strong."""
    likelihood = REGISTRY[name]().resolve(Sample.of(X))
    for parameter in STRENGTHS.get(name, ("shape", "rate")):
        likelihood = likelihood.scaled(parameter, strength)
    return likelihood


@pytest.mark.parametrize("strength", [1e9, 1e12, 1e14])
@pytest.mark.parametrize("name", ROWS)
def test_a_prior_that_is_certain_makes_rows_independent(name, strength):
    """Up to 1 / strength the rows have fixed parameters, so a log marginal is the sum of those of single rows."""
    X = ROWS[name](np.random.default_rng(0))
    likelihood = strong(name, X, strength)
    if name.endswith("gaussian"):
        likelihood = likelihood.scaled("mean_precision", strength)
    T = likelihood.features(X, None if name == "categorical" else np.empty((len(X), likelihood.n_statistics)))
    T = T.toarray() if name == "categorical" else T
    together = likelihood.log_marginal(np.array([20.0]), T.sum(axis=0)[None])[0]
    alone = likelihood.log_marginal(np.ones(20), T).sum()
    assert together == pytest.approx(alone, rel=1e-5 if strength == 1e9 else 1e-7)
