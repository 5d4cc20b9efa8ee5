"""What a stream of rows is remembered by: a summary of all of them, and a bounded sample, on which moves are judged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource
from ..likelihoods import Likelihood
from ..model import Handover, Memo, Model, Posterior, Summary, Take
from ..model.learning import settled, tuned
from ..model.tree import upwards
from ..moves import MoveRecord, Proposal
from ..moves.agglomeration import ancestry, level_start, levels_of, merges, row_nodes
from ..moves.better import NEGLIGIBLE, accepts
from ..moves.birth import Start, Target, fit_children, one_child
from ..moves.sample import Draw, most_drawn
from .executor import Executor
from .remembered import Remembered
from .stream_splits import split
from .survey import survey
from .visit import visit

Array = NDArray[np.floating]
Look = Callable[[Summary], Summary]  # the summary of a batch, visited at the parameters of a summary of all rows


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/streams.py.

    Attributes
    ----------
    surprise : share of the cost of its parameters by which rows of a cluster must be explained worse than before, for a birth
    children : clusters at most that one birth adds
    deaths : small clusters whose death is tried in a round of moves on the memory
    small : share of the mean count below which a cluster may die although it has rows
    sure : standard deviations beyond what parameters gain by chance on the rows of the memory, by which these contradict sums
    visits : to a batch, at most, after births
    needless : clusters born of it, at most, that are then tried to do without
    least_rows : a cluster that stands for fewer rows goes
    """

    surprise: float = 0.1
    children: int = 10
    deaths: int = 3
    small: float = 0.2
    sure: float = 5.0
    visits: int = 3
    needless: int = 20
    least_rows: float = 1.0


TUNING = Tuning()


class Streamed(NamedTuple):
    """What a batch of a stream leaves: the model, the summary, the sample, and what became of moves."""

    model: Model
    total: Summary
    memory: Any
    moves: tuple[MoveRecord, ...]


