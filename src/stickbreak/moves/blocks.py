"""States from contiguous blocks of sequences: what goes on for a while is likely to be one thing (Thesis 6.5.2 and 6.6)."""

import numpy as np
from numpy.typing import NDArray

from ..data import SequenceSource
from ..likelihoods._base import features
from ..model import Model, Summary

Array = NDArray[np.floating]


def block_states(
    model: Model, source: SequenceSource, n: int, length: int, rng: np.random.Generator, cut: bool = False
) -> Summary:
    """The summary of n blocks of consecutive rows around random ones that are observed, each a state of its own.

    length : rows of a block, where its sequence has as many
    cut : whether each block is cut in two where the marginal likelihood of its two parts is largest
    """
    found = [Summary.zeros(0, model.likelihood.n_statistics)]
    rows = source.present()
    for row in rows[rng.integers(len(rows), size=n)]:
        sequence = int(np.searchsorted(source.edges, row, side="right")) - 1
        begin, end = source.edges[sequence], source.edges[sequence + 1]
        start = max(int(begin), min(int(row), int(end) - length))
        X, weights = source.take(np.arange(start, min(start + length, int(end))))
        T = features(model.likelihood, X)
        T = np.asarray(T.toarray() if hasattr(T, "toarray") else T, dtype=np.float64) * weights[:, None]
        found.append(_cut(model, T, weights) if cut and len(T) > 1 else _parts(T, weights, []))
    return Summary(
        np.concatenate([s.N for s in found]),
        np.concatenate([s.S for s in found]),
        np.concatenate([s.H for s in found]),
        np.zeros(()),
    )


def _cut(model: Model, T: Array, weights: Array) -> Summary:
    N, S = np.cumsum(weights), np.cumsum(T, axis=0)
    value = model.likelihood.log_marginal(N[:-1], S[:-1]) + model.likelihood.log_marginal(
        N[-1] - N[:-1], S[-1] - S[:-1]
    )
    return _parts(T, weights, [int(value.argmax()) + 1])


def _parts(T: Array, weights: Array, cuts: list[int]) -> Summary:
    pieces = [piece for piece in zip(np.split(weights, cuts), np.split(T, cuts)) if piece[0].sum() > 0.0]
    N, S = np.array([w.sum() for w, _ in pieces]), np.array([t.sum(axis=0) for _, t in pieces])
    return Summary(N, S, np.zeros(len(N)), np.zeros(()))
