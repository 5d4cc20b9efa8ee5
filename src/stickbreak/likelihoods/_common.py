"""Columns in which nothing tells clusters apart: their parameters are common to all clusters."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ._base import Array
from ._columns import IndependentColumns
from ._hyperparameters import require
from ._sample import Sample
from ._shares import best_set, log_share

COMMON = "common"
SURE = 1e12  # values that a common parameter is known from, so that it is a number


@dataclass(frozen=True, eq=False)
class CommonColumns(IndependentColumns):
    """Base of the families of independent columns of which some may have the same parameter in all clusters.

    In such a column d the parameter is a number that is learnt, the posterior mean given all values.  Cluster k adds

        S_kd . W_d + n_kd b_d

    to the sum of the log marginals, with the weights W_d and b_d of that parameter, so that no cluster costs anything there.
    The set of these columns is chosen so that the bound is highest, which counts its prior probability (`log_share`).

    Attributes
    ----------
    common : (1 + n_sums, D), so many values, `SURE`, and their sums in the columns with common parameters, NaN in the others
    """

    tunable: ClassVar[tuple[str, ...]] = (COMMON,)

    common: Any = field(default=None, repr=False, kw_only=True)

    @abstractmethod
    def _own_prior(self, sample: Sample) -> dict[str, Any]:
        """The hyperparameters that `resolve` sets beside ``common``."""

    def _prior(self, sample: Sample) -> dict[str, Any]:
        shape = (1 + self.n_sums, sample.D)
        if self.common is None:
            return {**self._own_prior(sample), COMMON: np.full(shape, np.nan)}
        common = np.asarray(self.common, np.float64)
        require(common.shape == shape, COMMON, self.common, f"an array of the shape {shape}")
        return {**self._own_prior(sample), COMMON: common}

    def check_sums(self, N: Array, S: Array) -> None:
        """As others, and that what columns with common parameters have is finite and not negative."""
        super().check_sums(N, S)
        known = self.common[:, self._is_common]
        require(bool((np.isfinite(known) & (known >= 0.0)).all()), COMMON, self.common, "finite and at least 0, or NaN")

    @abstractmethod
    def _prior_values(self) -> Array:
        """The number of values that the prior counts for, and their sums, (1 + n_sums, D)."""

    def may_be_common(self) -> NDArray[np.bool_]:
        """The columns whose parameters may be common, (D,)."""
        return np.ones(self._D, np.bool_)

    def log_marginal(self, N: Array, S: Array) -> Array:
        """The sum over columns of log marginals, or of S . W + n b where parameters are common, (K,)."""
        n, sums = self._split(N, S)
        own = self._marginal(n, sums)
        if self._is_common.any():
            own = np.where(self._is_common, self._linear(n, sums), own)
        return np.asarray(own.sum(axis=1))

    def scaled(self, name: str, factor: float) -> Self:
        """As others; which parameters are common is no number."""
        return self if name == COMMON else super().scaled(name, factor)

    def cost_of_learning(self, name: str, N: Array) -> float:
        """As others, for each parameter that is common; which are common has a prior."""
        return super().cost_of_learning(name, N) * (int(self._is_common.sum()) if name == COMMON else 1)

    def fitted(self, name: str, N: Array, S: Array) -> Iterator[Self]:
        """With the best set of columns whose parameters are common."""
        if name != COMMON:
            return
        n, sums = self._split(N, S)
        own = self._marginal(n, sums).sum(axis=0)
        alike = self.alike(np.ones(self._D, np.bool_), N, S)
        gain = own - alike._linear(n, sums).sum(axis=0)
        may = self.may_be_common()
        differ = ~may
        differ[may] = best_set(gain[may])[0]
        yield replace(self, common=np.where(differ, np.nan, alike.common))

    def alike(self, columns: NDArray[np.bool_], N: Array, S: Array) -> Self:
        """With parameters that are common in these columns: their posterior means given all values."""
        n, sums = self._split(N, S)
        pooled = np.stack([np.broadcast_to(n, sums[0].shape).sum(axis=0), *(s.sum(axis=0) for s in sums)])
        pooled = pooled + self._prior_values()
        return replace(self, common=np.where(columns & self.may_be_common(), SURE * (pooled / pooled[0]), np.nan))

    @property
    def log_hyperprior(self) -> float:
        """Log prior probability of the set of columns."""
        may = self.may_be_common()
        return float(log_share(int(may.sum()))[(may & ~self._is_common).sum()])

    @property
    def _is_common(self) -> NDArray[np.bool_]:
        """The columns whose parameters are common, (D,)."""
        return np.asarray(~np.isnan(self.common[0]))

    def _known_of(self, N: Array, S: Array) -> tuple[Array, tuple[Array, ...]]:
        """As others; so many that parameters are known, in the columns where they are common."""
        n, sums = self._split(N, S)
        common = self._is_common
        if not common.any():
            return n, sums
        return np.where(common, self.common[0], n), tuple(np.where(common, c, s) for c, s in zip(self.common[1:], sums))

    def _apart(self, x: Array, center: Array, columns: Any) -> Array:
        """As others; nothing in the columns whose parameters are common."""
        return np.where(self._is_common[columns], 0.0, super()._apart(x, center, columns))

    def _linear(self, n: Array, sums: tuple[Array, ...]) -> Array:
        """S . W + n b of each column under its common parameter, (K, D); of no use where it has none."""
        known = np.nan_to_num(self.common)[:, None]
        W, b = self._weights(known[0], tuple(known[1:]))
        return np.asarray(sum(s * w for s, w in zip(sums, W)) + n * b)
