"""A chain of partitions, as a task, whatever the data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...kernels.seating import by_appearance

Array = NDArray[np.floating]


class Rows(Protocol):
    """What a chain knows of the data."""

    @property
    def n_rows(self) -> int:
        """N."""
        ...


class Drawn(Protocol):
    """A partition, as it is kept."""

    @property
    def labels(self) -> NDArray[np.int64]:
        """The cluster of each row, (N,)."""
        ...

    @property
    def K(self) -> int:
        """Number of clusters; all have rows."""
        ...

    @property
    def concentration(self) -> float:
        """That of the prior."""
        ...

    @property
    def log_joint(self) -> float:
        """Log p(X, partition), parameters and weights integrated out."""
        ...


Data = TypeVar("Data", bound=Rows)


class ChainStart(NamedTuple):
    """Where a chain begins, and the seed of its random numbers."""

    labels: NDArray[np.int64]
    seed: int


class ChainDraws(NamedTuple):
    """What a chain kept: (n_draws, N) labels, and (n_draws,) each of the rest."""

    labels: NDArray[np.int32]
    n_clusters: NDArray[np.int32]
    concentration: Array
    log_joint: Array

    @classmethod
    def empty(cls, n_draws: int, N: int) -> "ChainDraws":
        """Room for the draws."""
        labels = np.empty((n_draws, N), np.int32)
        return cls(labels, np.empty(n_draws, np.int32), np.empty(n_draws), np.empty(n_draws))

    def note(self, place: int, partition: Drawn) -> None:
        """Keep a partition."""
        by_appearance(partition.labels, np.empty(partition.K, np.int32), self.labels[place])
        self.n_clusters[place] = partition.K
        self.concentration[place] = partition.concentration
        self.log_joint[place] = partition.log_joint


class Steps(Protocol):
    """A chain at work."""

    @property
    def partition(self) -> Drawn:
        """Where it is."""
        ...

    def step(self, rng: np.random.Generator) -> None:
        """Go on by one sweep; a concentration with a prior is drawn, too."""
        ...


@dataclass(frozen=True)
class ChainTask(Generic[Data]):
    """A chain.

    table : the rows
    begin : makes the steps from the table and labels
    n_burn_in : sweeps before the first draw
    n_draws, thin : draws that are kept, and sweeps for each
    """

    table: Data
    begin: Callable[[Data, NDArray[np.integer]], Steps]
    n_burn_in: int
    n_draws: int
    thin: int = 1

    def __call__(self, start: ChainStart) -> ChainDraws:
        """Run the chain from a start."""
        rng = np.random.default_rng(start.seed)
        draws = ChainDraws.empty(self.n_draws, self.table.n_rows)
        steps = self.begin(self.table, start.labels)
        for done in range(1, self.n_burn_in + self.n_draws * self.thin + 1):
            steps.step(rng)
            place, rest = divmod(done - self.n_burn_in, self.thin)
            if place > 0 and rest == 0:
                draws.note(place - 1, steps.partition)
        return draws
