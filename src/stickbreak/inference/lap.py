"""One lap, from a state to the next: full-dataset or memoized variational inference with moves (Thesis Alg. 3.1 and 3.3)."""

import time
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import Chunk
from ..model import Drawn, Memo, Model, Posterior, Summary
from ..moves import MoveRecord, Schedule
from ..moves.better import NEGLIGIBLE
from ..moves.verify import Verdict
from .batch_births import BatchBirths, births_of
from .bounds import check_bound
from .ending import decide_end
from .lap_end import Record, end_lap
from .leap import Leap, leap_from
from .sight import Looked, Sight
from .state import Problem, State
from .visit import visit

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/mnist_search.py and benchmarks/right_states.py.

    Attributes
    ----------
    first_step : multiple of the last change by which parameters are extrapolated at first
    faster, slower : factors of the multiple after a lap that was kept, and after one that was undone
    """

    first_step: float = 0.5
    faster: float = 1.5
    slower: float = 0.4


TUNING = Tuning()
LOCAL = 1 << 30  # bytes for what is known of single documents; where they do not suffice, every lap starts afresh


class Pass(NamedTuple):
    """What a pass over all batches brings back: their summaries, those of the proposals, rows drawn, and its speed.

    near : whether it looked only at clusters near those of the last visit
    looked : for each batch, what it tells of the next pass if that is to look near, where this is asked for
    births : those that single batches decided on, if they do
    """

    memo: Memo
    tracked: list[list[Summary]]
    drawn: list[Drawn]
    step: float
    rows_per_second: float
    near: bool
    looked: list[Looked]
    births: BatchBirths | None

    @property
    def owners(self) -> tuple[NDArray[np.integer], ...]:
        """For each batch, the identities of the clusters of its rows, where these are kept."""
        return tuple(batch.owners for batch in self.looked)

    @property
    def outside(self) -> tuple[float, ...]:
        """Nats, to first order, that the next pass is to lose if it looks only at near clusters (`State.outside`)."""
        return tuple(np.sum([batch.outside for batch in self.looked], axis=0).tolist()) if self.looked else ()


class Steps:
    """The parameters of a lap, which take a global step with every batch.

    before : the posterior one lap ago, from which parameters are extrapolated if ``leap`` is
    bound : that of the last lap
    checks : whether no step may lower the bound
    """

    def __init__(
        self, problem: Problem, model: Model, before: Posterior | None, leap: Leap, bound: float, checks: bool
    ) -> None:
        self.problem = problem
        self.model = model
        self.before = before
        self.leaps = leap.taken
        self.parameters = leap.parameters
        self.step = leap.step
        self.bound = bound
        self.checks = checks

    def take(self, memo: Memo, batch: int) -> None:
        """The step after the visit to a batch, to the optimum of the total as it then is, or beyond it."""
        posterior = self.model.posterior(memo.total)
        dtype = self.problem.source.dtype
        if self.leaps:
            self.parameters, _, self.step = leap_from(posterior, self.before, self.step, dtype)
            return
        self.parameters = posterior.parameters(dtype)
        if self.checks:
            self.bound = check_bound(self.problem, posterior.bound, self.bound, f"a visit to batch {batch}")


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
    schedule = schedule.copy()
    rng = deepcopy(rng)
    model = replace(model, allocation=model.allocation.in_laps)
    start = model.begun(start)
    if counts is not None and len(counts) < start.K:
        counts = np.pad(counts, [(0, start.K - len(counts)), (0, 0)])
    schedule.start(start.K)
    memo = Memo(len(problem.batches))
    begun = State(model.posterior(start), memo, -np.inf, schedule, rng, settle, learns=not problem.options.learn_late)
    leap = Leap(begun.posterior.parameters(problem.source.dtype), False, 0.0)
    sizes = np.full(start.K, problem.source.total_weight / start.K)
    starts = [_of_batch(counts, batch) for batch in problem.batches]
    seen = _pass(problem, begun, model, leap, sizes, starts)
    posterior = model.posterior(seen.memo.total)
    begun = begun._replace(posterior=posterior, memo=seen.memo, drawn=seen.drawn, near=True)
    begun = begun._replace(owners=seen.owners, outside=seen.outside)
    return end_lap(problem, begun, [], seen.rows_per_second)


def lap(problem: Problem, state: State) -> tuple[State, Record]:
    """Visit every batch once; judge the proposals; learn; plan the next lap; and say whether it was the last."""
    after, record = _lap(problem, state._replace(rng=deepcopy(state.rng), schedule=state.schedule.copy()))
    return decide_end(problem, state, after), record


def _lap(problem: Problem, state: State) -> tuple[State, Record]:
    """A lap that may change the random numbers and the schedule of its state."""
    leap = leap_from(state.posterior, state.before, state.step, problem.source.dtype)
    model = state.model
    if leap.taken and state.before is not None:
        model = replace(model, likelihood=model.likelihood.ahead(state.before.model.likelihood, leap.step))
    seen = _pass(problem, state, model, leap, state.total.N)
    posterior = model.posterior(seen.memo.total)
    speed = seen.rows_per_second
    state = state._replace(drawn=seen.drawn, step=seen.step, looked_near=seen.near)  # rows drawn show new clusters, too
    lowered = not posterior.bound >= state.bound
    if lowered and leap.taken:
        return _undone(problem, state._replace(before=None, step=seen.step * TUNING.slower, stalled=False), seen)
    if seen.near and posterior.bound < state.bound - problem.rounding(state.bound):
        return state._replace(before=None, near=False, stalled=False), Record((), speed)
    check_bound(problem, posterior.bound, state.bound, "a lap")
    stalled = not leap.taken and not posterior.bound > state.bound
    births = [] if seen.births is None else [seen.births.record]
    if lowered and not state.proposals:  # only rounding is left to gain
        return end_lap(problem, state._replace(before=None, stalled=stalled), births, speed)
    before = state.posterior
    if seen.births is not None and seen.births.born > 0:
        state.schedule.add(seen.births.born)
        before = state.model.posterior(state.total.insert_empty(seen.births.born))
    step = (
        min(max(seen.step * TUNING.faster, TUNING.first_step), problem.options.longest_step)
        if problem.options.accelerate
        else seen.step
    )
    reported = problem.reported(state.bound, state.total.K).bound
    lapped = state._replace(
        posterior=posterior,
        memo=seen.memo,
        bound=posterior.bound,
        before=before,
        step=step,
        stalled=stalled,
        owners=seen.owners,
        outside=seen.outside,
    )
    moved, records = _moved(problem, lapped, seen.tracked, posterior.bound - reported)
    return end_lap(problem, moved, births + records, speed, state.bound)


def _undone(problem: Problem, state: State, seen: Pass) -> tuple[State, Record]:
    """The state before an extrapolated lap that lowered the bound.

    Proposals for all clusters have parameters of their own, so that the lap has shown what they are worth even so.
    """
    if not state.proposals or not all(proposal.whole for proposal in state.proposals):
        return state, Record((), seen.rows_per_second)
    reported = problem.reported(state.bound, state.total.K).bound
    moved, records = _moved(problem, state, seen.tracked, state.bound - reported)
    return end_lap(problem, moved, records, seen.rows_per_second, state.bound)


def _pass(
    problem: Problem,
    state: State,
    model: Model,
    leap: Leap,
    sizes: Array,
    starts: list[Array | None] | None = None,
) -> Pass:
    """Visit every batch once, in random order, with a global step between batches, if this is not the first lap.

    starts : in the first lap, for each batch, counts of documents to start from, if they are known
    """
    began = time.perf_counter()
    source = problem.source
    batches = problem.batches
    first = starts is not None
    first_starts = starts or [None] * len(batches)
    draw = state.schedule.draw(model, source, sizes, state.rng)
    births = None if first or leap.taken else births_of(problem, state)
    sight, model = Sight.of(problem, state, model)
    looking = model if problem.kind is None else replace(model, kind=problem.kind)
    local = source.n_rows * len(sizes) * 4 <= LOCAL
    steps = Steps(problem, model, state.before, leap, state.bound, problem.options.check and not sight.near)
    memo = state.memo.copy()
    drawn: list[Drawn] = []
    tracked: dict[int, list[Summary]] = {}
    looked: dict[int, Looked] = {}
    for b in map(int, state.rng.permutation(len(batches))):
        known = memo.batches[b]
        if births is not None:
            draw = births.draw(model, memo, b)
        warm = first_starts[b] if known is None else known.warm_start
        seen = visit(
            looking,
            steps.parameters,
            source,
            batches[b],
            problem.executor,
            state.proposals,
            draw,
            base=None if known is None else known.base,
            starts=sight.owners[b] if warm is None else warm,
            local=local,
            near=sight.kind,
        )
        memo.replace(b, seen.summary)
        tracked[b] = seen.tracked
        if sight.kind is not None:
            looked[b] = sight.looked(seen)
        if births is None:
            drawn += seen.drawn
        else:
            memo = births.judged(model, steps.parameters, memo, b, seen.drawn)
        if not first and len(tracked) < len(batches):
            steps.take(memo, b)
    memo.refresh()
    return Pass(
        memo,
        [tracked[b] for b in range(len(batches))],
        drawn,
        steps.step,
        source.n_rows / max(time.perf_counter() - began, 1e-9),
        sight.near,
        [looked[b] for b in sorted(looked)],
        births,
    )


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
    verdict, records = state.schedule.resolve(state.posterior, state.proposals, tracked, slack)
    if verdict.edit is None:
        return state, records
    memo = state.memo.copy()
    memo.apply(verdict.edit, tracked)
    before = state.before
    if before is not None:
        before = _exchanged(before, verdict)
    bound = state.bound + sum(min(gain, 0.0) for gain in verdict.gains.values())  # what moves may give back
    posterior = state.model.posterior(memo.total)
    return state._replace(posterior=posterior, memo=memo, before=before, bound=bound, near=True), records


def _exchanged(before: Posterior, verdict: Verdict) -> Posterior | None:
    """The posterior one lap ago, as far as clusters are still the same: those that moves added are as they are now."""
    if verdict.added is None:
        return None
    return before.model.posterior(before.summary.exchange(verdict.removed, verdict.added))


def _of_batch(counts: Array | None, batch: list[Chunk]) -> Array | None:
    if counts is None:
        return None
    return np.concatenate([counts[:, chunk.start : chunk.stop] for chunk in batch], axis=1)
