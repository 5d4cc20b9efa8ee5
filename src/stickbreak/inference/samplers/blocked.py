"""Sweeps of blocked Gibbs sampling (BJ 4.2; Ishwaran and James 2001): weights, parameters, then all rows at once."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ...kernels.seating import draw_labels
from ...model.local import product_with
from .partition import Partition, Table

Array = NDArray[np.floating]

NUMBERS = 1 << 20  # in the scores of a block of rows


@dataclass
class BlockedSteps:
    """A chain of labels, weights and parameters of so many clusters.

    Given weights and parameters rows are independent, so that they are drawn at once, by a matrix product; but a cluster
    moves no faster than parameters and rows do in turn, which takes more sweeps than integrating them out (BJ 5).

    table : the rows
    labels : (N,) the cluster of each row, below ``n_clusters``
    n_clusters : of the process cut off, or of a Dirichlet prior
    """

    table: Table
    labels: NDArray[np.int64]
    n_clusters: int

    @classmethod
    def begin(cls, n_clusters: int, table: Table, labels: NDArray[np.integer]) -> Self:
        """Begin with these labels, those beyond the clusters in the last one."""
        codes = np.unique(labels, return_inverse=True)[1]
        return cls(table, np.minimum(codes, n_clusters - 1).astype(np.int64), n_clusters)

    def step(self, rng: np.random.Generator) -> None:
        """Draw weights, parameters, the cluster of every row, and the concentration, where it has a prior."""
        table = self.table
        N, S = table.sums(self.labels, self.n_clusters)
        W, b = table.likelihood.draw_weights(N, S, rng)
        bias = b + table.seating.draw_log_weights(N, rng)
        uniform = rng.random(table.n_rows)
        size = max(1, NUMBERS // self.n_clusters)
        for start in range(0, table.n_rows, size):
            rows = slice(start, start + size)
            draw_labels(product_with(table.T[rows], W), bias, uniform[rows], self.labels[rows])
        N = np.bincount(self.labels, minlength=self.n_clusters).astype(np.float64)
        self.table = table.reseated(lambda seating: seating.log_labels(N), rng)

    @property
    def partition(self) -> Partition:
        """The clusters that have rows."""
        return Partition.of(self.table, self.labels)
