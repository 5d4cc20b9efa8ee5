"""Durations: exponential, and Gamma with a known shape."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import betaln, gammaln, psi, xlogy

from ._alike import COMMON
from ._base import Array
from ._common import CommonColumns
from ._draws import gamma
from ._gamma import normaliser_ratio
from ._hyperparameters import SMALLEST, positive, positive_values, require
from ._sample import Sample


class GammaPosterior(NamedTuple):
    """Posterior mean of the rates, (K, D)."""

    rates: Array


@dataclass(frozen=True, eq=False)
class Gamma(CommonColumns):
    """Gamma likelihood with a known shape, for positive measurements such as durations, and a Gamma prior for each rate.

        x_d | lambda_d ~ Gamma(known_shape, lambda_d),   lambda_d ~ Gamma(shape_d, rate_d)

    with statistics t(x) = x.  After n_d values with sum s_d: Gamma(shape_d + known_shape n_d, rate_d + s_d).  Missing values
    are integrated out exactly.

    Parameters
    ----------
    known_shape : float > 0, default 1 (exponential)
        The shape that all clusters share.
    shape : float or array (D,), > 0, default 1
        Of the prior: known_shape times a pseudo-count of values.
    rate : float or array (D,), > 0, default shape x the median of the data
        Of the prior: sum of the pseudo-values.  (A mean would drown the sums of clusters of small values.)

    Columns in which nothing tells clusters apart have a rate that all clusters share, where that is learnt (`AlikeColumns`).

    References
    ----------
    Thesis 2.2; Gelman et al., Bayesian Data Analysis, 2.6.
    """

    takes_negative: ClassVar[bool] = False
    domain: ClassVar[str] = "positive numbers"
    tunable: ClassVar[tuple[str, ...]] = (COMMON, "shape", "rate")
    strength: ClassVar[tuple[str, ...]] = ("shape", "rate")

    known_shape: Any = 1.0
    shape: Any = None
    rate: Any = None

    def _own_prior(self, sample: Sample) -> dict[str, Any]:
        known = positive("known_shape", self.known_shape)
        shape = positive_values("shape", 1.0 if self.shape is None else self.shape, sample.D)
        rate = self._default_rate(sample, shape) if self.rate is None else positive_values("rate", self.rate, sample.D)
        wrong = np.flatnonzero((rate < SMALLEST) | (rate == np.inf))
        if len(wrong):
            cure = "the median of the data times its shape; multiply the column by a constant first"
            wanted = f"finite and at least {SMALLEST:g} in column {wrong[0]}. By default it is {cure}"
            require(False, "rate", float(rate[wrong[0]]), wanted)
        return {"known_shape": known, "shape": shape, "rate": rate}

    def _default_rate(self, sample: Sample, shape: Array) -> Array:
        """Shape x median of each column, (D,), which may be beyond all numbers."""
        middle = sample.median()
        with np.errstate(over="ignore"):
            return np.asarray(shape * np.where(middle > 0.0, middle, 1.0))

    def _prior_values(self) -> Array:
        return np.stack([self.shape / self.known_shape, self.rate])

    def _in_domain(self, x: Array) -> Any:
        return x > 0.0

    def _posterior(self, n: Array, sums: tuple[Array, ...]) -> GammaPosterior:
        """E[lambda] = (shape + known_shape n) / (rate + s)."""
        a, b = self._update(n, sums)
        return GammaPosterior(a / b)

    def _weights(self, n: Array, sums: tuple[Array, ...]) -> tuple[tuple[Array, ...], Array]:
        a, b = self._update(n, sums)
        with np.errstate(over="ignore"):
            mean = a / b
        if not np.isfinite(mean).all():
            raise FloatingPointError("the rate of a cluster is beyond the range of numbers: its values are too small.")
        return (-mean,), self.known_shape * (psi(a) - np.log(b))

    def _drawn_weights(
        self, n: Array, sums: tuple[Array, ...], rng: np.random.Generator
    ) -> tuple[tuple[Array, ...], Array]:
        rate = gamma(rng, *self._update(n, sums))
        return (-rate,), self.known_shape * np.log(rate)

    def _marginal(self, n: Array, sums: tuple[Array, ...]) -> Array:
        return normaliser_ratio(self.shape, self.rate, self.known_shape * n, sums[0])

    def _base(self, x: Array) -> Array:
        return np.asarray(xlogy(self.known_shape - 1.0, x) - gammaln(self.known_shape))

    def _predictive(self, x: Array, n: Array, sums: tuple[Array, ...], columns: Any) -> Array:
        """Compound gamma (for known_shape 1, Lomax): density x^(s-1) b^a / (B(s, a) (b + x)^(a + s))."""
        s = self.known_shape
        a = self.shape[columns] + self.known_shape * n
        b = self.rate[columns] + sums[0]
        return np.asarray(xlogy(s - 1.0, x) - s * np.log(b) - betaln(s, a) - (a + s) * np.log1p(x / b))

    def _bregman(self, x: Array, center: Array, columns: Any) -> Array:
        ratio = self._smooth(x, columns) / self._smooth(center, columns)
        return np.asarray(np.maximum(self.known_shape * (ratio - np.log(ratio) - 1.0), 0.0))

    def _moments(self, n: Array, sums: tuple[Array, ...]) -> tuple[Array, Array]:
        """Of the predictive where they exist (a > 1, a > 2), else of the gamma with the mean rate."""
        (a, b), s = self._update(n, sums), self.known_shape
        mean = s * b / np.where(a > 1.0, a - 1.0, a)
        wide = np.where(a > 2.0, (a + s - 1.0) / (s * np.where(a > 2.0, a - 2.0, 1.0)), 1.0 / s)
        return mean, mean**2 * wide

    def _draw(self, n: Array, sums: tuple[Array, ...], rng: np.random.Generator, size: int) -> Array:
        a, b = self._update(n, sums)
        rates = gamma(rng, np.broadcast_to(a, (size, len(a))), b)
        return gamma(rng, np.broadcast_to(self.known_shape, rates.shape), rates)

    def _update(self, n: Array, sums: tuple[Array, ...]) -> tuple[Array, Array]:
        return self.shape + self.known_shape * n, self.rate + sums[0]

    def _smooth(self, x: Array, columns: Any) -> Array:
        """Mean of the smoothed exponential family after one value, or none."""
        seen = ~np.isnan(x)
        return np.asarray(
            (self.rate[columns] + np.where(seen, x, 0.0)) / (self.shape[columns] + self.known_shape * seen)
        )


@dataclass(frozen=True, eq=False)
class Exponential(Gamma):
    """Exponential likelihood for waiting times, with a Gamma prior for each rate: `Gamma` with known shape 1.

        x_d | lambda_d ~ Exponential(lambda_d),   lambda_d ~ Gamma(shape_d, rate_d)

    Parameters
    ----------
    shape : float or array (D,), > 0, default 1
        Pseudo-count of values.
    rate : float or array (D,), > 0, default shape x the median of the data
        Sum of the pseudo-values.
    """

    domain: ClassVar[str] = "numbers of at least 0"

    known_shape: Any = 1.0

    def _in_domain(self, x: Array) -> Any:
        return x >= 0.0
