"""Rows in files that are read some at a time and never held whole: memory maps one after another, and groups of rows."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from copy import copy as shallow
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .arrays import working_precision
from .frames import Levels, column_name
from .numpy_files import map_npy
from .pages import release_pages
from .table import DataError

KEPT = 1 << 28  # bytes of groups that stay in memory once they are read
FEWEST_KEPT = 2  # groups: two threads may be at the end of one and at the beginning of the next


class Stored(ABC):
    """Rows (N, D) in files, to be read like those of an array: ``X[a:b]`` and ``X[rows]``.

    edges : (G + 1,) the rows at which the groups begin that are read in one piece, and N
    dtype : of the rows
    names : of the columns, or None
    levels : of columns with categories, which rows hold codes of
    """

    ndim = 2
    names: Sequence[str] | None = None
    levels: Levels = MappingProxyType({})

    def __init__(self, edges: NDArray[np.int64], n_columns: int, dtype: np.dtype[Any]) -> None:
        self.edges = edges
        self.dtype = dtype
        self.shape = (int(edges[-1]), n_columns)

    @property
    def nbytes(self) -> int:
        """The bytes that all rows would take in memory."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return self._between(start, max(start, stop))
            rows = np.arange(start, stop, step)
        return self.take(np.asarray(rows))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype=dtype)

    def take(self, rows: NDArray[np.integer]) -> NDArray[Any]:
        """Rows at the given positions, in any order; every group is read once."""
        X = np.empty((len(rows), self.shape[1]), self.dtype)
        order = np.argsort(rows, kind="stable")
        ends = np.searchsorted(rows[order], self.edges)
        for g in np.flatnonzero(np.diff(ends)):
            mine = order[ends[g] : ends[g + 1]]
            X[mine] = self.group(int(g))[rows[mine] - self.edges[g]]
            self.release()
        return X

    def _between(self, start: int, stop: int) -> NDArray[Any]:
        """Rows start, ..., stop - 1."""
        first = int(np.searchsorted(self.edges, start, side="right")) - 1
        last = int(np.searchsorted(self.edges, stop))
        parts = []
        for g in range(first, min(last, len(self.edges) - 1)):
            begin = int(self.edges[g])
            parts.append(self.group(g)[max(start - begin, 0) : stop - begin])
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty((0, self.shape[1]), self.dtype)

    def astype(self, dtype: Any, copy: bool = False) -> Self:
        """The same rows as numbers of another type, in the files or not."""
        other = shallow(self)
        other.dtype = np.dtype(dtype)
        return other

    @abstractmethod
    def with_levels(self, levels: Levels) -> Self:
        """The same rows with the codes of other levels, such as those that a model knows."""

    @abstractmethod
    def group(self, g: int) -> NDArray[Any]:
        """The rows of one group."""

    @abstractmethod
    def release(self) -> None:
        """Let go of mapped pages that were read, where rows are mapped."""


