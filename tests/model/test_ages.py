"""Chains whose states are left with a chance of their own at each age: what a step of theirs says, and that it gains."""

from dataclasses import replace

import numpy as np
import pytest

from stickbreak.allocations import HDPMarkovChain
from stickbreak.data import Chunk, SequenceSource
from stickbreak.likelihoods import Categorical, DiagonalGaussian, Sample
from stickbreak.model import SEQUENCES, Model
from stickbreak.model.ages import Ages
from stickbreak.model.messages import log_normaliser
from stickbreak.model.parameters import Parameters
from stickbreak.model.sequences import labelled


def symbols(seed, durations, V=4):
    """Rows of three states of these durations."""
    rng = np.random.default_rng(seed)
    z = np.repeat(np.arange(len(durations)) % 3, durations)
    edges = rng.dirichlet(np.full(V, 0.5), 3).cumsum(axis=1)
    return z, np.minimum((rng.random(len(z))[:, None] > edges[z]).sum(axis=1), V - 1)


def model_of(likelihood, X):
    return Model(likelihood.resolve(Sample.of(X)), HDPMarkovChain(), SEQUENCES)


def test_with_equal_hazards_it_is_the_chain_of_the_states():
    z, codes = symbols(0, np.random.default_rng(1).geometric(0.2, 60))
    X = codes[:, None].astype(float)
    source = SequenceSource(X, np.array([100, len(z) - 100]))
    model = model_of(Categorical(), X)
    total = labelled(model.likelihood, source, z)
    ages = Ages.of(total, 5)
    _, counts, bound = ages.step(model, source)
    hazard = ages.hazards[:, 0]
    A = np.diag(1.0 - hazard) + hazard[:, None] * ages.after
    prior = np.vstack([ages.begins.sum(axis=1), A])
    prepared = SEQUENCES.prepare(
        model.likelihood, Parameters(*model.likelihood.weights(total.N, total.S), prior), source
    )
    expected = log_normaliser(model.likelihood, prepared, source.read(Chunk(0, len(z)))[0])
    assert bound == pytest.approx(expected - model.posterior(total).cost.sum(), abs=1e-8)
    assert (counts.left + counts.stayed).sum() == pytest.approx(len(z) - 2)
    assert counts.begun.sum() == pytest.approx(2.0)


def test_steps_gain_and_find_durations_that_rows_hardly_show():
    z, codes = symbols(3, np.full(300, 4))
    X = codes[:, None].astype(float)
    source = SequenceSource(X, np.array([len(z)]))
    model = model_of(Categorical(), X)
    start = labelled(model.likelihood, source, np.random.default_rng(0).permutation(3)[z])
    ages = Ages.of(start, 8)
    bounds = []
    for _ in range(30):
        ages, counts, bound = ages.step(model, source)
        bounds.append(bound)
    assert np.all(np.diff(bounds) > -0.1)  # rows that are added to ages may cost little
    assert bounds[-1] > bounds[0] + 50.0
    share = counts.left / counts.left.sum(axis=1, keepdims=True)
    assert np.all(share.argmax(axis=1) == 3)
    np.testing.assert_allclose(ages.after.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.diagonal(ages.after), 0.0)
    assert ages.begins.sum() == pytest.approx(1.0)


def test_rows_that_repeat_may_be_known():
    z, codes = symbols(0, np.full(50, 6))
    lengths = np.array([70, len(z) - 70])
    X = codes[:, None].astype(float)
    model = model_of(Categorical(), X)
    apart = SequenceSource(X, lengths)
    known = SequenceSource(np.arange(4.0)[:, None], lengths, codes=codes.astype(np.int32))
    start = Ages.of(labelled(model.likelihood, apart, z), 6)
    one, other = start.step(model, apart), start.step(model, known)
    assert one[2] == pytest.approx(other[2], abs=1e-8)
    np.testing.assert_allclose(one[0].rows.S, other[0].rows.S, atol=1e-8)
    np.testing.assert_allclose(one[0].hazards, other[0].hazards, atol=1e-10)


def test_rows_that_are_not_observed_count_for_no_state():
    z = np.repeat(np.arange(40) % 2, 5)
    X = np.random.default_rng(0).standard_normal((200, 2)) + 4.0 * z[:, None]
    X[[7, 50, 51]] = np.nan
    source = SequenceSource(X, np.array([200]))
    model = model_of(DiagonalGaussian(), X[:5])
    stepped, counts, _ = Ages.of(labelled(model.likelihood, source, z), 6).step(model, source)
    assert stepped.rows.N.sum() == pytest.approx(197.0)
    assert (counts.left + counts.stayed).sum() == pytest.approx(199.0)


def test_first_states_are_those_that_sequences_begin_in():
    z = np.tile([0, 0, 1, 1, 2], 40)
    X = 8.0 * z[:, None] + np.random.default_rng(0).standard_normal((200, 1))
    source = SequenceSource(X, np.full(40, 5))
    model = model_of(DiagonalGaussian(), X)
    ages = Ages.of(labelled(model.likelihood, source, (z + 1) % 3), 4)
    for _ in range(5):
        ages, counts, _ = ages.step(model, source)
    assert counts.begun[1].sum() > 39.0
    assert ages.begins[1].sum() > 0.95
    with_others = Ages.of(labelled(model.likelihood, source, z), 4)
    uniform = with_others.begins * 0.0 + 1.0 / with_others.begins.size
    stepped = replace(with_others, begins=uniform).step(model, source)[0]
    assert stepped.begins[0].sum() > 0.95
