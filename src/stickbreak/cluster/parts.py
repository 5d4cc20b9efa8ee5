"""What runs on the workers: consecutive rows of the data as a source, and a task on its chunks."""

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._arguments import shown
from ..data import ArraySource, BagSource, Chunk, SequenceSource
from ..data.pages import release_pages
from ..data.sparse_rows import sparse_rows
from ..data.stored import Stored
from ..inference import blas
from ..inference.executor import Additive, summed
from . import heap

Task = Callable[[Any, Any], Any]


class Part:
    """A source of rows first, first + 1, ... of a larger one, read by their numbers there.

    It has some rows more than its own, so that a chunk that begins in one part and ends in the next can be read.
    """

    def __init__(self, source: ArraySource, first: int) -> None:
        self.source = source
        self.first = first

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "source":
            raise AttributeError(name)
        return getattr(self.source, name)

    def __sizeof__(self) -> int:
        return size(self.source.X)

    def read(self, chunk: Chunk) -> Any:
        """What the source says of a chunk."""
        return self.source.read(Chunk(chunk.start - self.first, chunk.stop - self.first))

    def release(self) -> None:
        """Let go of the pages of files that were read."""
        if isinstance(self.source.X, Stacked):
            self.source.X.release()

    @property
    def flat(self) -> "Part":
        """Its rows, one by one."""
        return Part(self.source.flat, self.first)

    def with_lags(self, lags: int) -> "Part":
        """The same rows of sequences with so many steps before each."""
        assert isinstance(self.source, SequenceSource)
        return Part(self.source.with_lags(lags), self.first)


class Stacked:
    """The rows of several arrays (n, D), one array after another, without a copy."""

    ndim = 2

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        self.arrays = list(arrays)
        self.edges = np.concatenate([[0], np.cumsum([len(X) for X in arrays])]).astype(np.int64)
        self.shape = (int(self.edges[-1]), int(arrays[0].shape[1]))
        self.dtype = np.result_type(*arrays)
        self.nbytes = sum(X.nbytes for X in arrays)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        if not isinstance(rows, slice):
            found = np.empty((len(rows), self.shape[1]), self.dtype)
            owner = np.searchsorted(self.edges, rows, side="right") - 1
            for i in np.unique(owner):
                mine = owner == i
                found[mine] = self.arrays[i][rows[mine] - self.edges[i]]
            return found
        start, stop, _ = rows.indices(len(self))
        pieces = [
            X[max(start - a, 0) : stop - a]
            for X, (a, b) in zip(self.arrays, pairwise(self.edges.tolist()))
            if a < stop and start < b
        ]
        if len(pieces) == 1:
            return pieces[0]
        return np.concatenate(pieces) if pieces else self.arrays[0][:0]

    def release(self) -> None:
        """Let go of the pages of files that were read."""
        for X in self.arrays:
            if isinstance(X, FileRows):
                X.release()


class FileRows:
    """Rows start, ..., stop - 1 of files, read where they are asked for; what travels are paths."""

    ndim = 2
    nbytes = 0  # in memory

    def __init__(self, files: "MappedFile | Stored", start: int, stop: int) -> None:
        self.files = files
        self.start = start
        self.stop = stop
        self.shape = (stop - start, int(files.shape[1]))
        self.dtype = files.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            return np.asarray(self.files[self.start + start : self.start + stop])
        return np.asarray(self.files[self.start + rows])

    def release(self) -> None:
        """Let go of the pages that were read."""
        self.files.release()


def size(X: Any) -> int:
    """Bytes of rows in memory, dense or CSR."""
    if sparse.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(getattr(X, "nbytes", 0))


def stacked(blocks: Sequence[Any]) -> Any:
    """Blocks of rows one after another, dense or CSR."""
    if not sparse.issparse(blocks[0]):
        return Stacked(blocks)
    return blocks[0] if len(blocks) == 1 else sparse.csr_array(sparse.vstack(blocks, format="csr"))


def some_rows(block: Any, start: int, stop: int) -> Any:
    """Rows start, ..., stop - 1 of a block, copied: the block need not stay."""
    return block[start:stop].copy()


def part_of_rows(blocks: Sequence[Any], first: int, weights: Any) -> Part:
    """Dense rows, with the weights of those rows, or None."""
    return Part(ArraySource(stacked(blocks), weights), first)


def part_of_bags(blocks: Sequence[Any], first: int) -> Part:
    """Documents as counts of words, CSR."""
    return Part(BagSource(stacked(blocks)), first)


def part_of_sequences(blocks: Sequence[Any], first: int, lengths: NDArray[np.int64], lags: int) -> Part:
    """Sequences of dense rows."""
    return Part(SequenceSource(stacked(blocks), lengths, lags), first)


