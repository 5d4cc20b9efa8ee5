"""Dask arrays, frames and bags, and memory maps, as sources on the workers of a cluster."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource, BagSource
from ..data.arrays import NUMBERS, working_precision
from ..data.sequences import STEPS
from ..data.sources import CHUNK_ROWS
from ..data.stored import Grouped, Stored, stamps
from . import parts as on_worker
from .blocks import Blocks
from .sources import SpreadBags, SpreadSequences, SpreadSource

Array = NDArray[np.floating]

FEWEST_ROWS = 40 * CHUNK_ROWS  # of a part, so that a task has some chunks of each of ten batches
FILE_NUMBERS = 1 << 23  # of a part of a file: a task costs a scheduler and a worker some milliseconds
FEW_PARTS, MOST_PARTS = 8, 4096  # of a file: workers wait for each other, or tasks cost the scheduler time


class Held(NamedTuple):
    """The blocks of a collection on workers: futures, the rows of each, D, the type, and a name for the data.

    groups : where the groups begin in which rows are read, if that takes work, and N
    """

    blocks: list[Any]
    sizes: list[int]
    n_columns: int
    dtype: np.dtype[Any]
    token: str
    groups: NDArray[np.int64] | None = None


def dense(client: Any, X: Any) -> Held:
    """The blocks of a Dask array, or of a Dask frame whose columns are numbers.

    Raises
    ------
    TypeError, ValueError
        If X is a bag, has other than two axes, or holds other than numbers.
    """
    array = X
    if hasattr(X, "to_dask_array"):
        _check_columns(X)
        array = X.to_dask_array(lengths=True)
    if not hasattr(array, "chunks"):
        raise TypeError(
            f"X is a {type(X).__name__} of Dask; rows are read from arrays and frames, documents of a TopicModel from bags."
        )
    if array.ndim != 2:
        raise ValueError(f"X must have rows and columns; got a Dask array of {array.ndim} axes.")
    if array.dtype.kind not in NUMBERS:
        raise ValueError(
            f"X holds values of type {array.dtype}, not numbers; convert them, such as by X.astype(float)."
        )
    array = array.rechunk({1: -1})
    blocks = client.compute(list(array.to_delayed().ravel()))
    sizes = [int(n) if n == n else -1 for n in array.chunks[0]]
    if -1 in sizes:  # not known before blocks are made
        sizes = client.gather(client.map(on_worker.n_rows, blocks, pure=False))
    return Held(blocks, sizes, int(array.shape[1]), np.dtype(array.dtype), str(array.name))


def in_files(client: Any, X: Any) -> Held:
    """The blocks of rows in files that every worker finds under the same path.

    Raises
    ------
    TypeError
        If the rows are in the memory of this process.
    """
    if not isinstance(X, (np.memmap, Stored)):
        raise TypeError(
            "with an executor X must be where workers can read it: a Dask array, a frame or a bag, the path of .npy or "
            ".parquet files, or a memory map; this one is in the memory of this process. Use "
            "dask.array.from_array(X, chunks=100_000), or executor=None."
        )
    n = len(X)
    wanted = min(int(np.clip(n * int(X.shape[1]) // FILE_NUMBERS, FEW_PARTS, MOST_PARTS)), n)
    edges = np.linspace(0, n, wanted + 1).astype(np.int64)
    groups = X.edges if isinstance(X, Grouped) else None
    if groups is not None:  # each is read by one worker
        edges = groups[np.searchsorted(groups, edges)]
    edges = np.unique(edges)
    files = X if isinstance(X, Stored) else on_worker.MappedFile(X)
    blocks = [client.submit(on_worker.FileRows, files, a, b, pure=False) for a, b in pairwise(edges.tolist())]
    return Held(blocks, np.diff(edges).tolist(), int(X.shape[1]), X.dtype, _name(files), groups)


def _name(files: on_worker.MappedFile | Stored) -> str:
    """What files are known by: their paths and when they were last written."""
    paths = [Path(files.path)] if isinstance(files, on_worker.MappedFile) else getattr(files, "paths", [])
    return f"{[str(path) for path in paths]} {stamps(paths)}"


def _check_columns(frame: Any) -> None:
    """Refuse columns that are not numbers."""
    wrong = [str(name) for name, dtype in frame.dtypes.items() if getattr(dtype, "kind", "O") not in NUMBERS]
    if wrong:
        raise ValueError(
            f"column {wrong[0]!r} of the Dask frame is no column of numbers; drop it, or pass its codes, such as "
            f"X[{wrong[0]!r}].cat.codes, with a Categorical likelihood."
        )


def rows_of(client: Any, held: Held, weights: Array | None) -> SpreadSource:
    """Dense rows on workers, in parts of one or more blocks each."""
    limit = ArraySource.rows_per_chunk(sum(held.sizes), held.n_columns) + 1
    groups = _groups(held.sizes, min(FEWEST_ROWS, sum(held.sizes) // FEW_PARTS))
    edges = _edges(held.sizes, groups)
    parts = []
    for p, (start, stop) in enumerate(pairwise(edges)):
        end = min(int(stop) + limit, int(edges[-1]))
        own = None if weights is None else weights[start:end]
        blocks = [*(held.blocks[i] for i in groups[p]), *_after(client, held, int(stop), end)]
        parts.append(_at_home(client, len(edges) - 1, p, on_worker.part_of_rows, blocks, int(start), own))
    X = Blocks(client, parts, edges, held.n_columns, working_precision(held.dtype), held.token)
    return SpreadSource(X, weights, held.groups)


def documents_in(client: Any, bag: Any, known: Any = None, D: int | None = None) -> tuple[Held, list[str] | None]:
    """The documents of a Dask bag as counts of words on workers, and the words, where they have names.

    A document is a list of its words, or a mapping from words to counts; words are text, or whole numbers from 0.

    known, D : the words of a fitted model and their number, if there is one; other words are left out
    """
    partitions = client.compute(bag.to_delayed())
    if D is None:
        seen = client.gather(client.map(on_worker.words_of, partitions, pure=False))
        words: set[Any] = set().union(*seen)
        named = any(isinstance(word, str) for word in words)
        if named and not all(isinstance(word, str) for word in words):
            raise TypeError("the words of all documents must be text, or all of them whole numbers from 0.")
        names = sorted(words) if named else None
        D = len(words) if named else max((int(word) for word in words), default=-1) + 1
    else:
        names = None if known is None else [str(name) for name in known]
    index = None if names is None else {name: i for i, name in enumerate(names)}
    packed = client.submit(on_worker.same, index, pure=False)
    n = len(partitions)
    blocks = client.map(on_worker.bag_counts, partitions, [packed] * n, [D] * n, pure=False)
    sizes = client.gather(client.map(on_worker.n_rows, blocks, pure=False))
    return Held(blocks, sizes, D, np.dtype(np.float64), str(bag.name)), names


def bags_of(client: Any, held: Held) -> SpreadBags:
    """Documents as counts of words on workers."""
    dtype = working_precision(held.dtype)
    counts = client.map(on_worker.counted, held.blocks, [dtype] * len(held.blocks), pure=False)
    tokens = client.gather(client.map(on_worker.Tokens, counts, pure=False))
    N = sum(held.sizes)
    nnz = sum(part.nnz for part in tokens)
    limit = BagSource.rows_per_chunk(N, max(1, nnz // max(N, 1))) + 1
    groups = _groups(held.sizes, 1)
    edges = _edges(held.sizes, groups)
    held = held._replace(blocks=counts)
    parts = []
    for p, (start, stop) in enumerate(pairwise(edges.tolist())):
        blocks = [*(counts[i] for i in groups[p]), *_after(client, held, stop, min(stop + limit, N))]
        parts.append(_at_home(client, len(edges) - 1, p, on_worker.part_of_bags, blocks, start))
    return SpreadBags(Blocks(client, parts, edges, held.n_columns, dtype, held.token, nnz), tokens)


def sequences_of(client: Any, held: Held, lengths: NDArray[np.int64], lags: int) -> SpreadSequences:
    """Sequences on workers: each begins where its first row is, and is there as a whole."""
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    T = int(ends[-1])
    wanted = _edges(held.sizes, _groups(held.sizes, 1))
    edges = np.unique(ends[np.searchsorted(ends, wanted)])
    more = STEPS + int(lengths.max())
    parts = []
    for p, (start, stop) in enumerate(pairwise(edges.tolist())):
        first = int(np.searchsorted(ends, start))
        last = int(np.searchsorted(ends, min(stop + more, T)))
        blocks = _after(client, held, start, int(ends[last]))
        own = np.diff(ends[first : last + 1])
        parts.append(_at_home(client, len(edges) - 1, p, on_worker.part_of_sequences, blocks, start, own, lags))
    X = Blocks(client, parts, edges, held.n_columns, working_precision(held.dtype), held.token)
    return SpreadSequences(X, lengths, lags)


def _groups(sizes: Sequence[int], fewest: int) -> list[list[int]]:
    """Consecutive blocks in groups of at least ``fewest`` rows each, the last one apart; blocks without rows are left out."""
    groups: list[list[int]] = []
    rows = fewest
    for i, n in enumerate(sizes):
        if n == 0:
            continue
        if rows >= fewest:
            groups.append([])
            rows = 0
        groups[-1].append(i)
        rows += n
    return groups


def _edges(sizes: Sequence[int], groups: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Where the rows of each group begin, and how many rows there are."""
    return np.concatenate([[0], np.cumsum([sum(sizes[i] for i in group) for group in groups])]).astype(np.int64)


def _after(client: Any, held: Held, start: int, stop: int) -> list[Any]:
    """Rows start, ..., stop - 1, copied from the blocks that have them: whole blocks as they are."""
    begins = np.concatenate([[0], np.cumsum(held.sizes)]).tolist()
    found = []
    for block, a, b in zip(held.blocks, begins, begins[1:]):
        if max(a, start) >= min(b, stop):
            continue
        if start <= a and b <= stop:
            found.append(block)
        else:
            found.append(client.submit(on_worker.some_rows, block, max(start - a, 0), min(stop, b) - a, pure=False))
    return found


def _at_home(client: Any, n: int, p: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Part p of n on the worker whose turn it is, so that neighbours are together; on any other where that one is gone."""
    addresses = sorted(client.scheduler_info()["workers"])
    workers = [addresses[p * len(addresses) // n]] if addresses else None
    return client.submit(function, *arguments, workers=workers, allow_other_workers=bool(workers), pure=False)
