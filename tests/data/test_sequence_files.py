"""Sequences in files: where they start and end, ChromHMM's text, BED files, and what the user is told otherwise."""

import contextlib
import gzip
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stickbreak.data.bed_files import write_bed
from stickbreak.data.files import DataError, ReadOptions
from stickbreak.data.sequence_files import SequenceTable, read_sequences

nan = np.nan
SMALL = b"K562\tchr1\nCTCF\tH3K4me1\n0\t1\n2\t0\n1\t1\n"
SMALL_X = [[0, 1], [nan, 0], [1, 1]]


def refusal(call, *arguments, **options):
    """The one line a user sees."""
    with pytest.raises(DataError) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 500
    return message


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def binarised(X, cell="K562", chromosome="chr1", marks=None):
    """The plain way to write ChromHMM's text."""
    marks = [f"mark{d}" for d in range(np.shape(X)[1])] if marks is None else marks
    rows = [["2" if value != value else str(int(value)) for value in row] for row in X]
    return "".join("\t".join(words) + "\n" for words in ([cell, chromosome], marks, *rows))


def assert_table(found, X, lengths, sequences, names=None):
    assert isinstance(found, SequenceTable)
    assert found.X.dtype == np.float64
    assert found.lengths.dtype == np.int64
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.lengths, lengths)
    assert found.sequences == sequences
    assert found.names == names


# Binarised text of ChromHMM --------------------------------------------------------------------------------------------


@given(X=arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 4)), elements=st.sampled_from([0, 1, nan])))
@pytest.mark.parametrize("ending", [".txt", ".txt.gz", ".TXT"])
def test_binarised_text_gives_back_what_was_written(tmp_path_factory, X, ending):
    content = binarised(X).encode()
    path = tmp_path_factory.mktemp("binarised") / f"K562_chr1_binary{ending}"
    found = read_sequences(write(path, gzip.compress(content) if ending.endswith("gz") else content))
    assert_table(found, X, [len(X)], ["chr1"], [f"mark{d}" for d in range(X.shape[1])])
    assert not found.levels


@pytest.mark.parametrize(
    "content",
    [
        SMALL,
        SMALL[:-1],
        SMALL + b"\n\r\n\n",
        SMALL.replace(b"\n", b"\r\n"),
        SMALL.replace(b"\n", b"\r\n")[:-2],
        SMALL.replace(b"\n", b"\r\n", 3),
        b"\xef\xbb\xbf" + SMALL,
        SMALL.replace(b"chr1", b"chr1 \t").replace(b"CTCF", b" CTCF "),
        gzip.compress(SMALL[:20], mtime=0) + gzip.compress(SMALL[20:], mtime=0),
    ],
)
def test_binarised_dialects(tmp_path, content):
    for name in ("a.txt", "a.txt.gz"):  # what is packed shows in the file
        found = read_sequences(str(write(tmp_path / name, content)))
        assert_table(found, SMALL_X, [3], ["chr1"], ["CTCF", "H3K4me1"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("\n \r\n", "is empty"),
        ("K562\tchr1", "line 2: ['']"),
        ("K562\tchr1\n\n0\t1\n", "line 2: ['']"),
        ("K562\tchr1\n0\t1\n1\t1\n", "line 2: ['0', '1'], where the names of the marks are expected"),
        ("K562\tchr1\na\t\tb\n0\t1\t1\n", "line 2: ['a', '', 'b']"),
        ("K562\tchr1\na\ta\n0\t1\n", "all different"),
        ("K562\tchr1\na\tb\n", "no data"),
        ("K562\tchr1\na\tb\n\n\n", "no data"),
        ("a\tb\tc\n0\t1\t1\n", "line 1: ['a', 'b', 'c']"),
        ("K562 chr1\na\tb\n0\t1\n", "line 1: ['K562 chr1'], where the cell type and the chromosome are expected"),
        ("K562\t\na\tb\n0\t1\n", "line 1: ['K562']"),
        ("\tchr1\na\tb\n0\t1\n", "line 1: ['', 'chr1']"),
        ("3\n4\n2\n1 1 1\n", "line 1: ['3']"),
        ("K562\tchr1\ra\tb\r0\t1\r", "line 1"),
        ("K562\tchr1\na\tb\n0\t1\n0\t3\n", "line 4, mark 'b': '3' is not 0, 1, or 2 for missing"),
        ("K562\tchr1\na\tb\n0\t1\n\t1\n", "line 4, mark 'a': ''"),
        ("K562\tchr1\na\tb\n0\t1\n0\t1 \n", "line 4, mark 'b': '1 '"),
        ("K562\tchr1\na\tb\n0\t/\n", "line 3, mark 'b': '/'"),
        ("K562\tchr1\na\tb\n0\t1\r\r\n", r"line 3, mark 'b': '1\r'"),
        ("K562\tchr1\na\tb\n0\t1\n1\n", "line 4: 1 cells where 2 are expected"),
        ("K562\tchr1\na\tb\n0\t1\n1\t", "line 4, mark 'b': ''"),
        ("K562\tchr1\na\tb\n0\n1\t0\t1\n", "line 3: 1 cells where 2"),
        ("K562\tchr1\na\tb\n0\t1\t\n", "line 3: 3 cells where 2"),
        ("K562\tchr1\na\tb\n0\t1\n\n0\t1\n", "line 4: 0 cells where 2"),
        ("K562\tchr1\na\tb\n0 1\n", "line 3: 1 cells where 2"),
        ("K562\tchr1\na\n0\n\n1\n", "line 4: 0 cells where 1 are"),
        ("K562\tchr1\na\tb\n0\t1\n12\t\n", "line 4, mark 'a': '12'"),
        ("K562\tchr1\na\tb\n0\t0.5\n", "line 3, mark 'b': '0.5'"),
        (b"K562\tchr1\na\tb\n0\t\xff\n", "line 3, mark 'b'"),
        (b"K562\tchr1\na\t\xff\n0\t1\n", "line 2: not text in UTF-8"),
        (b"\x00\xff\xfe\n", "line 1: not text in UTF-8"),
        ("K562\tchr1\na\tb\n0\t" + "9" * 1000, "line 3, mark 'b'"),
        ("x" * 1000 + "\n", "line 1"),
    ],
)
def test_binarised_mistakes_name_the_place(tmp_path, content, words):
    path = write(tmp_path / "a.txt", content)
    message = refusal(read_sequences, path)
    assert str(path) in message
    assert words in message
    if b"\r" not in path.read_bytes():
        write(path, path.read_bytes().replace(b"\n", b"\r\n"))
        assert refusal(read_sequences, path) == message


