"""Which moves to try in the next lap, and what not to try again."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..allocations import Solution
from ..data import ArraySource
from ..model import ROWS, Clusters, Drawn, Memo, Model, Recipe, Summary
from . import states
from .birth import CHILDREN, fit_children, propose_birth
from .delete import NEGLIGIBLE, propose_deletes
from .merge import propose_merges
from .proposal import MoveRecord, Proposal
from .sample import Draw, plan_draw, targets
from .verify import Verdict, verify, verify_whole

Array = NDArray[np.floating]

SMALL = 0.1  # clusters below this share of the average count are not split lap by lap
HOPELESS = 0.5  # of what its parameters cost: a cluster whose children would lose more is not tried again
CHANGED = 0.1  # relative change of a cluster's count after which past failures no longer count
MEMORY = 1 << 27  # bytes for the summaries of proposals on all batches


@dataclass
class _Failures:
    """How often a move of some clusters failed, and their count when that began."""

    count: float
    times: int = 0


@dataclass
class Schedule:
    """Proposals from lap to lap.

    Every cluster carries an identity that survives reordering and ends when a move changes the cluster; failures are
    remembered under it, and forgotten when the cluster's count has changed by more than a tenth (Thesis 4.2.4).

    recipe : how moves change the clusters of the kind of data
    tries : failures after which nothing is tried again, where that is fewer than usual
    draws : whether rows are drawn, which births are fitted to
    many : whether clusters may hold many others, as where a search begins; if not, births have few children at first
    """

    kinds: Sequence[str]
    rng: np.random.Generator
    recipe: Recipe = ROWS.recipe
    tries: int = sys.maxsize
    draws: bool = True
    many: bool = True
    ids: list[int] = field(default_factory=list)
    _failed: dict[tuple[str, tuple[int, ...]], _Failures] = field(default_factory=dict)
    _issued: int = 0

    def start(self, K: int) -> None:
        """Give K clusters their identities."""
        self.ids = self._fresh(K)

    def take(self, clusters: NDArray[np.integer]) -> None:
        """Follow a reordering or dropping of clusters."""
        self.ids = [self.ids[k] for k in clusters]

    def draw(self, model: Model, source: ArraySource, counts: Array) -> Draw | None:
        """How rows are drawn during the next lap to represent each cluster, if they are."""
        if not self.draws:
            return None
        return plan_draw(model, source, counts, self.ids, self.rng)

    def plan(
        self,
        model: Model,
        total: Summary,
        log_marginal: Array,
        solution: Solution,
        source: ArraySource,
        drawn: list[Drawn],
        run: Callable[..., Iterable[Proposal]],
        n_batches: int,
        settling: bool,
        rising: bool = False,
    ) -> list[Proposal]:
        """The proposals to verify over the next lap, best estimates first, within the memory for their summaries.

        log_marginal : (K,) of the clusters of ``total``;  solution : the optimum of the allocation for it
        settling : whether clusters are still given time to settle; only those to which no row belongs may then go
        rising : whether the bound still rises fast: it is then too early to ask if a state is worth its place
        """
        if self.recipe.whole:
            return [] if settling else self._states(model, total, log_marginal, solution, source, drawn, run, rising)
        proposals: list[Proposal] = []
        if {"merge", "delete"} & set(self.kinds):
            clusters = Clusters(*model.likelihood.weights(total.N, total.S), log_marginal)
            proposals += self._removals(model, total, clusters, solution, source.dtype, settling)
        if "birth" in self.kinds and not settling:
            proposals += self._births(model, total, source, drawn, run)
        room = MEMORY // (8 * (model.likelihood.n_statistics + 2) * n_batches)
        chosen = []
        for proposal in sorted(proposals, key=lambda p: -p.estimate):
            grown = total.K + proposal.n_added - len(proposal.removed)
            if proposal.n_added <= room and grown <= max(model.max_clusters, total.K):
                room -= proposal.n_added
                chosen.append(proposal)
        return chosen

    def resolve(
        self,
        model: Model,
        memo: Memo,
        proposals: Sequence[Proposal],
        tracked: list[list[Summary]],
        slack: float,
        solution: Solution,
    ) -> tuple[Verdict, list[MoveRecord]]:
        """Accept what raises the ELBO of the whole data set (`verify`), and remember what failed."""
        counts = memo.total.N
        decide = verify_whole if self.recipe.whole else verify
        verdict = decide(model, memo, proposals, tracked, slack, solution)
        for i, proposal in enumerate(proposals):
            if verdict.gains and proposal.whole:
                break  # only one could be accepted
            if i not in verdict.gains and not set(verdict.removed) & set(proposal.removed):
                self._failures(proposal.kind, proposal.subjects, counts).times += 1
        self.ids = [identity for k, identity in enumerate(self.ids) if k not in set(verdict.removed)]
        self.ids += self._fresh(memo.total.K - len(self.ids))
        records = []
        for kind in dict.fromkeys([*self.kinds, *(proposal.kind for proposal in proposals)]):
            gains = tuple(gain for i, gain in verdict.gains.items() if proposals[i].kind == kind)
            records.append(MoveRecord(kind, sum(p.kind == kind for p in proposals), gains))
        return verdict, records

    def _states(
        self,
        model: Model,
        total: Summary,
        log_marginal: Array,
        solution: Solution,
        source: ArraySource,
        drawn: list[Drawn],
        run: Callable[..., Iterable[Any]],
        rising: bool,
    ) -> list[Proposal]:
        """Candidates for all states (`stickbreak.moves.states`) that have not failed before."""
        found: list[tuple[str, states.Candidate]] = []
        clusters = Clusters(*model.likelihood.weights(total.N, total.S), log_marginal)
        saving = model.parameter_cost(total, clusters)
        if "merge" in self.kinds and not rising:
            barred = self._barred(total.N)
            found += [("merge", c) for c in states.merged(model, total, log_marginal, saving, barred, solution)]
        if "delete" in self.kinds and not rising:
            divergence = model.divergences(total, clusters)
            may = partial(self._may, "delete", counts=total.N)
            found += [("delete", c) for c in states.deleted(total, saving, divergence, may)]
        if "delete" not in self.kinds:
            found += [("delete", c) for c in states.without_rows(total, saving)]
        if "birth" in self.kinds:
            room = model.max_clusters - total.K
            fits = self._fits(model, total, source, drawn, run)
            found += [("birth", c) for c in states.born(total, fits, room)]
        return [
            states.proposal(kind, model, candidate, source.dtype)
            for kind, candidate in found
            if self._may(kind, candidate.removed, total.N)
        ]

    def _barred(self, counts: Array) -> list[tuple[int, int]]:
        """Pairs of states whose merge has failed."""
        column = {identity: k for k, identity in enumerate(self.ids)}
        pairs = [ids for kind, ids in self._failed if kind == "merge" and len(ids) == 2 and set(ids) <= set(column)]
        columns = [(min(a, b), max(a, b)) for a, b in ((column[i], column[j]) for i, j in pairs)]
        return [pair for pair in columns if not self._may("merge", pair, counts)]

    def _fits(
        self, model: Model, total: Summary, source: ArraySource, drawn: list[Drawn], run: Callable[..., Iterable[Any]]
    ) -> list[tuple[float, int, Summary]]:
        """Gain, state and children of births that are hoped to pay."""
        chosen = targets(model, total, self.ids, source, drawn, lambda k: self._children(k, total.N), self.rng)
        fits = list(zip(chosen, run(partial(fit_children, model), chosen)))
        for target, (_, gain) in fits:
            if gain <= 0.0:
                self._failures("birth", (target.cluster,), total.N).times += 1
        return [(gain, target.cluster, children) for target, (children, gain) in fits if gain > 0.0]

    def _removals(
        self,
        model: Model,
        total: Summary,
        clusters: Clusters,
        solution: Solution,
        dtype: np.dtype[np.floating],
        settling: bool,
    ) -> list[Proposal]:
        """Merges and deletes worth verifying."""
        saving = model.parameter_cost(total, clusters)
        if settling and not (saving < NEGLIGIBLE).any():
            return []
        divergence = model.divergences(total, clusters)
        proposals: list[Proposal] = []
        if "delete" in self.kinds:
            parameters = model.parameters(total, dtype, clusters, solution)
            deletes = propose_deletes(model, total, parameters, saving, divergence, max(2, total.K // 4))
            proposals += [p for p in deletes if not settling or saving[p.removed[0]] < NEGLIGIBLE]
        if "merge" in self.kinds and not settling:
            limit = total.K if self.recipe.scored else max(10, total.K // 8)
            merges, hopeless = propose_merges(
                model, total, clusters, divergence, limit, lambda pair: self._may("merge", pair, total.N)
            )
            proposals += merges
            for pair in hopeless:
                self._failures("merge", pair, total.N).times += 1
        return [p for p in proposals if self._may(p.kind, p.subjects, total.N)]

    def _births(
        self,
        model: Model,
        total: Summary,
        source: ArraySource,
        drawn: list[Drawn],
        run: Callable[..., Iterable[Proposal]],
    ) -> list[Proposal]:
        """Births worth verifying; none only when every cluster has been tried as often as it may."""
        births: list[Proposal] = []
        cost = model.parameter_cost(total)
        while not births:
            chosen = targets(model, total, self.ids, source, drawn, lambda k: self._children(k, total.N), self.rng)
            if not chosen:
                break
            for target, birth in zip(chosen, run(lambda target: propose_birth(model, target), chosen)):
                if birth.estimate > 0.0:
                    births.append(birth)
                    continue
                failures = self._failures("birth", (target.cluster,), total.N)
                hopeless = birth.estimate < -HOPELESS * cost[target.cluster]
                failures.times += self.recipe.tries["birth"] if hopeless else 1
        return births

    def _children(self, k: int, counts: Array) -> int:
        """How many children to try for cluster k: many or few at first, then any number; none where there is no hope."""
        if counts[k] < SMALL * counts.sum() / len(counts) or not self._may("birth", (k,), counts):
            return 0
        if self._failures("birth", (k,), counts).times:
            return int(self.rng.choice(CHILDREN))
        return CHILDREN[-1 - k % 2] if self.many else CHILDREN[k % 3]

    def _may(self, kind: str, clusters: tuple[int, ...], counts: Array) -> bool:
        return self._failures(kind, clusters, counts).times < min(self.recipe.tries[kind], self.tries)

    def _failures(self, kind: str, clusters: tuple[int, ...], counts: Array) -> _Failures:
        key, count = (kind, tuple(sorted(self.ids[k] for k in clusters))), float(counts[list(clusters)].sum())
        found = self._failed.get(key)
        if found is None or abs(count - found.count) > CHANGED * found.count:
            found = self._failed[key] = _Failures(count)
        return found

    def _fresh(self, n: int) -> list[int]:
        self._issued += n
        return list(range(self._issued - n, self._issued))
