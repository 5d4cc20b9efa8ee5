"""Rows that the workers of a Dask cluster hold in parts, as whoever drives a fit sees them."""

import pickle
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..inference.executor import Additive
from . import parts as on_worker

TOGETHER = 8  # sums that are added on a worker, while there are more than so many
LOOK_EVERY = 1.0  # seconds between two looks at which workers there are
LOST = (
    "workers died {n} times in a row at the same task, most likely because they ran out of memory. Give each more memory "
    "(memory_limit=) or fewer threads (nthreads=1), cut the data into smaller blocks, such as X.rechunk({{0: 100_000}}), or "
    'use float32, fewer batches or likelihood="diagonal_gaussian".'
)


Key = tuple[str, int]  # of a task


def _fresh(name: str) -> str:
    """A name for tasks that no others have."""
    return f"{name}-{uuid.uuid4().hex}"


def is_collection(X: Any) -> bool:
    """Whether X is an array, a frame or a bag of Dask; dask is not imported to see that."""
    return type(X).__module__.startswith(("dask", "dask_expr")) and hasattr(X, "__dask_graph__")


@dataclass
class Blocks:
    """Rows (N, D) on workers: tasks go to where rows are, and what comes back is in the order of the rows.

    Part p holds the rows from ``edges[p]`` to ``edges[p + 1]``, and some more.  A part is the result of a task: the cluster
    makes it again when its worker dies.  Sums depend on the parts alone, not on which worker has one or which is faster.

    Attributes
    ----------
    client : of the cluster
    parts : futures of `stickbreak.cluster.parts.Part`
    edges : (P + 1,)
    n_columns : D
    dtype : of the rows
    token : what the data are known by, for hashes of a fit
    nnz : numbers stored, of CSR rows
    """

    client: Any
    parts: list[Any]
    edges: NDArray[np.int64]
    n_columns: int
    dtype: np.dtype[Any]
    token: str
    nnz: int = 0
    _known: set[str] = field(default_factory=set)
    _looked: float = 0.0
    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        """N and D."""
        return int(self.edges[-1]), self.n_columns

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        return self.take(np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else np.asarray(rows))

    def __getstate__(self) -> dict[str, Any]:
        """What hashes see of it: the connection stays where it is."""
        return {"token": self.token, "shape": self.shape, "dtype": self.dtype}

    def take(self, rows: NDArray[np.integer]) -> Any:
        """Rows at the given positions, in any order, dense or CSR."""
        order = np.argsort(rows, kind="stable")
        ends = np.searchsorted(rows[order], self.edges)
        asked = [int(p) for p in np.flatnonzero(np.diff(ends))]
        wanted = [rows[order[ends[p] : ends[p + 1]]] for p in asked]
        with self._watched():
            futures = self.client.map(on_worker.taken, [self.parts[p] for p in asked], wanted, pure=False)
            found = self.client.gather(futures)
        if not found:
            return np.empty((0, self.n_columns), self.dtype)
        back = np.empty(len(rows), np.intp)
        back[order] = np.arange(len(rows))
        if sparse.issparse(found[0]):
            return sparse.csr_array(sparse.vstack(found, format="csr")[back])
        return np.concatenate(found)[back]

    def map(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> Iterator[Any]:
        """``function(part, argument, ...)`` for each part, in order."""
        with self._watched():
            yield from self.client.gather(self.client.map(function, self.parts, *arguments, pure=False))

    def changed(self, function: Callable[..., Any], n_columns: int, *arguments: Sequence[Any]) -> Self:
        """The same rows, with each part changed: ``function(part, argument, ...)``."""
        parts = self.client.map(function, self.parts, *arguments, pure=False)
        return type(self)(self.client, parts, self.edges, n_columns, self.dtype, self.token, self.nnz)

    def over(self, task: Callable[[Any, Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """``task(source, item)`` for each item, in order, where the rows of its chunk are."""
        graph, keys = self._graph(on_worker.each, task, items)
        with self._watched():
            for future in self.client.get(graph, keys, sync=False):
                yield from future.result()

    def total(self, task: Callable[[Any, Any], Any], items: Iterable[Any]) -> Any:
        """The sum of ``task(source, item)``: over the items of each part, and then over parts, in their order."""
        graph, keys = self._graph(on_worker.total, task, items)
        while len(keys) > TOGETHER:
            groups = [keys[i : i + TOGETHER] for i in range(0, len(keys), TOGETHER)]
            name = _fresh("added")
            keys = [(name, i) for i in range(len(groups))]
            graph |= {key: (on_worker.added, group) for key, group in zip(keys, groups)}
        with self._watched():
            found: list[Additive] = self.client.get(graph, keys)
        return on_worker.added(found)

    def _graph(
        self, function: Callable[..., Any], task: Callable[[Any, Any], Any], items: Iterable[Any]
    ) -> tuple[dict[Key, Any], list[Key]]:
        """A function of each part, the task, and the items whose chunks begin there, and the keys of the results.

        A scheduler takes a graph in one go, and each task of it in a fraction of the time of one that comes alone.
        """
        self._spread()
        runs: list[tuple[int, list[Any]]] = []
        for item in items:
            chunk = getattr(item, "chunk", item)
            p = int(np.searchsorted(self.edges, chunk.start, side="right")) - 1
            if not runs or runs[-1][0] != p:
                runs.append((p, []))
            runs[-1][1].append(item)
        packed = (_fresh("task"), 0)
        name = _fresh(function.__name__)
        graph: dict[Key, Any] = {packed: pickle.dumps(task, pickle.HIGHEST_PROTOCOL)}
        graph |= {(name, i): (function, self.parts[p], packed, pickle.dumps(mine)) for i, (p, mine) in enumerate(runs)}
        return graph, [(name, i) for i in range(len(runs))]

    def _spread(self) -> None:
        """Give workers that have joined their share of the parts."""
        if time.monotonic() - self._looked < LOOK_EVERY:
            return
        self._looked = time.monotonic()
        there = set(self.client.scheduler_info()["workers"])
        new = sorted(there - self._known)
        before = self._known
        self._known = there
        if not before or not new:
            return
        holders: Mapping[Any, Sequence[str]] = self.client.who_has(self.parts)
        owned: dict[str, list[int]] = {address: [] for address in there}
        for p, part in enumerate(self.parts):
            owner = next((address for address in holders.get(part.key, ()) if address in owned), None)
            if owner is not None:
                owned[owner].append(p)
        for address in new:
            for _ in range(len(self.parts) // max(len(there), 1) - len(owned[address])):
                richest = max(there, key=lambda other: len(owned[other]))
                p = owned[richest].pop()
                self.parts[p] = self.client.submit(
                    on_worker.same, self.parts[p], workers=[address], allow_other_workers=True, pure=False
                )
                owned[address].append(p)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Say what to change where workers die, and send parameters of any size without a warning."""
        from dask import config
        from distributed.scheduler import KilledWorker

        try:
            with config.set({"distributed.admin.large-graph-warning-threshold": "64 GiB"}):
                yield
        except KilledWorker as error:
            n = int(config.get("distributed.scheduler.allowed-failures")) + 1
            raise MemoryError(LOST.format(n=n)) from error
