"""Which moves to try in the next lap, which to accept at its end, and what not to try again."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..allocations import Responsibilities
from ..data import ArraySource
from ..kernels.assign import select_rows
from ..model import Memo, Model, Parameters, Summary
from ..model.seeding import distinct_rows
from .birth import CHILDREN, Target, propose_birth
from .delete import propose_deletes
from .merge import propose_merges
from .proposal import MoveRecord, Proposal

Array = NDArray[np.floating]

SAMPLE_THRESHOLD = 0.1  # rows with more responsibility than this represent a cluster (2013 paper, section 3.1)
SAMPLE_NUMBERS = 1 << 22  # features of one sample: 32 MiB in float64
SAMPLE_ROWS = 3000
SMALL = 0.1  # clusters below this share of the average count are not split lap by lap
SMALLEST_CHILD = 2  # distinct rows per child
TRIES = 3  # failed births of a cluster before it must change to be tried again
CHANGED = 0.1  # relative change of a cluster's count after which past failures no longer count
MEMORY = 1 << 28  # bytes for the summaries of proposals on all batches


@dataclass
class _History:
    """What has been tried on one cluster, and its count at the time."""

    count: float
    births: int = 0
    deletes: int = 0


class Drawn(NamedTuple):
    """Rows drawn from one chunk: identity of the cluster, row number, responsibility."""

    clusters: NDArray[np.integer]
    rows: NDArray[np.integer]
    chosen: Array


@dataclass
class Draw:
    """How rows are drawn in a lap to represent the clusters: chances, a salt for the pseudo-random numbers, identities."""

    limits: Array
    salt: int
    ids: NDArray[np.integer]

    def chunk(self, kept: Responsibilities, first: int) -> Drawn:
        """Identities of clusters, row numbers and responsibilities of the rows drawn from one chunk that starts at row ``first``."""
        n = kept.values.size
        clusters, rows, chosen = np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n)
        count = select_rows(*kept, SAMPLE_THRESHOLD, self.limits, np.uint64(self.salt), first, clusters, rows, chosen)
        return Drawn(self.ids[clusters[:count]], rows[:count] + first, chosen[:count].copy())


@dataclass
class Schedule:
    """Proposals from lap to lap.

    Every cluster carries an identity that survives reordering and ends when a move changes the cluster; failures are
    remembered under it, and forgotten when the cluster's count has changed by more than a tenth (Thesis 4.2.4).
    """

    kinds: Sequence[str]
    rng: np.random.Generator
    ids: list[int] = field(default_factory=list)
    histories: dict[int, _History] = field(default_factory=dict)
    _next: int = 0

    def start(self, K: int) -> None:
        """Give K clusters their identities."""
        self.ids = [self._fresh() for _ in range(K)]

    def draw(self, model: Model, counts: Array, n_columns: int) -> Draw:
        """Chances with which rows are drawn during the next lap to represent each cluster."""
        wanted = min(SAMPLE_ROWS, SAMPLE_NUMBERS // max(model.likelihood.n_statistics, n_columns))
        limits = np.minimum(1.0, wanted / np.maximum(counts, 1e-300))
        return Draw(limits, int(self.rng.integers(2**63)), np.array(self.ids))

    def plan(
        self,
        model: Model,
        total: Summary,
        parameters: Parameters,
        source: ArraySource,
        drawn: list[Drawn],
        run: Callable[..., Iterable[Proposal | None]],
        n_batches: int,
    ) -> list[Proposal]:
        """The proposals to verify over the next lap, within the memory for their summaries, best estimates first."""
        proposals: list[Proposal] = []
        if "merge" in self.kinds or "delete" in self.kinds:
            divergence = model.divergences(total)
            if "merge" in self.kinds:
                proposals += propose_merges(model, total, divergence, total.K)
            if "delete" in self.kinds:
                deletes = propose_deletes(model, total, parameters, divergence, max(2, total.K // 4))
                proposals += [p for p in deletes if self._history(p.removed[0], total.N).deletes < 2]
        if "birth" in self.kinds:
            targets = self.targets(total, source, drawn, lambda k: self._children(k, total.N))
            births = run(lambda target: propose_birth(model, target), targets)
            for target, birth in zip(targets, births):
                if birth is None:
                    self._history(target.cluster, total.N).births += 1
                else:
                    proposals.append(birth)
        bytes_per_cluster = 8 * (model.likelihood.n_statistics + 2) * n_batches
        room, chosen = MEMORY // bytes_per_cluster, []
        for proposal in sorted(proposals, key=lambda p: -p.estimate):
            if (
                room >= proposal.n_added
                and total.K + proposal.n_added - len(proposal.removed) <= model.allocation.max_clusters
            ):
                room -= proposal.n_added
                chosen.append(proposal)
        return chosen

    def resolve(
        self, model: Model, memo: Memo, proposals: list[Proposal], tracked: list[list[Summary]]
    ) -> tuple[tuple[list[int], Summary] | None, list[MoveRecord]]:
        """Accept proposals that raise the ELBO of the whole data set, best first, and edit the memo.

        tracked : for each batch, the summary of every proposal's clusters J
        """
        total = memo.total
        added = [_sum(batch[i] for batch in tracked) for i in range(len(proposals))]
        marginal = model.log_marginal(total)
        gains = []
        for proposal, J in zip(proposals, added):
            A = list(proposal.removed)
            gains.append(float((model.log_marginal(J) + J.H).sum() - (marginal[A] + total.H[A]).sum()))
        accepted: dict[int, float] = {}
        used: set[int] = set()
        counts, columns = total.N, list(range(total.K))
        for i in sorted(range(len(proposals)), key=lambda i: -gains[i]):
            replaced = proposals[i].removed
            if used & set(replaced) or len(columns) + added[i].K - len(replaced) > model.allocation.max_clusters:
                continue
            keep = [c not in replaced for c in columns]
            after = np.concatenate([counts[keep], added[i].N])
            gain = gains[i] + _allocation_bound(model, after) - _allocation_bound(model, counts)
            if gain > 1e-9 * abs(gains[i]) + 1e-6:
                accepted[i] = gain
                used |= set(replaced)
                counts, columns = after, [c for c, kept in zip(columns, keep) if kept] + [-1] * added[i].K
        self._remember(proposals, accepted, used, total.N)
        removed = sorted(used)
        edit = None
        if accepted:
            edit = removed, _concatenate([added[i] for i in accepted])
            extra = [_concatenate([batch[i] for i in accepted]) for batch in tracked]
            memo.edit(lambda b, summary: summary.exchange(removed, extra[b]))
            self.ids = [u for k, u in enumerate(self.ids) if k not in used]
            self.ids += [self._fresh() for _ in range(memo.total.K - len(self.ids))]
        records = [
            MoveRecord(
                kind,
                sum(p.kind == kind for p in proposals),
                tuple(gain for i, gain in accepted.items() if proposals[i].kind == kind),
            )
            for kind in self.kinds
        ]
        return edit, records

    def take(self, clusters: NDArray[np.integer]) -> None:
        """Follow a reordering or dropping of clusters."""
        self.ids = [self.ids[k] for k in clusters]

    def targets(
        self, total: Summary, source: ArraySource, drawn: list[Drawn], children: Callable[[int], int]
    ) -> list[Target]:
        """Samples of the clusters for which ``children(k)``, how many to fit, is at least two."""
        owners, rows, chosen = (np.concatenate(parts) for parts in zip(*drawn))
        targets = []
        for k, identity in enumerate(self.ids):
            mine = np.flatnonzero(owners == identity)
            if children(k) >= 2 and mine.size >= 2 * SMALLEST_CHILD:
                mine = mine[np.argsort(rows[mine], kind="stable")]
                X, weights = source.take(rows[mine])
                X, weights = distinct_rows(X, weights * chosen[mine])
                J = min(children(k), len(X) // SMALLEST_CHILD)
                if J >= 2:
                    targets.append(Target(k, total.take([k]), X, weights, J, int(self.rng.integers(2**63))))
        return targets

    def _children(self, k: int, counts: Array) -> int:
        """How many children to try for cluster k: many at first, then any number; none where there is no hope."""
        if counts[k] < SMALL * counts.sum() / len(counts) or not self._may_birth(k, counts[k]):
            return 0
        return int(self.rng.choice(CHILDREN)) if self._history(k, counts).births else CHILDREN[-1 - k % 2]

    def _may_birth(self, k: int, count: float) -> bool:
        history = self.histories.get(self.ids[k])
        return history is None or history.births < TRIES or abs(count - history.count) > CHANGED * history.count

    def _history(self, k: int, counts: Array) -> _History:
        history = self.histories.get(self.ids[k])
        if history is None or abs(counts[k] - history.count) > CHANGED * history.count:
            history = self.histories[self.ids[k]] = _History(float(counts[k]))
        return history

    def _remember(self, proposals: list[Proposal], accepted: dict[int, float], used: set[int], counts: Array) -> None:
        for i, proposal in enumerate(proposals):
            if i in accepted or used & set(proposal.removed):
                continue
            history = self._history(proposal.removed[0], counts)
            history.births += proposal.kind == "birth"
            history.deletes += proposal.kind == "delete"

    def _fresh(self) -> int:
        self._next += 1
        return self._next


def _allocation_bound(model: Model, counts: Array) -> float:
    return model.allocation.bound(counts[model.allocation.order(counts)])


def _sum(summaries: Iterable[Summary]) -> Summary:
    first, *rest = summaries
    for summary in rest:
        first = first + summary
    return first


def _concatenate(summaries: list[Summary]) -> Summary:
    first, *rest = summaries
    for summary in rest:
        first = first.exchange((), summary)
    return first
