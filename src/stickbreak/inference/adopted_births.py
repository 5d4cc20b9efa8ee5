"""The search with births that are adopted (2013, section 3.1 and supplement 2)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..model import Drawn, Memo, Model, Summary
from ..moves import AdoptedBirth, Schedule
from ..moves.sample import Draw
from .init import from_seeds
from .laps import Laps
from .search import Search
from .session import Session
from .state import Options, Problem
from .visit import visit

SMALLEST = 0.05  # share of the rows collected that a new cluster needs (supplement 2.2)


@dataclass
class AdoptedSearch(Search):
    """Ascents with merges and deletes, each after a birth that all rows may adopt (see `AdoptedBirth`).

    Hyperparameters are learnt once there are several clusters: a prior learnt from one bars every birth.
    """

    birth: AdoptedBirth = AdoptedBirth()
    draws: bool = False

    def run(self, start: Summary) -> None:
        """Lap from the parameters that ``start`` implies, and after births; the outcome is ``best``."""
        self.session.journal.keeps_batches = True  # births begin with the summaries of those of the best model
        late = replace(self.options, learn=(), learn_late=(*self.options.learn, *self.options.learn_late))
        self.best = self._laps(self.model, self.moves, late)
        self.best.run(start)
        tried: set[int] = set()
        while self._laps_left > 0 and (target := self._target(tried)) is not None:
            tried.add(target)
            if self._after_birth(self._in_hand, target, late) > 0.0:
                tried.clear()  # clusters have new numbers
        if late.learn_late:
            self._in_hand.polish(late.at_last)

    def _target(self, tried: set[int]) -> int | None:
        """A cluster to collect rows of, drawn in proportion to its rows; None where all were tried, or there is no room."""
        best = self._in_hand
        if best.model.max_clusters - best.total.K < 1:
            return None
        N = best.total.N.copy()
        N[list(tried)] = 0.0
        N[N < 2.0] = 0.0
        return int(self.rng.choice(len(N), p=N / N.sum())) if N.sum() > 0.0 else None

    def _after_birth(self, best: Laps, target: int, options: Options) -> float:
        """What is gained by an ascent after a birth, which is kept if it gains; otherwise zero."""
        born = self._created(best.model, self._collected(best, target))
        if born is None:
            return 0.0
        start = adopted(best.model, best.state.memo, born, best.problem, self.rng)
        trial = self._laps(best.model, self.moves, options, best, origin="adopted birth")
        trial.run(start)
        return self._keep(best, trial)

    def _collected(self, best: Laps, target: int) -> NDArray[np.integer]:
        """The numbers of about ``n_rows`` rows of the target, in order."""
        model = best.model
        limits = np.zeros(best.total.K)
        limits[target] = self.birth.n_rows / best.total.N[target]
        draw = Draw(limits, int(self.rng.integers(2**63)), np.arange(best.total.K))
        parameters = best.posterior.parameters(self.source.dtype)
        chunks = [chunk for batch in best.problem.batches for chunk in batch]
        drawn: Sequence[Drawn] = visit(
            model, parameters, self.source, chunks, self.executor, draw=draw, base=best.total.base, local=False
        ).drawn
        return np.sort(np.concatenate([part.rows for part in drawn]))

    def _created(self, model: Model, rows: NDArray[np.integer]) -> Summary | None:
        """The summary S' of new clusters fitted to these rows; None where they are fewer than two."""
        n_new = min(self.birth.n_new, len(rows))
        if n_new < 2:
            return None
        source = self.source.taken(rows)
        rng = self.rng.spawn(1)[0]
        options = replace(
            self.options, n_batches=1, max_laps=self.birth.n_laps, accelerate=False, learn=(), learn_late=()
        )
        laps = Laps(model, source, Schedule((), model.kind.recipe), Session(self.executor), rng, options)
        laps.run(from_seeds(model, source, n_new, False, rng))
        large = np.flatnonzero(SMALLEST * source.total_weight <= laps.total.N)
        largest = large[np.argsort(-laps.total.N[large], kind="stable")]
        room = model.max_clusters - self._in_hand.total.K
        return laps.total.take(largest[:room]) if len(large) > 1 else None


def adopted(model: Model, memo: Memo, born: Summary, problem: Problem, rng: np.random.Generator) -> Summary:
    """The summary of all rows after a lap in which new clusters, which come last, compete with those of a memo.

    memo : of all batches; it stays as it is
    born : S', the summary of the new clusters, which the total has beside that of the rows during the lap
    """
    K = memo.total.K
    source = problem.source
    expanded = Memo(len(memo.batches))
    for batch, summary in enumerate(memo.batches):
        assert summary is not None
        expanded.replace(batch, summary.insert_empty(born.K))
    extra = (memo.total * 0.0).exchange((), born)
    for batch in rng.permutation(len(memo.batches)):
        parameters = model.parameters(expanded.total + extra, source.dtype)
        known = memo.batches[batch]
        base = None if known is None else known.base
        seen = visit(model, parameters, source, problem.batches[batch], problem.executor, base=base, local=False)
        expanded.replace(int(batch), seen.summary)
    expanded.refresh()
    total = expanded.total
    assert total.K == K + born.K
    return model.ordered(total.take(np.flatnonzero(total.N > 0.0)))
