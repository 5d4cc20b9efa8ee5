"""Allocations for hidden Markov models, where each row's state depends on the state before: sticky HDP-HMM and finite."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import psi, zeta

from .._arguments import as_floats, check_count, real, shown
from ..kernels import transitions as kernels
from ..kernels.chain_sticks import best_chain_sticks, chain_bound
from ..kernels.special import log_rise
from ._base import RANGE, Array, GlobalStep, OneBound, Solution, Solved, check_concentration, within_range
from ._sticks import first_scale, least_gain, stick_logits
from .concentration import Belief, GammaConcentration, Known, check_belief
from .line_search import best_factor
from .mixture import DirichletProcess
from .shared_sticks import SharedSticks, Stick
from .summaries import States
from .transitions import Transitions, pseudo_counts

LARGEST = RANGE[1]  # stickiness
ROW_STRENGTH = ("stickiness", "transition_concentration")  # together, of the prior of a row of transitions
FIRST_STEPS = 2  # towards the best sticks
SMALL = 0.06  # of alpha: the kappa below which a shifted bound is the tighter one
FLAT = np.pi**2 / 12  # half the second derivative of log Gamma(1 + x) at 0
FEWEST_TABLES = 0.1  # of a state without any, for the search to begin with


@dataclass(frozen=True)
class Duration:
    """A stickiness given as the number of steps that states are expected to last a priori: kappa = alpha (steps - 1).

    Parameters
    ----------
    steps : float >= 1
    """

    steps: float

    def __post_init__(self) -> None:
        if not 1.0 <= real(self.steps) <= LARGEST:
            raise ValueError(f"steps must be a number from 1 to {LARGEST:g}; got {shown(self.steps)}.")
        as_floats(self, "steps")

    def stickiness(self, transition_concentration: float) -> float:
        """kappa, for which (alpha + kappa) / alpha steps pass before a transition that is drawn from beta."""
        return min(transition_concentration * (self.steps - 1.0), LARGEST)


class ChainPrior(OneBound, ABC):
    """What all chains share.  Row j of the transitions: pi_j ~ Dirichlet(alpha beta_1, ..., alpha beta_j + kappa, ...).

    With q(pi_j) = Dirichlet(theta_j) at its optimum theta_j = M_j + alpha E[beta] + kappa delta_j (Thesis Eq. 6.40), the
    chain's part of the bound is, without the entropy of q(z) (Thesis Eq. 6.23, 6.26),

        sum_j { E[c(alpha beta + kappa delta_j)] - c(theta_j) } + E[log p(beta) / q(beta)]

    over the first states (j = 0, with alpha_0 and without kappa) and j = 1, ..., K, with
    c(a) = log Gamma(sum a) - sum log Gamma(a).
    """

    transition_concentration: float
    start_concentration: float
    stickiness: float

    @abstractmethod
    def solve(self, summary: States) -> Solution:
        """E[beta] of the states in use and of the rest at the optimum, (K + 1,)."""

    @abstractmethod
    def at(self, summary: States, shares: Array) -> Solution:
        """The solution with these shares (K + 1,)."""

    def bound_at(self, summary: States, solution: Solution) -> float:
        """The chain's part of the ELBO at a solution, without the entropy of q(z)."""
        return solution.value

    def bound(self, summary: States) -> float:
        """The same at the optimum."""
        return self.solve(summary).value

    def of_states(self, n: int) -> Self:
        """This prior, of n states where it has a number of them."""
        return self

    def tuned(self, summary: States, names: tuple[str, ...], solution: Solution) -> tuple[Self, Solution]:
        """This prior with the hyperparameters ``names`` set to values that raise the bound; one state tells nothing of them.

        kappa and alpha also change by a factor in common, the strength of the prior of a row of transitions: where rows are
        much alike, it grows without limit, and in turn each of the two would take small steps alone.
        """
        best = self
        value = None
        shares = solution.shares
        for group in (("stickiness",), ("transition_concentration",), ROW_STRENGTH, ("start_concentration",)):
            if set(group) <= set(names) and summary.K > 1:
                best, value = best._with_best(summary, group, shares, value)
        return best, solution if best is self else best.solve(summary)

    def _with_best(
        self, summary: States, names: tuple[str, ...], shares: Array, value: float | None
    ) -> tuple[Self, float | None]:
        """What raises the bound at given shares raises it all the more at the best ones; and its value there.

        value : that of this prior, if it is known
        """
        prior: Any = self
        now = {name: getattr(prior, name) for name in names}
        if min(now.values()) == 0.0:
            return self, value

        def scaled(factor: float) -> Any:
            return replace(prior, **{name: within_range(value * factor, *RANGE) for name, value in now.items()})

        found = best_factor(lambda factor: float(scaled(factor).at(summary, shares).value), value)
        return self if found.factor == 1.0 else scaled(found.factor), found.value

    @property
    def flat(self) -> DirichletProcess:
        """The prior for rows without sequences."""
        return DirichletProcess()

    def order(self, summary: States) -> NDArray[np.integer]:
        """Decreasing share, as far as counts tell."""
        return np.argsort(-summary.N, kind="stable")

    def mean_weights(self, summary: States) -> Array:
        """Posterior mean shares of the K states in use, normalised, (K,)."""
        shares = self.solve(summary).shares[:-1]
        return np.asarray(shares / shares.sum())

    def update(self, summary: States, solution: Solution) -> GlobalStep:
        """exp(E[log pi]) of the first states and of the transitions from each state, (K + 1, K)."""
        theta = self.counts(summary, solution.shares)
        return GlobalStep(np.zeros(summary.K), np.exp(psi(theta[:, :-1]) - psi(theta.sum(axis=1, keepdims=True))))

    def means(self, summary: States) -> Array:
        """Posterior means of the probabilities of first states and transitions among the K in use, (K + 1, K)."""
        theta = self.counts(summary, self.solve(summary).shares)[:, :-1]
        return np.asarray(theta / theta.sum(axis=1, keepdims=True))

    def counts(self, summary: States, shares: Array) -> Array:
        """theta, the pseudo-counts of first states and transitions, with the rest: (K + 1, K + 1)  (Thesis Eq. 6.40)."""
        return np.hstack([summary.transitions, np.zeros((summary.K + 1, 1))]) + self.prior_counts(shares)

    def prior_counts(self, shares: Array) -> Array:
        """The pseudo-counts of the prior for shares (K + 1,), (K + 1, K + 1)."""
        at = self.transition_concentration, self.stickiness, self.start_concentration
        return pseudo_counts(shares, len(shares) - 1, *at)

    def transitions(self, L: int) -> Transitions:
        """Transitions between L states for a sampler to begin with: equal shares."""
        at = self.transition_concentration, self.stickiness, self.start_concentration
        return Transitions(*at, np.full(L, 1.0 / L), self._belief.mean)

    @abstractmethod
    def with_drawn_shares(self, now: Transitions, counted: Array, rng: np.random.Generator) -> Transitions:
        """Transitions at shares drawn given first states and transitions (L + 1, L), by a step from ``now``."""

    @property
    @abstractmethod
    def _belief(self) -> Belief:
        """What is known of the concentration of the shares."""

    def merge_gains(
        self, summary: States, shares: Array, first: NDArray[np.integer], second: NDArray[np.integer]
    ) -> Array:
        """What merging states first[i] and second[i] adds to the log probability of transitions given shares (K + 1,), (n,)."""
        at = self.transition_concentration, self.stickiness, self.start_concentration
        gains = np.empty(len(first))
        merged = self._merged_share(shares[first], shares[second])
        pairs = np.ascontiguousarray(first), np.ascontiguousarray(second)  # one kind of arrays, one compilation
        kernels.transition_merges(summary.transitions, shares, *at, *pairs, merged, gains)
        return gains

    def merged_shares(self, shares: Array, a: int, b: int) -> Array:
        """Shares after state b has joined state a and has none, (K + 1,)."""
        joined = shares.copy()
        joined[a], joined[b] = self._merged_share(shares[a], shares[b]), 0.0
        return joined

    def _merged_share(self, a: Any, b: Any) -> Any:
        return a + b

    def _check(self) -> None:
        for name in ("transition_concentration", "start_concentration"):
            check_concentration(getattr(self, name), name, *RANGE)
            as_floats(self, name)
        if not 0.0 <= real(self.stickiness) <= LARGEST:
            raise ValueError(f"stickiness must be a number from 0 to {LARGEST:g}; got {shown(self.stickiness)}.")
        as_floats(self, "stickiness")


