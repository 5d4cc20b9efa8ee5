"""Bags of words in text files: LDA-C and UCI, in memory or a few documents at a time."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .streams import open_stream
from .table import DEFAULT, DataError, ReadOptions

MOST = 2**31 - 2  # the largest D, V, term or count of a text file; indices stay 32 bits wide
TEXT_BYTES = 1 << 20  # what is held of a file at once
DOCUMENT = re.compile(rb"\s*\d+(?:\s+\d+:\d+)*\s*")
ENDINGS = {".ldac": True, ".dat": True, ".txt": False}  # LDA-C, or UCI


def read_corpus(path: str | Path, options: ReadOptions = DEFAULT) -> tuple[sparse.csr_array, list[str] | None]:
    """Read the bags of words of a text file into memory.

    Parameters
    ----------
    path : the ending decides, before a ``.gz`` if there is one.  ``.ldac``, ``.dat``: LDA-C, a document a line, ``M
        term:count term:count ...`` with M pairs and terms from 0.  ``.txt``: UCI, lines with D, V and the number of
        entries, then the entries ``document word count`` in any order, documents and words from 1.
    options : the most bytes that the file may unpack to, and that an array of D or of V numbers may take

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
    pieces = list(blocks(path, options, whole=True))
    V = max((block.shape[1] for block in pieces), default=0)
    words = vocabulary(path, V, longer=is_ldac(path))
    for block in pieces:
        block.resize(block.shape[0], V if words is None else len(words))
    if sum(block.shape[0] for block in pieces) == 0:
        raise DataError(f"{path} holds no documents.")
    return sparse.vstack(pieces, format="csr"), words


def is_ldac(path: Path) -> bool:
    """Whether a text file is LDA-C, and not UCI, by its ending."""
    if not path.is_file():
        raise DataError(f"{path} is a directory; name a file in it." if path.is_dir() else f"there is no file {path}.")
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in ENDINGS:
        raise DataError(f"{path} has an unknown ending; known are {', '.join(ENDINGS)}, and each with .gz.")
    return ENDINGS[suffix]


def blocks(path: Path, options: ReadOptions = DEFAULT, whole: bool = False) -> Iterator[sparse.csr_array]:
    """Documents of a file, a few at a time; those of a UCI file in one piece if ``whole``, and then in any order."""
    if is_ldac(path):
        return _ldac_blocks(path, options)
    D, V, nnz = _uci_header(path, options)
    tables = _uci_tables(path, options, D, V, nnz)
    return iter([_counts(np.concatenate(list(tables)), 0, D, V)]) if whole else _uci_blocks(path, tables, D, V)


def _text(path: Path, options: ReadOptions) -> Iterator[tuple[int, list[bytes]]]:
    """Pieces of a file: the number of the first line, and the lines; empty lines at the end are left out."""
    first = 1
    blank = 0  # the line from which a piece had only empty lines, or 0
    try:
        with open_stream(path, options) as file:
            while lines := file.readlines(TEXT_BYTES):
                n = next((n for n in range(len(lines), 0, -1) if lines[n - 1].strip()), 0)
                if n and blank:
                    raise DataError(f"{path}, line {blank}: an empty line among others; leave it out.")
                if n:
                    yield first, lines[:n]
                if n < len(lines):
                    blank = blank or first + n
                first += len(lines)
    except OSError as error:
        raise DataError(f"cannot read {path} after line {first - 1}: {error.strerror or error}.") from error


def _ldac_blocks(path: Path, options: ReadOptions) -> Iterator[sparse.csr_array]:
    """Documents of an LDA-C file (n, largest term + 1)."""
    for first, lines in _text(path, options):
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
        V = int(terms.max(initial=-1)) + 1
        _check_width(path, options, V)
        yield tidy(sparse.csr_array((counts.astype(float), terms, edges), (len(lines), V)))


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


def _check_width(path: Path, options: ReadOptions, V: int) -> None:
    """Refuse so many words that an array with a number for each would be out of proportion to the file."""
    options.check_size(path, 8 * V, f"an array with a number for each of {V:,} words takes")


def _uci_header(path: Path, options: ReadOptions) -> list[int]:
    """D, V and the number of entries."""
    names = {"number of documents D": MOST, "number of words V": MOST, "number of entries": 2**53}
    _, lines = next(_text(path, options), (1, []))
    if len(lines) < len(names):
        raise DataError(f"{path}, line {len(lines) + 1}: cut off before the {list(names)[len(lines)]}.")
    D, V, nnz = (_whole(f"{path}, line {i + 1}", name, lines[i].strip(), names[name]) for i, name in enumerate(names))
    options.check_size(path, 8 * (D + 1), f"an array with a number for each of {D:,} documents takes")
    _check_width(path, options, V)
    return [D, V, nnz]


def _uci_tables(path: Path, options: ReadOptions, D: int, V: int, nnz: int) -> Iterator[NDArray[np.int64]]:
    """Entries (n, 3) of a UCI file: document from 0, word from 0, count."""
    seen = last = 0
    for first, lines in _text(path, options):
        skip = 3 if first == 1 else 0
        table = _uci_table(path, first + skip, lines[skip:], D, V)
        seen = seen + len(table)
        last = first + len(lines) - 1
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
    start = 0
    rest = np.empty((0, 3), np.int64)
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
        start = stop
        rest = rest[edge:]
    yield _counts(rest, start, D, V)


def _counts(table: NDArray[np.int64], start: int, stop: int, V: int) -> sparse.csr_array:
    """Documents start, ..., stop - 1 of a table of entries."""
    documents, words, counts = table.T
    return tidy(sparse.csr_array((counts.astype(float), (documents - start, words)), (stop - start, V)))


def tidy(X: sparse.csr_array) -> sparse.csr_array:
    """Sort the words of each document, add up repeated ones and leave out zeros, in place."""
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def vocabulary(path: Path, V: int, longer: bool) -> list[str] | None:
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
