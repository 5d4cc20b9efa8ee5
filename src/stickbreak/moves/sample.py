"""Samples of the rows of each cluster, drawn while the data are visited, for births to be fitted to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..allocations import Responsibilities
from ..data import ArraySource
from ..data.distinct import distinct_rows
from ..kernels.assign import select_rows
from ..likelihoods._base import entries
from ..model import Model, Summary
from .birth import Target

Array = NDArray[np.floating]

THRESHOLD = 0.1  # rows with more responsibility than this represent a cluster (2013 supplement, Eq. 23)
FEATURES = 1 << 22  # numbers in the features of one sample: 32 MiB in float64
ROWS = 3000


class Drawn(NamedTuple):
    """Rows drawn from one chunk: identity of the cluster, row number, responsibility over the chance of being drawn."""

    owners: NDArray[np.integer]
    rows: NDArray[np.integer]
    chosen: Array


@dataclass(frozen=True)
class Draw:
    """How rows are drawn in a lap: chance per unit of weight and cluster, a salt for the random numbers, identities."""

    limits: Array
    salt: int
    ids: NDArray[np.integer]

    def chunk(self, kept: Responsibilities, weights: Array, first: int) -> Drawn:
        """The rows drawn from one chunk that starts at row ``first``."""
        n = kept.values.size
        clusters, rows, chosen = np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n)
        count = select_rows(*kept, weights, THRESHOLD, self.limits, np.uint64(self.salt), first, clusters, rows, chosen)
        return Drawn(self.ids[clusters[:count]], rows[:count] + first, chosen[:count].copy())


def plan_draw(model: Model, source: ArraySource, counts: Array, ids: Sequence[int], rng: np.random.Generator) -> Draw:
    """Draw about 3,000 rows of each cluster of ``counts`` (K,), fewer where their features would not fit in 32 MiB."""
    wanted = max(1, min(ROWS, FEATURES // entries(model.likelihood, source.row_size)))
    limits = wanted / np.maximum(counts, 1e-300)
    return Draw(limits, int(rng.integers(2**63)), np.array(ids))


def targets(
    total: Summary,
    ids: Sequence[int],
    source: ArraySource,
    drawn: list[Drawn],
    children: Callable[[int], int],
    rng: np.random.Generator,
) -> list[Target]:
    """Samples of the clusters k for which ``children(k)``, how many to fit, is at least two."""
    owners, rows, chosen = (np.concatenate(parts) for parts in zip(*drawn))
    found = []
    for k, identity in enumerate(ids):
        mine = np.flatnonzero(owners == identity)
        J = children(k)
        if J >= 2 and mine.size:
            mine = mine[np.argsort(rows[mine], kind="stable")]
            X, weights = source.take(rows[mine])
            X, weights = distinct_rows(X, weights * chosen[mine])
            J = min(J, len(weights))
            if J >= 2:
                found.append(Target(k, total.take([k]), X, weights, J, int(rng.integers(2**63))))
    return found
