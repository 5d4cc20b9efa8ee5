"""Clusters named in advance: the family with seeds, against sums of rows, densities written out and enumeration."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln, logsumexp, psi, softmax

from stickbreak.allocations import DirichletProcess, FiniteDirichlet
from stickbreak.data import ArraySource
from stickbreak.inference import LearningSearch, Options, Session, Threads
from stickbreak.likelihoods import Bernoulli, DiagonalGaussian, Gaussian, Multinomial, Sample, Seeded, StudentT
from stickbreak.likelihoods.features import features
from stickbreak.likelihoods.seeded import APART, MARK
from stickbreak.model import Model, Summary
from stickbreak.model.local import local_step

K = 4


def rows(family, rng, n=40, D=3):
    if family is Multinomial:
        return rng.poisson(2.0, (n, D)).astype(float)
    return rng.integers(2, size=(n, D)).astype(float) if family is Bernoulli else rng.normal(size=(n, D))


@pytest.fixture(params=[Gaussian, DiagonalGaussian, Bernoulli, Multinomial])
def problem(request):
    """A family, rows, and the family seeded with three rows that count twice, and one that counts as half."""
    rng = np.random.default_rng(0)
    X = rows(request.param, rng)
    family = request.param().resolve(Sample.of(X))
    prototypes = [rows(request.param, rng, 3), rows(request.param, rng, 1)]
    T = [np.asarray(features(family, P)) for P in prototypes]
    counts = np.array([6.0, 0.5])
    sums = np.stack([2.0 * T[0].sum(axis=0), 0.5 * T[1].sum(axis=0)])
    return family, X, Seeded(family, counts, sums, ("one", "two"))


def clusters(seeded, X, owners=(2, 0)):
    R = softmax(np.random.default_rng(1).normal(size=(len(X), K)), axis=1)
    S = R.T @ np.asarray(features(seeded, X))
    S[:, -2:] = seeded.marks_of(np.array(owners), K)
    return R.sum(axis=0), S


def test_seeds_count_as_rows_of_their_clusters_in_the_prior(problem):
    family, X, seeded = problem
    N, S = clusters(seeded, X)
    assert not S[:, -2:].any(axis=1)[[1, 3]].any()
    more = N.copy()
    own = S[:, :-2].copy()
    for g, k in enumerate((2, 0)):
        more[k] += seeded.counts[g]
        own[k] += seeded.sums[g]
    expected = family.log_marginal(more, own)
    expected[[2, 0]] -= family.log_marginal(seeded.counts, seeded.sums)
    np.testing.assert_allclose(seeded.log_marginal(N, S), expected, rtol=1e-12)
    W, b = seeded.weights(N, S)
    for found, wanted in zip((W[:, :-2], b), family.weights(more, own)):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    np.testing.assert_allclose(seeded.log_predictive(X, N, S), family.log_predictive(X, more, own), rtol=1e-12)
    assert seeded.names_of(S) == {"one": 2, "two": 0}


def test_empty_seeded_clusters_are_worth_nothing_and_predict_as_their_prototypes(problem):
    family, X, seeded = problem
    N = np.zeros(2)
    S = np.hstack([np.zeros_like(seeded.sums), MARK * np.eye(2)])
    np.testing.assert_allclose(seeded.log_marginal(N, S), 0.0, atol=1e-12)
    np.testing.assert_allclose(
        seeded.log_predictive(X, N, S), family.log_predictive(X, seeded.counts, seeded.sums), rtol=1e-12
    )


def test_local_steps_carry_marks_and_no_row_adds_to_them(problem):
    _, X, seeded = problem
    model = Model(seeded, DirichletProcess())
    N, S = clusters(seeded, X)
    parameters = model.parameters(Summary(N, S, np.zeros(K), np.zeros(())), np.dtype(np.float64))
    for dtype in (np.float64, np.float32):
        own = parameters._replace(W=parameters.W.astype(dtype), bias=parameters.bias.astype(dtype))
        summary, _ = local_step(seeded, own, X.astype(dtype), np.ones(len(X)))
        assert ((summary.S[:, -2:] > 0.0) == (S[:, -2:] > 0.0)).all()
    twice = summary + summary
    assert seeded.names_of(twice.S - summary.S) == seeded.names_of(S)
    assert seeded.names_of((summary * 1e-3).S) == seeded.names_of(S)


def test_sparse_features_are_those_of_dense_rows(problem):
    family, X, seeded = problem
    if family.takes_sparse:
        dense = np.asarray(features(seeded, X))
        np.testing.assert_array_equal(features(seeded, sparse.csr_array(X)).toarray(), dense)
        assert not dense[:, -2:].any()


def test_two_seeds_are_never_one_cluster_and_one_with_any_other_may_be(problem):
    _, X, seeded = problem
    N, S = clusters(seeded, X)
    together = seeded.log_marginal(N[[2]] + N[[0]], S[[2]] + S[[0]])[0]
    assert together < seeded.log_marginal(N, S)[[0, 2]].sum() - 0.9 * APART
    joined = S[[2]] + S[[1]]
    assert seeded.log_marginal(N[[2]] + N[[1]], joined)[0] > -0.1 * APART
    assert seeded.named(joined).all()


def test_a_start_gets_each_seed_where_it_gains_most(problem):
    _, X, seeded = problem
    N, S = clusters(seeded, X)
    plain = S[:, :-2]
    for most in (K, K + 1, 100):
        begun = seeded.begun(N, plain, most)
        marks = begun[:, -2:] > 0.0
        assert (marks.sum(axis=0) == 1).all()
        assert (marks.sum(axis=1) <= 1).all()
        assert len(begun) <= most
        gains = np.vstack([*(seeded._gains(N, plain, g) for g in range(2))])
        new = max(0, min(2, most - K))
        each = np.hstack([gains, np.zeros((2, new))])
        best = max(each[0, a] + each[1, b] for a in range(K + new) for b in range(K + new) if a != b)
        owners = begun[:, -2:].argmax(axis=0)
        found = sum(gains[g, k] if k < K else 0.0 for g, k in enumerate(owners))
        assert found == pytest.approx(best, abs=1e-5)
    assert seeded.begun(N, S, K) is S
    with pytest.raises(ValueError, match="names 2 clusters, but there may be no more than 1"):
        seeded.begun(N[:1], plain[:1], 1)


def mean_field_bound(X, R, priors, alpha):
    """E_q[log p(X, z, p, pi) - log q] of multinomial rows with q(pi), q(p_k) conjugate, every term by itself."""

    def kl(a, b):
        parts = gammaln(b) - gammaln(a) + (a - b) * (psi(a) - psi(a.sum()))
        return gammaln(a.sum()) - gammaln(b.sum()) + parts.sum()

    after = priors + R.T @ X
    weights = alpha + R.sum(axis=0)
    log_p = psi(after) - psi(after.sum(axis=1, keepdims=True))
    base = (gammaln(X.sum(axis=1) + 1.0) - gammaln(X + 1.0).sum(axis=1)).sum()
    log_pi = psi(weights) - psi(weights.sum())
    likelihood = (R * (X @ log_p.T + log_pi)).sum() - (R * np.log(R)).sum()
    return base + likelihood - kl(weights, alpha) - sum(kl(a, b) for a, b in zip(after, priors))


def test_the_bound_is_the_mean_field_bound_with_a_prior_for_each_cluster_and_below_the_evidence():
    rng = np.random.default_rng(2)
    X = rng.poisson(1.5, (6, 4)).astype(float)
    family = Multinomial(np.full(4, 0.7)).resolve(Sample.of(X))
    sums = np.array([[3.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.5, 2.0]])
    model = Model(Seeded(family, np.zeros(2), sums, ("a", "b")), FiniteDirichlet(3, 1.2))
    priors = 0.7 + np.vstack([sums, np.zeros(4)])
    alpha = np.full(3, 0.4)
    R = softmax(rng.normal(size=(6, 3)), axis=1)
    S = np.hstack([R.T @ X, model.likelihood.marks_of(np.arange(2), 3)])
    H = -(R * np.log(R)).sum(axis=0)
    base = np.array(model.likelihood.log_base(X).sum())
    bound = model.bound(Summary(R.sum(axis=0), S, H, base))
    assert bound == pytest.approx(mean_field_bound(X, R, priors, alpha), rel=1e-12)
    joint = []
    for z in product(range(3), repeat=6):
        one = np.eye(3)[list(z)]
        joint.append(mean_field_bound(X, np.maximum(one, 1e-300), priors, alpha))
    evidence = logsumexp(joint)  # certain assignments have exact bounds, log p(X, z)
    summary = Summary(R.sum(axis=0), S, H, base)
    bounds = []
    for _ in range(50):
        parameters = model.parameters(summary, np.dtype(np.float64))
        summary, _ = local_step(model.likelihood, parameters, X, np.ones(6))
        bounds.append(model.bound(summary))
    assert (np.diff(bounds) > -1e-9).all()
    assert bound < bounds[-1] < evidence


@pytest.mark.parametrize("n_batches", [1, 3])
def test_searches_keep_the_bound_exact_and_each_name_on_one_cluster(n_batches):
    """Births, merges and deletes with checks of every step, from starts without, with one and with many clusters."""
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(m, 1.0, (60, 2)) for m in (-9, -3, 3, 9)])
    family = Gaussian().resolve(Sample.of(X))
    T = np.asarray(features(family, np.array([[-9.0, -9.0], [9.5, 9.0], [30.0, -30.0]])))
    model = Model(Seeded(family, np.full(3, 2.0), 2.0 * T, ("low", "high", "nowhere")), DirichletProcess())
    source = ArraySource(X)
    starts = [Summary.zeros(1, family.n_statistics), Summary.zeros(6, model.likelihood.n_statistics)]
    starts[1].N[:] = 1.0
    for start in starts:
        with Threads(1) as threads:
            options = Options(n_batches, learn=("likelihood.mean_precision",), check=True)
            search = LearningSearch(
                model, source, ("birth", "merge", "delete"), Session(threads), np.random.default_rng(0), options
            )
            search.run(start)
        found = search.found.likelihood.names_of(search.total.S)
        assert len(set(found.values())) == 3
        assert found["nowhere"] == search.total.K - 1
        assert search.total.N[found["nowhere"]] < 1.0
        means = search.found.likelihood.posterior(search.total.N, search.total.S).means
        np.testing.assert_allclose(means[found["low"]], -9.0, atol=0.7)
        np.testing.assert_allclose(means[found["high"]], 9.0, atol=0.7)
        assert search.total.K == 5
        search.found.likelihood.check(2, search.total.N, search.total.S)


def test_what_seeds_cannot_be():
    X = np.random.default_rng(4).normal(size=(20, 2))
    family = Gaussian().resolve(Sample.of(X))
    F = family.n_statistics
    with pytest.raises(ValueError, match="a conjugate family"):
        Seeded(StudentT().resolve(Sample.of(X)), np.ones(1), np.zeros((1, F)), ("a",))
    with pytest.raises(ValueError, match="names that differ"):
        Seeded(family, np.ones(2), np.zeros((2, F)), ("a", "a"))
    with pytest.raises(ValueError, match="sums"):
        Seeded(family, np.ones(1), np.zeros((2, F)), ("a",))
    seeded = Seeded(family, np.ones(1), np.asarray(features(family, X[:1])), ("a",))
    N = np.array([10.0, 10.0])
    S = np.hstack([np.tile(np.asarray(features(family, X)).sum(axis=0) / 2, (2, 1)), np.zeros((2, 1))])
    with pytest.raises(ValueError, match="on one cluster"):
        seeded.check(2, N, S)
    S[:, -1] = [0.0, MARK]
    seeded.check(2, N, S)
    S[:, -1] = [0.0, -MARK]
    with pytest.raises(ValueError, match="at least 0"):
        seeded.check(2, N, S)
    with pytest.raises(ValueError, match="counts"):
        replace(seeded, counts=-np.ones(1)).check(2, N, np.abs(S))


def test_names_move_to_the_clusters_that_they_suit_together(problem):
    """The best of all ways to give two names to four clusters, by the sum of the log marginals."""
    _, X, seeded = problem
    N, S = clusters(seeded, X)
    ways = [(a, b) for a in range(K) for b in range(K) if a != b]
    values = [seeded.log_marginal(N, np.hstack([S[:, :-2], seeded.marks_of(np.array(w), K)])).sum() for w in ways]
    for owners in ways:
        marked = np.hstack([S[:, :-2], seeded.marks_of(np.array(owners), K)])
        renamed = seeded.renamed(N, marked)
        assert seeded.log_marginal(N, renamed).sum() == pytest.approx(max(values), abs=1e-5)
        np.testing.assert_array_equal(renamed[:, :-2], S[:, :-2])
    best = np.hstack([S[:, :-2], seeded.marks_of(np.array(ways[int(np.argmax(values))]), K)])
    assert seeded.renamed(N, best) is best


@pytest.mark.parametrize("n_batches", [1, 3])
def test_a_search_leaves_names_where_they_belong(n_batches):
    """Names begin on the wrong clusters, and laps without moves cannot turn the clusters round."""
    rng = np.random.default_rng(5)
    X = np.concatenate([rng.normal(m, 1.0, (40, 2)) for m in (-9, 9)])
    family = Gaussian().resolve(Sample.of(X))
    T = np.asarray(features(family, X))
    seeded = Seeded(family, np.ones(2), np.stack([T[40], T[0]]), ("high", "low"))
    S = np.hstack([np.stack([T[:40].sum(axis=0), T[40:].sum(axis=0)]), seeded.marks_of(np.arange(2), 2)])
    start = Summary(np.full(2, 40.0), S, np.zeros(2), np.zeros(()))
    model = Model(seeded, DirichletProcess())
    with Threads(1) as threads:
        options = Options(n_batches, check=True)
        search = LearningSearch(model, ArraySource(X), (), Session(threads), np.random.default_rng(0), options)
        search.run(start)
    total = search.total
    names = seeded.names_of(total.S)
    means = seeded.posterior(total.N, total.S).means[:, 0]
    assert means[names["high"]] > 5.0
    assert means[names["low"]] < -5.0
