"""Edits of the clusters in the summaries of all batches, as values: what moves and reordering do to a memo."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .summary import Summary


@dataclass(frozen=True)
class Take:
    """Reorder or drop clusters: the new cluster i is the old one ``clusters[i]``."""

    clusters: tuple[int, ...]

    def applied(self, summary: Summary, tracked: Sequence[Summary]) -> Summary:
        """The summary of a batch after the edit."""
        return summary.take(self.clusters)


@dataclass(frozen=True)
class Exchange:
    """Replace clusters ``removed`` by those of some proposals, by number, which come last."""

    removed: tuple[int, ...]
    proposals: tuple[int, ...]

    def applied(self, summary: Summary, tracked: Sequence[Summary]) -> Summary:
        """The summary of a batch after the edit, given the summaries of all proposals in that batch."""
        return summary.exchange(self.removed, side_by_side(tracked[i] for i in self.proposals))


@dataclass(frozen=True)
class Replace:
    """Replace all clusters by those of a proposal, by number."""

    proposal: int

    def applied(self, summary: Summary, tracked: Sequence[Summary]) -> Summary:
        """The summary of a batch after the edit, given the summaries of all proposals in that batch."""
        return replace(tracked[self.proposal], base=summary.base)


@dataclass(frozen=True)
class Handover:
    """Hand the mass of a cluster to n new ones, which come last, in the batch where these were summarised.

    The cluster keeps its place and is empty there; in all other batches the new ones are (Thesis Eq. 4.21 and 4.22).
    """

    cluster: int
    n: int

    def applied(self, summary: Summary, tracked: Sequence[Summary]) -> Summary:
        """The summary of a batch after the edit, given that of the new clusters, if they have any mass in it."""
        if len(tracked) == 0:
            return summary.insert_empty(self.n)
        K = summary.K
        handed = summary.exchange((self.cluster,), tracked[0]).insert_empty(1)
        order = list(range(K - 1 + self.n))
        order.insert(self.cluster, K - 1 + self.n)
        return handed.take(order)


@dataclass(frozen=True)
class Rename:
    """Give the clusters other marks (K, G): their last G statistics, to which no row adds (`Likelihood.carry`)."""

    marks: NDArray[np.floating]

    def applied(self, summary: Summary, tracked: Sequence[Summary]) -> Summary:
        """The summary of a batch after the edit."""
        kept = summary.S[:, : summary.S.shape[1] - self.marks.shape[1]]
        return replace(summary, S=np.hstack([kept, self.marks]))


Edit = Take | Exchange | Replace | Handover | Rename


def side_by_side(summaries: Iterable[Summary]) -> Summary:
    """The clusters of several summaries of the same rows, one after another: put together in pairs, which copies least."""
    found = list(summaries)
    while len(found) > 1:
        pairs = [left.exchange((), right) for left, right in zip(found[::2], found[1::2])]
        found = pairs + found[2 * len(pairs) :]
    return found[0]
