"""Where tasks run: what an executor must do, and a pool of threads, each with single-threaded linear algebra."""

import os
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from . import blas, interrupts

Source = TypeVar("Source")
Item = TypeVar("Item")
Result = TypeVar("Result")


class Additive(Protocol):
    """A result that others of its kind can be added to."""

    def add_in_place(self, other: Any) -> None:
        """Add another, which comes after this one."""
        ...


Sum = TypeVar("Sum", bound=Additive)
FEW_VALUES = 1 << 17  # of all rows, up to which births are fitted on one thread


def summed(results: Iterable[Sum]) -> Sum:
    """The sum of one or more results, in their order; the first becomes the sum."""
    rest = iter(results)
    whole = next(rest)
    for part in rest:
        whole.add_in_place(part)
    return whole


class Executor(Protocol):
    """Where tasks run.

    Tasks, their items and results can be pickled, and tasks change nothing, so they may run anywhere and more than once.
    Results come in the order of the items: sums of them do not depend on where the tasks ran.

    Attributes
    ----------
    looks_near : whether visits may look at a few clusters for each row alone (`stickbreak.model.kind.Kind.near`)
    """

    looks_near: bool

    def map(self, task: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """``task(item)`` for each item, in order."""
        ...

    def over(self, source: Source, task: Callable[[Source, Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """``task(source, item)`` for each item, in order; workers elsewhere keep the source from one call to the next."""
        ...

    def total(self, source: Source, task: Callable[[Source, Item], Sum], items: Iterable[Item]) -> Sum:
        """The sum of ``task(source, item)`` over the items, in an order that depends on the items and the source alone."""
        ...


def for_fits(executor: Executor, source: Any) -> Callable[..., Iterable[Any]]:
    """The map with which births are fitted to rows of a source.

    Where there are few, fits are short and mostly the interpreter's, for which threads would wait in turn.
    """
    return map if source.n_rows * source.n_columns <= FEW_VALUES else executor.map


def n_threads(n_jobs: int | None) -> int:
    """Threads for ``n_jobs``: None and -1 mean all processors this process may use, -2 all but one, and so on."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return available
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use -1 for all processors.")
    return n_jobs if n_jobs > 0 else max(1, available + 1 + n_jobs)


class Threads:
    """An ordered map over stateless tasks.  Results come in the order of the items, whatever the number of threads.

    Linear algebra runs on one thread from entry to exit, whatever other threads enter and leave meanwhile; when the last of
    them has left, the caller's limits hold again.  Ctrl-C is deferred while entry, exit and submission are under way.
    """

    looks_near = True
    _pool: ThreadPoolExecutor | None = None
    _hold: blas.Hold | None = None
    _shield = False

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n = n_threads(n_jobs)

    @interrupts.shielded
    def __enter__(self) -> Self:
        self._shield = interrupts.begin()
        try:
            self._hold = hold = blas.hold()
            hold.guard = weakref.ref(self, partial(_abandon, hold, self._shield))
            if interrupts.pending():
                interrupts.deliver()
        except BaseException:
            self._leave()
            raise
        return self

    @interrupts.shielded
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        interrupts.deliver()

    def map(self, task: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield ``task(item)`` for each item in order; at most a few results wait in memory."""
        blas.keep()
        rest = iter(items)
        first = list(islice(rest, 2))
        if self.n == 1 or len(first) < 2:  # a single task is fastest on this thread
            yield from map(task, chain(first, rest))
            return
        waiting = deque[Future[Result]]()
        try:
            for item in chain(first, rest):
                waiting.append(self._submit(task, item))
                if len(waiting) > 2 * self.n:
                    yield _first(waiting)
            while waiting:
                yield _first(waiting)
        finally:
            for future in waiting:  # after an error, an interrupt, or if no more results are wanted
                future.cancel()

    def over(self, source: Source, task: Callable[[Source, Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield ``task(source, item)`` for each item in order."""
        return self.map(partial(task, source), items)

    def total(self, source: Source, task: Callable[[Source, Item], Sum], items: Iterable[Item]) -> Sum:
        """The sum of ``task(source, item)`` over the items, in their order."""
        return summed(self.over(source, task, items))

    @interrupts.shielded
    def _submit(self, task: Callable[[Item], Result], item: Item) -> Future[Result]:
        """Start a task; `_leave` waits for every thread that is started."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n, initializer=blas.limit_thread)
        future = self._pool.submit(task, item)
        interrupts.deliver()
        return future

    def _leave(self) -> None:
        """Wait for the threads, restore the limits, then the handler of interrupts."""
        pool = self._pool
        self._pool = None
        held = self._hold
        self._hold = None
        try:
            if pool is not None:
                pool.shutdown(wait=True, cancel_futures=True)
        finally:
            if held is not None:
                blas.release(held)
            if self._shield:
                self._shield = False
                interrupts.end()


def _first(waiting: deque[Future[Result]]) -> Result:
    """The result of the first task, which leaves the queue when there is one."""
    result = waiting[0].result()
    waiting.popleft()
    return result


def _abandon(hold: blas.Hold, shield: bool, _: Any) -> None:
    """Restore the limits for an owner whose `__exit__` did not run, which an asynchronous exception can prevent."""
    blas.release(hold)
    if shield:
        interrupts.end()