def test_every_truncation_of_a_packed_file_is_refused(tmp_path):
    whole = gzip.compress(SMALL)
    for length in range(1, len(whole)):
        refusal(read_sequences, write(tmp_path / "a.txt.gz", whole[:length]))
    damaged = whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:]
    assert "cannot be unpacked, or is cut off" in refusal(read_sequences, write(tmp_path / "a.txt.gz", damaged))


@given(start=st.sampled_from([b"", SMALL[:10], SMALL[:23], SMALL]), rest=st.binary(max_size=40))
def test_random_bytes_give_a_table_or_one_line(tmp_path_factory, start, rest):
    path = write(tmp_path_factory.mktemp("random") / "a.txt", start + rest)
    try:
        found = read_sequences(path)
    except DataError:
        assert str(path) in refusal(read_sequences, path)
    else:
        assert len(found.X) == found.lengths.sum() > 0
        assert np.isin(found.X[~np.isnan(found.X)], [0, 1]).all()


def test_files_and_folders_are_stacked(tmp_path):
    content = {c: np.full((n, 2), n % 2) for n, c in enumerate(["chr2", "chr1", "chrX", "chr10", "chrM", "chr21"], 1)}
    for c, X in content.items():
        write(tmp_path / f"K562_{c}_binary.txt", binarised(X, chromosome=c))
    write(tmp_path / ".DS_Store", "hidden")
    ordered = ["chr1", "chr2", "chr10", "chr21", "chrM", "chrX"]
    X, lengths = np.vstack([content[c] for c in ordered]), [len(content[c]) for c in ordered]
    for path in (tmp_path, str(tmp_path), [tmp_path]):
        assert_table(read_sequences(path), X, lengths, ordered, ["mark0", "mark1"])
    given_order = read_sequences(str(tmp_path / f"K562_{c}_binary.txt") for c in content)
    assert_table(given_order, np.vstack(list(content.values())), [1, 2, 3, 4, 5, 6], list(content), ["mark0", "mark1"])


