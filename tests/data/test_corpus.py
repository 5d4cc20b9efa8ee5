"""Bags of words on disk: what is read, what is written and mapped, and what the user is told otherwise."""

import gzip
import json
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from stickbreak.data.bag_files import read_corpus
from stickbreak.data.corpus import open_bags, open_corpus, write_corpus
from stickbreak.data.files import DataError, ReadOptions

ARRAYS = ("indptr", "indices", "counts")


def some_counts(D=40, V=25, seed=0):
    """Counts (D, V) with empty documents at both ends and words never used."""
    X = np.random.default_rng(seed).poisson(0.3, (D, V)).astype(float)
    X[[0, D // 2, D - 1]] = 0.0
    X[:, [0, V // 2]] = 0.0
    X[1, V - 1] = 12.0
    return X


def ldac(X):
    return "".join(f"{len(w)} {' '.join(f'{v}:{row[v]:.0f}' for v in w)}\n" for row in X for w in [row.nonzero()[0]])


def uci(X, order=slice(None)):
    entries = [f"{d + 1} {v + 1} {X[d, v]:.0f}\n" for d, v in np.argwhere(X)[order]]
    return f"{X.shape[0]}\n{X.shape[1]}\n{len(entries)}\n" + "".join(entries)


TEXTS = {"a.ldac": ldac, "a.dat": ldac, "docword.a.txt": uci, "a.txt": uci}


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def same(found, X, dtype):
    assert isinstance(found, sparse.csr_array)
    assert found.dtype == dtype
    assert found.has_canonical_format
    assert (found.data != 0.0).all()
    np.testing.assert_array_equal(found.toarray(), X)


def refusal(action, *arguments, kind=DataError):
    """The one line a user sees."""
    with pytest.raises(kind) as caught:
        action(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", TEXTS)
def test_round_trips(tmp_path, name, packed):
    X = some_counts()
    content = TEXTS[name](X).encode()
    path = write(tmp_path / (name + ".gz" * packed), gzip.compress(content) if packed else content)
    found, words = read_corpus(path)
    assert words is None
    same(found, X, np.float64)
    write_corpus(tmp_path / "corpus", path)
    same(open_corpus(tmp_path / "corpus"), X, np.float32)
    assert {file.name for file in (tmp_path / "corpus").iterdir()} == {*(f"{n}.npy" for n in ARRAYS), "corpus.json"}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("X", [np.array([[0.0, 3.0]]), np.array([[0.0, 3.0]] * 3), np.array([[7.0], [0.0]])])
def test_small_corpora(tmp_path, name, X):
    for content in (TEXTS[name](X), TEXTS[name](X).rstrip(), TEXTS[name](X).replace("\n", "\r\n") + "\r\n \r\n"):
        path = write(tmp_path / name, content)
        same(read_corpus(path)[0], X, np.float64)
        write_corpus(tmp_path / "corpus", path)
        same(open_corpus(tmp_path / "corpus"), X, np.float32)


@pytest.mark.parametrize(("name", "content", "V"), [("a.ldac", "0\n0\n", 0), ("a.txt", "2\n3\n0\n", 3)])
def test_all_documents_may_be_empty(tmp_path, name, content, V):
    path = write(tmp_path / name, content)
    same(read_corpus(path)[0], np.zeros((2, V)), np.float64)
    write_corpus(tmp_path / "corpus", path)
    same(open_corpus(tmp_path / "corpus"), np.zeros((2, V)), np.float32)


@pytest.mark.parametrize("piece", [20, 300])
@pytest.mark.parametrize("name", TEXTS)
def test_pieces_of_text_need_not_end_with_a_document(tmp_path, monkeypatch, name, piece):
    X = some_counts()
    path = write(tmp_path / name, TEXTS[name](X) + "\n" * 50)
    monkeypatch.setattr("stickbreak.data.bag_files.TEXT_BYTES", piece)
    monkeypatch.setattr("stickbreak.data.corpus.BLOCK_ROWS", 7)
    same(read_corpus(path)[0], X, np.float64)
    write_corpus(tmp_path / "corpus", path)
    same(open_corpus(tmp_path / "corpus"), X, np.float32)


def test_uci_entries_in_any_order(tmp_path):
    X = some_counts()
    n = len(np.argwhere(X))
    path = write(tmp_path / "a.txt", uci(X, np.random.default_rng(0).permutation(n)))
    same(read_corpus(path)[0], X, np.float64)
    assert "follows document" in refusal(write_corpus, tmp_path / "corpus", path)
    assert not (tmp_path / "corpus").exists()
    write(path, "2\n2\n3\n1 1 1\n2 1 1\n1 2 1\n")
    assert "document 1 follows document 2; sort" in refusal(write_corpus, tmp_path / "corpus", path)


@pytest.mark.parametrize(
    ("name", "content"), [("a.dat", "4 1:2 0:1 1:3 2:0\n"), ("a.txt", "1\n3\n3\n1 2 2\n1 1 1\n1 2 3\n")]
)
def test_words_in_any_order_repeated_or_zero(tmp_path, name, content):
    found, _ = read_corpus(write(tmp_path / name, content))
    same(found, [[1.0, 5.0, 0.0]], np.float64)
    write_corpus(tmp_path / "corpus", tmp_path / name)
    same(open_corpus(tmp_path / "corpus"), [[1.0, 5.0, 0.0]], np.float32)


@pytest.mark.parametrize(
    ("name", "vocabulary"),
    [("docword.a.txt.gz", "vocab.a.txt"), ("docword.a.txt", "a.vocab"), ("a.dat", "a.vocab"), ("a.ldac", "vocab.txt")],
)
def test_vocabulary(tmp_path, name, vocabulary):
    X, words = np.array([[0.0, 2.0], [1.0, 0.0]]), ["café", "tea"]
    path = write(tmp_path / name, gzip.compress(uci(X).encode()) if "docword" in name else ldac(X))
    write(tmp_path / vocabulary, "\ufeffcafé\r\ntea\r\n")
    assert read_corpus(path)[1] == words
    write_corpus(tmp_path / "corpus", path)
    assert (tmp_path / "corpus" / "vocabulary.txt").read_text(encoding="utf-8") == "café\ntea\n"
    assert json.loads((tmp_path / "corpus" / "corpus.json").read_text()) == {
        "format": "stickbreak-corpus", "version": 1, "n_documents": 2, "n_words": 2, "n_entries": 2,
        "vocabulary": "vocabulary.txt",
    }  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_vocabulary_of_another_length(tmp_path, name):
    X = np.array([[0.0, 2.0], [1.0, 0.0]])
    path = write(tmp_path / name, TEXTS[name](X))
    write(tmp_path / "vocab.a.txt", "too\n")
    assert read_corpus(path)[1] is None
    write(tmp_path / "vocab.txt", "one\ntwo\nthree\n")
    V = 3 if TEXTS[name] is ldac else 2  # only LDA-C leaves V open
    found, words = read_corpus(path)
    assert words == (["one", "two", "three"] if V == 3 else None)
    assert found.shape == (2, V)
    write_corpus(tmp_path / "corpus", path)
    assert open_corpus(tmp_path / "corpus").shape == (2, V)
    write_corpus(tmp_path / "corpus", path, n_words=5)
    assert open_corpus(tmp_path / "corpus").shape == (2, 5)
    write(tmp_path / "vocab.a.txt", b"\xff\n")
    assert "UTF-8" in refusal(read_corpus, path)


LDAC_MISTAKES = [
    ("1 0:1\n2 0:1\n", "line 2: 1 pairs where the first number announces 2"),
    ("1 0:1\n0 0:1\n", "line 2: 1 pairs where the first number announces 0"),
    ("1 0:1\n1 0:-1\n", "line 2: the count of term 0 is '-1', not a whole number from 0 to"),
    ("1 0:1.5\n", "line 1: the count of term 0 is '1.5'"),
    ("1 -2:1\n", "line 1: the term is '-2'"),
    ("1 9999999999:1\n", "line 1: the term is '9999999999'"),
    ("1 0:" + "9" * 30 + "\n", "line 1: the count of term 0 is '999999"),
    ("x 0:1\n", "line 1: the number of pairs (0 for an empty document) is 'x'"),
    ("1 0:1\n\n1 0:1\n", "line 2: the number of pairs (0 for an empty document) is ''"),
    ("1 3\n", "line 1: the count of term 3 is ''"),
    ("1 3:1:1\n", "line 1: the count of term 3 is '1:1'"),
    ("2 3:1 4:\n", "line 1: the count of term 4 is ''"),
    (b"1 \xff:1\n", "line 1: the term is '\ufffd'"),
    ("", "holds no documents"),
    ("\n\n", "holds no documents"),
]
UCI_MISTAKES = [
    ("", "line 1: cut off before the number of documents D"),
    ("2\n3\n", "line 3: cut off before the number of entries"),
    ("2 1:1\n3\n1\n", "line 1: the number of documents D is '2 1:1', not a whole number"),
    ("2\n-3\n1\n", "line 2: the number of words V is '-3'"),
    ("2\n3\n2\n1 1 1\n3 1 1\n", "line 5: the document is '3', not a whole number from 1 to 2"),
    ("2\n3\n2\n0 1 1\n2 1 1\n", "line 4: the document is '0'"),
    ("2\n3\n2\n1 4 1\n2 1 1\n", "line 4: the word is '4', not a whole number from 1 to 3"),
    ("2\n3\n2\n1 1 1\n2 1 -1\n", "line 5: the count is '-1'"),
    ("2\n3\n2\n1 1 1\n2 1 1.5\n", "line 5: the count is '1.5'"),
    ("2\n3\n2\n1 1 1\n2 1 1e9\n", "line 5: the count is '1e9'"),
    ("2\n3\n2\n1 1 1\n2 1 3000000000\n", "line 5: the count is '3000000000'"),
    ("2\n3\n2\n1 1 1\n2 1\n", "line 5: 2 numbers where 3 are expected"),
    ("2\n3\n2\n1 1\n2 1\n", "line 4: 2 numbers where 3 are expected"),
    ("2\n3\n2\n1 1 1\n\n2 1 1\n", "line 5: 0 numbers where 3 are expected"),
    ("2\n3\n3\n1 1 1\n2 1 1\n", "line 5: 2 entries up to here where line 3 announces 3; the file is cut off"),
    ("2\n3\n1\n1 1 1\n2 1 1\n", "line 5: 2 entries up to here where line 3 announces 1; correct line 3"),
    ("0\n3\n0\n", "holds no documents"),
]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [("a.ldac", *mistake) for mistake in LDAC_MISTAKES] + [("a.txt", *mistake) for mistake in UCI_MISTAKES],
)
def test_mistakes_are_located(tmp_path, name, content, message):
    path = write(tmp_path / name, content)
    found = refusal(read_corpus, path)
    assert message in found
    assert message.startswith("holds") or str(path) in found
    written = refusal(write_corpus, tmp_path / "corpus", path)
    assert message in written or "no documents" in written
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_other_files(tmp_path):
    assert "there is no file" in refusal(read_corpus, tmp_path / "a.ldac")
    assert "is a directory" in refusal(read_corpus, tmp_path)
    assert "known are .ldac, .dat, .txt" in refusal(read_corpus, write(tmp_path / "a.csv", ""))
    packed = gzip.compress(ldac(some_counts()).encode())
    for cut in (packed[:-5], packed[:20], packed[:-20] + bytes(20)):
        assert "cut off" in refusal(read_corpus, write(tmp_path / "a.ldac.gz", cut))


@pytest.mark.parametrize("piece", [1, 3, 100])
def test_blocks_are_written_and_mapped(tmp_path, piece):
    X = some_counts() * 0.5
    blocks = [sparse.csr_array(X[i : i + piece]) for i in range(0, len(X), piece)]
    write_corpus(tmp_path / "corpus", iter(blocks))
    found = open_corpus(tmp_path / "corpus")
    same(found, X, np.float32)
    for name, array, dtype in zip(ARRAYS, (found.indptr, found.indices, found.data), (np.int64, np.int32, np.float32)):
        assert isinstance(array, np.memmap)
        assert array.dtype == dtype
        assert not array.flags.writeable
        np.testing.assert_array_equal(array, np.load(tmp_path / "corpus" / f"{name}.npy"))
    np.testing.assert_array_equal(found[3:9].toarray(), X[3:9])
    np.testing.assert_array_equal(found[[7, 2]].toarray(), X[[7, 2]])
    np.testing.assert_allclose(found @ np.arange(25.0), X @ np.arange(25.0))


def test_blocks_are_left_as_they_are(tmp_path):
    block = sparse.csr_array((np.array([1.0, 2.0, 0.0]), np.array([2, 2, 0]), np.array([0, 3])), (1, 3))
    for documents in (block, [block], [block.tocoo()], [sparse.csr_matrix(block)]):
        write_corpus(tmp_path / "corpus", documents, n_words=4)
        same(open_corpus(tmp_path / "corpus"), [[0.0, 0.0, 3.0, 0.0]], np.float32)
    assert block.nnz == 3


def test_a_corpus_may_be_rewritten_from_itself(tmp_path):
    write_corpus(tmp_path / "corpus", sparse.csr_array(some_counts()))
    write_corpus(tmp_path / "corpus", open_corpus(tmp_path / "corpus"))
    same(open_corpus(tmp_path / "corpus"), some_counts(), np.float32)


@pytest.mark.parametrize(
    ("documents", "n_words", "message"),
    [
        ([np.ones((2, 3))], None, "block 0 of documents is a ndarray, not a sparse array"),
        ([sparse.csr_array(np.ones((2, 3)))] * 2, 2, "block 0 of documents has 3 words where n_words allows 2"),
        ([sparse.csr_array([[1.0]]), sparse.csr_array([[-1.0]])], None, "block 1 of documents holds a count of -1.0"),
        ([sparse.csr_array([[np.nan]])], None, "holds a count of nan"),
        ([sparse.csr_array([[np.inf]])], None, "holds a count of inf"),
        ([], None, "no documents"),
        ([sparse.csr_array((0, 3))], None, "no documents"),
    ],
)
def test_blocks_that_cannot_be_written(tmp_path, documents, n_words, message):
    assert message in refusal(write_corpus, tmp_path / "corpus", documents, n_words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("existing", [False, True])
def test_an_interrupted_write_leaves_no_trace(tmp_path, error, existing):
    def blocks():
        yield sparse.csr_array(np.ones((5, 3)))
        raise error("stop")

    folder = tmp_path / "corpus"
    if existing:
        write_corpus(folder, [sparse.csr_array(some_counts())])
    with pytest.raises(error, match="stop"):
        write_corpus(folder, blocks())
    assert list(tmp_path.iterdir()) == [folder] * existing
    if existing:
        same(open_corpus(folder), some_counts(), np.float32)


def test_a_failed_replacement_keeps_the_older_corpus(tmp_path, monkeypatch):
    folder = tmp_path / "corpus"
    write_corpus(folder, [sparse.csr_array(some_counts())])
    rename = type(folder).rename
    seen = []

    def second_fails(self, target):
        seen.append(self)
        if len(seen) == 2:
            raise OSError("disk trouble")
        return rename(self, target)

    monkeypatch.setattr(type(folder), "rename", second_fails)
    with pytest.raises(OSError, match="disk trouble"):
        write_corpus(folder, [sparse.csr_array([[1.0]])])
    assert list(tmp_path.iterdir()) == [folder]
    same(open_corpus(folder), some_counts(), np.float32)


def test_other_folders_are_not_overwritten(tmp_path):
    folder, documents = tmp_path / "mine", [sparse.csr_array([[1.0]])]
    folder.mkdir()
    assert "it has no corpus.json" in refusal(write_corpus, folder, documents, kind=FileExistsError)
    folder.rmdir()
    write_corpus(folder, documents)
    write(folder / "notes.md", "")
    assert "holds 'notes.md'" in refusal(write_corpus, folder, documents, kind=FileExistsError)
    assert "it has no" in refusal(write_corpus, folder / "notes.md", documents, kind=FileExistsError)
    assert "does not exist" in refusal(write_corpus, tmp_path / "a" / "b", documents, kind=FileNotFoundError)
    assert len(list(folder.iterdir())) == 5


def changed(folder, **values):
    record = json.loads((folder / "corpus.json").read_text()) | values
    return write(folder / "corpus.json", json.dumps(record))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "corpus.json").unlink(), "is not a corpus: it has no corpus.json"),
        (lambda folder: write(folder / "corpus.json", "{"), "corpus.json is damaged"),
        (lambda folder: write(folder / "corpus.json", "[]"), "corpus.json is damaged"),
        (lambda folder: write(folder / "corpus.json", b"\xff"), "corpus.json is damaged"),
        (lambda folder: changed(folder, format="other"), "corpus.json is damaged, or not the record"),
        (lambda folder: changed(folder, n_words=-1), "corpus.json is damaged"),
        (lambda folder: changed(folder, n_words="3"), "corpus.json is damaged"),
        (lambda folder: changed(folder, n_words=10**30), "corpus.json is damaged"),
        (lambda folder: changed(folder, n_documents=2**62), "indptr.npy is missing, damaged or cut off"),
        (lambda folder: changed(folder, vocabulary="../secret.txt"), "corpus.json is damaged"),
        (lambda folder: write(folder / "corpus.json", "[" * 100_000), "corpus.json is damaged"),
        (lambda folder: write(folder / "corpus.json", '{"n_words": ' + "9" * 5000 + "}"), "corpus.json is damaged"),
        (lambda folder: write(folder / "corpus.json", '{"n_words": 3}'), "corpus.json is damaged"),
        (
            lambda folder: write(
                folder / "counts.npy", (folder / "counts.npy").read_bytes().replace(b"(50,)", b"(49,)")
            ),
            "counts.npy is missing, damaged or cut off",
        ),
        (
            lambda folder: write(folder / "counts.npy", (folder / "counts.npy").read_bytes().replace(b"}", b"(")),
            "counts.npy is missing, damaged or cut off",
        ),
        (lambda folder: changed(folder, version=2), "has format 2, this version reads 1; upgrade"),
        (lambda folder: changed(folder, n_documents=3), "indptr.npy is missing, damaged or cut off"),
        (lambda folder: changed(folder, n_entries=3), "indices.npy is missing, damaged or cut off"),
        (lambda folder: (folder / "counts.npy").unlink(), "counts.npy is missing"),
        (lambda folder: write(folder / "counts.npy", b""), "counts.npy is missing, damaged or cut off"),
        (
            lambda folder: write(folder / "counts.npy", (folder / "counts.npy").read_bytes()[:-1]),
            "counts.npy is missing",
        ),
        (lambda folder: np.save(folder / "counts.npy", np.ones(50)), "counts.npy is missing, damaged or cut off"),
        (
            lambda folder: np.save(folder / "indptr.npy", np.arange(11)),
            "indptr.npy is damaged: it should run from 0 to 50",
        ),
    ],
)
def test_damage_is_found(tmp_path, damage, message):
    folder = tmp_path / "corpus"
    write_corpus(folder, [sparse.csr_array(np.ones((10, 5)))])
    damage(folder)
    assert message in refusal(open_corpus, folder)


@pytest.mark.parametrize("content", [b"a\nb\n", b"a\nb\nc\nd\ne\nf\n", b"a\nb\nc\nd\n\xff\n", None])
def test_a_vocabulary_fits_its_corpus(tmp_path, content):
    text = write(tmp_path / "a.ldac", "1 0:1\n1 4:2\n")
    write(tmp_path / "vocab.txt", "a\nb b\nc\u2028c\nd\ne\n")
    folder = tmp_path / "corpus"
    write_corpus(folder, text)
    assert open_bags(folder)[1] == ["a", "b b", "c\u2028c", "d", "e"]
    if content is None:
        (folder / "vocabulary.txt").unlink()
    else:
        write(folder / "vocabulary.txt", content)
    assert "vocabulary.txt" in refusal(open_bags, folder)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.txt", "2147483646\n3\n1\n1 1 1\n", "2,147,483,646 documents takes more than the"),
        ("a.txt", "3\n2147483646\n1\n1 1 1\n", "2,147,483,646 words takes more than the"),
        ("a.ldac", "1 2147483646:1\n", "2,147,483,647 words takes more than the"),
    ],
)
def test_sizes_out_of_proportion_to_the_file(tmp_path, name, content, words):
    path = write(tmp_path / name, content)
    assert words in refusal(read_corpus, path)
    assert words in refusal(write_corpus, tmp_path / "corpus", path)
    assert peak_memory(refusal, read_corpus, path) < 5e6