class StackedMaps(Stored):
    """The rows of several .npy files, one file after another; each is mapped."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = list(paths)
        self.stamps = stamps(self.paths)
        self._maps = [map_npy(path) for path in self.paths]
        for path, X in zip(self.paths, self._maps):
            if X.ndim != 2 or X.dtype.kind not in "biuf":
                raise DataError(
                    f"{path} holds an array of shape {X.shape} and type {X.dtype}; files that are read together hold rows "
                    "and columns of numbers."
                )
            check_same_width(path, X.shape[1], self.paths[0], self._maps[0].shape[1])
        edges = np.concatenate([[0], np.cumsum([len(X) for X in self._maps])]).astype(np.int64)
        kinds = {working_precision(X.dtype) for X in self._maps}
        dtype = kinds.pop() if len(kinds) == 1 else np.dtype(np.float64)
        super().__init__(edges, self._maps[0].shape[1], dtype)

    def with_levels(self, levels: Levels) -> Self:
        """Refuse levels: these files hold numbers.

        Raises
        ------
        ValueError : there are levels.
        """
        refuse_levels(self.paths[0], levels)
        return self

    def group(self, g: int) -> NDArray[Any]:
        """The rows of one file."""
        return self._maps[g]

    def _between(self, start: int, stop: int) -> NDArray[Any]:
        return np.asarray(super()._between(start, stop), dtype=self.dtype)

    def release(self) -> None:
        """Let go of mapped pages that were read."""
        for X in self._maps:
            release_pages(X)

    def __reduce__(self) -> tuple[type[Self], tuple[list[Path]], dict[str, Any]]:
        return type(self), (self.paths,), {"stamps": self.stamps, "dtype": self.dtype}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        check_unchanged(self.paths, state["stamps"])
        self.dtype = state["dtype"]


class Without(Stored):
    """Rows in files without one column."""

    def __init__(self, rows: Stored, column: int) -> None:
        super().__init__(rows.edges, rows.shape[1] - 1, rows.dtype)
        self.rows = rows
        self.column = column
        self.names = None if rows.names is None else [name for d, name in enumerate(rows.names) if d != column]
        self.levels = {d - (d > column): known for d, known in rows.levels.items() if d != column}

    def take(self, rows: NDArray[np.integer]) -> NDArray[Any]:
        """Rows at the given positions."""
        return self._left(self.rows.take(rows))

    def _between(self, start: int, stop: int) -> NDArray[Any]:
        return self._left(self.rows[start:stop])

    def group(self, g: int) -> NDArray[Any]:
        """The rows of one group."""
        return self._left(self.rows.group(g))

    def astype(self, dtype: Any, copy: bool = False) -> Self:
        """The same rows as numbers of another type."""
        return type(self)(self.rows.astype(dtype), self.column)

    def with_levels(self, levels: Levels) -> Self:
        """The same rows with the codes of other levels."""
        own = {self.column: self.rows.levels[self.column]} if self.column in self.rows.levels else {}
        moved = {d + (d >= self.column): known for d, known in levels.items()}
        return type(self)(self.rows.with_levels({**moved, **own}), self.column)

    def release(self) -> None:
        """Let go of mapped pages that were read."""
        self.rows.release()

    def _left(self, X: NDArray[Any]) -> NDArray[Any]:
        return np.delete(X, self.column, axis=1)


class Grouped(Stored):
    """Rows in groups that take work to read, such as those of compressed files: the last few stay in memory."""

    def __init__(self, edges: NDArray[np.int64], n_columns: int, dtype: np.dtype[Any]) -> None:
        super().__init__(edges, n_columns, dtype)
        self._forget()

    @abstractmethod
    def read(self, g: int) -> NDArray[Any]:
        """Read the rows of one group."""

    def group(self, g: int) -> NDArray[Any]:
        """The rows of one group; where two threads want the same one, the second waits for the first."""
        with self._lock:
            reading = self._reading.setdefault(g, Lock())
        with reading:
            X = self._known(g)
            if X is None:
                X = self.read(g)
                X.setflags(write=False)
            self._keep(g, X)
            return X

    def release(self) -> None:
        """Nothing is mapped: what was read stays for the next chunk of its group."""

    def _known(self, g: int) -> NDArray[Any] | None:
        with self._lock:
            return self._kept.get(g)

    def _keep(self, g: int, X: NDArray[Any]) -> None:
        """Keep a group as the last one used; the first ones go where there are too many."""
        with self._lock:
            self._kept[g] = X
            self._kept.move_to_end(g)
            self._reading.pop(g, None)
            self._trim()

    def _trim(self) -> None:
        size = sum(X.nbytes for X in self._kept.values())
        while len(self._kept) > FEWEST_KEPT and size > KEPT:
            size -= self._kept.popitem(last=False)[1].nbytes

    def _forget(self) -> None:
        self._kept: OrderedDict[int, NDArray[Any]] = OrderedDict()
        self._reading: dict[int, Lock] = {}
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs to read the same files: without rows that were read."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_kept", "_reading", "_lock")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()


def refuse_levels(path: Path, levels: Levels) -> None:
    """Refuse levels of categories for files that hold numbers."""
    if levels:
        raise ValueError(
            f"{path} holds numbers, but the model was fitted to categories in column {min(levels)}; read files with the "
            "categories as text."
        )


def stamps(paths: Sequence[Path]) -> list[tuple[int, int]]:
    """The size of each file and when it was last written."""
    found = [path.stat() for path in paths]
    return [(status.st_size, status.st_mtime_ns) for status in found]


def check_unchanged(paths: Sequence[Path], expected: Sequence[tuple[int, int]]) -> None:
    """Refuse files that were written since they were opened."""
    for path, now, before in zip(paths, stamps(paths), expected):
        if now != before:
            raise DataError(f"{path} has changed since it was opened; leave data alone while they are read.")


def check_same_width(path: Path, D: int, first: Path, expected: int) -> None:
    """Refuse a file with other columns than the first that it is read with."""
    if expected != D:
        raise DataError(
            f"{path} has {D} columns, but {first} has {expected}; files that are read together have the same."
        )


def check_same_names(path: Path, names: Sequence[str] | None, first: Path, expected: Sequence[str] | None) -> None:
    """The same, by name and in order."""
    if names is None or expected is None or list(names) == list(expected):
        return
    check_same_width(path, len(names), first, len(expected))
    d = next(d for d, (own, other) in enumerate(zip(names, expected)) if own != other)
    raise DataError(
        f"{path} has the column {column_name(names, d)!r} where {first} has {column_name(expected, d)!r}; files that are read "
        "together have the same columns in the same order."
    )
