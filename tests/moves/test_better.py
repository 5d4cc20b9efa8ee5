"""When a change is better, and which proposals are accepted: against the exact bound of what they lead to."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stickbreak.allocations import DirichletProcess
from stickbreak.likelihoods import DiagonalGaussian, Sample
from stickbreak.likelihoods.features import features
from stickbreak.model import Model, Replace, Summary
from stickbreak.moves.better import LEAST, WORTH, accepts, slack_of
from stickbreak.moves.proposal import Proposal
from stickbreak.moves.verify import verify, verify_whole

GAINS = st.floats(-1e6, 1e6)


@given(gain=GAINS, more=st.integers(-5, 5), size=GAINS)
def test_more_clusters_must_be_worth_more(gain, more, size):
    """If a change is accepted, so is one that gains as much with fewer clusters, and one that gains more."""
    if accepts(gain, more, size):
        assert gain > WORTH * max(0, more)
        assert accepts(gain, more - 1, size)
        assert accepts(gain + 1.0, more, size)
    else:
        assert gain <= WORTH * max(0, more) + 1e-9 * abs(size) + LEAST


def test_only_fewer_clusters_may_lose():
    assert not accepts(-0.005, 0, 100.0, slack=0.01)
    assert not accepts(-0.005, 1, 100.0, slack=0.01)
    assert accepts(-0.005, -1, 100.0, slack=0.01)
    assert not accepts(-0.02, -1, 100.0, slack=0.01)
    assert not accepts(0.0, -1, 100.0)


def test_slack_is_a_hundredth_of_a_nat_or_what_is_rounding():
    assert slack_of(5.0, 1e-6) == 0.01
    assert slack_of(0.003, 1e-6) == 0.003
    assert slack_of(0.0, 1e-6) == 1e-6
    assert slack_of(-3.0, 0.5) == 0.5


def problem(centers, n=40, seed=0):
    """A model, and the statistics of rows at each of some centers."""
    rng = np.random.default_rng(seed)
    parts = [rng.normal(center, 1.0, (n, 1)) for center in centers]
    model = Model(DiagonalGaussian().resolve(Sample.of(np.concatenate(parts))), DirichletProcess(1.0))
    return model, [features(model.likelihood, part) for part in parts]


def summary(groups):
    N = np.array([float(sum(map(len, group))) for group in groups])
    S = np.array([sum(T.sum(axis=0) for T in group) for group in groups])
    return Summary(N, S, np.zeros(len(groups)), np.zeros(()))


def birth(removed, n):
    """A proposal whose clusters have parameters, which verification does not look at, but for their number."""
    model, parts = problem([0.0] * n)
    return Proposal("birth", removed, model.parameters(summary([[part] for part in parts]), np.dtype(float)), 1.0)


@pytest.mark.parametrize("n_batches", [1, 3])
@pytest.mark.parametrize("apart", [0.0, 2.0, 20.0])
def test_a_merge_is_accepted_if_the_bound_rises(apart, n_batches):
    model, (a, b) = problem([0.0, apart])
    total = summary([[a], [b]])
    tracked = [[summary([[a[i::n_batches], b[i::n_batches]]])] for i in range(n_batches)]
    posterior = model.posterior(total.take(model.allocation.order(total)))
    verdict = verify(posterior, [Proposal("merge", (0, 1), None, 1.0)], tracked, 0.0)
    gain = model.bound(summary([[a, b]])) - posterior.bound
    assert (verdict.edit is not None) == (gain > 0.0)
    if verdict.edit is not None:
        assert verdict.gains[0] == pytest.approx(gain)
        assert verdict.edit.applied(total, tracked[0]).K == 1


def test_the_best_of_those_that_share_a_cluster_is_accepted():
    model, (a, b, c) = problem([0.0, 0.3, 0.0])
    total = summary([[a], [b], [c]])
    pairs = {(0, 1): [a, b], (0, 2): [a, c], (1, 2): [b, c]}
    tracked = [[summary([rows]) for rows in pairs.values()]]
    proposals = [Proposal("merge", pair, None, 1.0) for pair in pairs]
    verdict = verify(model.posterior(total), proposals, tracked, 0.0)
    left = {(0, 1): c, (0, 2): b, (1, 2): a}
    bounds = [model.bound(summary([rows, [left[pair]]])) for pair, rows in pairs.items()]
    assert list(verdict.gains) == [int(np.argmax(bounds))]
    assert verdict.removed == proposals[int(np.argmax(bounds))].removed


def test_a_birth_must_be_worth_a_nat():
    """Two halves of rows of one cluster are not; two clusters are."""
    for centers, better in (([0.0, 0.0], False), ([0.0, 9.0], True)):
        model, (a, b) = problem(centers)
        verdict = verify(model.posterior(summary([[a, b]])), [birth((0,), 2)], [[summary([[a], [b]])]], 0.0)
        assert (verdict.edit is not None) == better


def test_of_whole_configurations_the_best_is_accepted():
    model, parts = problem([0.0, 0.0, 9.0, 9.0])
    total = summary([[part] for part in parts])
    a, b, c, d = parts
    candidates = [summary([[a, b], [c], [d]]), summary([[a, b], [c, d]]), summary([[a, b, c, d]])]
    parameters = [model.parameters(one, np.dtype(float)) for one in candidates]
    proposals = [Proposal("merge", tuple(range(4)), p, 1.0, whole=True) for p in parameters]
    verdict = verify_whole(model.posterior(total), proposals, [candidates], 0.0)
    assert verdict.edit == Replace(1)
    assert verdict.gains[1] == pytest.approx(model.bound(candidates[1]) - model.bound(total))
    assert verdict.edit.applied(total, candidates) == candidates[1] or verdict.edit.applied(total, candidates).K == 2


def test_gains_add_up():
    """Two merges that share no cluster gain together what the bound rises by."""
    model, parts = problem([0.0, 0.0, 9.0, 9.0])
    total = summary([[part] for part in parts])
    a, b, c, d = parts
    tracked = [[summary([[a, b]]), summary([[c, d]])]]
    verdict = verify(model.posterior(total), [Proposal("merge", p, None, 1.0) for p in ((0, 1), (2, 3))], tracked, 0.0)
    after = verdict.edit.applied(total, tracked[0])
    assert len(verdict.gains) == 2
    assert sum(verdict.gains.values()) == pytest.approx(model.bound(model.ordered(after)) - model.bound(total))
    assert all(a >= b for a, b in pairwise(after.N))
