"""Labels of steps of sequences: the local step against enumeration, the bound in closed form, and fits with labels."""

from copy import deepcopy
from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp

from stickbreak import HMM, load
from stickbreak.allocations import FiniteMarkovChain, HDPMarkovChain
from stickbreak.data import SequenceSource
from stickbreak.data.labelled_rows import with_classes
from stickbreak.inference import Streaming, Threads, states_by_class
from stickbreak.likelihoods import DiagonalGaussian, Labelled, Sample
from stickbreak.likelihoods.features import features
from stickbreak.model import Batch, Model, SequenceSummary
from stickbreak.model.sequences import SEQUENCES, labelled

CENTERS = np.array([-20.0, -7.0, 7.0, 20.0])
NAMES = np.array(["far", "near", "near", "far"])
LENGTHS = [100, 140]


def steps(rng, share=0.25):
    z = np.repeat(rng.integers(4, size=24), 10)
    z[:40] = np.repeat(np.arange(4), 10)
    X = rng.normal(CENTERS[z][:, None], 1.0, (240, 2))
    y = np.where(rng.random(240) < share, NAMES[z], None)
    return X, y, z


@pytest.fixture(scope="module")
def fitted():
    X, y, z = steps(np.random.default_rng(0))
    X[5:8] = np.nan
    return HMM("diagonal_gaussian", random_state=0, n_jobs=1).fit(X, y, LENGTHS), X, y, z


@pytest.mark.parametrize("error", [0.0, 0.2])
def test_the_local_step_is_the_sum_over_all_paths_that_labels_allow(error):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6, 1)) * 2.0
    codes = np.array([1, 0, 2, 0, 0, 1])
    base = DiagonalGaussian().resolve(Sample.of(X))
    model = Model(Labelled(base, 1, 2, error), HDPMarkovChain(1.0, 2.0), SEQUENCES)
    source = with_classes(SequenceSource(X, np.array([4, 2])), codes)
    classes = np.array([0, 1, 0])
    start = labelled(model.likelihood, source, np.array([0, 2, 1, 1, 0, 2]))
    parameters = model.parameters(start, np.dtype(float))
    prepared = model.kind.prepare(model.likelihood, parameters, source)
    chunk = source.whole()[0]
    found, _ = model.kind.local_step(model.likelihood, prepared, Batch(*source.read(chunk)), True, False)

    W, b = base.weights(start.N, start.S[:, :2])
    q = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    if error:
        counts = start.S[:, 2:]
        odds = (1.0 - error) ** counts * error ** counts[:, ::-1]  # by hand: the chances of the labels for each class
        q = odds / odds.sum(axis=1, keepdims=True)
    scores = features(base, X) @ W.T + b
    logs = prepared.log_start, prepared.log_A
    paths = np.array(list(product(range(3), repeat=6)))
    total = np.zeros(len(paths))
    for i, path in enumerate(paths):
        total[i] = scores[np.arange(6), path].sum() + logs[0][path[[0, 4]]].sum()
        total[i] += logs[1][path[[0, 1, 2, 4]], path[[1, 2, 3, 5]]].sum()
        for k, code in zip(path, codes):
            if code and error:
                right = q[k, code - 1]
                total[i] += right * np.log1p(-error) + (1.0 - right) * np.log(error)
            elif code and classes[k] != code - 1:
                total[i] = -np.inf
    chances = np.exp(total - logsumexp(total))
    R = np.stack([[chances[paths[:, t] == k].sum() for k in range(3)] for t in range(6)])
    np.testing.assert_allclose(found.N, R.sum(axis=0), atol=1e-10)
    np.testing.assert_allclose(found.S[:, :2], R.T @ features(base, X), atol=1e-9)
    np.testing.assert_allclose(
        found.S[:, 2:], np.stack([R[codes == c].sum(axis=0) for c in (1, 2)], axis=1), atol=1e-10
    )
    entropy = -(chances * np.log(np.maximum(chances, 1e-300))).sum()
    assert found.H.sum() == pytest.approx(entropy, abs=1e-9)


