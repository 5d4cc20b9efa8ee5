"""Stochastic variational inference (Thesis Alg. 3.2)."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .._arguments import as_floats, real, shown
from ..data import ArraySource
from ..model import Model, Summary
from ..model.learning import tuned
from ..moves.delete import NEGLIGIBLE
from .executor import Threads
from .laps import MOVED, Options, Result
from .trace import Lap
from .visit import visit

NOISE = 1e-6  # of the bound: changes by less say nothing, since every step sees a part of the rows
LEAST = 1e-100  # of the weight of all rows: a batch with less says nothing, and scaling it to all rows could overflow


@dataclass(frozen=True)
class Stochastic:
    """Schedule of the steps of stochastic inference:  xi_t = (t + delay)^-decay.

    Parameters
    ----------
    delay : float >= 0
        Weakens the first steps.
    decay : float in (0.5, 1]
        How fast steps shrink; the range that converges (Robbins and Monro).
    """

    delay: float = 1.0
    decay: float = 0.6

    def __post_init__(self) -> None:
        if not 0.0 <= real(self.delay) < np.inf:
            raise ValueError(f"delay must be a number of at least 0; got {shown(self.delay)}.")
        if not 0.5 < real(self.decay) <= 1.0:
            raise ValueError(f"decay must be above 0.5 and at most 1; got {shown(self.decay)}.")
        as_floats(self, "delay", "decay")

    def step(self, t: int) -> float:
        """xi_t for t = 1, 2, ..."""
        return float((t + self.delay) ** -self.decay)


@dataclass
class StochasticLaps:
    """Steps along noisy natural gradients: each batch, scaled to the whole data set, is mixed into a decaying summary.

    The bound of the decaying summary is an estimate; `run` ends with one lap at fixed parameters, whose bound is exact, and
    without the clusters to which no row belongs.

    Attributes
    ----------
    result : what the last lap left, None before the first
    """

    model: Model
    source: ArraySource
    schedule: Stochastic
    threads: Threads
    rng: np.random.Generator
    options: Options
    on_lap: Callable[[Lap], None] = lambda lap: None
    history: list[Lap] = field(default_factory=list)
    converged: bool = False
    result: "Result | None" = None

    def run(self, start: Summary) -> None:
        """Step from the parameters that ``start`` implies until the estimate of the bound settles."""
        pieces = self.source.cut(self.options.n_batches)
        batches = pieces.batches(self.options.n_batches)
        rows = self.source.total_weight
        mixed, bound, t = start, -np.inf, 0
        counts = start.N
        while not self.converged and len(self.history) < self.options.max_laps - 1:
            began = time.perf_counter()
            for b in self.rng.permutation(len(batches)):
                t += 1
                parameters = self.model.parameters(mixed, self.source.dtype)
                seen = visit(self.model, parameters, pieces, batches[b], self.threads, local=False).summary
                weight = float(seen.N.sum())
                mixed = mixed.as_sum
                if weight > LEAST * rows:
                    xi = self.schedule.step(t)
                    mixed = mixed * (1.0 - xi) + seen * (xi * rows / weight)
            solution = self.model.allocation.solve(mixed)
            if self.options.learn:
                self.model, solution = tuned(self.model, mixed, self.options.learn, self.source.dtype, solution)
            before, bound = bound, self.model.bound(mixed, solution=solution)
            self._record(began, mixed, bound)
            moved, counts = np.abs(mixed.N - counts).max() / rows, mixed.N
            least = max(self.options.tol * mixed.K, NOISE * max(abs(bound), rows))
            self.converged = abs(bound - before) <= least and moved <= MOVED
        began = time.perf_counter()
        everything = [chunk for batch in self.source.batches(self.options.n_batches) for chunk in batch]
        used = self.model.parameter_cost(mixed) >= NEGLIGIBLE
        if used.any():
            mixed = mixed.take(np.flatnonzero(used))
        parameters = self.model.parameters(mixed, self.source.dtype)
        total = visit(self.model, parameters, self.source, everything, self.threads, local=False).summary
        total = self.model.ordered(total)
        self._record(began, total, self.model.bound(total))

    def _record(self, began: float, total: Summary, bound: float) -> None:
        now = time.perf_counter()
        speed = self.source.n_rows / max(now - began, 1e-9)
        lap = Lap(len(self.history) + 1, now - self.options.began, bound, total.K, bound, total.K, (), speed)
        self.result = Result(self.model, total, bound, lap)
        self.history.append(lap)
        self.on_lap(lap)
