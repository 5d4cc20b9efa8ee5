"""Empirical Bayes: hyperparameters that raise the bound."""

from collections.abc import Callable
from functools import partial
from itertools import groupby

import numpy as np
from scipy.optimize import minimize_scalar

from ..likelihoods import Likelihood
from .model import Model
from .summary import Summary

WIDEST = 2.0  # log of the largest factor by which one step changes a hyperparameter
PRECISION = 1e-3  # of the log factor


def tuned(model: Model, summary: Summary) -> Model:
    """The model with its positive hyperparameters multiplied by factors that raise the ELBO of the summary, one after another.

    Summaries do not depend on hyperparameters, and the bound at the optimal global step is a function of the summary
    alone, so this is coordinate ascent on the same ELBO: it never goes down.
    """
    likelihood = model.likelihood
    names = likelihood.tunables()
    together = groupby(names, lambda name: name.rpartition(".")[0])  # of each part: how strong its prior is
    for group in [[name] for name in names] + [list(group) for _, group in together]:
        factor = _best_factor(partial(_log_marginal, likelihood, summary, group))
        likelihood = _scaled(likelihood, group, factor)
    factor = _best_factor(lambda factor: model.allocation.scaled(factor).bound(summary))
    return Model(likelihood, model.allocation.scaled(factor))


def _scaled(likelihood: Likelihood, names: list[str], factor: float) -> Likelihood:
    for name in names:
        likelihood = likelihood.scaled(name, factor)
    return likelihood


def _log_marginal(likelihood: Likelihood, summary: Summary, names: list[str], factor: float) -> float:
    return float(_scaled(likelihood, names, factor).log_marginal(summary.N, summary.S).sum())


def _best_factor(value: Callable[[float], float]) -> float:
    """The factor near one with the highest value, one if none is higher."""

    def loss(log_factor: float) -> float:
        try:
            with np.errstate(all="ignore"):
                found = value(float(np.exp(log_factor)))
        except (FloatingPointError, ValueError):
            return np.inf
        return -found if np.isfinite(found) else np.inf

    found = minimize_scalar(loss, bounds=(-WIDEST, WIDEST), method="bounded", options={"xatol": PRECISION})
    return float(np.exp(found.x)) if found.fun < loss(0.0) else 1.0
