"""Allocations for topic models, where documents share topics in their own proportions: HDP and finite (LDA)."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, psi

from .._arguments import as_floats, check_count
from ..kernels.dirichlet_mean import dirichlet_mean
from ._base import CURVATURE, RANGE, Array, GlobalStep, OneBound, Solution, Solved, check_concentration, within_range
from ._sticks import stick_bound, stick_logits
from .concentration import GammaConcentration, check_belief
from .line_search import best_factor
from .mixture import DirichletProcess
from .shared_sticks import SharedSticks, Stick
from .summaries import Counts, Documents

LEAST_SHARE = 1e-6  # of a topic in a start
TOKENS_OF_A_DRAW = 4.0  # of a topic from the shares: 2 or 3 in documents of few words, 10 in those of hundreds


class TopicPrior(OneBound, ABC):
    """What all topic models share.  Proportions of document d: pi_d ~ Dirichlet(a_1, ..., a_K, a_rest), a = alpha E[beta].

    With q(pi_d) = Dirichlet(theta_d), a document's part of the bound (Thesis Eq. 5.27) is

        - c(theta_d) + sum_k (N_dk + alpha beta_k - theta_dk) E[log pi_dk] + c(alpha beta)

    over k = 1, ..., K and the rest, with c(a) = log Gamma(sum a) - sum log Gamma(a).  Summaries hold its additive parts:
    P = sum_d E[log pi_d] (Eq. 5.38) and Q = sum_d log Gamma(theta_d) - (theta_d - N_d) E[log pi_d] (Eq. 5.48).
    """

    document_concentration: float

    def with_document_concentration(self, value: float) -> Self:
        """This prior with another alpha, the nearest to a value that is allowed."""
        prior: Any = self
        changed: Self = replace(prior, document_concentration=within_range(value, *RANGE))
        return changed

    def _scaled(self, factor: float) -> Self:
        return self.with_document_concentration(self.document_concentration * factor)

    @abstractmethod
    def solve(self, summary: Documents) -> Solution:
        """E[beta] of the topics and of the rest at the optimum, (K + 1,)."""

    @abstractmethod
    def at(self, summary: Documents, shares: Array) -> Solution:
        """The solution with these shares (K + 1,)."""

    def bound_at(self, summary: Documents, solution: Solution) -> float:
        """The allocation's part of the ELBO at a solution, without the assignment entropy."""
        return float(summary.Q.sum() + summary.Q_rest + solution.value)

    def bound(self, summary: Documents) -> float:
        """The same at the optimum."""
        return self.bound_at(summary, self.solve(summary))

    def update(self, summary: Documents, solution: Solution) -> GlobalStep:
        """Pseudo-counts of the topics in every document, a = alpha E[beta], and of the rest (K + 1,)."""
        return GlobalStep(np.zeros(summary.K), self.document_concentration * solution.shares)

    def mean_weights(self, summary: Documents) -> Array:
        """Posterior mean shares of the K topics in use, normalised, (K,)."""
        shares = self.solve(summary).shares[:-1]
        return np.asarray(shares / shares.sum())

    def merge_gains(
        self, summary: Counts, shares: Array, first: NDArray[np.integer], second: NDArray[np.integer]
    ) -> Array:
        """Zero: sums do not tell what the documents gain where topics first[i] and second[i] become one, (n,)."""
        return np.zeros(len(first))

    def merged_shares(self, shares: Array, a: int, b: int) -> Array:
        """Shares after topic b has joined topic a and has none, (K + 1,)."""
        joined = shares.copy()
        joined[a], joined[b] = shares[a] + shares[b], 0.0
        return joined

    def rest_of_one(self, sizes: Array) -> float | None:
        """The best share of what is not in use where documents with ``sizes`` (D,) tokens have one topic; None if not known."""
        return None

    @property
    def flat(self) -> DirichletProcess:
        """The prior for rows without documents."""
        return DirichletProcess()


