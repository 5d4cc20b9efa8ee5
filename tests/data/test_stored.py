"""Rows that stay in their files: what is read of them is what is in them, and files that do not go together are refused."""

import pickle
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zarr
from pyarrow import feather, parquet

from stickbreak.data import ArraySource
from stickbreak.data.files import DataError
from stickbreak.data.opening import files_of, open_files, open_table
from stickbreak.data.stored import Stored, Without
from stickbreak.data.stored_source import StoredSource

N, D = 57, 3
NAMES = ["a", "b", "c"]


@pytest.fixture
def X():
    X = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
    X[5, 1] = np.nan
    return X


def columns(X, names=NAMES):
    return pa.Table.from_arrays([pa.array(x, from_pandas=True) for x in X.T], names)


def as_npy(folder: Path, X):
    for i, part in enumerate(np.split(X, [20, 21])):
        np.save(folder / f"part{9 + i}.npy", part)  # part 9 comes before part 10


def as_parquet(folder: Path, X):
    (folder / "_SUCCESS").touch()
    parquet.write_table(columns(X[:20]), folder / "part9.parquet", row_group_size=7)
    (folder / "more").mkdir()
    parquet.write_table(columns(X[20:]), folder / "part10.parquet", row_group_size=11)


def as_feather(folder: Path, X):
    feather.write_feather(columns(X[:20]), folder / "part9.feather", chunksize=7)
    feather.write_feather(columns(X[20:]), folder / "part10.feather", chunksize=11)


def as_zarr(folder: Path, X):
    zarr.create_array(folder, shape=X.shape, chunks=(10, 2), dtype=X.dtype)[:] = X


@pytest.fixture(params=[as_npy, as_parquet, as_feather, as_zarr])
def rows(request, tmp_path, X):
    request.param(tmp_path, X)
    return open_table(tmp_path, in_memory=0).X


def test_rows_in_files_are_read_like_those_of_an_array(rows, X):
    assert isinstance(rows, Stored)
    assert rows.shape == X.shape
    assert rows.dtype == X.dtype
    np.testing.assert_array_equal(np.asarray(rows), X)
    for piece in (slice(3, 40), slice(20, 21), slice(-9, None), slice(40, 3), slice(None, None, 5)):
        np.testing.assert_array_equal(rows[piece], X[piece])
    some = np.array([56, 0, 20, 20, 3])
    np.testing.assert_array_equal(rows[some], X[some])
    np.testing.assert_array_equal(rows.astype(np.float64)[10:30], X[10:30].astype(np.float64))
    np.testing.assert_array_equal(Without(rows, 1)[10:30], X[10:30][:, [0, 2]])
    np.testing.assert_array_equal(Without(rows, 1)[some], X[some][:, [0, 2]])


def test_sources_in_files_give_every_row_once_and_samples_as_arrays_do(rows, X):
    weights = np.arange(N, dtype=np.float64)
    source = pickle.loads(pickle.dumps(StoredSource(rows, weights)))
    for n_batches in (1, 3, N):
        batches = source.batches(n_batches)
        assert 0 < len(batches) <= n_batches
        assert all(batches)
        numbers = sorted(i for batch in batches for chunk in batch for i in range(*chunk))
        assert numbers == list(range(N))
    chunk = source.batches(2)[1][0]
    np.testing.assert_array_equal(source.read(chunk)[0], X[chunk.start : chunk.stop])
    sample = source.sample(9, np.random.default_rng(1))
    same = ArraySource(X, weights).sample(9, np.random.default_rng(1))
    np.testing.assert_array_equal(sample.X, same.X)
    np.testing.assert_array_equal(sample.weights, same.weights)
    some = np.array([50, 7, 7, 21])
    for held, expected in zip(source.held(np.array([7, 21, 50, 51])).take(some), source.take(some)):
        np.testing.assert_array_equal(held, expected)


def test_files_come_in_the_order_of_their_numbers_and_patterns_and_small_files_are_read(tmp_path, X):
    as_parquet(tmp_path, X)
    assert [file.name for file in files_of(tmp_path)] == ["part9.parquet", "part10.parquet"]
    table, lengths = open_files(f"{tmp_path}/part*.parquet")
    assert isinstance(table.X, np.ndarray)
    np.testing.assert_array_equal(table.X, X)
    assert table.names == NAMES
    assert lengths.tolist() == [20, 37]


def test_categories_have_the_levels_of_all_files(tmp_path):
    texts = [["y", "x", None], ["z", "x", "x"]]
    for i, text in enumerate(texts):
        parquet.write_table(pa.table({"n": [1.0, 2.0, 3.0], "t": pa.array(text)}), tmp_path / f"{i}.parquet")
    for in_memory in (0, 1 << 20):
        table = open_table(tmp_path, in_memory=in_memory)
        assert table.levels == {1: ["x", "y", "z"]}
        np.testing.assert_array_equal(np.asarray(table.X)[:, 1], [1, 0, np.nan, 2, 0, 0])
    other = open_table(tmp_path, in_memory=0).X.with_levels({1: ["z", "y", "x"]})
    np.testing.assert_array_equal(np.asarray(other)[:, 1], [1, 2, np.nan, 0, 2, 2])
    with pytest.raises(DataError, match=r"0\.parquet: column 't' holds 'y', which is not among its levels: 'x', 'z'"):
        np.asarray(other.with_levels({1: ["x", "z"]}))


