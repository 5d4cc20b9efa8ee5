"""How much memory a fit will need, from sizes alone, and how much there is, so that a fit that cannot be is refused at once."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..data.documents import ROWS_AT_ONCE
from ..data.phrases import MOST as PHRASES
from ..data.phrases import OFTEN
from ..data.sequences import LONGER, STEPS, parts_of
from ..data.sources import CHUNK_NUMBERS, ArraySource, SparseSource
from ..model.documents import DocumentKind
from ..model.local import block_rows
from ..model.messages import BLOCK, KEPT
from ..model.phrases import MATRICES
from ..model.potentials import padded
from ..model.rows import RowKind
from ..model.run_ups import LANES
from ..moves.agglomeration import NEAREST, PAIRS
from ..moves.birth import CHILDREN
from ..moves.sample import FEATURES
from ..moves.schedule import MEMORY as TRACKED
from ..moves.segments import MOST as SEGMENTS
from .lap import LOCAL
from .sample_sizes import most_larger, sample_rows
from .sight import BYTES as OWNERS
from .topics.gibbs import TOKENS
from .topics.word_restarts import MOST as MOST_FACTORS

NUMBER = 8  # bytes
SMALL = 1 << 28  # bytes; a fit that needs less is not worth asking how much there is
BASE = 1 << 25  # bytes for compiled code and small things
COPIES = 6  # of the rows that priors are scaled from, while they are
SUMS = 4  # summaries of the whole data at a time: the total, the one before, the one extrapolated, the weights
KEPT_ENTRIES, LIKELY = 1.5, 4  # numbers of a responsibility that is kept, with its index; how many a row seldom exceeds
PATHS = 12  # integers for each row of sequences, while a path is cut into segments and these become states
PRIOR_KEPT = 0.5  # of what a prior takes while it is made
DRAWN = 3  # numbers of a row drawn: its cluster, its number, what it stands for
LIVE = 2  # summaries of a batch at a time: as it is, and as it was


class Footprint:
    """What visits to exchangeable rows hold beside the rows' features, in numbers; other kinds say the same of theirs."""

    sample = RowKind.sample_size

    def rows_per_chunk(self, sizes: "Sizes") -> int:
        """Rows in a chunk at most."""
        source = SparseSource if sizes.sparse else ArraySource
        return source.rows_per_chunk(sizes.rows, sizes.columns)

    def chunk(self, sizes: "Sizes", K: int) -> float:
        """Of one chunk, while it is visited: features and scores of a block, what is kept of them, the rows, S = R' T."""
        block = min(block_rows(sizes.entries, K), sizes.chunk) * (sizes.entries + 2.5 * K)
        return block + sizes.chunk * (KEPT_ENTRIES * min(K, LIKELY) + sizes.columns) + K * sizes.statistics

    def shared(self, sizes: "Sizes", K: int) -> float:
        """Of all chunks together, beside the weights."""
        return 0.0

    def whole(self, sizes: "Sizes", K: int) -> float:
        """Of all rows, as long as the fit goes on: their clusters at the last two visits; beyond a limit they are not kept."""
        return sizes.rows if 4 * sizes.rows <= OWNERS else 0.0

    def search(self, sizes: "Sizes", K: int) -> float:
        """Of a search between laps: a sample of the rows, and samples of that, as large as one third of it; or larger samples
        of the clusters.
        """
        sample = 4 / 3 * sample_rows(sizes.rows, sizes.columns, sizes.statistics) * sizes.columns
        most = min(FEATURES // max(sizes.entries, 1), most_larger(sizes.columns, K))
        if most <= self.sample:
            return sample
        fit = 2 * min(most, sizes.rows) * sizes.entries
        return max(sample, min(K * most, sizes.rows) * (sizes.columns + DRAWN) + fit)

    def tracked(self, sizes: "Sizes", K: int) -> float:
        """Of proposals on all batches: their summaries, as many as `stickbreak.moves.schedule` lets there be."""
        return min(TRACKED / NUMBER, CHILDREN[-1] * K * sizes.statistics * sizes.batches)


class Documents(Footprint):
    """Bags of words: tables of all words for all topics, and the counts of topics in documents."""

    sample = DocumentKind.sample_size

    def rows_per_chunk(self, sizes: "Sizes") -> int:
        """Documents in a chunk at most."""
        return max(1, CHUNK_NUMBERS // max(1, sizes.columns))

    def chunk(self, sizes: "Sizes", K: int) -> float:
        """Of one chunk: R, and the sum of all turned (V, K); counts before and after, and proportions (n, K)."""
        return 2 * K * sizes.statistics + sizes.chunk * (4 * K + 3 * sizes.columns)

    def shared(self, sizes: "Sizes", K: int) -> float:
        """The tables while they are made (`stickbreak.model.document_step.tables`): scores, E twice, and E in float32."""
        return 3.5 * K * sizes.statistics

    def whole(self, sizes: "Sizes", K: int) -> float:
        """Counts of documents (K, N) in float32, of two visits; beyond a limit they are not kept."""
        return K * sizes.rows if 4 * K * sizes.rows <= LOCAL else 0.0

    def search(self, sizes: "Sizes", K: int) -> float:
        """Anchors: the counts turned, twice, and four tables; or sweeps: tables, counts of some chunks, and tokens; or merges.

        Or words that begin elsewhere: the counts turned, tables, and two numbers for each topic of each document.

        Sweeps have the counts, as they were and smoothed, and in float32 likelihoods, sums of these, and the counts of each
        chunk; of each token its word, its topic before and after, and what sorts it by its document.
        """
        V = sizes.statistics
        entries = sizes.rows * sizes.columns
        merges = 3 * K * V + 4 * min(PAIRS, NEAREST * K * (K + V))  # copies of the statistics, and those of pairs
        words = 4 * K * V + 4 * entries + 4 * K * sizes.rows if K * sizes.rows <= MOST_FACTORS else 0.0
        anchors = max(merges, words, 4 * K * V + 4 * entries)
        if not sizes.tokens:
            return anchors
        tokens = min(sizes.tokens, TOKENS)
        return max(anchors, 6 * K * V + 6 * tokens)


class GroupedRows(Footprint):
    """Rows in groups, each with its own likelihoods for all topics."""

    sample = DocumentKind.sample_size

    def chunk(self, sizes: "Sizes", K: int) -> float:
        """Of one chunk: features, scores, likelihoods and responsibilities of its rows, and S."""
        rows = min(ROWS_AT_ONCE, sizes.rows)
        return rows * (sizes.entries + sizes.columns + 6 * K) + K * sizes.statistics

    def search(self, sizes: "Sizes", K: int) -> float:
        """Of a search between laps."""
        return 0.0


def _matrices(sizes: "Sizes", Kp: int) -> int:
    """Numbers in a matrix (Kp, Kp) of each phrase of rows that repeat."""
    return min(MATRICES, min(PHRASES, sizes.rows // OFTEN) * Kp**2) if sizes.coded else 0


class Chains(Footprint):
    """Sequences: messages of the blocks of a chunk, and of all blocks where these are few."""

    def rows_per_chunk(self, sizes: "Sizes") -> int:
        """Rows in a chunk: those of a batch in parts of about the same size (`stickbreak.data.sequences`)."""
        rows = -(-sizes.rows // sizes.batches)
        return -(-rows // parts_of(rows, LONGER * STEPS if sizes.coded else STEPS))

    def chunk(self, sizes: "Sizes", K: int) -> float:
        """Of one chunk: C, L, alpha and features, of all rows or of a block; product, R, G and what R keeps, of a block.

        Where rows have codes, R keeps counts of the distinct ones.  Phrases, of which there are at most half as many, have
        alpha and G, and a matrix each.
        """
        Kp = padded(K)
        n = sizes.chunk
        row = Kp if sizes.coded else 3 * Kp + sizes.entries
        block = min(n, LANES * max(128, BLOCK // (Kp * LANES)))
        most = n * row if n * row <= KEPT else KEPT if sizes.coded else block * row
        kept = 2 * sizes.distinct * Kp if sizes.coded else n * (KEPT_ENTRIES + 3)
        of_block = block * (5.5 * Kp + 2 * sizes.columns)
        return most + _matrices(sizes, Kp) + of_block + kept + K * sizes.statistics

    def shared(self, sizes: "Sizes", K: int) -> float:
        """Scores of the distinct rows, where they have codes, and blocks of the main thread, which keeps its arrays, too."""
        Kp = padded(K)
        block = min(sizes.rows, max(128, BLOCK // Kp)) * (9 * Kp + sizes.entries)
        return 4 * Kp * sizes.distinct + 3 * Kp**2 + 2 * _matrices(sizes, Kp) + block

    def whole(self, sizes: "Sizes", K: int) -> float:
        """Of paths and segments some integers for each row: threads keep the arrays of visits meanwhile."""
        return sizes.rows * PATHS

    def search(self, sizes: "Sizes", K: int) -> float:
        """Of samples of a third, and a third of that, and tables of pairs of states and segments."""
        pairs = min((K + SEGMENTS) ** 2 * 6, 1 << 22) + (K + SEGMENTS) * (sizes.statistics + K + SEGMENTS)
        return sizes.rows * sizes.columns / 2 + pairs

    def tracked(self, sizes: "Sizes", K: int) -> float:
        """Of candidates, which are summaries of all states: for each of three moves all changes, half of them, and so on."""
        candidates = 3 * (1 + np.log2(K)) if K > 1 else CHILDREN[-1]
        return float(candidates * K * (2 * sizes.statistics + K) * sizes.batches)


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
    footprint : what visits hold
    sparse : whether rows are CSR
    tokens : words of all documents, where sweeps begin a fit
    distinct : of rows that repeat, how many there are, or 0
    """

    rows: int
    columns: int
    statistics: int
    entries: int
    update: int
    prior: int
    sample: int
    threads: int
    batches: int = 1
    births: bool = True
    footprint: Footprint = Footprint()
    sparse: bool = False
    tokens: float = 0.0
    distinct: int = 0

    @property
    def coded(self) -> bool:
        """Whether rows are looked up among distinct ones."""
        return self.distinct > 0

    @property
    def chunk(self) -> int:
        """Rows in a chunk at most."""
        return min(self.footprint.rows_per_chunk(self), -(-self.rows // self.batches))

    def needed(self, K: int) -> int:
        """Bytes for K clusters, beside the data themselves.

        What threads hold, visits or births, and what the main thread does, whichever is more of each; and all the while
        summaries, those that proposals bring, and what is kept of single rows.  Threads keep the memory that they have freed:
        the main thread cannot have it.
        """
        F = self.statistics
        step = 4 * self.statistics + self.update
        chunks = -(-self.rows // (self.batches * self.chunk))
        busy = min(self.threads, chunks)
        waiting = min(2 * self.threads + 2, chunks)
        visits = busy * self.footprint.chunk(self, K) + waiting * K * F + self.footprint.shared(self, K)
        sample = min(self.rows, self.footprint.sample, max(1, FEATURES // max(1, self.entries)))
        seeds = 2 * sample * self.entries  # of a start or a birth
        tracked = fits = 0.0
        largest = K  # number of clusters that a step is taken for at once
        if self.births and sample > 1:
            largest = max(K, CHILDREN[-1])
            tracked = self.footprint.tracked(self, K) + K * (sample * self.columns + F)
            fits = min(self.threads, K) * (seeds + min(sample, CHILDREN[-1]) * step)
        here = max(
            largest * step, seeds, self.footprint.search(self, K), COPIES * self.sample * self.columns, self.prior
        )
        there = max(visits, fits)
        work = here + there if self.threads > 1 else max(here, there)
        summaries = K * F * (SUMS + (LIVE * self.batches if self.batches > 1 else LIVE - 1))
        return BASE + int(
            NUMBER * (PRIOR_KEPT * self.prior + work + summaries + tracked + self.footprint.whole(self, K))
        )

    def most_clusters(self, bytes_available: float) -> int:
        """The largest number of clusters for which that much suffices; none if it is not enough for one."""
        if self.needed(1) > bytes_available:
            return 0
        low, high, most = 1, 2, max(2, self.rows * self.columns)  # each number a cluster of its own
        while high < most and self.needed(high) <= bytes_available:
            low = high
            high = 2 * high
        if high >= most and self.needed(high) <= bytes_available:
            return sys.maxsize
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.needed(middle) <= bytes_available else (low, middle)
        return low


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
            root = "/sys/fs/cgroup"
            limit = "memory.max"
            usage = "memory.current"
        elif "memory" in controllers.split(","):
            root = "/sys/fs/cgroup/memory"
            limit = "memory.limit_in_bytes"
            usage = "memory.usage_in_bytes"
        else:
            continue
        group = Path(root + path)
        while (
            True
        ):  # those above limit it too; inside a container the path may be unknown, and the root is its own group
            most = _read(group / limit).strip()
            used = _read(group / usage).strip()
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
