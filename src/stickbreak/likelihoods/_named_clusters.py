"""What a likelihood says of clusters that have a name, and a prior of their own, in advance: by default there are none."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class NamedClusters:
    """Clusters that are named in advance: those of `Seeded`."""

    @property
    def apart(self) -> float:
        """Nats that merges of two clusters lose which both are named in advance: no data make good for these."""
        return 0.0

    def named(self, S: Array) -> NDArray[np.bool_]:
        """Which clusters, with statistics S (K, F), are named in advance and stay, also without rows, (K,)."""
        return np.zeros(len(S), np.bool_)

    def names_of(self, S: Array) -> dict[str, int]:
        """The cluster of each name, where some are named in advance."""
        return {}

    def carry(self, source: Array, S: Array) -> None:
        """Write to sums S (K, F) what clusters have of their own and no row says, as ``source`` (K, F), W or sums, has it."""

    def inherited(self, N: Array, S: Array, marks: Array) -> Array:
        """Statistics (J, F) of the children of a cluster with statistics (F,), which carry what that did (`carry`)."""
        return S

    def begun(self, N: Array, S: Array, most: int) -> Array:
        """Statistics of a start, with those of clusters that are named in advance and are not among the K; ``most`` in all."""
        return S

    def renamed(self, N: Array, S: Array) -> Array:
        """Statistics with names where they raise the sum of the log marginals most; ``S`` itself where they are."""
        return S
