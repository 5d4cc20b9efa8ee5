"""Allocations for mixtures, where rows choose clusters independently: Dirichlet process and finite Dirichlet."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, psi, xlogy

from .._arguments import check_count
from ..kernels.special import log_rise
from ..kernels.sticks import stick_merges
from ._base import Array, GlobalStep, OneBound, Solution, within_range
from ._stick_breaking import Sticks
from .concentration import Belief, GammaConcentration, Moments, belief, check_belief
from .line_search import best_factor
from .seating import Seating
from .summaries import Counts, Sizes


@dataclass(frozen=True, eq=False)
class OfCounts:
    """A solution that needs no search, computed when it is asked for: the local step of rows needs neither part of it."""

    allocation: "MixturePrior"
    summary: Counts

    @cached_property
    def shares(self) -> Array:
        """Posterior mean weights of the clusters, (K,)."""
        return self.allocation.mean_weights(self.summary)

    @cached_property
    def value(self) -> float:
        """The bound."""
        return self.allocation.bound(self.summary)


class MixturePrior(OneBound, ABC):
    """A prior over the clusters of rows, which are independent given its weights pi.

    It says, for counts N (K,) and a concentration: log p(z), or a lower bound (`_log_evidence`); the derivative by N_k
    (`_expected_log_weights`); E[pi] (`_mean_weights`); and, for samplers and one pass, `_seating`.  The rest follows.

    concentration : its value, or a prior on it, over which the bound is integrated (`GammaConcentration`)
    """

    concentration: float | GammaConcentration

    @property
    def max_clusters(self) -> int:
        """The most clusters that may be in use: no limit, unless a prior has one."""
        return sys.maxsize

    @property
    def learnable(self) -> tuple[str, ...]:
        """The hyperparameters that `tuned` can set, by name: a concentration with a prior has a posterior instead."""
        return () if isinstance(self.concentration, GammaConcentration) else ("concentration",)

    def scaled(self, factor: float) -> Self:
        """This prior with its concentration multiplied by a factor."""
        prior: Any = self
        scaled: Self = replace(prior, concentration=within_range(prior.concentration * factor))
        return scaled

    @property
    def flat(self) -> Self:
        """The prior for rows without documents: the same."""
        return self

    def solve(self, summary: Counts) -> Solution:
        """Posterior mean weights of the clusters, (K,), and the bound."""
        return OfCounts(self, summary)

    def at(self, summary: Counts, shares: Array) -> Solution:
        """These shares; the bound is that of the optimum, which needs none."""
        found = OfCounts(self, summary)
        found.__dict__["shares"] = shares
        return found

    def merge_gains(
        self, summary: Counts, shares: Array, first: NDArray[np.integer], second: NDArray[np.integer]
    ) -> Array:
        """What the assignments of two clusters gain, first[i] and second[i], that become one, (n,).

        With a + b rows, each of which belonged to one of them:  (a + b) log (a + b) - a log a - b log b.
        """
        a = summary.N[first]
        b = summary.N[second]
        return np.asarray(xlogy(a + b, a + b) - xlogy(a, a) - xlogy(b, b))

    def exact_merge_gains(
        self, summary: Counts, solution: Solution, first: NDArray[np.integer], second: NDArray[np.integer]
    ) -> Array:
        """What the bound gains when clusters first[i] and second[i] become one and all are put in the best order, (n,).

        solution : the optimum for the summary
        """
        order = self.order(summary)
        N = np.asarray(summary.N[order])
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order))
        best = self.bound(Sizes(N))
        gains = self._merge_gains(
            N, best, np.minimum(ranks[first], ranks[second]), np.maximum(ranks[first], ranks[second])
        )
        return np.asarray(gains + (best - self.bound_at(summary, solution)))

    def _merge_gains(self, N: Array, bound: float, first: NDArray[np.integer], second: NDArray[np.integer]) -> Array:
        """`exact_merge_gains` of clusters with counts N (K,) in the best order, of which this is the bound; first < second."""
        gains = np.empty(len(first))
        for i, (a, b) in enumerate(zip(first, second)):
            merged = Sizes(np.delete(N, b))
            merged.N[a] += N[b]
            gains[i] = self.bound(Sizes(merged.N[self.order(merged)])) - bound
        return gains

    def merged_shares(self, shares: Array, a: int, b: int) -> Array:
        """Weights after cluster b has joined cluster a and has none, (K,)."""
        joined = shares.copy()
        joined[a], joined[b] = shares[a] + shares[b], 0.0
        return joined

    @property
    def seating(self) -> Seating:
        """How rows join clusters one after the other, with the weights integrated out.

        If the concentration has a prior, it is taken at the prior mean.

        Raises
        ------
        ValueError
            If the prior has none.
        """
        return self.sticks

    @property
    def sticks(self) -> Seating:
        """A `Seating` from which weights can be drawn (`Seating.draw_log_weights`), which every prior has."""
        return self._seating(self._belief.mean)

    def draw_seating(
        self, seating: Seating, log_chance: Callable[[Seating], float], rng: np.random.Generator
    ) -> Seating:
        """The seating at a concentration drawn given labels by a step from ``seating``; the same where it has no prior.

        log_chance : log probability of the labels with a seating
        """
        now = seating.concentration
        return self._seating(self._belief.drawn(now, lambda c: log_chance(self._seating(c)), rng))

    def update(self, summary: Counts, solution: Solution) -> GlobalStep:
        """E[log pi_k], the derivative of the bound by N_k, (K,)."""
        at = partial(self._log_evidence, summary.N)
        return GlobalStep(self._belief.expected(at, partial(self._expected_log_weights, summary.N)))

    def mean_weights(self, summary: Counts) -> Array:
        """Posterior mean weights, normalised over the K clusters in use, (K,)."""
        at = partial(self._log_evidence, summary.N)
        return self._belief.expected(at, partial(self._mean_weights, summary.N))

    def joining(self, summary: Counts) -> Array:
        """The chances of the next row to join each cluster and, last, one that has no row, (K + 1,)  (SVA Eq. 12).

        They are those of `seating` for counts that may be fractions: exact for certain assignments.
        """
        at = partial(self._log_evidence, summary.N)
        return self._belief.expected(at, partial(self._joining, summary.N))

    def bound(self, summary: Counts) -> float:
        """The allocation's part of the ELBO, without the assignment entropy."""
        return self._belief.log_mean(partial(self._log_evidence, summary.N))

    def bound_at(self, summary: Counts, solution: Solution) -> float:
        """The same, which depends on the counts alone."""
        return solution.value

    def order(self, summary: Counts) -> NDArray[np.integer]:
        """The order of clusters with the highest bound: decreasing size, which is the best one of sticks."""
        return np.argsort(-summary.N, kind="stable")

    def tuned(self, summary: Counts, names: tuple[str, ...], solution: Solution) -> tuple[Self, Solution]:
        """This prior with its concentration multiplied by the factor that raises the bound most, if it is among ``names``."""
        if "concentration" not in names or "concentration" not in self.learnable:
            return self, solution
        best = self.scaled(best_factor(lambda factor: self.scaled(factor).bound(summary)).factor)
        return best, best.solve(summary)

    def concentration_moments(self, summary: Counts) -> Moments:
        """Posterior mean and standard deviation of the concentration; of one that is known, itself and zero."""
        return self._belief.moments(partial(self._log_evidence, summary.N))

    @property
    def _belief(self) -> Belief:
        return belief(self.concentration)

    def _joining(self, N: Array, concentration: Any) -> Array:
        """`joining` at a concentration, (K + 1,), or at several (n, 1), (n, K + 1)."""
        if np.ndim(concentration):
            return np.stack([self._joining(N, float(c)) for c in np.ravel(concentration)])
        seating = self._seating(concentration)
        seats = np.where(N > 0.0, np.maximum(N - seating.discount, 0.0), 0.0)
        return normalised(np.append(seats, seating.new_weight(int((N > 0.0).sum()))))

    def _seating(self, concentration: float) -> Seating:
        """The seating at a concentration, which is its ``concentration``: draws of the concentration start there.

        Samplers, one pass and the density of rows of clusters that are not there yet need it; laps and moves do not.
        """
        raise ValueError(
            f"{type(self).__name__} does not say how rows join clusters one by one; use DirichletProcess, or "
            'algorithm="memoized", "full" or "stochastic".'
        )

    @abstractmethod
    def _log_evidence(self, N: Array, concentration: Any) -> Array:
        """The bound at a concentration, (), or at several (n, 1), (n,)."""

    @abstractmethod
    def _expected_log_weights(self, N: Array, concentration: Any) -> Array:
        """E[log pi_k] at a concentration, (K,), or at several (n, 1), (n, K)."""

    @abstractmethod
    def _mean_weights(self, N: Array, concentration: Any) -> Array:
        """The mean weights at a concentration, normalised, (K,), or at several (n, 1), (n, K)."""


