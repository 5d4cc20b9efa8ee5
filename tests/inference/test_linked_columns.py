"""The columns that go together are those in which clusters differ; of independent values none do."""

import numpy as np
import pytest
from scipy import sparse

from stickbreak.inference.linked_columns import MOST_COLUMNS, linked_columns


def rows(rng, n=200, noise=300):
    z = rng.integers(2, size=n)
    told = rng.random((n, 3)) < np.where(z, 0.9, 0.1)[:, None]
    return np.hstack([told, rng.random((n, noise)) < 0.4]).astype(float)


def test_columns_in_which_clusters_differ_are_found():
    for seed in range(5):
        linked = linked_columns(rows(np.random.default_rng(seed)), np.ones(200))
        assert linked[:3].all()
        assert linked[3:].sum() <= 2


def test_none_of_independent_columns_are():
    rng = np.random.default_rng(0)
    found = [linked_columns(rng.standard_normal((100, 200)), np.ones(100)) for _ in range(20)]
    assert sum(f is not None for f in found) <= 4  # each with a chance of 1 in 20


def test_missing_values_constant_columns_and_csr_rows():
    X = rows(np.random.default_rng(1))
    X[:, 5] = 2.0
    want = linked_columns(X, np.ones(200))
    np.testing.assert_array_equal(linked_columns(sparse.csr_array(X), np.ones(200)), want)
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    X[:, 6] = np.nan
    assert linked_columns(X, np.ones(200))[:3].all()


def test_weights_count_as_copies_of_rows():
    X = rows(np.random.default_rng(3), n=100, noise=20)
    twice = linked_columns(np.vstack([X, X]), np.ones(200))
    assert twice is not None
    np.testing.assert_array_equal(linked_columns(X, 2.0 * np.ones(100)), linked_columns(X, np.ones(100)))


@pytest.mark.parametrize("shape", [(10, 1), (1, MOST_COLUMNS + 1), (2000, MOST_COLUMNS)])
def test_one_column_and_too_many_are_not_compared(shape):
    assert linked_columns(sparse.csr_array(shape), np.ones(shape[0])) is None