@dataclass(frozen=True)
class Stream:
    """How a batch of rows is learnt from.

    moves : among "birth", "merge" and "delete"
    prior : the likelihood as it was before any hyperparameter was learnt, to which new clusters are fitted: a prior learnt from
        one cluster bars all others
    learn : the hyperparameters that are learnt
    forgetting : the share of their weight that earlier rows keep at each batch
    most : rows of the memory
    """

    moves: tuple[str, ...]
    prior: Likelihood
    learn: tuple[str, ...]
    forgetting: float
    most: int

    def learned(
        self,
        model: Model,
        summary: Summary,
        memory: Remembered,
        source: ArraySource,
        executor: Executor,
        rng: np.random.Generator,
    ) -> Streamed:
        """The state after a batch: births on its rows, then, when enough rows have come, merges and splits on the memory."""
        memo, births = self._visited(model, summary * self.forgetting, source, executor, rng)
        total = memo.total
        model = self._with_own_prior(model, total, source.dtype) if births else model
        deaths: list[float] = []
        least = TUNING.least_rows
        lives = least <= total.N
        if "delete" in self.moves and lives.any() and not lives.all():
            total = total.take(np.flatnonzero(lives))
            deaths = [0.0] * int((~lives).sum())
        memory = memory.after(source, float(summary.N.sum()) * self.forgetting, self.most, rng)
        merged: list[float] = []
        if 2 * memory.waiting >= memory.size:
            memory = memory._replace(waiting=0)
            total = _refreshed(model, total, memory, executor)
            if "birth" in self.moves:
                total, memory, splits = split(model, total, memory, executor, rng)
                births += splits
            if "merge" in self.moves:
                total, merged = _merged(model, total, memory, executor)
            if "delete" in self.moves:
                total, gains = _without_debris(model, total, memory, executor)
                deaths += gains
        records = (
            MoveRecord("birth", len(births), tuple(births)),
            MoveRecord("merge", len(merged), tuple(merged)),
            MoveRecord("delete", len(deaths), tuple(deaths)),
        )
        if any(record.accepted for record in records):
            total = model.ordered(total)
        return Streamed(self._learnt(model, total, source.dtype), total, memory, records)

    def _learnt(self, model: Model, total: Summary, dtype: np.dtype[np.floating]) -> Model:
        """The model with hyperparameters that raise the bound; one cluster has the prior as it was."""
        if total.K == 1:
            return replace(model, likelihood=self.prior) if self.learn else model
        return tuned(model.posterior(total), self.learn, dtype).model

    def _visited(
        self, model: Model, known: Summary, source: ArraySource, executor: Executor, rng: np.random.Generator
    ) -> tuple[Memo, list[float]]:
        """The summaries of what came before and of the batch, with clusters born of its rows, and what each birth gained."""
        chunks = source.batches(1)[0]
        before = model.posterior(known)
        parameters = before.parameters(source.dtype)
        grows = "birth" in self.moves and model.max_clusters > known.K
        draw = _draw(model, known, source, rng) if grows else None
        seen = visit(model, parameters, source, chunks, executor, draw=draw, local=False)
        memo = Memo(2)
        memo.replace(0, known)
        memo.replace(1, seen.summary)
        if not grows:
            return memo, []
        samples = []
        room = model.max_clusters - known.K
        for k in _surprising(before, seen.summary, model.posterior(memo.total)):
            if sum(int((part.owners == k).sum()) for part in seen.drawn) < 2:
                continue
            X, weights = model.kind.sample(source, seen.drawn, k, float(seen.summary.N[k]))
            starts = (Start(min(TUNING.children, room, len(weights))),)
            samples.append(Target(k, memo.total.take([k]), X, weights, starts, int(rng.integers(2**63))))
        proposals = []
        free = replace(model, likelihood=self.prior)
        for target, (children, gain) in zip(samples, executor.map(partial(fit_children, free), samples)):
            born = children if gain > 0.0 else one_child(free, target)  # all rows may be of one new cluster
            proposals.append(Proposal("birth", (target.cluster,), free.shared(born, source.dtype), gain))
        if not proposals:
            return memo, []
        base = seen.summary.base
        tracked = visit(model, parameters, source, chunks, executor, proposals, base=base, local=False).tracked
        memo, gains = self._with_births(model, memo, proposals, tracked, source.dtype)
        if not gains:
            return memo, []
        model = self._with_own_prior(model, memo.total, source.dtype)

        def look(total: Summary) -> Summary:
            now = model.parameters(total, source.dtype)
            return visit(model, now, source, chunks, executor, base=base, local=False).summary

        return _needed(model, _settled(model, memo, look), known.K, look), gains

    def _with_births(
        self,
        model: Model,
        memo: Memo,
        proposals: Sequence[Proposal],
        tracked: Sequence[Summary],
        dtype: np.dtype[np.floating],
    ) -> tuple[Memo, list[float]]:
        """The summaries with the births that raise the bound, one after another, and what each gained.

        What came before keeps its clusters; the mass of the targets in the batch goes to new ones (Thesis Eq. 4.16, 4.21).
        Each number of clusters is judged by the prior that is learnt for it, from where it was before.
        """
        gains = []
        bound = self._value(model, memo.total, dtype)
        for proposal, born in zip(proposals, tracked):
            if model.max_clusters < memo.total.K + born.K:
                continue
            edited = memo.copy()
            edited.apply(Handover(proposal.removed[0], born.K), [[], [born]])
            gain = self._value(model, edited.total, dtype) - bound
            if accepts(gain, born.K, bound):
                memo = edited
                bound += gain
                gains.append(gain)
        return memo, gains

    def _with_own_prior(self, model: Model, total: Summary, dtype: np.dtype[np.floating]) -> Model:
        """The model with the prior learnt for these clusters, from where it was before, if that is better."""
        if not self.learn:
            return model
        learnt = settled(replace(model, likelihood=self.prior), total, self.learn, dtype)
        return learnt if learnt.bound(total) > model.bound(total) else model

    def _value(self, model: Model, total: Summary, dtype: np.dtype[np.floating]) -> float:
        """The bound with the prior learnt for these clusters."""
        return self._with_own_prior(model, total, dtype).bound(total)


def _settled(model: Model, memo: Memo, look: Look) -> Memo:
    """The summaries after other visits to the batch, now that clusters were born, as long as they raise the bound."""
    for _ in range(TUNING.visits):
        again = memo.copy()
        again.replace(1, look(memo.total))
        if not model.bound(again.total) > model.bound(memo.total):
            break
        memo = again
    return memo


def _needed(model: Model, memo: Memo, old: int, look: Look) -> Memo:
    """The summaries without clusters born in vain: the batch alone has rows of theirs, so that the bound without one is exact.

    old : clusters that were there before, which come first
    """
    names = np.arange(memo.total.K)
    for name in old + np.argsort(memo.total.N[old:])[: TUNING.needless]:
        others = np.flatnonzero(names != name)
        if len(others) == 0:
            break
        fewer = memo.copy()
        fewer.apply(Take(tuple(int(k) for k in others)))
        fewer.replace(1, look(fewer.total))
        bound = model.bound(memo.total)
        if accepts(model.bound(fewer.total) - bound, -1, bound):
            memo = fewer
            names = names[others]
    return memo


def _draw(model: Model, known: Summary, source: ArraySource, rng: np.random.Generator) -> Draw:
    """About as many rows of each cluster as a birth is fitted to, if the batch has clusters in the proportions known."""
    most = max(2, min(model.kind.sample_size, most_drawn(model, source)))
    expected = known.N * (source.total_weight / max(float(known.N.sum()), 1e-300))
    return Draw(most / np.maximum(expected, most), int(rng.integers(2**63)), np.arange(known.K))