@dataclass(frozen=True)
class DirichletProcess(MixturePrior):
    """Dirichlet-process mixture by stick-breaking: pi_k = u_k prod_{l<k} (1 - u_l),  u_k ~ Beta(1, concentration).

    The posterior is q(u_k) = Beta(1 + N_k, concentration + N_{>k}) with N_{>k} = sum_{l>k} N_l (Thesis Eq. 3.43; the count
    of later clusters as in Alg. 3.1, line 16).  Assignments are truncated at K, the sticks are not, so that adding an empty
    cluster changes nothing (nested truncation, Thesis 3.4.3).

    Parameters
    ----------
    concentration : float, 1e-300 to 1e300, or `GammaConcentration`
        gamma; larger values expect more clusters.
    """

    concentration: float | GammaConcentration = 1.0

    def __post_init__(self) -> None:
        check_belief(self)

    def _merge_gains(self, N: Array, bound: float, first: NDArray[np.integer], second: NDArray[np.integer]) -> Array:
        """Of the terms log gamma + log Gamma(1 + N_k) - log(gamma + N_{>=k}) of the bound, those that change."""
        if isinstance(self.concentration, GammaConcentration):
            return super()._merge_gains(N, bound, first, second)
        gains = np.empty(len(first))
        stick_merges(np.ascontiguousarray(N), self.concentration, first, second, gains)
        fewer = N[second]
        return np.asarray(gains + log_rise(fewer, 1.0 + N[first]) - gammaln(1.0 + fewer))

    def _seating(self, concentration: float) -> Seating:
        """The Chinese restaurant."""
        return Seating(concentration)

    def _log_evidence(self, N: Array, concentration: Any) -> Array:
        """Sum over k of c_Beta(1, gamma) - c_Beta(1 + N_k, gamma + N_{>k})  (Thesis Eq. 3.44)."""
        return np.asarray(Sticks.of(N, concentration).log_evidence(N).sum(axis=-1))

    def _expected_log_weights(self, N: Array, concentration: Any) -> Array:
        """E[log u_k] + sum_{l<k} E[log (1 - u_l)], (K,)  (Thesis Eq. 3.32, 3.33)."""
        return Sticks.of(N, concentration).expected_log_weights()

    def _mean_weights(self, N: Array, concentration: Any) -> Array:
        """E[u_k] prod_{l<k} (1 - E[u_l]) over the K clusters in use, normalised, (K,)  (Thesis Eq. 3.18)."""
        return normalised(Sticks.of(N, concentration).mean_weights())


