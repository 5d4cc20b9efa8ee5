"""New states where states do not last: rows by what they hold, and rows by the state before them or after them.

Segments tell nothing where a state lasts one row: that two rows are of one state then shows only in what comes before and after.
"""

import numpy as np
from numpy.typing import NDArray

from ..data import Chunk, SequenceSource
from ..model import Model, SequenceSummary
from ..model.seeding import nearest_seeds
from ..model.sequences import labelled

MOST = 128  # pairs of neighbouring states that are looked at


def cell_states(model: Model, source: SequenceSource, n: int, rng: np.random.Generator) -> SequenceSummary:
    """Up to n states, each of the rows nearest to one of n distant rows, whatever the neighbours of these rows are."""
    if source.codes is None:
        X, weights = source.take(np.arange(source.n_rows))
        return _of_labels(model, source, nearest_seeds(model, X, weights, n, rng))
    X = np.asarray(source.X, dtype=source.dtype)
    weights = np.bincount(source.codes, source.observed(Chunk(0, source.n_rows)), len(X))
    return _of_labels(model, source, nearest_seeds(model, X, weights, n, rng)[source.codes])


def apart_by_neighbour(model: Model, source: SequenceSource, path: NDArray[np.intp], step: int) -> SequenceSummary:
    """States apart by the state before them, or after: a state for each of the most frequent pairs of states.

    Rows of other pairs, and those without such a neighbour, stay in their state.

    path : (T,) the state of every row;  step : -1 for the state before, 1 for the one after
    """
    K = int(path.max()) + 1
    own = np.arange(len(path))
    sequence = np.repeat(np.arange(source.n_sequences), np.diff(source.edges))
    neighbour = np.clip(own + step, 0, len(path) - 1)
    has = (neighbour != own) & (sequence[neighbour] == sequence)
    pair = np.where(has, (1 + path[neighbour]) * K + path, path)
    pairs, number, rows = np.unique(pair, return_inverse=True, return_counts=True)
    kept = np.argsort(-rows, kind="stable")[:MOST]
    label = np.full(len(pairs), -1)
    label[kept] = np.arange(len(kept))
    label = label[number]
    return _of_labels(model, source, np.where(label < 0, len(kept) + path, label))


def _of_labels(model: Model, source: SequenceSource, labels: NDArray[np.intp]) -> SequenceSummary:
    total = labelled(model.likelihood, source, labels)
    return total.take(np.flatnonzero(total.N > 0.0))