def test_tables_of_text_are_stacked_with_all_levels(tmp_path):
    (tmp_path / "1.csv").write_text("n,t\n1,b\n2,a\n")
    (tmp_path / "2.csv").write_text("n,t\n3,c\n")
    table = open_table(tmp_path / "*.csv")
    assert table.levels == {1: ["a", "b", "c"]}
    np.testing.assert_array_equal(table.X, [[1, 1], [2, 0], [3, 2]])


def refused(folder: Path, *words: str) -> None:
    with pytest.raises(DataError) as caught:
        np.asarray(open_table(folder, in_memory=0).X)
    for word in words:
        assert re.search(word, str(caught.value)), caught.value


def test_files_that_do_not_go_together_are_refused_by_name(tmp_path, X):
    refused(tmp_path, "is a folder without files")
    refused(tmp_path / "*.npy", "no file matches")
    np.save(tmp_path / "1.npy", X)
    np.save(tmp_path / "2.npy", X[:, :2])
    refused(tmp_path, r"2\.npy has 2 columns, but .*1\.npy has 3")
    np.save(tmp_path / "2.npy", X[0])
    refused(tmp_path, r"2\.npy holds an array of shape \(3,\)")
    (tmp_path / "2.npy").write_bytes((tmp_path / "1.npy").read_bytes()[:-4])
    refused(tmp_path, r"2\.npy is damaged or cut off")
    (tmp_path / "2.npy").unlink()
    parquet.write_table(columns(X), tmp_path / "1.parquet")
    refused(tmp_path, "different formats")
    (tmp_path / "1.npy").unlink()
    parquet.write_table(columns(X, ["a", "x", "c"]), tmp_path / "2.parquet")
    refused(tmp_path, r"2\.parquet has the column 'x' where .*1\.parquet has 'b'")
    parquet.write_table(columns(X, ["a", "b", "b"]), tmp_path / "2.parquet")
    refused(tmp_path, r"2\.parquet has the column 'b' where .*1\.parquet has 'c'")
    refused(tmp_path / "2.parquet", "has two columns 'b'")
    dates = columns(X).set_column(1, "b", pa.array(np.zeros(N, "M8[s]")))
    parquet.write_table(dates, tmp_path / "2.parquet")
    refused(tmp_path, r"2\.parquet: column 'b' holds timestamp")
    parquet.write_table(columns(X), tmp_path / "2.parquet")
    content = bytearray((tmp_path / "2.parquet").read_bytes())
    content[4:400] = bytes(396)
    (tmp_path / "2.parquet").write_bytes(content)
    refused(tmp_path, r"2\.parquet")


def test_zarr_arrays_are_checked(tmp_path, X):
    as_zarr(tmp_path / "x", X)
    np.testing.assert_array_equal(open_table(tmp_path / "x").X, X)
    group = zarr.create_group(tmp_path / "group")
    group.create_array("wide", shape=(1 << 40, 2), chunks=(1 << 20, 2), dtype="f4")
    group.create_array("cube", shape=(2, 2, 2), dtype="f4")
    group.create_array("waves", shape=(2, 2), dtype="complex64")
    group.create_array("empty", shape=(0, 2), dtype="f4")
    refused(tmp_path / "group", r"is a group of zarr arrays \(cube, empty, waves, wide\)")
    refused(tmp_path / "group" / "wide", "its rows take more than the 268,435,456 bytes")
    refused(tmp_path / "group" / "cube", r"an array of shape \(2, 2, 2\)")
    refused(tmp_path / "group" / "waves", "rows and columns of numbers")
    refused(tmp_path / "group" / "empty", "holds no data: 0 rows")
    for chunk in (tmp_path / "x" / "c").rglob("0"):
        if chunk.is_file():
            chunk.write_bytes(b"no chunk")
    refused(tmp_path / "x", "is not a zarr array, or is damaged")


def test_files_that_change_are_refused(tmp_path, X):
    as_npy(tmp_path, X)
    stored = pickle.dumps(open_table(tmp_path).X)
    np.save(tmp_path / "part9.npy", X)
    with pytest.raises(DataError, match=r"part9\.npy has changed"):
        pickle.loads(stored)
    parquet.write_table(columns(X), tmp_path / "x.parquet")
    rows = open_table(tmp_path / "x.parquet", in_memory=0).X
    parquet.write_table(columns(X[:7]), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"x\.parquet"):
        rows[:]
