"""One lap, from a state to the next: full-dataset or memoized variational inference with moves (Thesis Alg. 3.1 and 3.3)."""

import time
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import Chunk
from ..model import Drawn, Memo, Model, Posterior, Rename, Summary, Take
from ..model.learning import tuned
from ..moves import MoveRecord, Schedule
from ..moves.better import NEGLIGIBLE
from ..moves.verify import Verdict
from .batch_births import BatchBirths, births_of
from .ending import judged
from .leap import Leap, leap_from
from .sight import Sight
from .state import Problem, State
from .visit import visit

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/mnist_search.py and benchmarks/right_states.py.

    Attributes
    ----------
    first_step, longest_step : multiples of the last change by which parameters are extrapolated: at first, and at most
    faster, slower : factors of the multiple after a lap that was kept, and after one that was undone
    rising : share of the bound: while a lap gains more, states are not merged or deleted
    barren : laps without births, after which learning may begin where it is to be late
    little : share of the gain of a lap: where learning gains less, the next laps need not learn (`Recipe.rests`), and orders of
        clusters that gain less wait
    few_rows : of more rows, or phrases of them, every lap learns: there it takes little of the time
    """

    first_step: float = 0.5
    longest_step: float = 20.0
    faster: float = 1.5
    slower: float = 0.4
    rising: float = 2e-4
    barren: int = 2
    little: float = 0.05
    few_rows: int = 50_000


TUNING = Tuning()
LOCAL = 1 << 30  # bytes for what is known of single documents; where they do not suffice, every lap starts afresh
NOTHING = np.empty(0, np.int32)


class BoundDecreased(AssertionError):
    """The ELBO went down where it cannot: a defect of a likelihood, an allocation or a move."""


class Record(NamedTuple):
    """What became of the proposals of a lap, by kind, and the speed of its pass."""

    moves: tuple[MoveRecord, ...]
    rows_per_second: float


class Pass(NamedTuple):
    """What a pass over all batches brings back: their summaries, those of the proposals, rows drawn, and its speed.

    near : whether it looked only at clusters near those of the last visit
    owners : for each batch, the identities of the clusters of its rows, where these are kept
    outside : nats, to first order, that the next pass is to lose if it looks only at clusters near these (`State.outside`)
    births : those that single batches decided on, if they do
    """

    memo: Memo
    tracked: list[list[Summary]]
    drawn: list[Drawn]
    step: float
    rows_per_second: float
    near: bool
    owners: tuple[NDArray[np.integer], ...]
    outside: tuple[float, ...]
    births: BatchBirths | None = None


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
    return _finished(problem, begun, [], seen.rows_per_second)


def lap(problem: Problem, state: State) -> tuple[State, Record]:
    """Visit every batch once; judge the proposals; learn; plan the next lap; and say whether it was the last."""
    after, record = _lap(problem, state._replace(rng=deepcopy(state.rng), schedule=state.schedule.copy()))
    return judged(problem, state, after), record


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
    _check(problem, posterior.bound, state.bound, "a lap")
    stalled = not leap.taken and not posterior.bound > state.bound
    births = [] if seen.births is None else [seen.births.record]
    if lowered and not state.proposals:  # only rounding is left to gain
        return _finished(problem, state._replace(before=None, stalled=stalled), births, speed)
    before = state.posterior
    if seen.births is not None and seen.births.born > 0:
        state.schedule.add(seen.births.born)
        before = state.model.posterior(state.total.insert_empty(seen.births.born))
    step = (
        min(max(seen.step * TUNING.faster, TUNING.first_step), TUNING.longest_step)
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
    return _finished(problem, moved, births + records, speed, state.bound)


def _undone(problem: Problem, state: State, seen: Pass) -> tuple[State, Record]:
    """The state before an extrapolated lap that lowered the bound.

    Proposals for all clusters have parameters of their own, so that the lap has shown what they are worth even so.
    """
    if not state.proposals or not all(proposal.whole for proposal in state.proposals):
        return state, Record((), seen.rows_per_second)
    reported = problem.reported(state.bound, state.total.K).bound
    moved, records = _moved(problem, state, seen.tracked, state.bound - reported)
    return _finished(problem, moved, records, seen.rows_per_second, state.bound)


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
    began = time.perf_counter()
    source = problem.source
    batches = problem.batches
    draw = state.schedule.draw(model, source, sizes, state.rng)
    memo = state.memo.copy()
    parameters = leap.parameters
    step = leap.step
    last = state.bound
    drawn: list[Drawn] = []
    tracked: list[list[Summary]] = [[] for _ in batches]
    local = source.n_rows * len(sizes) * 4 <= LOCAL
    births = births_of(problem, state) if starts is None and not leap.taken else None
    sight, model = Sight.of(problem, state, model)
    owners: list[NDArray[np.integer]] = [NOTHING for _ in batches]
    outside: list[Array] = [np.zeros(0) for _ in batches]
    for visited, b in enumerate(state.rng.permutation(len(batches)), 1):
        known = memo.batches[b]
        target = None if births is None else births.target(model.posterior(memo.total), known)
        if births is not None:
            draw = None if known is None or target is None else births.draw(model, target, known.N)
        warm = starts[b] if known is None and starts is not None else known and known.warm_start
        seen = visit(
            model,
            parameters,
            source,
            batches[b],
            problem.executor,
            state.proposals,
            draw,
            None if known is None else known.base,
            sight.owners[b] if warm is None else warm,
            local,
            sight.kind,
        )
        memo.replace(int(b), seen.summary)
        if sight.kind is not None:
            owners[b] = sight.identities_of(seen)
            outside[b] = np.sum([part.outside for part in seen.owners], axis=0)
        tracked[b] = seen.tracked
        if births is not None and target is not None:
            memo = births.judged(model, parameters, memo, int(b), target, seen.drawn)
        else:
            drawn += seen.drawn
        if starts is not None or visited == len(batches):
            continue
        posterior = model.posterior(memo.total)
        if leap.taken:
            parameters, _, step = leap_from(posterior, state.before, step, source.dtype)
            continue
        parameters = posterior.parameters(source.dtype)
        if problem.options.check and not sight.near:
            last = _check(problem, posterior.bound, last, f"a visit to batch {b}")
    memo.refresh()
    speed = source.n_rows / max(time.perf_counter() - began, 1e-9)
    kept = () if sight.kind is None else tuple(owners)
    lost = () if sight.kind is None else tuple(np.sum(outside, axis=0).tolist())
    return Pass(memo, tracked, drawn, step, speed, sight.near, kept, lost, births)


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


def _finished(
    problem: Problem,
    state: State,
    records: list[MoveRecord],
    speed: float,
    earlier: float = np.inf,
) -> tuple[State, Record]:
    """The end of a lap: drop clusters without rows, order the others, learn, and plan the next lap."""
    options = problem.options
    source = problem.source
    state = _without_empty(_renamed(state))
    state = _ordered(problem, state, state.posterior.bound - earlier)
    born = any(record.kind == "birth" and record.gains for record in records)
    barren = 0 if born else state.barren + 1
    learns = state.learns or (state.total.K > 1 and barren >= TUNING.barren)
    state = _learnt(problem, state._replace(barren=barren, learns=learns), earlier)
    posterior = state.posterior
    bound = _check(problem, posterior.bound, state.bound, "a move, or the end of a lap")
    fast = max(TUNING.rising * abs(bound), options.tol * state.total.K)  # no ascent ends before moves are tried
    proposals = state.schedule.plan(
        posterior,
        source,
        state.drawn,
        problem.executor.map,
        state.rng,
        len(problem.batches),
        settling=state.settle > 0,
        rising=bound - earlier > fast,
    )
    state = state._replace(bound=bound, settle=state.settle - 1, proposals=proposals)
    return state, Record(tuple(records), speed)


def _learnt(problem: Problem, state: State, earlier: float) -> State:
    """The state with its hyperparameters learnt, where that is likely to gain much beside what laps gain.

    earlier : the bound before the lap
    """
    options = problem.options
    learn = options.learn + (options.learn_late if state.learns else ())
    posterior = state.posterior
    risen = posterior.bound - earlier
    undone = risen == 0.0 and state.before is None
    if not learn or (state.rests > 0 and (undone or risen > options.tol * state.total.K)):
        return state._replace(rests=max(state.rests - 1, 0))
    model, solution = tuned(posterior.model, state.total, learn, problem.source.dtype, posterior.solution)
    better = Posterior.known(model, state.total, None, solution)
    few = problem.source.n_steps <= TUNING.few_rows
    little = few and better.bound - posterior.bound < TUNING.little * risen
    return state._replace(posterior=better, rests=state.model.kind.recipe.rests if little else 0)


def _renamed(state: State) -> State:
    """Names in advance go to the clusters that they suit best, which only raises the bound."""
    likelihood = state.model.likelihood
    S = likelihood.renamed(state.total.N, state.total.S)
    if S is state.total.S:
        return state
    edit = Rename(S[:, likelihood.plain.n_statistics :])
    memo = state.memo.copy()
    memo.apply(edit)
    before = state.before and state.before.model.posterior(edit.applied(state.before.summary, ()))
    return state._replace(posterior=state.model.posterior(memo.total), memo=memo, before=before)


def _without_empty(state: State) -> State:
    """Clusters without rows cost time and change nothing (nested truncation, Thesis 3.4.3); those with a name stay."""
    used = np.flatnonzero((state.total.N > 0.0) | state.model.named(state.total))
    if state.model.kind.recipe.ordered and len(used) < state.total.K:
        return _taken(state, used)
    return state


def _ordered(problem: Problem, state: State, risen: float) -> State:
    """Keep clusters in the order with the highest bound; for documents and sequences that is no more than likely.

    risen : what the lap has raised the bound by; where it still rises, orders that would gain little beside it wait
    """
    posterior = state.posterior
    allocation = state.model.allocation
    order = allocation.order(posterior.summary)
    if (order == np.arange(len(order))).all():
        return state
    if state.model.kind.recipe.ordered:
        return _taken(state, order)
    ordered = posterior.summary.without_statistics().take(order)
    bound = allocation.bound_at(posterior.summary, posterior.solution)
    if state.model.kind.recipe.rests > 0 and risen > problem.options.tol * state.total.K:
        solution = allocation.at(ordered, _shares(posterior, order))
        if allocation.bound_at(ordered, solution) < bound + TUNING.little * risen:
            return state
    solution = allocation.solve(ordered)
    if allocation.bound_at(ordered, solution) < bound:
        return state
    state = _taken(state, order)
    return state._replace(posterior=Posterior.known(state.model, state.memo.total, None, solution))


def _taken(state: State, clusters: NDArray[np.integer]) -> State:
    """Reorder or drop clusters."""
    memo = state.memo.copy()
    memo.apply(Take(tuple(map(int, clusters))))
    state.schedule.take(clusters)
    before = state.before and _taken_from(state.before, clusters)
    return state._replace(posterior=state.model.posterior(memo.total), memo=memo, before=before)


def _taken_from(posterior: Posterior, clusters: NDArray[np.integer]) -> Posterior:
    """The posterior of some clusters; where the best shares of all took a search, these stay as they were."""
    model = posterior.model
    summary = posterior.summary.take(clusters)
    if model.kind.recipe.rests == 0 or len(clusters) < posterior.summary.K:
        return model.posterior(summary)
    return Posterior.known(model, summary, None, model.allocation.at(summary, _shares(posterior, clusters)))


def _shares(posterior: Posterior, order: NDArray[np.integer]) -> Array:
    """The shares (K + 1,) of all clusters in an order."""
    return np.append(posterior.solution.shares[order], posterior.solution.shares[-1])


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
