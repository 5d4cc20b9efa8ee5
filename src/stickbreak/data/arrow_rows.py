"""Rows of .parquet and of Arrow's files, one or several, read a row group or a record batch at a time."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc, parquet, types

from .arrow_files import Categories, check_metadata, check_shape, check_type, is_text, numbers_of
from .frames import Levels
from .stored import Grouped, check_same_names, check_unchanged, stamps
from .table import DataError, ReadOptions, damage

Codes = Mapping[int, Mapping[str, int]]
KIND = "a file of columns"


class Part(NamedTuple):
    """One group: the number of its file, and which group of that file it is."""

    file: int
    group: int


@dataclass(frozen=True)
class Contents:
    """What the head of a file says: the types of its columns, and the rows of each group."""

    schema: Any
    rows: list[int]


class ArrowRows(Grouped):
    """The rows of files of columns, one file after another.

    Columns are as in the first file; those of text are categories, with the levels that all files have.
    """

    def __init__(self, paths: Sequence[Path], options: ReadOptions) -> None:
        self.paths = list(paths)
        self.stamps = stamps(self.paths)
        contents = [_contents(path, options) for path in self.paths]
        schema = contents[0].schema
        for path, content in zip(self.paths, contents):
            check_same_names(path, content.schema.names, self.paths[0], schema.names)
            _check_schema(path, content.schema)
        fields = [field for content in contents for field in content.schema]
        single = all(field.type == pa.float32() for field in fields)
        self.parts = [Part(i, g) for i, content in enumerate(contents) for g, n in enumerate(content.rows) if n > 0]
        rows = [n for content in contents for n in content.rows if n > 0]
        edges = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
        self.columns: list[str] = list(schema.names)
        self.names = self.columns
        self.files_end = np.cumsum([sum(content.rows) for content in contents])
        text = [j for j in range(len(schema)) if _is_categorical([c.schema.field(j).type for c in contents])]
        super().__init__(edges, len(schema), np.dtype(np.float32 if single else np.float64))
        if text:
            self.levels = {j: sorted(known.seen) for j, known in self._categories(text).items()}
        self._codes = _ranks(self.levels)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The rows of each file."""
        return np.diff(self.files_end, prepend=0)

    def with_levels(self, levels: Levels) -> Self:
        """The same rows with the codes of other levels, such as those that a model knows."""
        other = copy(self)
        other.levels = dict(levels)
        other._codes = _ranks(levels)
        return other

    def read(self, g: int) -> NDArray[Any]:
        """Read the rows of one group."""
        part = self.parts[g]
        path = self.paths[part.file]
        n = int(self.edges[g + 1] - self.edges[g])
        X = np.empty((n, self.shape[1]), self.dtype)
        done = 0
        with damage(path, KIND):
            for batch in _batches(path, part.group):
                stop = done + batch.num_rows
                if stop > n or batch.num_columns != self.shape[1]:
                    raise DataError(f"{path} has changed since it was opened; leave data alone while they are read.")
                for j, column in enumerate(batch.columns):
                    numbers = self._coded(path, j, column) if j in self._codes else numbers_of(column, self.dtype)
                    X[done:stop, j] = numbers
                done = stop
        if done != n:
            raise DataError(
                f"{path} holds {done} rows in group {part.group} where its head announces {n}; write it again."
            )
        return X

    def _coded(self, path: Path, j: int, column: Any) -> NDArray[np.float64]:
        """The codes of a column of categories; NaN where a value is missing."""
        seen = Categories()
        codes = seen.codes(column)
        known = self._codes[j]
        other = next((text for text in seen.seen if text not in known), None)
        if other is not None:
            shown = ", ".join(map(repr, list(known)[:8])) + (", ..." if len(known) > 8 else "")
            raise DataError(
                f"{path}: column {self.columns[j]!r} holds {other!r}, which is not among its levels: {shown}."
            )
        ranks = np.array([*(known[text] for text in seen.seen), np.nan])
        return np.asarray(ranks[np.where(np.isnan(codes), len(seen.seen), codes).astype(np.intp)])

    def _categories(self, text: list[int]) -> dict[int, Categories]:
        """What all files hold in columns of text."""
        found = {j: Categories() for j in text}
        for part in self.parts:
            path = self.paths[part.file]
            with damage(path, KIND):
                for batch in _batches(path, part.group, [self.columns[j] for j in text]):
                    for j, column in zip(text, batch.columns):
                        if not is_text(column.type):
                            raise DataError(
                                f"{path}: column {self.columns[j]!r} holds {column.type}, but text in other files; make it one."
                            )
                        found[j].codes(column)
        return found

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        super().__setstate__(state)
        check_unchanged(self.paths, self.stamps)


def _ranks(levels: Levels) -> Codes:
    """The code of each level of each column, levels that are no text by their text."""
    return {j: {str(level): i for i, level in enumerate(known)} for j, known in levels.items()}


def decoded_bytes(path: Path, options: ReadOptions) -> int:
    """The bytes that the rows of a file take in memory, at most."""
    contents = _contents(path, options)
    return 8 * sum(contents.rows) * len(contents.schema)


def is_parquet(path: Path) -> bool:
    """Whether a file is parquet, and not one of Arrow's, by its ending."""
    return path.suffix.lower() == ".parquet"


def _contents(path: Path, options: ReadOptions) -> Contents:
    """The head of a file."""
    with damage(path, KIND):
        if is_parquet(path):
            with parquet.ParquetFile(path) as file:
                metadata = file.metadata
                check_metadata(path, options, metadata, file.schema_arrow)
                rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
                return Contents(file.schema_arrow, rows)
        with pa.memory_map(str(path)) as source, ipc.open_file(source) as file:
            rows = [file.get_batch(i).num_rows for i in range(file.num_record_batches)]
            check_shape(path, options, sum(rows), file.schema)
            return Contents(file.schema, rows)


def _batches(path: Path, group: int, names: list[str] | None = None) -> Iterator[Any]:
    """The columns of a group, all or some, a batch of rows at a time."""
    if is_parquet(path):
        with parquet.ParquetFile(path) as file:
            for batch in file.read_row_group(group, names, use_threads=False).to_batches():
                batch.validate(full=True)  # offsets and codes that point beyond their arrays
                yield batch
        return
    with pa.OSFile(str(path)) as source, ipc.open_file(source) as file:
        batch = file.get_batch(group)
        batch.validate(full=True)
        yield batch if names is None else batch.select(names)


def batches_of(path: Path, options: ReadOptions, names: list[str]) -> Iterator[Any]:
    """Some columns of a file, a batch of rows at a time."""
    if is_parquet(path):
        with parquet.ParquetFile(path) as file:
            check_metadata(path, options, file.metadata, file.schema_arrow)
            n_groups = file.metadata.num_row_groups
    else:
        with pa.memory_map(str(path)) as source, ipc.open_file(source) as file:
            n_groups = file.num_record_batches
    for group in range(n_groups):
        yield from _batches(path, group, names)


def _check_schema(path: Path, schema: Any) -> None:
    """Refuse columns of the same name, or that hold neither numbers nor text."""
    twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path} has two columns {twice!r}; give each column a name of its own.")
    for field in schema:
        check_type(path, field)


def _is_categorical(kinds: Sequence[Any]) -> bool:
    """Whether a column, of these types in the files, holds categories: a column without values is what it is elsewhere."""
    known = [kind for kind in kinds if not types.is_null(kind)]
    return any(is_text(kind) for kind in known) or not known
