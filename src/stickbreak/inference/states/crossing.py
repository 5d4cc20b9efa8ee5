"""Crossings of states: a start from the pieces into which the best paths of two models cut the rows (see `crossing`)."""

import numpy as np
from numpy.typing import NDArray

from ...data import SequenceSource
from ...model import Model, Summary
from ...model.sequences import labelled
from ...moves.agglomeration import reduced
from ..descent import of_states

MOST_PIECES = 256
LEAST = 30  # rows of a piece


def crossed_states(
    model: Model, source: SequenceSource, path: NDArray[np.intp], other: NDArray[np.intp], most: int
) -> Summary:
    """States from the rows that two paths (T,) have in a pair of states.

    The largest pieces are merged, the pair each time that loses least, to ``most`` states.  Rows of small pieces stay in
    their state of the one.
    """
    pairs, piece, rows = np.unique(path * (other.max() + 1) + other, return_inverse=True, return_counts=True)
    largest = np.argsort(-rows, kind="stable")[:MOST_PIECES]
    kept = largest[rows[largest] >= LEAST]
    label = np.full(len(pairs), -1)
    label[kept] = np.arange(len(kept))
    own = label[piece]
    total = labelled(model.likelihood, source, np.where(own < 0, len(kept) + path, own))
    total = total.take(np.flatnonzero(total.N > 0.0))
    return reduced(of_states(model, total.K), total, most)
