"""Sparse matrices from outside as CSR that compiled loops may trust.

SciPy and our kernels read and write where ``indices`` and ``indptr`` point without checking bounds, and SciPy caches in flags
whether rows are sorted, which a change of ``indices`` in place does not reset.  So every sparse matrix from a user or a file
is verified here once per call, before anything else reads it.
"""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .pages import release_pages

Array = NDArray[np.floating]
Integers = NDArray[np.integer]

ENTRIES_AT_ONCE = 1 << 18  # entries checked together, so that they stay in the cache and maps are never held whole
MOST_COPIED = 1 << 27  # entries of a map that are sorted in memory
MOST_EMPTY = 1 << 24  # empty rows that a matrix of another format than CSR may have
NUMBERS = "biuf"
MAPPED = (np.float32, np.float64, np.int32, np.int64)  # types that stay a map


def sparse_rows(X: Any, name: str = "X") -> sparse.csr_array:
    """Any sparse matrix of SciPy as CSR, verified: sorted, without repeats, without zeros.

    The given matrix is not changed; if it is in order already, its arrays are shared.  Repeated entries are added up in
    float64, whatever the type (repeated truth values: true if any is).  Rows with entries out of order are sorted in a copy.

    Parameters
    ----------
    X : sparse matrix or array (N, D) of any format and real type; CSR may be of memory maps, which are read piece by piece
    name : what messages call it, unless it is mapped from a file: then they name the file

    Returns
    -------
    csr_array (N, D) of float32 if X is of float32, else float64; it holds the maps themselves if they are in order

    Raises
    ------
    ValueError : X is not two-dimensional, does not hold real numbers, or its arrays contradict each other or its shape.  Build
        the matrix again, from correct rows and columns.
    """
    shape = _shape(X, name)
    if X.format == "csr":
        found = _compressed(X, *shape, name)
        if _check_columns(found, shape[1], name):
            return _assembled(*found, shape)
        if isinstance(found.data, np.memmap) and len(found.data) > MOST_COPIED:
            raise ValueError(
                f"{_named(found.indices, name)}: words of a document are out of order, repeated or of count 0, in a corpus too "
                "large to sort in memory; write it again with write_corpus."
            )
        entries = Entries(found.data, np.repeat(np.arange(shape[0]), np.diff(found.indptr)), found.indices)
    else:
        entries = _entries(X, shape, name)
    return _sorted(entries, shape)


class Compressed(NamedTuple):
    """The arrays of CSR or CSC: the entries of row or column i are ``indptr[i]:indptr[i + 1]``."""

    data: NDArray[Any]
    indices: Integers
    indptr: Integers


class Entries(NamedTuple):
    """Values and their positions in any order; positions may repeat."""

    data: NDArray[Any]
    rows: Integers
    columns: Integers


def _shape(X: Any, name: str) -> tuple[int, int]:
    shape = tuple(X.shape)
    whole = all(isinstance(size, (int, np.integer)) and 0 <= size <= np.iinfo(np.int64).max for size in shape)
    if len(shape) != 2 or not whole:
        raise ValueError(f"{name} must have two dimensions, rows and columns; got a sparse array of shape {shape}.")
    return int(shape[0]), int(shape[1])


def _sorted(entries: Entries, shape: tuple[int, int]) -> sparse.csr_array:
    """Entries at valid positions, sorted, with repeated ones added up."""
    wide = entries.data.astype(np.float64)
    X = sparse.coo_array((wide, (entries.rows, entries.columns)), shape).tocsr()
    X.sum_duplicates()
    if entries.data.dtype == np.bool_:
        X.data = np.minimum(X.data, 1.0)
    X.data = X.data.astype(_working(entries.data.dtype), copy=False)
    X.eliminate_zeros()
    return _assembled(X.data, X.indices, X.indptr, shape)


def _assembled(data: NDArray[Any], indices: Integers, indptr: Integers, shape: tuple[int, int]) -> sparse.csr_array:
    """CSR of arrays in order; arrays in memory get the working precision and one width of indices."""
    number = _working(data.dtype)
    if not all(isinstance(array, np.memmap) and array.dtype in MAPPED for array in (data, indices, indptr)):
        kind = np.int32 if max(len(indices), shape[1]) < np.iinfo(np.int32).max else np.int64
        data = np.require(data, number, ["C", "ALIGNED"])
        indices, indptr = (np.require(array, kind, ["C", "ALIGNED"]) for array in (indices, indptr))
    X = sparse.csr_array(shape, dtype=number)
    X.data, X.indices, X.indptr = (
        data,
        indices,
        indptr,
    )  # the constructor would read all entries and convert the indices of maps
    X.has_canonical_format = True
    return X


def _working(dtype: np.dtype[Any]) -> type[np.floating]:
    return np.float32 if dtype == np.float32 else np.float64


