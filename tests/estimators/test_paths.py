"""Estimators that are given paths: the same clusters, topics and states as of arrays, labels in files, clear refusals."""

import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.metrics import adjusted_rand_score

from stickbreak import HMM, Mixture
from stickbreak.data.files import DataError
from stickbreak.data.opening import open_table

NAMES = ["a", "b"]


@pytest.fixture(scope="module")
def truth():
    return np.random.default_rng(0).integers(3, size=900)


@pytest.fixture(scope="module")
def X(truth):
    return (6.0 * truth[:, None] + np.random.default_rng(1).normal(size=(900, 2))).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, X):
    folder = tmp_path_factory.mktemp("rows")
    for i, part in enumerate(np.split(X, [500])):
        table = pa.table({name: x for name, x in zip(NAMES, part.T)})
        parquet.write_table(table, folder / f"{i}.parquet", row_group_size=150)
    return folder


@pytest.fixture(scope="module")
def fitted(X):
    return Mixture("gaussian", random_state=0).fit(X)


def test_a_mixture_of_a_path_is_that_of_the_rows_in_it(folder, fitted, X):
    model = Mixture("gaussian", random_state=0).fit(f"{folder}/*.parquet")
    assert model.lower_bound_ == fitted.lower_bound_
    assert model.feature_names_in_.tolist() == NAMES
    assert not hasattr(model, "labels_")
    np.testing.assert_array_equal(model.predict(folder), fitted.labels_)
    assert model.score(folder) == fitted.score(X)


def test_rows_that_stay_in_their_files_have_the_same_clusters(folder, fitted, truth):
    rows = open_table(folder, in_memory=0).X
    model = Mixture("gaussian", random_state=0, n_batches=3)
    labels = model.fit_predict(rows)
    assert not hasattr(model, "labels_")
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(truth, labels) == 1.0
    assert abs(model.lower_bound_ - fitted.lower_bound_) < 0.05
    threads = Mixture("gaussian", random_state=0, n_batches=3, n_jobs=2).fit(rows)
    assert threads.lower_bound_ == model.lower_bound_


def test_labels_go_to_a_file_that_appears_when_all_are_written(folder, fitted, X, tmp_path):
    out = tmp_path / "labels.npy"
    labels = fitted.predict(X, out=out)
    assert isinstance(labels, np.memmap)
    assert labels.dtype == np.int32
    np.testing.assert_array_equal(np.load(out), fitted.labels_)
    X = X.copy()
    X[-1] = np.inf
    out.unlink()
    with pytest.raises(ValueError, match="inf"):
        fitted.predict(X, out=out)
    assert list(tmp_path.iterdir()) == []


def test_labels_in_places_where_they_cannot_be_are_refused_at_once(fitted, X, tmp_path):
    data = tmp_path / "X.npy"
    np.save(data, X)
    for out, message in (
        ("labels.csv", "out='labels.csv' has another ending than .npy"),
        (tmp_path / "none" / "labels.npy", "does not exist"),
        (data, "would replace the data"),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=re.escape(message)):
            fitted.predict(data, out=out)
    with pytest.raises(ValueError, match="would replace the data"):
        fitted.predict(np.load(data, mmap_mode="r"), out=data)
    with pytest.raises(DataError, match="there is no file"):
        fitted.predict(tmp_path / "none.npy")


def test_files_with_other_columns_or_targets_are_refused(folder, fitted, X, tmp_path):
    named = Mixture("gaussian", random_state=0, moves=(), init="k-means", n_init_clusters=3).fit(folder)
    parquet.write_table(pa.table({"a": X[:, 0], "c": X[:, 1]}), tmp_path / "x.parquet")
    for path in (tmp_path / "x.parquet", open_table(tmp_path / "x.parquet", in_memory=0).X):
        with pytest.raises(ValueError, match="should match those that were passed during fit"):
            named.predict(path)
    with pytest.raises(ValueError, match="targets of rows in files are columns of the files"):
        Mixture("linear_regression").fit(open_table(folder, in_memory=0).X, X[:, 0])


def test_categories_in_files_have_the_codes_of_the_model(tmp_path):
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=400)
    for i, names in enumerate((["x", "y"], ["z", "w"])):
        table = pa.table({"n": 9.0 * z + rng.normal(size=400), "t": np.array(names)[z]})
        parquet.write_table(table, tmp_path / f"{i}.parquet", row_group_size=64)
    model = Mixture(random_state=0).fit(open_table(tmp_path, in_memory=0).X)
    assert list(model.levels_[1]) == ["w", "x", "y", "z"]
    one = tmp_path / "1.parquet"
    np.testing.assert_array_equal(model.predict(one), model.predict(open_table(one, in_memory=0).X))
    assert adjusted_rand_score(z, model.predict(one)) > 0.95


@pytest.fixture(scope="module")
def sequences():
    rng = np.random.default_rng(0)
    return [9.0 * np.repeat(rng.integers(2, size=8), 25)[:, None] + rng.normal(size=(200, 2)) for _ in range(3)]


def test_states_of_a_folder_whose_files_are_sequences_and_of_a_column_that_names_them(sequences, tmp_path):
    (tmp_path / "npy").mkdir()
    for g, X in enumerate(sequences):
        np.save(tmp_path / "npy" / f"{g}.npy", X)
    settings = {"likelihood": "diagonal_gaussian", "random_state": 0, "moves": (), "init": "blocks", "n_init_states": 2}
    expected = HMM(**settings).fit(sequences)
    model = HMM(**settings)
    labels = model.fit_predict(tmp_path / "npy")
    assert model.lower_bound_ == expected.lower_bound_
    np.testing.assert_array_equal(labels, expected.labels_)
    assert not hasattr(model, "labels_")
    np.testing.assert_array_equal(model.predict(tmp_path / "npy", out=tmp_path / "states.npy"), labels)
    X = np.concatenate(sequences)
    table = pa.table({"a": X[:, 0], "who": np.repeat(["p", "q", "r"], 200), "b": X[:, 1]})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=70)
    named = HMM(**settings).fit(tmp_path / "x.parquet", lengths="who")
    assert named.lower_bound_ == expected.lower_bound_
    assert named.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="lengths='who' names a column of files, and X is no path"):
        model.fit(X, lengths="who")


def test_sequences_that_stay_in_their_files_are_the_same(sequences, tmp_path, monkeypatch):
    X = np.concatenate(sequences)
    table = pa.table({"a": X[:, 0], "who": np.repeat(["p", "q", "r"], 200), "b": X[:, 1]})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=70)
    settings = {"likelihood": "diagonal_gaussian", "random_state": 0, "moves": (), "init": "blocks", "n_init_states": 2}
    expected = HMM(**settings).fit(X, lengths=[200] * 3)
    monkeypatch.setattr("stickbreak.data.opening.open_files.__defaults__", (*open_table.__defaults__[:1], 0))
    model = HMM(**settings).fit(tmp_path / "x.parquet", lengths="who")
    assert model.lower_bound_ == expected.lower_bound_
