"""Where tasks run: a pool of threads, each with single-threaded linear algebra."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Result = TypeVar("Result")


def n_threads(n_jobs: int | None) -> int:
    """Threads for ``n_jobs``: None and -1 mean all processors this process may use, -2 all but one, and so on."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return available
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use -1 for all processors.")
    return n_jobs if n_jobs > 0 else max(1, available + 1 + n_jobs)


class Threads:
    """An ordered map over stateless tasks.  Results come in the order of the items, whatever the number of threads."""

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n = n_threads(n_jobs)

    def __enter__(self) -> Self:
        self._limits = threadpool_limits(1, user_api="blas")
        self._pool = ThreadPoolExecutor(self.n)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._limits.restore_original_limits()

    def map(self, task: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield ``task(item)`` for each item in order; at most a few results wait in memory."""
        if self.n == 1:
            yield from map(task, items)
            return
        waiting = deque[Future[Result]]()
        for item in items:
            waiting.append(self._pool.submit(task, item))
            if len(waiting) > 2 * self.n:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
