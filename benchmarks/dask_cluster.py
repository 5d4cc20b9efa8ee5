"""Fits on a Dask cluster of separate processes: same result, killed workers, late workers, memory, speed, bytes on the wire.

Run with ``--small`` for a version of seconds; figures in docs/scale.md are of the whole.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from dask import array
from distributed import Client

from stickbreak import DaskExecutor, Mixture
from stickbreak.data import ArraySource

KILLS = 10
FEW, MORE = 2, 5  # laps of the fits whose difference is that of settled laps


@dataclass
class Cluster:
    """A scheduler and its workers, each a process of its own."""

    folder: Path
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]
    client: Client

    def more(self, memory: str = "0") -> None:
        """Start another worker of one thread, with a nanny that starts it again when it dies."""
        file = str(self.folder / "scheduler.json")
        command = [
            "dask",
            "worker",
            "--scheduler-file",
            file,
            "--nthreads",
            "1",
            "--memory-limit",
            memory,
            "--no-dashboard",
        ]
        self.workers.append(started(command))

    def pids(self) -> list[int]:
        """The processes of the workers."""
        return sorted(self.client.run(os.getpid).values())


def started(command: list[str]) -> subprocess.Popen[bytes]:
    program = Path(sys.executable).with_name(command[0])
    return subprocess.Popen(
        [str(program), *command[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


@contextmanager
def cluster(n_workers: int, memory: str = "0") -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "scheduler.json"
        scheduler = started(["dask", "scheduler", "--scheduler-file", str(file), "--port", "0", "--no-dashboard"])
        client = Client(scheduler_file=str(file), timeout=60)
        made = Cluster(Path(name), scheduler, [], client)
        try:
            for _ in range(n_workers):
                made.more(memory)
            client.wait_for_workers(n_workers, timeout=60)
            yield made
        finally:
            client.close()
            for process in (*made.workers, scheduler):
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def rows(folder: Path, n: int, D: int) -> Any:
    """Rows (n, D) of 20 clusters in a file."""
    X = np.lib.format.open_memmap(folder / f"{n}.npy", "w+", np.float32, (n, D))
    rng = np.random.default_rng(0)
    means = rng.normal(0.0, 6.0, (20, D))
    for start in range(0, n, 1 << 18):
        labels = rng.integers(20, size=min(1 << 18, n - start))
        X[start : start + len(labels)] = means[labels] + rng.normal(size=(len(labels), D))
    X.flush()
    return np.load(folder / f"{n}.npy", mmap_mode="r")


def laps(K: int, n_laps: int, executor: Any = None, n_batches: int | None = None) -> Mixture:
    """Laps without moves from K seeds."""
    return Mixture(
        "gaussian",
        init="k-means++",
        n_init_clusters=K,
        moves=(),
        learn=False,
        candidates=None,
        tol=0.0,
        max_laps=n_laps,
        n_batches=n_batches,
        n_jobs=2,
        random_state=0,
        executor=executor,
    )


def same_result(X: Any, K: int, n_laps: int) -> None:
    here = laps(K, n_laps).fit(X)
    with cluster(2) as there:
        first = laps(K, n_laps, DaskExecutor(there.client)).fit(X)
        again = laps(K, n_laps, DaskExecutor(there.client)).fit(X)
    error = abs(first.lower_bound_ - here.lower_bound_) / abs(here.lower_bound_)
    print(
        f"same fit as local: bound within {error:.1e} of it, labels equal in {(first.labels_ == here.labels_).mean():.6%}"
    )
    print(f"same fit twice on a cluster: bit for bit {bits(first) == bits(again)}")


def bits(model: Mixture) -> bytes:
    return model.summary_.S.tobytes() + model.summary_.N.tobytes() + np.float64(model.lower_bound_).tobytes()


def kills(X: Any, K: int, n_laps: int, n: int) -> None:
    rng = np.random.default_rng(1)
    with cluster(2) as there:
        laps(K, n_laps, DaskExecutor(there.client)).fit(X)  # compiled code is read
        began = time.perf_counter()
        whole = laps(K, n_laps, DaskExecutor(there.client)).fit(X)
        seconds = time.perf_counter() - began
        fits = equal = done = 0
        while done < n:
            there.client.wait_for_workers(2, timeout=60)
            victim = int(rng.choice(there.pids()))
            timer = threading.Timer(rng.uniform(0.1, 0.9) * seconds, os.kill, (victim, signal.SIGKILL))
            timer.start()
            model = laps(K, n_laps, DaskExecutor(there.client)).fit(X)
            timer.cancel()
            fits += 1
            done += not psutil.pid_exists(victim)
            equal += bits(model) == bits(whole)
    print(f"kill -9 of a worker at a random moment: {done} killed in {fits} fits, {equal} of {fits} with the same bits")


def late(X: Any, K: int, n_laps: int) -> None:
    with cluster(1) as there:
        first = there.pids()
        timer = threading.Timer(1.0, there.more)
        timer.start()
        laps(K, n_laps, DaskExecutor(there.client)).fit(X)
        timer.join()
        there.client.wait_for_workers(2, timeout=60)
        busy = {pid: psutil.Process(pid).cpu_times().user for pid in there.pids()}
        idle = fresh_cpu(there)
    new = next(pid for pid in busy if pid not in first)
    print(
        f"a worker that joins late: {busy[new]:.1f} CPU seconds of {sum(busy.values()):.1f}; one without work has {idle:.1f}"
    )


def fresh_cpu(there: Cluster) -> float:
    """CPU seconds of a worker that has done nothing."""
    before = set(there.pids())
    there.more()
    there.client.wait_for_workers(len(before) + 1, timeout=60)
    new = next(pid for pid in there.pids() if pid not in before)
    return float(psutil.Process(new).cpu_times().user)


def out_of_memory() -> None:
    with cluster(2, "600MB") as there:
        X = array.random.random((4_000_000, 50), chunks=(2_000_000, 50))
        try:
            laps(5, 2, DaskExecutor(there.client)).fit(X)
        except MemoryError as error:
            print(f"workers of 600 MB, blocks of 800 MB: MemoryError: {error}")
        else:
            print("workers of 600 MB, blocks of 800 MB: the fit came to its end")


@dataclass
class Spent:
    """What a fit has cost: seconds, CPU seconds of the scheduler and of the workers (or of this process), bytes sent."""

    seconds: float
    scheduler: float
    workers: float
    sent: float

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(*(a - b for a, b in zip(astuple(self), astuple(other))))

    def each(self, n: int) -> "Spent":
        """For each of n laps."""
        return Spent(*(value / n for value in astuple(self)))


def spent(there: Cluster | None) -> Spent:
    if there is None:
        return Spent(time.perf_counter(), 0.0, time.process_time(), 0.0)
    workers = sum(cpu(psutil.Process(pid)) for pid in there.pids())
    return Spent(time.perf_counter(), cpu(psutil.Process(there.scheduler.pid)), workers, wire())


def lap_of(X: Any, K: int, n_batches: int, there: Cluster | None = None) -> Spent:
    """A settled lap: what a fit of more laps costs beyond one of few."""
    costs = []
    for n_laps in (FEW, MORE):
        before = spent(there)
        laps(K, n_laps, None if there is None else DaskExecutor(there.client), n_batches).fit(X)
        costs.append(spent(there) - before)
    return (costs[1] - costs[0]).each(MORE - FEW)


def speed(X: Any, K: int, n_batches: int) -> None:
    here = lap_of(X, K, n_batches)
    with cluster(2) as there:
        laps(K, 1, DaskExecutor(there.client), n_batches).fit(X)  # compiled code is read
        lap = lap_of(X, K, n_batches, there)
    part = sum(map(len, ArraySource(X).batches(n_batches)))
    print(f"{len(X):,} x {X.shape[1]}, K = {K}, {n_batches} batches, {part} chunks a lap:")
    print(
        f"  lap of 2 threads {here.seconds:.2f} s, of 2 workers {lap.seconds:.2f} s: {here.seconds / lap.seconds:.2f}"
    )
    print(f"  CPU s of 2 threads {here.workers:.2f}, of 2 workers {lap.workers:.2f}: {here.workers / lap.workers:.2f}")
    print(f"  scheduler {lap.scheduler:.3f} CPU s a lap, {lap.scheduler / lap.workers:.1%} of that of the workers")
    print(f"  {lap.sent / 1e6:.2f} MB a lap on the wire")


def both_speeds(X: Any) -> None:
    for n_batches in (1, 10):
        speed(X, 30, n_batches)


def idle(seconds: float, n: int) -> None:
    """What a cluster costs that has nothing to do, and n graphs of eight tasks that do nothing."""
    with cluster(2) as there:
        time.sleep(3.0)
        before = spent(there)
        time.sleep(seconds)
        waiting = (spent(there) - before).each(1)
        before = spent(there)
        for i in range(n):
            graph = {(f"nothing-{i:032x}", j): (int, str(j)) for j in range(8)}
            there.client.get(graph, list(graph))
        busy = (spent(there) - before).each(8 * n)
    shares = waiting.scheduler / waiting.seconds, waiting.workers / waiting.seconds / 2
    print("idle: scheduler {:.1%} of a core, each worker {:.1%}".format(*shares))
    print(f"a task that does nothing: scheduler {1e3 * busy.scheduler:.2f} ms, worker {1e3 * busy.workers:.2f} ms")


def cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def wire() -> int:
    """Bytes sent on the loopback interface so far."""
    return int(psutil.net_io_counters(pernic=True)["lo"].bytes_sent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", choices=("same", "kills", "late", "memory", "idle", "speed"))
    parser.add_argument("--rows", type=int, default=16_400_000, help="of the file of laps that are timed")
    given = parser.parse_args()
    small = given.small
    few = 100_000 if small else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        steps = {
            "same": lambda: same_result(rows(Path(name), few, 8), 20, 4),
            "kills": lambda: kills(rows(Path(name), few, 8), 20, 6, 2 if small else KILLS),
            "late": lambda: late(rows(Path(name), few, 8), 20, 10 if small else 25),
            "memory": out_of_memory,
            "idle": lambda: idle(2.0 if small else 10.0, 3 if small else 30),
            "speed": lambda: both_speeds(rows(Path(name), 200_000 if small else given.rows, 8)),
        }
        for step, run in steps.items():
            if given.only in (None, step):
                run()


if __name__ == "__main__":
    main()
