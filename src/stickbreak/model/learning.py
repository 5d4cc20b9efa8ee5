"""Empirical Bayes: hyperparameters that raise the bound."""

from dataclasses import replace
from functools import partial
from itertools import groupby

import numpy as np

from ..allocations._base import best_factor
from ..likelihoods import Likelihood
from ..likelihoods._base import largest_terms
from .model import Model, score_terms
from .summary import Summary


def tuned(model: Model, summary: Summary, names: tuple[str, ...]) -> Model:
    """The model with the hyperparameters ``names`` set to values that raise the ELBO of the summary, one after another.

    "likelihood" stands for all positive hyperparameters of the likelihood, each multiplied by a factor; other names are
    concentrations of the allocation.  Summaries do not depend on hyperparameters, and the bound at the optimal global step
    is a function of the summary alone, so this is coordinate ascent on the same ELBO: it never goes down.
    """
    likelihood = _tuned(model.likelihood, summary) if "likelihood" in names else model.likelihood
    return replace(model, likelihood=likelihood, allocation=model.allocation.tuned(summary, names))


def _tuned(likelihood: Likelihood, summary: Summary) -> Likelihood:
    tunables = likelihood.tunables()
    together = groupby(tunables, lambda name: name.rpartition(".")[0])  # of each part: how strong its prior is
    for group in [[name] for name in tunables] + [list(group) for _, group in together]:
        tried = _scaled(likelihood, group, best_factor(partial(_log_marginal, likelihood, summary, group)))
        if _terms(tried, summary) <= max(largest_terms(np.float64), _terms(likelihood, summary)):
            likelihood = tried
    return likelihood


def _terms(likelihood: Likelihood, summary: Summary) -> float:
    """`score_terms` under the parameters that a summary implies: where they are too large, rounding decides the bound.

    Where rows repeat, a prior of ever narrower clusters raises the bound without end.
    """
    with np.errstate(over="ignore"):
        return score_terms(summary, *likelihood.weights(summary.N, summary.S))


def _scaled(likelihood: Likelihood, names: list[str], factor: float) -> Likelihood:
    for name in names:
        likelihood = likelihood.scaled(name, factor)
    return likelihood


def _log_marginal(likelihood: Likelihood, summary: Summary, names: list[str], factor: float) -> float:
    return float(_scaled(likelihood, names, factor).log_marginal(summary.N, summary.S).sum())
