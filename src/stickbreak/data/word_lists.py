"""Documents in files of columns: a list of words in each row, and a list of counts."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc, parquet, types
from scipy import sparse

from .arrow_rows import KIND, batches_of, is_parquet
from .bag_files import MOST
from .table import DataError, ReadOptions, damage

WORDS, COUNTS = "words", "counts"


def has_lists(path: Path) -> bool:
    """Whether a file has a column of lists of words."""
    with damage(path, KIND):
        schema = _schema(path)
        return WORDS in schema.names and _is_list(schema.field(WORDS).type)


def blocks(paths: Sequence[Path], options: ReadOptions) -> Iterator[sparse.csr_array]:
    """The documents of all files, a group at a time."""
    for path in paths:
        with damage(path, KIND):
            schema = _schema(path)
            names = [name for name in (WORDS, COUNTS) if name in schema.names]
            if WORDS not in names or not all(_is_list(schema.field(name).type) for name in names):
                raise DataError(
                    f"{path} needs a column {WORDS!r} with the list of the words of each document, by their numbers from 0, "
                    f"and may have one {COUNTS!r} of as many numbers."
                )
            for batch in batches_of(path, options, names):
                yield _counts(path, *(batch.column(name) for name in names))


def _schema(path: Path) -> Any:
    if is_parquet(path):
        return parquet.read_schema(path)
    with pa.memory_map(str(path)) as source, ipc.open_file(source) as file:
        return file.schema


def _is_list(kind: Any) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind))


def _counts(path: Path, words: Any, counts: Any = None) -> sparse.csr_array:
    """Documents (n, largest word + 1) from a column of lists of words, and one of as many counts."""
    if words.null_count or (counts is not None and counts.null_count):
        raise DataError(f"{path}: a document has no list; give documents without words an empty one.")
    edges = np.asarray(words.offsets, np.int64)
    ids = _flat(path, WORDS, words)
    sizes = np.diff(edges)
    if counts is None:
        numbers = np.ones(len(ids))
    else:
        numbers = _flat(path, COUNTS, counts).astype(np.float64)
        other = np.diff(np.asarray(counts.offsets, np.int64))
        wrong = np.flatnonzero(other != sizes)
        if len(wrong):
            d = int(wrong[0])
            raise DataError(f"{path}: a document has {sizes[d]} words but {other[d]} counts; give each word one.")
    if ids.dtype.kind not in "iu" or (len(ids) and not (int(ids.min()) >= 0 and int(ids.max()) <= MOST)):
        raise DataError(f"{path}: words must be whole numbers from 0 to {MOST}, their places in the vocabulary.")
    if not ((numbers >= 0.0) & np.isfinite(numbers)).all():
        raise DataError(f"{path}: counts must be finite and at least 0.")
    V = int(ids.max()) + 1 if len(ids) else 0
    X = sparse.csr_array((numbers, ids.astype(np.int32), edges - edges[0]), (len(sizes), V))
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def _flat(path: Path, name: str, lists: Any) -> NDArray[Any]:
    """The items of all lists of a column."""
    items = lists.flatten()
    if items.null_count or not (types.is_integer(items.type) or types.is_floating(items.type)):
        raise DataError(
            f"{path}: the lists of column {name!r} must hold numbers, none of them missing; they hold {items.type}."
        )
    found: NDArray[Any] = items.to_numpy(zero_copy_only=False)
    return found
