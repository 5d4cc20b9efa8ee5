"""Starts from groups of rows whose levels occur together."""

import numpy as np
import pytest
from scipy import sparse

from right_number_data import noise_values
from stickbreak import Mixture
from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource, SparseSource
from stickbreak.inference import init
from stickbreak.inference.init import from_correspondence
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
    return from_correspondence(model, source, nominal, np.random.default_rng(0))


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


@pytest.mark.parametrize("learn", [True, False])
def test_clusters_of_levels_that_rows_hardly_share_are_found(learn):
    rng = np.random.default_rng(0)
    z = rng.integers(4, size=1500)
    edges = rng.dirichlet(np.full(100, 0.1), (4, 2)).cumsum(axis=-1)
    X = np.minimum((rng.random((1500, 2, 1)) > edges[z]).sum(axis=-1), 99).astype(float)
    fit = Mixture(Categorical(), random_state=0, n_jobs=1, learn=learn).fit(X)
    truth = Mixture(Categorical(), init=z, moves=(), random_state=0, n_jobs=1, learn=learn).fit(X)
    assert fit.lower_bound_ > truth.lower_bound_ - 1.0


def test_clusters_without_rows_do_not_stay():
    """Where nearly all columns have parameters in common, one costs nothing, and explains the tails of all rows a little."""
    X, _ = noise_values("bits", 3, 6, 600, 300).rows()
    fit = Mixture(Bernoulli(), random_state=1, n_jobs=1).fit(X)
    assert fit.n_clusters_ == 3
    assert fit.summary_.N.min() > 50.0
