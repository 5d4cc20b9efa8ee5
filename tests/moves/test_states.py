"""Candidates and starts for all states of a chain at once."""

import numpy as np
import pytest

from stickbreak.allocations import FiniteMarkovChain
from stickbreak.data import SequenceSource
from stickbreak.inference import Threads
from stickbreak.inference.visit import visit
from stickbreak.likelihoods import Gaussian, Sample
from stickbreak.likelihoods.features import features
from stickbreak.model import SEQUENCES, Model
from stickbreak.model.sequences import labelled
from stickbreak.moves import states

LENGTHS = np.array([350, 1, 249])


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_a_softened_chain_ignore_their_neighbours(seed):
    """What it adds up to is the same, and its next visit is that of a mixture whose weights are the shares of the rows.

    Of a million times the rows, so that expected logarithms are those of expectations.
    """
    rng = np.random.default_rng(seed)
    z = np.repeat(rng.integers(3, size=60), 10)
    X = rng.standard_normal((len(z), 2)) + np.eye(3, 2)[z]
    model = Model(Gaussian().resolve(Sample.of(X)), FiniteMarkovChain(3, 1e-9, 0.0), SEQUENCES)
    source = SequenceSource(X, LENGTHS)
    total = labelled(model.likelihood, source, z) * 1e6
    found = states.softened(total)
    np.testing.assert_array_equal(found.N, total.N)
    np.testing.assert_array_equal(found.S, total.S)
    assert found.M.sum() == pytest.approx(total.M.sum())
    assert found.begins.sum() == pytest.approx(1e6 * len(LENGTHS))
    W, b = model.likelihood.weights(total.N, total.S)

    def next_counts(start):
        with Threads(1) as threads:
            parameters = model.parameters(start, source.dtype)
            return visit(model, parameters, source, source.batches(1)[0], threads).summary.N

    scores = features(model.likelihood, X) @ W.T + b + np.log(total.N / total.N.sum())
    R = np.exp(scores - scores.max(axis=1, keepdims=True))
    want = (R / R.sum(axis=1, keepdims=True)).sum(axis=0)
    np.testing.assert_allclose(next_counts(found), want, rtol=1e-5)
    assert np.abs(next_counts(total) - want).max() > 2.0
