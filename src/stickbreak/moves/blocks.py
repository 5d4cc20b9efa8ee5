"""States from contiguous blocks of sequences: what goes on for a while is likely to be one thing (Thesis 6.5.2 and 6.6)."""

import numpy as np
from numpy.typing import NDArray

from ..data import SequenceSource
from ..likelihoods._base import features
from ..model import Model, Summary

Array = NDArray[np.floating]


PLACES = 64  # in a block at which a cut is tried


def block_states(model: Model, source: SequenceSource, n: int, length: int, rng: np.random.Generator) -> Summary:
    """The summary of n blocks of consecutive rows around random ones that are observed, each a state of its own.

    length : rows of a block, where its sequence has as many
    """
    N, S = np.zeros(n), np.zeros((n, model.likelihood.n_statistics))
    rows = source.present()
    for i, row in enumerate(rows[rng.integers(len(rows), size=n)]):
        sequence = int(np.searchsorted(source.edges, row, side="right")) - 1
        begin, end = source.edges[sequence], source.edges[sequence + 1]
        start = max(int(begin), min(int(row), int(end) - length))
        T, weights = _statistics(model, source, np.arange(start, min(start + length, int(end))))
        N[i], S[i] = weights.sum(), T.sum(axis=0)
    return Summary(N, S, np.zeros(n), np.zeros(()))


def halves(model: Model, source: SequenceSource, rows: NDArray[np.integer]) -> tuple[Array, Array]:
    """Counts (2,) and statistics (2, F) of both parts of a block, cut where their log marginal likelihood is largest."""
    T, weights = _statistics(model, source, rows)
    N, S = np.cumsum(weights), np.cumsum(T, axis=0)
    places = np.unique(np.linspace(0, max(len(rows) - 2, 0), PLACES).astype(int))
    before, after = (N[places], S[places]), (N[-1] - N[places], S[-1] - S[places])
    best = int((model.likelihood.log_marginal(*before) + model.likelihood.log_marginal(*after)).argmax())
    return np.array([before[0][best], after[0][best]]), np.array([before[1][best], after[1][best]])


def _statistics(model: Model, source: SequenceSource, rows: NDArray[np.integer]) -> tuple[Array, Array]:
    """Weighted features (n, F) of rows, and their weights (n,)."""
    X, weights = source.take(rows)
    T = features(model.likelihood, X)
    return np.asarray(T.toarray() if hasattr(T, "toarray") else T, dtype=np.float64) * weights[:, None], weights
