"""One lap, from a state to the next: full-dataset or memoized variational inference with moves (Thesis Alg. 3.1 and 3.3)."""

import sys
import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource, Chunk
from ..model import Drawn, Memo, Model, Parameters, Posterior, Summary, Take
from ..model.learning import tuned
from ..moves import MoveRecord, Proposal, Schedule
from ..moves.better import NEGLIGIBLE, accepts
from ..moves.verify import Verdict
from .executor import Executor
from .visit import visit

Array = NDArray[np.floating]

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
    share: float = 0.0
    moved: float = MOVED


class BoundDecreased(AssertionError):
    """The ELBO went down where it cannot: a defect of a likelihood, an allocation or a move."""


class Floor(NamedTuple):
    """A better model in hand while an ascent explores: its bound, and its number of clusters."""

    bound: float
    K: int


@dataclass(frozen=True)
class Problem:
    """What the laps of an ascent share.

    Attributes
    ----------
    enough : laps in a row that changed little, after which an ascent is over although there are moves left to try
    floor : None, or a better model in hand
    patience : an excursion is over if it would take more laps than this, each like the last, to reach ``floor``
    """

    source: ArraySource
    executor: Executor
    options: Options = field(default_factory=Options)
    enough: int = sys.maxsize
    floor: Floor | None = None
    patience: float = np.inf

    @cached_property
    def batches(self) -> list[list[Chunk]]:
        """The batches of all rows."""
        return self.source.batches(self.options.n_batches)

    def reported(self, bound: float, K: int) -> Floor:
        """The better of a model with K clusters and the one in hand."""
        floor = self.floor
        ahead = floor is None or accepts(bound - floor.bound, K - floor.K, floor.bound)
        return Floor(bound, K) if ahead or floor is None else floor


class State(NamedTuple):
    """Everything that the next lap needs: a value that no lap changes.

    Attributes
    ----------
    posterior : of all rows, which says what the parameters are, and the model with the hyperparameters learnt so far
    memo : the summaries of the batches
    bound : the ELBO of all rows at the end of the last lap
    schedule : identities of the clusters, and what has failed
    rng : random numbers for the next lap
    settle : laps before the first moves are tried, other than deletes of clusters to which no row belongs
    proposals : to verify over the next lap
    drawn : rows drawn in the last lap to represent the clusters
    before : the posterior one lap ago, with today's clusters; None where the next lap cannot extrapolate
    step : how far to extrapolate
    stalled : whether the last lap gained nothing
    quiet, barren : laps in a row that changed little, and without births
    learns : whether hyperparameters are learnt
    done : whether the ascent is over
    """

    posterior: Posterior
    memo: Memo
    bound: float
    schedule: Schedule
    rng: np.random.Generator
    settle: int
    proposals: Sequence[Proposal] = ()
    drawn: Sequence[Drawn] = ()
    before: Posterior | None = None
    step: float = 0.0
    stalled: bool = False
    quiet: int = 0
    barren: int = 0
    learns: bool = True
    done: bool = False

    @property
    def model(self) -> Model:
        """The model, with its hyperparameters as they were learnt."""
        return self.posterior.model

    @property
    def total(self) -> Summary:
        """The summary of all rows."""
        return self.posterior.summary


class Record(NamedTuple):
    """What became of the proposals of a lap, by kind, and the speed of its pass."""

    moves: tuple[MoveRecord, ...]
    rows_per_second: float


class Pass(NamedTuple):
    """What a pass over all batches brings back: their summaries, those of the proposals, rows drawn, and its speed."""

    memo: Memo
    tracked: list[list[Summary]]
    drawn: list[Drawn]
    step: float
    rows_per_second: float


class Leap(NamedTuple):
    """The parameters for a lap, whether they are extrapolated, and how far."""

    parameters: Parameters
    taken: bool
    step: float


