"""Sweeps of collapsed Gibbs sampling over the clusters of rows (BJ 4.1; MacEachern 1994, Neal 2000 algorithm 3)."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ...allocations.seating import SOME
from ...kernels.seating import next_move
from .partition import Partition, Table
from .split_merge import split_or_merge

Array = NDArray[np.floating]

CALL = 60.0  # pairs of a row and a cluster whose marginals take as long as a call with none
BLOCK = 8, 512  # rows that are scored together, least and most
NUMBERS = 1 << 20  # in the statistics of a block, at most


def sweep(partition: Partition, rng: np.random.Generator, moved: float) -> int:
    """Draw the cluster of every row, in random order, each given those of all others; returns how many rows moved.

    Rows are scored in blocks, under all clusters at once.  When a row moves, only two clusters change, and what remains of the
    block is scored again under these.  So the draws are those of one row after the other, whatever the blocks.

    moved : the share of rows that moved in the last sweep, which decides on the size of blocks
    """
    table = partition.table
    order = rng.permutation(table.n_rows)
    uniform = rng.random(table.n_rows)
    size = block_size(table, partition.K, moved)
    n_moved = 0
    for start in range(0, table.n_rows, size):
        block = order[start : start + size]
        n_moved += _swept(partition, block, uniform[start : start + size])
    return n_moved


def block_size(table: Table, K: int, moved: float) -> int:
    """Rows to score together: many where few move, since each that does has the rest scored again."""
    wanted = np.sqrt(CALL / max(moved, 1e-6))
    room = NUMBERS / (K * table.T.shape[1])
    return int(np.clip(min(wanted, room), *BLOCK))


def _swept(partition: Partition, block: NDArray[np.integer], uniform: Array) -> int:
    """Draw the clusters of the rows of a block; returns how many moved."""
    seating = partition.table.seating
    least = SOME * abs(seating.concentration)
    alone = partition.table.alone[block]
    gains = partition.gains(block, np.arange(partition.K))
    n_moved = 0
    place = 0
    while True:
        labels = partition.labels[block]
        place, k = next_move(place, labels, gains, alone, partition.N, *seating, least, uniform)
        if k < 0:
            return n_moved
        own = labels[place]
        gain = float(alone[place] if k == partition.K else gains[place, k])
        if k == partition.K:
            gains = np.column_stack([gains, np.zeros(len(block))])
        gone = partition.move(int(block[place]), int(k), gain, float(gains[place, own]))
        n_moved += 1
        place += 1
        changed = [own, k]
        if gone >= 0:
            last = partition.K
            gains[:, gone] = gains[:, last]
            gains = np.ascontiguousarray(gains[:, :last])
            changed = [gone if k == last else k]
        if place < len(block):
            gains[place:, changed] = partition.gains(block[place:], np.array(changed))


@dataclass
class CollapsedSteps:
    """Sweeps, and after each, where asked for, a split or a merge of whole clusters.

    moved : the share of the rows that moved in the last sweep
    """

    partition: Partition
    split_merge: bool
    moved: float = 1.0

    @classmethod
    def begin(cls, split_merge: bool, table: Table, labels: NDArray[np.integer]) -> Self:
        """Begin with these labels."""
        return cls(Partition.of(table, labels), split_merge)

    def step(self, rng: np.random.Generator) -> None:
        """Draw the cluster of every row, propose a split or a merge, and draw the concentration, where it has a prior."""
        self.partition = self.partition.fresh()
        self.moved = sweep(self.partition, rng, self.moved) / self.partition.table.n_rows
        if self.split_merge:
            split_or_merge(self.partition, rng)
        N = self.partition.N
        self.partition.table = self.partition.table.reseated(lambda seating: seating.log_partition(N), rng)
