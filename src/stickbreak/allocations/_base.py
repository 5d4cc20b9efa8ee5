"""What an allocation must say: how rows choose clusters, and its share of the bound."""

from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from .._arguments import real, shown

Array = NDArray[np.floating]

RANGE = 1e-12, 1e6  # of concentrations in models of documents and sequences
CURVATURE = np.pi**2 / 12  # half the largest second derivative of log Gamma(1 + x) for x >= 0


class GlobalStep(NamedTuple):
    """What local steps need to know of an allocation.

    log_weights : (K,) E[log pi_k], which are added to the scores of rows; zero where documents or sequences have their own
    prior : for documents the pseudo-counts of the clusters and of the rest (K + 1,); for sequences exp(E[log pi]) of first
        states and of the transitions from each state (K + 1, K)
    """

    log_weights: Array
    prior: Array | None = None


class Solution(Protocol):
    """The optimum of an allocation for a summary, or another point."""

    @property
    def shares(self) -> Array:
        """Expected weights of the clusters (K,); of documents and sequences also of the rest (K + 1,)."""
        ...

    @property
    def value(self) -> float:
        """The part of the bound that depends on them (`Allocation.bound_at`)."""
        ...


class Solved(NamedTuple):
    """A solution that was searched for."""

    shares: Array
    value: float


class Allocation(Protocol):
    """The prior over cluster assignments: a frozen dataclass of concentrations.

    Methods are pure functions of a summary, which for independent rows means of its counts N (K,).
    """

    @property
    def max_clusters(self) -> int:
        """The most clusters that may be in use."""
        ...

    def tuned(self, summary: Any, names: tuple[str, ...], solution: Solution) -> tuple[Self, Solution]:
        """This prior with the concentrations ``names`` set to values that raise the bound of a summary, and its optimum.

        solution : the optimum of this prior
        """
        ...

    def concluded(self, summary: Any, names: tuple[str, ...]) -> Self:
        """This prior at the end of a fit that learns the concentrations ``names``; its bound is no lower."""
        ...

    @property
    def in_laps(self) -> Self:
        """This prior with the bound that laps climb."""
        ...

    @property
    def flat(self) -> "Allocation":
        """The prior for rows without documents or sequences: this one, if it knows of none."""
        ...

    def solve(self, summary: Any) -> Solution:
        """The optimum for a summary; a search where documents or sequences follow the shares."""
        ...

    def at(self, summary: Any, shares: Array) -> Solution:
        """The solution with these shares, which saves the search at the cost of a lower bound."""
        ...

    def update(self, summary: Any, solution: Solution) -> GlobalStep:
        """The global step at a solution."""
        ...

    def bound_at(self, summary: Any, solution: Solution) -> float:
        """This allocation's part of the ELBO at a solution, without the assignment entropy."""
        ...

    def bound(self, summary: Any) -> float:
        """The same at the optimum."""
        ...

    def order(self, summary: Any) -> NDArray[np.integer]:
        """An order of clusters with a high bound, if not the highest."""
        ...

    def merge_gains(
        self, summary: Any, shares: Array, first: NDArray[np.integer], second: NDArray[np.integer]
    ) -> Array:
        """What the log probability of certain assignments gains where clusters first[i] and second[i] become one, (n,)."""
        ...

    def merged_shares(self, shares: Array, a: int, b: int) -> Array:
        """Shares after cluster b has joined cluster a and has none."""
        ...

    def mean_weights(self, summary: Any) -> Array:
        """Posterior mean of the cluster weights (K,), normalised over the K clusters in use."""
        ...


class OneBound:
    """An allocation with one bound, in laps and at the end."""

    def concluded(self, summary: Any, names: tuple[str, ...]) -> Self:
        """The same prior."""
        return self

    @property
    def in_laps(self) -> Self:
        """The same prior."""
        return self


def check_concentration(value: Any, name: str = "concentration", least: float = 1e-300, most: float = 1e300) -> None:
    """Refuse a concentration outside the range in which the bound is computed without loss of digits."""
    if not least <= real(value) <= most:
        raise ValueError(f"{name} must be a positive number from {least:g} to {most:g}; got {shown(value)}.")


def within_range(value: float, least: float = 1e-300, most: float = 1e300) -> float:
    """The nearest concentration that `check_concentration` allows."""
    return min(max(value, least), most)
