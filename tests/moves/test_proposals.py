"""Every move is one exact replacement of responsibilities: track and exchange against dense algebra."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stickbreak.model import Batch, Parameters, local_step
from stickbreak.moves.merge import merge_scores, propose_merges
from stickbreak.moves.proposal import Proposal

SEEDS = st.integers(0, 2**32 - 1)
FLOAT = np.dtype(float)
few = settings(max_examples=5)  # for each of many families


def current(p):
    """Parameters, and the local step's summary and responsibilities, sparse and dense, on which proposals build."""
    parameters = p.model.parameters(p.summary, FLOAT)
    summary, kept = local_step(p.model.likelihood, parameters, p.X, p.weights)
    return parameters, summary, kept


def propose(p, naive, kind, parameters):
    """A proposal of each kind for random clusters."""
    K = len(parameters.bias)
    if kind == "merge":
        return Proposal(kind, tuple(p.rng.permutation(K)[:2].tolist()), None, 0.0)
    if kind == "birth":
        J = p.rng.integers(1, 5)
        labels = np.eye(J)[p.rng.integers(J, size=len(p.X))]
        T = naive.features(p.model.likelihood, p.X)
        W, b = p.model.likelihood.weights(labels.sum(axis=0), labels.T @ T)
        return Proposal(kind, (int(p.rng.integers(K)),), Parameters(W, b + p.rng.standard_normal(J)), 0.0)
    k, *absorbers = p.rng.permutation(K)[: p.rng.integers(2, K + 1)].tolist()
    takers = Parameters(parameters.W[absorbers], parameters.bias[absorbers])
    return Proposal(kind, (k, *absorbers), takers, 0.0, n_absorbers=len(absorbers))


def track(p, proposal, X, weights, kept, summary):
    return p.model.kind.track(
        p.model.likelihood, proposal.parameters, proposal.removed, Batch(X, weights), kept, summary
    )


def dense_summaries(p, naive, parameters, proposal, R, handed):
    """The summaries before and after a move; latent variables are those of their clusters, of a merge their mixture."""
    A, family = list(proposal.removed), p.model.likelihood
    q = naive.latent(p.model, parameters, p.X)
    before = naive.summarise(family, p.X, R, p.weights, q)
    if family.cells is not None:
        given = parameters if proposal.parameters is None else proposal.parameters
        new = naive.latent(p.model, given, p.X)[:, : handed.shape[1]]  # of a merge what it is does not matter
        q = np.concatenate([np.delete(q, A, axis=1), new], axis=1)
    elif q is not None:
        new = handed if proposal.parameters is None else naive.latent(p.model, proposal.parameters, p.X)[1]
        q = q[0], np.hstack([np.delete(q[1], A, axis=1), new])
    after = naive.summarise(family, p.X, np.hstack([np.delete(R, A, axis=1), handed]), p.weights, q)
    if proposal.parameters is None and q is not None:
        after.S[-1] = before.S[A].sum(axis=0)
    return before, after


@pytest.mark.parametrize("kind", ["merge", "birth", "delete"])
@few
@given(seed=SEEDS, K=st.integers(2, 5))
def test_tracking_is_the_replacement_of_responsibilities(problem, naive, kind, seed, K):
    p = problem(seed, K=K)
    parameters, summary, kept = current(p)
    proposal = propose(p, naive, kind, parameters)
    A, R = list(proposal.removed), naive.dense(kept, K)
    shares = np.ones((len(p.X), 1))
    if proposal.parameters is not None:
        shares = naive.responsibilities(p.model, proposal.parameters, p.X)
    handed = R[:, A].sum(axis=1, keepdims=True) * shares  # r'_nj = (sum_A r_nk) p_nj
    added = track(p, proposal, p.X, p.weights, kept, summary)
    assert added.K == proposal.n_added == handed.shape[1]
    assert added.base == 0.0
    assert proposal.subjects == (tuple(A[:1]) if kind == "delete" else tuple(A))
    before, after = dense_summaries(p, naive, parameters, proposal, R, handed)
    naive.assert_same(summary.exchange(A, added), after)
    assert added.N.sum() == pytest.approx(summary.N[A].sum(), rel=1e-10, abs=1e-12)
    change = p.model.bound(summary.exchange(A, added)) - p.model.bound(summary)
    dense_change = p.model.bound(after) - p.model.bound(before)
    assert change == pytest.approx(dense_change, abs=1e-10 * (1.0 + abs(p.model.bound(summary))))


@pytest.mark.parametrize("kind", ["merge", "birth", "delete"])
def test_tracking_adds_up_over_chunks(problem, naive, kind):
    p = problem(6)
    parameters, summary, kept = current(p)
    proposal = propose(p, naive, kind, parameters)
    parts = []
    for rows in (slice(0, 7), slice(7, 7), slice(7, None)):
        X, weights = p.X[rows], p.weights[rows]
        part, part_kept = local_step(p.model.likelihood, parameters, X, weights)
        parts.append(track(p, proposal, X, weights, part_kept, part))
    naive.assert_same(parts[0] + parts[1] + parts[2], track(p, proposal, p.X, p.weights, kept, summary))


@few
@given(seed=SEEDS, K=st.integers(2, 6))
def test_merge_score_is_the_change_of_the_bound_without_entropy(problem, seed, K):
    p = problem(seed, K=K)
    _, summary, kept = current(p)
    first, second = np.triu_indices(K, 1)
    scores = merge_scores(p.model.posterior(summary), first, second)
    for a, b, score in zip(first, second, scores):
        proposal = Proposal("merge", (a, b), None, 0.0)
        after = summary.exchange((a, b), track(p, proposal, p.X, p.weights, kept, summary))
        entropy = after.H.sum() - summary.H.sum()
        assert entropy <= 1e-12 * (1.0 + summary.H.sum())  # merging never gains entropy
        change = p.model.bound(p.model.ordered(after)) - p.model.bound(summary)
        assert score == pytest.approx(change - entropy, abs=1e-11 * (1.0 + abs(p.model.bound(summary))))


@few
@given(seed=SEEDS, K=st.integers(1, 6), limit=st.integers(0, 4), chance=st.sampled_from([0.5, 1.0]))
def test_merges_proposed_are_the_best_of_all_pairs_that_may(problem, seed, K, limit, chance):
    p = problem(seed, K=K)
    _, summary, _ = current(p)
    pairs = [pair for pair in combinations(range(K), 2) if p.rng.random() < chance]
    posterior = p.model.posterior(summary)
    proposals, _ = propose_merges(posterior, limit, lambda pair: pair in pairs)
    score = {pair: merge_scores(posterior, *np.array([pair]).T)[0] for pair in pairs}
    want = sorted((s for s in score.values() if s > 0.0), reverse=True)[:limit]
    assert [proposal.estimate for proposal in proposals] == pytest.approx(want, rel=1e-12, abs=1e-9)
    for proposal in proposals:
        assert proposal.kind == "merge"
        assert proposal.parameters is None
        assert proposal.estimate == pytest.approx(score[proposal.removed], rel=1e-12, abs=1e-9)
