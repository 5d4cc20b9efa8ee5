"""What data add to the normalisers of Gamma and Dirichlet priors, without differences of large numbers."""

from typing import Any

import numpy as np
from scipy.special import gammaln

from ..kernels.special import log_rise
from ._hyperparameters import Array

STRONG = 1e3  # a prior from which log Gamma is so large that a difference loses digits, and worth a slower function


def log_gamma_ratio(count: Any, prior: Any) -> Array:
    """Log Gamma(prior + count) - log Gamma(prior), element by element."""
    if np.max(prior, initial=0.0) < STRONG:
        return np.asarray(gammaln(prior + count) - gammaln(prior))
    return log_rise(count, prior)


def normaliser_ratio(shape: Any, rate: Any, more_shape: Any, more_rate: Any) -> Array:
    """LogZ(shape + more_shape, rate + more_rate) - logZ(shape, rate) of Gamma distributions, element by element.

        logZ(a, b) = log Gamma(a) - a log b

    No term is much larger than the result, however large the prior's shape, which empirical Bayes may raise without limit.
    """
    growth = -shape * _log_growth(rate, more_rate) - more_shape * np.log(rate + more_rate)
    return np.asarray(log_gamma_ratio(more_shape, shape) + growth)


def _log_growth(rate: Any, more: Any) -> Array:
    """log((rate + more) / rate) for rate > 0 and more >= 0."""
    with np.errstate(over="ignore"):  # of quotients that are not taken
        return np.asarray(np.where(more < rate, np.log1p(more / rate), np.log(rate + more) - np.log(rate)))
