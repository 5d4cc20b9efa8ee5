"""The memory of a fit: estimates, limits, refusals before anything large is made, and births that stop in time."""

import os
import subprocess
import sys
import time
import tracemalloc
import weakref
from dataclasses import replace

import numpy as np
import pytest

from stickbreak import HMM, Mixture, TopicModel
from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource
from stickbreak.estimators import _memory
from stickbreak.inference import Threads, lap, laps, memory
from stickbreak.inference.visit import visit
from stickbreak.likelihoods import Gaussian, Sample
from stickbreak.model import Model, Summary

BLOBS = np.random.default_rng(0).normal(size=(60, 2))
SIZES = memory.Sizes(
    rows=2000, columns=50, statistics=1325, entries=1325, update=17_500, prior=20_000, sample=2000, threads=2
)


def test_more_needs_more():
    for change in (
        {"rows": 20_000},
        {"statistics": 20_000, "entries": 20_000},
        {"update": 10**6},
        {"prior": 10**6},
        {"threads": 64},
        {"batches": 8},
        {"footprint": memory.Chains(), "rows": 200_000},
        {"footprint": memory.Documents(), "tokens": 1e8},
    ):
        assert replace(SIZES, **change).needed(10) > SIZES.needed(10), change
    assert replace(SIZES, births=False).needed(10) < SIZES.needed(10)
    assert SIZES.needed(11) > SIZES.needed(10)


def test_the_most_clusters_are_the_largest_number_that_fits():
    for limit in (SIZES.needed(n) + 1 for n in (1, 2, 40, 777)):
        K = SIZES.most_clusters(limit)
        assert 1 <= K < sys.maxsize
        assert SIZES.needed(K) <= limit < SIZES.needed(K + 1)
    assert SIZES.most_clusters(SIZES.needed(1) - 1) == 0
    assert SIZES.most_clusters(1e15) == sys.maxsize


def test_tables_of_words_and_messages_of_chains_count():
    """Each kind needs at least the largest arrays that its visits make."""
    V, K, N = 200_000, 64, 2000
    words = replace(SIZES, rows=N, columns=100, statistics=V, entries=100, footprint=memory.Documents(), sparse=True)
    tables = 8 * K * V * 2.5  # scores and likelihoods, these in float32 too
    assert words.needed(K) > tables + 8 * K * V * 2  # responsibilities and statistics of one thread
    assert words.needed(2 * K) > 1.8 * words.needed(K)
    chains = replace(SIZES, rows=300_000, columns=2, statistics=5, entries=5, footprint=memory.Chains())
    rows = 300_000 // 9  # of a chunk
    assert chains.needed(30) > 8 * rows * (3 * 32 + 5) * chains.threads
    few = replace(chains, rows=100_000)  # of more rows that repeat, chunks are longer
    assert replace(few, distinct=100).needed(30) < few.needed(30)


