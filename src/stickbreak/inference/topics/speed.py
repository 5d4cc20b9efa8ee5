"""How long laps take with so many topics, and how far ascents settle because of that."""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from ...data import ArraySource, BagSource
from ..state import Options


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py and benchmarks/topics.py.

    Attributes
    ----------
    fast, seconds : tokens times topics: up to the first laps are fast, beyond it they take long, and beyond the second one lap
        takes seconds
    coarse_topics : annealed ascents are compared when settled to this tolerance, in nats for each topic; one that gains less
        than that gains nothing
    coarse_growth : the same of those of the growth where laps take long
    longest_step : where laps take long, as `Options.longest_step`
    last_share : where laps take long, the search ends when a lap gains less than this share of what the parameters of all
        topics cost
    """

    fast: int = 1 << 24
    seconds: int = 1 << 27
    coarse_topics: float = 3.0
    coarse_growth: float = 10.0
    longest_step: float = 0.5
    last_share: float = 1e-3


TUNING = Tuning()


class Speed(NamedTuple):
    """Whether laps are fast or take long, and how far ascents settle because of that.

    tokens : what laps take time for: tokens, or rows of groups
    """

    tokens: float

    @classmethod
    def of(cls, source: ArraySource) -> Self:
        """That of laps over a source."""
        return cls(source.n_tokens if isinstance(source, BagSource) else source.total_weight)

    def is_fast(self, K: int) -> bool:
        """Whether laps with K topics are fast; otherwise they take long."""
        return self.tokens * K <= TUNING.fast

    def takes_seconds(self, K: int) -> bool:
        """Whether a lap with K topics takes so long that it takes seconds."""
        return self.tokens * K > TUNING.seconds

    def compared(self, options: Options, K: int) -> Options:
        """How far annealed ascents settle that are compared, K topics in hand."""
        return self.with_short_steps(coarse(options), K)

    def of_growth(self, options: Options, K: int) -> Options:
        """How far ascents settle that are compared to tell how many topics are best, K in hand."""
        if self.is_fast(K):
            return options
        return self.with_short_steps(replace(options, tol=max(TUNING.coarse_growth, options.tol)), K)

    def at_last(self, options: Options, K: int) -> Options:
        """How far a search settles in the end, K topics in hand."""
        if self.is_fast(K):
            return options
        return self.with_short_steps(replace(options, share=TUNING.last_share), K)

    def with_short_steps(self, options: Options, K: int) -> Options:
        """With shorter steps ahead where laps take long: ascents end there before longer steps pay, which are often undone."""
        return options if self.is_fast(K) else replace(options, longest_step=TUNING.longest_step)


def coarse(options: Options) -> Options:
    """With the tolerance to which annealed ascents are compared."""
    return replace(options, tol=max(TUNING.coarse_topics, options.tol))
