"""Gaussian with one variance for all columns."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import psi

from .._sums import check_between
from . import _quadratic as quadratic
from ._arrays import namespace
from ._base import Array, Likelihood
from ._draws import gamma
from ._gamma import normaliser_ratio
from ._hyperparameters import check_coordinates, check_rounding, farthest, positive, require
from ._profile import Profile
from ._sample import Sample

TINY = 1e-300  # in place of a count of zero, to divide by


class SphericalGaussianPosterior(NamedTuple):
    """Posterior means of the cluster means (K, D) and of the variances (K,)."""

    means: Array
    variances: Array

    @property
    def covariances(self) -> Array:
        """Posterior mean of the covariances (K, D, D)."""
        return self.variances[:, None, None] * np.eye(self.means.shape[1])


@dataclass(frozen=True, eq=False)
class SphericalGaussian(Likelihood):
    """Gaussian likelihood with one precision for all columns, and its Normal-Gamma prior.

        x | mu, tau ~ Normal(mu, I / tau),   mu | tau ~ Normal(m, I / (kappa tau)),   tau ~ Gamma(a, b)

    with statistics t(x) = [x'x, x].  After N rows with sums s2 and s:

        kappa' = kappa + N,  m' = (kappa m + s) / kappa',  a' = a + N D / 2,  b' = b + (s2 + kappa m'm - kappa' m'm') / 2

    Parameters
    ----------
    mean : float or array (D,), default: the mean of the data
        m.
    mean_precision : float > 0, default 1e-3
        kappa, in rows.
    shape : float > 0, default 1.5
        a.
    rate : float > 0, default 0.1 x the mean variance of the columns x (shape - 1), or x shape where shape <= 1
        b, in squared units of the data: E[variance] = b / (a - 1).

    References
    ----------
    Blei and Jordan 2006, section 6 (the image model).
    """

    measures: ClassVar[bool] = True
    rounds: ClassVar[bool] = True
    tunable: ClassVar[tuple[str, ...]] = ("mean_precision", "shape", "rate")
    strength: ClassVar[tuple[str, ...]] = ("shape", "rate")

    mean: Any = None
    mean_precision: Any = None
    shape: Any = None
    rate: Any = None
    origin: Any = field(default=None, repr=False)
    unit: Any = field(default=None, repr=False)
    rounding: Any = field(default=None, repr=False)

    def resolve(self, sample: Sample) -> Self:
        """Fill in the defaults from a sample of the data, and check what was given."""
        origin, units = quadratic.coordinates(sample)
        constant = sample.deviation(sample.mean()) == 0.0
        variance = float((units[~constant] ** 2).sum() / sample.D) or 1.0
        unit = float(np.sqrt(variance))
        mean = quadratic.mean_prior(self.mean, origin, unit)
        kappa = quadratic.prior_rows(self.mean_precision)
        shape = positive("shape", 1.5 if self.shape is None else self.shape)
        require(shape >= quadratic.LEAST_SPARE, "shape", self.shape, f"at least {quadratic.LEAST_SPARE:g}")
        if self.rate is None:
            times = shape - 1.0 if shape > 1.0 else shape
            rate = float(quadratic.default_spread("rate", np.asarray(variance), times, "shape", self.shape))
        else:
            rate = positive("rate", self.rate)
            quadratic.check_ratio("rate", self.rate, rate / variance)
        lost = quadratic.rounding(sample, np.full(sample.D, unit))
        return replace(
            self,
            mean=mean,
            mean_precision=kappa,
            shape=shape,
            rate=rate,
            origin=origin,
            unit=unit,
            rounding=float(np.where(np.isinf(lost), float(constant.all()), lost).sum()),
        )

    @property
    def largest(self) -> Any:
        """The largest size of a value, (D,) where units are known."""
        return farthest(self.origin, self.unit)

    @property
    def n_statistics(self) -> int:
        """F = 1 + D."""
        return 1 + self._D

    @property
    def portable(self) -> bool:
        """Yes."""
        return True

    def features(self, X: Any, out: Any) -> Any:
        """T (n, F): the squared length of the working coordinates z = (x - origin) / unit, then z."""
        if isinstance(X, np.ndarray):
            z = quadratic.standardised(X, self.origin, self.unit, out[:, 1:])
            np.einsum("nd,nd->n", z, z, out=out[:, 0])
            return out
        z = quadratic.standardised(X, self.origin, self.unit)
        out[:, 1:] = z
        out[:, 0] = namespace(X).sum(z * z, axis=1)
        return out

    def spread_out(self, T: Array, variances: Array) -> None:
        """Add to features T (n, F) what squares have more where values are spread about theirs with ``variances`` (n, D)."""
        T[:, 0] += variances.sum(axis=1) / self.unit**2

    def log_base(self, X: Array) -> Array:
        """Log h(x) = -D (log 2 pi / 2 + log unit), (n,)."""
        return np.full(len(X), -self._D * (0.5 * np.log(2.0 * np.pi) + np.log(self.unit)))

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """-E[tau] / 2 on the squared length, E[tau] m' on columns; b = D (E[log tau] - 1 / kappa') / 2 - E[tau] m'm' / 2."""
        kappa, m, a, b = self._update(N, S)
        tau = a / b
        D = self._D
        constant = 0.5 * (D * (psi(a) - np.log(b) - 1.0 / kappa) - tau * ((m**2).sum(axis=1) + self.rounding))
        return np.column_stack([-0.5 * tau * quadratic.GRAIN, tau[:, None] * m]), np.asarray(constant)

    def draw_weights(self, N: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """The same of tau and means drawn from their posterior."""
        kappa, m, a, b = self._update(N, S)
        tau = gamma(rng, a, b)
        mu = m + rng.standard_normal(m.shape) / np.sqrt(kappa * tau)[:, None]
        constant = 0.5 * (self._D * np.log(tau) - tau * ((mu**2).sum(axis=1) + self.rounding))
        return np.column_stack([-0.5 * tau * quadratic.GRAIN, tau[:, None] * mu]), np.asarray(constant)

    def log_marginal(self, N: Array, S: Array) -> Array:
        """LogZ(kappa', a', b') - logZ(kappa, a, b), (K,)."""
        kappa, _, spread = self._seen(N, S)
        nothing = self._seen(np.zeros(1), np.zeros((1, self.n_statistics)))[2]  # nothing gains nothing, to the last bit
        prior = self.rate / self.unit**2 + nothing
        gain = np.maximum(spread - nothing, 0.0)
        ratio = normaliser_ratio(self.shape, prior, 0.5 * self._D * N, gain)
        return np.asarray(ratio - 0.5 * self._D * np.log(kappa / self.mean_precision))

    def divergence(self, X: Array, centers: Array) -> Array:
        """Half the squared distance under the prior mean of the precision, (n, J)."""
        width = np.sqrt(self.shape / self.rate)
        return quadratic.squared_distances((X - self.origin) * width, (centers - self.origin) * width)

    def posterior(self, N: Array, S: Array) -> SphericalGaussianPosterior:
        """Posterior means of mu and of the variance, b' / (a' - 1) (where that exists, else b' / a')."""
        _, m, a, b = self._update(N, S)
        variances = b / np.where(a > 1.0, a - 1.0, a) * self.unit**2
        return SphericalGaussianPosterior(self.origin + self.unit * m, variances)

    def profile(self, N: Array, S: Array) -> Profile:
        """Mean and variance of each column under each cluster."""
        means, variances = self.posterior(N, S)
        return Profile.of_columns(means, np.repeat(variances[:, None], self._D, axis=1))

    def log_predictive(self, X: Array, N: Array, S: Array) -> Array:
        """Student-t with 2 a' degrees of freedom, mean m', shape I b' (kappa' + 1) / (a' kappa'), (n, K)."""
        (kappa, m, a, b), D = self._update(N, S), self._D
        Z = (X - self.origin) / self.unit
        out = np.empty((len(Z), len(N)))
        for k in range(len(N)):
            width = b[k] * (kappa[k] + 1.0) / (a[k] * kappa[k])
            squares = ((Z - m[k]) ** 2).sum(axis=1) / width
            out[:, k] = quadratic.log_student(squares, D * np.log(width), 2.0 * a[k], D)
        return np.asarray(out - D * np.log(self.unit))

    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` rows (size, D) from the predictive Student-t of one cluster."""
        kappa, m, a, b = self._update(np.atleast_1d(N), np.atleast_2d(S))
        width = np.sqrt(b * (kappa + 1.0) / (a * kappa)) * np.eye(self._D)
        Z = m[0] + quadratic.sample_student(width, 2.0 * float(a[0]), rng, size)
        return np.asarray(self.origin + self.unit * Z)

    def widened(self, least: float, names: Collection[str]) -> Self:
        """With a larger rate, and means known for as many rows more."""
        if "rate" not in names:
            return self
        times = 1.0 + least * self.shape * self.unit**2 / self.rate
        wider = replace(self, rate=self.rate * times)
        return wider.scaled("mean_precision", times) if "mean_precision" in names else wider

    def resolved_columns(self) -> int:
        """The length of ``origin``."""
        return self._D

    def check_sums(self, N: Array, S: Array) -> None:
        """Check the unit, and that sums of squares are at least those of the means."""
        check_coordinates(self.origin, self.unit)
        check_rounding(self.rounding)
        check_between("squares of sums", (S[:, 1:] ** 2).sum(axis=1) / np.maximum(N, TINY), S[:, 0])

    @property
    def _D(self) -> int:
        if self.origin is None:
            raise TypeError("this likelihood has no data yet; call resolve(sample) first.")
        return len(self.origin)

    def _update(self, N: Array, S: Array) -> tuple[Array, Array, Array, Array]:
        """kappa', m', a', b' in working coordinates."""
        kappa, m, spread = self._seen(N, S)
        return kappa, m, self.shape + 0.5 * self._D * N, self.rate / self.unit**2 + spread

    def _seen(self, N: Array, S: Array) -> tuple[Array, Array, Array]:
        """kappa', m' and what rows add to b."""
        m0 = (self.mean - self.origin) / self.unit
        kappa = self.mean_precision + N
        m = (self.mean_precision * m0 + S[:, 1:]) / kappa[:, None]
        scatter = (
            quadratic.GRAIN * S[:, 0]
            + N * self.rounding
            + self.mean_precision * (m0**2).sum()
            - kappa * (m**2).sum(axis=1)
        )
        return kappa, m, 0.5 * np.maximum(scatter, 0.0)