@pytest.mark.parametrize(
    "make",
    [
        lambda: (Mixture("gaussian", init=np.repeat(np.arange(40), 3)), 40),
        lambda: (Mixture("gaussian", init=np.full((120, 25), 0.04)), 25),
        lambda: (Mixture("gaussian", init=["a", "b", "c"] * 40), 3),
        lambda: (Mixture("gaussian", init="random", n_init_clusters=17), 17),
        lambda: (Mixture("gaussian"), 1),
        lambda: (HMM(init=np.repeat(np.arange(40), 3)), 40),
        lambda: (TopicModel(init=np.ones((30, 9))), 30),
        lambda: (TopicModel(init="random", n_init_topics=500), 64),
        lambda: (TopicModel(init="random", n_init_topics=500, moves=()), 500),
        lambda: (
            Mixture("gaussian", init=Mixture("gaussian", init=np.arange(60) % 3, moves=(), max_laps=1).fit(BLOBS)),
            3,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:not converged")
def test_clusters_of_a_start_are_counted(make):
    estimator, K = make()
    assert _memory.first_clusters(estimator) == K


@pytest.mark.filterwarnings("ignore:not converged")
def test_searches_for_states_stay_within_memory(monkeypatch):
    """Excursions, which add states to merge them later, have no more than there is room for either."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 0.5, (30, 1)) for m in 2 * list(range(0, 60, 10))])
    seen = []
    first_lap = laps.first_lap
    monkeypatch.setattr(_memory, "room", lambda *_: 4)

    def watched(problem, model, start, *given):
        seen.append(start.K)
        return first_lap(problem, model, start, *given)

    monkeypatch.setattr(laps, "first_lap", watched)
    assert HMM("gaussian", random_state=0, max_laps=40).fit(X).n_states_ <= 4
    assert len(seen) > 2
    assert max(seen) <= 4


def refused(X, estimator):
    tracemalloc.start()
    began = time.process_time()
    with pytest.raises(MemoryError, match="are available") as error:
        estimator.fit(X)
    seconds, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * X.nbytes + 1e6
    assert seconds < 2.0
    assert set(vars(estimator)) == set(vars(type(estimator)()))
    return str(error.value)


@pytest.mark.parametrize("free", [1e9, 10e9])
def test_a_fit_that_cannot_be_is_refused_at_once(free, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: free)
    X = np.random.default_rng(0).normal(size=(20, 20_000))
    message = refused(X, Mixture("gaussian"))
    assert memory.shown(free) in message
    assert "diagonal_gaussian" in message
    assert "200030000 statistics" in message


def test_max_memory_stands_for_what_is_free(monkeypatch):
    """D = 1,000 columns make F = 501,500 statistics; what is said is what to change."""
    X = np.random.default_rng(0).normal(size=(40, 1000))
    message = refused(X, Mixture("gaussian", max_memory=1e8))
    for part in ("501500 statistics", "of 1000 columns", "K=1", "n_batches=1", "100.0 MB are available"):
        assert part in message
    monkeypatch.setattr(memory, "available", lambda: 0.0)
    X = np.random.default_rng(0).normal(size=(60_000, 100))
    likelihood, source = Gaussian().resolve(Sample.of(X[:500])), ArraySource(X)
    assert _memory.n_batches(Mixture("gaussian", max_memory=1e8), likelihood, source) == 3
    assert _memory.n_batches(Mixture("gaussian", max_memory=1e10), likelihood, source) == 10
    for wrong in (0, -1.0, np.nan, "1 GB"):
        with pytest.raises(ValueError, match="max_memory must be None or a positive number of bytes"):
            Mixture("gaussian", max_memory=wrong).fit(X)


def test_clusters_to_begin_with_count(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 2e9)
    X = np.random.default_rng(0).normal(size=(300, 300))
    assert "fewer clusters" in refused(X, Mixture("gaussian", init="random", n_init_clusters=300, moves=()))


@pytest.mark.filterwarnings("ignore:not converged")
def test_births_stop_where_memory_would_not_suffice(monkeypatch):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 1.0, (60, 2)) for m in range(0, 80, 10)])
    assert Mixture("gaussian", random_state=0).fit(X).n_clusters_ == 8
    monkeypatch.setattr(_memory, "room", lambda *_: 3)
    limited = Mixture("gaussian", random_state=0, max_laps=30).fit(X)
    assert limited.n_clusters_ <= 3


def test_batches_are_fewer_where_memory_is_short(monkeypatch):
    X = np.random.default_rng(0).normal(size=(60_000, 100))
    likelihood, source = Gaussian().resolve(Sample.of(X[:500])), ArraySource(X)
    assert _memory.n_batches(Mixture("gaussian"), likelihood, source) == 10
    monkeypatch.setattr(memory, "available", lambda: 1e8)
    assert _memory.n_batches(Mixture("gaussian"), likelihood, source) == 3
    assert _memory.n_batches(Mixture("gaussian", n_batches=7), likelihood, source) == 7


def test_limits_of_the_process_count():
    """In a process whose address space is limited, little is available, and a fit that needs more is refused."""
    code = """
import numpy as np
from stickbreak import HMM, Mixture, TopicModel
from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource
from stickbreak.inference import memory
import resource
Mixture("gaussian", max_laps=1)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 10**9, used + 10**9))
assert 0 < memory.available() <= 10**9
try:
    Mixture("gaussian").fit(np.random.default_rng(0).normal(size=(100, 3000)))
except MemoryError as error:
    print(error)
"""
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("no /proc here")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=200)
    assert found.returncode == 0, found.stderr
    assert "are available" in found.stdout


@pytest.mark.parametrize("version", [1, 2])
def test_control_groups_are_read(version, tmp_path, monkeypatch):
    """Of a group and of those above it, the one that leaves least; without files of a cache that could go."""
    root = "/sys/fs/cgroup" + ("/memory" if version == 1 else "")
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if version == 1 else ("memory.max", "memory.current")
    files = {
        "/proc/self/cgroup": "5:cpu,memory:/a/b\n3:pids:/x\n" if version == 1 else "0::/a/b\n",
        "/proc/meminfo": "MemTotal: 9000 kB\nMemAvailable: 8000000 kB\n",
        f"{root}/a/b/{names[0]}": "max\n",
        f"{root}/a/b/{names[1]}": "5\n",
        f"{root}/a/{names[0]}": "1000\n",
        f"{root}/a/{names[1]}": "900\n",
        f"{root}/a/memory.stat": "anon 7\ninactive_file 50\n",
    }
    monkeypatch.setattr(memory, "_read", lambda path: files.get(str(path), ""))
    assert memory.available() == 150.0
    del files["/proc/self/cgroup"]
    assert memory.available() == 8e6 * 1024
    monkeypatch.setattr(memory, "_limits", lambda: iter(()))
    assert memory.available() == np.inf


def test_numbers_of_bytes_are_readable():
    assert [memory.shown(n) for n in (5e3, 7.25e6, 1e9, 3.21e12)] == ["5 kB", "7.2 MB", "1.0 GB", "3.2 TB"]


def test_the_summaries_of_chunks_do_not_pile_up(monkeypatch):
    """A visit to many chunks holds the sums of a few of them at a time."""
    source = ArraySource(np.random.default_rng(0).normal(size=(60_000, 2)))
    model = Model(Gaussian().resolve(Sample.of(source.X[:500])), DirichletProcess(1.0))
    alive, most, live = [], 0, Summary.zeros

    def counted(*shape):
        nonlocal most
        summary = live(*shape)
        alive.append(weakref.ref(summary.S))
        most = max(most, sum(array() is not None for array in alive))
        return summary

    monkeypatch.setattr(Summary, "zeros", counted)
    with Threads(1) as threads:
        parameters = model.parameters(live(2, model.likelihood.n_statistics), source.dtype)
        visit(model, parameters, source, source.batches(1)[0], threads)
    assert len(source.batches(1)[0]) > 10
    assert most < 5


@pytest.mark.filterwarnings("ignore:not converged")
def test_fits_stay_within_their_estimate(monkeypatch):
    """With many clusters to merge, whose scatter matrices are large."""
    X = np.random.default_rng(0).normal(size=(400, 250))
    seen, most, sizes_of, finish = [], [1], _memory._sizes, lap.end_lap

    def watched(*given):
        seen.append(sizes_of(*given))
        return seen[-1]

    def finished(*given, **named):
        found = finish(*given, **named)
        most.append(found[0].total.K)
        return found

    monkeypatch.setattr(_memory, "_sizes", watched)
    monkeypatch.setattr(lap, "end_lap", finished)
    tracemalloc.start()
    Mixture("gaussian", init="k-means++", n_init_clusters=8, moves=["merge"], max_laps=2, n_jobs=1, random_state=0).fit(
        X
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert max(most) == 8
    needed = seen[0].needed(8)
    assert 0.5 * needed < peak < needed
