"""Gaussian with independent columns."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, psi

from .._sums import check_between
from ._base import Array
from ._columns import IndependentColumns
from ._draws import gamma, student_width
from ._gamma import normaliser_ratio
from ._hyperparameters import check_coordinates, check_rounding, farthest, positive_values, require
from ._quadratic import (
    DEFAULT_ROWS,
    GRAIN,
    LEAST_SPARE,
    check_ratio,
    coordinates,
    default_spread,
    mean_prior,
    rounding,
    standardised,
)
from ._sample import Sample
from ._shares import best_set, log_share
from .spherical_gaussian import SphericalGaussian

AGREED = 1e9  # rows for which the prior mean counts in a column in which the means of clusters agree
TRIED = tuple(
    np.geomspace(1e-3, 1e2, 6)
)  # rows for which it may count in one in which they differ, where none is known
TINY = 1e-300  # in place of a count of zero, to divide by
HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


class DiagonalGaussianPosterior(NamedTuple):
    """Posterior means of the cluster means (K, D) and variances (K, D)."""

    means: Array
    variances: Array

    @property
    def covariances(self) -> Array:
        """Posterior mean of the covariances (K, D, D)."""
        return self.variances[:, :, None] * np.eye(self.variances.shape[1])


@dataclass(frozen=True, eq=False)
class DiagonalGaussian(IndependentColumns):
    """Gaussian likelihood with a diagonal covariance, and a Normal-Gamma prior for each column.

        x_d | mu_d, tau_d ~ Normal(mu_d, 1 / tau_d)
        mu_d | tau_d ~ Normal(m_d, 1 / (kappa tau_d)),   tau_d ~ Gamma(a_d, b_d)

    with statistics t(x) = [x^2, x].  After n observed values with sums s2 and s1:

        kappa' = kappa + n,  m' = (kappa m + s1) / kappa',  a' = a + n / 2,  b' = b + (s2 + kappa m^2 - kappa' m'^2) / 2

    Missing values are integrated out exactly.

    A value that was rounded to steps of width w stands for values u spread evenly over its step.  Where values are tied, its
    density is that of these on average,

        E[log p(u | mu, tau)] = log p(x | mu, tau) - tau w^2 / 24  <=  log( P(step of x | mu, tau) / w )

    so that w^2 / 12 is added to each square, no cluster is narrower than rounding can tell, and the bound is one on the
    probability of the steps.  Constant columns are set aside.

    Parameters
    ----------
    mean : float or array (D,), default: the mean of the data
        m.
    mean_precision : float or array (D,), > 0, default 1e-3
        kappa, in rows.  Where it is learnt, so are the columns in which nothing tells clusters apart: kappa is 1e9 there, and
        their means agree, which costs nothing.  The bound then counts the prior probability of the set of these columns, each
        of which is one with an unknown chance: in m of D columns means differ with probability B(m + 1/2, D - m + 1/2) /
        B(1/2, 1/2).
    shape : float or array (D,), > 0, default 1.5
        a, half a number of rows.
    rate : float or array (D,), > 0, default 0.1 x the variance of the data x (shape - 1), or x shape where shape <= 1
        b, in squared units of the data: E[variance] = b / (a - 1).

    References
    ----------
    Thesis 2.2; Gelman et al., Bayesian Data Analysis, 3.3.  Columns that tell nothing: Law, Figueiredo and Jain 2004,
    "Simultaneous feature selection and clustering using mixture models", IEEE PAMI 26.
    """

    n_sums: ClassVar[int] = 2
    nonnegative: ClassVar[bool] = False
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

    def simpler(self, missing: NDArray[np.bool_]) -> SphericalGaussian | None:
        """Columns of one variance, where none has missing values."""
        return None if missing.any() or len(missing) == 1 else SphericalGaussian()

    def _prior(self, sample: Sample) -> dict[str, Any]:
        D, (origin, unit) = sample.D, coordinates(sample)
        mean = mean_prior(self.mean, origin, unit)
        kappa = positive_values(
            "mean_precision", DEFAULT_ROWS if self.mean_precision is None else self.mean_precision, D
        )
        shape = positive_values("shape", 1.5 if self.shape is None else self.shape, D)
        require(bool((shape >= LEAST_SPARE).all()), "shape", self.shape, f"at least {LEAST_SPARE:g}")
        if self.rate is None:
            rate = default_spread("rate", unit**2, np.where(shape > 1.0, shape - 1.0, shape), "shape", self.shape)
        else:
            rate = positive_values("rate", self.rate, D)
            check_ratio("rate", self.rate, rate / unit**2)
        return {
            "mean": mean,
            "mean_precision": kappa,
            "shape": shape,
            "rate": rate,
            "origin": origin,
            "unit": unit,
            "rounding": rounding(sample, unit),
        }

    def check_sums(self, N: Array, S: Array) -> None:
        """Check the units, and that sums of squares are at least those of the means."""
        check_coordinates(self.origin, self.unit)
        check_rounding(self.rounding)
        super().check_sums(N, S)
        n, (squares, sums) = self._split(N, S)
        check_between("squares of sums", sums**2 / np.maximum(n, TINY), squares)

    @property
    def largest(self) -> Any:
        """The largest size of a value, (D,) where units are known."""
        return farthest(self.origin, self.unit)

    def _posterior(self, n: Array, sums: tuple[Array, ...]) -> DiagonalGaussianPosterior:
        """Posterior means of mu and of the variance, b' / (a' - 1) (where that exists, else b' / a')."""
        return DiagonalGaussianPosterior(*self._moments(n, sums))

    @property
    def portable(self) -> bool:
        """Yes."""
        return True

    def _sums(self, X: Array) -> tuple[Array, ...]:
        z = standardised(X, self.origin, self.unit)
        return z * z, z

    def has_density(self, D: int) -> NDArray[np.bool_]:
        """The columns that are not constant."""
        return ~self._constant

    def spread_out(self, T: Array, variances: Array) -> None:
        """Add to features T (n, F) what squares have more where values are spread about theirs with ``variances`` (n, D)."""
        T[:, : self._D] += variances / self.unit**2

    def _weights(self, n: Array, sums: tuple[Array, ...]) -> tuple[tuple[Array, ...], Array]:
        kappa, m, a, b = self._update(n, sums)
        tau = np.where(self._constant, 0.0, a / b)
        constant = 0.5 * (psi(a) - np.log(b) - 1.0 / kappa - tau * (m**2 + self._lost))
        return (-0.5 * tau * GRAIN, tau * m), np.where(self._constant, 0.0, constant)

    def _drawn_weights(
        self, n: Array, sums: tuple[Array, ...], rng: np.random.Generator
    ) -> tuple[tuple[Array, ...], Array]:
        kappa, m, a, b = self._update(n, sums)
        tau = gamma(rng, np.broadcast_to(a, m.shape), b)
        mu = m + rng.standard_normal(m.shape) / np.sqrt(kappa * tau)
        constant = 0.5 * (np.log(tau) - tau * (mu**2 + self._lost))
        tau = np.where(self._constant, 0.0, tau)
        return (-0.5 * tau * GRAIN, tau * mu), np.where(self._constant, 0.0, constant)

    def _marginal(self, n: Array, sums: tuple[Array, ...]) -> Array:
        (kappa, _, spread), zero = self._seen(n, sums), np.zeros(1)
        nothing = self._seen(zero, (zero, zero))[2]  # so that nothing gains nothing, to the last bit
        prior = self.rate / self.unit**2 + nothing
        gain = np.maximum(spread - nothing, 0.0)
        ratio = normaliser_ratio(self.shape, prior, 0.5 * n, gain)
        return np.where(self._constant, 0.0, ratio - 0.5 * np.log(kappa / self.mean_precision))

    def _base(self, x: Array) -> Array:
        return np.broadcast_to(np.where(self._constant, 0.0, -HALF_LOG_2PI - np.log(self.unit)), x.shape)

    def _predictive(self, x: Array, n: Array, sums: tuple[Array, ...], columns: Any) -> Array:
        """Student-t with 2 a' degrees of freedom, mean m', squared width b' (kappa' + 1) / (a' kappa')."""
        kappa, m, a, b = self._update(n, sums)
        width = 2.0 * b * (kappa + 1.0) / kappa
        squares = ((x - self.origin) / self.unit - m) ** 2 / width
        constant = gammaln(a + 0.5) - gammaln(a) - 0.5 * np.log(np.pi * width) - np.log(self.unit)
        return np.where(self._constant, 0.0, constant - (a + 0.5) * np.log1p(squares))

    def _bregman(self, x: Array, center: Array, columns: Any) -> Array:
        """Half the squared distance under the prior mean of the precision; a missing center is the prior mean."""
        center = np.where(np.isnan(center), self.mean, center)
        return np.asarray(0.5 * self.shape / self.rate * (x - center) ** 2)

    def cost_of_learning(self, name: str, N: Array) -> float:
        """As others; one rate for each column."""
        return super().cost_of_learning(name, N) * (len(self.rate) if name == "rate" else 1)

    @property
    def log_hyperprior(self) -> float:
        """Log B(m + 1/2, D - m + 1/2) / B(1/2, 1/2) where means differ in m of D columns; 0 where they do in all."""
        return float(log_share(self._D)[self._differs.sum()])

    def scaled(self, name: str, factor: float) -> Self:
        """As others; where means agree they go on to."""
        if name != "mean_precision":
            return super().scaled(name, factor)
        return replace(self, mean_precision=np.where(self._differs, self.mean_precision * factor, AGREED))

    def widened(self, least: float, names: Collection[str]) -> Self:
        """With larger rates, and means known for as many rows more where they differ."""
        if "rate" not in names:
            return self
        times = 1.0 + least * self.shape * self.unit**2 / self.rate
        more = np.where(self._differs, times, 1.0) if "mean_precision" in names else 1.0
        return replace(self, rate=self.rate * times, mean_precision=self.mean_precision * more)

    def narrowed(self, columns: NDArray[np.bool_], names: Collection[str], N: Array, S: Array) -> Self | None:
        """With means that agree in the other columns."""
        if "mean_precision" not in names:
            return None
        return replace(self, mean_precision=np.where(columns, self._everywhere, AGREED))

    def fitted(self, name: str, N: Array, S: Array) -> Iterator[Self]:
        """With other rates, or means that agree in other columns."""
        if name == "mean_precision":
            yield from self._with_other_columns(N, S)
        if name == "rate":
            yield from self._with_fitted_rates(N, S)

    def _with_other_columns(self, N: Array, S: Array) -> Iterator[Self]:
        """With the best set of columns in which means differ, for the precision that they have there, or some others.

        The set of m columns is that in which most is gained, for the best m.  Clusters that are still mixed differ little: with
        the precision of those that are not, none of their columns would tell anything.
        """
        n, sums = self._split(N, S)
        agreed = replace(self, mean_precision=np.full(self._D, AGREED))
        without = agreed._marginal(n, sums).sum(axis=0)
        best = -np.inf
        found = self
        for kappa in [self._everywhere, *(np.full(self._D, rows) for rows in TRIED)]:
            gain = replace(self, mean_precision=kappa)._marginal(n, sums).sum(axis=0) - without
            chosen, value = best_set(gain)
            if value > best:
                best = value
                found = replace(self, mean_precision=np.where(chosen, kappa, AGREED))
        yield found

    @property
    def _everywhere(self) -> Array:
        """The precision of means of each column, as where they differ also where they agree: there, the mean of the others."""
        differs = self._differs
        known = np.log(self.mean_precision[differs]).mean() if differs.any() else np.log(DEFAULT_ROWS)
        return np.asarray(np.where(differs, self.mean_precision, np.exp(known)))

    @property
    def _differs(self) -> NDArray[np.bool_]:
        """The columns in which means of clusters differ."""
        return np.asarray(self.mean_precision < AGREED)

    def _with_fitted_rates(self, N: Array, S: Array) -> Iterator[Self]:
        """With other rates: EM takes the shape divided by the mean of E[tau_k].

        The first proposal goes further, as that of `fitted_scale`.
        """
        n, sums = self._split(N, S)
        _, _, a, b = self._update(n, sums)
        change = np.where(self._constant, 1.0, self.shape / (a / b).mean(axis=0) * self.unit**2 / self.rate)
        more = np.maximum(0.5 * n.mean(axis=0), LEAST_SPARE)
        with np.errstate(over="ignore"):
            yield replace(self, rate=self.rate * change ** ((self.shape + more) / more))
        yield replace(self, rate=self.rate * change)

    @property
    def _constant(self) -> NDArray[np.bool_]:
        """Which columns are constant."""
        return np.asarray(np.isinf(self.rounding))

    @property
    def _lost(self) -> Array:
        """The variance that rounding took from each value, (D,), in working coordinates; zero for constant columns."""
        return np.where(self._constant, 0.0, self.rounding)

    def _moments(self, n: Array, sums: tuple[Array, ...]) -> tuple[Array, Array]:
        _, m, a, b = self._update(n, sums)
        return self.origin + self.unit * m, b / np.where(a > 1.0, a - 1.0, a) * self.unit**2

    def _draw(self, n: Array, sums: tuple[Array, ...], rng: np.random.Generator, size: int) -> Array:
        kappa, m, a, b = self._update(n, sums)
        student = rng.standard_normal((size, len(a))) * student_width(rng, 2.0 * a, (size, len(a)))
        return np.asarray(self.origin + self.unit * (m + student * np.sqrt(b * (kappa + 1.0) / (a * kappa))))

    def _update(self, n: Array, sums: tuple[Array, ...]) -> tuple[Array, Array, Array, Array]:
        """kappa', m', a', b' in working coordinates z = (x - origin) / unit."""
        kappa, m, spread = self._seen(n, sums)
        return kappa, m, self.shape + 0.5 * n, self.rate / self.unit**2 + spread

    def _seen(self, n: Array, sums: tuple[Array, ...]) -> tuple[Array, Array, Array]:
        """kappa', m' and what data add to b."""
        m0 = (self.mean - self.origin) / self.unit
        kappa = self.mean_precision + n
        m = (self.mean_precision * m0 + sums[1]) / kappa
        scatter = GRAIN * sums[0] + n * self._lost + self.mean_precision * m0**2 - kappa * m**2
        return kappa, m, 0.5 * np.maximum(scatter, 0.0)
