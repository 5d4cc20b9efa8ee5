"""Tables in files: what is read, and what the user is told otherwise."""

import decimal
import gzip
import io
import os
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stickbreak.data.files import DataError, ReadOptions, read_table


def refusal(path, **options):
    """The one line a user sees."""
    with pytest.raises(DataError) as caught:
        read_table(path, ReadOptions(**options))
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


@given(
    content=st.binary(min_size=1, max_size=200),
    ending=st.sampled_from([".npy", ".npz", ".csv", ".tsv", ".parquet", ".feather"]),
)
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
    for ending in (".npy", ".npz", ".csv", ".tsv", ".csv.gz", ".parquet", ".feather", ".arrow"):
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


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".tsv.gz", ".feather"])
def test_tables_without_pyarrow_say_what_to_install(tmp_path, monkeypatch, ending):
    path = write(tmp_path / f"X{ending}", "x")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "stickbreak[tables]" in refusal(path)


def test_an_unreadable_file(tmp_path):
    path = write(tmp_path / "X.csv", "1,2\n")
    path.chmod(0)
    if os.access(path, os.R_OK):  # the administrator may read everything
        return
    assert "cannot read" in refusal(path)


# Headers that announce what is not there --------------------------------------------------------------------------------


def npy(header, content=b"\0" * 800):
    header = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


SOUND = "{'descr': '<f8', 'fortran_order': False, 'shape': (10, 10), }"
HEADERS = [
    ("{'descr': '<f8', 'fortran_order': False, 'shape': (10, 10), ", "no array of NumPy"),  # TokenError
    (SOUND.replace("(10, 10)", "(010, 10)"), "no array of NumPy"),  # SyntaxError
    (SOUND.replace("<f8", "<q8"), "no array of NumPy"),
    (SOUND.replace("(10, 10)", "[" * 3000), "no array of NumPy"),
    ("(" * 60000, "no array of NumPy"),
    (SOUND.replace("<f8", "|O"), "Python objects"),
    (SOUND.replace("(10, 10)", "(1, 10)"), "announces 80 bytes"),
    (SOUND.replace("(10, 10)", "(11, 10)"), "announces 880 bytes"),
    (SOUND.replace("(10, 10)", "(-10, -10)"), "damaged or cut off"),
    (SOUND.replace("(10, 10)", f"(10, {10**30})"), "damaged or cut off"),
    (SOUND.replace("(10, 10)", f"(0, {10**30})"), "damaged or cut off"),
    (SOUND.replace("<f8", "<f4"), "announces 400 bytes"),
]


@pytest.mark.parametrize("ending", [".npy", ".npz"])
@pytest.mark.parametrize(("header", "words"), HEADERS)
def test_damaged_headers_of_numpy(tmp_path, header, words, ending):
    path = tmp_path / f"X{ending}"
    if ending == ".npy":
        write(path, npy(header))
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("X.npy", npy(header))
    assert words in refusal(path)