class MappedFile:
    """What it takes to map the array of a memory map, or of consecutive rows of one, elsewhere.

    Raises
    ------
    TypeError : it has other than all columns of consecutive rows.
    """

    def __init__(self, X: np.memmap[Any, Any]) -> None:
        whole = X
        while isinstance(whole.base, np.memmap):
            whole = whole.base
        if not X.flags.c_contiguous and not (X.flags.f_contiguous and X.shape == whole.shape):
            raise TypeError("with an executor a memory map must have all columns of consecutive rows; save X as it is.")
        self.path = str(X.filename)
        self.dtype = X.dtype
        self.offset = int(whole.offset) + int(X.ctypes.data - whole.ctypes.data)
        self.shape = X.shape
        self.order: Literal["C", "F"] = "C" if X.flags.c_contiguous else "F"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "mapped"}

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        return np.asarray(self.mapped[rows])

    def release(self) -> None:
        """Let go of the pages that were read."""
        if "mapped" in self.__dict__:
            release_pages(self.mapped)

    @cached_property
    def mapped(self) -> Any:
        """The array, mapped when it is first read."""
        try:
            return np.memmap(self.path, self.dtype, "r", self.offset, self.shape, self.order)
        except (OSError, ValueError) as error:
            raise FileNotFoundError(
                f"a worker cannot map {self.path} ({error}); put the file where every worker finds it under this path."
            ) from error


def n_rows(block: Any) -> int:
    """Rows of a block."""
    return int(block.shape[0])


def words_of(documents: Iterable[Any]) -> set[Any]:
    """The words of some documents.

    Raises
    ------
    TypeError : a document is neither a list of words nor a mapping of them to counts; a word is neither text nor a number.
    """
    words: set[Any] = set()
    for document in documents:
        if isinstance(document, (str, bytes)) or not isinstance(document, (Iterable, np.ndarray)):
            raise TypeError(
                f"a document of a bag must be a list of its words or a mapping of words to counts; got {shown(document)}. "
                "Split text first, such as bag.map(str.split)."
            )
        words.update(document.tolist() if isinstance(document, np.ndarray) else document)
    wrong = next((word for word in words if not _is_word(word)), None)
    if wrong is not None:
        raise TypeError(f"a word must be text or a whole number from 0; got {shown(wrong)}.")
    return words


def _is_word(word: Any) -> bool:
    return isinstance(word, str) or (isinstance(word, (int, np.integer)) and 0 <= int(word) < 2**31)


def bag_counts(documents: Iterable[Any], index: Mapping[str, int] | None, n_words: int) -> Any:
    """The counts of words in some documents, CSR (n, V); words that are not known are left out.

    index : the column of each word, where words are text
    """
    columns: list[int] = []
    counts: list[float] = []
    edges = [0]
    for document in documents:
        words_of([document])
        found = document if isinstance(document, Mapping) else Counter(np.asarray(document, dtype=object).tolist())
        for word, count in found.items():
            column = index.get(word, -1) if index is not None else int(word)
            if 0 <= column < n_words:
                columns.append(column)
                counts.append(float(count))
        edges.append(len(columns))
    return sparse_rows(sparse.csr_array((counts, columns, edges), (len(edges) - 1, n_words)))


def counted(block: Any, dtype: Any) -> Any:
    """A block of counts of words as verified CSR of the given type."""
    X = sparse_rows(block) if sparse.issparse(block) else sparse.csr_array(np.asarray(block, dtype=dtype))
    return X.astype(dtype, copy=False)


class Tokens:
    """What one block of documents says of the lengths of documents."""

    def __init__(self, X: Any) -> None:
        source = BagSource(X)
        self.sizes = source.sizes
        self.lengths = source.lengths
        self.whole = bool(source.whole)
        self.nnz = int(X.nnz)
        self.stored = np.diff(X.indptr)


def observed(part: Part, n: int) -> Any:
    """For each of the first n rows 1 or, where nothing is observed, 0; None if all are observed."""
    weights = part.source.weights
    return None if weights is None or weights[:n].all() else np.asarray(weights[:n])


def flat(part: Part) -> Part:
    """The rows of sequences, one by one."""
    return part.flat


def with_lags(part: Part, lags: int) -> Part:
    """The rows of sequences with so many steps before each."""
    return part.with_lags(lags)


def taken(part: Part, rows: NDArray[np.integer]) -> Any:
    """Some rows by their numbers."""
    source = part.source
    rows = rows - part.first
    return source._take(rows) if isinstance(source, SequenceSource) else source.take(rows)[0]


def each(part: Part, packed: bytes, items: bytes) -> list[Any]:
    """The results of a pickled task on some pickled items."""
    task = pickle.loads(packed)
    with limited():
        return [task(part, item) for item in pickle.loads(items)]


def total(part: Part, packed: bytes, items: bytes) -> Any:
    """The sum of these results, in the order of the items."""
    task = pickle.loads(packed)
    with limited():
        return summed(task(part, item) for item in pickle.loads(items))


def added(parts: Sequence[Additive]) -> Any:
    """A sum of sums, which stay as they are."""
    first, *rest = parts
    return summed([deepcopy(first), *rest])


def same(value: Any) -> Any:
    """A value, as a task: the cluster computes it again where it is lost."""
    return value


@contextmanager
def limited() -> Iterator[None]:
    """Linear algebra on one thread, and memory that is freed stays for the next chunk."""
    hold = blas.hold()
    try:
        with heap.kept():
            yield
    finally:
        blas.release(hold)
