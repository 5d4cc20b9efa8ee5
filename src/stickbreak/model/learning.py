"""Empirical Bayes: hyperparameters that raise the bound."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import brentq

from ..allocations.line_search import best_factor
from ..likelihoods import Likelihood
from ..likelihoods.features import LOST, largest_terms
from .model import Model, Posterior, score_terms
from .summary import Summary

OF_LIKELIHOOD = "likelihood."  # begins the names of its hyperparameters
OF_RESPONSE = "response."  # begins those of the response; others are concentrations of the allocation
LARGEST_TERMS = 1e9  # nats: beyond, rounding of the scores of rows would decide, in double precision
LAST_TERMS = 2e9  # nats, once a search is over: clusters that change leave terms beyond 1e9, some more and some less
MOST_HALVES = 12  # of a step, part of which can be computed
MOST_STEPS, SETTLED = 100, 1e-3  # until a prior has settled, which is when a step gains fewer nats
NARROWEST, WIDEST = -46.0, 0.0  # log of variances, in squared units of columns, by which clusters may be widened
ALONG = 0.1  # nats: at the limit of what can be computed a prior has settled when a step gains fewer
SLACK = 1e-8  # by which the log of terms then stays below the limit
MOST_TERMS = 1e300  # of which logarithms are taken
LARGEST_WEIGHT = 1e120  # of a statistic, such as the rate of durations that are all zero: beyond, products overflow


def tuned(posterior: Posterior, names: Sequence[str], dtype: np.dtype[np.floating]) -> Posterior:
    """The posterior with the hyperparameters ``names`` set to values that raise the ELBO of its summary, one after another.

    Summaries do not depend on hyperparameters, and the bound at the optimal global step is a function of the summary alone, so
    this is coordinate ascent on the same ELBO: it never goes down.  What cannot be computed in the precision of the rows,
    ``dtype``, takes float64 (`Posterior.parameters`), and so has to gain a thousandth of a nat for each row.
    """
    learner = _Learner(posterior, dtype)
    learner.learn(_of_likelihood(names))
    model = learner.best.model
    summary = posterior.summary
    allocation, solution = model.allocation.tuned(summary, tuple(names), posterior.solution)
    own = tuple(name.removeprefix(OF_RESPONSE) for name in names if name.startswith(OF_RESPONSE))
    response = model.response.tuned(summary, own)
    return learner.best.beside(replace(model, allocation=allocation, response=response), solution)


def settled(model: Model, summary: Summary, names: Sequence[str], dtype: np.dtype[np.floating]) -> Model:
    """The model with those of its hyperparameters ``names`` that are of the likelihood learnt until they settle.

    No row is visited: `tuned` again and again for the same summary.  So clusters that are changed at once, from alike to unlike
    each other, say, do not meet a prior that was learnt for others.
    """
    own = _of_likelihood(names)
    if not own:
        return model
    learner = _Learner(model.posterior(summary), dtype)
    for _ in range(MOST_STEPS):
        before = learner.value
        learner.learn(own)
        if not learner.value > before + SETTLED:
            break
    return learner.best.model


def at_limit(posterior: Posterior, names: Sequence[str], dtype: np.dtype[np.floating]) -> Posterior:
    """The posterior under the best prior of rows whose scores can be computed, where a step of learning goes beyond these.

    Clusters that hardly vary would have an ever narrower prior, and steps for one hyperparameter after another (`tuned`) stop
    somewhere at the limit of what can be computed, which they cannot follow.  So hyperparameters are learnt as if all scores
    could be computed, clusters are widened as little as makes it so, and hyperparameters are learnt on with clusters as wide
    as they then have to be.  Where that ends hardly depends on where it begins.  It is taken where it gains a thousandth
    of a nat for each row.
    """
    own = _of_likelihood(names)
    learner = _Learner(posterior, dtype)
    learner.learn(own)
    if not learner.stuck:
        return posterior
    free = _Learner(learner.best, dtype)
    free.every = False
    free.settle(own, SETTLED)
    found = _AtLimit(free.best, own, max(LAST_TERMS, _terms(learner.best)))
    if np.isfinite(found.value):
        found.settle(own, ALONG)
    return found.best if found.value > learner.value + learner.least else learner.best


def _of_likelihood(names: Sequence[str]) -> list[str]:
    return [name.removeprefix(OF_LIKELIHOOD) for name in names if name.startswith(OF_LIKELIHOOD)]


class _Learner:
    """The posterior under the best likelihood so far, and the sum of its log marginals."""

    def __init__(self, posterior: Posterior, dtype: np.dtype[np.floating]) -> None:
        self.best = posterior
        self.log_marginals = posterior.model.likelihood.log_marginals_of(posterior.summary.N, posterior.summary.S)
        self.most = min(LARGEST_TERMS, largest_terms(dtype))  # terms of scores in the precision of the rows
        self.least = LOST * float(posterior.summary.N.sum())  # nats, worth float64
        self.value = _value(posterior)
        self.refused: list[tuple[Sequence[str], float]] = []  # steps that cannot be computed, by a factor
        self.stuck = False  # whether steps were too long for scores to be computed
        self.every = True  # whether scores are asked for after every step

    def learn(self, names: Sequence[str]) -> None:
        """Take one step for each hyperparameter, and for those that say how strong a prior is, together.

        Scores are asked for after all steps together, and only where these cannot be computed after every step.  Where no other
        step gains any more, part of one that cannot be computed is taken: how far the last ones went would else be chance.
        """
        before = self.best
        value = self.value
        self.every = False
        self.step(names)
        self.every = True
        if self.best is not before and not _terms(self.best) <= self.most:
            self.best = before
            self.value = value
            self.refused = []
            self.step(names)
            if self.refused and not self.value > value + SETTLED:
                self._go_part_of_the_way()
            self.stuck = True

    def step(self, names: Sequence[str]) -> None:
        """Each hyperparameter alone, and those that belong together."""
        for name in names:
            self._try_fitted(name)
        for group in self._groups(names):
            self._try_multiplied(group)

    def _groups(self, names: Sequence[str]) -> list[Sequence[str]]:
        """Each hyperparameter, and those that belong together."""
        together = [group for group in self.best.model.likelihood.coupled() if set(group) <= set(names)]
        return [*([name] for name in names), *together]

    def settle(self, names: Sequence[str], least: float) -> None:
        """Take steps until one gains less than so many nats."""
        for _ in range(MOST_STEPS):
            before = self.value
            self.step(names)
            if not self.value > before + least:
                return

    def _go_part_of_the_way(self) -> None:
        """Take a step that was refused as far as scores can be computed: that which gains most."""
        found = [self._farthest(names, factor) for names, factor in self.refused]
        for posterior, value in sorted(found, key=lambda known: -known[1]):
            if self._keep(posterior, value):
                return

    def _farthest(self, names: Sequence[str], factor: float) -> tuple[Posterior, float]:
        """The posterior, and its value, after as much of a step as can be computed in double precision."""
        likelihood = self.best.model.likelihood
        near = 0.0
        far = 1.0
        farthest = (self.best, self.value)
        for _ in range(MOST_HALVES):
            share = 0.5 * (near + far)
            posterior, value = self._under(likelihood.scaled_together(names, factor**share))
            if _terms(posterior) <= LARGEST_TERMS:
                near = share
                farthest = (posterior, value) if value > farthest[1] else farthest
            else:
                far = share
        return farthest

    def _try_fitted(self, name: str) -> None:
        summary = self.best.summary
        for fitted in self.best.model.likelihood.fitted(name, summary.N, summary.S):
            if self._keep(*self._under(fitted)):
                return

    def _try_multiplied(self, names: Sequence[str]) -> None:
        before = self.best.model.likelihood
        if before.scaled_together(names, 2.0) is before:  # a choice, which no factor changes
            return

        tried: dict[float, Posterior] = {}

        def value(factor: float) -> float:
            tried[factor], found = self._under(before.scaled_together(names, factor))
            return found

        best = best_factor(value, self.value)
        if best.factor != 1.0 and not self._keep(tried[best.factor], best.value):
            self.refused.append((names, best.factor))

    def _under(self, likelihood: Likelihood) -> tuple[Posterior, float]:
        """The posterior under a likelihood, and the sum of its log marginals, NaN where it cannot be computed."""
        model = replace(self.best.model, likelihood=likelihood)
        summary = self.best.summary
        try:
            with np.errstate(all="ignore"):
                marginal = self.log_marginals(likelihood)
                value = float(marginal.sum()) + likelihood.log_hyperprior
            return Posterior.known(model, summary, marginal, None), value
        except (FloatingPointError, ValueError):
            return model.posterior(summary), np.nan

    def _keep(self, posterior: Posterior, value: float) -> bool:
        """Keep a posterior if it is better and scores, where they are asked for, can be computed; whether it is kept."""
        if not value > self.value or (self.every and not self._computable(posterior, value - self.value)):
            return False
        self.best = posterior
        self.value = value
        return True

    def _computable(self, posterior: Posterior, gain: float) -> bool:
        """Whether scores of rows can be computed: in their precision, no worse than now, or in float64 for what is worth it."""
        terms = _terms(posterior)
        if terms <= self.most:
            return True
        now = _terms(self.best)
        return terms <= now or (terms <= LARGEST_TERMS and (now > self.most or gain > self.least))


class _AtLimit(_Learner):
    """The posterior under a likelihood, learnt as if all scores could be computed, with clusters as wide as makes it so.

    free : that likelihood
    names : the hyperparameters that are learnt
    limit : terms of scores, in nats
    """

    def __init__(self, free: Posterior, names: Sequence[str], limit: float) -> None:
        super().__init__(free, np.dtype(np.float64))
        self.free = free.model.likelihood
        self.names = names
        self.limit = limit
        self.width = 0.5 * (NARROWEST + WIDEST)  # log of the variance by which clusters were last widened
        self.best, self.value = self._widened(self.free)

    def step(self, names: Sequence[str]) -> None:
        """Multiply each hyperparameter of the likelihood alone, and those that belong together."""
        for group in self._groups(names):
            self._multiply(group)

    def _multiply(self, group: Sequence[str]) -> None:
        before = self.free
        if before.scaled_together(group, 2.0) is before:
            return
        tried: dict[float, Posterior] = {}

        def value(factor: float) -> float:
            tried[factor], found = self._widened(before.scaled_together(group, factor))
            return found

        best = best_factor(value, self.value)
        if best.factor != 1.0:
            self.best, self.value = tried[best.factor], best.value
            self.free = before.scaled_together(group, best.factor)

    def _widened(self, likelihood: Likelihood) -> tuple[Posterior, float]:
        """The posterior, and its value, with clusters as wide as they have to be; NaN where no width will do."""
        posterior, value = self._under(likelihood)
        if _terms(posterior) <= self.limit:
            return posterior, value

        def excess(log_width: float) -> float:
            terms = _terms(self._under(likelihood.widened(float(np.exp(log_width)), self.names))[0])
            return float(np.log(min(terms, MOST_TERMS) / self.limit)) + SLACK

        for low, high in ((self.width - 1.0, self.width + 1.0), (NARROWEST, WIDEST)):
            if excess(low) > 0.0 > excess(high):
                self.width = float(brentq(excess, low, high, xtol=0.1 * SLACK))
                return self._under(likelihood.widened(float(np.exp(self.width)), self.names))
        return posterior, np.nan


def _value(posterior: Posterior) -> float:
    """The sum of the log marginals, NaN where it cannot be computed."""
    try:
        with np.errstate(all="ignore"):
            return float(posterior.log_marginal.sum()) + posterior.model.likelihood.log_hyperprior
    except (FloatingPointError, ValueError):
        return np.nan


def _terms(posterior: Posterior) -> float:
    """`score_terms` under the parameters that the summary implies; infinite where these cannot be computed."""
    try:
        with np.errstate(all="ignore"):
            W, bias = posterior.weights
            largest = max(W.max(initial=0.0), -W.min(initial=0.0))
            return score_terms(posterior.summary, W, bias) if largest < LARGEST_WEIGHT else np.inf
    except FloatingPointError:
        return np.inf