def test_cell_types_are_told_apart_only_where_they_share_chromosomes(tmp_path):
    one, two, three = (
        write(tmp_path / f"{cell}_{c}.txt", binarised([[0, 1]], cell, c))
        for cell, c in (("K562", "chr1"), ("HepG2", "chr2"), ("HepG2", "chr1"))
    )
    assert read_sequences([one, two]).sequences == ["chr1", "chr2"]
    assert read_sequences([one, two, three]).sequences == ["K562_chr1", "HepG2_chr2", "HepG2_chr1"]


def test_files_that_do_not_go_together(tmp_path):
    one = write(tmp_path / "one.txt", binarised([[0, 1]], marks=["a", "b"]))
    other = write(tmp_path / "other.txt", binarised([[0, 1]], chromosome="chr2", marks=["a", "c"]))
    turned = write(tmp_path / "turned.txt", binarised([[0, 1]], chromosome="chr2", marks=["b", "a"]))
    table = write(tmp_path / "table.csv", "1,2\n3,4\n")
    again = write(tmp_path / "again.txt.gz", gzip.compress(one.read_bytes()))
    for paths, words in (
        ([one, other], f"{one} and {other} must have the same marks, but differ in b, c"),
        ([one, turned], f"{one} and {turned} must have the same marks, but differ in their order"),
        ([one, again], f"{one} and {again} hold the same chromosome"),
        ([one, one], "leave one out"),
        ([one, table], f"{table} cannot be read with other files"),
        ([table, table], f"{table} cannot be read with other files"),
        (tmp_path, "holds table.csv; name a file in it"),
        ([], "no files"),
        (tmp_path / "missing.txt", "no file"),
        ([one, tmp_path / "missing.txt.gz"], "no file"),
        (tmp_path / "missing.npy", "no file"),
    ):
        assert words in refusal(read_sequences, paths)
    assert "leave out column 'a'" in refusal(read_sequences, one, column="a")
    (tmp_path / "empty").mkdir()
    assert "without files" in refusal(read_sequences, tmp_path / "empty")


# Tables ----------------------------------------------------------------------------------------------------------------


def test_a_table_is_one_sequence(tmp_path):
    path = write(tmp_path / "X.csv", "x,kind\n1,b\n,a\n")
    found = read_sequences(path)
    assert_table(found, [[1, 1], [nan, 0]], [2], ["0"], ["x", "kind"])
    assert found.levels == {1: ["a", "b"]}
    np.save(tmp_path / "X.npy", np.arange(6, dtype=np.int16).reshape(3, 2))
    assert_table(read_sequences(tmp_path / "X.npy"), [[0, 1], [2, 3], [4, 5]], [3], ["0"])


def test_a_table_of_doubles_is_mapped(tmp_path):
    np.save(tmp_path / "X.npy", np.eye(3))
    found = read_sequences(tmp_path / "X.npy").X
    assert isinstance(found.base, np.memmap)


@pytest.mark.parametrize("column", ["who", "1"])
def test_text_names_the_sequences(tmp_path, column):
    text = "x,who,kind\n1,bob,u\n2,bob,v\n3,ann,\n,cleo smith,u\n5,cleo smith,v\n"
    found = read_sequences(write(tmp_path / "X.csv", text), column)
    X = [[1, 0], [2, 1], [3, nan], [nan, 0], [5, 1]]
    assert_table(found, X, [2, 1, 2], ["bob", "ann", "cleo smith"], ["x", "kind"])
    assert found.levels == {1: ["u", "v"]}


def test_levels_before_the_column_stay_and_those_after_move(tmp_path):
    text = "a,who,b,c\nu,1,5,x\nv,1,6,y\nu,2,7,x\n"
    assert read_sequences(write(tmp_path / "X.csv", text), "who").levels == {0: ["u", "v"], 2: ["x", "y"]}


@pytest.mark.parametrize(
    ("values", "sequences"),
    [
        (np.array([3, 3, 1]), ["3", "1"]),
        (np.array([3.0, 3.0, -0.0]), ["3", "0"]),
        (np.array([0.1, 0.1, 2.5], np.float32), ["0.1", "2.5"]),
        (np.array([2**62, 2**62, 12345678]), [str(2**62), "12345678"]),
        (np.array([True, True, False]), ["1", "0"]),
        (np.array([1e300, 1e300, np.inf]), [str(int(1e300)), "inf"]),
    ],
)
def test_numbers_name_the_sequences(tmp_path, values, sequences):
    X = np.column_stack([values, np.arange(3).astype(values.dtype)])
    np.save(tmp_path / "X.npy", X)
    assert_table(read_sequences(tmp_path / "X.npy", "0"), X[:, 1:], [2, 1], sequences)