@dataclass(frozen=True)
class HierarchicalDirichletProcess(SharedSticks[Documents], TopicPrior):
    """HDP topic model with direct assignments: beta by sticks u_k ~ Beta(1, concentration), pi_d ~ DP(alpha beta).

    The posterior is q(u_k) = Beta(w_k u_k, w_k (1 - u_k)), with w_k as in `stick_weight` (Thesis Eq. 5.39 has the sum of the
    counts) and u found by L-BFGS (5.3.2).  E[c(alpha beta)] has no closed form.  With log Gamma(x) = log Gamma(1 + x) - log x,

        E[c(alpha beta)] >= log Gamma(alpha) + sum_k { E[log alpha beta_k] - log Gamma(1 + alpha m_k) - s_k Var(beta_k) },
        s_k = C alpha^2 / (1 + C alpha m_k),    C = pi^2 / 12

    over k = 1, ..., K + 1, where m = E[beta] (see `HDPMarkovChain`, and `stick_weight` for what is added to w).  The
    surrogate of Thesis Eq. 5.24 bounds log Gamma(1 + x) by its chord from 0 to alpha instead, which costs up to
    alpha log(alpha) nats a document.

    Parameters
    ----------
    document_concentration : float, 1e-12 to 1e6
        alpha: how alike the documents are; small values give documents of few topics.
    concentration : float, 1e-12 to 1e6, or `GammaConcentration`
        gamma; larger values expect more topics.
    """

    document_concentration: float = 1.0
    concentration: float | GammaConcentration = 1.0

    def __post_init__(self) -> None:
        check_concentration(self.document_concentration, "document_concentration", *RANGE)
        as_floats(self, "document_concentration")
        check_belief(self, *RANGE)

    @property
    def max_clusters(self) -> int:
        """The most topics that may be in use: no limit."""
        return sys.maxsize

    def order(self, summary: Documents) -> NDArray[np.integer]:
        """Decreasing expected log proportion, which is decreasing share."""
        return np.argsort(-(summary.P if summary.D > 0.0 else summary.N), kind="stable")

    def tuned(self, summary: Documents, names: tuple[str, ...], solution: Solution) -> tuple[Self, Solution]:
        """This prior with the concentrations ``names`` set to values that raise the bound, and its optimum."""
        best = self
        if "document_concentration" in names:
            factor = best_factor(lambda factor: self._scaled(factor).at(summary, solution.shares).value).factor
            best, solution = best._or_better(solution, best._scaled(factor), summary)
        if "concentration" in names:
            best, solution = best._with_best_concentration(summary, solution)
        return best, solution

    def rest_of_one(self, sizes: Array) -> float:
        """It is gamma / (gamma + T) for T draws from the shares: alpha (psi(alpha + N_d) - psi(alpha)) for each document.

        There is one draw at least, also where all tokens together are less than one.
        """
        alpha = self.document_concentration
        draws = max(alpha * (psi(alpha + sizes) - psi(alpha)).sum(), 1.0)
        return float(self._belief.mean / (self._belief.mean + draws))

    def solve(self, summary: Documents) -> Solution:
        """The best sticks, by L-BFGS."""
        if summary.D == 0.0:  # a start, of counts alone
            rest = TOKENS_OF_A_DRAW * self._belief.mean  # it hardly moves from here
            counts = np.append(summary.N, rest)
            counts = np.maximum(counts, LEAST_SHARE * counts.sum())  # an empty topic may have documents yet
            return Solved(counts / counts.sum(), 0.0)
        return self._best(summary)

    def _begin(self, summary: Documents) -> tuple[Array, Array]:
        """The shares that would maximise the bound if they were known for certain."""
        D = float(summary.D)
        alpha = self.document_concentration
        shares = _dirichlet_mean(np.append(summary.P, summary.P_rest) / D, alpha)
        return stick_logits(shares), D * (1.0 + alpha * shares)

    def _sticks(self, summary: Documents) -> Stick:
        D = float(summary.D)
        P = np.append(summary.P, summary.P_rest)
        return Stick(partial(self._objective, P, D), np.full(len(P), D), self._strengths(D))

    def _objective(self, P: Array, D: float, gamma: float) -> Callable[[Array], tuple[float, Array]]:
        """The part of the bound that depends on u = expit(x), and its gradient with respect to x (Thesis Eq. 5.37)."""
        alpha = self.document_concentration
        rows = np.full(len(P), D)
        strengths = self._strengths(D)
        known = D * gammaln(alpha)

        def of_means(m: Array) -> tuple[float, Array, Array, Array]:
            a = np.maximum(alpha * m, 1e-300)
            part = CURVATURE * a
            spread = D * CURVATURE * alpha**2 / (1.0 + part)
            value = float(known - D * gammaln(a).sum() + a @ P)
            return value, a * (P - D * psi(a)), spread, -spread * part / (1.0 + part)

        return lambda x: stick_bound(x, rows, gamma, strengths, of_means)

    def _strengths(self, D: float) -> Array:
        """The number and the concentration of the documents that follow the shares, (1, 2)."""
        return np.array([[D, self.document_concentration]])


