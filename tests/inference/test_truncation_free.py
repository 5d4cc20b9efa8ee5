"""Stochastic steps in which clusters are born: draws of the clusters of a batch, what is found, what is refused."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from partitions import expected_distance, posterior, probabilities
from stickbreak import HMM, Mixture, TopicModel, load
from stickbreak.allocations import DirichletProcess, FiniteDirichlet, PitmanYor, TruncatedDirichletProcess
from stickbreak.inference import Stochastic, TruncationFree
from stickbreak.inference.samplers.collapsed import sweep
from stickbreak.inference.truncation_free import beside
from stickbreak.likelihoods import Dirichlet, Gaussian, StudentT
from stickbreak.model import Model


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(3), n))
    return rng.normal(10.0 * labels[:, None], 1.0, (3 * n, 2)), labels


def fitted(X, algorithm=None, **parameters):
    defaults = {"n_batches": 3, "random_state": 0, "n_jobs": 1, "max_laps": 6}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Mixture("gaussian", algorithm=algorithm or TruncationFree(), **(defaults | parameters)).fit(X)


@pytest.mark.parametrize(
    "allocation", [DirichletProcess(1.0), PitmanYor(0.8, 0.4), FiniteDirichlet(3, 1.5)], ids=lambda a: type(a).__name__
)
def test_rows_of_a_batch_are_drawn_given_the_rows_before(naive, known_families, allocation):
    """Against partitions of all rows, enumerated, in which those before the batch are where they were."""
    before = (0, 0, 0, 1, 1)
    family, rng = known_families["known_covariance_gaussian-given"], np.random.default_rng(5)
    likelihood = family.likelihood(family.rows(rng, 30, 2))
    X = family.rows(rng, 8, 2)
    T = naive.features(likelihood, X)
    every, joint = posterior(likelihood, allocation, T)
    these = [i for i, z in enumerate(every.tolist()) if tuple(z[:5]) == before]
    p = probabilities(joint[these])
    assert p.max() < 0.5
    place = {tuple(every[i, 5:].tolist()): at for at, i in enumerate(these)}
    known = naive.summarise(likelihood, X[:5], np.eye(2)[list(before)])
    partition = beside(Model(likelihood, allocation), known, X[5:], rng)
    found, n_draws = np.zeros(len(p)), 2000
    for _ in range(n_draws):
        sweep(partition, rng, 1.0)
        names = {0: 0, 1: 1}
        found[place[tuple(names.setdefault(int(k), len(names)) for k in partition.labels)]] += 1.0
    assert 0.5 * np.abs(found / n_draws - p).sum() < expected_distance(p, n_draws / 4)
    N, S = partition.table.sums(partition.labels, partition.K)
    np.testing.assert_allclose(partition.N, N + np.pad(known.N, (0, len(N) - 2)))
    np.testing.assert_allclose(partition.S, S + np.pad(known.S, ((0, len(N) - 2), (0, 0))), atol=1e-8)


def test_a_row_far_from_all_others_leaves_no_rounding_behind(naive, known_families):
    family, rng = known_families["gaussian-given"], np.random.default_rng(0)
    X = family.rows(rng, 12, 2)
    likelihood = family.likelihood(X)
    known = naive.summarise(likelihood, X[:8], np.eye(1)[np.zeros(8, int)])
    batch = np.concatenate([X[8:], 1e9 * X[:1]])
    partition = beside(Model(likelihood, DirichletProcess(1.0)), known, batch, rng)
    partition.move(4, partition.K, 0.0, 0.0)
    T = naive.features(likelihood, batch)
    np.testing.assert_allclose(partition.S[0], known.S[0] + T[:4].sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("merge", [True, False])
def test_clusters_are_found_without_moves(merge):
    X, labels = rows()
    found = fitted(X, TruncationFree(merge=merge))
    assert found.n_clusters_ >= 3
    assert found.n_clusters_ == 3 or not merge
    assert adjusted_rand_score(labels, found.labels_) > (0.95 if merge else 0.7)
    assert found.lower_bound_ == pytest.approx(found.model_.bound(found.summary_), rel=1e-12)
    assert found.summary_.N.sum() == pytest.approx(len(X))


def test_rows_of_one_cluster_are_one():
    assert fitted(np.random.default_rng(1).standard_normal((120, 2))).n_clusters_ == 1


def test_clusters_are_born_beside_those_of_a_start():
    X, labels = rows()
    found = fitted(X, TruncationFree(5), init=(labels == 0).astype(int), max_laps=20)
    assert found.n_clusters_ == 3
    assert adjusted_rand_score(labels, found.labels_) > 0.95


def test_threads_change_nothing():
    X, _ = rows()
    alone, together = (fitted(X, n_jobs=n, max_laps=3) for n in (1, 3))
    assert alone.lower_bounds_ == together.lower_bounds_
    np.testing.assert_array_equal(alone.summary_.S, together.summary_.S)


def test_a_model_file_keeps_the_algorithm(tmp_path):
    X, _ = rows(20)
    algorithm = TruncationFree(1, Stochastic(2.0, 0.8), False)
    model = fitted(X, algorithm, max_laps=2)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").algorithm == algorithm


@pytest.mark.parametrize("values", [{"n_sweeps": 0}, {"n_sweeps": 1.5}, {"steps": 0.6}, {"merge": 1}])
def test_wrong_values_are_refused(values):
    with pytest.raises(ValueError, match=f"{next(iter(values))} must be"):
        TruncationFree(**values)


def test_what_it_cannot_take_is_refused():
    X, _ = rows(10)
    algorithm = TruncationFree()
    with pytest.raises(ValueError, match=r"algorithm=TruncationFree\(...\) needs a conjugate likelihood"):
        Mixture(StudentT(), algorithm=algorithm, learn=False).fit(X)
    with pytest.raises(ValueError, match="of which a Dirichlet has a lower bound"):
        Mixture(Dirichlet(), algorithm=algorithm, learn=False).fit(np.full((9, 2), 0.5))
    with pytest.raises(ValueError, match=r"sample_weight must be 1 .* algorithm=TruncationFree"):
        Mixture(Gaussian(), algorithm=algorithm).fit(X, sample_weight=np.full(30, 2.0))
    with pytest.raises(ValueError, match="need no truncation"):
        Mixture(Gaussian(), algorithm=algorithm, allocation=TruncatedDirichletProcess(4, 1.0)).fit(X)
    for estimator in (HMM("gaussian", algorithm=algorithm), TopicModel(algorithm=algorithm)):
        with pytest.raises(ValueError, match="algorithm must be"):
            estimator.fit(np.ones((6, 3)))
