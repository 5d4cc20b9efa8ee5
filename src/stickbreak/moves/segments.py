"""New states from segments, the runs of rows that the best path spends in one state: what goes on for a while is one thing.

Where ascents settle into a poor optimum, it is most often which segments share a state that is wrong, not where they begin.
"""

import numpy as np
from numpy.typing import NDArray

from ..data import SequenceSource
from ..model import Model, Summary
from ..model.sequences import labelled
from . import states

MOST = 256  # segments that are looked at
CUTS = (0.3, 1.0, 3.0)  # in every segment on average, before they are grouped anew


def own_states(
    model: Model, source: SequenceSource, path: NDArray[np.intp], n: int, rng: np.random.Generator
) -> Summary:
    """The n segments (Thesis 6.5.2: contiguous blocks) that gain most as states of their own, as states.

    A segment gains what its rows' log marginal likelihood alone, and that of the rest of its state, is above that of both.

    path : (T,) the state of every row
    """
    group, state = _alone(_segments(source, path), path, rng)
    if not len(state):
        return Summary.zeros(0, model.likelihood.n_statistics)
    total, whole = labelled(model, source, group), labelled(model, source, path)
    own, of_state = total.take(np.arange(len(state))), whole.take(state)
    rest = model.likelihood.log_marginal(np.maximum(of_state.N - own.N, 0.0), of_state.S - own.S)
    gain = model.log_marginal(own) + rest - model.log_marginal(of_state)
    best = own.take(np.argsort(-gain, kind="stable")[:n])
    return Summary(best.N, best.S, best.H, np.zeros(()))


def regrouped(model: Model, source: SequenceSource, path: NDArray[np.intp], rng: np.random.Generator) -> Summary:
    """The segments, some of them cut at random, merged anew into states while that gains.

    A merge is worth what it changes in the marginal likelihood of rows and transitions, assignments given (Thesis 6.5.1).
    """
    segment = _segments(source, path)
    cuts = rng.random(len(path)) < rng.choice(CUTS) * (segment[-1] + 1) / len(path)
    group, _ = _alone(segment + np.cumsum(cuts), path, rng)
    total = labelled(model, source, group)
    return states.agglomerated(model, total.take(np.flatnonzero(total.N > 0.0)))


def _segments(source: SequenceSource, path: NDArray[np.intp]) -> NDArray[np.intp]:
    """The number of every row's segment, (T,)."""
    begins = np.append(True, path[1:] != path[:-1])
    begins[source.edges[:-1]] = True
    return np.asarray(np.cumsum(begins) - 1)


def _alone(
    segment: NDArray[np.intp], path: NDArray[np.intp], rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Labels (T,) of `MOST` random segments, 0, 1, ..., and of the states of all other rows; and the states of the segments."""
    n = int(segment[-1]) + 1
    chosen = np.sort(rng.permutation(n)[:MOST])
    number = np.full(n, -1)
    number[chosen] = np.arange(len(chosen))
    group = number[segment]
    states = path[np.searchsorted(segment, chosen)]
    return np.where(group < 0, len(chosen) + path, group), states