@pytest.mark.parametrize(("name", "line"), [("a.ldac.gz", b"0\n"), ("a.txt.gz", b"1 1 1\n"), ("a.txt.gz", b"\n")])
def test_bombs_of_text(tmp_path, name, line):
    head = b"1\n1\n3000000\n" if "txt" in name else b""
    path = write(tmp_path / name, gzip.compress(head + line * 3_000_000))
    message = refusal(read_corpus, path, ReadOptions(max_bytes=1_500_000))
    assert "it unpacks to more than the 1,500,000 bytes" in message


@pytest.mark.parametrize(
    ("name", "text", "piece", "line"), [("a.ldac", "0\n0\n\n\n0\n", 1, 3), ("a.txt", "2\n3\n1\n\n1 1 1\n", 6, 4)]
)
def test_an_empty_line_at_the_end_of_a_piece(tmp_path, monkeypatch, name, text, piece, line):
    monkeypatch.setattr("stickbreak.data.bag_files.TEXT_BYTES", piece)
    assert f"line {line}: an empty line among others" in refusal(read_corpus, write(tmp_path / name, text))


def peak_memory(action, *arguments):
    tracemalloc.start()
    try:
        action(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_corpus(tmp_path):
    D, V, words, rows = 200_000, 5000, 50, 2000
    seen = []

    def blocks():
        rng = np.random.default_rng(0)
        for _ in range(0, D, rows):
            indices = rng.integers(V // words, size=(rows, words)) + np.arange(0, V, V // words)
            data = rng.integers(1, 5, rows * words).astype(np.float32)
            seen.append(data.sum(dtype=float))
            yield sparse.csr_array((data, indices.ravel(), np.arange(0, rows * words + 1, words)), (rows, V))

    folder = tmp_path / "corpus"
    assert peak_memory(write_corpus, folder, blocks()) < 30e6
    X = open_corpus(folder)
    assert X.shape == (D, V)
    assert X.nnz == D * words
    assert X.data.sum(dtype=float) == sum(seen)
    assert peak_memory(open_corpus, folder) < 2e6  # a zero per document, for a moment
    assert peak_memory(write_corpus, tmp_path / "copy", X) < 30e6


@pytest.mark.parametrize("name", ["a.ldac", "a.txt"])
def test_memory_does_not_grow_with_the_text(tmp_path, monkeypatch, name):
    monkeypatch.setattr("stickbreak.data.bag_files.TEXT_BYTES", 1 << 14)
    X = np.random.default_rng(0).poisson(0.5, (1600, 100))
    peaks = []
    for D in (100, 400, 1600):
        path = write(tmp_path / name, TEXTS[name](X[:D]))
        peaks.append(peak_memory(write_corpus, tmp_path / "corpus", path))
        same(open_corpus(tmp_path / "corpus"), X[:D], np.float32)
    assert peaks[2] < 1.2 * peaks[1]