def first_lap(
    problem: Problem,
    model: Model,
    start: Summary,
    schedule: Schedule,
    rng: np.random.Generator,
    settle: int,
    counts: Array | None = None,
) -> tuple[State, Record]:
    """Visit every batch with the parameters of a start: what comes first must not decide for the rest (Thesis 3.5.4).

    counts : (K, N) of documents, if known, for their local steps to start from
    """
    schedule, rng = schedule.copy(), deepcopy(rng)
    schedule.start(start.K)
    memo = Memo(len(problem.batches))
    begun = State(model.posterior(start), memo, -np.inf, schedule, rng, settle, learns=not problem.options.learn_late)
    leap = Leap(begun.posterior.parameters(problem.source.dtype), False, 0.0)
    sizes = np.full(start.K, problem.source.total_weight / start.K)
    starts = [_of_batch(counts, batch) for batch in problem.batches]
    seen = _pass(problem, begun, model, leap, sizes, starts)
    begun = begun._replace(posterior=model.posterior(seen.memo.total), memo=seen.memo, drawn=seen.drawn)
    return _finished(problem, begun, [], seen.rows_per_second, rising=False)


def lap(problem: Problem, state: State) -> tuple[State, Record]:
    """Visit every batch once; judge the proposals; learn; plan the next lap; and say whether it was the last."""
    after, record = _lap(problem, state._replace(rng=deepcopy(state.rng), schedule=state.schedule.copy()))
    return judged(problem, state, after), record


def judged(problem: Problem, state: State, after: State) -> State:
    """The state after a lap, with whether that was the last."""
    quiet = state.quiet + 1 if _changed_little(problem, state, after) else 0
    settled = quiet >= (problem.enough if after.proposals else 1)
    done = _hopeless(problem, after.bound - state.bound, after.bound) or (settled and after.settle < 0)
    settle = 0 if settled and not done else after.settle  # nothing is left to wait for
    return after._replace(quiet=quiet, settle=settle, done=done)


def _lap(problem: Problem, state: State) -> tuple[State, Record]:
    """A lap that may change the random numbers and the schedule of its state."""
    leap = _leap(state.posterior, state.before, state.step, problem.source.dtype)
    model = state.model
    if leap.taken and state.before is not None:
        model = replace(model, likelihood=model.likelihood.ahead(state.before.model.likelihood, leap.step))
    seen = _pass(problem, state, model, leap, state.total.N)
    posterior, speed = model.posterior(seen.memo.total), seen.rows_per_second
    state = state._replace(drawn=seen.drawn, step=seen.step)  # rows drawn stay: they show new clusters, too
    lowered = not posterior.bound >= state.bound
    if lowered and leap.taken:
        return state._replace(before=None, step=seen.step * SLOWER, stalled=False), Record((), speed)
    _check(problem, posterior.bound, state.bound, "a lap")
    stalled = not leap.taken and not posterior.bound > state.bound
    if lowered and not state.proposals:  # only rounding is left to gain
        return _finished(problem, state._replace(before=None, stalled=stalled), [], speed, rising=False)
    step = min(max(seen.step * FASTER, FIRST_STEP), LONGEST_STEP) if problem.options.accelerate else seen.step
    reported = problem.reported(state.bound, state.total.K).bound
    lapped = state._replace(
        posterior=posterior, memo=seen.memo, bound=posterior.bound, before=state.posterior, step=step, stalled=stalled
    )
    moved, records = _moved(problem, lapped, seen.tracked, posterior.bound - reported)
    return _finished(problem, moved, records, speed, state.bound)


