"""States in phases, one for each of their ages, where durations are learnt along with the states.

Where rows say little of their state, the best path cuts its segments in wrong places, and their durations look geometric
whatever they are.  A chain whose states are left with a chance of their own at each age (`stickbreak.model.ages`) finds both
together.
"""

from dataclasses import replace
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
HOPELESS = 10.0  # steps like the last, in which it should gain what it lacks
FEWEST = 0.5  # rows of a phase
PSEUDO_COUNTS = 0.5  # of an outcome under a smoothed prior
NUMBERS = 1 << 24  # in the messages of all rows, at most: 128 MiB


class Aged(NamedTuple):
    """A start in phases, and which states are worth them (K,).

    bound : of the chain, whose states share the rows of all their ages
    gain : of the chain over the one with which it began, less a nat for each chance: half of it is what chances explain of the
        rows that they are fitted to, and half what they would cost other rows (Akaike 1974)
    """

    start: SequenceSummary
    worth: NDArray[np.bool_]
    bound: float
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
    """States with the durations that make the rows most probable, those in phases that are worth them.

    It is over sooner where geometric durations seem to be right.
    """
    return _aged(model, Ages.of(start, MOST), source, HOPELESS)


def aged_smoothly(model: Model, start: Any, source: SequenceSource) -> Aged:
    """The same, first under a smoothed prior of rows, where there is one: states that are right in part then exchange rows."""
    smooth = replace(model, likelihood=model.likelihood.smoothed(PSEUDO_COUNTS))
    ages = Ages.of(start, MOST)
    if smooth.likelihood is not model.likelihood:
        ages, _, _ = _settled(smooth, ages, source)
    return _aged(model, ages, source)


def _aged(model: Model, ages: Ages, source: SequenceSource, patience: float = np.inf) -> Aged:
    ages, counts, bounds = _settled(model, ages, source, patience)
    worth = _worth_phases(model.likelihood, ages, counts)
    return Aged(by_age(ages, counts, worth), worth, bounds[-1], bounds[-1] - bounds[0] - _chances(ages))


def _chances(ages: Ages) -> int:
    """How many chances it has beyond those of geometric durations."""
    return ages.hazards[:, 1:].size


def _settled(
    model: Model, ages: Ages, source: SequenceSource, patience: float = np.inf
) -> tuple[Ages, Counts, list[float]]:
    """The chain after some steps, what was expected before the last, and the bounds.

    patience : it is over if it would take more steps than this, each like the last, to gain a nat for each of its chances
    """
    ages, counts, bound = ages.step(model, source)
    bounds = [bound]
    while len(bounds) < LAPS:
        ages, counts, bound = ages.step(model, source)
        bounds.append(bound)
        last = bounds[-1] - bounds[-2]
        lacks = bounds[0] + _chances(ages) - bounds[-1]
        if last < TOLERANCE * len(ages.hazards) or last * patience < lacks:
            break
    return ages, counts, bounds


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


def _worth_phases(likelihood: Likelihood, ages: Ages, counts: Counts) -> NDArray[np.bool_]:
    """Whether more than one phase makes durations more probable by more than it costs to learn the rows of each, (K,).

    Durations beyond the last age are taken to be as long as they are on average.
    """
    longest = np.rint(MOST - 1.0 + 1.0 / ages.hazards[:, -1])
    d = np.arange(1.0, MOST)
    gained = np.array([gains(np.append(d, last), times) for last, times in zip(longest, counts.left)])
    return np.asarray((gained + costs(likelihood, ages.rows)).argmax(axis=1) > 0)
