"""What a likelihood around a family takes over from it: statistics, rows, columns and hyperparameters."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from ._base import Array, Likelihood
from ._cells import Cells
from ._latent import Latent
from ._profile import Profile
from ._rows import Rows
from ._sample import Sample

# Attributes of a class, elsewhere.
OF_CLASSES = "takes_sparse", "takes_missing", "missing_latent", "takes_negative", "domain"


class Around(Likelihood):
    """A likelihood around a family: whatever it does not say of itself is said by the family.

    Its statistics are those of the family and, after these, its own (`_of_family`); the family takes its rows as `rows_of`.
    """

    family: Likelihood

    def rows_of(self, X: Rows) -> Rows:
        """Rows X as the family takes them."""
        return X

    def _of_family(self, N: Array, S: Array) -> tuple[Array, Array]:
        """Counts (K,) and statistics (K, F) of the family."""
        return N, S[:, : self.family.n_statistics]

    def _of_one(self, N: float, S: Array) -> tuple[float, Array]:
        """Count and statistics (F,) of the family of one cluster."""
        count, sums = self._of_family(np.array([N]), S[None])
        return float(count[0]), sums[0]

    def _around(self, family: Likelihood) -> Self:
        """The same around another family."""
        own: Any = self  # a frozen dataclass
        found: Self = replace(own, family=family)
        return found

    def _take_over(self) -> None:
        """Set what is an attribute of a class in families."""
        for name in OF_CLASSES:
            object.__setattr__(self, name, getattr(self.family, name))

    # What inference needs ----------------------------------------------------------------------------------------------

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

    @property
    def latent(self) -> Latent | None:
        """Those of the family."""
        return self.family.latent

    @property
    def cells(self) -> Cells | None:
        """Those of the family."""
        return self.family.cells

    @property
    def n_statistics(self) -> int:
        """F, those of the family."""
        return self.family.n_statistics

    def log_base(self, X: Rows) -> Array:
        """That of the family, (n,)."""
        return self.family.log_base(self.rows_of(X))

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """W and b of the family."""
        return self.family.weights(*self._of_family(N, S))

    def draw_weights(self, N: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """W and b of the family, of parameters drawn from their posterior."""
        return self.family.draw_weights(*self._of_family(N, S), rng)

    def log_marginal(self, N: Array, S: Array) -> Array:
        """That of the family, (K,)."""
        return self.family.log_marginal(*self._of_family(N, S))

    def divergence(self, X: Rows, centers: Rows) -> Array:
        """That of the family, (n, J)."""
        return self.family.divergence(self.rows_of(X), self.rows_of(centers))

    def log_predictive(self, X: Rows, N: Array, S: Array) -> Array:
        """That of the family, (n, K)."""
        return self.family.log_predictive(self.rows_of(X), *self._of_family(N, S))

    def on_own_scale(self, X: Rows) -> Rows:
        """As the family."""
        return self.family.on_own_scale(self.rows_of(X))

    def narrowed(self, columns: NDArray[np.bool_], names: Collection[str], N: Array, S: Array) -> Self | None:
        """With a family narrowed to these columns of its rows; None where it cannot be."""
        family = self.family.narrowed(columns, names, *self._of_family(N, S))
        return None if family is None else self._around(family)

    def with_missing(self, missing: NDArray[np.bool_], S: Array) -> tuple[Self, Array]:
        """The family made for missing values in columns (D,) of its rows; statistics after those of the family stay."""
        F = self.family.n_statistics
        family, wider = self.family.with_missing(missing, S[:, :F])
        return self._around(family), np.hstack([wider, S[:, F:]])

    # What people read --------------------------------------------------------------------------------------------------

    def posterior(self, N: Array, S: Array) -> Any:
        """That of the family."""
        return self.family.posterior(*self._of_family(N, S))

    def profile(self, N: Array, S: Array) -> Profile:
        """That of the family."""
        return self.family.profile(*self._of_family(N, S))

    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Rows (size, D) of the family."""
        return self.family.sample(*self._of_one(N, S), rng, size)

    def complete(self, X: Array, N: float, S: Array, rng: np.random.Generator) -> Array:
        """Rows completed by the family."""
        return self.family.complete(self.rows_of(X), *self._of_one(N, S), rng)

    def impute(self, X: Array, R: Array, N: Array, S: Array) -> Array:
        """Rows filled in by the family."""
        return self.family.impute(self.rows_of(X), R, *self._of_family(N, S))

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

    def fills_in(self, D: int) -> NDArray[np.bool_]:
        """As the family."""
        return self.family.fills_in(D)

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

    def widened(self, least: float, names: Collection[str]) -> Self:
        """With wider clusters of the family."""
        return self._around(self.family.widened(least, names))

    def not_given(self) -> list[str]:
        """Those of the family."""
        return self.family.not_given()

    def continued(self, names: Sequence[str], other: Likelihood) -> Self:
        """With hyperparameters of another's family."""
        return self._around(self.family.continued(names, other.plain))

    def fitted(self, name: str, N: Array, S: Array) -> Iterator[Self]:
        """With a hyperparameter of the family fitted to clusters."""
        for family in self.family.fitted(name, *self._of_family(N, S)):
            yield self._around(family)

    def ahead(self, before: Likelihood, step: float) -> Self:
        """With what the family has learnt of latent variables moved on."""
        return self._around(self.family.ahead(before.family, step)) if isinstance(before, Around) else self