def test_all_labels_and_one_state_for_each_class_is_the_closed_form():
    X, _, z = steps(np.random.default_rng(2))
    model = HMM("diagonal_gaussian", learn=False, moves=("merge", "delete"), init=z, random_state=0).fit(X, z, LENGTHS)
    base = model.model_.likelihood.family
    order = np.argsort([model.class_counts_[k].argmax() for k in range(4)])
    T = features(base, X)
    N = np.bincount(z).astype(float)
    S = np.stack([T[z == k].sum(axis=0) for k in range(4)])
    follows = np.array([t for t in range(1, 240) if t != LENGTHS[0]])
    M = np.zeros((4, 4))
    np.add.at(M, (z[follows - 1], z[follows]), 1.0)
    begins = np.bincount(z[[0, LENGTHS[0]]], minlength=4).astype(float)
    plain = SequenceSummary(N, S, np.zeros(4), np.zeros(()), M, begins).take(np.argsort(order))
    chain = model.model_.allocation.bound(plain)
    closed = base.log_base(X).sum() + base.log_marginal(N, S).sum() + chain - 4 * np.log(4)
    assert model.n_states_ == 4
    assert model.lower_bound_ == pytest.approx(closed, rel=1e-9)


@pytest.mark.long
def test_classes_have_several_states_and_labels_of_missing_rows_do_not_count(fitted):
    model, X, y, z = fitted
    assert model.n_states_ == 4
    observed = ~np.isnan(X).all(axis=1)
    assert model.class_counts_.sum() == pytest.approx(sum(label is not None for label in y[observed]))
    assert ((model.class_counts_ > 0.0).sum(axis=1) == 1).all()
    assert (model.predict_class(X, LENGTHS) == NAMES[z])[observed].all()
    assert model.class_accuracy(X, y, LENGTHS) > 0.98
    np.testing.assert_allclose(model.predict_class_proba(X, LENGTHS).sum(axis=1), 1.0)
    assert (np.diff(model.lower_bounds_) >= -1e-7).all()


def test_labels_of_new_rows_tell_of_the_rows_around_them(fitted):
    model = fitted[0]
    X = np.zeros((20, 2))  # between two states
    y = np.full(20, None)
    surprise = {}
    for name in ("far", "near"):
        y[[0, 10, 19]] = name
        assert (model.predict_class(X, y=y)[[0, 10, 19]] == name).all()
        path = model.predict(X, y=y)
        surprise[name] = model.score(X) - model.score(X, y)
        assert (model.classes_[model.class_counts_[path[[0, 10, 19]]].argmax(axis=1)] == name).all()
    assert surprise["far"] > surprise["near"] >= 0.0  # the nearest states are near


def test_files_more_rows_and_fewer_states_keep_the_classes(fitted, tmp_path):
    model, X, y, _ = fitted
    model.save(tmp_path / "m.safetensors")
    twin = load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(twin.predict_class(X, LENGTHS), model.predict_class(X, LENGTHS))
    assert twin.label_error_ == 0.0
    more = deepcopy(model).partial_fit(X[:100], y[:100])
    seen = sum(label is not None for label in y[:5]) + sum(label is not None for label in y[8:100])
    assert more.class_counts_.sum() == pytest.approx(model.class_counts_.sum() + seen)
    with pytest.raises(ValueError, match="fitted with labels"):
        model.merge_states(3, X, LENGTHS)
    fewer = model.merge_states(3, X, LENGTHS, y)
    assert ((fewer.class_counts_ > 0.0).sum(axis=1) == 1).all()


