"""Gaussian with a covariance that is known and the same for all clusters."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from . import _quadratic as quadratic
from ._arrays import converted, like, namespace
from ._base import Array, Likelihood
from ._hyperparameters import check_coordinates, farthest, require
from ._profile import Profile
from ._sample import Sample
from ._size import Size


class KnownCovarianceGaussianPosterior(NamedTuple):
    """Posterior mean of the cluster means, (K, D)."""

    means: Array


@dataclass(frozen=True, eq=False)
class KnownCovarianceGaussian(Likelihood):
    """Gaussian likelihood with a known covariance shared by all clusters, and a Gaussian prior on the mean.

        x | mu ~ Normal(mu, Sigma),   mu ~ Normal(m, Sigma / kappa)

    with statistics t(x) = L^-1 (x - origin), Sigma = L L'.  After N rows with sum s:  kappa' = kappa + N,
    m' = (kappa m + s) / kappa'.

    Parameters
    ----------
    covariance : float, array (D,) or array (D, D), default 0.1 x the variances of the data
        Sigma: one variance, variances of the columns, or a positive definite matrix, in squared units of the data.
    mean : float or array (D,), default: the mean of the data
        m.
    mean_precision : float > 0, default 1e-3
        kappa, in rows.

    References
    ----------
    Blei and Jordan 2006, section 5; Lin 2013, section 5.
    """

    measures: ClassVar[bool] = True
    tunable: ClassVar[tuple[str, ...]] = ("mean_precision",)

    covariance: Any = None
    mean: Any = None
    mean_precision: Any = None
    origin: Any = field(default=None, repr=False)
    whitener: Any = field(default=None, repr=False)

    def resolve(self, sample: Sample) -> Self:
        """Fill in the defaults from a sample of the data, and check what was given."""
        D, (origin, unit) = sample.D, quadratic.coordinates(sample)
        mean = quadratic.mean_prior(self.mean, origin, unit)
        kappa = quadratic.prior_rows(self.mean_precision)
        default = quadratic.SHARE_OF_SPREAD * unit**2
        sigma = quadratic.symmetric_matrix("covariance", default if self.covariance is None else self.covariance, D)
        if self.origin is None:  # a model from a file does not know the variance of its data
            quadratic.check_ratio("covariance", self.covariance, np.diagonal(sigma) / unit**2)
        whitener = _whitener(sigma)
        return replace(self, covariance=sigma, mean=mean, mean_precision=kappa, origin=origin, whitener=whitener)

    def size(self, missing: NDArray[np.bool_], largest: Array) -> Size:
        """The means of D columns, and the D x D covariance that all clusters share."""
        D = len(largest)
        return Size(D, D, 8 * D, 8 * D * D)

    @property
    def largest(self) -> Any:
        """The largest size of a value, (D,) where units are known."""
        return farthest(self.origin, None if self.whitener is None else 1.0 / np.abs(self.whitener).max(axis=1))

    @property
    def n_statistics(self) -> int:
        """F = D."""
        return len(self._whitener)

    @property
    def portable(self) -> bool:
        """Yes."""
        return True

    def features(self, X: Array, out: Array) -> Array:
        """T (n, F): the rows in units in which the covariance is one, z = L^-1 (x - origin)."""
        exact = converted(X, namespace(X).float64) - like(self.origin, X, "float64")
        out[...] = converted(
            exact @ like(self._whitener, X, "float64"), out.dtype
        )  # columns that are nearly the same cancel
        return out

    def log_base(self, X: Array) -> Array:
        """Log h(x) = -(D log 2 pi + log |Sigma| + z'z) / 2, (n,)."""
        Z = self._to_work(X.astype(np.float64, copy=False))
        half_logdet = -np.log(np.diagonal(self._whitener)).sum()
        return np.asarray(-0.5 * (self.n_statistics * np.log(2.0 * np.pi) + (Z**2).sum(axis=1)) - half_logdet)

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """M' on z; b = -(m'm' + D / kappa') / 2."""
        kappa, m = self._update(N, S)
        return m, -0.5 * ((m**2).sum(axis=1) + self.n_statistics / kappa)

    def draw_weights(self, N: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """The same of means drawn from their posterior."""
        kappa, m = self._update(N, S)
        mu = m + rng.standard_normal(m.shape) / np.sqrt(kappa)[:, None]
        return mu, -0.5 * (mu**2).sum(axis=1)

    def log_marginal(self, N: Array, S: Array) -> Array:
        """(kappa' m'm' - kappa m m - D log(kappa' / kappa)) / 2, (K,)."""
        (kappa, m), (_, m0) = self._update(N, S), self._update(np.zeros(1), np.zeros((1, self.n_statistics)))
        squares = kappa * (m**2).sum(axis=1) - self.mean_precision * (m0**2).sum()
        return np.asarray(0.5 * (squares - self.n_statistics * np.log(kappa / self.mean_precision)))

    def divergence(self, X: Array, centers: Array) -> Array:
        """Half the squared Mahalanobis distance, (n, J)."""
        return quadratic.squared_distances(self._to_work(X), self._to_work(centers))

    def posterior(self, N: Array, S: Array) -> KnownCovarianceGaussianPosterior:
        """Posterior means of mu."""
        _, m = self._update(N, S)
        return KnownCovarianceGaussianPosterior(self._to_user(m))

    def profile(self, N: Array, S: Array) -> Profile:
        """Mean and variance of each column under each cluster."""
        means = self.posterior(N, S).means
        return Profile.of_columns(means, np.broadcast_to(np.diagonal(self.covariance), means.shape))

    def log_predictive(self, X: Array, N: Array, S: Array) -> Array:
        """Normal with mean m' and covariance Sigma (1 + 1 / kappa'), (n, K)."""
        kappa, m = self._update(N, S)
        widths = 1.0 + 1.0 / kappa
        D = self.n_statistics
        squares = 2.0 * quadratic.squared_distances(self._to_work(X), m)
        half_logdet = -np.log(np.diagonal(self._whitener)).sum()
        return np.asarray(-0.5 * (D * np.log(2.0 * np.pi * widths) + squares / widths) - half_logdet)

    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` rows (size, D) from the predictive of one cluster."""
        kappa, m = self._update(np.atleast_1d(N), np.atleast_2d(S))
        return self._to_user(m[0] + rng.standard_normal((size, self.n_statistics)) * np.sqrt(1.0 + 1.0 / kappa))

    def resolved_columns(self) -> int:
        """The number of rows and columns of ``whitener``."""
        rows, columns = self._whitener.shape
        require(rows == columns, "whitener", self.whitener, "square")
        return int(rows)

    def check_sums(self, N: Array, S: Array) -> None:
        """Check the origin, and that the whitener is that of the covariance."""
        check_coordinates(self.origin, 1.0)
        expected = _whitener(np.asarray(self.covariance))
        close = np.abs(self._whitener - expected).max() <= 1e-6 * np.abs(expected).max()
        require(bool(close), "whitener", self.whitener, "that of the covariance")

    @property
    def _whitener(self) -> Array:
        if self.whitener is None:
            raise TypeError("this likelihood has no data yet; call resolve(sample) first.")
        return np.asarray(self.whitener)

    def _to_work(self, X: Array) -> Array:
        return np.asarray((X - self.origin) @ self._whitener)

    def _to_user(self, Z: Array) -> Array:
        return np.asarray(self.origin + np.linalg.solve(self._whitener.T, Z.T).T)

    def _update(self, N: Array, S: Array) -> tuple[Array, Array]:
        kappa = self.mean_precision + N
        return kappa, (self.mean_precision * self._to_work(self.mean) + S) / kappa[:, None]


def _whitener(covariance: Array) -> Array:
    """L^-T (D, D), with the covariance L L'."""
    return np.ascontiguousarray(np.linalg.inv(np.linalg.cholesky(covariance)).T)
