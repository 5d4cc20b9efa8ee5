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
from ..model import Summary
from ..model.sequences import labelled

MOST = 16  # phases of a state
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
    values = np.array([gains(*_times(durations[state == k])) for k in range(total.K)]) + costs(likelihood, total)
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


def _times(durations: NDArray[np.integer]) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """The durations that there are, and how often there is each."""
    d, times = np.unique(durations, return_counts=True)
    return d.astype(float), times.astype(float)


def costs(likelihood: Likelihood, total: Summary) -> NDArray[np.floating]:
    """The log marginals of the rows of each state in 1, 2, ..., `MOST` phases, (K, MOST)."""
    r = np.arange(1, MOST + 1)
    return np.array([r * likelihood.log_marginal(N / r, S / r[:, None]) for N, S in zip(total.N, total.S)])


def gains(d: NDArray[np.floating], times: NDArray[np.floating]) -> NDArray[np.floating]:
    """What the log chance of durations gains by 1, 2, ..., `MOST` phases over one; -inf where most are shorter, (MOST,)."""
    n = times.sum()
    found = np.full(MOST, -np.inf)
    found[0] = 0.0
    if n == 0.0:
        return found
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
        found[r - 1] = times @ np.logaddexp(ratio, np.log(WRONG))
    return found


def _log_chance(d: NDArray[np.floating], r: int, mean: float) -> NDArray[np.floating]:
    """Of each duration with r phases, which are left with the most probable chance for this mean."""
    p = min(r / mean, 1.0)
    return np.asarray(gammaln(d) - gammaln(r) - gammaln(d - r + 1.0) + xlogy(r, p) + xlog1py(d - r, -p))
