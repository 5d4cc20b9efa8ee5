"""How much memory a fit will need, from sizes alone, and how much there is, so that a fit that cannot be is refused at once."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ..data.sources import CHUNK_NUMBERS, CHUNK_ROWS
from ..model.local import RowUnit, block_rows
from ..moves.birth import CHILDREN
from ..moves.sample import FEATURES
from ..moves.schedule import MEMORY as TRACKED

NUMBER = 8  # bytes
SMALL = 1 << 28  # bytes; a fit that needs less is not worth asking how much there is
BASE = 1 << 25  # bytes for compiled code and small things
COPIES = 6  # of the rows that priors are scaled from, while they are
SUMS = 4  # summaries of the whole data at a time: the total, the one before, the one extrapolated, the weights
LIVE = 2  # summaries of a batch at a time: as it is, and as it was


@dataclass(frozen=True)
class Sizes:
    """What the memory of a fit depends on.

    Attributes
    ----------
    rows : N
    columns : numbers stored of a row, D where rows are dense
    statistics : F
    entries : numbers in the features of a row, F where they are dense
    update : numbers that a global step needs for a cluster, beside its statistics and weights
    prior : numbers that the prior and its making take
    sample : rows that the prior is scaled from
    local : numbers that are kept of each cluster for single rows, documents or words
    """

    rows: int
    columns: int
    statistics: int
    entries: int
    update: int
    prior: int
    sample: int
    threads: int
    local: int = 0
    batches: int = 1
    births: bool = True

    @property
    def chunk(self) -> int:
        """Rows in a chunk at most."""
        limit = max(1, min(CHUNK_ROWS, CHUNK_NUMBERS // max(1, self.columns)))
        return min(limit, -(-self.rows // self.batches))

    def needed(self, K: int) -> int:
        """Bytes for K clusters, beside the data themselves.

        Blocks of features while rows are visited, or samples and children while births are fitted, whichever is more; and
        all the while summaries, those that proposals bring, and what a global step makes.
        """
        F, step = self.statistics, 4 * self.statistics + self.update
        chunks = -(-self.rows // (self.batches * self.chunk))
        busy = min(self.threads, chunks)
        blocks = busy * min(block_rows(self.entries, K), self.chunk) * (self.entries + K)
        waiting = K * F * min(2 * self.threads + 2, chunks)
        tracked = fits = 0
        if self.births:
            tracked = min(TRACKED // NUMBER, CHILDREN[-1] * K * F * self.batches)
            sample = min(self.rows, RowUnit.sample_size, max(1, FEATURES // max(1, self.entries)))
            fits = min(self.threads, K) * (2 * sample * self.entries + min(sample, CHILDREN[-1]) * step)
        summaries = K * F * (SUMS + (LIVE * self.batches if self.batches > 1 else LIVE - 1))
        work = max(blocks + waiting, fits, K * step, COPIES * self.sample * self.columns)
        return BASE + NUMBER * (self.prior + work + summaries + tracked + K * self.local)

    def most_clusters(self, bytes_available: float) -> int:
        """The largest number of clusters for which that much suffices; none if it is not enough for one."""
        if self.needed(1) > bytes_available:
            return 0
        low, high = 1, 2
        while high < self.rows and self.needed(high) <= bytes_available:
            low, high = high, 2 * high
        if high >= self.rows and self.needed(high) <= bytes_available:
            return sys.maxsize
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.needed(middle) <= bytes_available else (low, middle)
        return low

    def in_batches(self, n: int) -> "Sizes":
        """The same data in n batches."""
        return replace(self, batches=n)


def available() -> float:
    """Bytes that this process may still take: what is free, and what control groups and limits of the process leave."""
    return max(0.0, min(_limits(), default=float("inf")))


def check_room(needed: float, what: str, cure: str) -> None:
    """Refuse, before it is made, what does not fit into the memory there is.

    Raises
    ------
    MemoryError : ``what`` needs more bytes than there are; the message ends with the cure.
    """
    if needed > SMALL and needed > (free := available()):
        raise MemoryError(f"{what} need about {shown(needed)} of memory, and {shown(free)} are available; {cure}.")


def shown(n: float) -> str:
    """A number of bytes for people to read."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n / 1e3:.0f} kB"


def _limits() -> Iterator[float]:
    yield from _free()
    yield from _control_groups()
    yield from _process_limits()


def _free() -> Iterator[float]:
    """Memory of the machine that is free or can be freed."""
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            yield 1024.0 * float(line.split()[1])
            return
    try:
        yield float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # not every system can tell
        return


def _control_groups() -> Iterator[float]:
    """What is left of the limits of control groups, of version 2 and 1, that this process is in."""
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, limit, usage = "/sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root, limit, usage = "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        group = Path(root + path)
        while (
            True
        ):  # those above limit it too; inside a container the path may be unknown, and the root is its own group
            most, used = _read(group / limit).strip(), _read(group / usage).strip()
            if most.isdigit() and used.isdigit():
                yield float(most) - float(used) + _cached(group)
            if str(group) == root or group == group.parent:
                break
            group = group.parent


def _cached(group: Path) -> float:
    """Bytes of files in a control group's memory, which it gives up first."""
    values = dict(line.split() for line in _read(group / "memory.stat").splitlines())
    return float(values.get("inactive_file", 0))


def _process_limits() -> Iterator[float]:
    """What is left of the address space and of the data that this process may have."""
    try:
        import resource
    except ImportError:  # on Windows
        return
    pages = _read("/proc/self/statm").split()
    if len(pages) < 6:
        return
    for limit, used in ((resource.RLIMIT_AS, pages[0]), (resource.RLIMIT_DATA, pages[5])):
        most = resource.getrlimit(limit)[0]
        if most != resource.RLIM_INFINITY:
            yield float(most) - float(used) * resource.getpagesize()


def _read(path: str | Path) -> str:
    try:
        with open(path) as file:
            return file.read()
    except (OSError, ValueError):
        return ""
