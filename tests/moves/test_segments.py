"""New states from segments: where a block is cut, which are offered, and which share a state when they are grouped anew."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stickbreak.allocations import FiniteMarkovChain, HDPMarkovChain
from stickbreak.data import SequenceSource
from stickbreak.likelihoods import Gaussian, Sample
from stickbreak.model import SEQUENCES, Model
from stickbreak.model.sequences import labelled
from stickbreak.moves import agglomeration, segments
from stickbreak.moves.blocks import halves

SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=10)
LENGTHS = np.array([150, 1, 70, 79])
CHAINS = [FiniteMarkovChain(12, 3.0, 5.0), HDPMarkovChain(2.0, 5.0)]


def problem(seed, allocation, holes=False):
    """Rows of three kinds, each for ten rows and more, some of them missing if there are holes; and their kinds."""
    rng = np.random.default_rng(seed)
    z = np.repeat(rng.integers(3, size=30), 10)
    X = rng.standard_normal((len(z), 2)) + 6.0 * np.eye(3, 2)[z]
    model = Model(Gaussian().resolve(Sample.of(X)), allocation, SEQUENCES)
    X[rng.random(len(z)) < 0.2 * holes] = np.nan
    return model, SequenceSource(X, LENGTHS), z, rng


def joint(model, total):
    """Log probability of rows and path, given the model's prior (for the HDP's a lower bound)."""
    return model.log_marginal(total).sum() + model.allocation.bound(total)


@few
@given(seed=SEEDS, n=st.integers(2, 60), holes=st.booleans())
def test_a_block_is_cut_where_both_parts_are_most_likely(seed, n, holes):
    model, source, _, rng = problem(seed, CHAINS[0], holes)
    start = int(rng.integers(LENGTHS[0] - n))
    N, S = halves(model, source, np.arange(start, start + n))
    best = -np.inf
    for cut in range(1, n):
        labels = np.full(len(source.X), 2)
        labels[start : start + cut], labels[start + cut : start + n] = 0, 1
        parts = labelled(model.likelihood, source, labels).take(np.arange(2))
        value = model.log_marginal(parts).sum()
        if value > best:
            best, want = value, parts
    np.testing.assert_allclose(N, want.N)
    np.testing.assert_allclose(S, want.S, atol=1e-9)


@pytest.mark.parametrize("allocation", CHAINS, ids=["finite", "hdp"])
@few
@given(seed=SEEDS)
def test_segments_that_share_the_wrong_state_find_each_other(allocation, seed):
    """Boundaries are right, but which segments share a state was drawn, other than that neighbours do not."""
    model, source, z, rng = problem(seed, allocation)
    edges = np.flatnonzero(np.append(True, z[1:] != z[:-1]))
    state = np.cumsum(rng.integers(1, 3, size=len(edges))) % 3
    path = np.repeat(state, np.diff([*edges, len(z)]))
    found = segments.regrouped(model, source, path, np.ones(3, np.bool_), rng)
    truth = joint(model, labelled(model.likelihood, source, np.unique(z, return_inverse=True)[1]))
    drawn = joint(model, labelled(model.likelihood, source, path))
    assert joint(model, found) > truth - 5.0  # a row that a random cut leaves alone may go astray
    assert joint(model, found) > drawn + 0.99 * (truth - drawn)
    assert found.M.sum() + found.begins.sum() == pytest.approx(len(z))


@few
@given(seed=SEEDS, holes=st.booleans())
def test_a_state_of_two_kinds_is_halved_between_them(seed, holes):
    """Segments of the second and third kinds share a state; those of the first, between them, are halved as chance has it."""
    rng = np.random.default_rng(seed)
    z = np.repeat(np.where(np.arange(30) % 2, rng.permutation(30) % 2 + 1, 0), 10)
    X = rng.standard_normal((len(z), 2)) + 6.0 * np.eye(3, 2)[z]
    model = Model(Gaussian().resolve(Sample.of(X)), CHAINS[1], SEQUENCES)
    X[rng.random(len(z)) < 0.2 * holes] = np.nan
    source = SequenceSource(X, LENGTHS)
    path = np.minimum(z, 1)
    found = segments.halved(model, source, path, rng)
    kinds = labelled(model.likelihood, source, z)
    everything = labelled(model.likelihood, source, np.zeros(len(z), np.intp))
    np.testing.assert_allclose(found.N.sum(), everything.N.sum())
    np.testing.assert_allclose(found.S.sum(axis=0), everything.S[0], rtol=1e-9, atol=1e-9)
    assert found.M.sum() + found.begins.sum() == len(z)
    assert 3 <= found.K <= 4
    for k in (1, 2):
        j = int(np.argmin(np.abs(found.N - kinds.N[k]) + np.abs(found.S - kinds.S[k]).sum(axis=1)))
        np.testing.assert_allclose(found.S[j], kinds.S[k], rtol=1e-9, atol=1e-9)


def test_states_of_one_segment_and_of_too_many_are_not_halved(monkeypatch):
    model, source, z, rng = problem(0, CHAINS[1])
    assert segments.halved(model, source, segments.segments_of(source, z), rng) is None
    assert segments.halved(model, source, z, rng) is not None
    monkeypatch.setattr(segments, "MOST_NUMBERS", 20)
    assert segments.halved(model, source, z, rng) is None


@few
@given(seed=SEEDS, holes=st.booleans())
def test_no_row_is_lost_where_segments_are_many(seed, holes):
    model, source, z, rng = problem(seed, CHAINS[1], holes)
    most, segments.MOST = segments.MOST, 4
    try:
        found = segments.regrouped(model, source, z, np.ones(z.max() + 1, np.bool_), rng)
        offered = segments.own_states(model, source, z, 6, rng)
    finally:
        segments.MOST = most
    everything = labelled(model.likelihood, source, np.zeros(len(z), np.intp))
    np.testing.assert_allclose(found.N.sum(), everything.N.sum())
    np.testing.assert_allclose(found.S.sum(axis=0), everything.S[0], rtol=1e-9, atol=1e-9)
    assert 0 < offered.K <= 6
    assert (offered.N > 0.0).all()


def test_what_is_offered_is_the_segment_that_does_not_belong():
    model, source, _, _ = problem(0, CHAINS[0])
    X = np.asarray(source.X).copy()
    X[:] = np.random.default_rng(1).standard_normal(X.shape)
    X[40:52] += 8.0
    path = np.repeat(np.arange(30) % 2, 10)
    path[40:52] = 0
    path[52:60] = 1
    found = segments.own_states(model, SequenceSource(X, LENGTHS), path, 2, np.random.default_rng(0))
    assert found.N.sum() == 12.0


@pytest.mark.parametrize("nearest", [3, 100])
@few
@given(seed=SEEDS)
def test_what_merges_seem_to_gain_is_what_they_gain(nearest, seed):
    """For a finite chain, whose shares do not depend on counts, the estimate is exact."""
    model, source, _, rng = problem(seed, CHAINS[0])
    total = labelled(model.likelihood, source, rng.integers(10, size=len(source.X)))
    before, kept = joint(model, total), agglomeration.NEAREST
    agglomeration.NEAREST = nearest
    try:
        steps = list(agglomeration.merges(model.posterior(total)))
    finally:
        agglomeration.NEAREST = kept
    assert [len(step.groups) for step in steps] == list(range(total.K - 1, 0, -1))
    for step in steps:
        merged = agglomeration.with_groups(total, step.groups)
        assert joint(model, merged) - before == pytest.approx(step.gain, abs=1e-7 * abs(before))
    best = agglomeration.agglomerated(model, total)
    assert nearest < 10 or joint(model, best) - before == pytest.approx(
        max(0.0, *(step.gain for step in steps)), abs=1e-6
    )


@few
@given(seed=SEEDS)
def test_the_segments_of_other_states_stay_together(seed):
    """Only those of the states given are on their own."""
    _, source, z, rng = problem(seed, CHAINS[1])
    among = np.arange(z.max() + 1) == z[0]
    segment = segments.segments_of(source, z)
    group = segments._alone(segment, z, among[z], rng)[0]
    for k in np.flatnonzero(~among):
        assert len(np.unique(group[z == k])) == (z == k).any()
    assert len(np.unique(group[z == z[0]])) == len(np.unique(segment[z == z[0]]))


def test_states_that_are_alike_are_regrouped_together():
    """Of six, in three pairs: a share of 0.2 or 0.4 is two or three states, and those of a pair come first."""
    model, _, _, _ = problem(0, CHAINS[1])
    centers = np.repeat([-9.0, 0.0, 9.0], 2) + np.tile([-0.2, 0.2], 3)
    X = np.repeat(centers, 10)[:, None] + np.random.default_rng(0).normal(0.0, 0.3, (60, 2))
    pairs = SequenceSource(X, np.array([60]))
    total = labelled(model.likelihood, pairs, np.repeat(np.arange(6), 10))
    sizes = set()
    for seed in range(20):
        found = np.flatnonzero(segments.alike(model, total, np.random.default_rng(seed)))
        sizes.add(len(found))
        assert len(found) > 3 or len(np.unique(found // 2)) < len(found)
    assert sizes == {2, 3, 5}


@pytest.mark.parametrize("transitions", [True, False])
@few
@given(seed=SEEDS)
def test_every_merge_is_the_best_of_what_is_left(transitions, seed):
    """States that others have absorbed leave no trace, also where only their rows are known."""
    model, source, _, rng = problem(seed, CHAINS[0])
    total = labelled(model.likelihood, source, rng.integers(10, size=len(source.X)))
    total = total if transitions else SEQUENCES.start(total)
    before = 0.0
    for step in agglomeration.merges(model.posterior(total)):
        pairs, shares = np.triu_indices(total.K, 1), model.allocation.solve(total).shares
        gains, _ = agglomeration.merge_gains(model, total, model.log_marginal(total), shares, *pairs)
        assert step.gain - before == pytest.approx(gains.max(), rel=1e-9, abs=1e-6)
        before, best = step.gain, int(gains.argmax())
        total = total.merge(int(pairs[0][best]), int(pairs[1][best]))
        assert len(step.groups) == total.K


@few
@given(seed=SEEDS, holes=st.booleans())
def test_pieces_of_a_state_go_to_either_half_and_other_states_stay_as_they_are(seed, holes):
    model, source, z, rng = problem(seed, CHAINS[1], holes)
    before = labelled(model.likelihood, source, z)
    among = np.arange(before.K) == rng.integers(before.K)
    found = segments.in_pieces(model, source, z, among, rng)
    assert found.K == before.K + 1
    np.testing.assert_allclose(found.S.sum(axis=0), before.S.sum(axis=0), atol=1e-9)
    np.testing.assert_allclose(found.M.sum(), before.M.sum())
    place = int(among.argmax())
    others = np.delete(np.arange(found.K), [place, place + 1])
    np.testing.assert_allclose(found.N[others], before.N[~among])
    np.testing.assert_allclose(found.S[others], before.S[~among])
    halves_ = found.take(np.array([place, place + 1]))
    changes = halves_.M.sum() - np.trace(halves_.M)
    assert 0.0 < changes <= np.ceil(before.N[among] / segments.PIECE)[0] + len(LENGTHS)
