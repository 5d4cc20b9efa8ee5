"""New states where states do not last: rows by what they hold, and by what the rows before and after them hold.

A segment tells nothing where a state lasts one row: then only the rows before and after it show that two rows share a state.
"""

import numpy as np
from numpy.typing import NDArray

from ..data import Chunk, SequenceSource
from ..model import Model
from ..model.seeding import nearest_seeds

MOST = 128  # contexts that are told apart


def cells_of_rows(model: Model, source: SequenceSource, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """For every row, the nearest of up to n distant rows, whatever its neighbours are, (T,)."""
    if source.codes is None:
        return nearest_seeds(model, *source.take(np.arange(source.n_rows)), n, rng)
    weights = np.bincount(source.codes, source.observed(Chunk(0, source.n_rows)), len(source.X))
    distinct = np.asarray(source.X, dtype=source.dtype)
    cells: NDArray[np.intp] = nearest_seeds(model, distinct, weights.astype(float), n, rng)[source.codes]
    return cells


def in_contexts(source: SequenceSource, labels: NDArray[np.intp], steps: tuple[int, ...]) -> NDArray[np.intp]:
    """Labels (T,) that differ also where those of neighbours do, which are so many steps away in the same sequence.

    Of these the most frequent are told apart.  All other rows of one label keep one in common.

    steps : -1 is the row before, 1 the one after
    """
    own = np.arange(len(labels))
    sequence = np.repeat(np.arange(source.n_sequences), np.diff(source.edges))
    K = int(labels.max()) + 1
    context = labels
    for step in steps:
        neighbour = np.clip(own + step, 0, len(labels) - 1)
        has = (neighbour == own + step) & (sequence[neighbour] == sequence)
        context = np.unique(context * (K + 1) + np.where(has, labels[neighbour], K), return_inverse=True)[1]
    rows = np.bincount(context)
    frequent = np.argsort(-rows, kind="stable")[:MOST]
    number = np.full(len(rows), -1)
    number[frequent] = np.arange(len(frequent))
    return np.where(number[context] < 0, len(frequent) + labels, number[context])
