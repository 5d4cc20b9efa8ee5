"""Allocations for mixtures, where rows choose clusters independently: Dirichlet process and finite Dirichlet."""

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import psi, xlogy

from .._arguments import as_floats, check_count
from ..kernels.special import log_rise
from ._base import Array, GlobalStep, OneBound, Solution, check_concentration, within_range
from ._stick_breaking import Sticks
from .line_search import best_factor
from .seating import Seating
from .summaries import Counts


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
    """What all mixtures share."""

    @property
    def learnable(self) -> tuple[str, ...]:
        """The hyperparameters that `tuned` can set, by name."""
        return ("concentration",)

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

    def merged_shares(self, shares: Array, a: int, b: int) -> Array:
        """Weights after cluster b has joined cluster a and has none, (K,)."""
        joined = shares.copy()
        joined[a], joined[b] = shares[a] + shares[b], 0.0
        return joined

    @property
    @abstractmethod
    def seating(self) -> Seating:
        """How rows join clusters one after the other, with the weights integrated out."""

    @abstractmethod
    def mean_weights(self, summary: Counts) -> Array:
        """Posterior mean weights, normalised over the K clusters in use, (K,)."""

    @abstractmethod
    def bound(self, summary: Counts) -> float:
        """The allocation's part of the ELBO, without the assignment entropy."""

    def bound_at(self, summary: Counts, solution: Solution) -> float:
        """The same; it depends on the counts alone."""
        return solution.value

    def tuned(self, summary: Counts, names: tuple[str, ...], solution: Solution) -> tuple[Self, Solution]:
        """This prior with its concentration multiplied by the factor that raises the bound most, if it is among ``names``."""
        if "concentration" not in names:
            return self, solution
        best = self.scaled(best_factor(lambda factor: self.scaled(factor).bound(summary)).factor)
        return best, best.solve(summary)


@dataclass(frozen=True)
class DirichletProcess(MixturePrior):
    """Dirichlet-process mixture by stick-breaking: pi_k = u_k prod_{l<k} (1 - u_l),  u_k ~ Beta(1, concentration).

    The posterior is q(u_k) = Beta(1 + N_k, concentration + N_{>k}) with N_{>k} = sum_{l>k} N_l (Thesis Eq. 3.43; the count
    of later clusters as in Alg. 3.1, line 16).  Assignments are truncated at K, the sticks are not, so that adding an empty
    cluster changes nothing (nested truncation, Thesis 3.4.3).

    Parameters
    ----------
    concentration : float, 1e-300 to 1e300
        gamma; larger values expect more clusters.
    """

    concentration: float = 1.0

    def __post_init__(self) -> None:
        check_concentration(self.concentration)
        as_floats(self, "concentration")

    @property
    def max_clusters(self) -> int:
        """The most clusters that may be in use: no limit."""
        return sys.maxsize

    @property
    def seating(self) -> Seating:
        """The Chinese restaurant."""
        return Seating(self.concentration)

    def update(self, summary: Counts, solution: Solution) -> GlobalStep:
        """E[log u_k] + sum_{l<k} E[log (1 - u_l)], (K,)  (Thesis Eq. 3.32, 3.33)."""
        return GlobalStep(Sticks.of(summary.N, self.concentration).expected_log_weights())

    def bound(self, summary: Counts) -> float:
        """Sum over k of c_Beta(1, gamma) - c_Beta(1 + N_k, gamma + N_{>k})  (Thesis Eq. 3.44)."""
        return float(Sticks.of(summary.N, self.concentration).log_evidence(summary.N).sum())

    def order(self, summary: Counts) -> NDArray[np.integer]:
        """Decreasing size, which is the order of sticks with the highest bound."""
        return np.argsort(-summary.N, kind="stable")

    def mean_weights(self, summary: Counts) -> Array:
        """E[u_k] prod_{l<k} (1 - E[u_l]) over the K clusters in use, normalised, (K,)  (Thesis Eq. 3.18)."""
        weights = Sticks.of(summary.N, self.concentration).mean_weights()
        return np.asarray(weights / weights.sum())


@dataclass(frozen=True)
class FiniteDirichlet(MixturePrior):
    """Finite mixture with a symmetric prior: pi ~ Dirichlet(concentration / n_clusters, ...)  (Thesis 2.6).

    Clusters without rows keep their share of the prior, so adding an empty one among the ``n_clusters`` changes nothing.

    Parameters
    ----------
    n_clusters : int >= 1
        The number of clusters in the model; at most this many are ever in use.
    concentration : float, 1e-300 to 1e300
        Total pseudo-count, shared equally.
    """

    n_clusters: int = 10
    concentration: float = 1.0

    def __post_init__(self) -> None:
        check_concentration(self.concentration)
        as_floats(self, "concentration")
        check_count(self.n_clusters, "n_clusters")

    @property
    def max_clusters(self) -> int:
        """The most clusters that may be in use."""
        return self.n_clusters

    @property
    def seating(self) -> Seating:
        """The restaurant of ``n_clusters`` tables: a negative discount."""
        return Seating(self.concentration, -self._share)

    def update(self, summary: Counts, solution: Solution) -> GlobalStep:
        """E[log pi_k] = psi(N_k + a) - psi(N + n_clusters a),  a = concentration / n_clusters  (Thesis 2.6.2)."""
        return GlobalStep(psi(summary.N + self._share) - psi(summary.N.sum() + self.concentration))

    def bound(self, summary: Counts) -> float:
        """Log Dirichlet-multinomial normaliser ratio; unused clusters contribute nothing."""
        return float(log_rise(summary.N, self._share).sum() - log_rise(summary.N.sum(), self.concentration))

    def order(self, summary: Counts) -> NDArray[np.integer]:
        """Decreasing size (the bound does not depend on the order)."""
        return np.argsort(-summary.N, kind="stable")

    def mean_weights(self, summary: Counts) -> Array:
        """Posterior mean weights over the clusters in use, normalised, (K,)."""
        weights = summary.N + self._share
        return np.asarray(weights / weights.sum())

    @property
    def _share(self) -> float:
        return self.concentration / self.n_clusters