def test_names_of_columns_go_before_numbers(tmp_path):
    path = write(tmp_path / "X.csv", "x,1,0\n1,2,3\n4,5,3\n")
    assert_table(read_sequences(path, "0"), [[1, 2], [4, 5]], [2], ["3"], ["x", "1"])
    assert_table(read_sequences(path, "2"), [[1, 2], [4, 5]], [2], ["3"], ["x", "1"])


def test_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1.5, 2.5, 3.5], "who": pandas.Categorical(["b", "a", "a"]), "run": [7, 7, 9]})
    frame.to_parquet(tmp_path / "X.parquet")
    found = read_sequences(tmp_path / "X.parquet", "who")
    assert_table(found, [[1.5, 7], [2.5, 7], [3.5, 9]], [1, 2], ["b", "a"], ["x", "run"])
    assert read_sequences(tmp_path / "X.parquet", "run").sequences == ["7", "9"]


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("x,s\n1,a\n2,b\n3,a\n", "s", "'a' comes back in row 2 (from 0) after 'b'; put the rows"),
        ("x,s\n1,1\n2,2\n3,3\n4,2\n5,1\n", "s", "'2' comes back in row 3 (from 0) after '3'"),
        ("x,s\n1,a\n2,\n3,a\n", "s", "row 1 (from 0) is missing"),
        ("x,s\n1,1\n2,1\n3,nan\n", "s", "row 2 (from 0) is missing"),
        ("x,s\n1,a\n2,b\n", "t", "no columns 't'; its columns are x, s, or 0 to 1"),
        ("x,s\n1,a\n2,b\n", "2", "no columns '2'"),
        ("x,s\n1,a\n2,b\n", "-1", "no columns '-1'"),
        ("x,s\n1,a\n2,b\n", "", "no columns ''"),
        ("1,2\n3,4\n", "x", "its columns are 0 to 1"),
        ("x,x\n1,2\n3,4\n", "x", "2 columns 'x'"),
        ("s\n1\n2\n", "s", "no other column"),
    ],
)
def test_columns_that_name_no_sequences(tmp_path, text, column, words):
    path = write(tmp_path / "X.csv", text)
    message = refusal(read_sequences, path, column)
    assert str(path) in message
    assert words in message


# Arrays with lengths ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", ">i4"])
def test_lengths_in_npz(tmp_path, save, dtype):
    X, path = np.arange(12.0).reshape(6, 2), tmp_path / "X.npz"
    save(path, X=X, lengths=np.array([3, 1, 2], dtype), other=np.array(["a"]))
    assert_table(read_sequences(path), X, [3, 1, 2], ["0", "1", "2"])
    save(path, X=X, doc_range=np.array([0, 3, 4, 6], dtype), Xprev=X)
    assert_table(read_sequences(path), X, [3, 1, 2], ["0", "1", "2"])
    save(path, X=X.astype(np.float32))
    assert_table(read_sequences(path), X, [6], ["0"])


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("lengths", [3, 2], "the sequences have 5 rows together, but X has 6"),
        ("lengths", [3, 0, 3], "lengths must be at least 1; number 1 (from 0) is 0"),
        ("lengths", [-1, 7], "number 0 (from 0) is -1"),
        ("lengths", [3.0, 3.0], "integers, not float64"),
        ("lengths", [[3, 3]], "of shape (1, 2)"),
        ("lengths", np.zeros(0, int), "of shape (0,)"),
        ("lengths", 6, "of shape ()"),
        ("lengths", ["3", "3"], "integers, not <U1"),
        ("lengths", np.array([2**64 - 1, 7], np.uint64), "is -1"),
        ("doc_range", [1, 6], "doc_range must run from 0"),
        ("doc_range", [0], "doc_range must run from 0"),
        ("doc_range", [0, 4], "have 4 rows together"),
        ("doc_range", [0, 4, 3, 6], "steps of doc_range must be at least 1; number 1 (from 0) is -1"),
        ("doc_range", [0, 4, 4, 6], "steps of doc_range must be at least 1"),
    ],
)
def test_lengths_that_do_not_fit(tmp_path, name, values, words):
    np.savez(tmp_path / "X.npz", X=np.ones((6, 2)), **{name: values})
    message = refusal(read_sequences, tmp_path / "X.npz")
    assert "X.npz" in message
    assert words in message


