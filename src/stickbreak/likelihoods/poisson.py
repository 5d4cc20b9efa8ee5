"""Counts of events."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln, kl_div, psi, xlogy

from ..kernels.counts import negative_binomials
from ._alike import COMMON
from ._base import Array
from ._column_names import column_number
from ._common import CommonColumns
from ._draws import gamma, poisson
from ._gamma import normaliser_ratio
from ._hyperparameters import LARGEST, positive_values
from ._profile import Profile
from ._rows import Rows
from ._sample import Sample

MOST = 1e12  # a larger count has log Gamma(x + 1) of so many nats that their rounding moves the bound
NEAR = 0.5  # relative differences of rates that are smaller are precise themselves
DENSE_ONLY = "a Poisson likelihood with a column of exposures takes dense rows, not CSR; pass X.toarray()."


class PoissonPosterior(NamedTuple):
    """Posterior mean of the rates, per unit of exposure, (K, D)."""

    rates: Array


@dataclass(frozen=True, eq=False)
class Poisson(CommonColumns):
    """Poisson likelihood for columns of counts, dense or CSR, with a Gamma prior for each rate.

        x_d | lambda_d ~ Poisson(e lambda_d),   lambda_d ~ Gamma(shape_d, rate_d)

    where e is the exposure of the row (time, area, population), one where there is none.  The statistics are t(x) = x, and
    e itself where it is given.  After counts with sum s_d and exposures with sum e_d: Gamma(shape_d + s_d, rate_d + e_d).
    Missing counts are integrated out exactly.  Counts are at most 1e12.

    Parameters
    ----------
    shape : float or array (D,), > 0, default 1
        Pseudo-count of events.
    rate : float or array (D,), > 0, default shape / (mean rate of the data)
        Pseudo-exposure.
    exposure : number or name of a column, optional
        The column of a dense table that holds e > 0; it is not clustered itself.

    Columns in which nothing tells clusters apart have a rate that all clusters share, where that is learnt (`AlikeColumns`).

    References
    ----------
    Thesis 2.2; Gelman et al., Bayesian Data Analysis, 2.6.
    """

    takes_sparse: ClassVar[bool] = True
    takes_negative: ClassVar[bool] = False
    domain: ClassVar[str] = "whole numbers of at least 0 (and exposures above 0)"
    tunable: ClassVar[tuple[str, ...]] = (COMMON, "shape", "rate")
    strength: ClassVar[tuple[str, ...]] = ("shape", "rate")

    shape: Any = None
    rate: Any = None
    exposure: Any = None

    def locate(self, names: Sequence[str] | None, D: int) -> Self:
        """With the column of exposures as a number."""
        if self.exposure is None:
            return self
        try:
            return replace(self, exposure=column_number(self.exposure, names, D))
        except ValueError as error:
            raise ValueError(f"exposure: {error}") from None

    def _own_prior(self, sample: Sample) -> dict[str, Any]:
        exposure = self.locate(sample.names, sample.D).exposure
        if exposure is not None and sparse.issparse(sample.X):
            raise ValueError(DENSE_ONLY)
        mean = sample.mean()
        if exposure is not None:
            mean = mean / mean[exposure]
        smallest = 0.5 / max(sample.weights.sum(), float(len(sample.weights)))  # weights may be normalised
        shape = positive_values("shape", 1.0 if self.shape is None else self.shape, sample.D)
        with np.errstate(over="ignore"):
            default = shape / np.maximum(mean, smallest)
        rate = positive_values("rate", default if self.rate is None else self.rate, sample.D)
        return {"shape": shape, "rate": rate, "exposure": exposure}

    def valid(self, X: Array) -> NDArray[np.bool_]:
        """Whole numbers of at least 0; in the column of exposures, positive numbers."""
        if self.exposure is not None and X.ndim == 1:
            raise ValueError(DENSE_ONLY)
        fine = super().valid(X)
        if self.exposure is not None:
            exposures = X[:, self.exposure].astype(np.float64)
            fine[:, self.exposure] = (exposures <= LARGEST) & (exposures >= 1.0 / LARGEST)
        return fine

    @property
    def largest(self) -> Any:
        """1e12, where the bound still has all digits that matter."""
        return MOST

    def refuse(self, value: float, column: int, where: str) -> NoReturn:
        """As others; counts that are too large are measurements."""
        if MOST < value <= LARGEST and column != self.exposure:
            cure = f"Poisson takes counts up to {MOST:.0e}; use Gamma for measurements of that size, or leave the value out."
            raise ValueError(f"Input X contains {value:g}: {where}. {cure}")
        super().refuse(value, column, where)

    def _prior_values(self) -> Array:
        return np.stack([self.rate, self.shape])

    def _in_domain(self, x: Array) -> Any:
        return (x >= 0.0) & (np.floor(x) == x)

    def may_miss(self, D: int) -> NDArray[np.bool_]:
        """All columns but that of exposures."""
        may = super().may_miss(D)
        if self.exposure is not None:
            may[self.exposure] = False
        return may

    def may_be_common(self) -> NDArray[np.bool_]:
        """All columns but that of exposures."""
        may = super().may_be_common()
        if self.exposure is not None:
            may[self.exposure] = False
        return may

    @property
    def portable(self) -> bool:
        """Yes."""
        return True

    def features(self, X: Rows, out: Array | None) -> Any:
        """T (n, F): counts, with the exposure in its column; then, for columns with holes, the exposure of missing counts."""
        T = super().features(X, out)
        if self.exposure is not None and self._holes.any():
            T[:, self._D :] *= X[:, self.exposure : self.exposure + 1]
        return T

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """E[log lambda] on counts and -E[lambda] as b, or on the exposure where it is given."""
        return self._on_exposure(*super().weights(N, S))

    def draw_weights(self, N: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """The same of rates drawn from their posterior."""
        return self._on_exposure(*super().draw_weights(N, S, rng))

    def _on_exposure(self, W: Array, b: Array) -> tuple[Array, Array]:
        """Weights and b, or this on the exposure where it is given."""
        if self.exposure is None:
            return W, b
        W[:, self.exposure] = b
        return W, np.zeros_like(b)

    def check_sums(self, N: Array, S: Array) -> None:
        """As for other columns, with exposures in place of counts of rows."""
        super().check_sums(N if self.exposure is None else S[:, self.exposure], S)

    def _posterior(self, n: Array, sums: tuple[Array, ...]) -> PoissonPosterior:
        """E[lambda] = (shape + s) / (rate + e); NaN for the column of exposures."""
        a, b = self._update(n, sums)
        rates = a / b
        if self.exposure is not None:
            rates[:, self.exposure] = np.nan
        return PoissonPosterior(rates)

    def profile(self, N: Array, S: Array) -> Profile:
        """Mean and variance of the counts of one unit of exposure."""
        profile = super().profile(N, S)
        if self.exposure is None:
            return profile
        columns = np.delete(profile.columns, self.exposure)
        means = profile.means[:, columns]
        variances = profile.variances[:, columns]
        return Profile(columns, profile.levels[columns], means, variances, profile.chances[columns])

    def impute(self, X: Array, R: Array, N: Array, S: Array) -> Array:
        """Missing counts become their posterior-predictive means, at the exposure of the row."""
        return np.where(np.isnan(X), self._exposures(X) * (R @ self._finite_moments(N, S)[0]), X)

    def _weights(self, n: Array, sums: tuple[Array, ...]) -> tuple[tuple[Array, ...], Array]:
        a, b = self._update(n, sums)
        return (psi(a) - np.log(b),), self._counts_only(-a / b)

    def _drawn_weights(
        self, n: Array, sums: tuple[Array, ...], rng: np.random.Generator
    ) -> tuple[tuple[Array, ...], Array]:
        rate = gamma(rng, *self._update(n, sums))
        return (np.log(rate),), self._counts_only(-rate)

    def _marginal(self, n: Array, sums: tuple[Array, ...]) -> Array:
        return self._counts_only(normaliser_ratio(self.shape, self.rate, sums[0], np.maximum(n, 0.0)))

    def _base(self, x: Array) -> Array:
        return self._counts_only(xlogy(x, self._exposures(x)) - gammaln(x + 1.0))

    def _predictive(self, x: Array, n: Array, sums: tuple[Array, ...], columns: Any) -> Array:
        """Negative binomial: shape a trials and chance b / (b + e) of stopping."""
        a = self.shape[columns] + sums[0]
        b = self.rate[columns] + n
        e = self._exposures(x)
        arguments = (np.array(values, np.float64).ravel() for values in np.broadcast_arrays(x, a, b, e))
        log_density = np.empty(x.size)
        negative_binomials(*arguments, log_density)
        return self._counts_only(log_density.reshape(x.shape))

    def _bregman(self, x: Array, center: Array, columns: Any) -> Array:
        """KL of the rates, by their relative difference where they are near: large counts leave no digits of the other form."""
        x = self._smooth(x, columns)
        y = self._smooth(center, columns)
        with np.errstate(over="ignore"):
            more = np.clip((y - x) / x, -NEAR, NEAR)
        near = x * np.maximum(more - np.log1p(more), 0.0)
        return self._counts_only(np.where(np.abs(more) < NEAR, near, kl_div(x, y)))

    def _moments(self, n: Array, sums: tuple[Array, ...]) -> tuple[Array, Array]:
        a, b = self._update(n, sums)
        return a / b, a / b * (1.0 + 1.0 / b)

    def _draw(self, n: Array, sums: tuple[Array, ...], rng: np.random.Generator, size: int) -> Array:
        a, b = self._update(n, sums)
        drawn = poisson(rng, gamma(rng, np.broadcast_to(a, (size, len(a))), b))
        if self.exposure is not None:
            drawn[:, self.exposure] = 1.0
        return drawn

    def _update(self, n: Array, sums: tuple[Array, ...]) -> tuple[Array, Array]:
        return self.shape + sums[0], self.rate + np.maximum(n, 0.0)  # extrapolated exposures may miss zero

    def _split(self, N: Array, S: Array) -> tuple[Array, tuple[Array, ...]]:
        return super()._split(N if self.exposure is None else S[:, self.exposure], S)

    def _exposures(self, x: Array) -> Any:
        return 1.0 if self.exposure is None else x[..., self.exposure, None]

    def _counts_only(self, values: Array) -> Array:
        """Values by column with zero in the column of exposures."""
        if self.exposure is not None:
            values[..., self.exposure] = 0.0
        return values

    def _smooth(self, x: Array, columns: Any) -> Array:
        """Posterior mean of the rate after one count, or none."""
        seen = ~np.isnan(x)
        return np.asarray(
            (self.shape[columns] + np.where(seen, x, 0.0)) / (self.rate[columns] + seen * self._exposures(x))
        )
