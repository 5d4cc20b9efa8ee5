"""The local step of rows under the clusters nearest to the one that each row had at the last visit.

Of K clusters a row has two or three that matter.  Rows are grouped by their clusters at the last visit, and each group is
scored under the C clusters that explain the rows of its cluster best, or fewer where the others are too far: a visit costs
N C F in place of N K F.  Any responsibilities give a valid bound, so a visit of this kind has an exact one; that of a visit to
all clusters may be higher.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.assign import accumulate, count_and_entropy, near_scores, rearranged
from ..likelihoods import Likelihood
from ..likelihoods.features import Rows, features, largest_terms
from ..likelihoods.responsibilities import Responsibilities, join
from .local import (
    block_rows,
    block_step,
    limited,
    responsibility_threshold,
    restricted_step,
    softmax,
)
from .parameters import Parameters
from .summary import Summary

Array = NDArray[np.floating]
UNKNOWN = -1  # the cluster of a row that had none, or one that is no more
NONE = -1  # in place of a cluster that is too far
FEWEST = 4  # near clusters, however far: of one or two a scan would take no less time
SORTED_FAST = np.iinfo(np.int16).max  # numbers up to this are sorted by their digits


def nearest_clusters(divergences: Array, C: int, farthest: float = np.inf) -> NDArray[np.int32]:
    """The C clusters that explain the average row of each cluster best, itself among them, in ascending order: (K, C).

    divergences : (K, K) nats that an average row of cluster a loses if cluster b explains it (`Posterior.divergences`)
    farthest : nats; clusters beyond are left out, but for the nearest `FEWEST`; their places, the last, have `NONE`
    """
    K = len(divergences)
    distance = np.array(divergences)
    np.fill_diagonal(distance, -np.inf)
    chosen = np.argpartition(distance, C - 1, axis=1)[:, :C]
    near = np.take_along_axis(distance, chosen, axis=1)
    ranks = np.argsort(np.argsort(near, axis=1, kind="stable"), axis=1)
    chosen[(near > farthest) & (ranks >= FEWEST)] = K
    chosen.sort(axis=1)
    widest = int((chosen < K).sum(axis=1).max())
    return np.where(chosen < K, chosen, NONE)[:, :widest].astype(np.int32)


def near_step(
    likelihood: Likelihood,
    parameters: Parameters,
    nearest: NDArray[np.int32],
    X: Rows,
    weights: Array,
    owners: NDArray[np.integer],
    most_kept: int | None = None,
) -> tuple[Summary, Responsibilities]:
    """Responsibilities of rows X (n, D) under the clusters near their own, and their summary; without the base measure.

    nearest : (K, C) the clusters that rows of each cluster may choose, ascending, of those with fewer `NONE` last
    owners : (n,) the cluster of each row at the last visit, or `UNKNOWN`: such a row may choose any
    most_kept : L, the most clusters that a row has responsibilities for; None for no limit
    """
    return _Visit(likelihood, parameters, nearest, most_kept).of(X, weights, owners)


class _Visit(NamedTuple):
    """A local step of rows: parameters of the clusters, and which of them rows of each may choose."""

    likelihood: Likelihood
    parameters: Parameters
    nearest: NDArray[np.int32]
    most_kept: int | None

    def of(self, X: Rows, weights: Array, owners: NDArray[np.integer]) -> tuple[Summary, Responsibilities]:
        """The step for some rows (see `near_step`)."""
        n = X.shape[0]
        few = len(self.nearest) <= SORTED_FAST
        order = np.argsort(owners.astype(np.int16) if few else owners, kind="stable")
        first = int(np.searchsorted(owners[order], UNKNOWN, side="right"))
        summary, pieces = self._among_all(X, weights, order[:first])
        F = self.parameters.W.shape[1]
        rows = block_rows(F, self.nearest.shape[1])
        T = np.empty((min(rows, n), F), self.parameters.W.dtype)  # used again for every block
        for start in range(first, n, rows):
            block = order[start : start + rows]
            pieces.append(self._block(X[block], weights[block], owners[block], T[: len(block)], summary))
        return summary, _in_order(join(pieces), order)

    def _among_all(self, X: Rows, weights: Array, rows: NDArray[np.integer]) -> tuple[Summary, list[Responsibilities]]:
        """Summary and responsibilities of rows that may choose any cluster."""
        most = None if self.most_kept is None else np.full(len(rows), self.most_kept)
        ones = np.ones(len(rows))
        summary, kept = restricted_step(self.likelihood, self.parameters, X[rows], weights[rows], ones, most)
        return summary, [kept]

    def _block(
        self, X: Rows, weights: Array, owners: NDArray[np.integer], out: Array, summary: Summary
    ) -> Responsibilities:
        """Responsibilities of rows in the order of their owners, whose features fit ``out``; they are added to ``summary``.

        Rows too far from their clusters for scores to be told apart choose among all.
        """
        n = len(owners)
        dtype = self.parameters.W.dtype
        ones = np.ones(n)
        most = None if self.most_kept is None else np.full(n, self.most_kept)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is done again
            T = features(self.likelihood, X, dtype, out)
        C = self.nearest.shape[1]
        scores = np.full((n, C), -np.inf, dtype)
        near_scores(T, owners, self.nearest, self.parameters.W, self.parameters.bias, scores)
        kept = softmax(scores, np.zeros(C, dtype), responsibility_threshold(dtype), largest_terms(dtype))
        if kept is None:
            return block_step(self.likelihood, self.parameters, X, weights, ones, summary, out, most)
        places = limited(kept, scores, most)
        clusters = self.nearest[np.repeat(owners, np.diff(places.indptr)), places.indices]
        kept = Responsibilities(places.indptr, clusters, places.values)
        count_and_entropy(*kept, weights, ones, summary.N, summary.H)
        accumulate(*kept, weights, T, summary.S)
        return kept


def _in_order(kept: Responsibilities, order: NDArray[np.integer]) -> Responsibilities:
    """Responsibilities of rows taken in this order, (n,), as those of the rows in their own."""
    indptr = np.empty_like(kept.indptr)
    indices = np.empty_like(kept.indices)
    values = np.empty_like(kept.values)
    rearranged(*kept, order, indptr, indices, values)
    return Responsibilities(indptr, indices, values)