@dataclass(frozen=True)
class HDPMarkovChain(SharedSticks[States], ChainPrior):
    """Sticky HDP-HMM: beta by sticks u_k ~ Beta(1, concentration), pi_j ~ DP(alpha beta + kappa delta_j), Thesis Eq. 6.7.

    q(u_k) = Beta(w_k u_k, w_k (1 - u_k)), with w as in `stick_weight`.  With theta at its optimum the bound depends on the
    means of q(u) alone, which L-BFGS finds; nothing is left to alternate (6.3.2).  E[c(alpha beta + kappa delta_j)] has no
    closed form.  For all k but j, log Gamma(x) = log Gamma(1 + x) - log x is expanded to second order at the mean,

        E[log Gamma(alpha beta_k)] <= log Gamma(1 + alpha m_k) + s Var(beta_k) - E[log alpha beta_k],
        s = C alpha^2 / (1 + C alpha m_k),    C = pi^2 / 12 = psi'(1) / 2,

    and for k = j, with C = psi'(1 + kappa) / 2 and r = alpha m_j / kappa,

        E[log Gamma(kappa + alpha beta_j)] <= log Gamma(kappa + alpha m_j) + s' Var(beta_j),
        s' = C alpha^2 / (1 + C alpha m_j) + { log(1 + r) - r / (1 + r) } / m_j^2.

    Second derivatives of log Gamma(1 + kappa + x) and of -log(kappa + x) fall with x, so the best quadratic bound at the mean
    touches at x = 0 too; s is at most a few percent above its second coefficient for all alpha, and about alpha / m where alpha
    is large.  For small kappa, s' would be loose, so log Gamma(kappa + x) <= log Gamma(1 + kappa + x) - log x is used,
    which for kappa = 0 is the bound above.  These bounds replace the chords of Thesis Eq. 6.29 to 6.32.

    The terms are arranged as the Dirichlet-multinomial log probability of the counts given the shares m, minus the cost of the
    uncertainty of beta, so that no large terms cancel for any accepted concentration.

    Parameters
    ----------
    transition_concentration : float, 1e-12 to 1e6
        alpha: how alike the transitions from all states are.
    stickiness : float, 0 to 1e6
        kappa: pseudo-count of staying in a state.
    start_concentration : float, 1e-12 to 1e6
        alpha_0: how alike first states are to the shares of all states.
    concentration : float, 1e-12 to 1e6, or `GammaConcentration`
        gamma; larger values expect more states.
    """

    transition_concentration: float = 1.0
    stickiness: float = 50.0
    start_concentration: float = 10.0
    concentration: float | GammaConcentration = 5.0

    def __post_init__(self) -> None:
        self._check()
        check_belief(self, *RANGE)

    @property
    def max_clusters(self) -> int:
        """The most states that may be in use: no limit."""
        return sys.maxsize

    def tuned(self, summary: States, names: tuple[str, ...], solution: Solution) -> tuple[Self, Solution]:
        """This prior with the hyperparameters ``names`` set to values that raise the bound, one after another."""
        best, solution = super().tuned(summary, names, solution)
        if "concentration" in names:
            best, solution = best._with_best_concentration(summary, solution)
        return best, solution

    def solve(self, summary: States) -> Solution:
        """The best sticks, by L-BFGS."""
        return self._best(summary)

    def _begin(self, summary: States) -> tuple[Array, Array]:
        """Near the expected numbers of rows of transitions drawn from beta (Teh et al. 2006), by fixed point."""
        counted = summary.transitions
        K = counted.shape[1]
        tables = counted.sum(axis=0) + 1.0
        shares = np.append(tables, 1.0)
        slope = np.empty(K + 1)
        for _ in range(FIRST_STEPS):
            at = self.transition_concentration, self.stickiness, self.start_concentration
            kernels.transition_bound(counted, shares / shares.sum(), *at, slope)
            tables = slope[:K]  # m_k times the derivative by m_k is the number drawn from the shares
            shares = np.append(tables + FEWEST_TABLES, max(self._belief.mean, FEWEST_TABLES))
        return stick_logits(shares / shares.sum()), np.append(tables, 0.0) + K + 1.0

    def _sticks(self, summary: States) -> Stick:
        counted = summary.transitions
        return Stick(partial(self._objective, counted), self._exponents(summary.K), self._strengths(summary.K))

    def with_drawn_shares(self, now: Transitions, counted: Array, rng: np.random.Generator) -> Transitions:
        """Transitions at shares drawn given first states and transitions (L + 1, L)."""
        return now.with_drawn_shares(self._belief, counted, rng)

    @property
    def _shift(self) -> float:
        """1 where log Gamma(kappa + x) is replaced by log Gamma(1 + kappa + x) - log x, or else 0."""
        return float(self.stickiness < SMALL * self.transition_concentration)

    def _exponents(self, K: int) -> Array:
        """The coefficients of E[log beta_k] - log m_k in the bound, (K + 1,)."""
        exponents = np.full(K + 1, K + self._shift)
        exponents[K] = K + 1.0
        return exponents

    def _objective(self, counted: Array, gamma: float) -> Callable[[Array], tuple[float, Array]]:
        """The part of the bound that depends on u = expit(x), and its gradient with respect to x (Thesis Eq. 6.45, 6.47)."""
        terms = self._terms(counted, gamma)

        def value(x: Array) -> tuple[float, Array]:
            gradient = np.empty(len(x))
            return float(chain_bound(np.ascontiguousarray(x), *terms, gradient)), gradient

        return value

    def _search(self, summary: States, gamma: float, x: Array, counts: Array) -> tuple[Array, float]:
        """The best logits of stick means, from x (K,) on, and the bound there: `best_sticks` in one compiled loop."""
        terms = self._terms(summary.transitions, gamma)
        value = chain_bound(x, *terms, np.empty(len(x)))
        best = np.array(x)
        found = best_chain_sticks(best, first_scale(x, counts), least_gain(value), *terms)
        return best, float(found)

    def _terms(self, counted: Array, gamma: float) -> tuple[Any, ...]:
        """What `chain_bound` needs to know of a summary and of this prior."""
        K = counted.shape[1]
        alpha = self.transition_concentration
        kappa = self.stickiness
        first = self.start_concentration
        half = 0.5 * float(zeta(2.0, 1.0 + kappa))
        curvatures = np.array([[K - 1.0, K, alpha, FLAT], [1.0, 1.0, first, FLAT], [1.0, 0.0, alpha, half]])
        ratio = 0.0 if self._shift == 1.0 else alpha / kappa
        return counted, alpha, kappa, first, self._exponents(K), gamma, self._strengths(K), curvatures, ratio

    def _strengths(self, K: int) -> Array:
        """The number and the concentration of the rows of each kind that follow the shares, (2, 2)."""
        return np.array([[K, self.transition_concentration], [1.0, self.start_concentration]])


