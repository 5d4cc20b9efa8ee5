"""Sequences cut into segments that a device goes through in lock-step."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.intp]


class Tuning(NamedTuple):
    """How long segments are.

    card, processor : multiplications that a device does in the time of a step of messages: with few rows at a time, that of
        starting the step
    """

    card: float = 1e9
    processor: float = 1e5


TUNING = Tuning()
LANE, SHORT = 32, 256  # rows of a segment with run-ups; rows of sequences that are not cut


@dataclass(frozen=True)
class Segments:
    """The rows of a block as segments of consecutive rows of one sequence, the longest first.

    Rows are taken step by step, and at each step one row of each segment that is as long: rows
    ``edges[t]:edges[t + 1]`` of the new order are those of step t, of the first segments in their order.

    Attributes
    ----------
    starts, lengths : (G,) the first row of each segment, and how many there are
    parts : the segments of each part of the block that is of one sequence, in their order
    """

    starts: Index
    lengths: Index
    parts: tuple[Index, ...]

    @classmethod
    def of(cls, begins: Index, n: int, longest: int) -> "Segments":
        """Segments of at most ``longest`` rows of a block of n rows, where ``begins`` are the first rows of its parts."""
        starts: list[int] = []
        lengths: list[int] = []
        owner: list[int] = []
        for part, (a, b) in enumerate(pairwise([*begins.tolist(), n])):
            edges = np.linspace(a, b, -(-(b - a) // longest) + 1).astype(int)
            starts += edges[:-1].tolist()
            lengths += np.diff(edges).tolist()
            owner += [part] * (len(edges) - 1)
        order = np.lexsort((np.array(starts), -np.array(lengths)))
        place = np.empty(len(order), np.intp)
        place[order] = np.arange(len(order))
        bounds = np.searchsorted(owner, np.arange(len(begins) + 1))
        parts = tuple(place[a:b] for a, b in pairwise(bounds.tolist()))
        return cls(np.array(starts)[order], np.array(lengths)[order], parts)

    @property
    def n_steps(self) -> int:
        """The length of the longest segment."""
        return int(self.lengths[0])

    @cached_property
    def active(self) -> Index:
        """How many segments have a row at each step, (T,)."""
        return np.asarray(np.searchsorted(-self.lengths, -np.arange(self.n_steps), side="left"))

    @cached_property
    def edges(self) -> Index:
        """Where the rows of each step begin, and n, (T + 1,)."""
        return np.concatenate([[0], np.cumsum(self.active)])

    @cached_property
    def order(self) -> Index:
        """The row of the block at each place of the new order, (n,)."""
        step = np.repeat(np.arange(self.n_steps), self.active)
        segment = np.arange(len(step)) - self.edges[step]
        return np.asarray(self.starts[segment] + step)

    @cached_property
    def before(self) -> Index:
        """Where the row before each is in the new order, for all rows but those of the first step, (n - G,)."""
        step = np.repeat(np.arange(1, self.n_steps), self.active[1:])
        return np.asarray(np.arange(len(self.starts), self.edges[-1]) - self.active[step - 1])


def segment_length(begins: Index, n: int, K: int, is_card: bool, most: int) -> int:
    """How long the segments of a block are: as long as its parts, or such that a scan over segments takes fewer steps.

    A scan multiplies a (K, K) matrix with another at every row, and then goes through 3 B steps of segments of B rows, and
    2 T / B of the T rows of the longest part.

    most : segments for whose matrices there is memory
    """
    longest = int(np.diff([*begins.tolist(), n]).max())
    length = max(int(np.sqrt(2.0 * longest / 3.0)), -(-n // max(most - len(begins), 1)), 1)
    step = TUNING.card if is_card else TUNING.processor
    whole = 2.0 * longest * step
    cut = (3.0 * length + 2.0 * longest / length) * step + float(n) * K**3
    return length if cut < whole and len(begins) < most else longest
