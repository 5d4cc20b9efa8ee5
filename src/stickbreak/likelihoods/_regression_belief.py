"""What rows tell of a linear function and its noise: the posterior of a regression, and its means."""

from typing import NamedTuple

import numpy as np

from . import _quadratic as quadratic
from ._base import Array


class RegressionPosterior(NamedTuple):
    """Posterior means of the coefficients (K, q, P) of P regressors, intercepts (K, q) and covariances (K, q, q)."""

    coefficients: Array
    intercepts: Array
    covariances: Array


class Left(NamedTuple):
    """What is left of sums of products, and of the prior of the line, once the M regressors are eliminated.

    n : (K,) numbers of rows with targets;  logdet_K : (K,) log |K'|
    targets : (K, q, q) upper triangles of B' less the B of the prior
    """

    n: Array
    logdet_K: Array
    targets: Array


class Belief(NamedTuple):
    """Posterior of M regressors, in working coordinates: nu' (K,) and L (K, M + q, M + q), Cholesky factors of J'."""

    nu: Array
    L: Array
    M: int

    @property
    def means(self) -> Array:
        """M' = Q P^-1, (K, q, M)."""
        return self.L[:, self.M :, : self.M] @ np.linalg.inv(self.L[:, : self.M, : self.M])

    @property
    def noise(self) -> Array:
        """R (K, q, q), with B' = R R'."""
        return self.L[:, self.M :, self.M :]

    @property
    def log_normaliser(self) -> Array:
        """LogZ(nu', J'), (K,)."""
        K = quadratic.log_determinant(self.L[:, : self.M, : self.M])
        return log_normaliser(self.nu, K, quadratic.log_determinant(self.noise), self.noise.shape[1])


def log_normaliser(nu: Array, logdet_K: Array, logdet_B: Array, q: int) -> Array:
    """LogZ(nu', J') = logZ of the Wishart - (q / 2) log |K'|, (K,)."""
    return np.asarray(quadratic.log_wishart(nu, logdet_B, q) - 0.5 * q * logdet_K)