@dataclass(frozen=True)
class LatentDirichlet(TopicPrior):
    """Latent Dirichlet allocation: pi_d ~ Dirichlet(alpha beta) over ``n_topics`` topics  (Thesis 7.3).

    Topics not in use keep their share of a symmetric prior, so adding an empty one among the ``n_topics`` changes nothing.

    Parameters
    ----------
    n_topics : int >= 1
        The number of topics in the model; at most this many are ever in use.
    document_concentration : float, 1e-12 to 1e6
        alpha: the sum of the pseudo-counts of all topics in a document.
    symmetric : bool
        Whether beta is 1 / n_topics; otherwise it is chosen to maximise the bound.
    """

    n_topics: int = 10
    document_concentration: float = 1.0
    symmetric: bool = False

    def __post_init__(self) -> None:
        check_concentration(self.document_concentration, "document_concentration", *RANGE)
        as_floats(self, "document_concentration")
        check_count(self.n_topics, "n_topics")

    @property
    def max_clusters(self) -> int:
        """The most topics that may be in use."""
        return self.n_topics

    def order(self, summary: Documents) -> NDArray[np.integer]:
        """Decreasing size (the bound does not depend on the order)."""
        return np.argsort(-summary.N, kind="stable")

    def tuned(self, summary: Documents, names: tuple[str, ...], solution: Solution) -> tuple[Self, Solution]:
        """This prior with the document concentration set to a value that raises the bound, if it is among ``names``."""
        if "document_concentration" not in names:
            return self, solution
        best = self._scaled(best_factor(lambda factor: self._scaled(factor).solve(summary).value).factor)
        return best, best.solve(summary)

    def solve(self, summary: Documents) -> Solution:
        """Shares as given, or those of the highest bound."""
        D = float(summary.D)
        alpha = self.document_concentration
        spare = self.n_topics - summary.K
        shares = np.append(np.full(summary.K, 1.0), float(spare)) / self.n_topics
        if not self.symmetric:  # topics not in use have no share
            means = _dirichlet_mean(summary.P / D, alpha) if D else np.full(summary.K, 1.0 / summary.K)
            shares = np.append(means, 0.0)
        return self.at(summary, shares) if D else Solved(shares, 0.0)

    def at(self, summary: Documents, shares: Array) -> Solution:
        """The solution with these shares (K + 1,); symmetric ones are always equal."""
        return Solved(shares, self._value(summary, shares))

    def _value(self, summary: Documents, shares: Array) -> float:
        if self.symmetric:
            shares = np.append(np.full(summary.K, 1.0), float(self.n_topics - summary.K)) / self.n_topics
        if self.n_topics > summary.K and self.symmetric and summary.D > 0.0 and summary.P_rest == 0.0:
            return -np.inf  # all topics were in use until now, and sums do not tell what is left of one that is not
        used = shares > 0.0
        a = self.document_concentration * shares[used]
        P = np.append(summary.P, summary.P_rest)[used]
        return float(summary.D * (gammaln(a.sum()) - gammaln(a).sum()) + a @ P)


def _dirichlet_mean(logs: Array, total: float) -> Array:
    """The mean m of a Dirichlet of a known sum that maximises total m . logs - sum_k log Gamma(total m_k)."""
    m = np.empty(len(logs))
    dirichlet_mean(np.ascontiguousarray(logs), total, m)
    return m
