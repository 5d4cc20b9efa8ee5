"""A corpus: bags of words as a folder of arrays that may be larger than memory."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .atomic import as_path, check_folder, remove_leftovers, replacing_folder
from .bag_files import ENDINGS, MOST, blocks, is_ldac, read_corpus, vocabulary
from .files import READERS, ending
from .numpy_files import map_npy
from .sparse_rows import sparse_rows
from .table import DEFAULT, DataError, ReadOptions
from .zarr_rows import is_zarr

FORMAT = "stickbreak-corpus"
VERSION = 1
RECORD = "corpus.json"
VOCABULARY = "vocabulary.txt"
COLUMNS = {"indptr": "<i8", "indices": "<i4", "counts": "<f4"}
BLOCK_ROWS = 4096  # documents written at once


def write_corpus(folder: str | Path, documents: Any, n_words: int | None = None) -> None:
    """Write bags of words piece by piece to a folder that `open_corpus` maps.

    The folder appears, or takes the place of an older corpus, when all is written; a write that fails leaves no trace.

    Parameters
    ----------
    folder : where to
    documents : a file as in `bag_files.read_corpus`, if UCI sorted by document; its vocabulary is copied to ``vocabulary.txt``.
        Or sparse arrays (n, V), one or an iterable of them, of counts >= 0.  Kept in float32: exact to 16,777,216.
    n_words : V; by default that of the file, or of the widest array

    Raises
    ------
    DataError : the file or the counts cannot be used, or ``n_words`` is too small.
    FileExistsError : ``folder`` is something else than a corpus; name another or remove it.
    FileNotFoundError : the folder that should hold ``folder`` does not exist.
    OSError : the disk is full; the error names ``folder``.
    """
    _check_target(Path(os.path.realpath(as_path(folder, "folder"))))
    path = Path(documents) if isinstance(documents, (str, os.PathLike)) else None
    pieces = blocks(path) if path is not None else [documents] if sparse.issparse(documents) else documents
    with replacing_folder(folder) as temporary:
        D, V, nnz = _write_arrays(temporary, pieces, n_words)
        if D == 0:
            raise DataError(f"{path} holds no documents." if path is not None else "there are no documents to write.")
        words = None if path is None else vocabulary(path, V, longer=n_words is None and is_ldac(path))
        if words is not None:
            V = len(words)
            (temporary / VOCABULARY).write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
        record = {"format": FORMAT, "version": VERSION, "n_documents": D, "n_words": V, "n_entries": nnz}
        record["vocabulary"] = None if words is None else VOCABULARY
        (temporary / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def open_corpus(folder: str | Path) -> sparse.csr_array:
    """Map the corpus that `write_corpus` wrote, without reading it.

    To read some rows, slice its three arrays: with ``X[a:b]`` or ``X[rows]`` SciPy copies all of ``indices`` as int64,
    unless ``X.indptr`` is replaced by a copy of 32 bits, where ``X.nnz`` allows.

    Returns
    -------
    Counts (D, V), sorted and without zeros; ``data`` float32, ``indices`` int32 and ``indptr`` int64 are read-only maps.

    Raises
    ------
    DataError : there is no corpus, it is damaged, or it comes from a newer version.
    """
    folder = as_path(folder, "folder")
    if not Path(folder).exists():  # a killed writer may have moved it away
        remove_leftovers(Path(os.path.realpath(folder)).parent)
    record = _read_record(folder)
    D, V, nnz = (record[name] for name in ("n_documents", "n_words", "n_entries"))
    sizes = {"indptr": D + 1, "indices": nnz, "counts": nnz}
    maps = [_map(folder / f"{name}.npy", dtype, sizes[name]) for name, dtype in COLUMNS.items()]
    if maps[0][0] != 0 or maps[0][-1] != nnz:
        raise DataError(f"{folder / 'indptr.npy'} is damaged: it should run from 0 to {nnz}; write the corpus again.")
    X = sparse.csr_array((D, V), dtype=np.float32)
    X.indptr, X.indices, X.data = maps  # the constructor would convert the first to 32 bits, or the second to 64
    X.has_canonical_format = True
    return X


def is_corpus(path: str | Path) -> bool:
    """Whether a path is a folder without tables in it, or a text file of bags of words by its ending."""
    name = Path(path).name.lower().removesuffix(".gz")
    if not Path(path).is_dir():
        return Path(name).suffix in ENDINGS
    folder = Path(path)
    if (folder / RECORD).exists():
        return True
    return not is_zarr(folder) and not any(ending(file) in READERS for file in folder.rglob("*"))


def open_bags(path: str | Path, options: ReadOptions = DEFAULT) -> tuple[sparse.csr_array, list[str] | None]:
    """The counts of a corpus folder, mapped, or of a text file, and the vocabulary, or None."""
    path = as_path(path)
    if not path.is_dir():
        return read_corpus(path, options)
    X = open_corpus(path)
    return X, _read_vocabulary(path, X.shape[1])


def _read_vocabulary(folder: Path, V: int) -> list[str] | None:
    file = folder / VOCABULARY
    announced = _read_record(folder)["vocabulary"]
    if announced is None and not file.exists():
        return None
    try:
        words = file.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file} is missing, or is not text in UTF-8; write the corpus again: {error}") from error
    if len(words) != V:
        raise DataError(f"{file} has {len(words)} lines for {V} words; write the corpus again.")
    return words


def _write_arrays(folder: Path, blocks: Iterable[Any], n_words: int | None) -> tuple[int, int, int]:
    """D, V and the number of entries written."""
    D = 0
    V = int(n_words or 0)
    nnz = 0
    with ExitStack() as stack:
        append = {n: stack.enter_context(_growing(folder / f"{n}.npy", dtype)) for n, dtype in COLUMNS.items()}
        append["indptr"](np.zeros(1))
        for number, block in enumerate(blocks):
            for X in _pieces(f"block {number} of documents", block, n_words):
                append["indptr"](nnz + X.indptr[1:].astype(np.int64))
                append["indices"](X.indices)
                append["counts"](X.data)
                D = D + X.shape[0]
                V = max(V, X.shape[1])
                nnz = nnz + X.nnz
    return D, V, nnz


def _pieces(name: str, block: Any, n_words: int | None) -> Iterator[sparse.csr_array]:
    """Verified rows, a few at a time, in the type that is written."""
    if not sparse.issparse(block) or block.ndim != 2:
        raise DataError(f"{name} is a {type(block).__name__}, not a sparse array (n, V); wrap it in csr_array.")
    if block.shape[1] > (most := MOST + 1 if n_words is None else n_words):
        raise DataError(
            f"{name} has {block.shape[1]} words where n_words allows {most}; raise n_words or leave it out."
        )
    try:
        block = sparse_rows(block, name)
    except ValueError as error:
        raise DataError(str(error)) from error
    for start in range(0, block.shape[0], BLOCK_ROWS):
        edges = block.indptr[start : start + BLOCK_ROWS + 1].astype(np.int64)
        arrays = block.data[edges[0] : edges[-1]], block.indices[edges[0] : edges[-1]], edges - edges[0]
        X = sparse.csr_array(arrays, (len(edges) - 1, block.shape[1]), copy=True)
        wrong = X.data[~((X.data >= 0) & (X.data <= float(np.finfo(np.float32).max)))]
        if len(wrong):
            raise DataError(f"{name} holds a count of {wrong[0]}; counts must be finite in float32 and at least 0.")
        X = X.astype(np.float32)
        X.eliminate_zeros()  # counts too small for float32 have become zeros
        yield X


@contextmanager
def _growing(path: Path, dtype: str) -> Iterator[Callable[[NDArray[Any]], None]]:
    """A function that appends numbers to a .npy file; NumPy leaves room in the header for the final length."""
    size = 0
    with path.open("xb") as file:

        def header() -> None:
            file.seek(0)
            np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": (size,)})

        def append(values: NDArray[Any]) -> None:
            nonlocal size
            size += len(values)
            file.write(values.astype(dtype).tobytes())

        header()
        yield append
        header()
        file.flush()
        os.fsync(file.fileno())


def _check_target(target: Path) -> None:
    check_folder(target)
    if target.exists():
        own = {RECORD, VOCABULARY, *(f"{name}.npy" for name in COLUMNS)}
        found = {file.name for file in target.iterdir()} if target.is_dir() else set()
        if RECORD not in found or found - own:
            what = f"holds {min(found - own)!r}" if found - own else f"has no {RECORD}"
            raise FileExistsError(f"{target} is not a corpus: it {what}; name another folder or remove it.")


def _read_record(folder: Path) -> dict[str, Any]:
    """The record of a corpus, with sizes that an array can have."""
    file = folder / RECORD
    if not file.is_file():
        raise DataError(f"{folder} is not a corpus: it has no {RECORD}; write_corpus makes one.")
    try:
        record = dict(json.loads(file.read_bytes()))
        sizes = [record[name] for name in ("n_documents", "n_words", "n_entries", "version")]
        good = record["format"] == FORMAT and all(type(size) is int and 0 <= size < 2**63 for size in sizes)
        good = good and record["vocabulary"] in (None, VOCABULARY)
    except (ValueError, LookupError, TypeError, RecursionError):
        good = False
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror or error}.") from error
    if not good:
        raise DataError(f"{file} is damaged, or not the record of a corpus; write the corpus again.")
    if record["version"] > VERSION:
        raise DataError(f"{folder} has format {record['version']}, this version reads {VERSION}; upgrade stickbreak.")
    return record


def _map(file: Path, dtype: str, size: int) -> NDArray[Any]:
    try:
        found = map_npy(file)
        if found.shape != (size,) or found.dtype != np.dtype(dtype):
            raise ValueError(f"{found.shape} numbers of type {found.dtype} instead of {(size,)} of {np.dtype(dtype)}")
    except ValueError as error:
        raise DataError(f"{file} is missing, damaged or cut off; write the corpus again: {error}") from error
    return np.asanyarray(found)
