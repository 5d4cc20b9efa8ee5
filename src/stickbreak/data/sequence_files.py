"""Sequences in files: tables that say where each sequence ends, and ChromHMM's binarised text."""

import os
from codecs import BOM_UTF8
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .frames import Levels
from .numpy_files import is_archive, read_headers, read_npz
from .opening import IN_MEMORY, natural, open_files
from .stored import Stored, Without
from .streams import open_stream
from .table import DEFAULT, DataError, ReadOptions, Table

Name = str | os.PathLike[str]
BINARISED = "binarised text of ChromHMM (.txt, .txt.gz)"
VALUES = np.full(256, np.nan)  # of the characters in a cell; 2 is missing
VALUES[ord("0")], VALUES[ord("1")] = 0.0, 1.0


class SequenceTable(NamedTuple):
    """Rows of all sequences (T, D), one sequence after another, with the number of rows of each (G,) and its name.

    Names of the columns, where the file has any, and levels of those with categories are as in `files.Table`.
    """

    X: Any
    lengths: NDArray[np.int64]
    names: list[str] | None
    sequences: list[str]
    levels: Levels = MappingProxyType({})


class Binarised(NamedTuple):
    """A file of ChromHMM: its cell type and chromosome, the names of its marks, and its cells (T, D) as characters."""

    path: Path
    origin: list[str]
    marks: list[str]
    cells: NDArray[np.uint8]


