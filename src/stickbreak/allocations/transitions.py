"""Transitions between so many states as blocked samplers draw them: shares of the states, then a row for each state."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ..kernels.special import log_rise
from ..kernels.transitions import draw_from_shares
from ._base import Array
from .concentration import Belief
from .seating import Seating, log_dirichlet

LEAST = 1e-300  # pseudo-count of a state


def pseudo_counts(shares: Array, K: int, alpha: float, kappa: float, first: float) -> Array:
    """Pseudo-counts (K + 1, n) of first states and transitions from K states, alpha beta + kappa delta_j, for shares (n,)."""
    prior = np.vstack([first * shares, np.tile(alpha * shares, (K, 1))])
    prior[np.arange(1, K + 1), np.arange(K)] += kappa
    return np.asarray(np.maximum(prior, LEAST))


@dataclass(frozen=True)
class Transitions:
    """The sticky HDP-HMM of L states, its weak limit (Fox et al. 2011), at a draw of the shares.

        beta ~ Dirichlet(gamma / L, ...),    pi_j ~ Dirichlet(alpha beta + kappa delta_j),    pi_0 ~ Dirichlet(alpha_0 beta)

    As L grows these are the transitions of `HDPMarkovChain`; with equal shares those of `FiniteMarkovChain`.

    Attributes
    ----------
    alpha, kappa, first : concentrations of the rows of transitions, and alpha_0
    shares : (L,) beta
    concentration : gamma
    """

    alpha: float
    kappa: float
    first: float
    shares: Array
    concentration: float

    @property
    def L(self) -> int:
        """Number of states."""
        return len(self.shares)

    @property
    def prior(self) -> Array:
        """The pseudo-counts of first states and transitions, (L + 1, L)."""
        return pseudo_counts(self.shares, self.L, self.alpha, self.kappa, self.first)

    def log_chance(self, counted: Array) -> float:
        """Log probability of first states and transitions (L + 1, L) given the shares, rows integrated out."""
        strength = np.append(self.first, np.full(self.L, self.alpha + self.kappa))
        return float(log_rise(counted, self.prior).sum() - log_rise(counted.sum(axis=1), strength).sum())

    def draw_log_rows(self, counted: Array, rng: np.random.Generator) -> Array:
        """Logs of first-state probabilities and transitions drawn from their posterior, (L + 1, L)."""
        return log_dirichlet(counted + self.prior, rng)

    def with_drawn_shares(self, belief: Belief, counted: Array, rng: np.random.Generator) -> Self:
        """Shares, and a concentration, drawn given first states and transitions (L + 1, L), rows integrated out.

        How many of the transitions were drawn from the shares is drawn first: tables of a Chinese restaurant with weights
        alpha beta_k + kappa delta_jk.  Of those that stay in a state j some were drawn by stickiness and say nothing of the
        shares, each with chance kappa / (kappa + alpha beta_j): the override variables of Fox et al.
        """
        drawn = np.empty_like(counted)
        draw_from_shares(counted, self.prior, rng.random(int(counted.sum())), drawn)
        own = self.alpha * self.shares
        stays = np.arange(1, self.L + 1), np.arange(self.L)
        drawn[stays] -= rng.binomial(drawn[stays].astype(np.int64), self.kappa / (self.kappa + np.maximum(own, LEAST)))
        N = drawn.sum(axis=0)
        gamma = belief.drawn(self.concentration, lambda c: self._limit(c).log_labels(N), rng)
        shares = np.exp(self._limit(gamma).draw_log_weights(N, rng))
        return replace(self, shares=shares, concentration=gamma)

    def _limit(self, concentration: float) -> Seating:
        """The prior of the shares: a symmetric Dirichlet of L states."""
        return Seating(concentration, -concentration / self.L)