def test_other_npz(tmp_path):
    path = tmp_path / "X.npz"
    np.savez(path, X=np.ones((2, 2)), lengths=[1, 1])
    assert "leave out column '0'" in refusal(read_sequences, path, "0")
    np.savez(path, X=np.ones((2, 2)), lengths=np.array([1, None]))
    assert "'lengths' holds Python objects" in refusal(read_sequences, path)
    scipy.sparse.save_npz(path, scipy.sparse.eye_array(3).tocsr())
    assert "X.toarray()" in refusal(read_sequences, path)
    np.savez(path, X=np.column_stack([[1, 1, 4], [7, 8, 9]]))
    assert_table(read_sequences(path, "0"), [[7], [8], [9]], [2, 1], ["1", "4"])


def test_every_truncation_of_npz_is_refused(tmp_path):
    path = tmp_path / "X.npz"
    np.savez(path, X=np.eye(5), lengths=[2, 3])
    whole = path.read_bytes()
    for length in {*range(0, len(whole), 7), len(whole) - 1}:
        refusal(read_sequences, write(path, whole[:length]))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damaged_lengths_are_refused(tmp_path, save):
    path = tmp_path / "X.npz"
    save(path, X=np.eye(5), lengths=[2, 3])
    whole = path.read_bytes()
    start = whole.index(b"lengths.npy") + len(b"lengths.npy")
    for n in range(start, len(whole[start:].partition(b"PK")[0]) + start):
        try:
            found = read_sequences(write(path, whole[:n] + bytes([whole[n] ^ 0xFF]) + whole[n + 1 :]))
        except DataError:
            assert "is damaged" in refusal(read_sequences, path)
        else:
            assert_table(found, np.eye(5), [2, 3], ["0", "1"])  # a byte that nobody reads


def test_damage_anywhere_in_npz_is_refused(tmp_path):
    path = tmp_path / "X.npz"
    for save in (np.savez, np.savez_compressed, lambda path, X: scipy.sparse.save_npz(path, scipy.sparse.csr_array(X))):
        save(path, X=np.eye(3))
        whole = path.read_bytes()
        for n in range(len(whole)):
            changed = (0x01, 0xFF)[n % 2]
            write(path, whole[:n] + bytes([whole[n] ^ changed]) + whole[n + 1 :])
            with contextlib.suppress(DataError):
                np.testing.assert_array_equal(read_sequences(path).X, np.eye(3))  # a byte that nobody reads


# BED files -------------------------------------------------------------------------------------------------------------


def plain_bed(labels, lengths, chromosomes, bin_size, names):
    """Bin by bin."""
    lines, t = [], 0
    for length, chromosome in zip(lengths, chromosomes):
        for start in range(length):
            k = names[labels[t]]
            if start and lines[-1][3] == k:
                lines[-1][2] += bin_size
            else:
                lines.append([chromosome, start * bin_size, (start + 1) * bin_size, k])
            t += 1
    return "".join("\t".join(map(str, line)) + "\n" for line in lines)


