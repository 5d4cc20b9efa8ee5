"""Gaussian with mean zero and full covariance."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from . import _quadratic as quadratic
from ._base import Array
from ._hyperparameters import check_coordinates, check_rounding, farthest
from ._profile import Profile
from ._sample import Sample
from ._size import Size
from ._wishart_prior import Precisions, WishartPrior, prior_scale


class ZeroMeanGaussianPosterior(NamedTuple):
    """The cluster means, all zero (K, D), and the posterior mean of the covariances (K, D, D)."""

    means: Array
    covariances: Array


@dataclass(frozen=True, eq=False)
class ZeroMeanGaussian(WishartPrior):
    """Zero-mean Gaussian likelihood with full covariance and its Wishart prior, for image patches and other textures.

        x | Lambda ~ Normal(0, Lambda^-1),   Lambda ~ Wishart(nu, B^-1)

    with statistics t(x) = [x_a x_b (a <= b)].  After N rows with scatter S:  nu_k = nu + N,  B_k = B + S.

    Parameters
    ----------
    degrees_of_freedom : float > D - 1, default D + 2
        nu.
    scale : float, array (D,) or array (D, D), default 0.1 x the mean squares of the data x (nu - D - 1)
        B, positive definite, in squared units of the data: E[covariance] = B / (nu - D - 1).
    correlation : float from 0 to 1, default 0, or 1 where the scale is a matrix
        lambda, the share of the correlations C of the data, or of that matrix, that is expected
        within clusters: B_ab = s_a s_b ((1 - lambda) delta_ab + lambda C_ab).

    References
    ----------
    2013 supplement, section 1, Eq. 3 to 20.
    """

    measures: ClassVar[bool] = True
    rounds: ClassVar[bool] = True

    degrees_of_freedom: Any = None
    scale: Any = None
    correlation: Any = None
    unit: Any = field(default=None, repr=False)
    rounding: Any = field(default=None, repr=False)
    pattern: Any = field(default=None, repr=False)

    def resolve(self, sample: Sample) -> Self:
        """Fill in the defaults from a sample of the data, and check what was given."""
        nu = quadratic.prior_degrees(self.degrees_of_freedom, sample.D)
        unit = sample.spread(np.zeros(sample.D))
        pattern = sample.without_outliers().correlations(np.zeros(sample.D), unit)
        scale = prior_scale(self.scale, self.correlation, unit**2, pattern, nu)
        lost = quadratic.rounding(sample, unit)
        return replace(
            self,
            degrees_of_freedom=nu,
            unit=unit,
            rounding=np.where(np.isinf(lost), 1.0, lost),
            **scale._asdict(),
        )

    def size(self, missing: NDArray[np.bool_], largest: Array) -> Size:
        """The size of a family of all products of D columns."""
        return quadratic.size(len(largest))

    @property
    def largest(self) -> Any:
        """The largest size of a value, (D,) where units are known."""
        return farthest(0.0, self.unit)

    @property
    def n_statistics(self) -> int:
        """F = D (D + 1) / 2."""
        return quadratic.n_products(len(self._unit))

    @property
    def portable(self) -> bool:
        """Yes."""
        return True

    def features(self, X: Array, out: Array) -> Array:
        """T (n, F): packed products of the scaled columns."""
        quadratic.packed_products(X, np.zeros(len(self._unit)), self._unit, False, out)
        return out

    def spread_out(self, T: Array, variances: Array) -> None:
        """Add to features T (n, F) what squares have more where values are spread about theirs with ``variances`` (n, D)."""
        quadratic.spread_out(T, variances / self._unit**2)

    def log_base(self, X: Array) -> Array:
        """Log h(x) = -(D / 2) log 2 pi - sum_d log unit_d, (n,)."""
        return np.full(len(X), -0.5 * len(self._unit) * np.log(2.0 * np.pi) - np.log(self._unit).sum())

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """E[-Lambda / 2] = -nu_k B_k^-1 / 2 on products; b = E[log |Lambda|] / 2  (2013 supplement, Eq. 19 and 20)."""
        nu, L = self._update(N, S)
        P = nu[:, None, None] * quadratic.inverses(L)
        b = 0.5 * quadratic.expected_log_determinant(nu, quadratic.log_determinant(L), len(self._unit))
        b -= 0.5 * np.einsum("kaa,a->k", P, self.rounding)
        return -0.5 * quadratic.pack_quadratic(P), b

    def draw_weights(self, N: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """The same of precisions drawn from their posterior."""
        half, logdet = quadratic.draw_wishart(*self._update(N, S), rng)
        P = half @ half.swapaxes(1, 2)
        b = 0.5 * (logdet - np.einsum("kaa,a->k", P, self.rounding))
        return -0.5 * quadratic.pack_quadratic(P), b

    def log_marginal(self, N: Array, S: Array) -> Array:
        """LogZ(nu_k, B_k) - logZ(nu, B), (K,)  (2013 supplement, Eq. 8)."""
        D = len(self._unit)
        nu, L = self._update(np.append(N, 0.0), np.vstack([S, np.zeros(self.n_statistics)]))
        found = quadratic.log_wishart(nu, quadratic.log_determinant(L), D)
        return np.asarray(found[:-1] - found[-1])

    def divergence(self, X: Array, centers: Array) -> Array:
        """Divergence (n, J) between the covariances that single rows suggest, smoothed by the prior.

        With M(x) = (B + x x') / (nu + 1), and z, c the rows whitened by B:

            KL[Normal(0, M(x)) || Normal(0, M(c))] = ( tr(M(c)^-1 M(x)) - D - log |M(x)| + log |M(c)| ) / 2
        """
        half = np.linalg.inv(quadratic.cholesky(self.scale)).T
        Z = X @ half
        C = centers @ half
        D = len(self._unit)
        z = (Z**2).sum(axis=1)[:, None]
        c = (C**2).sum(axis=1)
        trace = D - c / (1.0 + c) + z - (Z @ C.T) ** 2 / (1.0 + c)
        return np.asarray(0.5 * np.maximum(trace - D - np.log1p(z) + np.log1p(c), 0.0))

    def posterior(self, N: Array, S: Array) -> ZeroMeanGaussianPosterior:
        """Posterior mean of the covariance, B_k / (nu_k - D - 1) (where that exists, else B_k / nu_k)."""
        (nu, L), D = self._update(N, S), len(self._unit)
        spare = np.where(nu > D + 1.0, nu - D - 1.0, nu)
        covariances = L @ L.swapaxes(1, 2) / spare[:, None, None] * np.outer(self._unit, self._unit)
        return ZeroMeanGaussianPosterior(np.zeros((len(N), D)), covariances)

    def profile(self, N: Array, S: Array) -> Profile:
        """Mean and variance of each column under each cluster."""
        means, covariances = self.posterior(N, S)
        return Profile.of_columns(means, covariances.diagonal(axis1=1, axis2=2))

    def log_predictive(self, X: Array, N: Array, S: Array) -> Array:
        """Student-t with nu_k - D + 1 degrees of freedom, mean 0, shape B_k / dof, (n, K)."""
        (nu, L), Z, D = self._update(N, S), X / self._unit, len(self._unit)
        out = np.empty((len(Z), len(N)))
        for k in range(len(N)):
            dof = float(nu[k]) - D + 1.0
            shape = L[k] / np.sqrt(dof)
            logdet = float(quadratic.log_determinant(shape))
            out[:, k] = quadratic.log_student(quadratic.mahalanobis(Z, shape), logdet, dof, D)
        return np.asarray(out - np.log(self._unit).sum())

    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` rows (size, D) from the predictive Student-t of one cluster."""
        nu, L = self._update(np.atleast_1d(N), np.atleast_2d(S))
        dof = float(nu[0]) - len(self._unit) + 1.0
        return np.asarray(quadratic.sample_student(L[0] / np.sqrt(dof), dof, rng, size) * self._unit)

    def _precisions(self, N: Array, S: Array) -> Precisions:
        return Precisions.of_factors(
            np.arange(len(self._unit)), self._unit, self.degrees_of_freedom, *self._update(N, S)
        )

    def resolved_columns(self) -> int:
        """The length of ``unit``."""
        return len(self._unit)

    def check_sums(self, N: Array, S: Array) -> None:
        """Check the units; factoring shows whether the scatter is positive definite."""
        super().check_sums(N, S)
        check_coordinates(0.0, self.unit)
        check_rounding(self.rounding)

    @property
    def _unit(self) -> Array:
        if self.unit is None:
            raise TypeError("this likelihood has no data yet; call resolve(sample) first.")
        return np.asarray(self.unit)

    def _update(self, N: Array, S: Array) -> tuple[Array, Array]:
        D = len(self._unit)
        base = self.scale / np.outer(self._unit, self._unit)
        K = len(N)
        B = quadratic.scatters(S, np.arange(D), D, base, N, self.rounding, np.zeros(K), np.zeros((K, D)))
        return np.asarray(self.degrees_of_freedom + N), quadratic.cholesky(B)
