"""The steps of sequences in a picture: what a fitted hidden Markov model reads, and its states."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


class Steps(NamedTuple):
    """All steps of sequences, one after the other.

    states : (T,) of the most probable paths
    rows : (T, D), NaN where nothing is observed
    edges : (n + 1,) where each of n sequences begins, and T
    """

    states: NDArray[np.intp]
    rows: Array
    edges: NDArray[np.intp]


def steps_of(model: Any, X: Any, lengths: Any) -> Steps:
    """The steps of sequences X as a fitted model reads them."""
    chunks = model._read(X, lengths, partial(_of_chunk, model.n_features_in_))
    states, rows, first = (np.concatenate(parts) for parts in zip(*chunks))
    return Steps(states, rows, np.append(np.flatnonzero(first), len(states)))


def _of_chunk(D: int, reader: Any, part: Any) -> tuple[NDArray[np.intp], Array, NDArray[np.bool_]]:
    """The states of a chunk, its rows without those before each, and whether a sequence begins at each."""
    whole = slice(0, len(part))
    rows = np.array(part.rows(whole)[:, :D], np.float64)
    rows[part.weights(whole) == 0.0] = np.nan
    return reader.path(part), rows, part.first(whole)
