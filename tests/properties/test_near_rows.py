"""Visits that look only at clusters near those of the last one: exact, and undone where they lower the bound."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

import stickbreak
from stickbreak import Mixture
from stickbreak.data import ArraySource, SparseSource
from stickbreak.inference import sight
from stickbreak.inference.known import _check_owners
from stickbreak.kernels.assign import mass_outside, near_scores, rearranged
from stickbreak.likelihoods.features import prefers_sparse
from stickbreak.model import Batch, RowKind, local_step
from stickbreak.model import rows as row_kind
from stickbreak.model.near import NONE, UNKNOWN, near_step, nearest_clusters

FLOAT = np.dtype(float)
K = 6


def masked(nearest, owners):
    """Whether each row may have each cluster (n, K)."""
    allowed = np.zeros((len(owners), K), bool)
    for row, owner in zip(allowed, owners):
        row[nearest[owner][nearest[owner] != NONE] if owner != UNKNOWN else slice(None)] = True
    return allowed


@pytest.mark.parametrize("L", [None, 1, 2])
def test_rows_choose_among_the_clusters_near_their_own(problem, naive, monkeypatch, L):
    p = problem(7, n=40, K=K)
    if p.model.likelihood.hidden is not None or prefers_sparse(p.model.likelihood) or sparse.issparse(p.X):
        monkeypatch.setattr(row_kind, "TUNING", replace(row_kind.TUNING, large=0))
        kind = RowKind(L, candidates=2)
        source = (SparseSource if sparse.issparse(p.X) else ArraySource)(p.X)
        assert (
            kind.near(p.model.likelihood, K, lambda: np.zeros((K, K)), source) is None
        )  # such rows look at all clusters
        return
    rng = np.random.default_rng(0)
    parameters = p.model.parameters(p.summary, FLOAT)
    owners = rng.integers(-1, K, len(p.X))
    nearest = np.sort(np.array([rng.permutation(K)[:3] for _ in range(K)]), axis=1).astype(np.int32)
    nearest[::2, 2] = NONE
    summary, kept = near_step(p.model.likelihood, parameters, nearest, p.X, p.weights, owners, L)
    scores = np.where(masked(nearest, owners), naive.scores(p.model, parameters, p.X), -np.inf)
    R = softmax(scores, axis=1)
    if L is not None:
        ranks = np.argsort(np.argsort(-R, axis=1, kind="stable"), axis=1)
        R = np.where(ranks < L, R, 0.0)
        R /= R.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(naive.dense(kept, K), R, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(summary.N, p.weights @ R, rtol=1e-9, atol=1e-11)
    entropy = -np.where(R > 0.0, R * np.log(np.where(R > 0.0, R, 1.0)), 0.0)
    np.testing.assert_allclose(summary.H, p.weights @ entropy, rtol=1e-9, atol=1e-9)
    everything = near_step(
        p.model.likelihood, parameters, np.tile(np.arange(K, dtype=np.int32), (K, 1)), p.X, p.weights, owners, L
    )
    reference = local_step(p.model.likelihood, parameters, p.X, p.weights, base=False, most_kept=L)
    naive.assert_same(everything[0], reference[0])
    np.testing.assert_allclose(naive.dense(everything[1], K), naive.dense(reference[1], K), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_near_are_products_wherever_arrays_lie(dtype):
    rng = np.random.default_rng(0)
    owners = np.repeat([0, 1, 2, 4], [1, 4, 7, 2])
    nearest = np.sort(np.array([rng.permutation(5)[:3] for _ in range(5)]), axis=1).astype(np.int32)
    T, W, bias = (
        rng.normal(size=(14, 19)).astype(dtype),
        rng.normal(size=(5, 19)).astype(dtype),
        rng.normal(size=5).astype(dtype),
    )
    every = T.astype(float) @ W.T.astype(float) + bias
    nearest[1, 1:] = NONE
    nearest[4, 2] = NONE
    found = np.full((14, 3), -np.inf, dtype)
    near_scores(T, owners, nearest, W, bias, found)
    want = np.where(nearest[owners] == NONE, -np.inf, np.take_along_axis(every, nearest[owners], axis=1))
    np.testing.assert_allclose(found, want, rtol=0.0, atol=1e-5 if dtype == np.float32 else 1e-12)
    for shift in range(1, 4):
        moved = np.empty(T.size + 8, dtype)[shift : shift + T.size].reshape(T.shape)
        moved[:] = T
        again = np.full((14, 3), -np.inf, dtype)
        near_scores(moved, owners, nearest, W, bias, again)
        np.testing.assert_array_equal(again, found)


def test_responsibilities_go_back_to_their_rows():
    rng = np.random.default_rng(1)
    R = sparse.random_array((30, 5), density=0.4, format="csr", rng=rng)
    order = rng.permutation(30)
    taken = R[order]
    indptr, indices, values = np.empty_like(taken.indptr), np.empty_like(taken.indices), np.empty_like(taken.data)
    rearranged(taken.indptr, taken.indices, taken.data, order, indptr, indices, values)
    np.testing.assert_array_equal(indptr, R.indptr)
    np.testing.assert_array_equal(sparse.csr_array((values, indices, indptr), R.shape).toarray(), R.toarray())


def test_what_lies_outside_is_the_mass_of_far_clusters():
    rng = np.random.default_rng(4)
    R = sparse.random_array((30, K), density=0.4, format="csr", rng=rng)
    weights = rng.random(30)
    owners = rng.integers(K, size=30)
    nearest = np.sort(np.array([rng.permutation(K)[:2] for _ in range(K)]), axis=1).astype(np.int32)
    nearest[0, 1] = NONE
    far = np.where(masked(nearest, owners), 0.0, R.toarray())
    outside = mass_outside(R.indptr, R.indices, R.data, weights, owners, nearest)
    assert outside == pytest.approx(weights @ far.sum(axis=1), rel=1e-12)


def test_the_nearest_clusters_are_those_of_the_smallest_divergence():
    rng = np.random.default_rng(2)
    divergences = rng.random((7, 7))
    divergences[3, 3] = 9.0  # rounding may leave others below the own cluster
    nearest = nearest_clusters(divergences, 3)
    for k, clusters in enumerate(nearest):
        others = np.delete(np.arange(7), k)
        best = others[np.argsort(divergences[k, others])[:2]]
        assert clusters.tolist() == sorted([k, *best])


def test_far_clusters_are_left_out_but_for_the_nearest_few():
    divergences = np.abs(np.subtract.outer(np.arange(12.0), np.arange(12.0)))
    divergences[0, 1:] += 100.0
    nearest = nearest_clusters(divergences, 8, farthest=3.0)
    assert nearest.shape == (12, 7)
    assert nearest[0].tolist() == [0, 1, 2, 3, NONE, NONE, NONE]
    assert nearest[6].tolist() == [3, 4, 5, 6, 7, 8, 9]
    assert nearest[11].tolist() == [8, 9, 10, 11, NONE, NONE, NONE]


@pytest.fixture
def small(monkeypatch):
    """Visits look near from the smallest problems on; the list says which did, and how far: 1, 2, or False."""
    monkeypatch.setattr(row_kind, "TUNING", replace(row_kind.TUNING, large=0, many=2))
    looked = []
    of = sight.Sight.of.__func__

    def spied(cls, *arguments):
        found = of(cls, *arguments)
        looked.append(found[0].near and found[0].kind.breadth + 1)
        return found

    monkeypatch.setattr(sight.Sight, "of", classmethod(spied))
    return looked


def blobs(overlap, dtype=float):
    rng = np.random.default_rng(3)
    centers = rng.normal(0.0, 8.0 / overlap, (12, 2))
    z = rng.integers(12, size=600)
    return (centers[z] + rng.normal(size=(600, 2))).astype(dtype), z


@pytest.mark.parametrize(("batches", "dtype"), [(1, float), (3, float), (3, np.float32)])
def test_fits_end_where_those_that_look_at_all_clusters_end(small, batches, dtype):
    X, z = blobs(0.4, dtype)
    settings = {"init": z, "moves": (), "learn": False, "n_batches": batches, "tol": 1e-6, "random_state": 0}
    near = Mixture("gaussian", candidates=4, **settings).fit(X)
    assert any(small)
    assert not small[-1]  # a fit that ends by itself has looked at all clusters
    every = Mixture("gaussian", candidates=None, **settings).fit(X)
    assert near.n_clusters_ == every.n_clusters_
    assert near.lower_bound_ == pytest.approx(every.lower_bound_, abs=0.01)
    bounds = np.array([lap.lower_bound for lap in near.history_])
    slack = 1e-6 if dtype == np.float32 else 1e-9
    assert (np.diff(bounds) >= -slack * np.abs(bounds[1:])).all()


@pytest.mark.parametrize("far", [0.0, 1e9])
def test_laps_look_as_near_as_little_is_lost(small, monkeypatch, far):
    """On a grid, where clusters touch four others, four in all are too few, and ten are not."""
    monkeypatch.setattr(row_kind, "TUNING", replace(row_kind.TUNING, far=far))
    rng = np.random.default_rng(5)
    z = rng.integers(20, size=2000)
    X = 4.5 * np.column_stack([z % 5, z // 5]) + rng.normal(size=(2000, 2))
    settings = {"init": z, "moves": (), "learn": False, "tol": 1e-3, "random_state": 0}
    near = Mixture("gaussian", candidates=10, **settings).fit(X)
    assert (2 if far == 0.0 else 1) in small
    assert far > 0.0 or 1 not in small
    every = Mixture("gaussian", candidates=None, **settings).fit(X)
    assert near.lower_bound_ == pytest.approx(every.lower_bound_, abs=0.05)


@pytest.mark.long
def test_searches_with_all_moves_do_not_depend_on_threads(small):
    X, _ = blobs(1.5)
    fits = [Mixture("gaussian", candidates=3, n_batches=2, random_state=0, n_jobs=n).fit(X) for n in (1, 3)]
    assert any(small)
    assert fits[0].lower_bound_ == fits[1].lower_bound_
    np.testing.assert_array_equal(fits[0].labels_, fits[1].labels_)


def test_laps_look_at_all_clusters_where_these_overlap(small):
    X, z = blobs(4.0)
    settings = {"init": z, "moves": (), "learn": False, "tol": 1.0, "random_state": 0}
    near = Mixture("gaussian", candidates=2, **settings).fit(X)
    assert not any(small)
    every = Mixture("gaussian", candidates=None, **settings).fit(X)
    assert near.lower_bound_ == every.lower_bound_


def test_a_lap_that_lowers_the_bound_is_undone(small, monkeypatch):
    X, z = blobs(1.0)

    def farthest(divergences, C, _):
        distance = -divergences
        np.fill_diagonal(distance, np.inf)  # not even its own
        return np.sort(np.argsort(distance, axis=1)[:, :C], axis=1).astype(np.int32)

    monkeypatch.setattr(row_kind, "nearest_clusters", farthest)
    monkeypatch.setattr(row_kind, "mass_outside", lambda *arguments: 0.0)  # nothing warns of what it loses
    fit = Mixture("gaussian", init=z, moves=(), learn=False, candidates=4, random_state=0).fit(X)
    every = Mixture("gaussian", init=z, moves=(), learn=False, candidates=None, random_state=0).fit(X)
    assert any(small)
    assert fit.lower_bound_ == pytest.approx(every.lower_bound_, abs=0.1)
    bounds = np.array([lap.lower_bound for lap in fit.history_])
    assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()


def test_few_clusters_few_rows_sparse_rows_and_latent_variables_look_at_all():
    X = np.random.default_rng(0).normal(size=(100, 2))
    gaussian = stickbreak.likelihoods.Gaussian().resolve(stickbreak.likelihoods.Sample.of(X))
    source = stickbreak.data.ArraySource(X)

    def nothing():
        raise AssertionError("divergences cost time")

    for kind, clusters in ((RowKind(), 1000), (RowKind(candidates=16), 47), (RowKind(candidates=16), 1000)):
        assert kind.near(gaussian, clusters, nothing, source) is None
    batch = Batch(X, np.ones(100))
    near = row_kind.NearRows(None, 2, nearest=(nearest_clusters(np.random.default_rng(1).random((4, 4)), 2),))
    model = stickbreak.model.Model(gaussian, stickbreak.allocations.DirichletProcess(1.0))
    S = gaussian.features(X, np.empty((100, 5))).mean(axis=0) * 25.0
    parameters = model.parameters(model.start(np.full(4, 25.0), np.tile(S, (4, 1))), FLOAT)
    own = near.local_step(gaussian, parameters, batch, True, True)[0]
    every = RowKind().local_step(gaussian, parameters, batch, True, True)[0]
    np.testing.assert_array_equal(own.S, every.S)


@pytest.mark.parametrize(
    "wrong",
    [
        [np.zeros(3, int)],
        (np.zeros(3, int), np.zeros(2, int)),
        (np.zeros(3), np.zeros(4, int)),
        (np.zeros(3, int), np.full(4, -1)),
        (np.zeros(3, int), None),
    ],
)
def test_damaged_clusters_of_rows_are_refused(wrong):
    _check_owners((np.zeros(3, int), np.arange(4)), [3, 4])
    with pytest.raises(ValueError, match=r"of (each row|rows)"):
        _check_owners(wrong, [3, 4])


@pytest.mark.parametrize("wrong", [0, 1, -3, 2.5, "many", True])
def test_candidates_are_at_least_two(wrong):
    with pytest.raises((ValueError, TypeError), match="candidates"):
        Mixture(candidates=wrong).fit(np.zeros((4, 2)))
