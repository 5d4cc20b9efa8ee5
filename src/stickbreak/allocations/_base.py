"""What an allocation must say: how rows choose clusters, and its share of the bound."""

from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..model.summary import Summary

Array = NDArray[np.floating]


class Responsibilities(NamedTuple):
    """Sparse responsibilities of n rows: row i holds ``values[indptr[i]:indptr[i + 1]]`` on clusters ``indices[...]``."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: Array


class Allocation(Protocol):
    """The prior over cluster assignments: a frozen dataclass of concentrations.

    Methods are pure functions of a summary, which for independent rows means of its counts N (K,).
    """

    @property
    def max_clusters(self) -> int:
        """The most clusters that may be in use."""
        ...

    def scaled(self, factor: float) -> Self:
        """This prior with its concentration multiplied by a factor."""
        ...

    def update(self, summary: "Summary") -> Array:
        """Global step: E_q[log pi_k] (K,)."""
        ...

    def local(self, C: Array, bias: Array, threshold: float) -> Responsibilities:
        """Local step for a block of rows: scores ``C + bias`` (n, K) to responsibilities, which also replace C."""
        ...

    def bound(self, summary: "Summary") -> float:
        """This allocation's part of the ELBO at its optimal global step, without the assignment entropy."""
        ...

    def order(self, summary: "Summary") -> NDArray[np.integer]:
        """The order of clusters that maximises `bound`."""
        ...

    def mean_weights(self, summary: "Summary") -> Array:
        """Posterior mean of the cluster weights (K,), normalised over the K clusters in use."""
        ...
