"""Deletes: which clusters are proposed, and who is to take their rows."""

import numpy as np
import pytest

from stickbreak.allocations import DirichletProcess, HierarchicalDirichletProcess
from stickbreak.likelihoods import DiagonalGaussian, Multinomial, Sample
from stickbreak.likelihoods.features import features
from stickbreak.model import BAGS, Model, Summary
from stickbreak.moves.delete import N_ABSORBERS, propose_deletes
from stickbreak.moves.proposal import Proposal

DOUBLE = np.dtype(float)


def clusters(centers, n=200, seed=0):
    """The posterior of clusters of n rows at each of some centers, whatever their distance."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(center, 1.0, (n, 1)) for center in centers])
    likelihood = DiagonalGaussian().resolve(Sample.of(X))
    T = features(likelihood, X).reshape(len(centers), n, -1)
    return Model(likelihood, DirichletProcess(1.0)).posterior(
        Summary(np.full(len(centers), float(n)), T.sum(axis=1), np.zeros(len(centers)), np.zeros(()))
    )


def test_a_cluster_whose_rows_a_neighbour_explains_is_proposed_first():
    posterior = clusters([0.0, 40.0, 0.02, 80.0])
    proposals = propose_deletes(posterior, DOUBLE, 10, lambda k: True)
    assert {proposal.subjects for proposal in proposals} == {(0,), (2,)}
    for proposal in proposals:
        k = proposal.subjects[0]
        assert proposal.removed[1] == 2 - k  # the twin comes first among those that take its rows
        loss = posterior.summary.N[k] * posterior.divergences[k, 2 - k]
        assert proposal.estimate == pytest.approx(posterior.cost[k] - loss)
    assert proposals[0].estimate >= proposals[-1].estimate


def test_absorbers_keep_their_parameters_and_are_the_nearest():
    posterior = clusters([0.0, 0.05, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    first = next(p for p in propose_deletes(posterior, DOUBLE, 8, lambda k: True) if p.subjects == (0,))
    assert first.removed == (0, 1, 2, 3, 4, 5)
    assert first.n_added == N_ABSORBERS
    np.testing.assert_array_equal(first.parameters.W, posterior.parameters(DOUBLE).W[[1, 2, 3, 4, 5]])


def test_failures_of_a_move_are_those_of_the_clusters_that_are_to_go_whatever_its_name():
    parameters = clusters([0.0, 1.0, 2.0, 3.0]).parameters(DOUBLE)
    assert Proposal("dissolve", (3, 0, 1), parameters.take([0, 1]), 0.0, n_absorbers=2).subjects == (3,)
    assert Proposal("delete", (3, 0), parameters, 0.0, whole=True).subjects == (3, 0)
    assert Proposal("merge", (1, 2), None, 0.0).subjects == (1, 2)


def test_the_limit_and_a_single_cluster():
    assert propose_deletes(clusters([0.0]), DOUBLE, 10, lambda k: True) == []
    assert len(propose_deletes(clusters([0.0, 0.01, 0.02, 0.03]), DOUBLE, 2, lambda k: True)) == 2


def test_a_topic_that_others_mix_is_proposed_with_these():
    """Half of the words of one topic and half of another's: no single other topic explains it, both together do."""
    words = np.zeros((4, 40))
    for k in range(3):
        words[k, 10 * k : 10 * k + 10] = 0.1
    words[3] = 0.5 * (words[0] + words[1])
    N = np.array([4000.0, 4000.0, 4000.0, 400.0])
    model = Model(Multinomial(0.03).resolve(Sample.of(np.ones((2, 40)))), HierarchicalDirichletProcess(), BAGS)
    first = propose_deletes(model.posterior(model.start(N, words * N[:, None])), DOUBLE, 10, lambda k: True)[0]
    assert first.subjects == (3,)
    assert set(first.removed[1:3]) == {0, 1}
    assert first.estimate > 0.0
