"""Groups of rows of categories, by levels of different columns that occur together."""

import numpy as np
import pytest

from stickbreak.moves import correspondence
from stickbreak.moves.correspondence import levels_of


def categories(K, D, L, n, seed, sparse=0.1):
    rng = np.random.default_rng(seed)
    z = rng.integers(K, size=n)
    edges = rng.dirichlet(np.full(L, sparse), (K, D)).cumsum(axis=-1)
    return np.minimum((rng.random((n, D, 1)) > edges[z]).sum(axis=-1), L - 1).astype(float), z


def groups_of_rows(levels, weights, most, rng):
    found = correspondence.correspondence(levels, weights, rng)
    return None if found is None else found.groups(most, rng)


def test_groups_are_the_clusters_where_few_rows_share_levels():
    X, z = categories(4, 3, 60, 2000, 0)
    labels = groups_of_rows(levels_of(X), np.ones(2000), 100, np.random.default_rng(0))
    table = np.zeros((4, labels.max() + 1), int)
    np.add.at(table, (z, labels), 1)
    assert 4 <= len(table.T) <= 7
    assert table.max(axis=0).sum() > 0.9 * 2000


def test_columns_that_know_nothing_of_each_other_are_no_groups():
    found = []
    for seed in range(12):
        X, _ = categories(1, 3, 30, 1500, seed, 1.0)
        found.append(groups_of_rows(levels_of(X), np.ones(1500), 100, np.random.default_rng(seed)))
    assert sum(labels is None for labels in found) >= 6  # one in four is expected to pass three tables drawn


def test_rows_with_weights_are_as_many_rows():
    """Rows that are there several times are no evidence beyond their number."""
    X, _ = categories(3, 2, 40, 3000, 1, 0.2)
    distinct, counts = np.unique(X, axis=0, return_counts=True)
    all_rows, few_rows = levels_of(X), levels_of(distinct)
    a, b = correspondence._excess(all_rows, np.ones(3000)), correspondence._excess(few_rows, counts.astype(float))
    assert a[0] == pytest.approx(b[0], abs=1e-9)
    assert a[1] == pytest.approx(b[1])
    chances = [
        correspondence._chance(levels, weights, np.random.default_rng(0))
        for levels, weights in ((all_rows, np.ones(3000)), (few_rows, counts.astype(float)))
    ]
    assert chances[0] == pytest.approx(chances[1], rel=0.1)
    one_each = groups_of_rows(few_rows, counts.astype(float), 100, np.random.default_rng(0))
    assert one_each is not None
    assert len(one_each) == len(distinct)


def test_missing_cells_and_blocks_of_them_are_no_evidence():
    """Columns are missing together: what is expected is of the rows in which two columns are both there."""
    rng = np.random.default_rng(3)
    X, _ = categories(1, 4, 8, 4000, 3, 1.0)
    X[:2000, :2] = np.nan
    X[rng.random(X.shape) < 0.1] = np.nan
    levels = levels_of(X)
    assert (levels.codes < 0).sum() == np.isnan(X).sum()
    naive = np.zeros((len(levels.column),) * 2)
    for i in range(len(naive)):
        for j in range(len(naive)):
            d, e = levels.column[i], levels.column[j]
            both = (levels.codes[:, d] >= 0) & (levels.codes[:, e] >= 0)
            if d != e:
                together = ((levels.codes[:, d] == i) & (levels.codes[:, e] == j)).sum()
                own = [(levels.codes[:, c] == k).sum() / (levels.codes[:, c] >= 0).sum() for c, k in ((d, i), (e, j))]
                naive[i, j] = together - both.sum() * own[0] * own[1]
    excess, scale = correspondence._excess(levels, np.ones(4000))
    assert excess / scale / scale[:, None] == pytest.approx(naive, abs=1e-3)
    found = [groups_of_rows(levels, np.ones(4000), 100, np.random.default_rng(seed)) for seed in range(6)]
    assert sum(labels is None for labels in found) >= 2


def test_only_the_most_frequent_levels_are_looked_at(monkeypatch):
    X, _ = categories(3, 2, 50, 2000, 2)
    monkeypatch.setattr(correspondence, "MOST_LEVELS", 20)
    levels = levels_of(X)
    assert len(levels.column) == 20
    assert levels.codes.max() == 19
    least = np.bincount(levels.codes[levels.codes >= 0]).min()
    for d, x in enumerate(X.T):
        dropped = np.unique(x[levels.codes[:, d] < 0], return_counts=True)[1]
        assert dropped.max() <= least
    labels = groups_of_rows(levels, np.ones(2000), 100, np.random.default_rng(0))
    assert labels is not None
    assert len(labels) == 2000


def test_one_column_and_constant_columns_tell_nothing():
    assert groups_of_rows(levels_of(np.zeros((9, 3))), np.ones(9), 5, np.random.default_rng(0)) is None
    assert groups_of_rows(levels_of(np.arange(9.0)[:, None]), np.ones(9), 5, np.random.default_rng(0)) is None
    assert groups_of_rows(levels_of(np.full((9, 2), np.nan)), np.ones(9), 5, np.random.default_rng(0)) is None
