"""The lap driver: full-dataset and memoized variational inference with moves, on one code path (Thesis Alg. 3.1 and 3.3)."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..allocations import Allocation, Solution
from ..data import ArraySource
from ..model import Drawn, Memo, Model, Parameters, Summary
from ..model.learning import tuned
from ..moves import MoveRecord, Proposal, Schedule
from ..moves.delete import NEGLIGIBLE
from ..moves.verify import WORTH
from .executor import Threads
from .trace import Lap
from .visit import visit

FASTER, SLOWER, FIRST_STEP, LONGEST_STEP = 1.5, 0.4, 0.5, 20.0
LOCAL = 1 << 30  # bytes for what is known of single documents; where they do not suffice, every lap starts afresh
TINY = 1e-300
FAR = 1.0  # log of the largest factor by which the prior of a topic is extrapolated
RISING = 2e-4  # of the bound: while a lap gains more, states are not merged or deleted
ROUNDING = {"float64": 1e-11, "float32": 1e-9}  # of the bound: what a lap gains less is not told from nothing
BARREN = 2  # laps without births, after which learning may begin where it is to be late
MOVED = 1e-3  # of the rows: a fit has not settled while the count of a cluster changes by more


@dataclass(frozen=True)
class Options:
    """How long to run and what to check.

    Attributes
    ----------
    n_batches : 1 is full-dataset inference
    max_laps : stop after this many passes
    tol : converged when a lap raises the bound by less than so many nats for each cluster
    accelerate : extrapolate the parameters between laps, and undo laps that lower the bound
    learn : what to learn between laps by empirical Bayes: "likelihood", and names of concentrations of the allocation
    learn_late : learn only once there are several clusters, and no more were born for two laps
    check : verify after every step that the bound has not decreased
    began : when the fit began, on the clock of `time.perf_counter`
    share : converged also, with a prior that is learnt, by a gain below this share of what the parameters of all clusters cost
    moved : but not while the count of a cluster changes by more than this share of the rows
    """

    n_batches: int = 1
    max_laps: int = 1000
    tol: float = 0.01
    accelerate: bool = True
    learn: tuple[str, ...] = ()
    learn_late: bool = False
    check: bool = False
    began: float = field(default_factory=time.perf_counter)
    share: float = 0.0
    moved: float = MOVED


class BoundDecreased(AssertionError):
    """The ELBO went down where it cannot: a defect of a likelihood, an allocation or a move."""


class Optimum(NamedTuple):
    """The optimum of an allocation for a total."""

    total: Summary
    allocation: Allocation
    solution: Solution


class Result(NamedTuple):
    """What a lap leaves: the model, the summary of all rows, its ELBO, and the lap as the history shows it.

    Set at once, at the end of a lap, so that an interrupt at any moment finds parts that belong together.
    """

    model: Model
    total: Summary
    bound: float
    lap: Lap


@dataclass
class Laps:
    """One ascent.  After the first lap, ``result`` is always a complete, valid model.

    Attributes
    ----------
    floor : a better model in hand while this ascent explores; the history then reports that one's bound
    settle : laps before the first moves are tried, other than deletes of clusters to which no row belongs
    enough : laps in a row that changed little, after which an ascent is over although there are moves left to try
    origin : what the ascent begins with, as the history shows it (see `stickbreak.inference.trace.Lap`)
    sample_rows : rows of the source, if that is a sample; 0 for all rows
    patience : an excursion is over if it would take more laps than this, each like the last, to reach ``floor``
    total, bound : summary and ELBO at the end of the last lap; during a lap they may be ahead of ``result``
    result : what the last lap left, None before the first
    drawn : rows drawn in the last lap to represent the clusters
    """

    model: Model
    source: ArraySource
    schedule: Schedule
    threads: Threads
    rng: np.random.Generator
    options: Options
    on_lap: Callable[[Lap], None] = lambda lap: None
    history: list[Lap] = field(default_factory=list)
    floor: "Laps | None" = None
    settle: int = 0
    enough: int = sys.maxsize
    patience: float = np.inf
    origin: str = "start"
    sample_rows: int = 0

    def __post_init__(self) -> None:
        self.batches = self.source.batches(self.options.n_batches)
        self.bound, self.converged = -np.inf, False
        self.result: Result | None = None
        self._recorded = -np.inf  # the bound at the end of the lap before
        self.drawn: list[Drawn] = []
        self._memo = Memo(len(self.batches))
        self._previous: Summary | None = None  # total one lap ago, with today's clusters
        self._before = self.model  # the model of that
        self._prior_before: NDArray[np.floating] | None = None  # what its parameters say of documents or sequences
        self._optimum: Optimum | None = None  # the last one found
        self._step = 0.0  # how far to extrapolate
        self._stalled = False  # the last lap gained nothing
        self._quiet = 0  # laps in a row that changed little
        self._barren = 0  # laps in a row without births
        self._learns = not self.options.learn_late
        self._proposals: list[Proposal] = []
        self._ascent = self.history[-1].ascent + 1 if self.history else 1

    def run(self, start: Summary, counts: NDArray[np.floating] | None = None) -> None:
        """Lap until converged or out of laps, from the parameters that ``start`` implies.

        counts : (K, N) of documents, if known, for their local steps to start from
        """
        self._first_lap(start, counts)
        self._continue()

    def beats(self, other: "Laps") -> bool:
        """Whether the bound of this ascent is higher, by more than rounding and what more clusters must be worth."""
        if self.result is None or other.result is None:
            return False
        return _is_better(self.result.bound, self.result.total.K, other.result)

    def offer(self, proposals: Sequence[Proposal]) -> None:
        """Verify these proposals, too, over the next lap."""
        self._proposals += proposals

    def polish(self, options: Options) -> None:
        """Lap on, to another tolerance."""
        self.options = options
        self._continue()

    def _continue(self) -> None:
        self.converged = False
        while not self.converged and len(self.history) < self.options.max_laps:
            before = self.bound, self.total.N
            self._lap()
            settled = self._settled(*before)
            self.converged = self._hopeless(before[0]) or (settled and self.settle < 0)
            if settled and not self.converged:
                self.settle, self._quiet = 0, 0  # nothing is left to wait for; moves are yet to be tried

    def _hopeless(self, bound: float) -> bool:
        """Whether the model in hand is too far above for an excursion that gained so little since ``bound``."""
        floor = None if self.floor is None else self.floor.result
        gain = self.bound - bound  # zero where a lap was undone, which says nothing
        return floor is not None and gain > 0.0 and floor.bound - self.bound > self.patience * gain

    def _first_lap(self, start: Summary, counts: NDArray[np.floating] | None) -> None:
        """Visit every batch with the starting parameters: what comes first must not decide for the rest (Thesis 3.5.4)."""
        self.schedule.start(start.K)
        self._starts = [self._of_batch(counts, b) for b in range(len(self.batches))]
        sizes = np.full(start.K, self.source.total_weight / start.K)
        self._pass(self.model.parameters(start, self.source.dtype), sizes, first=True)
        self._finish_lap([])

    def _lap(self) -> None:
        undo, total, model, optimum = self._memo.copy(), self._memo.total, self.model, self._optimum
        parameters, extrapolated = self._extrapolate()
        prior_before = model.allocation.update(total, self._solution()).prior
        if extrapolated:
            likelihood = model.likelihood.ahead(self._before.likelihood, self._step)
            self.model = replace(model, likelihood=likelihood)
        tracked = self._pass(parameters, total.N, extrapolated)
        bound = self.model.bound(self._memo.total, solution=self._solution())
        self._stalled = not extrapolated and not bound > self.bound
        if not bound >= self.bound and (extrapolated or not self._proposals):
            # rows drawn stay: they show new clusters, too
            self._memo, self._previous, self.model, self._optimum = undo, None, model, optimum
            if extrapolated:
                self._step *= SLOWER
                self._record([])
            else:  # only rounding is left to gain
                self._check(bound, self.bound, "a lap")
                self._finish_lap([])
            return
        if self.options.accelerate:
            self._step = min(max(self._step * FASTER, FIRST_STEP), LONGEST_STEP)
        self._previous, self._before, self._prior_before = total, model, prior_before
        self.bound = self._check(bound, self.bound, "a lap")
        self._finish_lap(self._resolve(tracked))

    def _pass(
        self, parameters: Parameters, sizes: NDArray[np.floating], extrapolated: bool = False, first: bool = False
    ) -> list[list[Summary]]:
        """Visit every batch once, in random order, with a global step after each, if this is not the first lap."""
        began = time.perf_counter()
        draw = self.schedule.draw(self.model, self.source, sizes)
        drawn: list[Drawn] = []
        tracked: list[list[Summary]] = [[] for _ in self.batches]
        last = self.bound
        local = self.source.n_rows * len(sizes) * 4 <= LOCAL
        for visited, b in enumerate(self.rng.permutation(len(self.batches)), 1):
            known = self._memo.batches[b]
            counts = self._starts[b] if known is None else known.warm_start
            seen = visit(
                self.model,
                parameters,
                self.source,
                self.batches[b],
                self.threads,
                self._proposals,
                draw,
                None if known is None else known.base,
                counts,
                local,
            )
            self._memo.replace(int(b), seen.summary)
            tracked[b] = seen.tracked
            drawn += seen.drawn
            if first or visited == len(self.batches):
                continue
            if extrapolated:
                parameters = self._extrapolate()[0]
                continue
            parameters = self.model.parameters(self._memo.total, self.source.dtype, solution=self._solution())
            if self.options.check:
                bound = self.model.bound(self._memo.total, solution=self._solution())
                last = self._check(bound, last, f"a visit to batch {b}")
        self._memo.refresh()
        self.drawn = drawn
        self._speed = self.source.n_rows / max(time.perf_counter() - began, 1e-9)
        return tracked

    def _of_batch(self, counts: NDArray[np.floating] | None, batch: int) -> NDArray[np.floating] | None:
        if counts is None:
            return None
        return np.concatenate([counts[:, chunk.start : chunk.stop] for chunk in self.batches[batch]], axis=1)

    @property
    def counts(self) -> NDArray[np.floating] | None:
        """Counts (K, N) of all documents, from which local steps may start, if they are kept."""
        everything = np.empty((self.total.K, self.source.n_rows), np.float32)
        for summary, batch in zip(self._memo.batches, self.batches):
            counts = None if summary is None else summary.warm_start
            if counts is None or counts.shape[1] != sum(chunk.stop - chunk.start for chunk in batch):
                return None
            everything[:, np.concatenate([np.arange(*chunk) for chunk in batch])] = counts
        return everything

    def _extrapolate(self) -> tuple[Parameters, bool]:
        """Parameters beyond those of the total by a multiple of its change since one lap ago, where that is possible."""
        total, dtype = self._memo.total, self.source.dtype
        while self._previous is not None and self._step > 0.01:
            change = total.N - self._previous.N
            largest = 0.5 * total.N / np.maximum(np.abs(change), 1e-9 * total.N + TINY)  # counts stay positive
            step = np.minimum(self._step, largest)
            S = total.S + step[:, None] * (total.S - self._previous.S)
            try:
                ahead = replace(total, N=total.N + step * change, S=S)
                return self._ahead(self.model.parameters(ahead, dtype, solution=self._solution())), True
            except FloatingPointError:
                self._step *= 0.5
        return self.model.parameters(total, dtype, solution=self._solution()), False

    def _solution(self) -> Solution:
        """The optimum of the allocation for the total, found once."""
        total, allocation = self._memo.total, self.model.allocation
        known = self._optimum
        if known is None or known.total is not total or known.allocation is not allocation:
            known = self._optimum = Optimum(total, allocation, allocation.solve(total))
        return known.solution

    def _ahead(self, parameters: Parameters) -> Parameters:
        """Of documents also the prior, in which coordinate ascent is slow where topics are in few documents."""
        before = self._prior_before
        if before is None and self._previous is not None:
            before = self._prior_before = self._before.allocation.update(self._previous).prior
        if parameters.prior is None or before is None:
            return parameters
        change = np.log(np.maximum(parameters.prior, TINY) / np.maximum(before, TINY))
        return parameters._replace(prior=parameters.prior * np.exp(np.clip(self._step * change, -FAR, FAR)))

    def _resolve(self, tracked: list[list[Summary]]) -> list[MoveRecord]:
        if not self._proposals:
            return []
        reported = self.history[-1].lower_bound
        slack = self.bound - reported
        if self.floor is not None and slack < -NEGLIGIBLE:  # well below a better model nothing is lost
            slack = np.inf
        verdict, records = self.schedule.resolve(
            self.model, self._memo, self._proposals, tracked, slack, self._solution()
        )
        if verdict.gains and self._previous is not None:
            added = verdict.added
            self._previous = None if added is None else self._previous.exchange(verdict.removed, added)
            self._prior_before = None
        self.bound += sum(min(gain, 0.0) for gain in verdict.gains.values())  # what moves may give back
        return records

    def _finish_lap(self, records: list[MoveRecord]) -> None:
        self._drop_empty()
        self._reorder()
        self.total = self._memo.total
        born = any(record.kind == "birth" and record.gains for record in records)
        self._barren = 0 if born else self._barren + 1
        self._learns = self._learns or (self.total.K > 1 and self._barren >= BARREN)
        if self.options.learn and self._learns:
            model, solution = tuned(self.model, self.total, self.options.learn, self.source.dtype, self._solution())
            self.model, self._optimum = model, Optimum(self.total, model.allocation, solution)
        log_marginal, solution = self.model.log_marginal(self.total), self._solution()
        self.bound = self._check(
            self.model.bound(self.total, log_marginal, solution), self.bound, "a move, or the end of a lap"
        )
        fast = max(RISING * abs(self.bound), self.options.tol * self.total.K)  # no ascent ends before moves are tried
        rising = self._recorded > -np.inf and self.bound - self._recorded > fast
        self._recorded = self.bound
        self._record(records)
        self.settle -= 1
        self._proposals = self.schedule.plan(
            self.model,
            self.total,
            log_marginal,
            solution,
            self.source,
            self.drawn,
            self.threads.map,
            len(self.batches),
            settling=self.settle >= 0,
            rising=rising,
        )

    def _reorder(self) -> None:
        """Keep clusters in the order with the highest bound; for documents that is no more than likely."""
        total, allocation = self._memo.total, self.model.allocation
        order = allocation.order(total)
        if (order == np.arange(len(order))).all():
            return
        if self.model.kind.recipe.ordered:
            self._take(order)
            return
        ordered = total.without_statistics().take(order)
        solution = allocation.solve(ordered)
        if allocation.bound(ordered, solution) >= allocation.bound(total, self._solution()):
            self._take(order)
            self._optimum = Optimum(self._memo.total, allocation, solution)

    def _drop_empty(self) -> None:
        """Clusters without rows cost time and change nothing (nested truncation, Thesis 3.4.3)."""
        used = np.flatnonzero(self._memo.total.N > 0.0)
        if self.model.kind.recipe.ordered and len(used) < self._memo.total.K:
            self._take(used)

    def _take(self, clusters: NDArray[np.integer]) -> None:
        self._memo.edit(lambda b, summary: summary.take(clusters))
        self._previous = self._previous and self._previous.take(clusters)
        self._prior_before = None
        self.schedule.take(clusters)

    def _record(self, records: list[MoveRecord]) -> None:
        floor = None if self.floor is None else self.floor.result
        ahead = floor is None or _is_better(self.bound, self.total.K, floor)
        bound, K = (self.bound, self.total.K) if ahead or floor is None else (floor.bound, floor.total.K)
        lap = Lap(
            number=len(self.history) + 1,
            seconds=time.perf_counter() - self.options.began,
            lower_bound=bound,
            n_clusters=K,
            explored_bound=self.bound,
            explored_clusters=self.total.K,
            moves=tuple(records),
            rows_per_second=self._speed,
            ascent=self._ascent,
            origin=self.origin,
            sample_rows=self.sample_rows,
        )
        self.result = Result(self.model, self.total, self.bound, lap)
        self.history.append(lap)
        self.on_lap(lap)

    def _settled(self, bound: float, counts: NDArray[np.floating]) -> bool:
        self._quiet = self._quiet + 1 if self._changed_little(bound, counts) else 0
        return self._quiet >= (self.enough if self._proposals else 1)

    def _changed_little(self, bound: float, counts: NDArray[np.floating]) -> bool:
        if len(counts) != self.total.K:
            return False
        if self._previous is None:
            return self._stalled
        moved = np.abs(np.sort(self.total.N) - np.sort(counts)).max()
        if moved > self.options.moved * max(float(self.total.N.sum()), 1.0):
            return False
        least = max(self.options.tol * self.total.K, ROUNDING[self.source.dtype.name] * abs(self.bound))
        if self.options.share > 0.0 and self._learns:
            least = max(least, self.options.share * float(self.model.parameter_cost(self.total).sum()))
        return self.bound - bound <= least

    def _check(self, after: float, before: float, step: str) -> float:
        if not np.isfinite(after):
            raise FloatingPointError(
                f"the bound is {after} after {step}: numbers in the data or in sample_weight are too large or too small "
                "together. Multiply the columns, or the weights, by constants that bring them nearer to one."
            )
        slack = 1e-6 if self.source.dtype == np.float32 else 1e-9
        if self.options.check and not after >= before - slack * max(1.0, abs(before)):
            raise BoundDecreased(f"the bound fell from {before!r} to {after!r} after {step}")
        return after


def _is_better(bound: float, K: int, other: Result) -> bool:
    """Whether a bound with K clusters is above another, by more than rounding and what more clusters must be worth."""
    return bound - other.bound > 1e-9 * abs(other.bound) + WORTH * max(0, K - other.total.K)
