"""What the parameters of a hidden Markov model mean: its likelihood, its allocation and what is learnt of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..allocations import Allocation, Duration, FiniteMarkovChain, HDPMarkovChain
from ..data import SequenceSource
from ..likelihoods import REGISTRY, AutoregressiveGaussian, Labelled, Likelihood
from . import _choices as choices
from . import _hyperparameters as hyperparameters
from . import _likelihoods as likelihoods

Array = NDArray[np.floating]

FIRST_STICKINESS, FIRST_CONCENTRATION = 50.0, 1.0  # where they are learnt
CONCENTRATIONS = "stickiness", "transition_concentration", "start_concentration", "concentration"  # that can be learnt


def lags(likelihood: Likelihood) -> int:
    """The steps before a row that a likelihood wants to see."""
    rows = family(likelihood)
    return rows.lags if isinstance(rows, AutoregressiveGaussian) else 0


def family(likelihood: Likelihood) -> Likelihood:
    """That of the rows alone, where a likelihood is also of their labels."""
    return likelihood.family if isinstance(likelihood, Labelled) else likelihood


def given_lags(estimator: Any) -> int:
    """The same of the likelihood that an estimator is given, as far as that is known before the data."""
    choice = estimator.likelihood
    if isinstance(choice, str):
        return lags(REGISTRY[choice]()) if choice in REGISTRY else 0
    return lags(choice)


def likelihood(estimator: Any, source: SequenceSource) -> Likelihood:
    """The likelihood of the rows, where the estimator is given one."""
    choice = estimator.likelihood
    if source.lags:
        located: Likelihood = (REGISTRY[choice]() if isinstance(choice, str) else choice).locate(None, source.n_columns)
        likelihoods.refuse_categories(estimator, located, estimator.n_features_in_)
        return located
    return likelihoods.likelihood(estimator, source.flat)


def allocation(estimator: Any) -> Allocation:
    """The allocation of a hidden Markov model."""
    choice = estimator.allocation
    if not isinstance(choice, str):
        given: Allocation = choice
        return given
    n = estimator.n_init_states
    alpha = FIRST_CONCENTRATION if choice == "hdp" else float(n)
    alpha = alpha if isinstance(estimator.transition_concentration, str) else float(estimator.transition_concentration)
    kappa = FIRST_STICKINESS
    if isinstance(estimator.stickiness, Duration):
        kappa = estimator.stickiness.stickiness(alpha)
    elif not isinstance(estimator.stickiness, str):
        kappa = float(estimator.stickiness)
    first = float(estimator.start_concentration)
    if choice == "finite":
        return FiniteMarkovChain(n, alpha, kappa, first)
    return HDPMarkovChain(alpha, kappa, first, choices.of_shares(estimator))


def learnt(estimator: Any, likelihood: Likelihood) -> tuple[str, ...]:
    """The hyperparameters to learn: concentrations that are "learn", and those that ``learn`` names."""
    names = hyperparameters.without_priors(estimator, CONCENTRATIONS)
    return hyperparameters.with_concentrations(estimator, hyperparameters.learnt(estimator, likelihood, names), names)


def learnt_again(estimator: Any) -> tuple[str, ...]:
    """The same of a fitted model."""
    names = hyperparameters.without_priors(estimator, CONCENTRATIONS)
    return hyperparameters.with_concentrations(estimator, hyperparameters.learnt_again(estimator, names), names)
