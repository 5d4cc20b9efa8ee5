"""Paths as data: a file, a folder of files or a pattern, in any format; what is large stays in its files."""

import os
import re
from collections.abc import Mapping, Sequence
from glob import glob, has_magic
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .atomic import as_path
from .files import ARROW, ending, read_table, require_arrow
from .frames import Encoded, Levels, recode
from .stored import StackedMaps, Stored, check_same_names, check_same_width
from .table import DEFAULT, DataError, ReadOptions, Table
from .zarr_rows import ZarrRows, is_zarr

IN_MEMORY = 1 << 28  # bytes; smaller tables of columns are read at once
HIDDEN = (".", "_")  # how names of files begin that are no data, such as _SUCCESS


class Opened(NamedTuple):
    """The rows of one file or several, and how many rows each of these has, (n,)."""

    table: Table
    lengths: NDArray[np.int64]


def is_path(X: Any) -> bool:
    """Whether what a user passed as data is the path of files."""
    return isinstance(X, (str, os.PathLike))


def in_files(X: Any) -> bool:
    """Whether rows that a user passed are in files that are read while rows are visited."""
    return is_path(X) or isinstance(X, Stored)


def open_table(path: Any, options: ReadOptions = DEFAULT, in_memory: int = IN_MEMORY) -> Table:
    """The rows of a file, of all files of a folder, or of those that a pattern such as ``data/*.parquet`` names, in order.

    Parameters
    ----------
    path : files in one of the formats of `stickbreak.data.files.read_table`, all in the same, or the folder of a zarr array.
        Several files are read one after another, in the order of their names, numbers in them compared as numbers; they have
        the same columns.  In folders, files whose names begin with a point or an underscore are left out, and those of folders
        in it are read, too.
    options : what a file does not say itself, and the most that it may unpack to
    in_memory : bytes; files of columns are read at once where their rows take no more

    Returns
    -------
    The array, with the column names or None.  A .npy file is mapped.  Several of them, or large files of columns, are a
    `stickbreak.data.stored.Stored`, which is read while rows are visited, a row group at a time, and never held whole.

    Raises
    ------
    DataError : a file is missing, empty, damaged, of an unknown kind, or does not go with the others; the message names it.
    """
    return open_files(path, options, in_memory).table


def open_files(path: Any, options: ReadOptions = DEFAULT, in_memory: int = IN_MEMORY) -> Opened:
    """The same, with the number of rows of each file."""
    folder = as_path(path)
    if is_zarr(folder):
        return _zarr(folder, options, in_memory)
    files = files_of(path)
    endings = {ending(file) for file in files}
    if len(endings) > 1:
        other = next(file for file in files if ending(file) != ending(files[0]))
        raise DataError(
            f"{files[0]} and {other} are in different formats; name files of one, such as "
            f"{files[0].parent}/*{ending(files[0])}."
        )
    if endings <= set(ARROW):
        return _columns(files, options, in_memory)
    if len(files) > 1 and endings == {".npy"}:
        maps = StackedMaps(files)
        return Opened(Table(maps, None), np.diff(maps.edges))
    tables = [read_table(file, options) for file in files]
    return Opened(_stacked(files, tables), np.array([table.X.shape[0] for table in tables]))


def files_of(path: Any) -> list[Path]:
    """The files that a path stands for: itself, those of a folder, or those that match a pattern."""
    path = as_path(path)
    if not path.exists() and has_magic(str(path)):
        found = [Path(name) for name in glob(str(path), recursive=True)]
        files = sorted((file for file in found if file.is_file()), key=natural)
        if not files:
            raise DataError(f"no file matches {path}.")
        return files
    if not path.is_dir():
        return [path]
    files = sorted(_visible(path), key=natural)
    if not files:
        raise DataError(f"{path} is a folder without files; name one with data.")
    return files


def natural(path: Path) -> list[str | int]:
    """What sorts paths by their names, part 2 before part 10."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split("([0-9]+)", str(path).lower()))]


def as_data(table: Table, known: Mapping[int, Any] | None = None) -> Any:
    """What an estimator takes: rows with the names of their columns and the levels of categories, where there are any."""
    X = table.X
    if isinstance(X, Stored):
        return X
    if not isinstance(X, np.ndarray) or (table.names is None and not table.levels and not known):
        return X
    names = table.names or [f"x{d}" for d in range(X.shape[1])]
    return Encoded(X, names, table.levels)


def _visible(folder: Path) -> list[Path]:
    """The files of a folder and of those in it, but hidden ones."""
    inside = (file.relative_to(folder).parts for file in folder.rglob("*") if file.is_file())
    return [folder.joinpath(*parts) for parts in inside if not any(part.startswith(HIDDEN) for part in parts)]


def _columns(files: Sequence[Path], options: ReadOptions, in_memory: int) -> Opened:
    """Files of columns, held in memory where they are small."""
    for file in files:
        if not file.is_file():
            raise DataError(f"there is no file {file}.")
    require_arrow(files[0])
    arrow_rows = import_module(".arrow_rows", __package__)
    if len(files) == 1 and (files[0].stat().st_size == 0 or arrow_rows.decoded_bytes(files[0], options) <= in_memory):
        table = read_table(files[0], options)
        return Opened(table, np.array([len(table.X)]))
    rows = arrow_rows.ArrowRows(files, options)
    held = rows[:] if rows.nbytes <= in_memory else rows
    return Opened(Table(held, rows.names, rows.levels), rows.lengths)


def _zarr(folder: Path, options: ReadOptions, in_memory: int) -> Opened:
    """A zarr array, held in memory where it is small."""
    if find_spec("zarr") is None:
        raise DataError(f'reading {folder} needs zarr: pip install "stickbreak[zarr]"')
    rows = ZarrRows(folder, options)
    held = rows[:] if rows.nbytes <= in_memory else rows
    return Opened(Table(held, None), np.array([len(rows)]))


def _stacked(files: Sequence[Path], tables: Sequence[Table]) -> Table:
    """Tables in memory one after another, with the levels of all."""
    first = tables[0]
    if len(tables) == 1:
        return first
    for file, table in zip(files, tables):
        check_same_names(file, table.names, files[0], first.names)
        check_same_width(file, table.X.shape[1], files[0], first.X.shape[1])
    if all(sparse.issparse(table.X) for table in tables):
        return first._replace(X=sparse.vstack([table.X for table in tables], format="csr"))
    levels = _all_levels(files, tables)
    parts = [recode(Encoded(t.X, t.names, t.levels), levels).X if levels else t.X for t in tables]
    return Table(np.concatenate(parts), first.names, levels)


def _all_levels(files: Sequence[Path], tables: Sequence[Table]) -> Levels:
    """The levels of every column of categories, of all tables together."""
    columns = sorted({d for table in tables for d in table.levels})
    for d in columns:
        other = next((file for file, table in zip(files, tables) if d not in table.levels), None)
        if other is not None:
            raise DataError(f"{other}: column {d + 1} holds numbers, but text in other files; make it one of them.")
    return {d: sorted({level for table in tables for level in table.levels[d]}) for d in columns}
