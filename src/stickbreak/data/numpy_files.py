"""Arrays in .npy and .npz files.  Headers are compared with the sizes of files before anything is allocated."""

import math
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .sparse_rows import sparse_rows
from .table import DataError, ReadOptions, damage

KIND = "a NumPy file"
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
INTEGERS = {"indices", "indptr", "row", "col", "coords", "offsets", "shape"}  # arrays of a sparse matrix
MOST_DEFLATED = 1100  # deflate packs at most 1032 to 1
PACKING = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


class Header(NamedTuple):
    """The header of an array: what precedes its numbers."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    offset: int


def map_npy(path: Path) -> NDArray[Any]:
    """The array of a .npy file, mapped unless it is empty."""
    with damage(path, KIND), path.open("rb") as file:
        shape, fortran_order, dtype, offset = _header(str(path), file, path.stat().st_size)
        if math.prod(shape) == 0:
            return np.empty(shape, dtype)
        order: Literal["C", "F"] = "F" if fortran_order else "C"
        return np.memmap(path, dtype, "r", offset, shape, order)


def is_archive(path: Path) -> bool:
    """Whether a file is an archive of arrays, whatever its suffix."""
    with path.open("rb") as file:
        return file.read(2) == b"PK"


def read_npz(path: Path, options: ReadOptions, names: set[str] | None = None) -> dict[str, NDArray[Any]]:
    """Arrays of a .npz file: those with the given names, or all."""
    with damage(path, KIND):
        kept = {name for name in read_headers(path) if names is None or name in names}
        _check_sizes(path, options, kept)
        with np.load(path, allow_pickle=False) as data:
            return {name: data[name] for name in kept}


def read_sparse(path: Path, options: ReadOptions) -> sparse.csr_array:
    """The sparse matrix that SciPy saved in a .npz file."""
    with damage(path, KIND):
        headers = read_headers(path)
        _check_sizes(path, options, set(headers))
        wrong = next((name for name in headers if name in INTEGERS and headers[name].dtype.kind not in "iu"), None)
        if wrong is not None:  # SciPy would round them
            raise DataError(
                f"{path}: {wrong} holds values of type {headers[wrong].dtype}, not integers; save it again."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about types that are refused below
            matrix = sparse.load_npz(path)
        if matrix.ndim != 2:
            raise DataError(
                f"{path} holds {matrix.ndim} dimensions of {matrix.dtype}, not rows and columns of numbers."
            )
        options.check_size(path, 8 * (matrix.shape[0] + 1), f"{matrix.shape[0]:,} rows take")
        return sparse_rows(matrix, str(path))


def read_headers(path: Path) -> dict[str, Header]:
    """The headers of the arrays in a .npz file by their names."""
    with damage(path, KIND), zipfile.ZipFile(path) as archive:
        headers: dict[str, Header] = {}
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            where = f"{path}, array {name!r}"
            if name in headers:
                raise DataError(f"{path} holds {name!r} twice; leave one out.")
            if info.flag_bits & 1:
                raise DataError(f"{where} is encrypted; save it without a password.")
            if info.compress_type not in PACKING or info.file_size > MOST_DEFLATED * (info.compress_size + 1):
                raise DataError(f"{where} is packed in a way that NumPy does not use, or is damaged; save it again.")
            with archive.open(info) as file:
                headers[name] = _header(where, file, info.file_size)
        return headers


def _check_sizes(path: Path, options: ReadOptions, names: set[str]) -> None:
    with zipfile.ZipFile(path) as archive:
        sizes = {info.filename.removesuffix(".npy"): info.file_size for info in archive.infolist()}
    options.check_size(path, sum(sizes[name] for name in names), "its arrays unpack to")


def _header(where: str, file: IO[bytes], size: int) -> Header:
    """The header of an array that takes ``size`` bytes with it."""
    try:
        version = np.lib.format.read_magic(file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the parser, about the text of a damaged header
            shape, fortran_order, dtype = HEADERS[version](file)
    except Exception as error:  # the header is an expression: SyntaxError, TokenError, MemoryError and others
        raise DataError(
            f"{where} is no array of NumPy, is damaged, or holds Python objects; save it as numbers."
        ) from error
    if dtype.hasobject:
        raise DataError(f"{where} holds Python objects; save it as numbers.")
    found = size - file.tell()
    announced = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or found != announced:
        raise DataError(
            f"{where} is damaged or cut off: its header announces {announced:,} bytes, an array of shape {shape} and type "
            f"{dtype}, but {found:,} follow."
        )
    return Header(shape, fortran_order, dtype, file.tell())
