"""Rows whose features are sparse: many levels of categories say the same as with dense features."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import stickbreak
from stickbreak import HMM, Mixture, TopicModel
from stickbreak.data import SequenceSource
from stickbreak.likelihoods import Categorical, DiagonalGaussian, Product, Sample, features
from stickbreak.model.products import add_product
from stickbreak.model.sequences import labelled

pytestmark = pytest.mark.filterwarnings("ignore:not converged")
LEVELS = [2, 6, 7, 20, 50, 100, 300]


def table(levels, D, n=240, holes=0.05, noise=0.1):
    """Rows of three states that last 20 rows, each of which mostly shows its own levels."""
    rng = np.random.default_rng(levels + D)
    z = np.repeat(np.arange(n // 20) % 3, 20)
    own = np.minimum(z * levels // 3 + rng.integers(min(max(levels // 3, 1), 4), size=(D, n)), levels - 1).T
    X = np.where(rng.random((n, D)) < noise, rng.integers(levels, size=(n, D)), own).astype(float)
    X[rng.random((n, D)) < holes] = np.nan
    return X, z


def dense(monkeypatch):
    monkeypatch.setattr(features, "SPARSE_SHARE", 10**9)


@pytest.mark.parametrize("D", [1, 3])
@pytest.mark.parametrize("levels", LEVELS)
def test_the_summary_of_labels_is_a_count(levels, D):
    X, z = table(levels, D)
    likelihood = Categorical(n_levels=levels).resolve(Sample.of(X))
    found = labelled(likelihood, SequenceSource(X, np.array([len(X)])), z)
    want = np.zeros((3, D, levels))
    for row, k in zip(X, z):
        for d in range(D):
            if not np.isnan(row[d]):
                want[k, d, int(row[d])] += 1.0
    np.testing.assert_array_equal(found.S, want.reshape(3, -1))
    np.testing.assert_array_equal(found.N, np.bincount(z[~np.isnan(X).all(axis=1)]))  # a row without a value is no row


ESTIMATORS = {
    "hmm": lambda likelihood, X, init: HMM(likelihood, init=init, n_init_states=4, max_laps=6, random_state=0).fit(X),
    "mixture": lambda likelihood, X, init: Mixture(
        likelihood, init=init, n_init_clusters=4, max_laps=6, random_state=0
    ).fit(X),
    "topics": lambda likelihood, X, init: TopicModel(
        likelihood=likelihood, init=init, n_init_topics=4, max_laps=6, random_state=0
    ).fit(X, lengths=[20] * (len(X) // 20)),
}  # fmt: skip
INITS = {
    "hmm": ["one", "blocks", "labels"],
    "mixture": ["one", "k-means++", "k-means", "random", "permutation", "labels"],
    "topics": ["k-means++", "random", "labels"],
}


@pytest.mark.parametrize(
    ("kind", "init", "levels", "D"),
    [
        *((kind, init, 50, 2) for kind in INITS for init in INITS[kind]),
        *((kind, INITS[kind][0], *size) for kind in INITS for size in ((7, 2), (100, 1))),
    ],
)
def test_sparse_features_change_nothing(monkeypatch, kind, init, levels, D):
    X, z = table(levels, D)
    start = z if init == "labels" else init
    found = ESTIMATORS[kind](Categorical(n_levels=levels), X, start)
    dense(monkeypatch)
    other = ESTIMATORS[kind](Categorical(n_levels=levels), X, start)
    assert found.lower_bound_ == pytest.approx(other.lower_bound_, rel=1e-9)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_product_with_many_levels(monkeypatch, kind):
    X, z = table(60, 1)
    X = np.column_stack([X, np.random.default_rng(0).normal(4.0 * z, 1.0)])
    both = Product({"kind": (Categorical(n_levels=60), [0]), "size": (DiagonalGaussian(), [1])})
    found = ESTIMATORS[kind](both, X, z)
    dense(monkeypatch)
    assert found.lower_bound_ == pytest.approx(ESTIMATORS[kind](both, X, z).lower_bound_, rel=1e-9)


@pytest.mark.parametrize("levels", [6, 7, 50, 300])
def test_states_of_many_levels_are_found(levels):
    X, z = table(levels, 3, n=600, holes=0.0, noise=0.0)
    found = HMM("categorical", max_laps=60, random_state=0).fit(X)
    assert found.n_states_ == 3
    assert np.mean([np.bincount(found.predict(X)[z == k]).max() / (z == k).sum() for k in range(3)]) > 0.95


def test_sums_of_products_for_dense_and_sparse_factors():
    rng = np.random.default_rng(0)
    R, T = rng.random((9, 3)), rng.random((9, 5)) * (rng.random((9, 5)) < 0.4)
    for r in (R, sparse.csr_array(R)):
        for dtype in (np.float64, np.float32):
            for t in (T.astype(dtype), sparse.csr_array(T.astype(dtype))):
                S = np.ones((3, 5))
                add_product(r, t, S)
                np.testing.assert_allclose(S, 1.0 + R.T @ T.astype(dtype), rtol=1e-12)


def test_no_operator_is_called_by_its_name():
    """`a.__iadd__(b)` says NotImplemented where `a += b` raises, and nothing is added."""
    calls = re.compile(r"\.__[ir]?(add|sub|mul|truediv|matmul|and|or)__\b")
    for path in Path(stickbreak.__file__).parent.rglob("*.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not calls.search(line), f"{path}:{number}"
