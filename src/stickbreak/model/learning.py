"""Empirical Bayes: hyperparameters that raise the bound."""

from dataclasses import replace
from functools import partial
from itertools import groupby

from ..allocations._base import best_factor
from ..likelihoods import Likelihood
from .model import Model
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
        likelihood = _scaled(likelihood, group, best_factor(partial(_log_marginal, likelihood, summary, group)))
    return likelihood


def _scaled(likelihood: Likelihood, names: list[str], factor: float) -> Likelihood:
    for name in names:
        likelihood = likelihood.scaled(name, factor)
    return likelihood


def _log_marginal(likelihood: Likelihood, summary: Summary, names: list[str], factor: float) -> float:
    return float(_scaled(likelihood, names, factor).log_marginal(summary.N, summary.S).sum())
