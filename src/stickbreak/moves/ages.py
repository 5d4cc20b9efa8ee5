"""States in phases, one for each of their ages, where durations are learnt along with the states.

Where rows say little of their state, the best path cuts its segments in wrong places, and their durations look geometric
whatever they are.  A chain whose states are left with a chance of their own at each age (`stickbreak.model.ages`) finds both
together.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import SequenceSource
from ..likelihoods import Likelihood
from ..model import Model, SequenceSummary, Summary
from ..model.ages import Ages, Counts
from .durations import MOST, WRONG, costs, gains

LAPS = 100  # at most
TOLERANCE = 0.05  # nats for each state, below which another lap is not worth it
FEWEST = 0.5  # rows of a phase
NUMBERS = 1 << 24  # in the messages of all rows, at most: 128 MiB


class Aged(NamedTuple):
    """A start in phases, and which states are worth them (K,).

    hoped : the bound of the chain, less what the rows of phases cost
    gain : of the chain over the one with which it began, less a nat for each chance: half of it is what chances explain of the
        rows that they are fitted to, and half what they would cost other rows (Akaike 1974)
    """

    start: SequenceSummary
    worth: NDArray[np.bool_]
    hoped: float
    gain: float

    @property
    def is_promising(self) -> bool:
        """Whether durations are not geometric, and some state is worth phases."""
        return bool(self.worth.any()) and self.gain > 0.0


def may_age(total: Any, source: SequenceSource) -> bool:
    """Whether some state lasts no longer than it may have phases, on average, and messages to all ages are not too large."""
    stays = np.diagonal(total.M)
    leaves = total.M.sum(axis=1) - stays
    return bool((stays < (MOST - 1) * leaves).any()) and source.n_rows * total.K * MOST <= NUMBERS


def aged(model: Model, start: Any, source: SequenceSource) -> Aged:
    """States with the durations that make the rows most probable, those in phases that are worth them."""
    ages = Ages.of(start, MOST)
    bounds: list[float] = []
    while len(bounds) < LAPS and (len(bounds) < 2 or bounds[-1] - bounds[-2] > TOLERANCE * start.K):
        ages, counts, bound = ages.step(model, source)
        bounds.append(bound)
    numbers, cost = _phases(model.likelihood, ages, counts)
    worth = numbers > 1
    gain = bounds[-1] - bounds[0] - ages.hazards[:, 1:].size
    return Aged(by_age(ages, counts, worth), worth, bounds[-1] + cost, gain)


def by_age(ages: Ages, counts: Counts, worth: NDArray[np.bool_]) -> SequenceSummary:
    """States with a phase for each age up to that beyond which few of their segments last, and others as they are.

    As many may last longer as the path cuts in wrong places.  Phases of a state share its rows.

    worth : (K,) whether a state is worth phases
    """
    left, stayed, _, begun = counts
    K, D = left.shape
    short = left.cumsum(axis=1) < (1.0 - WRONG) * left.sum(axis=1, keepdims=True)
    numbers = np.where(worth, np.minimum(short.sum(axis=1) + 1, D), 1)
    first = np.cumsum(numbers) - numbers
    n = int(numbers.sum())
    phase = first[:, None] + np.minimum(np.arange(D), numbers[:, None] - 1)  # (K, D)
    owner = np.repeat(np.arange(K), numbers)
    visits = np.bincount(phase.ravel(), (left + stayed).ravel(), n)
    share = visits / np.maximum(np.bincount(owner, visits), FEWEST)[owner]
    M = np.zeros((n, n))
    np.add.at(M, (phase, phase[:, [*range(1, D), D - 1]]), stayed)
    gone = np.bincount(phase.ravel(), left.ravel(), n)
    M[:, first] += gone[:, None] * ages.after[owner]
    rows = Summary(share * ages.rows.N[owner], share[:, None] * ages.rows.S[owner], np.zeros(n), np.zeros(()))
    start = SequenceSummary.of(rows, M, np.bincount(phase.ravel(), begun.ravel(), n).astype(float))
    return start.take(np.flatnonzero(start.N > FEWEST))


def _phases(likelihood: Likelihood, ages: Ages, counts: Counts) -> tuple[NDArray[np.intp], float]:
    """The best numbers of phases (K,), as far as ages are apart, and what learning the rows of each costs.

    Durations beyond the last age are taken to be as long as they are on average.
    """
    longest = np.rint(MOST - 1.0 + 1.0 / ages.hazards[:, -1])
    d = np.arange(1.0, MOST)
    worth = np.array([gains(np.append(d, last), times) for last, times in zip(longest, counts.left)])
    cost = costs(likelihood, ages.rows)
    numbers = (worth + cost).argmax(axis=1) + 1
    return numbers, float((cost[np.arange(len(cost)), numbers - 1] - cost[:, 0]).sum())
