"""States in phases: how many their durations are worth, and which rows each phase has."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from stickbreak.data import SequenceSource
from stickbreak.likelihoods import DiagonalGaussian, Sample
from stickbreak.model.sequences import labelled
from stickbreak.moves.durations import MOST, WRONG, best_phases, gains, in_order
from stickbreak.moves.segments import segments_of

few = settings(max_examples=10)


def rows(z, lengths=None):
    X = np.random.default_rng(0).standard_normal((len(z), 2)) + 3.0 * z[:, None]
    source = SequenceSource(X, np.array([len(z)] if lengths is None else lengths))
    return DiagonalGaussian().resolve(Sample.of(X)), source, segments_of(source, z)


def turns(durations):
    """Two states in turn."""
    return np.repeat(np.arange(len(durations)) % 2, durations)


def test_gains_are_those_of_the_negative_binomial_law():
    d = np.array([4, 5, 6, 7, 3, 5, 5, 1])
    found = gains(*np.unique(d, return_counts=True))
    assert found[0] == 0.0
    geometric = stats.geom.pmf(d, 1.0 / d.mean())
    for r in (2, 3, 4):
        p = r / d[d >= r].mean()
        law = np.where(d >= r, stats.nbinom.pmf(d - r, r, p), 0.0)
        expected = np.log((1.0 - WRONG) * law / geometric + WRONG).sum()
        assert found[r - 1] == pytest.approx(expected, abs=1e-9)
    assert np.isfinite(found[4])
    assert np.all(found[5:] == -np.inf)  # most durations are shorter


@pytest.mark.parametrize("duration", [2, 5, 9, 40])
def test_a_state_that_always_lasts_as_long_has_a_phase_for_each_row(duration):
    lengths = np.full(200, duration)
    lengths[1::2] = np.random.default_rng(1).geometric(1.0 / duration, 100)
    z = turns(lengths)
    likelihood, source, segment = rows(z)
    numbers, gain = best_phases(likelihood, source, z, segment)
    assert list(numbers) == [min(duration, MOST), 1]
    assert gain > 10.0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("mean", [1.0, 1.5, 5.0, 50.0])
def test_states_of_a_chain_have_no_phases(seed, mean):
    z = turns(np.random.default_rng(seed).geometric(1.0 / mean, 300))
    likelihood, source, segment = rows(z)
    numbers, gain = best_phases(likelihood, source, z, segment)
    assert list(numbers) == [1, 1]
    assert gain == 0.0


def test_durations_that_sequences_cut_are_not_known():
    z = np.tile(turns([3, 3]), 100)
    likelihood, source, segment = rows(z, [6] * 100)
    assert best_phases(likelihood, source, z, segment).gain == 0.0


@few
@given(seed=st.integers(0, 2**32 - 1))
def test_phases_are_equal_parts_of_segments_in_order(seed):
    rng = np.random.default_rng(seed)
    z = turns(rng.integers(1, 9, 40))
    cut = int(rng.integers(1, len(z)))
    likelihood, source, segment = rows(z, [cut, len(z) - cut])
    numbers = rng.integers(1, 4, 2)
    found = in_order(likelihood, source, z, segment, numbers)
    phase = np.zeros(len(z), int)
    changes = np.append(0, np.flatnonzero(z[1:] != z[:-1]) + 1)
    for begin, end in pairwise(np.union1d(changes, source.edges)):
        phase[begin:end] = np.floor(np.arange(end - begin) * numbers[z[begin]] / (end - begin))
    expected = labelled(likelihood, source, np.unique(3 * z + phase, return_inverse=True)[1])
    np.testing.assert_allclose(found.M, expected.M)
    np.testing.assert_allclose(found.S, expected.S)
