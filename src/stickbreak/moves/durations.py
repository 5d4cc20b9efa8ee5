"""States in several phases that pass in order, where their durations vary less than those of one state of a chain do.

A state of a Markov chain lasts d rows with the geometric chance p (1 - p)^(d - 1).  With r phases, each of them left with the
same chance p, it lasts as long as r states in a row, with the negative binomial chance
(d - 1 choose r - 1) p^r (1 - p)^(d - r), which varies less about the same mean.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

from ..data import SequenceSource
from ..likelihoods import Likelihood
from ..model import Model, SequenceSummary, Summary
from ..model.ages import Ages, Counts
from ..model.sequences import labelled

MOST = 16  # phases of a state
LAPS = 100  # in which durations are learnt, at most
TOLERANCE = 0.05  # nats for each state, below which another lap is not worth it
WRONG = 0.1  # share of segments that the path has cut in the wrong place: their durations are geometric


class Phases(NamedTuple):
    """Numbers of phases (K,) of the states of a path, and what they are worth together, in nats."""

    numbers: NDArray[np.intp]
    gain: float


def best_phases(
    likelihood: Likelihood, source: SequenceSource, path: NDArray[np.intp], segment: NDArray[np.intp]
) -> Phases:
    """Phases of the states whose durations are worth them, after what it costs to learn the rows of each phase anew.

    Such a state has a phase for each row of its median duration: an ascent merges those that are too many, but does not find
    those that are too few.  Segments at the ends of sequences have no known duration.

    path : (T,) the state of every row;  segment : (T,) the number of its segment
    """
    total = labelled(likelihood, source, path)
    known = np.ones(segment[-1] + 1, np.bool_)
    known[segment[source.edges[:-1]]] = False
    known[segment[source.edges[1:] - 1]] = False
    durations = np.bincount(segment)[known]
    state = path[np.searchsorted(segment, np.flatnonzero(known))]
    values = np.array([_gains(*_times(durations[state == k])) for k in range(total.K)]) + _costs(likelihood, total)
    gain = values.max(axis=1) - values[:, 0]
    numbers = np.ones(total.K, np.intp)
    for k in np.flatnonzero(gain > 0.0):
        numbers[k] = np.clip(np.median(durations[state == k]), 2, MOST)
    return Phases(numbers, float(gain.sum()))


def in_order(
    likelihood: Likelihood,
    source: SequenceSource,
    path: NDArray[np.intp],
    segment: NDArray[np.intp],
    numbers: NDArray[np.intp],
) -> Summary:
    """States in several phases: the first part of the rows of each segment, the second, and so on, of equal lengths.

    path : (T,) the state of every row;  segment : (T,) the number of its segment;  numbers : (K,) of the phases
    """
    length = np.bincount(segment)
    place = np.arange(len(path)) - (np.cumsum(length) - length)[segment]
    first = np.cumsum(numbers) - numbers
    total = labelled(likelihood, source, first[path] + place * numbers[path] // length[segment])
    return total.take(np.flatnonzero(total.N > 0.0))


def learnt(model: Model, total: SequenceSummary, source: SequenceSource) -> tuple[Ages, Counts]:
    """How long the states last, where each of their ages has a hazard of its own, and what is expected then."""
    ages = Ages.of(total, MOST)
    before = -np.inf
    for _ in range(LAPS):
        ages, counts, bound = ages.step(model, source)
        if bound - before < TOLERANCE * total.K:
            break
        before = bound
    return ages, counts


def by_age(ages: Ages, counts: Counts, worth: NDArray[np.bool_]) -> SequenceSummary:
    """States with a phase for each age up to that beyond which `WRONG` of their segments last, and others as they are.

    worth : (K,) whether a state is worth phases
    """
    left, stayed, moved, begun = counts
    K, D = left.shape
    short = left.cumsum(axis=1) < (1.0 - WRONG) * left.sum(axis=1, keepdims=True)
    numbers = np.where(worth, np.minimum(short.sum(axis=1) + 1, D), 1)
    first = np.cumsum(numbers) - numbers
    n = int(numbers.sum())
    phase = first[:, None] + np.minimum(np.arange(D), numbers[:, None] - 1)  # (K, D)
    after = phase[:, [*range(1, D), D - 1]]
    visits = np.bincount(phase.ravel(), (left + stayed).ravel(), n)
    owner = np.repeat(np.arange(K), numbers)
    share = visits / np.bincount(owner, visits)[owner]
    M = np.zeros((n, n))
    np.add.at(M, (phase, after), stayed)
    gone = np.bincount(phase.ravel(), left.ravel(), n)
    M[:, first] += gone[:, None] * (moved / moved.sum(axis=1, keepdims=True))[owner]
    rows = Summary(share * ages.rows.N[owner], share[:, None] * ages.rows.S[owner], np.zeros(n), np.zeros(()))
    return SequenceSummary.of(rows, M, np.bincount(phase.ravel(), begun.ravel(), n))


def worth_ages(likelihood: Likelihood, ages: Ages, counts: Counts) -> Phases:
    """The same of durations that are learnt, as far as their ages are apart: all longer ones are taken to be alike."""
    longest = MOST - 1.0 + 1.0 / ages.hazards[:, -1]
    d = np.arange(1.0, MOST)
    gains = [_gains(np.append(d, np.rint(last)), times) for last, times in zip(longest, counts.left)]
    values = np.array(gains) + _costs(likelihood, ages.rows)
    gain = values.max(axis=1) - values[:, 0]
    return Phases(values.argmax(axis=1) + 1, float(gain.sum()))


def _times(durations: NDArray[np.integer]) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """The durations that there are, and how often there is each."""
    d, times = np.unique(durations, return_counts=True)
    return d.astype(float), times.astype(float)


def _costs(likelihood: Likelihood, total: Summary) -> NDArray[np.floating]:
    """The log marginals of the rows of each state in 1, 2, ..., `MOST` phases, (K, MOST)."""
    r = np.arange(1, MOST + 1)
    return np.array([r * likelihood.log_marginal(N / r, S / r[:, None]) for N, S in zip(total.N, total.S)])


def _gains(d: NDArray[np.floating], times: NDArray[np.floating]) -> NDArray[np.floating]:
    """What the log chance of durations gains by 1, 2, ..., `MOST` phases over one; -inf where most are shorter, (MOST,)."""
    n = times.sum()
    gains = np.full(MOST, -np.inf)
    gains[0] = 0.0
    if n == 0.0:
        return gains
    mean = float(times @ d / n)
    geometric = _log_chance(d, 1, mean)
    for r in range(2, MOST + 1):
        possible = d >= r
        if 2.0 * times[possible].sum() <= n:
            break
        known = d[possible]
        ratio = np.full(len(d), -np.inf)
        ratio[possible] = _log_chance(known, r, float(times[possible] @ known / times[possible].sum()))
        ratio += np.log1p(-WRONG) - geometric
        gains[r - 1] = times @ np.logaddexp(ratio, np.log(WRONG))
    return gains


def _log_chance(d: NDArray[np.floating], r: int, mean: float) -> NDArray[np.floating]:
    """Of each duration with r phases, which are left with the most probable chance for this mean."""
    p = r / mean
    return np.asarray(gammaln(d) - gammaln(r) - gammaln(d - r + 1.0) + xlogy(r, p) + xlog1py(d - r, -p))