@dataclass(frozen=True)
class FiniteDirichlet(MixturePrior):
    """Finite mixture with a symmetric prior: pi ~ Dirichlet(concentration / n_clusters, ...)  (Thesis 2.6).

    Clusters without rows keep their share of the prior, so adding an empty one among the ``n_clusters`` changes nothing.

    Parameters
    ----------
    n_clusters : int >= 1
        The number of clusters in the model; at most this many are ever in use.
    concentration : float, 1e-300 to 1e300, or `GammaConcentration`
        Total pseudo-count, shared equally.
    """

    n_clusters: int = 10
    concentration: float | GammaConcentration = 1.0

    def __post_init__(self) -> None:
        check_belief(self)
        check_count(self.n_clusters, "n_clusters")

    @property
    def max_clusters(self) -> int:
        """The most clusters that may be in use."""
        return self.n_clusters

    def _merge_gains(self, N: Array, bound: float, first: NDArray[np.integer], second: NDArray[np.integer]) -> Array:
        """Log Gamma(a + b + c) + log Gamma(c) - log Gamma(a + c) - log Gamma(b + c),  c = concentration / n_clusters."""
        if isinstance(self.concentration, GammaConcentration):
            return super()._merge_gains(N, bound, first, second)
        c = self.concentration / self.n_clusters
        fewer = N[second]
        return np.asarray(log_rise(fewer, c + N[first]) - log_rise(fewer, c))

    def _seating(self, concentration: float) -> Seating:
        """The restaurant of ``n_clusters`` tables: a negative discount."""
        return Seating(concentration, -concentration / self.n_clusters)

    def _log_evidence(self, N: Array, concentration: Any) -> Array:
        """Log Dirichlet-multinomial normaliser ratio; unused clusters contribute nothing."""
        rows = log_rise(N.sum(), np.squeeze(concentration, axis=-1) if np.ndim(concentration) else concentration)
        return np.asarray(log_rise(N, concentration / self.n_clusters).sum(axis=-1) - rows)

    def _expected_log_weights(self, N: Array, concentration: Any) -> Array:
        """E[log pi_k] = psi(N_k + a) - psi(N + n_clusters a),  a = concentration / n_clusters  (Thesis 2.6.2)."""
        return np.asarray(psi(N + concentration / self.n_clusters) - psi(N.sum() + concentration))

    def _mean_weights(self, N: Array, concentration: Any) -> Array:
        """(N_k + a) / (N + a K) of the K clusters in use, (K,)."""
        return normalised(N + concentration / self.n_clusters)


def normalised(weights: Array) -> Array:
    """Weights divided by their sum along the last axis."""
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))
