"""Families of independent columns of which some may have parameters that are common to all clusters."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ._alike import COMMON, SURE, AlikeColumns
from ._base import Array
from ._columns import IndependentColumns
from ._hyperparameters import require
from ._sample import Sample


@dataclass(frozen=True, eq=False)
class CommonColumns(AlikeColumns, IndependentColumns):
    """`IndependentColumns` with `AlikeColumns`.

    Attributes
    ----------
    common : (1 + n_sums, D), so many values, `SURE`, and their sums in the columns with common parameters, NaN in the others
    """

    @abstractmethod
    def _own_prior(self, sample: Sample) -> dict[str, Any]:
        """The hyperparameters that `resolve` sets beside ``common``."""

    @abstractmethod
    def _prior_values(self) -> Array:
        """The number of values that the prior counts for, and their sums, (1 + n_sums, D)."""

    def _prior(self, sample: Sample) -> dict[str, Any]:
        shape = (1 + self.n_sums, sample.D)
        common = np.full(shape, np.nan) if self.common is None else np.asarray(self.common, np.float64)
        require(common.shape == shape, COMMON, self.common, f"an array of the shape {shape}")
        return {**self._own_prior(sample), COMMON: common}

    def check_sums(self, N: Array, S: Array) -> None:
        """As others, and that what columns with common parameters have is finite and not negative."""
        super().check_sums(N, S)
        known = self.common[:, self.is_common]
        require(bool((np.isfinite(known) & (known >= 0.0)).all()), COMMON, self.common, "finite and at least 0, or NaN")

    @property
    def is_common(self) -> NDArray[np.bool_]:
        """The columns whose parameters are common, (D,)."""
        return np.asarray(~np.isnan(self.common[0]))

    def alike(self, columns: NDArray[np.bool_], N: Array, S: Array) -> Self:
        """With parameters that are common in these columns and no others: their posterior means given all values."""
        n, sums = self._split(N, S)
        pooled = np.stack([np.broadcast_to(n, sums[0].shape).sum(axis=0), *(s.sum(axis=0) for s in sums)])
        pooled = pooled + self._prior_values()
        return replace(self, common=np.where(columns & self.may_be_common(), SURE * (pooled / pooled[0]), np.nan))

    def column_marginals(self, N: Array, S: Array) -> Array:
        """The log marginals of each column, (K, D), or S . W + n b where parameters are common."""
        n, sums = self._split(N, S)
        own = self._marginal(n, sums)
        common = self.is_common
        if not common.any():
            return own
        known = np.nan_to_num(self.common)[:, None]
        W, b = self._weights(known[0], tuple(known[1:]))
        return np.where(common, sum(s * w for s, w in zip(sums, W)) + n * b, own)

    def _known_of(self, N: Array, S: Array) -> tuple[Array, tuple[Array, ...]]:
        """As others; so many that parameters are known, in the columns where they are common."""
        n, sums = self._split(N, S)
        common = self.is_common
        if not common.any():
            return n, sums
        return np.where(common, self.common[0], n), tuple(np.where(common, c, s) for c, s in zip(self.common[1:], sums))

    def _apart(self, x: Array, center: Array, columns: Any) -> Array:
        """As others; nothing in the columns whose parameters are common."""
        return np.where(self.is_common[columns], 0.0, super()._apart(x, center, columns))