@given(
    parts=st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=5),
    bin_size=st.sampled_from([1, 200, 2**31 - 1]),
    names=st.sampled_from([None, ["Active TSS", "1_x", "é"]]),
    runs=st.sampled_from([1, 3, 1 << 16]),
)
def test_bed_has_the_runs_of_every_sequence(tmp_path_factory, parts, bin_size, names, runs):
    path = tmp_path_factory.mktemp("bed") / "states.bed"
    labels, lengths = np.concatenate(parts), [len(part) for part in parts]
    chromosomes = [f"chr{g}" for g in range(len(parts))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stickbreak.data.bed_files.RUNS", runs)
        write_bed(path, labels, lengths, chromosomes, bin_size, names)
    expected = plain_bed(labels, lengths, chromosomes, bin_size, names or ["E1", "E2", "E3"])
    assert path.read_bytes() == expected.encode()


def test_bed_by_hand(tmp_path):
    write_bed(tmp_path / "a.bed", np.array([1, 1, 0, 0, 2], np.uint8), [3, 2], ["chr1", "chrX"], 200)
    text = "chr1\t0\t400\tE2\nchr1\t400\t600\tE1\nchrX\t0\t200\tE1\nchrX\t200\t400\tE3\n"
    assert (tmp_path / "a.bed").read_text() == text


def test_bed_of_what_was_read(tmp_path):
    for c in ("chr10", "chr9"):
        write(tmp_path / f"{c}.txt", binarised([[0], [0], [1]], chromosome=c))
    table = read_sequences([tmp_path / "chr9.txt", tmp_path / "chr10.txt"])
    write_bed(
        tmp_path / "a.bed", table.X[:, 0].astype(int), table.lengths, table.sequences, np.int32(10), ("no", "yes")
    )
    lines = [f"{c}\t0\t20\tno\n{c}\t20\t30\tyes\n" for c in ("chr9", "chr10")]
    assert (tmp_path / "a.bed").read_text() == "".join(lines)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bin_size": 0}, "bin_size must be a whole number of bases, at least 1; it is 0"),
        ({"bin_size": 200.0}, "it is 200.0"),
        ({"bin_size": 2**31}, "bin_size"),
        ({"bin_size": "200"}, "it is '200'"),
        ({"lengths": [2, 2]}, "add up to 4, but there are 3 labels"),
        ({"lengths": [3, 0]}, "lengths must be at least 1; number 1 (from 0) is 0"),
        ({"lengths": [2.0, 1.0]}, "lengths must be a list of integers, not float64"),
        ({"lengths": 3}, "of shape ()"),
        ({"labels": [0, -1, 1]}, "labels must be at least 0; number 1 (from 0) is -1"),
        ({"labels": [0, 1.5, 1]}, "labels must be a list of integers"),
        ({"labels": [0, nan, 1]}, "labels must be a list of integers"),
        ({"labels": [[0, 1, 1]]}, "of shape (1, 3)"),
        ({"labels": [], "lengths": []}, "labels must be"),
        ({"chromosomes": ["chr1"]}, "2 different ones are needed"),
        ({"chromosomes": ["chr1", "chr1"]}, "a file for each cell type"),
        ({"chromosomes": "chr1"}, "2 different ones"),
        ({"chromosomes": ["chr1", "chr 2"]}, "chromosomes: 'chr 2' is empty, or has white space"),
        ({"chromosomes": ["chr1", "chr\t2"]}, r"'chr\t2'"),
        ({"chromosomes": ["chr1", "chr2\n"]}, r"'chr2\n'"),
        ({"chromosomes": ["", "chr2"]}, "'' is empty"),
        ({"names": ["one"]}, "label 1 has no name: there are 1 names"),
        ({"names": ["one", "t\two"]}, r"names: 't\two'"),
        ({"names": ["one", "two\n"]}, r"names: 'two\n'"),
        ({"names": ["one", ""]}, "names: ''"),
    ],
)
def test_bed_mistakes_leave_the_old_file(tmp_path, changes, words):
    path = write(tmp_path / "a.bed", "old")
    good = {"labels": [0, 1, 1], "lengths": [2, 1], "chromosomes": ["chr1", "chr2"], "bin_size": 200}
    assert words in refusal(write_bed, path, **(good | changes))
    assert path.read_text() == "old"
    write_bed(path, **good)
    assert path.read_text().startswith("chr1\t0\t200\tE1\n")
    assert list(tmp_path.iterdir()) == [path]


def test_labels_may_be_far_apart(tmp_path):
    write_bed(tmp_path / "a.bed", [2**62], [1], ["c"], 1)
    assert (tmp_path / "a.bed").read_text() == f"c\t0\t1\tE{2**62 + 1}\n"


def test_bed_where_there_is_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="folder"):
        write_bed(tmp_path / "none" / "a.bed", [0], [1], ["c"], 1)


def test_reading_needs_no_estimators():
    code = "import stickbreak.data.bed_files, sys; sys.exit('stickbreak.estimators' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_lengths_whose_sum_overflows(tmp_path):
    path = tmp_path / "X.npz"
    np.savez(path, X=np.ones((4, 2)), lengths=np.array([2**63 - 1, 2**63 - 1, 6]))
    assert "have 18446744073709551620 rows together, but X has 4" in refusal(read_sequences, path)


def test_what_packed_text_may_unpack_to(tmp_path):
    path = write(tmp_path / "a.txt.gz", gzip.compress(SMALL + b"0\t1\n" * 100_000))
    assert "more than the 1,000 bytes" in refusal(read_sequences, path, None, ReadOptions(max_bytes=1000))
    assert len(read_sequences(path).X) == 100_003


def test_signalling_nan_of_single_precision_is_missing_without_a_warning(tmp_path):
    np.save(tmp_path / "X.npy", np.array([[0x7FA00000, 0]], np.uint32).view(np.float32))
    np.testing.assert_array_equal(read_sequences(tmp_path / "X.npy").X, [[nan, 0.0]])
