"""The memo: one summary per batch, and their total (memoized variational inference, Thesis Alg. 3.3)."""

from collections.abc import Sequence
from functools import reduce
from operator import add

from .edits import Edit
from .summary import Summary


class Memo:
    """Summaries of the batches as last visited, and their total.

    Summaries held here are never changed in place.  Replacing one batch's summary keeps the total exact at the cost of one
    subtraction and one addition; `refresh` adds the total up anew once a lap, so that rounding never drifts.
    """

    def __init__(self, n_batches: int) -> None:
        self.batches: list[Summary | None] = [None] * n_batches
        self._total: Summary | None = None

    @property
    def total(self) -> Summary:
        """The summary of all batches visited so far."""
        if self._total is None:
            raise RuntimeError("no batch has been visited yet")
        return self._total

    def replace(self, batch: int, summary: Summary) -> None:
        """Exchange the summary of one batch: total <- total - old + new."""
        old, self.batches[batch] = self.batches[batch], summary
        if self._total is None or len(self.batches) == 1:
            self._total = summary
        else:
            self._total = self._total + summary if old is None else self._total - old + summary

    def refresh(self) -> None:
        """Recompute the total from the batches."""
        present = [summary for summary in self.batches if summary is not None]
        self._total = reduce(add, present) if present else None

    def apply(self, edit: Edit, tracked: Sequence[Sequence[Summary]] = ()) -> None:
        """Apply an edit of the clusters to every batch, and refresh the total.

        tracked : for each batch, the summaries of all proposals, where the edit refers to any
        """
        parts = tracked or [()] * len(self.batches)
        self.batches = [summary and edit.applied(summary, part) for summary, part in zip(self.batches, parts)]
        self.refresh()

    def only_local(self) -> "Memo":
        """A memo of what is known of single documents, and the total."""
        twin = Memo(len(self.batches))
        twin.batches = [summary and summary.only_local() for summary in self.batches]
        twin._total = self._total
        return twin

    def copy(self) -> "Memo":
        """A memo with the same contents, sharing the summaries."""
        twin = Memo(len(self.batches))
        twin.batches = list(self.batches)
        twin._total = self._total
        return twin
