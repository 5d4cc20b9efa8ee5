"""Tables in files: what is read, and what the user is told otherwise."""

import decimal
import os
import sys

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stickbreak.data.files import DataError, read_table


def refusal(path):
    """The one line a user sees."""
    with pytest.raises(DataError) as caught:
        read_table(path)
    message = str(caught.value)
    assert "\n" not in message
    assert path.name in message or "no file" in message
    return message


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "uint8", "bool", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_is_mapped_and_keeps_its_type(tmp_path, dtype, order):
    X = np.asarray(np.arange(6).reshape(3, 2), dtype=dtype, order=order)
    np.save(tmp_path / "X.npy", X)
    found, names, levels = read_table(tmp_path / "X.npy")
    assert isinstance(found, np.memmap)
    assert found.dtype == X.dtype
    assert names is None
    assert not levels
    np.testing.assert_array_equal(found, X)


def test_npz(tmp_path):
    X, other = np.eye(3), np.zeros(2)
    np.savez(tmp_path / "one.npz", anything=X)
    np.savez(tmp_path / "named.npz", X=X, y=other)
    np.savez_compressed(tmp_path / "two.npz", a=X, b=other)
    for name in ("one", "named"):
        np.testing.assert_array_equal(read_table(tmp_path / f"{name}.npz").X, X)
    assert "(a, b)" in refusal(tmp_path / "two.npz")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_npz_of_a_sparse_matrix(tmp_path, kind):
    X = np.where(np.arange(12).reshape(3, 4) % 3, 0.0, 7.0)
    scipy.sparse.save_npz(tmp_path / "X.npz", scipy.sparse.coo_array(X).asformat(kind))
    found = read_table(tmp_path / "X.npz").X
    assert isinstance(found, scipy.sparse.csr_array)
    np.testing.assert_array_equal(found.toarray(), X)


@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_pickles_are_not_opened(tmp_path, ending):
    path, array = tmp_path / f"objects{ending}", np.array([[1, "a"], [None, 2]], dtype=object)
    np.save(path, array) if ending == ".npy" else np.savez(path, X=array)
    assert "Python objects" in refusal(path)
    assert "Python objects" in refusal(write(path, b"\x80\x04\x95" + b"x" * 50))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(4), "1 dimensions"),
        (np.zeros((2, 3, 4)), "3 dimensions"),
        (np.zeros((0, 3)), "0 rows"),
        (np.zeros((3, 0)), "0 columns"),
        (np.zeros((2, 2), complex), "complex128"),
        (np.array([["a", "b"]]), "<U1"),
        (np.zeros((2, 2), "M8[s]"), "datetime64"),
        (np.zeros((2, 1), [("a", "f8")]), "'a'"),
    ],
)
def test_arrays_that_are_no_tables(tmp_path, array, words):
    np.save(tmp_path / "X.npy", array)
    assert words in refusal(tmp_path / "X.npy")


@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_every_truncation_is_refused(tmp_path, ending):
    path = tmp_path / f"X{ending}"
    np.save(path, np.eye(5)) if ending == ".npy" else np.savez(path, X=np.eye(5))
    whole = path.read_bytes()
    for length in {*range(0, len(whole), 7), len(whole) - 1}:
        refusal(write(path, whole[:length]))


@given(content=st.binary(min_size=1, max_size=200), ending=st.sampled_from([".npy", ".npz", ".csv", ".parquet"]))
def test_random_bytes_give_a_table_or_one_line(tmp_path_factory, content, ending):
    path = write(tmp_path_factory.mktemp("random") / f"x{ending}", content)
    try:
        X, names, levels = read_table(path)
    except DataError:
        refusal(path)
    else:
        assert X.ndim == 2
        assert names is None or len(names) == X.shape[1]
        assert set(levels) <= set(range(X.shape[1]))


def test_paths_that_are_no_data_files(tmp_path):
    assert "no file" in refusal(tmp_path / "missing.npy")
    assert "directory" in refusal(tmp_path)
    assert ".npy, .npz, .csv, .tsv, .csv.gz" in refusal(write(tmp_path / "table.xlsx", "x"))
    for ending in (".npy", ".npz", ".csv", ".parquet"):
        assert "empty" in refusal(write(tmp_path / f"empty{ending}", b""))