def archive(path, members, packing=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", packing) as file:
        for name, content in members:
            file.writestr(name, content)
    return path


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_archives_that_are_no_arrays(tmp_path):
    path, whole = tmp_path / "X.npz", npy(SOUND)
    assert "'X' twice" in refusal(archive(path, [("X.npy", whole), ("X.npy", whole)]))
    assert "packed in a way" in refusal(archive(path, [("X.npy", whole)], zipfile.ZIP_BZIP2))
    assert "no array of NumPy" in refusal(archive(path, [("X.txt", "1,2")]))
    content = archive(path, [("X.npy", whole)]).read_bytes()
    central = content.index(b"PK\x01\x02")
    encrypted = content[: central + 8] + b"\x01" + content[central + 9 :]
    assert "encrypted" in refusal(write(path, encrypted))
    claimed = content[: central + 24] + (2**31).to_bytes(4, "little") + content[central + 28 :]
    assert "damaged" in refusal(write(path, claimed))


def test_bombs_are_refused_before_they_are_unpacked(tmp_path):
    np.savez_compressed(tmp_path / "X.npz", X=np.zeros((1000, 1000)))
    scipy.sparse.save_npz(tmp_path / "S.npz", scipy.sparse.csr_array(np.ones((100, 1000))))
    write(tmp_path / "X.csv.gz", gzip.compress(b"0,1\n" * 1_000_000))
    for name in ("X.npz", "S.npz", "X.csv.gz"):
        tracemalloc.start()
        try:
            assert "more than the 100,000 bytes" in refusal(tmp_path / name, max_bytes=100_000)
            assert tracemalloc.get_traced_memory()[1] < 5e6
        finally:
            tracemalloc.stop()
        assert read_table(tmp_path / name, ReadOptions(max_bytes=1 << 24)).X.shape[1] in (2, 1000)


def test_bombs_of_columns(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from pyarrow import feather

    table = arrow.table({"x": np.zeros(1_000_000)})
    parquet.write_table(table, tmp_path / "X.parquet")
    feather.write_feather(table, tmp_path / "X.feather")
    for name in ("X.parquet", "X.feather"):
        assert "more than the 100,000 bytes" in refusal(tmp_path / name, max_bytes=100_000)
        assert read_table(tmp_path / name).X.shape == (1_000_000, 1)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo"])
def test_indices_of_sparse_matrices_are_checked_before_they_are_converted(tmp_path, kind):
    path = tmp_path / "X.npz"
    scipy.sparse.save_npz(path, scipy.sparse.coo_array(np.eye(6)).asformat(kind))
    with np.load(path) as data:
        arrays_of = dict(data)
    name = "coords" if "coords" in arrays_of else "row" if kind == "coo" else "indices"
    for wrong in (10**6, -1, 6):
        arrays_of[name].flat[3] = wrong
        np.savez(path, **arrays_of)
        assert "damaged" in refusal(path)
    arrays_of[name] = arrays_of[name].astype(float)
    np.savez(path, **arrays_of)
    assert "not integers" in refusal(path)


def test_repeated_entries_of_small_integers_do_not_overflow(tmp_path):
    row = np.zeros(300, np.int32)
    scipy.sparse.save_npz(tmp_path / "X.npz", scipy.sparse.coo_array((np.ones(300, np.int8), (row, row)), (2, 2)))
    assert read_table(tmp_path / "X.npz").X.toarray()[0, 0] == 300


def test_more_rows_than_a_file_may_ask_for(tmp_path):
    empty = np.zeros(0, np.int64)
    matrix = scipy.sparse.coo_array((np.zeros(0), (empty, empty)), (2**40, 3))
    scipy.sparse.save_npz(tmp_path / "X.npz", matrix)
    assert "rows take more than" in refusal(tmp_path / "X.npz")


# Text ---------------------------------------------------------------------------------------------------------------------


def test_decimal_commas_are_read_and_reported(tmp_path):
    path = write(tmp_path / "X.csv", "1,5;2,5\n3,25;-4\n,5;1,5e1\n")
    with pytest.warns(UserWarning, match=r"X\.csv: decimals follow a comma.*--decimal ,"):
        found = read_table(path)
    expected = [[1.5, 2.5], [3.25, -4], [0.5, 15]]
    np.testing.assert_array_equal(found.X, expected)
    assert not found.levels
    np.testing.assert_array_equal(read_table(path, ReadOptions(decimal=",")).X, expected)
    quoted = write(tmp_path / "X.csv", 'a,b\n"1,5",2\n"0,5",4\n')
    assert "column 1 ('a') holds '1,5' and the like; pass decimal=\",\" (--decimal ,)" in refusal(quoted)
    np.testing.assert_array_equal(read_table(quoted, ReadOptions(decimal=",")).X, [[1.5, 2], [0.5, 4]])
    column = write(tmp_path / "X.csv", "1,5\n2,5\n")
    np.testing.assert_array_equal(read_table(column, ReadOptions(decimal=",")).X, [[1.5], [2.5]])


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("a;b\n1,234;1\n5,678;2\n", {}, "column 1 ('a') holds '1,234' and the like; leave out the commas of thousands"),
        ("a;b\n1,5;2.5\n2,5;3.5\n", {}, "column 1 ('a') holds '1,5'"),
        ("a;b\n" + "1;2\n" * 300 + "1,5;2\n", {}, "line 302, column 1 ('a'): '1,5' is not a number; pass decimal"),
        (
            "a;b\n1,5;2.5\n2,5;3.5\n",
            {"decimal": ","},
            "column 2 ('b') holds '2.5' and the like; decimals follow a comma",
        ),
        ("a;b\n1.234,5;2\n2.345,5;3\n3;4\n4;4\n5;4\n", {}, "'1.234,5' is not a number"),
        ("x,a;b\ny,c;d\n", {}, "',' and ';' both cut its rows into 2 cells; say which it is, with delimiter="),
    ],
)
def test_text_that_may_be_read_in_two_ways(tmp_path, text, options, words):
    assert words in refusal(write(tmp_path / "X.csv", text), **options)


