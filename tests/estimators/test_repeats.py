"""Rows that repeat are fitted once, with a weight: the model is the same, to the last bit where it can be."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from stickbreak import Mixture
from stickbreak.data import ArraySource
from stickbreak.data.distinct import collapse, distinct_rows, row_codes

COLLAPSE = "stickbreak.estimators._distinct.collapse"
every_collapsing = pytest.mark.parametrize(
    "family",
    [
        "gaussian-default",
        "diagonal_gaussian-missing",
        "bernoulli-missing",
        "categorical-missing",
        "poisson-exposure",
        "multinomial-default",
        "product-missing",
    ],
    indirect=True,
)


def repeated(family, n=240, distinct=40, seed=0):
    """n rows of which ``distinct`` are different, in the order in which they first appear, and how often each appears."""
    rng = np.random.default_rng(seed)
    X = family.rows(rng, distinct, 4)
    X = X[rng.integers(len(X), size=n)]
    first, counts = [], []
    for row in X:
        same = [i for i, other in enumerate(first) if np.array_equal(row, other, equal_nan=True)]
        if same:
            counts[same[0]] += 1
        else:
            first.append(row)
            counts.append(1)
    return X, np.array(first), np.array(counts, float)


def fit(family, X, weights=None, **parameters):
    defaults = {"likelihood": family.make(X.shape[1]), "random_state": 0, "n_jobs": 1, "max_laps": 30}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Mixture(**{**defaults, **parameters}).fit(X, sample_weight=weights)


def state(naive, found):
    arrays = naive.leaves((found.posterior_, found.weights_, found.summary_.N, found.summary_.S, found.summary_.H))
    return [a.tobytes() for a in arrays], found.lower_bounds_, [lap.moves for lap in found.history_]


def spy(monkeypatch):
    """What `collapse` returns."""
    seen = []

    def observed(source):
        seen.append(collapse(source))
        return seen[-1]

    monkeypatch.setattr(COLLAPSE, observed)
    return seen


@every_collapsing
@pytest.mark.parametrize("parameters", [{"n_batches": 3}, {"init": "k-means++", "n_init_clusters": 4}], ids=str)
def test_rows_that_repeat_are_distinct_rows_with_weights(family, naive, parameters):
    X, first, counts = repeated(family)
    one, other = (
        fit(family, rows, weights, max_laps=12, **parameters) for rows, weights in ((X, None), (first, counts))
    )
    assert one.n_clusters_ > 1
    assert state(naive, one) == state(naive, other)
    np.testing.assert_array_equal(one.labels_, one.predict(X))
    np.testing.assert_array_equal(other.labels_, one.predict(first))


@every_collapsing
@pytest.mark.parametrize("algorithm", ["full", "memoized", "stochastic"])
def test_the_bound_is_that_of_all_rows(family, naive, algorithm, monkeypatch):
    """Without collapsing, from the same labels, the same clusters have the same bound."""
    X, _, _ = repeated(family)
    rng = np.random.default_rng(1)
    weights, labels = rng.choice([0.5, 1.0, 3.0], len(X)), rng.integers(3, size=len(X))
    options = {"init": labels, "moves": (), "max_laps": 4, "algorithm": algorithm, "tol": 0.0}
    seen = spy(monkeypatch)
    one = fit(family, X, weights, n_batches=1, **options)
    assert seen[0] is not None
    assert seen[0].source.n_rows < 100
    monkeypatch.setattr(COLLAPSE, lambda source: None)
    other = fit(family, X, weights, n_batches=1, **options)
    np.testing.assert_allclose(one.lower_bounds_, other.lower_bounds_, rtol=1e-9)
    naive.assert_same(one.summary_, other.summary_, rtol=1e-8)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert one.lower_bound_ == pytest.approx(other.lower_bound_, rel=1e-9)


@every_collapsing
def test_starts_are_averaged_over_equal_rows(family, naive, monkeypatch):
    """Also those with weights, and rows without any."""
    X, _, _ = repeated(family)
    rng = np.random.default_rng(2)
    R = rng.dirichlet(np.full(3, 0.3), len(X))
    weights = rng.choice([0.0, 1.0, 2.5], len(X))
    for given in (R, rng.integers(3, size=len(X)), np.array(["a", "b"])[rng.integers(2, size=len(X))]):
        options = {"init": given, "moves": (), "max_laps": 1}
        one = fit(family, X, weights, **options)
        with monkeypatch.context() as patch:
            patch.setattr(COLLAPSE, lambda source: None)
            other = fit(family, X, weights, **options)
        naive.assert_same(one.summary_, other.summary_, rtol=1e-9)
        assert one.lower_bound_ == pytest.approx(other.lower_bound_, rel=1e-10)


def test_a_start_must_have_one_entry_for_each_row(known_families):
    family = known_families["gaussian-default"]
    X, first, _ = repeated(family)
    for wrong in (len(first), len(X) - 1):
        with pytest.raises(ValueError, match=r"for N = 240 rows; got shape"):
            fit(family, X, init=np.arange(wrong) % 3)


def test_a_model_continues_on_rows_that_repeat(known_families):
    family = known_families["gaussian-default"]
    X, _, _ = repeated(family)
    found = fit(family, X, max_laps=300)
    again = fit(family, X, init=found, moves=())
    assert again.lower_bounds_[0] >= found.lower_bound_ - 1e-9 * abs(found.lower_bound_)


# What is collapsed ----------------------------------------------------------------------------------------------------


def test_collapsing_keeps_the_order_the_weights_and_where_rows_went():
    X = np.array([[2.0, np.nan], [0.0, 1.0], [2.0, np.nan], [-0.0, 1.0], [2.0, np.nan], [3.0, 0.0]])
    found = collapse(ArraySource(np.repeat(X, 2, axis=0), np.arange(12.0)))
    np.testing.assert_array_equal(found.source.X, [[2.0, np.nan], [0.0, 1.0], [3.0, 0.0]])
    np.testing.assert_array_equal(found.inverse, [0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 2, 2])
    np.testing.assert_array_equal(found.source.weights, [0 + 1 + 4 + 5 + 8 + 9, 2 + 3 + 6 + 7, 10 + 11])
    values = np.arange(24.0).reshape(12, 2)
    want = [
        np.average(values[found.inverse == k], axis=0, weights=np.arange(12.0)[found.inverse == k]) for k in range(3)
    ]
    np.testing.assert_allclose(found.average(values), want)
    nothing = collapse(ArraySource(np.zeros((10, 2)), np.zeros(10)))
    np.testing.assert_allclose(nothing.average(np.ones((10, 1))), 10.0 * np.ones((1, 1)))


@pytest.mark.parametrize("kind", ["f8", "f4", "i8", "u1", "bool", "memory map", "chunks"])
def test_every_kind_of_table_is_collapsed(kind, tmp_path):
    X = np.random.default_rng(3).integers(2, size=(20_000 if kind == "chunks" else 300, 3))
    X = X.astype(kind) if kind in ("f8", "f4", "i8", "u1", "bool") else X.astype(float)
    if kind == "memory map":
        np.save(tmp_path / "X.npy", X)
        X = np.load(tmp_path / "X.npy", mmap_mode="r")
    found = collapse(ArraySource(X))
    assert found.source.n_rows == 8
    assert found.source.dtype == (np.float32 if kind == "f4" else np.float64)
    np.testing.assert_array_equal(found.source.X[found.inverse], X)


@pytest.mark.parametrize("kind", ["measurements", "few repeats", "many kinds"])
def test_rows_that_hardly_repeat_are_left_alone(kind):
    rng = np.random.default_rng(4)
    X = {
        "measurements": rng.normal(size=(500, 2)),
        "few repeats": rng.normal(size=(500, 2))[rng.integers(500, size=500)],  # 0.63 are distinct
        "many kinds": rng.integers(10_000, size=(500, 3)).astype(float),
    }[kind]
    found = collapse(ArraySource(X))
    assert (found is None) == (kind != "few repeats")


def test_rows_with_the_same_code_are_not_confused(monkeypatch):
    X = np.repeat(np.arange(6.0), 5)[:, None]
    assert collapse(ArraySource(X)).source.n_rows == 6
    monkeypatch.setattr("stickbreak.data.distinct.row_codes", lambda X: (X[:, 0] // 2).astype(np.uint64))
    assert collapse(ArraySource(X)) is None


GRID = np.stack(np.meshgrid(*[np.arange(40.0)] * 3), axis=-1).reshape(-1, 3)
TABLES = {
    "whole numbers": GRID,
    "fractions": GRID / 7.0,
    "measurements": np.random.default_rng(5).normal(size=(50_000, 2)),
    "ones among zeros": np.eye(300),
    "holes": np.where(GRID > 30.0, np.nan, GRID)[::31],
}


@pytest.mark.parametrize("name", TABLES)
def test_codes_tell_rows_apart(name):
    """As 64 random bits do: the chance that any two of these codes are equal is below one in a thousand million."""
    distinct = len(np.unique(np.nan_to_num(TABLES[name], nan=-1.0), axis=0))
    assert len(np.unique(row_codes(TABLES[name]))) == distinct


def test_codes_depend_on_the_place_of_a_value():
    assert len(np.unique(row_codes(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0], [2.0, 2.0]])))) == 4


def test_distinct_rows_come_in_an_order_of_their_own():
    rng = np.random.default_rng(6)
    X = rng.integers(3, size=(200, 2)).astype(float)
    w = rng.choice([0.0, 1.0, 2.0], 200)
    rows, weights = distinct_rows(X, w)
    order = rng.permutation(200)
    again, weights_again = distinct_rows(X[order], w[order])
    np.testing.assert_array_equal(rows, again)
    np.testing.assert_allclose(weights, weights_again)
    for row, weight in zip(rows, weights):
        assert weight == w[np.all(row == X, axis=1)].sum() > 0.0
