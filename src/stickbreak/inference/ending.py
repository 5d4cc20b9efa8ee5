"""When an ascent is over: once laps change next to nothing and moves have had their turn, or where there is no hope."""

import numpy as np

from .batch_births import births_left
from .state import Problem, State


def decide_end(problem: Problem, state: State, after: State) -> State:
    """The state after a lap, with whether that was the last."""
    quiet = state.quiet + 1 if _changed_little(problem, state, after) else 0
    waits = len(after.proposals) > 0 or births_left(problem, after)
    settled = quiet >= (problem.most_quiet if waits else 1)
    judged_moves = len(state.proposals) > 0 or len(after.schedule.kinds) == 0
    hopeless = judged_moves and _hopeless(problem, after.bound - state.bound, after.bound)
    done = hopeless or (settled and after.settle < 0)
    if settled and not done:  # nothing is left to wait for; moves are yet to be tried
        return after._replace(quiet=0, settle=0, done=False)
    if settled and after.looked_near:  # the last lap looks at all clusters
        return after._replace(quiet=quiet, near=False, done=False)
    return after._replace(quiet=quiet, done=done)


def _changed_little(problem: Problem, state: State, after: State) -> bool:
    """Whether a lap changed next to nothing."""
    options = problem.options
    counts = state.total.N
    total = after.total
    if len(counts) != total.K:
        return False
    least = max(options.tol * total.K, problem.rounding(after.bound))
    if options.share > 0.0 and after.learns:
        least = max(least, options.share * float(after.posterior.cost.sum()))
    little = after.bound - state.bound <= least
    if after.before is None:
        return after.stalled and little  # what is learnt at last may gain more than the lap
    moved = np.abs(np.sort(total.N) - np.sort(counts)).max()
    return little and bool(moved <= options.moved * max(float(total.N.sum()), 1.0))


def _hopeless(problem: Problem, gain: float, bound: float) -> bool:
    """Whether the model in hand, or the goal, is too far above for an ascent that gained so little: zero if it was undone."""
    least = problem.goal if problem.floor is None else max(problem.goal, problem.floor.bound)
    return gain > 0.0 and least - bound > problem.patience * gain