def test_numbers_are_never_taken_for_categories(tmp_path):
    rows = [f"{i % 97},{i % 89:02d};{i % 7},5\n" for i in range(2000)]
    with pytest.warns(UserWarning, match="decimals follow a comma"):
        found = read_table(write(tmp_path / "X.csv", "".join(rows)))
    assert not found.levels
    assert found.X.shape == (2000, 2)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".tsv.gz"])
def test_text_packed_or_not(tmp_path, ending):
    delimiter = "\t" if "tsv" in ending else ";"
    text = "x|y\n1|red\n2|blue, or; so\n".replace("|", delimiter).replace("blue, or; so", '"blue, or; so"').encode()
    found = read_table(write(tmp_path / f"X{ending}", gzip.compress(text) if ending.endswith("gz") else text))
    np.testing.assert_array_equal(found.X, [[1, 1], [2, 0]])
    assert found.levels == {1: ["blue, or; so", "red"]}
    if ending.endswith("gz"):
        path = tmp_path / f"X{ending}"
        assert "cut off" in refusal(write(path, path.read_bytes()[:-9]))


def test_delimiters_that_also_stand_in_cells(tmp_path):
    for text in ("id,tags\n1,a;b\n2,c;d\n", "id,a;b\n1,a;b\n2,c;d\n"):
        assert read_table(write(tmp_path / "X.csv", text)).levels == {1: ["a;b", "c;d"]}
    path = write(tmp_path / "X.csv", "x,a;b\ny,c;d\n")
    found = read_table(path, ReadOptions(delimiter=";"))
    assert found.names == ["x,a", "b"]
    assert found.levels == {0: ["y,c"], 1: ["d"]}
    with pytest.raises(ValueError, match="delimiter is ':'"):
        ReadOptions(delimiter=":")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig", "cp1252"])
def test_encodings(tmp_path, encoding):
    path = write(tmp_path / "X.csv", "größe,art\n1,süß\n2,herb\n".encode(encoding))
    if encoding in ("latin-1", "cp1252"):
        message = refusal(path)
        assert "line 1: not text in UTF-8" in message
        assert "--encoding latin-1" in message
    found = read_table(path, ReadOptions(encoding=encoding if encoding in ("latin-1", "cp1252") else None))
    assert found.names == ["größe", "art"]
    assert found.levels == {1: ["herb", "süß"]}
    assert "'klingon' is unknown" in refusal(path, encoding="klingon")


def test_bytes_that_are_no_text_are_located_far_into_a_file(tmp_path):
    path = write(tmp_path / "X.csv", b"x,y\n" + b"1,2\n" * 400_000 + b"3,\xe9\n")
    assert "line 400002: not text in UTF-8" in refusal(path)


def test_long_cells(tmp_path):
    long = "x" * 3_000_000
    found = read_table(write(tmp_path / "X.csv", f"n,text\n1,{long}\n2,{long[1:]}\n" + "3,y\n" * 500))
    assert found.levels == {1: [long[1:], long, "y"]}
    assert found.X.shape == (502, 2)


