"""Edits of the clusters in the summaries of all batches, as values: what moves and reordering do to a memo."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

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


Edit = Take | Exchange | Replace


def side_by_side(summaries: Iterable[Summary]) -> Summary:
    """The clusters of several summaries of the same rows, one after another."""
    return reduce(lambda left, right: left.exchange((), right), summaries)
