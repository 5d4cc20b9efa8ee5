"""Starts from groups of rows whose levels occur together."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from right_number_data import noise_values
from stickbreak import Mixture
from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource, SparseSource
from stickbreak.inference import LearningSearch, Options, Session, Threads, init, learning_search
from stickbreak.inference.init import RowsByLevels, from_responsibilities
from stickbreak.inference.row_search import RowSearch
from stickbreak.likelihoods import Bernoulli, Categorical, DiagonalGaussian, Product, Sample
from stickbreak.model import Model


def bits(n, D, seed):
    """Two clusters of bits in columns of which each has ones in half; and the clusters."""
    rng = np.random.default_rng(seed)
    z = rng.integers(2, size=n)
    high = np.arange(D) % 2 == z[:, None]
    return (rng.random((n, D)) < np.where(high, 0.6, 0.1)).astype(float), z


def started(likelihood, X, nominal=None, weights=None):
    model = Model(likelihood.resolve(Sample.of(X)), DirichletProcess(1.0))
    source = (SparseSource if sparse.issparse(X) else ArraySource)(X, weights)
    nominal = np.ones(X.shape[1], np.bool_) if nominal is None else nominal
    found = RowsByLevels.of(model, source, nominal, np.random.default_rng(0))
    return None if found is None else found.grouped(model, np.random.default_rng(0))


def test_dense_and_sparse_bits_start_alike():
    X, _ = bits(1500, 12, 0)
    dense, csr = started(Bernoulli(), X), started(Bernoulli(), sparse.csr_array(X))
    assert dense.N.sum() == pytest.approx(1500.0)
    np.testing.assert_allclose(dense.N, csr.N)
    np.testing.assert_allclose(dense.S, csr.S)
    assert 2 <= dense.K <= 4
    mean = dense.S / dense.N[:, None]
    assert np.abs(mean[:, ::2].mean(axis=1) - mean[:, 1::2].mean(axis=1)).max() > 0.3


def test_numbers_come_along_with_the_categories():
    X, z = bits(1500, 12, 0)
    X = np.column_stack([X, 10.0 * z + np.random.default_rng(1).standard_normal(1500)])
    family = Product({"bits": (Bernoulli(), list(range(12))), "size": (DiagonalGaussian(), [12])})
    found = started(family, X, np.arange(13) < 12)
    assert found.N.sum() == pytest.approx(1500.0)
    assert started(family, X, np.arange(13) < 1) is None  # one column goes together with no other


def test_rows_with_weights_are_scaled():
    X, _ = bits(1500, 12, 0)
    assert started(Bernoulli(), X, weights=np.full(1500, 3.0)).N.sum() == pytest.approx(4500.0)


def test_few_of_many_rows_are_looked_at(monkeypatch):
    X, _ = bits(1500, 12, 0)
    monkeypatch.setattr(init, "LEVEL_ROWS", 500)
    monkeypatch.setattr(init, "LEAST_ROWS", 100)
    assert started(Bernoulli(), X).N.sum() == pytest.approx(1500.0)
    monkeypatch.setattr(init, "LEVEL_NUMBERS", 1199)
    assert started(Bernoulli(), X) is None
    monkeypatch.setattr(init, "LEVEL_NUMBERS", 12 * 90)
    assert started(Bernoulli(), X[:90]) is not None  # all rows there are


def categories(K, L, n, seed):
    """Rows of two columns of L levels, of which each cluster has few; and the clusters."""
    rng = np.random.default_rng(seed)
    z = rng.integers(K, size=n)
    edges = rng.dirichlet(np.full(L, 0.1), (K, 2)).cumsum(axis=-1)
    return np.minimum((rng.random((n, 2, 1)) > edges[z]).sum(axis=-1), L - 1).astype(float), z


def test_crossings_are_with_groups_and_with_seeds_in_turn(monkeypatch):
    turns = []
    grouped, seeds, smoothed = RowsByLevels.grouped, LearningSearch._seeds, LearningSearch._smoothed
    crossing = LearningSearch._cross

    def cross(search):
        turns.clear()
        monkeypatch.setattr(LearningSearch, "_cross", crossing)
        monkeypatch.setattr(RowsByLevels, "grouped", lambda *given: turns.append(f"{given[-1]}") or grouped(*given))
        monkeypatch.setattr(LearningSearch, "_seeds", lambda *given: turns.append("seeds") or seeds(*given))
        monkeypatch.setattr(LearningSearch, "_smoothed", lambda *given: turns.append(given[-1]) or smoothed(*given))
        return search._cross()

    monkeypatch.setattr(learning_search, "TUNING", replace(learning_search.TUNING, agree=9, tries=6))
    monkeypatch.setattr(LearningSearch, "_cross", cross)
    Mixture(Categorical(), random_state=0, n_jobs=1).fit(categories(3, 40, 600, 0)[0])
    starts = [turn for turn in turns if isinstance(turn, str)]
    assert starts[:6] == ["1", "seeds", "2", "seeds", "3", "seeds"]
    assert {0.5, 0.25} <= set(turns)


def test_clusters_that_are_one_are_apart_after_their_split_is_smoothed():
    X, z = categories(4, 100, 3000, 0)
    model = Model(Categorical(0.1).resolve(Sample.of(X)), DirichletProcess(1.0))
    options = Options(check=True, max_laps=300)
    with Threads(1) as threads:
        source = ArraySource(X)
        moves = ("birth", "merge", "delete")
        search = RowSearch(model, source, moves, Session(threads), np.random.default_rng(0), options)
        R = np.eye(3)[np.minimum(z, 2)]
        start = from_responsibilities(model, source, lambda chunk, rows: R[chunk.start : chunk.stop], threads)
        search.best = search._laps(model, (), options)
        search.best.run(model.ordered(start))
        assert search.total.K == 3
        before = search.outcome.bound
        while search._smooth(search.best, options):
            assert search.outcome.bound > before
            before = search.outcome.bound
    assert search.total.K == 4


@pytest.mark.parametrize("learn", [True, False])
def test_clusters_of_levels_that_rows_hardly_share_are_found(learn):
    X, z = categories(4, 100, 1500, 0)
    fit = Mixture(Categorical(), random_state=0, n_jobs=1, learn=learn).fit(X)
    truth = Mixture(Categorical(), init=z, moves=(), random_state=0, n_jobs=1, learn=learn).fit(X)
    assert fit.lower_bound_ > truth.lower_bound_ - 1.0


def test_clusters_without_rows_do_not_stay():
    """Where nearly all columns have parameters in common, one costs nothing, and explains the tails of all rows a little."""
    X, _ = noise_values("bits", 3, 6, 600, 300).rows()
    fit = Mixture(Bernoulli(), random_state=1, n_jobs=1).fit(X)
    assert fit.n_clusters_ == 3
    assert fit.summary_.N.min() > 50.0
