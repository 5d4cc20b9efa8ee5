"""Bounded samples of a stream, which stand for rows, documents or sequences that are gone."""

from typing import NamedTuple, Self

import numpy as np
from scipy import sparse

from ..data import ArraySource, SparseSource
from ..likelihoods.features import Rows
from ..model import Summary


def mixed(old: ArraySource, new: ArraySource, share: float, most: int, rng: np.random.Generator) -> ArraySource:
    """A sample of at most ``most`` rows (of documents as many, of sequences about as many rows) of a stream.

    old : a sample of what came before, each with the same chance
    new : what has come since, with this share of the weight of both
    """
    n = new.n_present
    wanted = n if old.n_rows + n <= most else int(rng.binomial(most, share))
    wanted = int(np.clip(wanted, min(n, most - old.n_rows), min(n, most)))
    return old.portion(min(old.n_rows, most - wanted), most, rng).joined(new.portion(wanted, most, rng))


class Remembered(NamedTuple):
    """A bounded sample of the rows of a stream.

    held : (R, D), each row with the same chance to be in it, or with forgetting a chance that fades as its weight does
    waiting : rows that have come since moves were last judged on these
    turn : the cluster whose split is tried next
    """

    held: ArraySource
    waiting: int = 0
    turn: int = 0

    @property
    def X(self) -> Rows:
        """The rows (R, D)."""
        return self.held.X

    @property
    def size(self) -> int:
        """R."""
        return self.held.n_rows

    def standing_for(self, weight: float) -> ArraySource:
        """The rows of the sample, with weights that add up to that of the stream."""
        weights = np.full(self.size, weight / max(self.size, 1))
        return SparseSource(self.X, weights) if sparse.issparse(self.X) else ArraySource(self.X, weights)

    def after(self, source: ArraySource, weight: float, most: int, rng: np.random.Generator) -> Self:
        """The sample, of at most ``most`` rows, after those of a source came to others of this weight."""
        share = source.total_weight / (weight + source.total_weight)
        held = mixed(self.held, source, share, most, rng)
        return self._replace(held=held, waiting=self.waiting + source.n_present)


class Recalled(NamedTuple):
    """What a stream of documents or sequences is remembered by: a sample of it, and what has come of late.

    Weights and sizes are numbers of documents, or of rows of sequences.

    held : a sample of all that came before moves were last judged, each with the same chance; None where nothing is known of it
    weight : what it stands for, less what is forgotten
    recent : what has come since, of large batches a sample; None if nothing has
    arrived : what that stands for, less what is forgotten
    sums : the part of the stream's summary that is of what has come since
    rest : what must have come before moves are judged early again
    filling : what must still come before anything counts as recent, where nothing was remembered of a stream
    """

    held: ArraySource | None
    weight: float
    recent: ArraySource | None = None
    arrived: float = 0.0
    sums: Summary | None = None
    rest: int = 0
    filling: int = 0

    def after(
        self, source: ArraySource, seen: Summary | None, forgetting: float, most: int, rng: np.random.Generator
    ) -> Self:
        """What is remembered after a batch, before which all else lost a share of its weight.

        Each document or sequence is forgotten with the chance that its weight fades by, so that those that are left all weigh
        the same.

        seen : the summary of the batch that the stream's has got; None for the first, which is not recent
        """
        held = _faded(self.held, forgetting, most, rng)
        recent = _faded(self.recent, forgetting, most, rng)
        new = source.portion(min(source.n_present, most), most, rng)
        new = new.joined() if recent is None else recent.joined(new)  # copies, for the data of a caller may change
        if held is None or seen is None or self.filling > 0:
            weight = forgetting * self.weight + source.n_rows
            held = new if held is None else mixed(held, new, source.n_rows / weight, most, rng)
            return self._replace(held=held, weight=weight, filling=max(0, self.filling - source.n_rows))
        known = self.sums
        fits = known is None or known.S.shape == seen.S.shape  # more columns may have missing values now
        return self._replace(
            held=held,
            weight=forgetting * self.weight,
            recent=new,
            arrived=forgetting * self.arrived + source.n_rows,
            sums=seen if known is None or not fits else known * forgetting + seen,
        )

    @property
    def size(self) -> int:
        """What is remembered."""
        return sum(part.n_rows for part in (self.held, self.recent) if part is not None)

    @property
    def whole(self) -> ArraySource:
        """All that is remembered."""
        first, *others = (part for part in (self.held, self.recent) if part is not None)
        return first.joined(*others) if others else first

    def is_due(self, early: bool) -> bool:
        """Whether moves are to be judged: when half as much has come as the sample holds, or early where that is asked for."""
        if self.recent is None or self.held is None:
            return False
        new = self.recent.n_rows
        return 2 * new >= self.held.n_rows or (early and new >= self.rest)

    def judged(self, in_vain: bool, most: int, rng: np.random.Generator) -> "Recalled":
        """The sample of all that has come, once moves are judged.

        in_vain : whether none was accepted; then it takes twice as much until they are judged early again
        """
        assert self.held is not None
        assert self.recent is not None
        rest = 2 * max(self.rest, self.recent.n_rows) if in_vain else 0
        weight = self.weight + self.arrived
        held = mixed(self.held, self.recent, self.arrived / weight, most, rng)
        return Recalled(held, weight, rest=rest)


def _faded(part: ArraySource | None, kept: float, most: int, rng: np.random.Generator) -> ArraySource | None:
    """What is left of a sample of which each is kept with the same chance."""
    if part is None or kept >= 1.0:
        return part
    return part.portion(int(rng.binomial(part.n_rows, kept)), most, rng)
