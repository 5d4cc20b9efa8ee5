"""Bags of words on disk: the text files of topic models, and a folder of arrays that may be larger than memory."""

import gzip
import json
import os
import re
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .files import DataError

FORMAT, VERSION = "stickbreak-corpus", 1
RECORD, VOCABULARY = "corpus.json", "vocabulary.txt"
COLUMNS = {"indptr": "<i8", "indices": "<i4", "counts": "<f4"}
MOST = 2**31 - 2  # the largest D, V, term or count of a text file; indices stay 32 bits wide
TEXT_BYTES, BLOCK_ROWS = 1 << 20, 4096  # what is held at once
DOCUMENT = re.compile(rb"\s*\d+(?:\s+\d+:\d+)*\s*")
ENDINGS = {".ldac": True, ".dat": True, ".txt": False}  # LDA-C, or UCI


def read_corpus(path: str | Path) -> tuple[sparse.csr_array, list[str] | None]:
    """Read the bags of words of a text file into memory.

    Parameters
    ----------
    path : the ending decides, before a ``.gz`` if there is one.  ``.ldac``, ``.dat``: LDA-C, a document a line, ``M
        term:count term:count ...`` with M pairs and terms from 0.  ``.txt``: UCI, lines with D, V and the number of
        entries, then the entries ``document word count`` in any order, documents and words from 1.

    Returns
    -------
    Counts (D, V) in float64, sorted, repeated pairs added up and zeros left out; and V words, or None.  These are the
    lines of ``vocab.<name>.txt``, ``<stem>.vocab`` or ``vocab.txt`` beside the file, the first that has V lines.  LDA-C
    does not tell V: it is the largest term plus one, or the length of a vocabulary that is longer.

    Raises
    ------
    DataError : the file is missing, of an unknown kind, cut off or wrong; the message names the line.
    """
    path = Path(path)
    blocks = list(_blocks(path, whole=True))
    V = max((block.shape[1] for block in blocks), default=0)
    words = _vocabulary(path, V, longer=_is_ldac(path))
    for block in blocks:
        block.resize(block.shape[0], V if words is None else len(words))
    if sum(block.shape[0] for block in blocks) == 0:
        raise DataError(f"{path} holds no documents.")
    return sparse.vstack(blocks, format="csr"), words


