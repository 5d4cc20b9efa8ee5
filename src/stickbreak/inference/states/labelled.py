"""The start of a search for states of steps of which some have a class, from what a search without labels found."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...data.labelled_rows import LabelledSequences
from ...likelihoods import Labelled
from ...model import Model, Summary
from ...model.sequences import labelled
from ..executor import Executor
from ..labelled_search import most_of_each
from ..paths import best_paths


def states_by_class(model: Model, states: Summary, source: LabelledSequences, executor: Executor) -> Summary:
    """A start that labels allow, from states of rows without labels: every row is wholly in one state.

    That is its state on the most probable path.  Where labels are facts, a state with m classes is taken apart into m: a row
    without a label goes with the labelled row of the state that is nearest in time.

    Raises
    ------
    ValueError : there are more classes than the allocation may have states.
    """
    likelihood = model.likelihood
    assert isinstance(likelihood, Labelled)
    C = likelihood.n_classes
    silent = replace(model, likelihood=replace(likelihood, error=1.0 - 1.0 / C))  # labels that say nothing
    known = replace(states, S=np.hstack([states.S, np.zeros((states.K, C))]))
    path = best_paths(silent, known, source, executor)
    if likelihood.error > 0.0:
        return _without_empty(labelled(likelihood, source, path))
    classes = _nearest_classes(path, source.classes)
    pairs, labels = np.unique(path * (C + 1) + classes + 1, return_inverse=True)
    start = labelled(likelihood, source, labels)
    return _without_empty(start.take(most_of_each(start.N, pairs % (C + 1) - 1, model.max_clusters)))


def _without_empty(start: Summary) -> Summary:
    return start.take(np.flatnonzero(start.N > 0.0))


def _nearest_classes(path: NDArray[np.intp], classes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Of each row the class of the labelled row of its state that is nearest in time, or -1 where there is none, (T,)."""
    nearest = np.full(len(path), -1)
    labelled_rows = np.flatnonzero(classes >= 0)
    for state in np.unique(path[labelled_rows]):
        rows = np.flatnonzero(path == state)
        known = labelled_rows[path[labelled_rows] == state]
        after = np.searchsorted(known, rows)
        before = np.maximum(after - 1, 0)
        after = np.minimum(after, len(known) - 1)
        later = np.abs(known[after] - rows) < np.abs(rows - known[before])
        nearest[rows] = classes[np.where(later, known[after], known[before])]
    return nearest
