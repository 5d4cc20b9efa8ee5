"""Which moves to try in the next lap, and what not to try again."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource
from ..model import ROWS, Drawn, Model, Posterior, Recipe, Summary
from . import states
from .better import NEGLIGIBLE
from .birth import CHILDREN, fit_children, propose_birth
from .delete import propose_deletes
from .merge import propose_merges
from .proposal import MoveRecord, Proposal
from .sample import Draw, plan_draw, targets
from .verify import Verdict, verify, verify_whole

Array = NDArray[np.floating]

SMALL = 0.1  # clusters below this share of the average count are not split lap by lap
HOPELESS = 0.5  # of what its parameters cost: a cluster whose children would lose more is not tried again
CHANGED = 0.1  # relative change of a cluster's count after which past failures no longer count
MEMORY = 1 << 27  # bytes for the summaries of proposals on all batches


class Failures(NamedTuple):
    """How often a move of some clusters failed, and the rows they had when that began."""

    rows: float
    times: int = 0


@dataclass
class Schedule:
    """Proposals from lap to lap, and what has failed so far: a part of the state of an ascent.

    Every cluster carries an identity that survives reordering and ends when a move changes the cluster; failures are
    remembered under it, and forgotten when the cluster's count has changed by more than a tenth (Thesis 4.2.4).

    kinds : of moves: "birth", "merge", "delete"
    recipe : how moves change the clusters of the kind of data
    tries : failures after which nothing is tried again, where that is fewer than usual
    draws : whether rows are drawn, which births are fitted to
    many : whether clusters may hold many others, as where a search begins; if not, births have few children at first
    pause : laps in which a kind of moves of states is not tried, after one in which none of the kind was accepted
    ids : the identities of the clusters
    """

    kinds: Sequence[str]
    recipe: Recipe = ROWS.recipe
    tries: int = sys.maxsize
    draws: bool = True
    many: bool = True
    pause: int = 0
    ids: list[int] = field(default_factory=list)
    _failed: dict[tuple[str, tuple[int, ...]], Failures] = field(default_factory=dict)
    _issued: int = 0
    _waits: dict[str, int] = field(default_factory=dict)

    def copy(self) -> Self:
        """The same, to go on with."""
        alive = set(self.ids)
        failed = {key: found for key, found in self._failed.items() if alive.issuperset(key[1])}
        return replace(self, ids=list(self.ids), _failed=failed, _waits=dict(self._waits))

    def start(self, K: int) -> None:
        """Give K clusters their identities."""
        self.ids = self._fresh(K)

    def take(self, clusters: NDArray[np.integer]) -> None:
        """Follow a reordering or dropping of clusters."""
        self.ids = [self.ids[k] for k in clusters]

    def add(self, n: int) -> None:
        """Give n more clusters, which come last, their identities."""
        self.ids = [*self.ids, *self._fresh(n)]

    def batch_target(self, posterior: Posterior, clusters: Sequence[int]) -> int | None:
        """Of clusters, the one for a birth: tried least often, then of the lowest expected log density (Thesis Eq. 4.24).

        None where births of all have failed as often as they may.
        """
        N = posterior.summary.N
        open_ = [k for k in clusters if self._may("birth", (k,), N)]
        scores = posterior.explained / np.maximum(N, 1.0)
        return min(open_, key=lambda k: (self._failures("birth", (k,), N).times, scores[k]), default=None)

    def birth_failed(self, cluster: int, counts: Array) -> None:
        """Remember that a birth of a cluster came to nothing."""
        self._fail("birth", (cluster,), counts)

    def draw(self, model: Model, source: ArraySource, counts: Array, rng: np.random.Generator) -> Draw | None:
        """How rows are drawn during the next lap to represent each cluster, if they are."""
        if not self.draws:
            return None
        return plan_draw(model, source, counts, self.ids, rng)

    def plan(
        self,
        posterior: Posterior,
        source: ArraySource,
        drawn: Sequence[Drawn],
        run: Callable[..., Iterable[Any]],
        rng: np.random.Generator,
        n_batches: int,
        settling: bool,
        rising: bool,
    ) -> list[Proposal]:
        """The proposals to verify over the next lap, best estimates first, within the memory for their summaries.

        posterior : of all rows
        drawn : rows drawn in the last lap to represent the clusters
        run : maps a task over items
        settling : whether clusters are still given time to settle; only those to which no row belongs may then go
        rising : whether the bound still rises fast: it is then too early to ask if a state is worth its place
        """
        if self.recipe.whole:
            return [] if settling else self._states(posterior, source, drawn, run, rng, rising)
        proposals: list[Proposal] = []
        if {"merge", "delete"} & set(self.kinds):
            proposals += self._merges_and_deletes(posterior, source.dtype, settling)
        if "birth" in self.kinds and not settling:
            proposals += self._births(posterior, source, drawn, run, rng)
        model = posterior.model
        total = posterior.summary
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
        posterior: Posterior,
        proposals: Sequence[Proposal],
        tracked: Sequence[Sequence[Summary]],
        slack: float,
    ) -> tuple[Verdict, list[MoveRecord]]:
        """What raises the ELBO of the whole data set (`verify`); what does not is remembered."""
        counts = posterior.summary.N
        decide = verify_whole if self.recipe.whole else verify
        verdict = decide(posterior, proposals, tracked, slack)
        for i, proposal in enumerate(proposals):
            if verdict.gains and proposal.whole:
                break  # only one could be accepted
            if i not in verdict.gains and not set(verdict.removed) & set(proposal.removed):
                self._fail(proposal.kind, proposal.subjects, counts)
        self.ids = [identity for k, identity in enumerate(self.ids) if k not in set(verdict.removed)]
        self.ids += self._fresh(verdict.K)
        records = []
        for kind in dict.fromkeys([*self.kinds, *(proposal.kind for proposal in proposals)]):
            gains = tuple(gain for i, gain in verdict.gains.items() if proposals[i].kind == kind)
            tried = sum(p.kind == kind for p in proposals)
            records.append(MoveRecord(kind, tried, gains))
            if tried > 0 and not gains:
                self._waits[kind] = self.pause
        return verdict, records

    def _states(
        self,
        posterior: Posterior,
        source: ArraySource,
        drawn: Sequence[Drawn],
        run: Callable[..., Iterable[Any]],
        rng: np.random.Generator,
        rising: bool,
    ) -> list[Proposal]:
        """Candidates for all states (`stickbreak.moves.states`) that have not failed before, of kinds that do not wait."""
        found: list[tuple[str, states.Candidate]] = []
        model = posterior.model
        total = posterior.summary
        saving = posterior.cost
        waiting = {kind for kind, laps in self._waits.items() if laps > 0}
        self._waits = {kind: self._waits[kind] - 1 for kind in waiting}
        if "merge" in self.kinds and not rising and "merge" not in waiting:
            barred = self._barred(total.N)
            found += [("merge", c) for c in states.merged(posterior, barred)]
        if "delete" in self.kinds and not rising and "delete" not in waiting:
            may = partial(self._may, "delete", counts=total.N)
            found += [("delete", c) for c in states.deleted(posterior, may)]
        if "delete" not in self.kinds:
            found += [("delete", c) for c in states.without_rows(total, saving)]
        if "birth" in self.kinds:
            room = model.max_clusters - total.K
            fits = self._fits(posterior, source, drawn, run, rng)
            found += [("birth", c) for c in states.births(total, fits, room)]
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
        self,
        posterior: Posterior,
        source: ArraySource,
        drawn: Sequence[Drawn],
        run: Callable[..., Iterable[Any]],
        rng: np.random.Generator,
    ) -> list[tuple[float, int, Summary]]:
        """Gain, state and children of births that are hoped to pay."""
        model = posterior.model
        total = posterior.summary
        chosen = targets(model, total, self.ids, source, drawn, lambda k: self._children(k, total.N, rng), rng)
        fits = list(zip(chosen, run(partial(fit_children, model), chosen)))
        for target, (_, gain) in fits:
            if gain <= 0.0:
                self._fail("birth", (target.cluster,), total.N)
        return [(gain, target.cluster, children) for target, (children, gain) in fits if gain > 0.0]

    def _merges_and_deletes(self, posterior: Posterior, dtype: np.dtype[np.floating], settling: bool) -> list[Proposal]:
        """Merges and deletes worth verifying."""
        total = posterior.summary
        saving = posterior.cost
        if settling and not (saving < NEGLIGIBLE).any():
            return []
        proposals: list[Proposal] = []
        if "delete" in self.kinds:
            deletes = propose_deletes(
                posterior, dtype, max(2, total.K // 4), lambda k: self._may("delete", (k,), total.N)
            )
            proposals += [p for p in deletes if not settling or saving[p.removed[0]] < NEGLIGIBLE]
        if "merge" in self.kinds and not settling:
            limit = total.K if self.recipe.scored else max(10, total.K // 8)
            merges, hopeless = propose_merges(posterior, limit, lambda pair: self._may("merge", pair, total.N))
            proposals += merges
            for pair in hopeless:
                self._fail("merge", pair, total.N)
        return proposals

    def _births(
        self,
        posterior: Posterior,
        source: ArraySource,
        drawn: Sequence[Drawn],
        run: Callable[..., Iterable[Proposal]],
        rng: np.random.Generator,
    ) -> list[Proposal]:
        """Births worth verifying; none only when every cluster has been tried as often as it may."""
        births: list[Proposal] = []
        model = posterior.model
        total = posterior.summary
        while not births:
            chosen = targets(model, total, self.ids, source, drawn, lambda k: self._children(k, total.N, rng), rng)
            if not chosen:
                break
            for target, birth in zip(chosen, run(partial(propose_birth, model), chosen)):
                if birth.estimate > 0.0:
                    births.append(birth)
                    continue
                hopeless = birth.estimate < -HOPELESS * posterior.cost[target.cluster]
                self._fail("birth", (target.cluster,), total.N, self.recipe.tries["birth"] if hopeless else 1)
        return births

    def _children(self, k: int, counts: Array, rng: np.random.Generator) -> int:
        """How many children to try for cluster k: many or few at first, then any number; none where there is no hope."""
        if counts[k] < SMALL * counts.sum() / len(counts) or not self._may("birth", (k,), counts):
            return 0
        if self._failures("birth", (k,), counts).times:
            return int(rng.choice(CHILDREN))
        return CHILDREN[-1 - k % 2] if self.many else CHILDREN[k % 3]

    def _may(self, kind: str, clusters: tuple[int, ...], counts: Array) -> bool:
        return self._failures(kind, clusters, counts).times < min(self.recipe.tries[kind], self.tries)

    def _fail(self, kind: str, clusters: tuple[int, ...], counts: Array, times: int = 1) -> None:
        found = self._failures(kind, clusters, counts)
        self._failed[self._key(kind, clusters)] = found._replace(times=found.times + times)

    def _failures(self, kind: str, clusters: tuple[int, ...], counts: Array) -> Failures:
        key = self._key(kind, clusters)
        rows = sum(float(counts[k]) for k in clusters)
        found = self._failed.get(key)
        if found is None or abs(rows - found.rows) > CHANGED * found.rows:
            return Failures(rows)
        return found

    def _key(self, kind: str, clusters: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        return kind, tuple(sorted(self.ids[k] for k in clusters))

    def _fresh(self, n: int) -> list[int]:
        self._issued += n
        return list(range(self._issued - n, self._issued))
