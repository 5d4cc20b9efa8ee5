"""The end of a lap: clusters without rows go, the others are ordered, hyperparameters learnt, and moves planned."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model import Posterior, Rename, Take
from ..model.learning import tuned
from ..moves import MoveRecord
from .bounds import check_bound
from .executor import for_fits
from .precision import summed_exactly
from .state import Problem, State

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/mnist_search.py and benchmarks/right_states.py.

    Attributes
    ----------
    rising : share of the bound: while a lap gains more, states are not merged or deleted
    barren : laps without births, after which learning may begin where it is to be late
    little : share of the gain of a lap, or in excursions of the tolerance: where learning gains less, the next laps need not
        learn (`Recipe.rests`), and orders of clusters that gain less than this of a lap wait
    few_rows : of more rows, or phrases of them, every lap learns: there it takes little of the time
    """

    rising: float = 2e-4
    barren: int = 2
    little: float = 0.05
    few_rows: int = 50_000


TUNING = Tuning()


class Record(NamedTuple):
    """What became of the proposals of a lap, by kind, and the speed of its pass."""

    moves: tuple[MoveRecord, ...]
    rows_per_second: float


def end_lap(
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
    if any(record.gains for record in records):
        state = state._replace(rests=0)  # other clusters, other hyperparameters
    state = _learnt(problem, state._replace(barren=barren, learns=learns), earlier)
    posterior = state.posterior
    bound = check_bound(problem, posterior.bound, state.bound, "a move, or the end of a lap")
    fast = max(TUNING.rising * abs(bound), options.tol * state.total.K)  # no ascent ends before moves are tried
    proposals = state.schedule.plan(
        posterior,
        source,
        state.drawn,
        for_fits(problem.executor, source),
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
    rests = state.model.kind.recipe.rests if problem.source.n_steps <= TUNING.few_rows else 0
    explores = problem.floor is not None
    begins = rests > 0 and explores and np.isinf(earlier)  # with what the model in hand has learnt
    undone = risen == 0.0 and state.before is None
    tol = options.tol * state.total.K
    spare = tol if explores else 0.0
    settled = state.learnt < TUNING.little * spare
    if not learn or begins or (state.rests > 0 and (undone or settled or risen > tol)):
        return state._replace(rests=max(state.rests - 1, 0))
    dtype = problem.source.dtype
    better = tuned(posterior, learn, dtype)
    if posterior.precision(dtype) == dtype and better.precision(dtype) != dtype:
        state = summed_exactly(problem, state)
        posterior = state.posterior
        better = tuned(posterior, learn, dtype)
    gain = better.bound - posterior.bound
    little = gain < TUNING.little * max(risen, spare)
    return state._replace(posterior=better, rests=rests if little else 0, learnt=gain)


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