def _compressed(X: Any, n: int, D: int, name: str) -> Compressed:
    """The arrays of CSR, or of CSC or BSR where n and D are those of its columns or blocks, with the pointers checked."""
    found = Compressed(
        _vector(X.data, f"{name}.data", NUMBERS, 3 if X.format == "bsr" else 1),
        _vector(X.indices, f"{name}.indices", "iu"),
        _vector(X.indptr, f"{name}.indptr", "iu"),
    )
    data, indices, indptr = found
    if len(data) != len(indices):
        raise ValueError(f"{name} is damaged: {len(indices)} indices for {len(data)} values. {_cure(indices)}")
    where = _named(indptr, f"{name}.indptr")
    if len(indptr) != n + 1:
        raise ValueError(f"{where} has {len(indptr)} numbers where {n + 1} are expected. {_cure(indptr)}")
    if indptr[0] != 0:
        raise ValueError(f"{where} starts at {indptr[0]}, not at 0. {_cure(indptr)}")
    for start in range(0, n, ENTRIES_AT_ONCE):
        edges = np.asarray(indptr[start : start + ENTRIES_AT_ONCE + 1])
        falls = np.flatnonzero(edges[1:] < edges[:-1])
        if falls.size:
            i = start + int(falls[0])
            raise ValueError(f"{where} falls from {indptr[i]} to {indptr[i + 1]} at row {i}. {_cure(indptr)}")
    if indptr[-1] > len(indices):
        raise ValueError(f"{where} ends at {indptr[-1]}, beyond the {len(indices)} entries stored. {_cure(indptr)}")
    nnz = int(indptr[-1])
    return Compressed(data[:nnz], indices[:nnz], indptr) if nnz < len(indices) else found


def _check_columns(X: Compressed, D: int, name: str) -> bool:
    """Whether all entries are in order, without repeats and without zeros; refuse columns that do not exist."""
    in_order = True
    for start in range(0, len(X.indices), ENTRIES_AT_ONCE):
        stop = start + ENTRIES_AT_ONCE
        before = max(start - 1, 0)
        here = np.asarray(X.indices[before:stop])
        if here.min() < 0 or here.max() >= D:
            place = before + int(((here < 0) | (here >= D)).argmax())
            row = int(np.searchsorted(X.indptr, place, side="right")) - 1
            raise ValueError(
                f"{_named(X.indices, f'{name}.indices')} is damaged: entry {place}, in row {row}, is of column "
                f"{X.indices[place]}, but there are {D} columns. {_cure(X.indices)}"
            )
        if in_order:
            falls = np.flatnonzero(here[1:] <= here[:-1]) + before + 1
            begins = X.indptr[np.searchsorted(X.indptr, falls)] == falls
            in_order = bool(begins.all() and np.asarray(X.data[start:stop]).all())
        for array in X:
            release_pages(array)
    return in_order


def _entries(X: Any, shape: tuple[int, int], name: str) -> Entries:
    """The entries of a matrix of any format but CSR, with their positions checked."""
    if X.format not in FORMATS:
        raise ValueError(f"{name} has the unknown sparse format {X.format!r}; pass {name}.tocsr().")
    data, rows, columns = FORMATS[X.format](X, shape, name)
    if shape[0] - len(data) > MOST_EMPTY:
        raise ValueError(
            f"{name} has {shape[0]} rows for {len(data)} values stored; leave out the rows that are empty."
        )
    if not len(data) == len(rows) == len(columns):
        counts = f"{len(rows)} rows and {len(columns)} columns for {len(data)} values"
        raise ValueError(f"{name} is damaged: {counts}. {_cure(data)}")
    for places, size in ((rows, shape[0]), (columns, shape[1])):
        if len(places) and (places.min() < 0 or places.max() >= size):
            i = int(((places < 0) | (places >= size)).argmax())
            raise ValueError(
                f"{name} is damaged: entry {i} is in row {rows[i]}, column {columns[i]}, but there are {shape[0]} rows and "
                f"{shape[1]} columns. {_cure(data)}"
            )
    return Entries(data, rows, columns)


def _from_coo(X: Any, shape: tuple[int, int], name: str) -> Entries:
    if len(X.coords) != 2:
        raise ValueError(f"{name} is damaged: it has {len(X.coords)} lists of places, not 2. {_cure(X.data)}")
    rows, columns = (_vector(places, f"{name}.coords", "iu") for places in X.coords)
    return Entries(_vector(X.data, f"{name}.data", NUMBERS), rows, columns)


def _from_csc(X: Any, shape: tuple[int, int], name: str) -> Entries:
    data, rows, indptr = _compressed(X, shape[1], shape[0], name)
    return Entries(data, rows, np.repeat(np.arange(shape[1]), np.diff(indptr)))


