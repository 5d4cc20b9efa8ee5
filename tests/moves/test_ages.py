"""Phases of each age: which states are worth them, and what a start in them knows."""

from dataclasses import replace

import numpy as np
import pytest

from stickbreak.allocations import HDPMarkovChain
from stickbreak.data import SequenceSource
from stickbreak.likelihoods import Categorical, Sample
from stickbreak.model import SEQUENCES, Model
from stickbreak.model.ages import Ages
from stickbreak.model.sequences import labelled
from stickbreak.moves import ages as moves
from stickbreak.moves.ages import aged, aged_smoothly, by_age, may_age
from stickbreak.moves.blocks import block_states


def rows_of(z, seed=0, V=6):
    rng = np.random.default_rng(seed)
    edges = rng.dirichlet(np.full(V, 0.4), int(z.max()) + 1).cumsum(axis=1)
    X = np.minimum((rng.random(len(z))[:, None] > edges[z]).sum(axis=1), V - 1)[:, None].astype(float)
    source = SequenceSource(X, np.array([len(z)]))
    return Model(Categorical().resolve(Sample.of(X)), HDPMarkovChain(), SEQUENCES), source


def in_turn(durations, K=3):
    rng = np.random.default_rng(5)
    z = np.cumsum(rng.integers(1, K, len(durations))) % K
    return np.repeat(z, durations)


@pytest.mark.parametrize("duration", [3, 5, 9])
def test_states_that_always_last_as_long_have_a_phase_for_each_row(duration):
    z = in_turn(np.full(400, duration))
    model, source = rows_of(z)
    found = aged(model, labelled(model.likelihood, source, z), source)
    assert list(found.worth) == [True] * 3
    assert found.is_promising
    K = 3 * duration
    assert found.start.K == K
    inside = [k for k in range(K) if k % duration < duration - 1]
    np.testing.assert_allclose(found.start.M[inside, [k + 1 for k in inside]], found.start.N[inside], rtol=0.1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mean", [2.0, 6.0])
def test_states_of_a_chain_are_not_worth_phases(seed, mean):
    z = in_turn(np.random.default_rng(seed).geometric(1.0 / mean, 300))
    model, source = rows_of(z, seed)
    found = aged(model, labelled(model.likelihood, source, z), source)
    assert not found.is_promising


def test_only_states_that_are_worth_it_are_in_phases():
    durations = np.where(np.arange(600) % 2 == 0, 4, np.random.default_rng(0).geometric(0.2, 600))
    z = np.repeat(np.arange(600) % 2, durations)
    model, source = rows_of(z, 1)
    found = aged(model, labelled(model.likelihood, source, z), source)
    assert list(found.worth) == [True, False]
    assert found.start.K == 5


def test_phases_share_the_rows_of_their_state_and_keep_its_transitions():
    z = in_turn(np.random.default_rng(1).integers(2, 6, 300))
    model, source = rows_of(z)
    ages, counts, _ = Ages.of(labelled(model.likelihood, source, z), moves.MOST).step(model, source)
    worth = np.array([True, False, True])
    start = by_age(ages, counts, worth)
    total = (counts.left + counts.stayed).sum()
    assert start.M.sum() == pytest.approx(total)
    assert start.begins.sum() == pytest.approx(1.0)
    assert start.N.sum() == pytest.approx(ages.rows.N.sum())
    np.testing.assert_allclose(start.S.sum(axis=0), ages.rows.S.sum(axis=0))
    single = int(np.flatnonzero(np.isclose(start.N, ages.rows.N[1]))[0])
    assert start.M[single].sum() == pytest.approx((counts.left + counts.stayed)[1].sum())
    first = start.M[0].copy()
    assert first[0] == 0.0  # of a phase that is not the last
    assert first[1] == pytest.approx(counts.stayed[0, 0])
    assert first[single] == pytest.approx(counts.left[0, 0] * ages.after[0, 1])


@pytest.mark.parametrize("seed", range(4))
def test_gain_over_geometric_durations_is_beyond_chance(seed):
    found = []
    for durations in (np.full(300, 5), np.random.default_rng(seed).geometric(0.2, 300)):
        z = in_turn(durations)
        model, source = rows_of(z, seed)
        found.append(aged(model, labelled(model.likelihood, source, z), source).gain)
    assert found[0] > 50.0
    assert -45.0 < found[1] < 0.0


def test_it_is_soon_over_where_durations_are_geometric(monkeypatch):
    steps = []
    step = Ages.step
    monkeypatch.setattr(Ages, "step", lambda *of: steps.append(0) or step(*of))
    z = in_turn(np.random.default_rng(0).geometric(0.2, 600))
    model, source = rows_of(z)
    start = labelled(model.likelihood, source, z)
    assert not aged(model, start, source).is_promising
    few = len(steps)
    monkeypatch.setattr(moves, "HOPELESS", np.inf)
    assert not aged(model, start, source).is_promising
    assert 2 * few <= len(steps) - few


def test_phases_must_be_worth_what_their_rows_cost(monkeypatch):
    z = in_turn(np.full(60, 3))
    model, source = rows_of(z, V=40)
    start = labelled(model.likelihood, source, z)
    assert not aged(model, start, source).worth.any()
    monkeypatch.setattr(moves, "costs", lambda likelihood, total: np.zeros((total.K, moves.MOST)))
    assert aged(model, start, source).worth.any()


def test_a_smoothed_prior_comes_first_where_symbols_are_many():
    rng = np.random.default_rng(0)
    z = np.repeat(np.cumsum(rng.integers(1, 4, 400)) % 4, 5)
    model, source = rows_of(z, V=20)
    model = replace(model, likelihood=replace(model.likelihood, concentration=np.full(20, 0.05)))
    blocks = block_states(model, source, 4, 20, rng)
    assert not aged(model, blocks, source).worth.any()
    assert aged_smoothly(model, blocks, source).worth.all()


def test_states_and_phases_that_hardly_a_row_is_in_are_left_out():
    z = in_turn(np.full(200, 4))
    model, source = rows_of(z)
    total = labelled(model.likelihood, source, z)
    total = total.insert_empty(1)
    found = aged(model, total, source)
    assert list(found.worth) == [True, True, True, False]
    assert found.start.K == 12
    assert np.all(np.isfinite(found.start.S))
    assert np.isfinite(found.bound)


def test_durations_are_not_learnt_of_long_states_or_of_too_many_rows(monkeypatch):
    short, long = (labelled(*of) for of in (case(5), case(40)))
    source = case(5)[1]
    assert may_age(short, source)
    assert not may_age(long, source)
    monkeypatch.setattr(moves, "NUMBERS", source.n_rows * 3 * moves.MOST - 1)
    assert not may_age(short, source)


def case(duration):
    z = in_turn(np.full(60, duration))
    model, source = rows_of(z)
    return model.likelihood, source, z
