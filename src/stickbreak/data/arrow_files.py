"""Tables in .parquet, .feather and .arrow files: columns of numbers or text."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc, parquet, types

from .table import DataError, ReadOptions, Table, damage

CELLS_AT_ONCE = 1 << 22


def read_parquet(path: Path, options: ReadOptions) -> Table:
    """All columns of a .parquet file."""
    with damage(path, "a parquet file"), parquet.ParquetFile(path) as file:
        metadata = file.metadata
        check_metadata(path, options, metadata, file.schema_arrow)
        rows = max(1, min(1 << 16, CELLS_AT_ONCE // len(file.schema_arrow)))
        return _table(path, options, file.schema_arrow, file.iter_batches(batch_size=rows))


def read_feather(path: Path, options: ReadOptions) -> Table:
    """All columns of a .feather or .arrow file."""
    with damage(path, "a feather file"), pa.OSFile(str(path)) as source, ipc.open_file(source) as file:
        batches = (file.get_batch(i) for i in range(file.num_record_batches))
        return _table(path, options, file.schema, batches)


def check_metadata(path: Path, options: ReadOptions, metadata: Any, schema: Any) -> None:
    """Refuse a .parquet file without rows, or whose columns would take more bytes than it may ask for."""
    stored = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    options.check_size(path, stored, "its columns unpack to")
    check_shape(path, options, metadata.num_rows, schema)


def check_shape(path: Path, options: ReadOptions, n_rows: int, schema: Any) -> None:
    """Refuse a table without rows or columns, or with more than its file may ask for."""
    if n_rows == 0 or len(schema) == 0:
        raise DataError(f"{path} holds no data: {n_rows} rows and {len(schema)} columns.")
    options.check_size(path, 8 * n_rows * len(schema), f"{n_rows:,} rows of {len(schema)} columns take")


def _table(path: Path, options: ReadOptions, schema: Any, batches: Iterable[Any]) -> Table:
    """Batches of columns as one array, float32 if every column is; at most two copies are held at once."""
    for field in schema:
        check_type(path, field)
    dtype = np.float32 if all(field.type == pa.float32() for field in schema) else np.float64
    categories = {j: Categories() for j, field in enumerate(schema) if is_text(field.type)}
    pieces = []
    n_rows = 0
    for batch in batches:
        batch.validate(full=True)  # offsets and codes that point beyond their arrays
        n_rows += batch.num_rows
        if batch.num_rows:
            check_shape(path, options, n_rows, schema)
        piece = np.empty((batch.num_rows, len(schema)), dtype)
        for j, column in enumerate(batch.columns):
            piece[:, j] = categories[j].codes(column) if j in categories else numbers_of(column)
        pieces.append(piece)
    check_shape(path, options, n_rows, schema)
    return with_levels(stacked(pieces, n_rows), [field.name for field in schema], categories)


def stacked(pieces: list[NDArray[Any]], n_rows: int) -> NDArray[Any]:
    """Rows of all pieces in one array; each piece is freed once it is copied."""
    X = np.empty((n_rows, pieces[0].shape[1]), pieces[0].dtype)
    stop = n_rows
    while pieces:
        piece = pieces.pop()
        X[stop - len(piece) : stop] = piece
        stop -= len(piece)
    return X


class Categories:
    """The texts of a column in the order in which they were seen."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def codes(self, column: Any) -> NDArray[np.float64]:
        """The number of each text; NaN where it is missing."""
        if types.is_string_view(column.type) or types.is_null(column.type):
            column = column.cast(pa.string())
        encoded = column if types.is_dictionary(column.type) else column.dictionary_encode()
        known = [np.nan if text is None else self._code(text) for text in encoded.dictionary.to_pylist()]
        indices = encoded.indices.cast(pa.int64()).fill_null(len(known)).to_numpy()
        codes: NDArray[np.float64] = np.array([*known, np.nan])[indices]  # the last for those without a code
        return codes

    def _code(self, text: str) -> float:
        return self.seen.setdefault(text, len(self.seen))


def with_levels(X: NDArray[Any], names: list[str] | None, categories: dict[int, Categories]) -> Table:
    """A table whose categories become codes of their sorted levels, in place."""
    levels = {j: sorted(known.seen) for j, known in categories.items()}
    for j, known in categories.items():
        ranks = {text: rank for rank, text in enumerate(levels[j])}
        codes = np.array([*(ranks[text] for text in known.seen), np.nan])
        missing = np.isnan(X[:, j])
        X[:, j] = codes[np.where(missing, len(ranks), X[:, j]).astype(np.intp)]
    return Table(X, names, levels)


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow is text."""
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(
        types.is_null(kind) or types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    )


def check_type(path: Path, field: Any) -> None:
    """Refuse a column that holds neither numbers nor text."""
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if not is_text(field.type) and not any(is_type(field.type) for is_type in numeric):
        raise DataError(
            f"{path}: column {field.name!r} holds {field.type}, neither numbers nor text; drop the column or encode it."
        )


def numbers_of(column: Any, dtype: Any = np.float64) -> NDArray[np.floating]:
    """The numbers of a column in a type of floats; NaN where they are missing."""
    values: NDArray[np.floating] = column.cast(pa.from_numpy_dtype(dtype), safe=False).to_numpy(zero_copy_only=False)
    return values
