"""One pass over the rows: the published algorithm written plainly, what is born, pruned and merged, and streams."""

import numpy as np
import pytest
from scipy.special import softmax, xlogy
from sklearn.metrics import adjusted_rand_score

import stickbreak
from stickbreak import HMM, Mixture
from stickbreak.allocations import DirichletProcess, FiniteDirichlet
from stickbreak.data import ArraySource
from stickbreak.inference import Sequential, Threads
from stickbreak.inference.one_pass import PIECE, Clusters
from stickbreak.kernels.overlaps import shared_entropies
from stickbreak.likelihoods import Gaussian, KnownCovarianceGaussian, StudentT
from stickbreak.model import Model


def rows(n=40, seed=0):
    """Of three clusters, mixed."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(m, 1.0, (n, 2)) for m in (-8.0, 0.0, 8.0)])
    return rng.permutation(X)


def published(likelihood, alpha, X, T, weights, epsilon):
    """SVA Alg. 1, row by row, with marginal likelihoods in place of predictive densities."""
    N, S = np.zeros(0), np.zeros((0, T.shape[1]))
    for t, w in zip(T, weights):
        N1, S1 = np.append(N, 0.0), np.vstack([S, np.zeros_like(t)])
        h = likelihood.log_marginal(N1 + 1.0, S1 + t) - likelihood.log_marginal(N1, S1)
        rho = softmax(h + np.log(np.append(N, alpha)))
        if len(N) == 0 or rho[-1] > epsilon:
            N, S = N1 + w * rho, S1 + w * np.outer(rho, t)
        else:
            rho = rho[:-1] / rho[:-1].sum()
            N, S = N + w * rho, S + w * np.outer(rho, t)
    return N, S


def passed(model, X, algorithm, weights=None, clusters=None):
    F = model.likelihood.n_statistics
    first = clusters or Clusters.of(np.zeros(0), np.zeros((0, F)))
    with Threads(1) as executor:
        return algorithm.passing(model).over(ArraySource(X, weights), first, executor)


@pytest.mark.parametrize("name", ["gaussian-given", "diagonal_gaussian-missing", "poisson-given", "categorical-given"])
@pytest.mark.parametrize("epsilon", [0.01, 0.4])
def test_one_row_at_a_time_is_the_published_algorithm(naive, known_families, name, epsilon):
    family, rng = known_families[name], np.random.default_rng(1)
    likelihood = family.likelihood(family.rows(rng, 60, 2))
    X, weights = family.rows(rng, 50, 2), rng.choice([1.0, 2.0], 50)
    model = Model(likelihood, DirichletProcess(0.8))
    found = passed(model, X, Sequential(epsilon, prune=0.0, merge=False, block_rows=1), weights)
    N, S = published(likelihood, 0.8, X, naive.features(likelihood, X), weights, epsilon)
    assert len(N) > (epsilon < 0.1)
    np.testing.assert_allclose(found.N, N, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.S, S, rtol=1e-6, atol=1e-7)
    assert found.seen == weights.sum()


def test_blocks_find_the_same_clusters():
    X = rows()
    one, many = (fitted(X, Sequential(block_rows=n)) for n in (1, 1000))
    assert one.n_clusters_ == many.n_clusters_ == 3
    assert adjusted_rand_score(one.labels_, many.labels_) == 1.0
    assert many.lower_bound_ == pytest.approx(one.lower_bound_, rel=1e-6)


def fitted(X, algorithm="sequential", **parameters):
    prior = KnownCovarianceGaussian(covariance=1.0, mean_precision=0.02)
    return Mixture(prior, algorithm=algorithm, random_state=0, **parameters).fit(X)


def test_the_bound_is_that_of_a_visit(naive):
    """Of the responsibilities under the parameters of the pass, exact; a fit that goes on from there climbs."""
    X = rows()
    model = fitted(X)
    summary = model.summary_
    assert summary.N.sum() == pytest.approx(len(X))
    assert model.lower_bound_ == pytest.approx(model.model_.bound(summary), rel=1e-12)
    np.testing.assert_allclose(summary.base, model.model_.likelihood.log_base(X).sum())
    np.testing.assert_allclose(summary.S.sum(axis=0), naive.features(model.model_.likelihood, X).sum(axis=0), atol=1e-9)
    assert (summary.H >= 0.0).all()
    again = Mixture(model.model_.likelihood, init=model, moves=(), learn=False).fit(X)
    assert again.lower_bound_ >= model.lower_bound_ - 1e-9
    assert (np.diff(summary.N) <= 0.0).all()


def test_threads_change_nothing():
    X = rows(3 * PIECE)
    one, two = (fitted(X, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.summary_.S, two.summary_.S)
    assert one.lower_bound_ == two.lower_bound_
    assert one.n_clusters_ == 3


def test_hyperparameters_are_learnt_on_a_sample():
    X = rows(150)
    model = Mixture(Gaussian(), algorithm="sequential", random_state=0).fit(X)
    held = Mixture(Gaussian(), algorithm="sequential", random_state=0, learn=False).fit(X)
    assert model.n_clusters_ == 3
    assert model.lower_bound_ > held.lower_bound_


def test_repeated_rows_count_as_weights():
    """In another order, but of clear clusters: one cluster for each distinct row."""
    X = np.repeat(np.eye(3) * 20.0, 40, axis=0)
    model = fitted(X)
    assert model.n_clusters_ == 3
    np.testing.assert_allclose(model.summary_.N, 40.0)
    weighted = Mixture(model.model_.likelihood, algorithm="sequential", learn=False)
    weighted.fit(np.eye(3) * 20.0, sample_weight=[5.0, 3.0, 0.0])
    np.testing.assert_allclose(weighted.summary_.N, [5.0, 3.0])


def test_no_more_clusters_than_the_prior_has():
    rng = np.random.default_rng(0)
    X = rng.normal(0.0, 50.0, (60, 2))
    assert fitted(X, allocation=FiniteDirichlet(4, 2.0)).n_clusters_ <= 4


def tidied(N, S, shared, born, seen, algorithm=None, protected=0):
    likelihood = KnownCovarianceGaussian(covariance=1.0, mean_precision=0.01).resolve(
        stickbreak.likelihoods.Sample.of(np.array([[-1.0], [1.0]]))
    )
    model = Model(likelihood, DirichletProcess(1.0))
    clusters = Clusters(np.array(N), np.array(S), np.array(shared), np.array(born), seen)
    way = (algorithm or Sequential()).passing(model, protected)
    clusters = way.pruned(clusters)
    return (way.merged(clusters) if way.merge else clusters), model


def test_pruned_since_birth():
    """A cluster goes by its share of the rows since it was born, and not where it is protected."""
    T = [[0.0], [50.0], [-90.0]]
    state = ([500.0, 0.001, 1.0], T, np.zeros((3, 3)), [0.0, 10.0, 990.0], 1000.0)
    rule = Sequential(prune=0.01, merge=False)
    assert tidied(*state, rule)[0].K == 2
    np.testing.assert_array_equal(tidied(*state, rule)[0].N, [500.0, 1.0])
    assert tidied(*state, rule, protected=2)[0].K == 3
    assert tidied(*state, Sequential(prune=0.0, merge=False))[0].K == 3


def test_merged_where_the_bound_rises():
    """Two halves of one cluster become one, and the gain is the change of the exact bound of certain assignments."""
    N, S = [30.0, 30.0, 40.0], [[30.0], [33.0], [-4000.0]]
    found, model = tidied(N, S, np.zeros((3, 3)), [0.0] * 3, 100.0)
    np.testing.assert_array_equal(found.N, [60.0, 40.0])
    np.testing.assert_array_equal(found.S, [[63.0], [-4000.0]])
    before = Clusters.of(np.array(N), np.array(S)).summary
    assert model.bound(model.ordered(found.summary)) > model.bound(model.ordered(before))
    shared = np.zeros((3, 3))
    shared[0, 1] = 1000.0  # more entropy lost than the merge gains
    assert tidied(N, S, shared, [0.0] * 3, 100.0)[0].K == 3
    assert tidied(N, S, np.zeros((3, 3)), [0.0] * 3, 100.0, protected=2)[0].K == 3
    assert tidied(N, S, np.zeros((3, 3)), [0.0] * 3, 100.0, Sequential(merge=False))[0].K == 3


def test_what_a_merge_shares_with_others():
    rng = np.random.default_rng(0)
    clusters = Clusters(rng.random(4), rng.random((4, 2)), np.triu(rng.random((4, 4)), 1), rng.random(4), 1.0)
    merged = clusters.merge(1, 3)
    whole = clusters.shared + clusters.shared.T
    np.testing.assert_allclose(merged.N, [clusters.N[0], clusters.N[1] + clusters.N[3], clusters.N[2]])
    np.testing.assert_allclose(merged.shared[0], [0.0, whole[0, 1] + whole[0, 3], whole[0, 2]])
    np.testing.assert_allclose(merged.shared[1], [0.0, 0.0, whole[1, 2] + whole[3, 2]])


def test_entropy_shared_by_pairs():
    rng = np.random.default_rng(0)
    R = rng.dirichlet(np.full(4, 0.3), 6)
    R[0, 1] = 0.0
    weights, shared = rng.random(6), np.zeros((4, 4))
    indptr = np.arange(0, 28, 4)
    shared_entropies(indptr, np.tile(np.arange(4), 6), R.ravel(), weights, shared)
    for a in range(4):
        for b in range(4):
            both = R[:, a] + R[:, b]
            lost = xlogy(both, both) - xlogy(R[:, a], R[:, a]) - xlogy(R[:, b], R[:, b])
            assert shared[a, b] == pytest.approx(weights @ lost if a < b else 0.0, abs=1e-12)


def test_a_stream_in_which_clusters_are_born():
    """partial_fit goes on with the pass; clusters keep their numbers, and the bound is that of all rows seen."""
    X = rows()
    near, far = X[X[:, 0] < 4.0], X[X[:, 0] >= 4.0]
    model = fitted(near)
    before = model.summary_
    assert model.n_clusters_ == 2
    model.partial_fit(far)
    assert model.n_clusters_ == 3
    assert (model.labels_ == 2).all()
    np.testing.assert_allclose(model.summary_.N[:2], before.N, rtol=1e-6)
    assert model.summary_.N.sum() == pytest.approx(len(X))
    assert model.lower_bound_ == pytest.approx(model.model_.bound(model.summary_))
    assert model.lower_bound_ == pytest.approx(fitted(X).lower_bound_, rel=1e-2)
    model.partial_fit(near)
    assert model.n_clusters_ == 3
    held = fitted(near).set_params(algorithm="memoized").partial_fit(far)
    assert held.n_clusters_ == 2


def test_a_start_from_given_clusters():
    X = rows()
    model = fitted(X)
    again = fitted(X, init=model.labels_)
    assert again.n_clusters_ == 3
    assert adjusted_rand_score(again.labels_, model.labels_) == 1.0


def test_files_keep_the_algorithm(tmp_path):
    model = fitted(rows(), Sequential(0.2, prune=0.0))
    model.save(tmp_path / "model")
    assert stickbreak.load(tmp_path / "model").algorithm == Sequential(0.2, prune=0.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", -0.1), ("epsilon", 1.5), ("prune", 1.0), ("prune", "none"), ("merge", 1), ("block_rows", 0)],
)
def test_parameters_out_of_range(name, value):
    with pytest.raises(ValueError, match=name):
        Sequential(**{name: value})


def test_what_has_no_pass_is_refused():
    with pytest.raises(ValueError, match="latent variable"):
        Mixture(StudentT(), algorithm="sequential", learn=False).fit(rows())
    with pytest.raises(ValueError, match="algorithm must be"):
        HMM(algorithm="sequential").fit(rows())


@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_one_gaussian_is_one_cluster_and_a_stream_finds_others(learn, seed):
    """Nothing learnt from one cluster may bar those that come later."""
    rng = np.random.default_rng(seed)
    model = Mixture("gaussian", algorithm="sequential", learn=learn, random_state=0, n_jobs=1)
    model.partial_fit(rng.normal(0.0, 1.0, (400, 3)))
    assert model.n_clusters_ == 1
    model.partial_fit(rng.normal(12.0, 1.0, (200, 3)))
    assert model.n_clusters_ == 2
    model.partial_fit(rng.normal(0.0, 1.0, (200, 3)))
    assert model.n_clusters_ == 2


def test_no_merge_of_the_result_has_a_higher_bound():
    """Not even several together, for the responsibilities found."""
    rng = np.random.default_rng(4)
    X = np.concatenate([rng.normal(m, 1.0, (150, 2)) for m in (0.0, 2.5, 9.0)])
    model = Mixture("gaussian", algorithm="sequential", learn=False, random_state=0, n_jobs=1).fit(X)
    for n in range(1, model.n_clusters_):
        groups = model.hierarchy_.cut(n)
        R = np.stack([model.predict_proba(X)[:, groups == g].sum(axis=1) for g in range(n)], axis=1)
        merged = Mixture("gaussian", learn=False, init=R, moves=(), max_laps=1, random_state=0, n_jobs=1)
        with pytest.warns(UserWarning, match="not converged"):
            merged.fit(X)
        assert model.lower_bound_ > merged.lower_bound_
