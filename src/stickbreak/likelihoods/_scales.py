"""Latent scales: what a likelihood with a scale u for each row in each cluster says to the local step."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, psi

from ..kernels.scales import add_scales, integrate_scales
from .responsibilities import Responsibilities

Array = NDArray[np.floating]

OWN = 3  # statistics
HARD = 5.0  # q(u) of rows that are given to a cluster before it has parameters is that of tails nu = 5, with mean 1


class Scales(NamedTuple):
    """Scales u | z = k ~ Gamma(nu / 2, nu / 2) of rows x | u, z = k ~ Normal(mu_k, (u Lambda_k)^-1) in D columns.

    The best q(u) has the shape a = (nu + D) / 2, and any q(u) makes a valid bound.  All but three statistics of a row are
    multiplied by E[u].  Of these three, which only the local step knows, the first is E[u] itself, the others are

        E[log u] - E[u] + 1 - (psi(h) - log h)   and   H(q(u)) - H(Gamma(h, h)),   with h = (5 + D) / 2

    They are 1, 0, 0 for q(u) = Gamma(h, h): those of rows without parameters.

    tails : nu
    columns : D
    """

    tails: float
    columns: int

    @property
    def n_statistics(self) -> int:
        """Three."""
        return OWN

    @property
    def constant(self) -> float:
        """What the bound gains for each row, whatever its scale."""
        nu = self.tails
        D = self.columns
        hard = 0.5 * (HARD + D)
        likely = _log_mean(hard)
        entropy = _entropy(hard)
        prior = 0.5 * nu * (np.log(0.5 * nu) - 1.0) - gammaln(0.5 * nu)
        return float(prior - (0.5 * D - 1.0) + (0.5 * (nu + D) - 1.0) * likely + entropy)

    @property
    def weights(self) -> Array:
        """What the three statistics of scales count in the bound, (3,), apart from squares."""
        D = self.columns
        return np.array([0.5 * D - 1.0, 0.5 * (self.tails + D) - 1.0, 1.0])

    @property
    def shape(self) -> float:
        """The shape a of the best q(u)."""
        return 0.5 * (self.tails + self.columns)

    @property
    def offsets(self) -> tuple[float, float]:
        """What is added to log E[u] - E[u] and log E[u] in the last two statistics of a row."""
        a = self.shape
        hard = 0.5 * (HARD + self.columns)
        likely = _log_mean(a) + 1.0 - _log_mean(hard)
        return float(likely), float(_entropy(a) - _entropy(hard))

    def integrate(self, C: Array) -> Array | None:
        """Integrate scales out of scores C (n, K), in place, and return E[u], (n, K).

        None if scores are beyond the range of float32, and then C is spoilt.
        """
        D = self.columns
        a = self.shape
        score = gammaln(a) - gammaln(0.5 * self.tails) - 0.5 * D * np.log(0.5 * self.tails)
        U = np.empty_like(C)
        exact = C.dtype == np.float64
        fine = integrate_scales(C, 0.5 * D - 1.0, self.tails, a, float(score) - self.constant, exact, U)
        return U if fine else None

    def add(self, kept: Responsibilities, weights: Array, means: Array, S: Array) -> None:
        """Add what rows with E[u] = ``means`` say to the last two statistics."""
        add_scales(*kept, weights, means, *self.offsets, S)


def _log_mean(a: float) -> float:
    """E[log u] of Gamma(a, a)."""
    return float(psi(a) - np.log(a))


def _entropy(a: float) -> float:
    """The entropy of Gamma(a, a)."""
    return float(a - np.log(a) + gammaln(a) + (1.0 - a) * psi(a))
