"""The births of one lap that single batches decide on (Thesis 4.2.3)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..model import Drawn, Handover, Memo, Model, Parameters, Posterior, Summary
from ..moves import BatchBirth, MoveRecord, Proposal, Schedule
from ..moves.better import accepts
from ..moves.birth import Start, Target, fit_children
from ..moves.sample import Draw, most_drawn
from .state import Problem, State
from .visit import visit

Array = NDArray[np.floating]


@dataclass
class BatchBirths:
    """The births of a lap: what was tried, and how many clusters were born.

    Attributes
    ----------
    barred : clusters that other proposals of the lap are about, or that have had a birth in it
    target : the cluster to target at the batch that is visited; None where there is none
    """

    birth: BatchBirth
    problem: Problem
    schedule: Schedule
    rng: np.random.Generator
    barred: set[int]
    target: int | None = None
    tried: int = 0
    born: int = 0
    gains: list[float] = field(default_factory=list)

    def draw(self, model: Model, memo: Memo, batch: int) -> Draw | None:
        """How rows of a target are drawn during the visit to a batch; None where there is no target."""
        known = memo.batches[batch]
        self.target = None if known is None else self._target(model.posterior(memo.total), known)
        if known is None or self.target is None:
            return None
        limits = np.zeros(known.K)
        most = max(2, min(model.kind.sample_size, most_drawn(model, self.problem.source)))
        limits[self.target] = most / known.N[self.target]
        return Draw(limits, int(self.rng.integers(2**63)), np.arange(known.K))

    def _target(self, posterior: Posterior, known: Summary) -> int | None:
        """The cluster to target at a batch, given its summary as last visited; None where there is none.

        Clusters born in this lap, which come last, have to wait.
        """
        if _room(self.birth, posterior.model, posterior.summary.K) < 2:
            return None
        old = posterior.summary.K - self.born
        large = np.flatnonzero(known.N[:old] >= self.birth.least_rows)
        return self.schedule.batch_target(posterior, [int(k) for k in large if int(k) not in self.barred])

    def judged(self, model: Model, parameters: Parameters, memo: Memo, batch: int, drawn: Sequence[Drawn]) -> Memo:
        """The memo after a birth at a batch that was visited with these parameters, or as it is if the ELBO does not rise."""
        target = self.target
        if target is None:
            return memo
        self.tried += 1
        total = memo.total
        children = self._children(model, memo, batch, target, drawn)
        if children is not None:
            edited = self.handed_over(model, parameters, memo, batch, target, children)
            before = model.bound(total)
            gain = model.bound(edited.total) - before
            more = children.K - int(edited.total.N[target] <= 0.0)
            if accepts(gain, more, before):
                self.barred.add(target)
                self.born += children.K
                self.gains.append(gain)
                return edited
        self.schedule.birth_failed(target, total.N)
        return memo

    def handed_over(
        self, model: Model, parameters: Parameters, memo: Memo, batch: int, target: int, children: Summary
    ) -> Memo:
        """The memo if the new clusters get the mass of the target in the batch, which is visited again for their summary."""
        problem = self.problem
        source = problem.source
        proposal = Proposal("birth", (target,), model.shared(children, source.dtype), 0.0)
        known = memo.batches[batch]
        base = None if known is None else known.base
        seen = visit(model, parameters, source, problem.batches[batch], problem.executor, [proposal], base=base)
        tracked: list[list[Summary]] = [[] for _ in memo.batches]
        tracked[batch] = seen.tracked
        edited = memo.copy()
        edited.apply(Handover(target, children.K), tracked)
        return edited

    @property
    def record(self) -> MoveRecord:
        """What became of them."""
        return MoveRecord("birth", self.tried, tuple(self.gains))

    def _children(self, model: Model, memo: Memo, batch: int, target: int, drawn: Sequence[Drawn]) -> Summary | None:
        """New clusters fitted to the rows drawn; None where they would not pay even for these rows alone."""
        summary = memo.batches[batch]
        if summary is None or sum(len(part.rows) for part in drawn) < 2:
            return None
        X, weights = model.kind.sample(self.problem.source, drawn, target, float(summary.N[target]))
        starts = (Start(min(_room(self.birth, model, summary.K), len(weights))),)
        whole = memo.total.take([target])
        seed = int(self.rng.integers(2**63))
        children, gain = fit_children(model, Target(target, whole, X, weights, starts, seed))
        return children if gain > 0.0 else None


def births_of(problem: Problem, state: State) -> BatchBirths | None:
    """The births of the next lap, if single batches decide on births."""
    if problem.birth is None:
        return None
    barred = {k for proposal in state.proposals for k in proposal.removed}
    return BatchBirths(problem.birth, problem, state.schedule, state.rng, barred)


def births_left(problem: Problem, state: State) -> bool:
    """Whether a batch has a cluster that may be targeted yet."""
    birth = problem.birth
    if birth is None or _room(birth, state.model, state.total.K) < 2:
        return False
    counts = np.max([summary.N for summary in state.memo.batches if summary is not None], axis=0)
    large = [int(k) for k in np.flatnonzero(counts >= birth.least_rows)]
    return state.schedule.batch_target(state.posterior, large) is not None


def _room(birth: BatchBirth, model: Model, K: int) -> int:
    """How many clusters a birth may add to K."""
    return min(birth.n_new, model.max_clusters - K)