@dataclass(frozen=True)
class FiniteMarkovChain(ChainPrior):
    """Hidden Markov model of ``n_states`` states, each row of transitions pi_j ~ Dirichlet(alpha / n_states + kappa delta_j).

    States not in use keep their share of the prior, so adding an empty one among the ``n_states`` changes nothing.

    Parameters
    ----------
    n_states : int >= 1
        The number of states in the model; at most this many are ever in use.
    transition_concentration, start_concentration : float, 1e-12 to 1e6
        alpha and alpha_0: total pseudo-counts of a row of transitions, and of first states.
    stickiness : float, 0 to 1e6
        kappa: pseudo-count of staying in a state.
    """

    n_states: int = 10
    transition_concentration: float = 10.0
    stickiness: float = 0.0
    start_concentration: float = 10.0

    def __post_init__(self) -> None:
        self._check()
        check_count(self.n_states, "n_states")

    @property
    def max_clusters(self) -> int:
        """The most states that may be in use."""
        return self.n_states

    def of_states(self, n: int) -> Self:
        """This prior, of n states."""
        return replace(self, n_states=n)

    def solve(self, summary: States) -> Solution:
        """The states' equal shares, and that of those not in use, (K + 1,)."""
        return self.at(summary, np.append(np.ones(summary.K), self.n_states - summary.K) / self.n_states)

    def at(self, summary: States, shares: Array) -> Solution:
        """These shares; the bound is that of equal ones."""
        return Solved(shares, self._value(summary))

    def _value(self, summary: States) -> float:
        equal = np.append(np.ones(summary.K), self.n_states - summary.K) / self.n_states
        counted = summary.transitions
        prior = self.prior_counts(equal)
        strength = np.append(
            self.start_concentration, np.full(summary.K, self.transition_concentration + self.stickiness)
        )
        return float(log_rise(counted, prior[:, :-1]).sum() - log_rise(counted.sum(axis=1), strength).sum())

    def with_drawn_shares(self, now: Transitions, counted: Array, rng: np.random.Generator) -> Transitions:
        """The same: shares are equal for certain."""
        return now

    @property
    def _belief(self) -> Belief:
        """Alpha, as shares have no concentration."""
        return Known(self.transition_concentration)

    def _merged_share(self, a: Any, b: Any) -> Any:
        return a
