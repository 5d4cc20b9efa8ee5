"""Sums of float32 rows in float64, for priors whose clusters are narrower than sums in float32 can tell."""

import numpy as np

from .state import Problem, State
from .visit import visit

DOUBLE = np.dtype(np.float64)


def summed_exactly(problem: Problem, state: State) -> State:
    """The state after a visit of all batches in float64, with the parameters in hand and no moves."""
    memo = state.memo.copy()
    parameters = state.posterior.parameters(DOUBLE)
    for b, batch in enumerate(problem.batches):
        known = memo.batches[b]
        assert known is not None  # of a lap that is over
        warm = known.warm_start
        seen = visit(
            state.model,
            parameters,
            problem.source,
            batch,
            problem.executor,
            base=known.base,
            starts=warm,
            local=warm is not None and warm.size > 0,
        )
        memo.replace(b, seen.summary)
    memo.refresh()
    posterior = state.model.posterior(memo.total)
    return state._replace(posterior=posterior, memo=memo, bound=min(state.bound, posterior.bound), before=None)
