"""What allocations read of a summary."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


class Counts(Protocol):
    """What every allocation reads."""

    @property
    def N(self) -> Array:
        """Expected rows of each cluster, (K,)."""
        ...

    @property
    def H(self) -> Array:
        """Entropies of the assignments to each cluster, (K,)."""
        ...

    @property
    def K(self) -> int:
        """Number of clusters."""
        ...


@dataclass(frozen=True, eq=False)
class Sizes:
    """Counts alone, N (K,), of certain assignments."""

    N: Array

    @property
    def H(self) -> Array:
        """No entropy, (K,)."""
        return np.zeros(self.K)

    @property
    def K(self) -> int:
        """Number of clusters."""
        return len(self.N)


class Documents(Counts, Protocol):
    """What an allocation of topics reads."""

    @property
    def D(self) -> Array:
        """Number of documents, ()."""
        ...

    @property
    def P(self) -> Array:
        """sum_d E[log pi_dk], (K,)."""
        ...

    @property
    def P_rest(self) -> Array:
        """The same of topics not in use, ()."""
        ...

    @property
    def Q(self) -> Array:
        """sum_d log Gamma(theta_dk) - (theta_dk - N_dk) E[log pi_dk], (K,)."""
        ...

    @property
    def Q_rest(self) -> Array:
        """The same of topics not in use, - sum_d log Gamma(sum_k theta_dk), ()."""
        ...


class States(Counts, Protocol):
    """What a chain reads."""

    @property
    def transitions(self) -> Array:
        """Expected first states and transitions, (K + 1, K)."""
        ...