def _pass(
    problem: Problem,
    state: State,
    model: Model,
    leap: Leap,
    sizes: Array,
    starts: list[Array | None] | None = None,
) -> Pass:
    """Visit every batch once, in random order, with a global step after each, if this is not the first lap.

    starts : for each batch, counts of documents to start from, in the first lap
    """
    began, source, batches = time.perf_counter(), problem.source, problem.batches
    draw = state.schedule.draw(model, source, sizes, state.rng)
    memo, parameters, step, last = state.memo.copy(), leap.parameters, leap.step, state.bound
    drawn: list[Drawn] = []
    tracked: list[list[Summary]] = [[] for _ in batches]
    local = source.n_rows * len(sizes) * 4 <= LOCAL
    for visited, b in enumerate(state.rng.permutation(len(batches)), 1):
        known = memo.batches[b]
        seen = visit(
            model,
            parameters,
            source,
            batches[b],
            problem.executor,
            state.proposals,
            draw,
            None if known is None else known.base,
            starts[b] if known is None and starts is not None else known and known.warm_start,
            local,
        )
        memo.replace(int(b), seen.summary)
        tracked[b] = seen.tracked
        drawn += seen.drawn
        if starts is not None or visited == len(batches):
            continue
        posterior = model.posterior(memo.total)
        if leap.taken:
            parameters, _, step = _leap(posterior, state.before, step, source.dtype)
            continue
        parameters = posterior.parameters(source.dtype)
        if problem.options.check:
            last = _check(problem, posterior.bound, last, f"a visit to batch {b}")
    memo.refresh()
    return Pass(memo, tracked, drawn, step, source.n_rows / max(time.perf_counter() - began, 1e-9))


def _leap(posterior: Posterior, before: Posterior | None, step: float, dtype: np.dtype[np.floating]) -> Leap:
    """Parameters beyond those of the total by a multiple of its change since one lap ago, where that is possible."""
    total = posterior.summary
    while before is not None and step > 0.01:
        change = total.N - before.summary.N
        largest = 0.5 * total.N / np.maximum(np.abs(change), 1e-9 * total.N + TINY)  # counts stay positive
        steps = np.minimum(step, largest)
        S = total.S + steps[:, None] * (total.S - before.summary.S)
        try:
            further = replace(total, N=total.N + steps * change, S=S)
            parameters = Posterior.known(posterior.model, further, None, posterior.solution).parameters(dtype)
            return Leap(_with_prior_ahead(parameters, before, step), True, step)
        except FloatingPointError:
            step *= 0.5
    return Leap(posterior.parameters(dtype), False, step)


def _with_prior_ahead(parameters: Parameters, before: Posterior, step: float) -> Parameters:
    """Of documents also the prior, in which coordinate ascent is slow where topics are in few documents."""
    if parameters.prior is None or before.step.prior is None:
        return parameters
    change = np.log(np.maximum(parameters.prior, TINY) / np.maximum(before.step.prior, TINY))
    return parameters._replace(prior=parameters.prior * np.exp(np.clip(step * change, -FAR, FAR)))


def _moved(
    problem: Problem, state: State, tracked: list[list[Summary]], slack: float
) -> tuple[State, list[MoveRecord]]:
    """The state after the proposals that raise the bound.

    slack : what the bound has risen by since it was last reported
    """
    if not state.proposals:
        return state, []
    if problem.floor is not None and slack < -NEGLIGIBLE:  # well below a better model nothing is lost
        slack = np.inf
    memo, before = state.memo, state.before
    verdict, records = state.schedule.resolve(state.posterior, memo, state.proposals, tracked, slack)
    if verdict.edit is None:
        return state, records
    if before is not None:
        before = _exchanged(before, verdict)
    bound = state.bound + sum(min(gain, 0.0) for gain in verdict.gains.values())  # what moves may give back
    return state._replace(posterior=state.model.posterior(memo.total), before=before, bound=bound), records


def _exchanged(before: Posterior, verdict: Verdict) -> Posterior | None:
    """The posterior one lap ago, as far as clusters are still the same: those that moves added are as they are now."""
    if verdict.added is None:
        return None
    return before.model.posterior(before.summary.exchange(verdict.removed, verdict.added))


