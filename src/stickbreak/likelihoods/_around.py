"""What a likelihood around a family takes over from it: its columns and hyperparameters."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from ._base import Array, Likelihood
from ._rows import Rows
from ._sample import Sample

OF_CLASSES = "takes_sparse", "takes_missing", "takes_negative", "domain"  # attributes of a class, elsewhere


class Around(Likelihood):
    """A likelihood whose rows, columns and hyperparameters are those of a resolved family."""

    family: Likelihood

    def _take_over(self) -> None:
        """Set what is an attribute of a class in families."""
        for name in OF_CLASSES:
            object.__setattr__(self, name, getattr(self.family, name))

    def resolve(self, sample: Sample) -> Self:
        """The same: the family is resolved."""
        return self

    @property
    def conjugate(self) -> bool:
        """Whether the family is."""
        return self.family.conjugate

    @property
    def portable(self) -> bool:
        """Whether the family is."""
        return self.family.portable

    def log_base(self, X: Rows) -> Array:
        """That of the family, (n,)."""
        return self.family.log_base(X)

    def divergence(self, X: Rows, centers: Rows) -> Array:
        """That of the family, (n, J)."""
        return self.family.divergence(X, centers)

    # Columns -----------------------------------------------------------------------------------------------------------

    @property
    def largest(self) -> Any:
        """That of the family."""
        return self.family.largest

    def valid(self, X: Array) -> NDArray[np.bool_]:
        """As the family."""
        return self.family.valid(X)

    def known(self, X: Any) -> Any:
        """As the family."""
        return self.family.known(X)

    def may_miss(self, D: int) -> NDArray[np.bool_]:
        """As the family."""
        return self.family.may_miss(D)

    def nominal(self, D: int) -> NDArray[np.bool_]:
        """As the family."""
        return self.family.nominal(D)

    def measured(self, D: int) -> NDArray[np.bool_]:
        """As the family."""
        return self.family.measured(D)

    def compositional(self, D: int) -> NDArray[np.bool_]:
        """As the family."""
        return self.family.compositional(D)

    def describes(self, D: int) -> NDArray[np.bool_]:
        """As the family."""
        return self.family.describes(D)

    def has_density(self, D: int) -> NDArray[np.bool_]:
        """As the family."""
        return self.family.has_density(D)

    def takes_targets(self) -> bool:
        """As the family."""
        return self.family.takes_targets()

    def refuse(self, value: float, column: int, where: str) -> NoReturn:
        """As the family."""
        self.family.refuse(value, column, where)

    def resolved_columns(self) -> int | None:
        """As the family."""
        return self.family.resolved_columns()

    # Hyperparameters ---------------------------------------------------------------------------------------------------

    def tunables(self) -> list[str]:
        """Those of the family."""
        return self.family.tunables()

    def coupled(self) -> list[list[str]]:
        """Those of the family."""
        return self.family.coupled()

    @property
    def log_hyperprior(self) -> float:
        """That of the family."""
        return self.family.log_hyperprior

    def cost_of_learning(self, name: str, N: Array) -> float:
        """That of the family."""
        return self.family.cost_of_learning(name, N)

    def scaled(self, name: str, factor: float) -> Self:
        """With a hyperparameter of the family multiplied by a factor."""
        return self._around(self.family.scaled(name, factor))

    def scaled_together(self, names: Sequence[str], factor: float) -> Self:
        """With a group of hyperparameters of the family multiplied by a factor."""
        return self._around(self.family.scaled_together(names, factor))

    def continued(self, names: Sequence[str], other: Likelihood) -> Self:
        """With hyperparameters of another's family."""
        return self._around(self.family.continued(names, other.plain))

    @abstractmethod
    def _around(self, family: Likelihood) -> Self:
        """The same around another family."""
