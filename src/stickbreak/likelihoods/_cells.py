"""Missing cells of Gaussian rows: what a likelihood that fills them in says to the local step."""

from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..kernels.cells import add_cells, fill_cells, integrate_cells
from .responsibilities import Responsibilities

Array = NDArray[np.floating]


class Block(NamedTuple):
    """Where the statistics of a Gaussian of D columns are among those of a row: from the number ``first`` on.

    holes : (H,) the columns with missing values that are not constant
    """

    first: int
    D: int
    holes: NDArray[np.int64]

    @property
    def flags(self) -> int:
        """The first of H statistics, 1 where a value is missing."""
        return self.first + self.D * (self.D + 1) // 2 + self.D

    def alike(self, T: Array, owners: NDArray[np.integer] | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows with missing cells, those with the same cells and ``owners`` (n,) together; where such begin and end."""
        absent = T[:, self.flags : self.flags + len(self.holes)]
        rows = np.flatnonzero(absent.any(axis=1)).astype(np.int64)
        if not len(rows):
            return rows, np.zeros(1, np.int64)
        absent = absent[rows]
        if owners is not None:
            absent = np.column_stack([absent, owners[rows]])
        order = np.argsort(absent @ _codes(absent.shape[1]), kind="stable")
        absent = absent[order]
        starts = 1 + np.flatnonzero((absent[1:] != absent[:-1]).any(axis=1))
        return rows[order], np.concatenate([[0], starts, [len(rows)]]).astype(np.int64)


class Cells(NamedTuple):
    """Latent values z_m of the missing cells of rows in each cluster, with q(z_m | z = k) Gaussian.

    E[log p(z_o, z_m | theta_k)] is quadratic, so with the expected precisions Q and natural means h of a cluster the best q is
    Normal(Q_mm^-1 (h_m - Q_mo z_o), Q_mm^-1): scores have the Schur complement of the observed cells.  Statistics are expected
    under q, and two kinds more make the bound a function of (N, S): numbers of missing cells, and half the log determinants of
    their covariances, by which q has entropy.  Rows with the same missing cells share a Cholesky factor for each cluster.

    Features have cells as they are without parameters, Normal(0, 1) in working coordinates each.
    """

    blocks: tuple[Block, ...]

    def shifted(self, places: int) -> Self:
        """The same where there are so many statistics before."""
        return self._replace(blocks=tuple(block._replace(first=block.first + places) for block in self.blocks))

    def integrate(self, T: Array, W: Array, C: Array) -> None:
        """Add to scores C (n, K) of rows with features T (n, F) what the best q gains."""
        for block in self.blocks:
            integrate_cells(T, *block.alike(T), *block, _plain(W), C)

    def add(self, kept: Responsibilities, weights: Array, T: Array, W: Array, S: Array) -> None:
        """Add to sums S (K, F) of features T what those of the best q have more, for responsibilities ``kept``."""
        for block in self.blocks:
            add_cells(T, *block.alike(T), *block, _plain(W), *kept, weights, S)

    def filled(self, T: Array, W: Array, owners: NDArray[np.integer]) -> Array:
        """Features T (n, F) as the best q under the cluster of each row, ``owners`` (n,), has them."""
        T = np.array(T)
        owners = owners.astype(np.int64)
        for block in self.blocks:
            fill_cells(T, *block.alike(T, owners), *block, _plain(W), owners)
        return T


def _plain(W: Array) -> Array:
    """In the one layout that loops are compiled for."""
    return np.ascontiguousarray(W, np.float64)


@lru_cache(maxsize=16)
def _codes(n: int) -> Array:
    """Numbers (n,) with which rows of whole numbers have products of their own, but for chance."""
    return np.random.default_rng(n).random(n)
