"""What ascents from several numbers of topics say of the best number."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

FEWEST = 3  # numbers of topics that determine a parabola


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py and benchmarks/topics.py.

    Attributes
    ----------
    seen : the last ascents whose bounds tell how many topics are best
    beyond : the next ascent has no more than so many times the number of topics that seems best by these, but at least so
        many times the topics in hand
    near : more topics are not better if the number that seems best is less than so many times the largest that was tried
    """

    seen: int = 4
    beyond: float = 1.25
    near: float = 1.25


TUNING = Tuning()


@dataclass
class Tried:
    """The highest bound for each number of topics that was tried.

    Near the best number, bounds are about a parabola in the logarithm of the number; the one nearest to the last few has its
    top where more topics begin to cost more than they explain.
    """

    bounds: dict[int, float] = field(default_factory=dict)

    def note(self, K: int, bound: float) -> None:
        """Keep the bound of an ascent with so many topics, if it is the highest."""
        self.bounds[K] = max(bound, self.bounds.get(K, -np.inf))

    @property
    def sizes(self) -> list[int]:
        """The numbers of topics, in order."""
        return sorted(self.bounds)

    @property
    def best(self) -> int:
        """The number of topics with the highest bound."""
        return max(self.bounds, key=lambda K: self.bounds[K])

    def rises(self) -> bool:
        """Whether many more topics than were tried are likely to be better; so it is until three numbers were tried."""
        sizes = self.sizes
        return len(sizes) < FEWEST or bool(self.top_of(sizes)[0] >= TUNING.near * sizes[-1])

    def pace(self, K: int, most: float) -> float:
        """How many times as many topics as K to try next: ``most`` at the most, and not far beyond the top."""
        sizes = self.sizes
        if len(sizes) < FEWEST:
            return most
        return float(np.clip(TUNING.beyond * self.top_of(sizes)[0] / K, TUNING.beyond, most))

    def best_number(self, most: int, lacking: float = 0.0) -> int:
        """The number of topics that seems best, ``most`` at the most; 0 if the bounds do not tell.

        lacking : or the fewest that by the same parabola lack no more than so many nats for each topic
        """
        sizes = self.sizes
        last = min(int(np.argmax([self.bounds[K] for K in sizes])) + 1, len(sizes) - 1)
        if last < FEWEST - 1:
            return 0
        best, bend = self.top_of(sizes[: last + 1])
        best = min(best, TUNING.beyond * sizes[last])
        if bend > 0.0:
            best *= np.exp(-np.sqrt(lacking * best / bend))
        return min(int(np.ceil(best)), most)

    def top_of(self, sizes: Sequence[int]) -> tuple[float, float]:
        """The number of topics that is best by the last of some that were tried, and what a distance costs (`top`)."""
        last = sizes[-TUNING.seen :]
        best, bend = top(np.log(last), np.array([self.bounds[K] for K in last]))
        return float(np.exp(best)), bend


def top(x: Array, y: Array) -> tuple[float, float]:
    """Where the parabola nearest to points has its top, and what the square of a distance from there costs.

    Infinity, and zero, if it has none.
    """
    middle = x.mean()
    bend, slope, _ = np.polyfit(x - middle, y - y.mean(), 2)
    if not bend < 0.0:
        return np.inf, 0.0
    return float(middle - 0.5 * slope / bend), float(-bend)
