"""A chain of partitions, as a task."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ...allocations.seating import Seating
from ...kernels.seating import by_appearance
from .collapsed import sweep
from .partition import Partition, Table
from .split_merge import split_or_merge

Array = NDArray[np.floating]


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

    def note(self, place: int, partition: Partition) -> None:
        """Keep a partition."""
        by_appearance(partition.labels, np.empty(partition.K, np.int32), self.labels[place])
        self.n_clusters[place] = partition.K
        self.concentration[place] = partition.table.seating.concentration
        self.log_joint[place] = partition.log_joint


class Steps(Protocol):
    """A chain at work."""

    @property
    def partition(self) -> Partition:
        """Where it is."""
        ...

    def log_chance(self, seating: Seating) -> float:
        """Log probability of the labels with a seating."""
        ...

    def reseat(self, seating: Seating) -> None:
        """Go on with another seating."""
        ...

    def step(self, rng: np.random.Generator) -> None:
        """Go on by one sweep."""
        ...


@dataclass
class CollapsedSteps:
    """Sweeps of collapsed Gibbs sampling, and after each, where asked for, a split or a merge of whole clusters.

    moved : the share of the rows that moved in the last sweep
    """

    partition: Partition
    split_merge: bool
    moved: float = 1.0

    @classmethod
    def begin(cls, split_merge: bool, table: Table, labels: NDArray[np.integer]) -> Self:
        """Begin with these labels."""
        return cls(Partition.of(table, labels), split_merge)

    def log_chance(self, seating: Seating) -> float:
        """Log probability of the partition."""
        return seating.log_partition(self.partition.N)

    def reseat(self, seating: Seating) -> None:
        """Go on with another seating."""
        self.partition.table = self.partition.table._replace(seating=seating)

    def step(self, rng: np.random.Generator) -> None:
        """Draw the cluster of every row, then propose a split or a merge."""
        self.partition = self.partition.fresh()
        self.moved = sweep(self.partition, rng, self.moved) / self.partition.table.n_rows
        if self.split_merge:
            split_or_merge(self.partition, rng)


@dataclass(frozen=True)
class ChainTask:
    """A chain.

    table : the rows
    begin : makes the steps from the table and labels
    n_burn_in : sweeps before the first draw
    n_draws, thin : draws that are kept, and sweeps for each
    """

    table: Table
    begin: Callable[[Table, NDArray[np.integer]], Steps]
    n_burn_in: int
    n_draws: int
    thin: int = 1

    def __call__(self, start: ChainStart) -> ChainDraws:
        """Run the chain from a start."""
        rng = np.random.default_rng(start.seed)
        draws = ChainDraws.empty(self.n_draws, self.table.n_rows)
        steps = self.begin(self.table, start.labels)
        seating = self.table.seating
        for done in range(1, self.n_burn_in + self.n_draws * self.thin + 1):
            steps.step(rng)
            seating = self.table.allocation.draw_seating(seating, steps.log_chance, rng)
            steps.reseat(seating)
            place, rest = divmod(done - self.n_burn_in, self.thin)
            if place > 0 and rest == 0:
                draws.note(place - 1, steps.partition)
        return draws