def test_many_columns(tmp_path):
    D = 20_000
    text = "\n".join(",".join(str(n * D + d) for d in range(D)) for n in range(3))
    np.testing.assert_array_equal(read_table(write(tmp_path / "X.csv", text)).X, np.arange(3.0 * D).reshape(3, D))


def test_quotes_that_are_not_closed(tmp_path):
    assert "line 3: a quote is opened" in refusal(write(tmp_path / "X.csv", 'a,b\n1,x\n2,"y\n' + "3,z\n" * 50))
    found = read_table(write(tmp_path / "X.csv", 'a,b\n1,"x ""or""\ny"\n\n2,"z"\n'))
    assert found.levels == {1: ['x "or"\ny', "z"]}
    assert "line 5, column 1 ('a'): '?'" in refusal(write(tmp_path / "X.csv", 'a,b\n1,"x\ny"\n\n?,"z"\n' + "3,q\n" * 5))


@pytest.mark.parametrize("rows", [1, 70_000])
def test_mistakes_in_late_blocks_are_located(tmp_path, rows):
    lines = [f"{i},{i * 0.5}" for i in range(rows)]
    for wrong, words in (("1,2,3", "3 cells where 2"), ("?,1", "'?' is not a number")):
        path = write(tmp_path / "X.csv", "\n\n".join(["a,b", *lines * 9, wrong, *lines, ""]))
        message = refusal(path)
        assert f"line {18 * rows + 3}" in message
        assert words in message


AWKWARD = [
    (",", "a,b,c\n1,2,x\n-1.5e-3,.5,\n+7,5.,NA\n1e400,-1e-400,None\n"),
    (",", 'a,b\n" 1 ","2"\n 3,4\t\n'),
    (",", "a,b\r\n1,n/a\r\n,NULL\r\n"),
    (";", '"name, with comma";"two\nlines"\n1;2\n\n3;4'),
    (",", "a\n1\n\n2\n"),
    ("\t", "label\tn\nit's\t1\n5\" pipe\t2\n"),
]


@pytest.mark.parametrize(("delimiter", "text"), AWKWARD)
def test_awkward_text_is_read_as_pandas_reads_it(tmp_path, delimiter, text):
    pandas = pytest.importorskip("pandas")
    found = read_table(write(tmp_path / "X.csv", text))
    missing = ["", "NA", "None", "n/a", "NULL"]
    frame = pandas.read_csv(
        io.StringIO(text), sep=delimiter, keep_default_na=False, na_values=missing, skipinitialspace=True
    )
    assert found.names == [name.strip() for name in frame.columns]
    for d, name in enumerate(frame.columns):
        if d in found.levels:
            values = [None if pandas.isna(value) else value.strip() for value in frame[name]]
            codes = found.X[:, d]
            assert [None if code != code else found.levels[d][int(code)] for code in codes] == values
        else:
            np.testing.assert_array_equal(found.X[:, d], frame[name].astype(float))


@pytest.mark.parametrize("ending", [".feather", ".arrow", ".parquet"])
@pytest.mark.parametrize("rows", [4, 100_000])
def test_columns_of_arrow(tmp_path, ending, rows):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from pyarrow import feather

    words = arrow.array((["red", None, "blue", "red"] * rows)[:rows])
    n = arrow.array(([1, None, 3, 4] * rows)[:rows])
    table = arrow.table({"n": n, "kind": words, "level": words.dictionary_encode(), "none": arrow.nulls(rows)})
    path = tmp_path / f"X{ending}"
    (parquet.write_table if ending == ".parquet" else feather.write_feather)(table, path)
    found = read_table(path)
    np.testing.assert_array_equal(found.X[:4, :3], [[1, 1, 1], [np.nan] * 3, [3, 0, 0], [4, 1, 1]])
    np.testing.assert_array_equal(found.X[-4:], found.X[:4])
    assert found.X.shape == (rows, 4)
    assert found.levels == {1: ["blue", "red"], 2: ["blue", "red"], 3: []}
    assert "damaged" in refusal(write(path, path.read_bytes()[:-5]))