def read_sequences(
    paths: Name | Iterable[Name], column: str | None = None, options: ReadOptions = DEFAULT
) -> SequenceTable:
    """Read sequences of rows of numbers.

    Parameters
    ----------
    paths : a file, or several of ChromHMM.  ``.txt``, ``.txt.gz``: binarised text of ChromHMM, one chromosome a file: a
        line with the cell type and the chromosome, one with the names of the marks, then 0, 1, or 2 for missing, all
        separated by tabs.  A folder stands for all its files, chr2 before chr10.  Anything else: a table, or a folder or
        pattern of them, as in `opening.open_table`, each of which is one sequence unless there is ``column`` or, in a
        ``.npz`` beside X, either ``lengths`` (G,) or ``doc_range``, the rows 0, ..., T at which sequences start and end
        (G + 1,).
    column : name, or number from 0, of the column that says which sequence a row belongs to; it is taken out of X.
    options : what a table does not say itself, and the most bytes that a file may unpack to

    Returns
    -------
    X (T, D), which stays in its files as in `opening.open_table` where it is large; sequences are called by their
    chromosome (``cell_chromosome`` if cell types share chromosomes) or their value of ``column``, else "0", "1", ...

    Raises
    ------
    DataError : a file is missing, damaged or does not go with another, or the rows of a sequence are not in one piece.
    """
    given = [Path(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]
    expect(bool(given), "there are no files to read; name at least one.")
    other = next((path for path in given if not is_binarised(path)), None)
    if other is not None:
        cure = "name a folder or a pattern, or put all rows in one table with a column that names the sequence."
        expect(len(given) == 1, f"{other} cannot be read with other files, as {BINARISED} can; {cure}")
        return _split_table(other, column, options)
    files = [file for path in given for file in (_folder(path) if path.is_dir() else [path])]
    expect(column is None, f"{files[0]} is {BINARISED}, where each file is a sequence; leave out column {column!r}.")
    return _stack([_read_binarised(path, options) for path in files])


def expect(good: bool | np.bool_, message: str) -> None:
    """Refuse with a message what is not good."""
    if not good:
        raise DataError(message)


def is_binarised(path: Path) -> bool:
    """Whether a file is text of ChromHMM, by its ending, or a folder holds such."""
    if path.is_dir():
        return any(map(is_binarised, path.iterdir()))
    return path.name.lower().endswith((".txt", ".txt.gz"))


def _folder(folder: Path) -> list[Path]:
    """The files of a folder, but hidden ones, in the order of their names with numbers compared as numbers."""
    files = [path for path in folder.iterdir() if not path.name.startswith(".")]
    other = min((path.name for path in files if not is_binarised(path)), default=None if files else "nothing")
    expect(other is None, f"{folder} holds {other}; name a file in it, or a folder of {BINARISED} alone.")
    return sorted(files, key=natural)


def _stack(parts: Sequence[Binarised]) -> SequenceTable:
    known: dict[tuple[str, ...], Path] = {}
    path, _, marks, _ = parts[0]
    for part in parts:
        differ = ", ".join(sorted(set(marks) ^ set(part.marks)))[:80] or "their order"
        expect(part.marks == marks, f"{path} and {part.path} must have the same marks, but differ in {differ}.")
        other = known.setdefault(tuple(part.origin), part.path)
        expect(other is part.path, f"{other} and {part.path} hold the same chromosome and cell type; leave one out.")
    sequences = [chromosome for _, chromosome in known]
    if len(set(sequences)) < len(sequences):
        sequences = ["_".join(origin) for origin in known]
    X = VALUES[np.concatenate([part.cells for part in parts])]
    return SequenceTable(X, np.array([len(part.cells) for part in parts]), marks, sequences)


def _read_binarised(path: Path, options: ReadOptions) -> Binarised:
    content = _content(path, options)
    expect(bool(content.strip()), f"{path} is empty.")
    first, second, body = [*content.split(b"\n", 2), b"", b""][:3]
    origin = _words(f"{path}, line 1", first)
    marks = _words(f"{path}, line 2", second)
    start = f"the cell type and the chromosome are expected, separated by a tab, with which {BINARISED} starts"
    expect(len(origin) == 2 and all(origin), f"{path}, line 1: {origin!r:.60}, where {start}.")
    distinct = all(marks) and len(set(marks)) == len(marks) and not set(marks) <= {"0", "1", "2"}
    expect(distinct, f"{path}, line 2: {marks!r:.60}, where the names of the marks are expected, all different.")
    expect(bool(body.strip()), f"{path} holds no data: only the cell type, the chromosome and the names of the marks.")
    D = len(marks)
    body = body.rstrip(b"\n")
    table = np.frombuffer(body + b"\n", np.uint8)
    ends = np.frombuffer(b"\t" * (D - 1) + b"\n", np.uint8)
    if table.size % (2 * D) == 0:
        cells, separators = np.moveaxis(table.reshape(-1, D, 2), 2, 0)  # a character and what follows it
        if (separators == ends).all() and cells.min() >= ord("0") and cells.max() <= ord("2"):
            return Binarised(path, origin, marks, cells)
    mistakes = ((number, _mistake(line, marks)) for number, line in enumerate(body.split(b"\n"), 3))
    raise DataError(next(f"{path}, line {number}{mistake}" for number, mistake in mistakes if mistake))


def _content(path: Path, options: ReadOptions) -> bytes:
    """The text of a file, packed or not, with plain ends of lines."""
    expect(path.is_file(), f"there is no file {path}.")
    try:
        with open_stream(path, options) as stream:
            content = stream.read()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from error
    return content.removeprefix(BOM_UTF8).replace(b"\r\n", b"\n")


def _words(where: str, line: bytes) -> list[str]:
    try:
        return [word.strip() for word in line.decode().rstrip().split("\t")]
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not text in UTF-8: {error}") from error


def _mistake(line: bytes, marks: list[str]) -> str | None:
    """What is wrong with a line of binarised text, if anything."""
    cells = line.decode(errors="replace").split("\t") if line else []
    if len(cells) != len(marks):
        return f": {len(cells)} cells where {len(marks)} are expected; the line may be cut off."
    wrong = ((mark, cell[:40]) for mark, cell in zip(marks, cells) if cell not in {"0", "1", "2"})
    return next((f", mark {mark!r}: {cell!r} is not 0, 1, or 2 for missing." for mark, cell in wrong), None)


def _split_table(path: Path, column: str | None, options: ReadOptions) -> SequenceTable:
    table, sizes = open_files(path, options)
    lengths = _stored_lengths(path, options)
    expect(not sparse.issparse(table.X), f"{path} holds a sparse matrix; sequences need a dense one, X.toarray().")
    if column is not None:
        expect(lengths is None, f"{path} says where its sequences end; leave out column {column!r}.")
        return _split_by(path, table, column)
    X = table.X if isinstance(table.X, Stored) else _in_double(table.X)
    lengths = sizes.astype(np.int64) if lengths is None else lengths
    total = sum(lengths.tolist())  # without overflow
    expect(total == len(X), f"{path}: the sequences have {total} rows together, but X has {len(X)}.")
    return SequenceTable(X, lengths, table.names, [str(g) for g in range(len(lengths))], table.levels)


def _in_double(X: NDArray[Any]) -> NDArray[Any]:
    """Numbers in float64, but for large ones that are mapped, which stay in their file."""
    if isinstance(X, np.memmap) and X.nbytes > IN_MEMORY:
        return X
    with np.errstate(invalid="ignore"):  # of signalling NaN
        return np.asarray(X, np.float64)


def _stored_lengths(path: Path, options: ReadOptions) -> NDArray[np.int64] | None:
    """The lengths (G,) that a .npz file holds beside X, if any."""
    if path.suffix.lower() != ".npz" or not is_archive(path):
        return None
    name = next((name for name in ("lengths", "doc_range") if name in read_headers(path)), None)
    if name is None:
        return None
    values = read_npz(path, options, {name})[name]
    if name == "lengths":
        return integers(f"{path}: lengths", values, 1)
    offsets = integers(f"{path}: doc_range", values, 0)
    expect(offsets[0] == 0 and len(offsets) > 1, f"{path}: doc_range must run from 0 to all rows; it is {offsets[:3]}.")
    return integers(f"{path}: steps of doc_range", np.diff(offsets), 1)


def integers(name: str, values: ArrayLike, least: int) -> NDArray[np.int64]:
    """A list of integers, none below ``least``."""
    given = np.asarray(values)
    good = given.ndim == 1 and given.dtype.kind in "iu" and len(given) > 0
    expect(good, f"{name} must be a list of integers, not {given.dtype} of shape {given.shape}.")
    array: NDArray[np.int64] = given.astype(np.int64, copy=False)
    g = array.argmin()
    expect(array[g] >= least, f"{name} must be at least {least}; number {g} (from 0) is {array[g]}.")
    return array


def _split_by(path: Path, table: Table, column: str) -> SequenceTable:
    """Sequences of rows that have the same value in a column."""
    d = _position(path, table, column)
    where = f"{path}, column {column!r}"
    values = _column(table.X, d)
    missing = np.isnan(values)
    expect(not missing.any(), f"{where}: row {missing.argmax()} (from 0) is missing, so in no sequence; fill it in.")
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    level = table.levels.get(d)
    sequences = [_plain(value) if level is None else str(level[int(value)]) for value in values[starts]]
    _, first, number = np.unique(values[starts], return_index=True, return_inverse=True)
    g = int((first[number] < np.arange(len(starts))).argmax())  # the first that is not new, or 0
    back = f"{sequences[g]!r} comes back in row {starts[g]} (from 0) after {sequences[g - 1]!r}"
    expect(g == 0, f"{where}: {back}; put the rows of each sequence together, or name its pieces apart.")
    X = Without(table.X, d) if isinstance(table.X, Stored) else _in_double(np.delete(np.asarray(table.X), d, axis=1))
    names = None if table.names is None else table.names[:d] + table.names[d + 1 :]
    levels = {j - (j > d): known for j, known in table.levels.items() if j != d}
    return SequenceTable(X, np.diff(starts, append=len(values)), names, sequences, levels)


def _column(X: Any, d: int) -> NDArray[np.floating]:
    """The values of one column."""
    if not isinstance(X, Stored):
        return np.asarray(X[:, d])
    return np.concatenate([X.group(g)[:, d].astype(np.float64) for g in range(len(X.edges) - 1)])


def _position(path: Path, table: Table, column: str) -> int:
    """The number of a column given by its name or number."""
    names = table.names or []
    D = table.X.shape[1]
    found = [d for d, name in enumerate(names) if name == column] or [d for d in range(D) if str(d) == column]
    known = f"its columns are {', '.join(names)[:200]}, or 0 to {D - 1}" if names else f"its columns are 0 to {D - 1}"
    expect(len(found) == 1, f"{path} has {len(found) or 'no'} columns {column!r}; {known}.")
    expect(D > 1, f"{path} has no other column than {column!r}; the values of the sequences are needed too.")
    return found[0]


def _plain(value: Any) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)
