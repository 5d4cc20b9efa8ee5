"""A graphics card beside the processors: laps of a mixture and an E-step of a hidden Markov model, and their floors.

    python benchmarks/gpu.py [--device cuda] [--small] [--floors] [--processors 2] [--tasks 0 1 2] [--alone]

Laps are settled ones of full-covariance Gaussians in float32, given the clusters that the rows were drawn from, without moves,
in one batch: 50,000 rows x 50 (F = 1,325) with 100 clusters, and 10 million x 32 (F = 560) with 500.  An E-step is a visit of
100,000 rows x 12 in 10 sequences with 100 states, as in benchmarks/hmm_laps.py.  "first s" is the first visit, in which rows go
to the card; the others are the best of ``--repeats``.  "bounds differ" is the relative difference of the bounds on both.
"global step CPU ms" is the part of a lap that stays on the processors, the least of ten times as many.

The floor is the time of what no way around saves on a card with the given peaks: the larger of that of the multiply-adds (in
float32 of scores, in float64 of sums and messages), and that of the bytes of rows, features and responsibilities, each written
once and read twice.  ``--small`` has a hundredth of the rows, to try the script with ``--device cpu`` (set OMP_NUM_THREADS=1).
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from common import report, show
from hmm_laps import rows as chain_rows
from many_rows import gaussians
from stickbreak.allocations import DirichletProcess, FiniteMarkovChain
from stickbreak.data import ArraySource, SequenceSource
from stickbreak.device import LANES, Device, OnDevice
from stickbreak.inference import Executor, Options, Threads
from stickbreak.inference.lap import first_lap, lap
from stickbreak.inference.state import Problem
from stickbreak.inference.visit import visit
from stickbreak.likelihoods import Gaussian, Sample
from stickbreak.likelihoods.features import features
from stickbreak.model import SEQUENCES, Model, Summary
from stickbreak.model.seeding import hard_summary
from stickbreak.moves import Schedule

PRIOR_ROWS = 100_000  # that the prior is scaled from


@dataclass(frozen=True)
class Peaks:
    """Of a card: multiply-adds count two.  By default those of an H200, of its data sheet."""

    float32: float = 67e12
    float64: float = 67e12
    bandwidth: float = 4.8e12

    def floor(self, single: float, double: float, numbers: float) -> float:
        """Seconds for operations in float32 and float64, and for bytes."""
        return max(single / self.float32 + double / self.float64, numbers / self.bandwidth)


def seconds_of(task: Callable[[], float], repeats: int) -> tuple[float, float, float]:
    """The first run, the best of others, and what it returned."""
    seconds = []
    value = 0.0
    for _ in range(repeats + 1):
        began = time.perf_counter()
        value = task()
        seconds.append(time.perf_counter() - began)
    return seconds[0], min(seconds[1:]), value


def global_step(model: Model, total: Summary, dtype: np.dtype, repeats: int) -> float:
    """CPU seconds of the part of a lap that stays on the processors: the bound of a total and its parameters; the least."""
    seconds = []
    for _ in range(10 * repeats):
        began = time.process_time()
        posterior = model.posterior(total)
        _ = posterior.bound
        posterior.parameters(dtype)
        seconds.append(time.process_time() - began)
    return min(seconds)


class Run(NamedTuple):
    """Seconds of the first run and the best of others, the bound after one, and CPU seconds of a global step."""

    first: float
    best: float
    bound: float
    step: float


def laps(N: int, D: int, K: int, executor: Executor, repeats: int) -> Run:
    """Laps of a mixture."""
    X, z = gaussians(N, K, D)
    X = X.astype(np.float32)
    model = Model(Gaussian().resolve(Sample.of(X[:PRIOR_ROWS].astype(np.float64))), DirichletProcess())
    S = np.zeros((K, model.likelihood.n_statistics))
    some = np.arange(min(N, 50 * K * 10))  # to begin with
    for start in range(0, len(some), 4096):
        rows = some[start : start + 4096]
        np.add.at(S, z[rows], features(model.likelihood, X[rows]))
    scale = N / len(some)
    begin = model.start(np.bincount(z[some], minlength=K) * scale, S * scale)
    problem = Problem(ArraySource(X), executor, Options(1, accelerate=False))
    began = time.perf_counter()
    state = first_lap(problem, model, begin, Schedule(()), np.random.default_rng(0), 0)[0]
    first = time.perf_counter() - began
    _, best, bound = seconds_of(lambda: lap(problem, state)[0].bound, repeats)
    return Run(first, best, bound, global_step(model, state.total, problem.source.dtype, repeats))


def e_steps(T: int, K: int, executor: Executor, repeats: int) -> Run:
    """E-steps of a hidden Markov model."""
    data = chain_rows(K, T)
    X = data.X.astype(np.float32)
    source = SequenceSource(X, data.lengths)
    model = Model(Gaussian().resolve(Sample.of(data.X)), FiniteMarkovChain(K), SEQUENCES)
    begin = hard_summary(features(model.likelihood, data.X), np.ones(T), data.z)
    chunks = source.batches(1)[0]

    def step(start: Summary) -> Summary:
        return visit(model, model.parameters(start, source.dtype), source, chunks, executor).summary

    found = step(model.kind.start(begin) if not hasattr(begin, "M") else begin)
    first, best, bound = seconds_of(lambda: model.bound(step(found)), repeats)
    return Run(first, best, bound, global_step(model, found, source.dtype, repeats))


def row(name: str, floor: float, run: Callable[[Executor], Run], options: Any) -> dict[str, object]:
    """The seconds of a task on both, beside its floor, or the floor alone."""
    if options.floors:
        return {"task": name, "floor ms": 1e3 * floor}
    with OnDevice(options.where, Threads(LANES)) as there:
        on_card = run(there)
    found: dict[str, object] = {
        "task": name,
        "first s": on_card.first,
        "card s": on_card.best,
        "floor ms": 1e3 * floor,
        "times the floor": on_card.best / floor,
        "global step CPU ms": 1e3 * on_card.step,
    }
    if options.alone:
        return found
    with Threads(options.processors) as here:
        known = run(here)
    return found | {
        f"{options.processors} processors s": known.best,
        "times faster": known.best / on_card.best,
        "bounds differ": f"{abs(on_card.bound / known.bound - 1.0):.1e}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--processors", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tasks", type=int, nargs="+", default=[0, 1, 2], help="which of the three")
    parser.add_argument(
        "--alone", action="store_true", help="leave out the processors, which take minutes for the second task"
    )
    parser.add_argument("--float32", type=float, default=Peaks.float32, help="operations/s of the card, at its peak")
    parser.add_argument("--float64", type=float, default=Peaks.float64)
    parser.add_argument("--bandwidth", type=float, default=Peaks.bandwidth, help="bytes/s of its memory")
    parser.add_argument("--floors", action="store_true", help="nothing but the floors, for which no card is needed")
    options = parser.parse_args()
    options.where = Device.parse(options.device)
    if not options.floors:
        options.where.check()
    peaks = Peaks(options.float32, options.float64, options.bandwidth)
    parts = 100 if options.small else 1

    rows = []
    for task, (N, D, K) in enumerate(((50_000, 50, 100), (10_000_000, 32, 500))):
        if task not in options.tasks:
            continue
        n = N // parts
        F = D * (D + 3) // 2
        floor = peaks.floor(2.0 * n * F * K, 2.0 * n * F * K, 4.0 * n * (D + 3 * F + 3 * K))
        name = f"lap of {n:,} x {D}, K = {K}"
        rows.append(row(name, floor, lambda executor, n=n, D=D, K=K: laps(n, D, K, executor, options.repeats), options))
    if 2 in options.tasks:
        T, D, K = 100_000 // parts, 12, 100 // (5 if options.small else 1)
        F = D * (D + 3) // 2
        double = 2.0 * T * (F * K + 3 * K * K)
        floor = peaks.floor(2.0 * T * F * K, double, 4.0 * T * (D + 3 * F) + 8.0 * T * 9 * K)
        name = f"E-step of {T:,} x {D}, {K} states"
        rows.append(row(name, floor, lambda e: e_steps(T, K, e, options.repeats), options))
    if options.floors:
        show(rows)
    else:
        report("gpu", rows)


if __name__ == "__main__":
    main()