def write_corpus(folder: str | Path, documents: Any, n_words: int | None = None) -> None:
    """Write bags of words piece by piece to a folder that `open_corpus` maps.

    The folder appears, or takes the place of an older corpus, when all is written; a write that fails leaves no trace.

    Parameters
    ----------
    folder : where to
    documents : a file as in `read_corpus`, if UCI sorted by document; its vocabulary is copied to ``vocabulary.txt``.
        Or sparse arrays (n, V), one or an iterable of them, of counts >= 0.  Kept in float32: exact to 16,777,216.
    n_words : V; by default that of the file, or of the widest array

    Raises
    ------
    DataError : the file or the counts cannot be used, or ``n_words`` is too small.
    FileExistsError : ``folder`` is something else than a corpus; name another or remove it.
    FileNotFoundError : the folder that should hold ``folder`` does not exist.
    """
    target = Path(os.path.realpath(folder))
    _check_target(target)
    path = Path(documents) if isinstance(documents, (str, os.PathLike)) else None
    blocks = _blocks(path) if path is not None else [documents] if sparse.issparse(documents) else documents
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        temporary.mkdir()
        D, V, nnz = _write_arrays(temporary, blocks, n_words)
        words = None if path is None else _vocabulary(path, V, longer=n_words is None and _is_ldac(path))
        if words is not None:
            V = len(words)
            (temporary / VOCABULARY).write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
        record = {"format": FORMAT, "version": VERSION, "n_documents": D, "n_words": V, "n_entries": nnz}
        record["vocabulary"] = None if words is None else VOCABULARY
        (temporary / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        _replace(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def open_corpus(folder: str | Path) -> sparse.csr_array:
    """Map the corpus that `write_corpus` wrote, without reading it.

    To read some rows, slice its three arrays: with ``X[a:b]`` or ``X[rows]`` SciPy copies all of ``indices`` as int64,
    unless ``X.indptr`` is replaced by a copy of 32 bits, where ``X.nnz`` allows.

    Returns
    -------
    Counts (D, V), sorted and without zeros; ``data`` float32, ``indices`` int32 and ``indptr`` int64 are read-only maps.

    Raises
    ------
    DataError : there is no corpus, it is damaged, or it comes from a newer version.
    """
    folder = Path(folder)
    record = _read_record(folder)
    D, V, nnz = (record[name] for name in ("n_documents", "n_words", "n_entries"))
    sizes = {"indptr": D + 1, "indices": nnz, "counts": nnz}
    maps = [_map(folder / f"{name}.npy", dtype, sizes[name]) for name, dtype in COLUMNS.items()]
    if maps[0][0] != 0 or maps[0][-1] != nnz:
        raise DataError(f"{folder / 'indptr.npy'} is damaged: it should run from 0 to {nnz}; write the corpus again.")
    X = sparse.csr_array((D, V), dtype=np.float32)
    X.indptr, X.indices, X.data = maps  # the constructor would convert the first to 32 bits, or the second to 64
    X.has_canonical_format = True
    return X


def is_corpus(path: str | Path) -> bool:
    """Whether a path is a folder, or a text file of bags of words by its ending."""
    name = Path(path).name.lower().removesuffix(".gz")
    return Path(path).is_dir() or Path(name).suffix in ENDINGS


def open_bags(path: str | Path) -> tuple[sparse.csr_array, list[str] | None]:
    """The counts of a corpus folder, mapped, or of a text file, and the vocabulary, or None."""
    path = Path(path)
    if not path.is_dir():
        return read_corpus(path)
    X, file = open_corpus(path), path / VOCABULARY
    return X, file.read_text(encoding="utf-8").splitlines() if file.is_file() else None


def _is_ldac(path: Path) -> bool:
    if not path.is_file():
        raise DataError(f"{path} is a directory; name a file in it." if path.is_dir() else f"there is no file {path}.")
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in ENDINGS:
        raise DataError(f"{path} has an unknown ending; known are {', '.join(ENDINGS)}, and each with .gz.")
    return ENDINGS[suffix]


def _blocks(path: Path, whole: bool = False) -> Iterator[sparse.csr_array]:
    """Documents of a file, a few at a time; those of a UCI file in one piece if ``whole``, and then in any order."""
    if _is_ldac(path):
        return _ldac_blocks(path)
    D, V, nnz = _uci_header(path)
    tables = _uci_tables(path, D, V, nnz)
    return iter([_counts(np.concatenate(list(tables)), 0, D, V)]) if whole else _uci_blocks(path, tables, D, V)


def _text(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Pieces of a file: the number of the first line, and the lines; empty lines at the end are left out."""
    first, held = 1, list[bytes]()
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            while read := file.readlines(TEXT_BYTES):
                lines = held + read
                n = next((n for n in range(len(lines), 0, -1) if lines[n - 1].strip()), 0)
                held = lines[n:]
                if n:
                    yield first, lines[:n]
                first += n
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}, after line {first - 1}: cannot be read, or is cut off: {error}") from error


def _ldac_blocks(path: Path) -> Iterator[sparse.csr_array]:
    """Documents of an LDA-C file (n, largest term + 1)."""
    for first, lines in _text(path):
        sizes = np.array([line.count(b":") for line in lines])
        ends = np.cumsum(1 + 2 * sizes)
        starts = ends - 1 - 2 * sizes  # where each M stands among the numbers
        good = all(DOCUMENT.fullmatch(line) for line in lines)
        numbers = np.fromstring(b" ".join(lines).replace(b":", b" ") if good else b"", np.int64, sep=" ")
        if not good or numbers.max() > MOST or not np.array_equal(numbers[starts], sizes):
            for number, line in enumerate(lines, first):
                _check_document(f"{path}, line {number}", line)
        terms, counts = np.delete(numbers, starts).reshape(-1, 2).T
        edges = np.concatenate([[0], np.cumsum(sizes)])
        yield _tidy(sparse.csr_array((counts.astype(float), terms, edges), (len(lines), terms.max(initial=-1) + 1)))


def _check_document(where: str, line: bytes) -> None:
    head, *pairs = line.split() or [b""]
    M = _whole(where, "number of pairs (0 for an empty document)", head)
    for term, _, count in (pair.partition(b":") for pair in pairs):
        _whole(where, f"count of term {_whole(where, 'term', term)}", count)
    if len(pairs) != M:
        raise DataError(f"{where}: {len(pairs)} pairs where the first number announces {M}; the line may be cut off.")


def _whole(where: str, name: str, text: bytes, most: int = MOST, least: int = 0) -> int:
    if not text.isdigit() or len(text) > 20 or not least <= int(text) <= most:
        shown = text.decode(errors="replace")[:40]
        raise DataError(f"{where}: the {name} is {shown!r}, not a whole number from {least} to {most}.")
    return int(text)


def _uci_header(path: Path) -> list[int]:
    """D, V and the number of entries."""
    names = {"number of documents D": MOST, "number of words V": MOST, "number of entries": 2**53}
    _, lines = next(_text(path), (1, []))
    if len(lines) < len(names):
        raise DataError(f"{path}, line {len(lines) + 1}: cut off before the {list(names)[len(lines)]}.")
    return [_whole(f"{path}, line {i + 1}", name, lines[i].strip(), names[name]) for i, name in enumerate(names)]


def _uci_tables(path: Path, D: int, V: int, nnz: int) -> Iterator[NDArray[np.int64]]:
    """Entries (n, 3) of a UCI file: document from 0, word from 0, count."""
    seen = last = 0
    for first, lines in _text(path):
        skip = 3 if first == 1 else 0
        table = _uci_table(path, first + skip, lines[skip:], D, V)
        seen, last = seen + len(table), first + len(lines) - 1
        yield table - np.array([1, 1, 0])
    if seen != nnz:
        cure = "the file is cut off" if seen < nnz else "correct line 3"
        raise DataError(f"{path}, line {last}: {seen} entries up to here where line 3 announces {nnz}; {cure}.")


def _uci_table(path: Path, first: int, lines: list[bytes], D: int, V: int) -> NDArray[np.int64]:
    """The entries on some lines, read at once where all are well, and one by one to find what is not."""
    if not lines:
        return np.empty((0, 3), np.int64)
    try:
        table: NDArray[np.int64] = np.loadtxt(lines, dtype=np.int64, comments=None, ndmin=2)
        if table.shape == (len(lines), 3) and (table >= [1, 1, 0]).all() and (table <= [D, V, MOST]).all():
            return table
    except ValueError:
        pass
    return np.array([_entry(f"{path}, line {number}", line, D, V) for number, line in enumerate(lines, first)])


def _entry(where: str, line: bytes, D: int, V: int) -> list[int]:
    cells = line.split()
    if len(cells) != 3:
        raise DataError(f"{where}: {len(cells)} numbers where 3 are expected: document, word and count.")
    document, word, count = cells
    return [_whole(where, "document", document, D, 1), _whole(where, "word", word, V, 1), _whole(where, "count", count)]


def _uci_blocks(path: Path, tables: Iterable[NDArray[np.int64]], D: int, V: int) -> Iterator[sparse.csr_array]:
    """Whole documents, one block per table, from tables sorted by document."""
    start, rest = 0, np.empty((0, 3), np.int64)
    for table in tables:
        rest = np.concatenate([rest, table])
        order = np.concatenate([[start], rest[:, 0]])
        if (back := np.flatnonzero(np.diff(order) < 0)).size:
            before, after = order[back[0] : back[0] + 2] + 1
            raise DataError(
                f"{path}: document {after} follows document {before}; sort the entries by document, or pass "
                "read_corpus(path)[0], which needs them all in memory."
            )
        stop = int(order[-1])  # may go on in the next table
        edge = int(np.searchsorted(rest[:, 0], stop))
        yield _counts(rest[:edge], start, stop, V)
        start, rest = stop, rest[edge:]
    yield _counts(rest, start, D, V)


def _counts(table: NDArray[np.int64], start: int, stop: int, V: int) -> sparse.csr_array:
    """Documents start, ..., stop - 1 of a table of entries."""
    documents, words, counts = table.T
    return _tidy(sparse.csr_array((counts.astype(float), (documents - start, words)), (stop - start, V)))


def _tidy(X: sparse.csr_array) -> sparse.csr_array:
    """Sort the words of each document, add up repeated ones and leave out zeros, in place."""
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def _vocabulary(path: Path, V: int, longer: bool) -> list[str] | None:
    """The words in a file beside a corpus, the first with V lines, or more than V if ``longer``."""
    stem = Path(path.name.removesuffix(".gz")).stem
    name = stem.removeprefix("docword.")
    for candidate in (f"vocab.{name}.txt", f"{stem}.vocab", f"{name}.vocab", "vocab.txt"):
        file = path.with_name(candidate)
        if file.is_file() and file != path:
            try:
                words = [word.strip() for word in file.read_text(encoding="utf-8-sig").rstrip().split("\n")]
            except UnicodeDecodeError as error:
                raise DataError(f"{file} is not a text file in UTF-8; save it as one: {error}") from error
            if len(words) == V or (longer and len(words) > V):
                return words
    return None


def _write_arrays(folder: Path, blocks: Iterable[Any], n_words: int | None) -> tuple[int, int, int]:
    """D, V and the number of entries written."""
    D, V, nnz = 0, int(n_words or 0), 0
    with ExitStack() as stack:
        append = {n: stack.enter_context(_growing(folder / f"{n}.npy", dtype)) for n, dtype in COLUMNS.items()}
        append["indptr"](np.zeros(1))
        for number, block in enumerate(blocks):
            for X in _pieces(f"block {number} of documents", block, n_words):
                append["indptr"](nnz + X.indptr[1:].astype(np.int64))
                append["indices"](X.indices)
                append["counts"](X.data)
                D, V, nnz = D + X.shape[0], max(V, X.shape[1]), nnz + X.nnz
    if D == 0:
        raise DataError("there are no documents to write.")
    return D, V, nnz


def _pieces(name: str, block: Any, n_words: int | None) -> Iterator[sparse.csr_array]:
    """Tidy copies of a few rows at a time."""
    if not sparse.issparse(block) or block.ndim != 2:
        raise DataError(f"{name} is a {type(block).__name__}, not a sparse array (n, V); wrap it in csr_array.")
    if block.shape[1] > (most := MOST + 1 if n_words is None else n_words):
        raise DataError(
            f"{name} has {block.shape[1]} words where n_words allows {most}; raise n_words or leave it out."
        )
    block = sparse.csr_array(block)
    for start in range(0, block.shape[0], BLOCK_ROWS):
        edges = block.indptr[start : start + BLOCK_ROWS + 1].astype(np.int64)
        arrays = block.data[edges[0] : edges[-1]], block.indices[edges[0] : edges[-1]], edges - edges[0]
        X = sparse.csr_array(arrays, (len(edges) - 1, block.shape[1]), dtype=np.float64, copy=True)
        wrong = X.data[~((X.data >= 0) & (X.data < np.inf))]
        if len(wrong):
            raise DataError(f"{name} holds a count of {wrong[0]}; counts must be finite and at least 0.")
        yield _tidy(X)


@contextmanager
def _growing(path: Path, dtype: str) -> Iterator[Callable[[NDArray[Any]], None]]:
    """A function that appends numbers to a .npy file; NumPy leaves room in the header for the final length."""
    size = 0
    with path.open("xb") as file:

        def header() -> None:
            file.seek(0)
            np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": (size,)})

        def append(values: NDArray[Any]) -> None:
            nonlocal size
            size += len(values)
            file.write(values.astype(dtype).tobytes())

        header()
        yield append
        header()
        file.flush()
        os.fsync(file.fileno())


def _check_target(target: Path) -> None:
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {target}: the folder {target.parent} does not exist.")
    if target.exists():
        own = {RECORD, VOCABULARY, *(f"{name}.npy" for name in COLUMNS)}
        found = {file.name for file in target.iterdir()} if target.is_dir() else set()
        if RECORD not in found or found - own:
            what = f"holds {min(found - own)!r}" if found - own else f"has no {RECORD}"
            raise FileExistsError(f"{target} is not a corpus: it {what}; name another folder or remove it.")


def _replace(temporary: Path, target: Path) -> None:
    """Put one folder in the place of another, which stays if that fails."""
    old = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        if target.exists():
            target.rename(old)
        temporary.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _read_record(folder: Path) -> dict[str, Any]:
    file = folder / RECORD
    if not file.is_file():
        raise DataError(f"{folder} is not a corpus: it has no {RECORD}; write_corpus makes one.")
    try:
        record = json.loads(file.read_bytes())
        sizes = [record[name] for name in ("n_documents", "n_words", "n_entries", "version")]
        good = record["format"] == FORMAT and all(type(size) is int and size >= 0 for size in sizes)
    except (ValueError, LookupError, TypeError):
        good = False
    if not good:
        raise DataError(f"{file} is damaged, or not the record of a corpus; write the corpus again.")
    if record["version"] > VERSION:
        raise DataError(f"{folder} has format {record['version']}, this version reads {VERSION}; upgrade stickbreak.")
    return dict(record)


def _map(file: Path, dtype: str, size: int) -> NDArray[Any]:
    try:
        found = np.load(file, mmap_mode="r", allow_pickle=False)
        if found.shape != (size,) or found.dtype != np.dtype(dtype):
            raise ValueError(f"{found.shape} numbers of type {found.dtype} instead of {(size,)} of {np.dtype(dtype)}")
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{file} is missing, damaged or cut off; write the corpus again: {error}") from error
    return np.asanyarray(found)
