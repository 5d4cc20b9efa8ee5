"""Tables in files: .npy, .npz, .csv and .parquet, with errors that say where and what to do."""

import csv
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

MISSING = frozenset({"", "nan", "na", "n/a", "null", "none"})


class DataError(ValueError):
    """A data file that cannot be used as it is; the message says why in one line."""


class Table(NamedTuple):
    """Rows of numbers (N, D) and the names of the columns, where the file has any."""

    X: NDArray[Any]
    names: list[str] | None


def read_table(path: str | Path) -> Table:
    """Read a table of numbers.

    Parameters
    ----------
    path : the ending decides.  ``.npy``: mapped, not read, so it may be larger than memory.  ``.npz``: its only
        array, or the one named X.  ``.csv``: separated by commas, semicolons or tabs, with or without a line of
        column names.  ``.parquet``: numeric columns.

    Returns
    -------
    The array, with the column names or None.

    Raises
    ------
    DataError : the file is missing, empty, of an unknown kind, or holds something other than a table of numbers.
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
                    return Table(_only_array(path, data), None)
        return Table(np.load(path, mmap_mode="r", allow_pickle=False), None)
    except DataError:
        raise
    except (EOFError, ValueError, zipfile.BadZipFile) as error:
        if "allow_pickle" in str(error) or "Python objects" in str(error):
            raise DataError(f"{path} is no NumPy file, or holds Python objects; save it as numbers.") from error
        raise DataError(f"{path} is not a NumPy file, or is cut short: {_one_line(error)}") from error


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
        except ValueError as error:  # find the cell
            _explain_csv(path, delimiter, first, names, error)
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a text file in UTF-8: {_one_line(error)}") from error


def _load_csv(path: Path, delimiter: str, first: int, names: list[str] | None) -> NDArray[np.float64]:
    options: dict[str, Any] = {"comments": None, "quotechar": '"', "encoding": "utf-8-sig", "ndmin": 2}
    X: NDArray[np.float64] = np.loadtxt(path, delimiter=delimiter, skiprows=first - 1, **options)
    if np.isnan(X).any() or (names is not None and len(names) != X.shape[1]):
        raise ValueError("missing values, or rows longer than the line of names")
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


def _explain_csv(path: Path, delimiter: str, first: int, names: list[str] | None, error: ValueError) -> NoReturn:
    """Find the first cell that is not a number, and say so."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        D = len(names) if names is not None else 0
        for number, cells in _csv_rows(file, delimiter):
            if number < first:
                continue
            D = D or len(cells)
            if len(cells) != D:
                raise DataError(f"{path}, line {number}: {len(cells)} cells where {D} are expected.")
            for j, cell in enumerate(cells):
                if not _is_number(cell):
                    where = f"{path}, line {number}, column {j + 1}" + ("" if names is None else f" ({names[j]!r})")
                    _explain_cell(where, cell)
    raise DataError(f"{path} is not a table of numbers: {_one_line(error)}") from error


def _explain_cell(where: str, cell: str) -> NoReturn:
    if cell.lower() in MISSING:
        raise DataError(f"{where}: missing value; they are not supported yet, so fill them in or drop such rows.")
    raise DataError(f"{where}: {cell[:40]!r} is not a number; drop the column or encode it as numbers.")


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
            names = list(file.schema_arrow.names)
            for field in file.schema_arrow:
                _check_parquet_type(path, field, pyarrow.types)
            return Table(_load_parquet(path, file, pyarrow.float32()), names)
    except pyarrow.ArrowException as error:
        raise DataError(f"{path} is not a parquet file, or is cut short: {_one_line(error)}") from error


def _check_parquet_type(path: Path, field: Any, types: Any) -> None:
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if not any(is_type(field.type) for is_type in numeric):
        raise DataError(
            f"{path}: column {field.name!r} holds {field.type}, not numbers; drop the column or encode it as numbers."
        )


def _load_parquet(path: Path, file: Any, single: Any) -> NDArray[Any]:
    """All columns as one array, float32 if every column is; read piece by piece, so that it is held only once."""
    fields = list(file.schema_arrow)
    dtype = np.float32 if all(field.type == single for field in fields) else np.float64
    X, row = np.empty((file.metadata.num_rows, len(fields)), dtype), 0
    for batch in file.iter_batches():
        for j, column in enumerate(batch.columns):
            values = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
            missing = np.isnan(values)
            if missing.any():
                where = f"{path}, row {row + int(missing.argmax()) + 1}, column {fields[j].name!r}"
                _explain_cell(where, "")
            X[row : row + len(values), j] = values
        row += len(batch)
    return X


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


READERS: dict[str, Callable[[Path], Table]] = {
    ".npy": _read_numpy,
    ".npz": _read_numpy,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}