def test_repeated_rows_and_histories_have_labels():
    rng = np.random.default_rng(3)
    X, y, z = steps(rng)
    symbols = np.where(rng.random(240) < 0.9, z, rng.integers(4, size=240)).astype(float)[:, None]
    symbols[50] = np.nan
    quick = {"moves": ("merge", "delete"), "random_state": 0, "n_jobs": 1, "max_laps": 20}
    for likelihood, rows in (("categorical", symbols), ("autoregressive_gaussian", X)):
        model = HMM(likelihood, init=z, **quick).fit([rows[:100], rows[100:]], [y[:100], y[100:]])
        assert ((model.class_counts_ > 1e-6).sum(axis=1) <= 1).all()
        assert model.class_accuracy(rows, y, LENGTHS) > 0.9
        labels = np.flatnonzero([label is not None for label in y])
        kept = labels[~np.isin(labels, [50] if likelihood == "categorical" else [0, 100])]
        assert model.class_counts_.sum() == pytest.approx(len(kept))
        path = model.predict(rows, LENGTHS, y=y)
        assert (model.classes_[model.class_counts_[path[kept]].argmax(axis=1)] == y[kept]).all()


def test_a_start_takes_states_of_several_classes_apart():
    X, _, _ = steps(np.random.default_rng(4))
    base = DiagonalGaussian().resolve(Sample.of(X))
    plain = SequenceSource(X, np.array(LENGTHS))
    allocation = HDPMarkovChain(1.0, 2.0)
    codes = np.zeros(240, int)
    codes[[3, 33, 60]] = 1, 2, 1
    source = with_classes(plain, codes)
    both = labelled(base, plain, np.zeros(240, np.intp))
    with Threads(1) as executor:
        start = states_by_class(Model(Labelled(base, 2, 2), allocation, SEQUENCES), both, source, executor)
        soft = states_by_class(Model(Labelled(base, 2, 2, 0.1), allocation, SEQUENCES), both, source, executor)
        one = Model(Labelled(base, 2, 2), FiniteMarkovChain(1, 1.0, 2.0), SEQUENCES)
        with pytest.raises(ValueError, match="2 classes, but the allocation has no more than 1"):
            states_by_class(one, both, source, executor)
    np.testing.assert_array_equal(np.sort(start.S[:, 4:], axis=0), [[0.0, 0.0], [2.0, 1.0]])
    np.testing.assert_array_equal(np.sort(start.N), [28.0, 212.0])  # rows 19 ... 46 are nearest to row 33
    assert soft.K == 1


def test_wrong_labels_are_outvoted_where_the_error_rate_is_learnt():
    rng = np.random.default_rng(5)
    X, _, z = steps(rng)
    y = NAMES[z].copy()
    wrong = rng.random(240) < 0.15
    y[wrong] = np.where(y[wrong] == "far", "near", "far")
    model = HMM("diagonal_gaussian", label_error=None, init=z, moves=("merge",), random_state=0).fit(X, y, LENGTHS)
    assert (model.predict_class(X, LENGTHS) == NAMES[z]).all()
    assert model.label_error_ == pytest.approx(wrong.mean(), abs=0.03)


def test_without_a_known_label_the_fit_is_that_without_y_and_impossible_ones_are_refused():
    X = np.random.default_rng(6).normal(size=(60, 2))
    quick = HMM("diagonal_gaussian", moves=(), random_state=0)
    with_y, without = (deepcopy(quick).fit(X, given) for given in (np.full(60, -1), None))
    assert with_y.lower_bound_ == without.lower_bound_
    with pytest.raises(ValueError, match="fitted without labels"):
        without.predict_class(X)
    with pytest.raises(ValueError, match="was fitted to had none"):
        without.partial_fit(X, np.zeros(60))
    with pytest.raises(ValueError, match="a stream has no labels"):
        deepcopy(quick).fit(X, np.zeros(60)).set_params(algorithm=Streaming()).partial_fit(X)
    with pytest.raises(ValueError, match="one label for each of 60 rows"):
        quick.fit(X, np.zeros(3))
    with pytest.raises(ValueError, match="one for each row; see sequence 0"):
        quick.fit([X[:30], X[30:]], [np.zeros(20), np.zeros(40)])
    X[7] = np.nan
    with pytest.raises(ValueError, match="no row that counts"):
        quick.fit(X, np.where(np.arange(60) == 7, "seen", "unseen"))
    with pytest.raises(ValueError, match="label_error must be"):
        HMM(label_error=-0.1).fit(X)
