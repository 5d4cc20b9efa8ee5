"""Streams of documents and of sequences: topics and states are born, merge and die where a search of a sample says so.

A document does not say which of its words a change of topics concerns, nor a row which state its neighbours have then.  So
moves are judged by searches: of a bounded sample of the stream and of all that has come of late, by their exact bound.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource
from ..model import Model, Summary
from ..model.learning import tuned
from ..moves import MoveRecord
from .executor import Executor
from .remembered import Recalled
from .search import Search
from .session import Session
from .stream import Streamed
from .visit import visit

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Renewed:
    """How a batch of documents or of sequences is learnt from.

    prior : the model as it was before any hyperparameter was learnt, with which searches begin
    search : makes the search of a sample for a model, given a session and random numbers
    ready : a sample as it is searched
    moves : among "birth", "merge" and "delete"
    learn : the hyperparameters that are learnt
    forgetting : the share of their weight that earlier documents or rows keep at each batch
    most : documents, or rows of sequences, of the memory
    """

    prior: Model
    search: Callable[..., Search]
    ready: Callable[[Any], ArraySource]
    moves: tuple[str, ...]
    learn: tuple[str, ...]
    forgetting: float
    most: int

    def learned(
        self,
        model: Model,
        summary: Summary,
        memory: Recalled,
        source: ArraySource,
        executor: Executor,
        rng: np.random.Generator,
    ) -> Streamed:
        """The state after a batch: what it says is added up; then, when enough has come, the moves."""
        known = summary * self.forgetting
        parameters = model.parameters(known, source.dtype)
        seen = visit(model, parameters, source, source.batches(1)[0], executor, local=False).summary
        total = known + seen
        memory = memory.after(source, seen, self.forgetting, self.most, rng)
        moves: tuple[MoveRecord, ...] = ()
        if self.moves and memory.is_due(bool((_as_one(model, known, seen) < 0.0).any())):
            model, total, memory, moves = self._judged(model, total, memory, executor, rng)
        if total.K == 1:
            model = self._of_one(model)
        elif self.learn:
            model = tuned(model.posterior(total), self.learn, source.dtype).model
        return Streamed(model, total, memory, moves)

    def _of_one(self, model: Model) -> Model:
        """The model with the likelihood's prior as it was: learnt from one cluster, it makes others cost nothing."""
        return replace(model, likelihood=self.prior.likelihood)

    def _judged(
        self, model: Model, total: Summary, memory: Recalled, executor: Executor, rng: np.random.Generator
    ) -> Streamed:
        """The state after a search of what is remembered, and the moves that it found worthwhile."""
        sample = self.ready(memory.whole)
        generator = np.random.default_rng(int(rng.integers(2**63)))
        first = replace(self.prior, room=model.room)
        search = self.search(first, sample, session=Session(executor), rng=generator)
        search.run(total.as_start)
        found = search.outcome
        past = total if memory.sums is None else total - memory.sums
        learnt = found.model if found.total.K > 1 else self._of_one(found.model)
        groups = continued(learnt, found.total, past)
        same = found.total.K == total.K
        moves: tuple[MoveRecord, ...] = ()
        if not same or any(len(group) != 1 for group in groups):
            moves = _records(groups, total.K, self._gain(model, total, sample, found.bound, executor))
            model = learnt
            total = self._carried(model, total, past, found.total.without_local(), groups, memory, executor)
        return Streamed(model, total, memory.judged(same, self.most, rng), moves)

    def _carried(
        self,
        model: Model,
        total: Summary,
        past: Summary,
        found: Summary,
        groups: list[list[int]],
        memory: Recalled,
        executor: Executor,
    ) -> Summary:
        """The summary of the stream with the clusters found.

        Those of the past that go on keep their sums; all else of the past is as its sample has it, and what has come since is
        visited again.
        """
        assert memory.held is not None
        assert memory.recent is not None
        parameters = model.parameters(_with_sums(found, past, groups), memory.held.dtype)

        def seen(part: ArraySource, weight: float) -> Summary:
            source = self.ready(part)
            visited = visit(model, parameters, source, source.batches(1)[0], executor, base=past.base, local=False)
            found: Summary = visited.summary * (weight / part.n_rows)
            return found

        held = seen(memory.held, memory.weight)
        before = _with_sums(held * float(past.N.sum() / held.N.sum()), past, groups)
        return model.ordered(replace(before + seen(memory.recent, memory.arrived), base=total.base))

    def _gain(self, model: Model, total: Summary, sample: ArraySource, bound: float, executor: Executor) -> float:
        """What a search gained over the sample as the clusters before explain it."""
        parameters = model.parameters(total, sample.dtype)
        seen = visit(model, parameters, sample, sample.batches(1)[0], executor, local=False).summary
        return bound - model.bound(seen)


def continued(model: Model, found: Summary, before: Summary) -> list[list[int]]:
    """For each cluster that was found, those before whose observations it has: one cluster explains both better than two.

    That is what the log marginal likelihoods say.  Each cluster before goes on in no more than one.
    """
    groups: list[list[int]] = [[] for _ in range(found.K)]
    for k in range(before.K):
        gains = _as_one(model, found, before.take(np.full(found.K, k)))
        best = int(gains.argmax())
        if gains[best] > 0.0:
            groups[best].append(k)
    return groups


def _as_one(model: Model, first: Summary, second: Summary) -> Array:
    """What the log marginal likelihood gains if each cluster of two summaries is one with that of the same number, (K,)."""
    likelihood = model.likelihood
    together = likelihood.log_marginal(first.N + second.N, first.S + second.S)
    return np.asarray(together - model.log_marginal(first) - model.log_marginal(second))


def _with_sums(total: Summary, before: Summary, groups: list[list[int]]) -> Summary:
    """A summary with the statistics of those clusters that go on, as many of them as it has rows."""
    S = total.S.copy()
    for k, group in enumerate(groups):
        rows = float(before.N[group].sum())
        if rows > 0.0:
            S[k] = before.S[group].sum(axis=0) * (total.N[k] / rows)
    return replace(total, S=S)


def _records(groups: list[list[int]], K: int, gain: float) -> tuple[MoveRecord, ...]:
    """The moves of clusters that go on, of K before: what all gained together, in equal parts."""
    goes_on = sum(len(group) for group in groups)
    births = sum(not group for group in groups)
    merges = sum(len(group) - 1 for group in groups if group)
    deaths = K - goes_on
    each = gain / max(births + merges + deaths, 1)
    counts = (("birth", births), ("merge", merges), ("delete", deaths))
    return tuple(MoveRecord(kind, n, n * (each,)) for kind, n in counts)