def _surprising(before: Posterior, seen: Summary, after: Posterior) -> list[int]:
    """The clusters whose rows in a batch are explained so much worse than those before that a birth might pay."""
    W, b = before.weights
    expected = before.explained / np.maximum(before.summary.N, 1e-300)
    lacking = expected * seen.N - ((seen.S * W).sum(axis=1) + seen.N * b)
    return [int(k) for k in np.flatnonzero(lacking > TUNING.surprise * after.cost)]


def _refreshed(model: Model, total: Summary, memory: Remembered, executor: Executor) -> Summary:
    """The summary without what rows left in clusters that they would not belong to now.

    Rows that came before their cluster was born are in the sums of others.  Where rows of the memory, as they are shared out
    now, contradict the sums of a cluster beyond chance, they take their place.  Counts then are those of the memory for all.
    """
    by_chance = model.by_chance(total)
    if by_chance is None:
        return total
    source = memory.standing_for(float(total.N.sum()))
    posterior = model.posterior(total)
    chunks = source.batches(1)[0]
    seen = visit(model, posterior.parameters(source.dtype), source, chunks, executor, local=False).summary
    W, b = posterior.weights
    gain = model.posterior(seen).explained - ((seen.S * W).sum(axis=1) + seen.N * b)
    each = source.total_weight / memory.size
    chance = 2.0 * by_chance + TUNING.sure * np.sqrt(by_chance)  # what is gained on these rows is lost on others
    stale = (gain > chance * each) & (by_chance * each < seen.N)
    if not stale.any():
        return total
    share = np.where(stale, 0.0, seen.N / np.maximum(total.N, 1e-300))
    kept = stale.astype(np.float64)
    N = share * total.N + kept * seen.N
    S = share[:, None] * total.S + kept[:, None] * seen.S
    return replace(total, N=N, S=S, H=share * total.H + kept * seen.H)


def _merged(model: Model, total: Summary, memory: Remembered, executor: Executor) -> tuple[Summary, list[float]]:
    """The summary after the merges that the bound prefers, and what they gain together.

    Counts and statistics add up; the share of the entropy that is left where responsibilities are added is that of the
    memory's rows.
    """
    if total.K < 2:
        return total, []
    steps = list(merges(model.posterior(total)))
    parents = ancestry(steps, total.K)
    seen = survey(model, total, memory.standing_for(float(total.N.sum())), executor, parents)
    left = np.clip(seen.nodes.H / np.maximum(upwards(seen.total.H, parents), 1e-300), 0.0, 1.0)
    nodes = row_nodes(total.N, parents, upwards(total.H, parents) * left, total.base)
    levels = levels_of(model, total, steps, nodes)
    best = max(levels, key=lambda level: level.bound)
    gain = best.bound - levels[0].bound
    if best is levels[0] or not accepts(gain, -1, best.bound):
        return total, []
    return level_start(model, total, nodes, best)[0], [gain]


def _without_debris(
    model: Model, total: Summary, memory: Remembered, executor: Executor
) -> tuple[Summary, list[float]]:
    """The summary without small clusters whose rows others explain so well that the bound of the memory's rows rises.

    What others gain in the memory is added to their sums.  One to which no row of the memory belongs goes.
    """
    source = memory.standing_for(float(total.N.sum()))
    chunks = source.batches(1)[0]
    gains: list[float] = []
    limit = TUNING.small * float(total.N.mean())
    small = np.flatnonzero(limit > total.N)
    if not len(small):
        return total, gains
    look = partial(visit, source=source, chunks=chunks, executor=executor, local=False)
    seen = look(model, model.parameters(total, source.dtype)).summary
    names = np.arange(total.K)
    for name in small[np.argsort(total.N[small])][: TUNING.deaths]:
        others = np.flatnonzero(names != name)
        fewer = look(model, model.parameters(total.take(others), source.dtype)).summary
        bound = model.bound(seen)
        gain = model.bound(fewer) - bound
        if accepts(gain, -1, bound, NEGLIGIBLE):
            total = _joined(total.take(others), fewer - seen.take(others))
            seen = fewer
            names = names[others]
            gains.append(gain)
    return total, gains


def _joined(total: Summary, more: Summary) -> Summary:
    """A summary with what clusters have gained, where they have."""
    gained = more.N > 0.0
    return replace(
        total,
        N=total.N + np.where(gained, more.N, 0.0),
        S=total.S + np.where(gained[:, None], more.S, 0.0),
        H=np.maximum(total.H + np.where(gained, more.H, 0.0), 0.0),
    )
