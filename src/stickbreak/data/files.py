"""Tables in files: .npy, .npz, .csv and .parquet, with errors that say where and what to do."""

import csv
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .frames import Encoded, Levels, codes, recode

MISSING = frozenset({"", "nan", "na", "n/a", "null", "none"})


class DataError(ValueError):
    """A data file that cannot be used as it is; the message says why in one line."""


class Table(NamedTuple):
    """Rows of numbers (N, D), the names of the columns, where the file has any, and the levels of those with categories.

    Missing values are NaN, and categories are codes of their sorted levels.
    """

    X: Any
    names: list[str] | None
    levels: Levels = MappingProxyType({})


def read_table(path: str | Path) -> Table:
    """Read a table of numbers.

    Parameters
    ----------
    path : the ending decides.  ``.npy``: mapped, not read, so it may be larger than memory.  ``.npz``: its only
        array, the one named X, or a sparse matrix that SciPy saved.  ``.csv``: separated by commas, semicolons or
        tabs, with or without a line of column names.  ``.parquet``: columns of numbers or text.  Cells may be missing,
        and columns of text are categories.

    Returns
    -------
    The array, with the column names or None.

    Raises
    ------
    DataError : the file is missing, empty, of an unknown kind, or holds something other than a table.
    """
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} is a directory; name a file in it.")
    if not path.exists():
        raise DataError(f"there is no file {path}.")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"{path} has an unknown ending; known are {', '.join(READERS)}.")
    try:
        if path.stat().st_size == 0:
            raise DataError(f"{path} is empty.")
        table = reader(path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from error
    _check_table(path, table.X)
    return table


def _check_table(path: Path, X: NDArray[Any]) -> None:
    if X.dtype.kind not in "biuf":
        raise DataError(f"{path} holds values of type {X.dtype}, not numbers; save it as floats or integers.")
    if X.ndim != 2:
        cure = "X.reshape(-1, 1) makes it one column" if X.ndim < 2 else "X.reshape(len(X), -1) makes it two"
        raise DataError(f"{path} holds an array of {X.ndim} dimensions; rows and columns are needed: {cure}.")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise DataError(f"{path} holds no data: {X.shape[0]} rows and {X.shape[1]} columns.")


def _read_numpy(path: Path) -> Table:
    try:
        with path.open("rb") as file:
            if file.read(2) == b"PK":
                file.seek(0)
                with np.load(file, allow_pickle=False) as data:
                    return Table(_sparse(path) if "format" in data.files else _only_array(path, data), None)
        return Table(np.load(path, mmap_mode="r", allow_pickle=False), None)
    except DataError:
        raise
    except (EOFError, KeyError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        if "allow_pickle" in str(error) or "Python objects" in str(error):
            raise DataError(f"{path} is no NumPy file, or holds Python objects; save it as numbers.") from error
        raise DataError(f"{path} is not a NumPy file, or is cut short: {_one_line(error)}") from error


def _sparse(path: Path) -> sparse.csr_array:
    matrix = sparse.load_npz(path)
    return sparse.csr_array(matrix)


def _only_array(path: Path, data: Any) -> NDArray[Any]:
    names = list(data.files)
    if "X" not in names and len(names) != 1:
        raise DataError(f"{path} holds {len(names)} arrays ({', '.join(names)}); name the one to use X.")
    return np.asarray(data["X" if "X" in names else names[0]])


def _read_csv(path: Path) -> Table:
    try:
        names, delimiter, first = _csv_start(path)
        try:
            return Table(_load_csv(path, delimiter, first, names), names)
        except ValueError:  # cells that are missing, text, or wrong
            return _load_mixed_csv(path, delimiter, first, names)
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a text file in UTF-8: {_one_line(error)}") from error


def _load_csv(path: Path, delimiter: str, first: int, names: list[str] | None) -> NDArray[np.float64]:
    options: dict[str, Any] = {"comments": None, "quotechar": '"', "encoding": "utf-8-sig", "ndmin": 2}
    X: NDArray[np.float64] = np.loadtxt(path, delimiter=delimiter, skiprows=first - 1, **options)
    if names is not None and len(names) != X.shape[1]:
        raise ValueError("rows longer than the line of names")
    return X


def _csv_start(path: Path) -> tuple[list[str] | None, str, int]:
    """Column names or None, the delimiter, and the line (from 1) on which the numbers start."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        line = next((line for line in file if line.strip()), None)
        if line is None:
            raise DataError(f"{path} is empty.")
        delimiter = max(",;\t", key=line.count)
        file.seek(0)
        rows = _csv_rows(file, delimiter)
        number, cells = next(rows)
        if all(_is_number(cell) or cell.lower() in MISSING for cell in cells):
            return None, delimiter, number
        if "" in cells:
            raise DataError(
                f"{path}: column {cells.index('') + 1} has no name, like an index that pandas wrote; "
                "give it one or leave the column out (index=False)."
            )
        start = next(rows, None)
        if start is None:
            raise DataError(f"{path} holds no data: only a line of column names.")
        return cells, delimiter, start[0]


def _csv_rows(file: Any, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows of stripped cells with the line they are on; empty lines are left out."""
    reader = csv.reader(file, delimiter=delimiter)
    for cells in reader:
        if cells:
            yield reader.line_num, [cell.strip() for cell in cells]


def _load_mixed_csv(path: Path, delimiter: str, first: int, names: list[str] | None) -> Table:
    """A table with missing cells, or columns of text, which become categories."""
    lines: list[int] = []
    rows: list[list[str]] = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        for number, cells in _csv_rows(file, delimiter):
            if number < first:
                continue
            D = len(names) if names is not None else len(rows[0] if rows else cells)
            if len(cells) != D:
                raise DataError(f"{path}, line {number}: {len(cells)} cells where {D} are expected.")
            lines.append(number)
            rows.append(cells)
    X = np.empty((len(rows), len(rows[0])))
    levels: dict[int, list[str]] = {}
    for d, column in enumerate(zip(*rows)):
        missing = np.array([cell.lower() in MISSING for cell in column])
        wrong = np.array([not _is_number(cell) for cell in column]) & ~missing
        if 2 * wrong.sum() > (~missing).sum():
            levels[d] = sorted({cell for cell, gone in zip(column, missing) if not gone})
            X[:, d] = codes([None if gone else cell for cell, gone in zip(column, missing)], levels[d], str(d))
        elif wrong.any():
            n = int(wrong.argmax())
            where = f"{path}, line {lines[n]}, column {d + 1}" + ("" if names is None else f" ({names[d]!r})")
            raise DataError(f"{where}: {column[n][:40]!r} is not a number; drop the column or encode it as numbers.")
        else:
            X[:, d] = [np.nan if gone else float(cell) for cell, gone in zip(column, missing)]
    return Table(X, names, levels)


def _is_number(cell: str) -> bool:
    try:
        return not np.isnan(float(cell)) and "_" not in cell
    except ValueError:
        return False


def _read_parquet(path: Path) -> Table:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise DataError(f"reading {path} needs pyarrow: pip install stickbreak[parquet]") from error
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for field in file.schema_arrow:
                _check_parquet_type(path, field, pyarrow.types)
            return _load_parquet(path, file, pyarrow)
    except pyarrow.ArrowException as error:
        raise DataError(f"{path} is not a parquet file, or is cut short: {_one_line(error)}") from error


def _is_text(kind: Any, types: Any) -> bool:
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(
        types.is_null(kind) or types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    )


def _check_parquet_type(path: Path, field: Any, types: Any) -> None:
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if not _is_text(field.type, types) and not any(is_type(field.type) for is_type in numeric):
        raise DataError(
            f"{path}: column {field.name!r} holds {field.type}, neither numbers nor text; drop the column or encode it."
        )


def _load_parquet(path: Path, file: Any, pyarrow: Any) -> Table:
    """All columns as one array, float32 if every column is; read piece by piece, so that it is held only once."""
    fields = list(file.schema_arrow)
    dtype = np.float32 if all(field.type == pyarrow.float32() for field in fields) else np.float64
    X, row = np.empty((file.metadata.num_rows, len(fields)), dtype), 0
    seen: dict[int, dict[str, int]] = {j: {} for j, field in enumerate(fields) if _is_text(field.type, pyarrow.types)}
    for batch in file.iter_batches():
        for j, column in enumerate(batch.columns):
            if j in seen:
                values = [np.nan if v is None else seen[j].setdefault(v, len(seen[j])) for v in column.to_pylist()]
            else:
                values = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
            X[row : row + len(batch), j] = values
        row += len(batch)
    found = Encoded(X, [field.name for field in fields], {j: list(known) for j, known in seen.items()})
    levels = {j: sorted(known) for j, known in seen.items()}
    return Table(recode(found, levels).X if levels else X, [field.name for field in fields], levels)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


READERS: dict[str, Callable[[Path], Table]] = {
    ".npy": _read_numpy,
    ".npz": _read_numpy,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}
