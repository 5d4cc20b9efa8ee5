"""Tables in files of many formats, with errors that say where and what to do."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from .atomic import as_path
from .numpy_files import is_archive, map_npy, read_headers, read_npz, read_sparse
from .table import DEFAULT, DataError, ReadOptions, Table

__all__ = ["DataError", "ReadOptions", "Table", "read_table"]


def read_table(path: str | Path, options: ReadOptions = DEFAULT) -> Table:
    """Read a table of numbers.

    Parameters
    ----------
    path : the ending decides.  ``.npy``: mapped, not read, so it may be larger than memory.  ``.npz``: its only
        array, the one named X, or a sparse matrix that SciPy saved.  ``.csv``, ``.tsv``, also with ``.gz``: separated by
        commas, semicolons or tabs, with or without a line of column names.  ``.parquet``, ``.feather``, ``.arrow``: columns
        of numbers or text.  Cells may be missing, and columns of text are categories.
    options : what the file does not say itself, and the most that it may unpack to

    Returns
    -------
    The array, with the column names or None.

    Raises
    ------
    DataError : the file is missing, empty, damaged, of an unknown kind, or holds something other than a table.

    Warns
    -----
    UserWarning : the cells have decimal commas, and ``options`` do not say so.
    """
    path = as_path(path)
    if path.is_dir():
        raise DataError(f"{path} is a directory; name a file in it.")
    if not path.exists():
        raise DataError(f"there is no file {path}.")
    reader = READERS.get(ending(path))
    if reader is None:
        raise DataError(f"{path} has an unknown ending; known are {', '.join(READERS)}.")
    try:
        if path.stat().st_size == 0:
            raise DataError(f"{path} is empty.")
        table = reader(path, options)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from error
    _check_table(path, table)
    return table


def ending(path: Path) -> str:
    """The ending of a file's name, which says its format; that of what is packed together with .gz."""
    name = path.name.lower()
    return "".join(Path(name).suffixes[-2:]) if name.endswith(".gz") else Path(name).suffix


def _check_table(path: Path, table: Table) -> None:
    X = table.X
    if X.dtype.kind not in "biuf":
        raise DataError(f"{path} holds values of type {X.dtype}, not numbers; save it as floats or integers.")
    if X.ndim != 2:
        cure = "X.reshape(-1, 1) makes it one column" if X.ndim < 2 else "X.reshape(len(X), -1) makes it two"
        raise DataError(f"{path} holds an array of {X.ndim} dimensions; rows and columns are needed: {cure}.")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise DataError(f"{path} holds no data: {X.shape[0]} rows and {X.shape[1]} columns.")


def _read_numpy(path: Path, options: ReadOptions) -> Table:
    if not is_archive(path):
        return Table(map_npy(path), None)
    names = list(read_headers(path))
    if "format" in names:
        return Table(read_sparse(path, options), None)
    if "X" not in names and len(names) != 1:
        raise DataError(f"{path} holds {len(names)} arrays ({', '.join(names)[:200]}); name the one to use X.")
    name = "X" if "X" in names else names[0]
    return Table(read_npz(path, options, {name})[name], None)


def require_arrow(path: Path) -> None:
    """Refuse a file that takes an optional package to read, if that is missing."""
    try:
        import_module("pyarrow")
    except ImportError as error:
        raise DataError(f'reading {path} needs pyarrow: pip install "stickbreak[tables]"') from error


def _with_arrow(module: str, function: str) -> Callable[[Path, ReadOptions], Table]:
    """A reader that needs an optional package."""

    def read(path: Path, options: ReadOptions) -> Table:
        require_arrow(path)
        table: Table = getattr(import_module(f".{module}", __package__), function)(path, options)
        return table

    return read


ARROW = (".parquet", ".feather", ".arrow")
READERS: dict[str, Callable[[Path, ReadOptions], Table]] = {
    ".npy": _read_numpy,
    ".npz": _read_numpy,
    **dict.fromkeys((".csv", ".tsv", ".csv.gz", ".tsv.gz"), _with_arrow("csv_files", "read_csv")),
    ARROW[0]: _with_arrow("arrow_files", "read_parquet"),
    **dict.fromkeys(ARROW[1:], _with_arrow("arrow_files", "read_feather")),
}
