"""A chain of partitions, as a task."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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


@dataclass(frozen=True)
class CollapsedChain:
    """Sweeps of collapsed Gibbs sampling, with a split or a merge of whole clusters proposed after each.

    table : the rows
    n_burn_in : sweeps before the first draw
    n_draws : sweeps that are kept ...
    thin : ... one in so many
    split_merge : whether to propose splits and merges
    """

    table: Table
    n_burn_in: int
    n_draws: int
    thin: int
    split_merge: bool

    def __call__(self, start: ChainStart) -> ChainDraws:
        """Run the chain from a start."""
        rng = np.random.default_rng(start.seed)
        draws = ChainDraws.empty(self.n_draws, self.table.n_rows)
        partition = Partition.of(self.table, start.labels)
        moved = 1.0
        for step in range(self.n_burn_in + self.n_draws * self.thin):
            partition = partition.fresh()
            moved = sweep(partition, rng, moved) / self.table.n_rows
            if self.split_merge:
                split_or_merge(partition, rng)
            place, rest = divmod(step - self.n_burn_in + 1, self.thin)
            if place > 0 and rest == 0:
                draws.note(place - 1, partition)
        return draws