def _from_bsr(X: Any, shape: tuple[int, int], name: str) -> Entries:
    """Entries of blocks (R, C)."""
    R, C = np.shape(X.data)[1:] if np.ndim(X.data) == 3 else (0, 0)
    if R < 1 or C < 1 or shape[0] % R or shape[1] % C:
        raise ValueError(f"{name} is damaged: its shape {shape} is not made of blocks {R} x {C}. {_cure(X.data)}")
    data, blocks, indptr = _compressed(X, shape[0] // R, shape[1] // C, name)
    if blocks.size and (blocks.min() < 0 or blocks.max() >= shape[1] // C):
        wrong = blocks[((blocks < 0) | (blocks >= shape[1] // C)).argmax()]
        raise ValueError(f"{name} is damaged: a block is in column {wrong} of {shape[1] // C} of blocks. {_cure(data)}")
    above = np.repeat(np.arange(shape[0] // R), np.diff(indptr)) * R
    rows = above[:, None, None] + np.arange(R)[:, None]
    columns = blocks.astype(np.int64)[:, None, None] * C + np.arange(C)
    return Entries(data.ravel(), *(np.broadcast_to(places, data.shape).ravel() for places in (rows, columns)))


def _from_dia(X: Any, shape: tuple[int, int], name: str) -> Entries:
    """Entries of diagonals: item j of a diagonal with offset k is in column j and row j - k."""
    data = _vector(X.data, f"{name}.data", NUMBERS, 2)
    offsets = _vector(X.offsets, f"{name}.offsets", "iu")
    if len(offsets) != len(data):
        raise ValueError(f"{name} is damaged: {len(offsets)} offsets for {len(data)} diagonals. {_cure(data)}")
    near = (offsets > -shape[0]) & (offsets < shape[1])  # the others lie outside the matrix
    data = data[near, : shape[1]]
    offsets = offsets[near].astype(np.int64)
    columns = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    rows = columns - offsets[:, None]
    inside = (rows >= 0) & (rows < shape[0])
    return Entries(data[inside], rows[inside], columns[inside])


def _from_lil(X: Any, shape: tuple[int, int], name: str) -> Entries:
    """Entries of one list of columns and one of values for each row."""
    try:
        sizes, others = ([len(row) for row in lists] for lists in (X.rows, X.data))
    except TypeError as error:
        raise ValueError(f"{name} is damaged: its rows are not lists. {_cure(X.data)}") from error
    if len(sizes) != shape[0] or sizes != others:
        raise ValueError(f"{name} is damaged: its lists of columns and of values differ in length. {_cure(X.data)}")
    columns = _cells(chain.from_iterable(X.rows), np.int64, f"{name}.rows")
    rows = np.repeat(np.arange(shape[0]), sizes)
    return Entries(
        _cells(chain.from_iterable(X.data), X.dtype, f"{name}.data"), rows, _vector(columns, f"{name}.rows", "iu")
    )


def _from_dok(X: Any, shape: tuple[int, int], name: str) -> Entries:
    """Entries of a dictionary of positions."""
    places = list(X.keys())
    if not all(isinstance(place, tuple) and len(place) == 2 for place in places):
        raise ValueError(f"{name} is damaged: its keys are not pairs of a row and a column. {_cure(X)}")
    where = f"keys of {name}"
    rows, columns = (_vector(_cells((place[i] for place in places), np.int64, where), where, "iu") for i in (0, 1))
    return Entries(_cells(X.values(), X.dtype, f"values of {name}"), rows, columns)


def _cells(values: Iterable[Any], dtype: Any, name: str) -> NDArray[Any]:
    """Single numbers as an array: of the type of the matrix if that is float32 or bool, else of their own type."""
    try:
        cells = np.array(list(values))
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must hold numbers only.") from error
    if not cells.size or (cells.dtype.kind in NUMBERS and dtype in (np.float32, np.bool_)):
        cells = cells.astype(dtype)
    return _vector(cells, name, NUMBERS)


FORMATS: dict[str, Callable[[Any, tuple[int, int], str], Entries]] = {
    "coo": _from_coo,
    "csc": _from_csc,
    "bsr": _from_bsr,
    "dia": _from_dia,
    "lil": _from_lil,
    "dok": _from_dok,
}


def _vector(values: Any, name: str, kinds: str, n_axes: int = 1) -> NDArray[Any]:
    """An array of numbers of some kinds."""
    array = values if isinstance(values, np.memmap) else np.asarray(values)
    if array.dtype.kind not in kinds:
        wanted = "integers" if kinds == "iu" else "real numbers"
        raise ValueError(f"{_named(array, name)} must hold {wanted}; got values of type {array.dtype}.")
    if array.ndim != n_axes:
        raise ValueError(f"{_named(array, name)} must have {n_axes} axes; got an array of shape {array.shape}.")
    return array


def _named(array: Any, name: str) -> str:
    """The name of the file that an array maps, else the given name."""
    return str(getattr(array, "filename", None) or name)


def _cure(array: Any) -> str:
    mapped = getattr(array, "filename", None) is not None
    return "Write the corpus again." if mapped else "Build the matrix again, from correct rows and columns."
