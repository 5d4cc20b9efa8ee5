"""Columns in which nothing tells clusters apart: their parameters are common to all clusters."""

from abc import abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ._base import Array, Likelihood
from ._shares import best_set, log_share

COMMON = "common"
SURE = 1e12  # values that a common parameter is known from, so that it is a number


@dataclass(frozen=True, eq=False)
class AlikeColumns(Likelihood):
    """Base of the families of which some columns may have the same parameter in all clusters.

    In such a column d the parameter is a number that is learnt, the posterior mean given all values.  Cluster k adds

        S_kd . W_d + n_kd b_d

    to the sum of the log marginals, with the weights W_d and b_d of that parameter, so that no cluster costs anything there.
    The set of these columns is chosen so that the bound is highest, which counts its prior probability (`log_share`).

    Attributes
    ----------
    common : what says which parameters are common, and their values: numbers in these columns, NaN in the others

    References
    ----------
    Law, Figueiredo and Jain 2004, "Simultaneous feature selection and clustering using mixture models", IEEE PAMI 26.
    """

    tunable: ClassVar[tuple[str, ...]] = (COMMON,)

    common: Any = field(default=None, repr=False, kw_only=True)

    @property
    @abstractmethod
    def is_common(self) -> NDArray[np.bool_]:
        """The columns whose parameters are common, (D,)."""

    @abstractmethod
    def alike(self, columns: NDArray[np.bool_], N: Array, S: Array) -> Self:
        """With parameters that are common in these columns and no others: their posterior means given all values."""

    @abstractmethod
    def column_marginals(self, N: Array, S: Array) -> Array:
        """The log marginals of each column, (K, D), or S . W + n b where parameters are common."""

    def narrowed(self, columns: NDArray[np.bool_], names: Collection[str], N: Array, S: Array) -> Self | None:
        """With parameters that are common in the other columns."""
        return self.alike(~columns, N, S) if COMMON in names else None

    def may_be_common(self) -> NDArray[np.bool_]:
        """The columns whose parameters may be common, (D,)."""
        return np.ones(len(self.is_common), np.bool_)

    def log_marginal(self, N: Array, S: Array) -> Array:
        """The sum of those of the columns, (K,)."""
        return np.asarray(self.column_marginals(N, S).sum(axis=1))

    def scaled(self, name: str, factor: float) -> Self:
        """As others; which parameters are common is no number."""
        return self if name == COMMON else super().scaled(name, factor)

    def cost_of_learning(self, name: str, N: Array) -> float:
        """As others, for each parameter that is common; which are common has a prior."""
        return super().cost_of_learning(name, N) * (int(self.is_common.sum()) if name == COMMON else 1)

    def fitted(self, name: str, N: Array, S: Array) -> Iterator[Self]:
        """With the best set of columns whose parameters are common."""
        if name != COMMON:
            return
        may = self.may_be_common()
        alike = self.alike(may, N, S)
        own = self.alike(np.zeros(len(may), np.bool_), N, S)
        gain = own.column_marginals(N, S).sum(axis=0) - alike.column_marginals(N, S).sum(axis=0)
        common = may.copy()
        common[may] = ~best_set(gain[may])[0]
        yield self.alike(common, N, S)

    @property
    def log_hyperprior(self) -> float:
        """Log prior probability of the set of columns."""
        may = self.may_be_common()
        return float(log_share(int(may.sum()))[(may & ~self.is_common).sum()])