@given(X=arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.floats(allow_nan=False)))
def test_csv_gives_back_what_was_written(tmp_path_factory, X):
    path = tmp_path_factory.mktemp("csv") / "X.csv"
    names = [f"column {j}" for j in range(X.shape[1])]
    for header in ("", ",".join(names)):
        np.savetxt(path, X, delimiter=",", fmt="%.17g", header=header, comments="")
        found = read_table(path)
        np.testing.assert_array_equal(found.X, X)
        assert found.names == (names if header else None)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x,y\n1,2\n3,4\n", ["x", "y"]),
        ("x;y\n1;2\n3;4\n", ["x", "y"]),
        ("x\ty\n1\t2\n3\t4", ["x", "y"]),
        ("\ufeffx,y\r\n1,2\r\n3,4\r\n", ["x", "y"]),
        ("\n\n x , y \n\n1, 2\n\n3 ,4\n\n", ["x", "y"]),
        ('"x, or so",y\n"1",2\n3,4', ["x, or so", "y"]),
        ("id,2026\n1,2\n3,4", ["id", "2026"]),
        ("1,2\n3,4\n", None),
        ("1e0,+2.0\n3,.4e1\n", None),
    ],
)
def test_csv_dialects(tmp_path, text, names):
    found = read_table(write(tmp_path / "X.csv", text))
    np.testing.assert_array_equal(found.X, [[1, 2], [3, 4]])
    assert found.names == names


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,y\n1,2\n3,abc\n", "line 3, column 2 ('y'): 'abc' is not a number"),
        ("1,2\n3,abc\n", "line 2, column 2: 'abc'"),
        ("x,y\n1,a\n\n3,\n5,6\n", "line 2, column 2 ('y'): 'a' is not a number"),
        ("1,2\n3\n", "line 2: 1 cells where 2 are expected"),
        ("x,y\n1,2,3\n", "line 2: 3 cells where 2 are expected"),
        ("x,y\n1,2\n3,4,\n", "line 3: 3 cells"),
        (",x,y\n0,1,2\n1,3,4\n", "index=False"),
        ("x,y\n", "only a line of column names"),
        ("1,2\n3,1_000\n", "'1_000' is not a number"),
        ("1,2\n# note\n", "line 2"),
        (" \n\n", "empty"),
        (b"x,y\n1,\xff\n", "UTF-8"),
    ],
)
def test_csv_mistakes_name_the_place(tmp_path, text, words):
    assert words in refusal(write(tmp_path / "X.csv", text))


@pytest.mark.parametrize(
    "text",
    ["x,y\n1,\n3,4\n", "x;y\n1;NA\n3;4\n", "x\ty\n1\tNaN\n3\t4\n", "x,y\n1,null\n\n3,4", 'x,y\n1,""\n3,4\n'],
)
def test_missing_cells_are_nan(tmp_path, text):
    found = read_table(write(tmp_path / "X.csv", text))
    np.testing.assert_array_equal(found.X, [[1.0, np.nan], [3.0, 4.0]])
    assert found.names == ["x", "y"]
    assert not found.levels
    without_names = write(tmp_path / "X.csv", text.replace("x", "5").replace("y", "6"))
    np.testing.assert_array_equal(read_table(without_names).X, [[5.0, 6.0], [1.0, np.nan], [3.0, 4.0]])


def test_columns_of_text_are_categories(tmp_path):
    text = 'size,kind,"more, or less"\n1,red,yes\n,blue,no\n3,,3\n4,red,NA\n'
    found = read_table(write(tmp_path / "X.csv", text))
    nan = np.nan
    np.testing.assert_array_equal(found.X, [[1, 1, 2], [nan, 0, 1], [3, nan, 0], [4, 1, nan]])
    assert found.names == ["size", "kind", "more, or less"]
    assert found.levels == {1: ["blue", "red"], 2: ["3", "no", "yes"]}
    assert read_table(write(tmp_path / "X.csv", "a,b\nc,d\n")).levels == {0: ["c"], 1: ["d"]}


def test_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2, 2**62], "b": [0.5, 1.5, 2.5], "c": [True, False, True]})
    frame["d"] = [decimal.Decimal("1.5")] * 3
    frame.to_parquet(tmp_path / "mixed.parquet")
    found = read_table(tmp_path / "mixed.parquet")
    np.testing.assert_array_equal(found.X, frame.to_numpy(float))
    assert found.names == ["a", "b", "c", "d"]
    frame[["b", "b"]].set_axis(["x", "y"], axis=1).astype("float32").to_parquet(tmp_path / "single.parquet")
    assert read_table(tmp_path / "single.parquet").X.dtype == np.float32


@pytest.mark.parametrize("kind", ["text", "categories", "large text"])
def test_parquet_with_missing_cells_and_categories(tmp_path, kind):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    words = arrow.array(["red", None, "blue", "red"], arrow.large_string() if kind == "large text" else arrow.string())
    words = words.dictionary_encode() if kind == "categories" else words
    table = arrow.table({"n": arrow.array([1, None, 3, 4]), "kind": words, "b": arrow.array([True, False, None, True])})
    parquet.write_table(table, tmp_path / "X.parquet", row_group_size=2)
    found = read_table(tmp_path / "X.parquet")
    nan = np.nan
    np.testing.assert_array_equal(found.X, [[1, 1, 1], [nan, nan, 0], [3, 0, nan], [4, 1, 1]])
    assert found.names == ["n", "kind", "b"]
    assert found.levels == {1: ["blue", "red"]}


def test_parquet_mistakes(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame, path = pandas.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}), tmp_path / "X.parquet"
    for column, words in (
        ([[1], [2]], "column 'b' holds list"),
        (pandas.to_datetime(["2026-01-01"] * 2), "timestamp"),
    ):
        frame.assign(b=column).to_parquet(path)
        assert words in refusal(path)
    frame.iloc[:0].to_parquet(path)
    assert "0 rows" in refusal(path)
    frame.to_parquet(path)
    whole = path.read_bytes()
    for length in (1, 4, len(whole) // 2, len(whole) - 1):
        refusal(write(path, whole[:length]))


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    path = write(tmp_path / "X.parquet", "x")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "stickbreak[tables]" in refusal(path)


def test_an_unreadable_file(tmp_path):
    path = write(tmp_path / "X.csv", "1,2\n")
    path.chmod(0)
    if os.access(path, os.R_OK):  # the administrator may read everything
        return
    assert "cannot read" in refusal(path)
