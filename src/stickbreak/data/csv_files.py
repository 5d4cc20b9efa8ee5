"""Tables in .csv and .tsv files, read by Arrow block by block."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, csv

from .arrow_files import Categories, stacked, with_levels
from .csv_dialect import (
    DECIMAL,
    NUMBER,
    THOUSANDS,
    Dialect,
    find_dialect,
    header,
    lines_of,
    not_text,
    rows_of,
    value_of,
)
from .streams import open_stream
from .table import MISSING, DataError, ReadOptions, Table, one_line

LARGEST_BLOCK = (1 << 31) - 1  # for rows longer than a block
TOO_LONG = ("straddling object", "Empty CSV file or block")  # how Arrow says that a row is longer than a block
UNCLOSED = "a quote is opened and not closed; close it, or double the quotes within cells."


class Mistakes(NamedTuple):
    """Cells (D,) that are neither numbers nor missing, the cells that are not missing, and the first row that is wrong."""

    wrong: NDArray[np.int64]
    present: NDArray[np.int64]
    first: NDArray[np.int64]


class _LongRow(Exception):
    """A row is longer than a block."""


def read_csv(path: Path, options: ReadOptions) -> Table:
    """Rows of cells in text, with or without a line of column names; columns of text become categories."""
    dialect = find_dialect(path, options)
    while True:
        try:
            return _table(path, options, dialect)
        except _LongRow:
            dialect = dialect._replace(block=min(16 * dialect.block, LARGEST_BLOCK))
        except UnicodeError as error:
            raise not_text(path, options, dialect.encoding) from error


def _table(path: Path, options: ReadOptions, dialect: Dialect) -> Table:
    batches = _batches(path, options, dialect)
    first = next(batches)
    names = header(path, [column[0].as_py() for column in first.columns], dialect.decimal)
    D = first.num_columns
    skipped = int(names is not None)
    pieces: list[NDArray[np.float64]] = []
    mistakes = Mistakes(np.zeros(D, np.int64), np.zeros(D, np.int64), np.full(D, -1))
    n_rows = 0
    for batch in _chain(first.slice(skipped), batches):
        values, wrong = _parse(pa.concat_arrays(batch.columns), dialect.decimal)
        pieces.append(values.reshape(D, -1).T)
        if wrong is not None:
            _count(mistakes, wrong.reshape(D, -1), n_rows + skipped)
        mistakes.present[:] += (~np.isnan(values)).reshape(D, -1).sum(axis=1)
        n_rows += batch.num_rows
        _check_closed(path, options, dialect, batch.columns[-1][-1].as_py())
    if n_rows == 0:
        raise DataError(f"{path} holds no data: only a line of column names.")
    text = 2 * mistakes.wrong > mistakes.present
    for d in np.flatnonzero((mistakes.wrong > 0) & ~text)[:1]:
        raise _stray(path, options, dialect, names, int(d), int(mistakes.first[d]))
    X = stacked(pieces, n_rows)
    if not text.any():
        return Table(X, names)
    return _with_categories(path, options, dialect, Table(X, names), np.flatnonzero(text).tolist())


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    if first.num_rows:
        yield first
    yield from rest


def _check_closed(path: Path, options: ReadOptions, dialect: Dialect, last: str) -> None:
    """Refuse a quote that is not closed: Arrow takes the rest of the file as the last cell."""
    if "\n" not in last and "\r" not in last:
        return
    for number, row in _numbered_rows(path, options, dialect):
        if row.count('"') % 2:
            raise DataError(f"{path}, line {number}: {UNCLOSED}")


def _numbered_rows(path: Path, options: ReadOptions, dialect: Dialect) -> Iterator[tuple[int, str]]:
    """Rows with the numbers of their first lines; what is not UTF-8 is read as latin-1, which any byte is."""
    encoding = "latin-1" if dialect.encoding == "utf8" else dialect.encoding
    return rows_of(lines_of(path, options, encoding))


def _count(mistakes: Mistakes, wrong: NDArray[np.bool_], row: int) -> None:
    """Note the wrong cells (D, n) of some rows, the first of which is row ``row`` of the file."""
    found = wrong.sum(axis=1)
    mistakes.wrong[:] += found
    mistakes.present[:] += found  # their values are NaN
    new = (found > 0) & (mistakes.first < 0)
    mistakes.first[new] = row + wrong[new].argmax(axis=1)


def _batches(path: Path, options: ReadOptions, dialect: Dialect, columns: Sequence[int] | None = None) -> Iterator[Any]:
    """Columns of text, all or some, a block of rows at a time; a line of names is a row like the others."""
    ragged: list[Any] = []

    def refuse(row: Any) -> str:
        ragged.append(row)
        return "error"

    read = csv.ReadOptions(
        use_threads=False, block_size=dialect.block, autogenerate_column_names=True, encoding=dialect.encoding
    )
    parse = csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True, invalid_row_handler=refuse)
    names = [f"f{d}" for d in range(dialect.width)]  # as Arrow calls the columns
    convert = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    if columns is not None:
        convert.include_columns = [names[d] for d in columns]
    with open_stream(path, options) as stream:
        try:
            yield from csv.open_csv(stream, read, parse, convert)
        except pa.ArrowInvalid as error:
            raise _refusal(path, options, dialect, ragged, error) from error


def _refusal(path: Path, options: ReadOptions, dialect: Dialect, ragged: list[Any], error: Exception) -> Exception:
    """The error that explains why Arrow refuses a file."""
    message = one_line(error)
    if ragged:
        row = ragged[0]
        line = _line(path, options, dialect, row.number - 1)
        return DataError(
            f"{path}, line {line}: {row.actual_columns} cells where {row.expected_columns} are expected; quote cells that "
            'hold the delimiter, or name another with delimiter=";" (--delimiter ";").'
        )
    if (
        any(phrase in message for phrase in TOO_LONG)
        and dialect.block < LARGEST_BLOCK
        and dialect.block < _size(path, options)
    ):
        return _LongRow()
    if "UTF8" in message:
        return not_text(path, options, dialect.encoding)
    if any(phrase in message for phrase in TOO_LONG):
        return DataError(f"{path}: {UNCLOSED}")
    return DataError(f"{path} is not a table of text, or is damaged: {message}")


def _parse(cells: Any, decimal: str) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """The numbers (n,) in cells of text, NaN for the others, and which are neither numbers nor missing, if any."""
    if decimal == "." or not compute.any(compute.match_substring(cells, ".")).as_py():
        try:
            values = _cast(cells, decimal)
        except pa.ArrowInvalid:
            pass
        else:
            if not np.isnan(values).any():  # such as -nan
                return values, None
    return _parse_mixed(cells, decimal)


def _cast(cells: Any, decimal: str) -> NDArray[np.float64]:
    plain = cells if decimal == "." else compute.replace_substring(cells, ",", ".")
    values: NDArray[np.float64] = plain.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values


def _parse_mixed(cells: Any, decimal: str) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """Numbers in cells that hold other things too; each distinct text that is not a plain number is parsed once."""
    cells = compute.utf8_trim_whitespace(cells)
    plain = compute.match_substring_regex(cells, NUMBER[decimal])
    values = _cast(compute.if_else(plain, cells, pa.scalar(None, pa.string())), decimal)
    other = np.flatnonzero(~plain.to_numpy(zero_copy_only=False))
    encoded = cells.take(pa.array(other)).dictionary_encode()
    found = [value_of(text.strip(), decimal) for text in encoded.dictionary.to_pylist()]
    numbers = np.array([np.nan if value is None else value for value in found])
    strange = np.array([value is None for value in found], np.bool_)
    codes = encoded.indices.to_numpy()
    values = np.array(values)  # Arrow's are read-only
    values[other] = numbers[codes]
    if not strange.any():
        return values, None
    wrong = np.zeros(len(values), np.bool_)
    wrong[other] = strange[codes]
    return values, wrong


def _with_categories(path: Path, options: ReadOptions, dialect: Dialect, table: Table, columns: list[int]) -> Table:
    """A table with codes in its columns of text; the file is read again to find them."""
    categories = {d: Categories() for d in columns}
    row = -int(table.names is not None)
    for batch in _batches(path, options, dialect, columns):
        batch = batch.slice(1) if row < 0 else batch
        row = max(row, 0)
        for d, column in zip(columns, batch.columns):
            table.X[row : row + batch.num_rows, d] = categories[d].codes(_without_missing(column))
        row += batch.num_rows
    for d in columns:
        _check_decimals(_where(path, table.names, d), categories[d].seen, dialect)
    return with_levels(table.X, table.names, categories)


def _without_missing(column: Any) -> Any:
    """A column of text, stripped, as categories, with null where a cell is missing."""
    encoded = column.dictionary_encode()
    texts = [text.strip() for text in encoded.dictionary.to_pylist()]
    dictionary = pa.array([None if text.lower() in MISSING else text for text in texts], pa.string())
    return pa.DictionaryArray.from_arrays(encoded.indices, dictionary)


def _check_decimals(where: str, texts: Sequence[str] | dict[str, int], dialect: Dialect) -> None:
    """Refuse a column of categories that are mostly numbers with another decimal mark."""
    other = "," if dialect.decimal == "." else "."
    numbers = [text for text in texts if re.fullmatch(NUMBER[other][1:-1], text) or THOUSANDS.fullmatch(text)]
    if 2 * len(numbers) > len(texts):
        raise DataError(f"{where} holds {numbers[0][:40]!r} and the like; {_cure(numbers[0], dialect.decimal)}")


def _cure(cell: str, decimal: str) -> str:
    """What to do about a cell that is not a number."""
    if decimal == ",":
        return 'decimals follow a comma here; pass decimal="." (--decimal .) if they follow a point, else correct the cells.'
    if THOUSANDS.fullmatch(cell):
        return f"leave out the commas of thousands, or pass {DECIMAL} if decimals follow them."
    return f"pass {DECIMAL} if decimals follow a comma."


def _stray(path: Path, options: ReadOptions, dialect: Dialect, names: list[str] | None, d: int, row: int) -> DataError:
    """An error for the first cell of a column of numbers that is not one; ``row`` 0 is that of the names, if any."""
    seen = 0
    for batch in _batches(path, options, dialect, [d]):
        if row < seen + batch.num_rows:
            cell = batch.columns[0][row - seen].as_py().strip()
            break
        seen += batch.num_rows
    other = "," if dialect.decimal == "." else "."
    decimals = re.fullmatch(NUMBER[other][1:-1], cell) or THOUSANDS.fullmatch(cell)
    cure = _cure(cell, dialect.decimal) if decimals else "drop the column or encode it as numbers."
    where = _where(path, names, d, _line(path, options, dialect, row))
    return DataError(f"{where}: {cell[:40]!r} is not a number; {cure}")


def _where(path: Path, names: list[str] | None, d: int, line: int | None = None) -> str:
    start = f"{path}" if line is None else f"{path}, line {line}"
    return f"{start}, column {d + 1}" + ("" if names is None else f" ({names[d]!r})")


def _line(path: Path, options: ReadOptions, dialect: Dialect, row: int) -> int:
    """The number of the line, from 1, on which row ``row``, from 0, starts."""
    return next(islice(_numbered_rows(path, options, dialect), row, None), (0, ""))[0]


def _size(path: Path, options: ReadOptions) -> int:
    """The number of bytes in a file once it is unpacked."""
    with open_stream(path, options) as stream:
        return sum(len(piece) for piece in iter(lambda: stream.read(1 << 20), b""))
