"""Empirical Bayes: hyperparameters that raise the bound."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..allocations import Solution
from ..allocations.line_search import best_factor
from ..likelihoods import Likelihood
from ..likelihoods.features import LOST, largest_terms
from .model import Model, score_terms
from .summary import Summary

OF_LIKELIHOOD = "likelihood."  # begins the names of its hyperparameters
OF_RESPONSE = "response."  # begins those of the response; others are concentrations of the allocation
LARGEST_TERMS = 1e9  # nats: beyond, rounding of the scores of rows would decide, in double precision
MOST_STEPS, SETTLED = 100, 1e-3  # until a prior has settled, which is when a step gains fewer nats
LARGEST_WEIGHT = 1e120  # of a statistic, such as the rate of durations that are all zero: beyond, products overflow


def tuned(
    model: Model, summary: Summary, names: Sequence[str], dtype: np.dtype[np.floating], solution: Solution
) -> tuple[Model, Solution]:
    """The model with the hyperparameters ``names`` set to values that raise the ELBO of the summary, one after another.

    Takes the optimum of the allocation and returns that of the new one.

    Summaries do not depend on hyperparameters, and the bound at the optimal global step is a function of the summary alone, so
    this is coordinate ascent on the same ELBO: it never goes down.  What cannot be computed in the precision of the rows,
    ``dtype``, takes float64 (`Posterior.parameters`), and so has to gain a thousandth of a nat for each row.
    """
    likelihood = _Learner(model.likelihood, summary, dtype).learnt(_of_likelihood(names))
    allocation, solution = model.allocation.tuned(summary, tuple(names), solution)
    own = tuple(name.removeprefix(OF_RESPONSE) for name in names if name.startswith(OF_RESPONSE))
    response = model.response.tuned(summary, own)
    return replace(model, likelihood=likelihood, allocation=allocation, response=response), solution


def settled(model: Model, summary: Summary, names: Sequence[str], dtype: np.dtype[np.floating]) -> Model:
    """The model with those of its hyperparameters ``names`` that are of the likelihood learnt until they settle.

    No row is visited: `tuned` again and again for the same summary.  So clusters that are changed at once, from alike to unlike
    each other, say, do not meet a prior that was learnt for others.
    """
    learner = _Learner(model.likelihood, summary, dtype)
    own = _of_likelihood(names)
    for _ in range(MOST_STEPS if own else 0):
        before = learner.value
        learner.learnt(own)
        if not learner.value > before + SETTLED:
            break
    return replace(model, likelihood=learner.likelihood)


def _of_likelihood(names: Sequence[str]) -> list[str]:
    return [name.removeprefix(OF_LIKELIHOOD) for name in names if name.startswith(OF_LIKELIHOOD)]


class _Learner:
    """The best likelihood so far, and the sum of its log marginals of a summary."""

    def __init__(self, likelihood: Likelihood, summary: Summary, dtype: np.dtype[np.floating]) -> None:
        self.likelihood = likelihood
        self.summary = summary
        self.most = min(LARGEST_TERMS, largest_terms(dtype))  # terms of scores in the precision of the rows
        self.least = LOST * float(summary.N.sum())  # nats, worth float64
        self.value = self._value(likelihood)
        self.every = True  # whether scores are asked for after every step

    def learnt(self, names: Sequence[str]) -> Likelihood:
        """The likelihood after one step for each hyperparameter, and for those that say how strong a prior is, together.

        Scores are asked for after all steps together, and only where these cannot be computed after every step.
        """
        before = self.likelihood
        value = self.value
        self.every = False
        self._step(names)
        self.every = True
        if self.likelihood is not before and not self._terms(self.likelihood) <= self.most:
            self.likelihood = before
            self.value = value
            self._step(names)
        return self.likelihood

    def _step(self, names: Sequence[str]) -> None:
        """Each hyperparameter alone, and those that belong together."""
        for name in names:
            self._try_fitted(name)
        together = [group for group in self.likelihood.coupled() if set(group) <= set(names)]
        for group in [*([name] for name in names), *together]:
            self._try_multiplied(group)

    def _try_fitted(self, name: str) -> None:
        for fitted in self.likelihood.fitted(name, self.summary.N, self.summary.S):
            if self._keep(fitted, self._value(fitted)):
                return

    def _try_multiplied(self, names: Sequence[str]) -> None:
        before = self.likelihood
        if before.scaled_together(names, 2.0) is before:  # a choice, which no factor changes
            return
        best = best_factor(lambda factor: self._value(before.scaled_together(names, factor)), self.value)
        if best.factor != 1.0:
            self._keep(before.scaled_together(names, best.factor), best.value)

    def _keep(self, likelihood: Likelihood, value: float) -> bool:
        """Keep a likelihood if it is better and scores, where they are asked for, can be computed; whether it is kept."""
        if not value > self.value or (self.every and not self._computable(likelihood, value - self.value)):
            return False
        self.likelihood = likelihood
        self.value = value
        return True

    def _computable(self, likelihood: Likelihood, gain: float) -> bool:
        """Whether scores of rows can be computed: in their precision, no worse than now, or in float64 for what is worth it."""
        terms = self._terms(likelihood)
        if terms <= self.most:
            return True
        now = self._terms(self.likelihood)
        return terms <= now or (terms <= LARGEST_TERMS and (now > self.most or gain > self.least))

    def _value(self, likelihood: Likelihood) -> float:
        """The sum of the log marginals, NaN where it cannot be computed."""
        try:
            with np.errstate(all="ignore"):
                data = float(likelihood.log_marginal(self.summary.N, self.summary.S).sum())
                return data + likelihood.log_hyperprior
        except (FloatingPointError, ValueError):
            return np.nan

    def _terms(self, likelihood: Likelihood) -> float:
        """`score_terms` under the parameters that the summary implies; infinite where these cannot be computed."""
        try:
            with np.errstate(all="ignore"):
                W, bias = likelihood.weights(self.summary.N, self.summary.S)
                return score_terms(self.summary, W, bias) if np.abs(W).max(initial=0.0) < LARGEST_WEIGHT else np.inf
        except FloatingPointError:
            return np.inf