def _finished(
    problem: Problem,
    state: State,
    records: list[MoveRecord],
    speed: float,
    earlier: float = -np.inf,
    rising: bool = True,
) -> tuple[State, Record]:
    """The end of a lap: drop clusters without rows, order the others, learn, and plan the next lap."""
    options, source = problem.options, problem.source
    state = _ordered(_without_empty(state))
    born = any(record.kind == "birth" and record.gains for record in records)
    barren = 0 if born else state.barren + 1
    learns = state.learns or (state.total.K > 1 and barren >= BARREN)
    posterior = state.posterior
    if options.learn and learns:
        model, solution = tuned(posterior.model, state.total, options.learn, source.dtype, posterior.solution)
        posterior = Posterior.known(model, state.total, None, solution)
    bound = _check(problem, posterior.bound, state.bound, "a move, or the end of a lap")
    proposals = state.schedule.plan(
        posterior,
        source,
        state.drawn,
        problem.executor.map,
        state.rng,
        len(problem.batches),
        settling=state.settle > 0,
        rising=rising and bound - earlier > RISING * abs(bound),
    )
    state = state._replace(
        posterior=posterior, bound=bound, settle=state.settle - 1, proposals=proposals, barren=barren, learns=learns
    )
    return state, Record(tuple(records), speed)


def _without_empty(state: State) -> State:
    """Clusters without rows cost time and change nothing (nested truncation, Thesis 3.4.3)."""
    used = np.flatnonzero(state.total.N > 0.0)
    if state.model.kind.recipe.ordered and len(used) < state.total.K:
        return _taken(state, used)
    return state


def _ordered(state: State) -> State:
    """Keep clusters in the order with the highest bound; for documents that is no more than likely."""
    posterior, allocation = state.posterior, state.model.allocation
    order = allocation.order(posterior.summary)
    if (order == np.arange(len(order))).all():
        return state
    if state.model.kind.recipe.ordered:
        return _taken(state, order)
    ordered = posterior.summary.without_statistics().take(order)
    solution = allocation.solve(ordered)
    if allocation.bound_at(ordered, solution) < allocation.bound_at(posterior.summary, posterior.solution):
        return state
    state = _taken(state, order)
    return state._replace(posterior=Posterior.known(state.model, state.memo.total, None, solution))


def _taken(state: State, clusters: NDArray[np.integer]) -> State:
    """Reorder or drop clusters."""
    memo = state.memo.copy()
    memo.apply(Take(tuple(map(int, clusters))))
    state.schedule.take(clusters)
    before = state.before and state.before.model.posterior(state.before.summary.take(clusters))
    return state._replace(posterior=state.model.posterior(memo.total), memo=memo, before=before)


def _changed_little(problem: Problem, state: State, after: State) -> bool:
    """Whether a lap changed next to nothing."""
    options, counts, total = problem.options, state.total.N, after.total
    if len(counts) != total.K:
        return False
    if after.before is None:
        return after.stalled
    moved = np.abs(np.sort(total.N) - np.sort(counts)).max()
    if moved > options.moved * max(float(total.N.sum()), 1.0):
        return False
    least = max(options.tol * total.K, ROUNDING[problem.source.dtype.name] * abs(after.bound))
    if options.share > 0.0 and after.learns:
        least = max(least, options.share * float(after.posterior.cost.sum()))
    return after.bound - state.bound <= least


def _hopeless(problem: Problem, gain: float, bound: float) -> bool:
    """Whether the model in hand is too far above for an excursion that gained so little, zero where a lap was undone."""
    floor = problem.floor
    return floor is not None and gain > 0.0 and floor.bound - bound > problem.patience * gain


def _of_batch(counts: Array | None, batch: list[Chunk]) -> Array | None:
    if counts is None:
        return None
    return np.concatenate([counts[:, chunk.start : chunk.stop] for chunk in batch], axis=1)


def _check(problem: Problem, after: float, before: float, step: str) -> float:
    if not np.isfinite(after):
        raise FloatingPointError(
            f"the bound is {after} after {step}: numbers in the data or in sample_weight are too large or too small "
            "together. Multiply the columns, or the weights, by constants that bring them nearer to one."
        )
    slack = 1e-6 if problem.source.dtype == np.float32 else 1e-9
    if problem.options.check and not after >= before - slack * max(1.0, abs(before)):
        raise BoundDecreased(f"the bound fell from {before!r} to {after!r} after {step}")
    return after
