"""States from contiguous blocks of sequences: a long run of rows is probably one state (Thesis 6.5.2 and 6.6)."""

import numpy as np
from numpy.typing import NDArray

from ..data import SequenceSource
from ..likelihoods.features import features
from ..model import Model, Summary
from ..model.seeding import hard_summary

Array = NDArray[np.floating]


PLACES = 64  # in a block at which a cut is tried


def block_states(model: Model, source: SequenceSource, n: int, length: int, rng: np.random.Generator) -> Summary:
    """The summary of n blocks of consecutive rows around random ones that are observed, each a state of its own.

    length : rows of a block, where its sequence has as many
    """
    N = np.zeros(n)
    S = np.zeros((n, model.likelihood.n_statistics))
    rows = source.present()
    for i, row in enumerate(rows[rng.integers(len(rows), size=n)]):
        sequence = int(np.searchsorted(source.edges, row, side="right")) - 1
        begin = source.edges[sequence]
        end = source.edges[sequence + 1]
        start = max(int(begin), min(int(row), int(end) - length))
        X, weights = source.take(np.arange(start, min(start + length, int(end))))
        block = hard_summary(features(model.likelihood, X), weights, np.zeros(len(weights), np.intp))
        N[i], S[i] = block.N[0], block.S[0]
    return model.start(N, S)


def halves(model: Model, source: SequenceSource, rows: NDArray[np.integer]) -> tuple[Array, Array]:
    """Counts (2,) and statistics (2, F) of both parts of a block, cut where their log marginal likelihood is largest."""
    X, weights = source.take(rows)
    places = np.unique(np.linspace(0, max(len(rows) - 2, 0), PLACES).astype(int))  # the last row before each cut
    parts = hard_summary(features(model.likelihood, X), weights, np.searchsorted(places, np.arange(len(rows))))
    N = np.cumsum(parts.N)
    S = np.cumsum(parts.S, axis=0)
    before = N[: len(places)], S[: len(places)]
    after = N[-1] - before[0], S[-1] - before[1]
    best = int((model.likelihood.log_marginal(*before) + model.likelihood.log_marginal(*after)).argmax())
    return np.array([before[0][best], after[0][best]]), np.array([before[1][best], after[1][best]])
