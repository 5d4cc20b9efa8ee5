"""The executor on the workers of a Dask cluster."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import Any, Self, TypeVar

from ..inference.executor import Sum, Threads
from .blocks import Blocks, is_collection

Source = TypeVar("Source")
Item = TypeVar("Item")
Result = TypeVar("Result")

EXTRA = 'fits on a Dask cluster need dask and distributed: pip install "stickbreak[dask]".'


def need_dask() -> None:
    """Refuse to go on without dask."""
    for name in ("dask", "distributed"):
        try:
            import_module(name)
        except ImportError as error:
            raise ImportError(EXTRA) from error


@dataclass(frozen=True)
class DaskExecutor:
    """Fit on the workers of a Dask cluster: ``Mixture(executor=DaskExecutor(client)).fit(X)``.

    X is a Dask collection, or the path or memory map of files that every worker finds under the same path.  Workers visit
    the rows and add up what these say; one sum for each of them or for a few of their parts comes back from a visit.  What
    needs samples alone, such as births, runs on the threads of this process.

    Parameters
    ----------
    client : `distributed.Client`
        Of a cluster whose workers have the same version of stickbreak.

    Raises
    ------
    ImportError
        If dask is missing (``pip install "stickbreak[dask]"``).
    TypeError
        If ``client`` is no client.
    """

    client: Any

    def __post_init__(self) -> None:
        need_dask()
        if not (hasattr(self.client, "submit") and hasattr(self.client, "scheduler_info")):
            raise TypeError(f"client must be a distributed.Client; got a {type(self.client).__name__}.")

    def __deepcopy__(self, memo: Any) -> Self:
        return self  # a connection has no copy

    @classmethod
    def active(cls) -> Self:
        """On the active client.

        Raises
        ------
        RuntimeError
            If there is none.
        """
        need_dask()
        clients: Any = import_module("distributed").Client
        try:
            return cls(clients.current())
        except ValueError:
            raise RuntimeError(
                "X is a Dask collection, and there is no client: make one first, such as client = distributed.Client()."
            ) from None

    def open(self, n_jobs: int | None = None) -> "Cluster":
        """Where tasks run, from entry to exit; ``n_jobs`` threads are of this process."""
        return Cluster(self.client, Threads(n_jobs))


@dataclass
class Cluster:
    """Tasks on rows of workers run there, all others on threads of this process."""

    client: Any
    threads: Threads
    looks_near: bool = True

    def __enter__(self) -> Self:
        self.threads.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.threads.__exit__(kind, value, trace)

    def map(self, task: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """``task(item)`` for each item, in order."""
        return self.threads.map(task, items)

    def over(self, source: Source, task: Callable[[Source, Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """``task(source, item)`` for each item, in order."""
        rows = _on_workers(source)
        return self.threads.over(source, task, items) if rows is None else rows.over(task, items)

    def total(self, source: Source, task: Callable[[Source, Item], Sum], items: Iterable[Item]) -> Sum:
        """The sum of ``task(source, item)`` over the items, in an order that depends on the items and the source alone."""
        rows = _on_workers(source)
        if rows is None:
            return self.threads.total(source, task, items)
        found: Sum = rows.total(task, items)
        return found


def executor_of(given: Any, X: Any) -> Any:
    """Where X is to be fitted: what is given, or the active cluster for a Dask collection; None: in this process."""
    return DaskExecutor.active() if given is None and is_collection(X) else given


def _on_workers(source: Any) -> Blocks | None:
    """The rows of a source on workers, if they are there."""
    rows = getattr(source, "X", None)
    return rows if isinstance(rows, Blocks) else None
