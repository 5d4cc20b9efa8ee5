"""Rows of a zarr array in a folder, read as many at a time as its chunks, or shards, have."""

from collections.abc import Mapping
from copy import copy
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .arrays import NUMBERS, working_precision
from .frames import Levels
from .stored import Grouped, check_unchanged, refuse_levels, stamps
from .table import LEAST_LIMIT, LIMIT_RATIO, DataError, ReadOptions, damage

METADATA = ("zarr.json", ".zarray", ".zgroup")
KIND = "a zarr array"


def is_zarr(path: Path) -> bool:
    """Whether a folder holds a zarr array, or a group of them."""
    return path.is_dir() and any((path / name).is_file() for name in METADATA)


class ZarrRows(Grouped):
    """The rows of a two-dimensional zarr array of numbers."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.path = path
        self.paths = sorted(file for file in path.rglob("*") if file.is_file())
        self.stamps = stamps(self.paths)
        array = self._array
        if array.ndim != 2 or array.dtype.kind not in NUMBERS:
            raise DataError(
                f"{path} holds an array of shape {array.shape} and type {array.dtype}; rows and columns of numbers are needed."
            )
        N, D = (int(n) for n in array.shape)
        if N == 0 or D == 0:
            raise DataError(f"{path} holds no data: {N} rows and {D} columns.")
        self._check_size(8 * N * D, options)
        step = int((getattr(array, "shards", None) or array.chunks)[0])
        edges = np.append(np.arange(0, N, min(step, N)), N)
        super().__init__(edges, D, working_precision(array.dtype))

    def read(self, g: int) -> NDArray[Any]:
        """Read the rows of one chunk."""
        with damage(self.path, KIND):
            return np.asarray(self._array[int(self.edges[g]) : int(self.edges[g + 1])], dtype=self.dtype)

    def with_levels(self, levels: Levels) -> Self:
        """Refuse levels: the array holds numbers.

        Raises
        ------
        ValueError : there are levels.
        """
        refuse_levels(self.path, levels)
        return copy(self)

    @cached_property
    def _array(self) -> Any:
        zarr = import_module("zarr")
        with damage(self.path, KIND):
            array = zarr.open(self.path, mode="r")
        if not hasattr(array, "chunks"):
            names = ", ".join(sorted(name for name, _ in array.arrays())[:8])
            raise DataError(
                f"{self.path} is a group of zarr arrays ({names}); name one of them, such as {self.path}/NAME."
            )
        return array

    def _check_size(self, n_bytes: int, options: ReadOptions) -> None:
        """Refuse an array that announces far more than its files hold: chunks that are missing are filled."""
        held = sum(size for size, _ in self.stamps)
        limit = max(LEAST_LIMIT, LIMIT_RATIO * held) if options.max_bytes is None else options.max_bytes
        if n_bytes > limit:
            raise DataError(
                f"{self.path}: its rows take more than the {limit:,} bytes that are allowed; pass a larger max_bytes "
                "(--max-bytes) if that is right."
            )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_array"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        super().__setstate__(state)
        check_unchanged(self.paths, self.stamps)
