"""Yes/no columns."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import psi, rel_entr

from .._sums import check_between
from ._alike import COMMON
from ._base import Array
from ._common import CommonColumns
from ._draws import gamma
from ._gamma import log_gamma_ratio
from ._hyperparameters import positive_values
from ._profile import Profile
from ._sample import Sample


class BernoulliPosterior(NamedTuple):
    """Posterior mean of the chance of a one in each column, (K, D)."""

    probabilities: Array


@dataclass(frozen=True, eq=False)
class Bernoulli(CommonColumns):
    """Bernoulli likelihood for columns of zeros and ones, dense or CSR, with a Beta prior for each.

        x_d | p_d ~ Bernoulli(p_d),   p_d ~ Beta(a_d, b_d)

    with statistics t(x) = x.  After n_d observed values of which s_d are ones: Beta(a_d + s_d, b_d + n_d - s_d).
    Missing values are integrated out exactly.

    Parameters
    ----------
    a, b : float or array (D,), > 0, default: a + b = 1, with the mean a / (a + b) of the data
        Pseudo-counts of ones and zeros.

    Columns in which nothing tells clusters apart have a chance that all clusters share, where that is learnt (`AlikeColumns`).

    References
    ----------
    Thesis 2.2.
    """

    takes_sparse: ClassVar[bool] = True
    takes_negative: ClassVar[bool] = False
    domain: ClassVar[str] = "0 or 1"
    tunable: ClassVar[tuple[str, ...]] = (COMMON, "a", "b")
    strength: ClassVar[tuple[str, ...]] = ("a", "b")

    a: Any = None
    b: Any = None

    def _own_prior(self, sample: Sample) -> dict[str, Any]:
        n = max(sample.weights.sum(), float(len(sample.weights)))  # weights may be normalised
        ones = np.clip(sample.mean(), 0.0, 1.0)
        a, b = ((n * share + 0.5) / (n + 1.0) for share in (ones, 1.0 - ones))
        a = a if self.a is None else positive_values("a", self.a, sample.D)
        b = b if self.b is None else positive_values("b", self.b, sample.D)
        return {"a": a, "b": b}

    def _prior_values(self) -> Array:
        return np.stack([self.a + self.b, self.a])

    def _in_domain(self, x: Array) -> Any:
        return (x == 0.0) | (x == 1.0)

    def smoothed(self, least: float) -> Self:
        """With at least such a pseudo-count of ones and of zeros."""
        return replace(self, a=np.maximum(self.a, least), b=np.maximum(self.b, least))

    def nominal(self, D: int) -> NDArray[np.bool_]:
        """All columns: two levels are a zero and a one."""
        return np.ones(D, np.bool_)

    def _posterior(self, n: Array, sums: tuple[Array, ...]) -> BernoulliPosterior:
        """E[p] = (a + s) / (a + b + n)."""
        return BernoulliPosterior(self._moments(n, sums)[0])

    def profile(self, N: Array, S: Array) -> Profile:
        """The chance of a one in each column, and its variance."""
        p, variances = self._moments(*self._known_of(N, S))
        return Profile.of_columns(p, variances, chances=True)

    def impute(self, X: Array, R: Array, N: Array, S: Array) -> Array:
        """Missing values become the more probable of zero and one."""
        return np.where(np.isnan(X), R @ self._moments(*self._known_of(N, S))[0] > 0.5, X)

    def _weights(self, n: Array, sums: tuple[Array, ...]) -> tuple[tuple[Array, ...], Array]:
        a, b = self._update(n, sums)
        ones = psi(a)
        zeros = psi(b)
        both = psi(a + b)
        return (ones - zeros,), zeros - both

    def _drawn_weights(
        self, n: Array, sums: tuple[Array, ...], rng: np.random.Generator
    ) -> tuple[tuple[Array, ...], Array]:
        a, b = self._update(n, sums)
        ones = gamma(rng, a, 1.0)
        zeros = gamma(rng, b, 1.0)
        return (np.log(ones) - np.log(zeros),), np.log(zeros) - np.log(ones + zeros)

    def _marginal(self, n: Array, sums: tuple[Array, ...]) -> Array:
        ones = sums[0]
        zeros = np.maximum(n - sums[0], 0.0)
        return (
            log_gamma_ratio(ones, self.a)
            + log_gamma_ratio(zeros, self.b)
            - log_gamma_ratio(ones + zeros, self.a + self.b)
        )

    def _predictive(self, x: Array, n: Array, sums: tuple[Array, ...], columns: Any) -> Array:
        a = self.a[columns] + sums[0]
        b = self.b[columns] + np.maximum(n - sums[0], 0.0)
        return np.asarray(np.log(np.where(x == 1.0, a, b) / (a + b)))

    def _bregman(self, x: Array, center: Array, columns: Any) -> Array:
        (p, not_p), (q, not_q) = self._smooth(x, columns), self._smooth(center, columns)
        return np.asarray(np.maximum(rel_entr(p, q) + rel_entr(not_p, not_q), 0.0))

    def _moments(self, n: Array, sums: tuple[Array, ...]) -> tuple[Array, Array]:
        a, b = self._update(n, sums)
        p = a / (a + b)
        return p, p * (1.0 - p)

    def _draw(self, n: Array, sums: tuple[Array, ...], rng: np.random.Generator, size: int) -> Array:
        a, b = self._update(n, sums)
        return (rng.random((size, len(n))) < a / (a + b)).astype(np.float64)

    def check_sums(self, N: Array, S: Array) -> None:
        """Check that there are no more ones than observed values."""
        super().check_sums(N, S)
        n, (ones,) = self._split(N, S)
        check_between("numbers of ones", ones, n)

    def _update(self, n: Array, sums: tuple[Array, ...]) -> tuple[Array, Array]:
        return self.a + sums[0], self.b + np.maximum(n - sums[0], 0.0)  # extrapolated sums may exceed their counts

    def _smooth(self, x: Array, columns: Any) -> tuple[Array, Array]:
        """Posterior means of p and 1 - p, neither of them zero, after at most one value."""
        seen = ~np.isnan(x)
        ones = self.a[columns] + np.where(seen, x, 0.0)
        zeros = self.b[columns] + np.where(seen, 1.0 - x, 0.0)
        return np.asarray(ones / (ones + zeros)), np.asarray(zeros / (ones + zeros))
