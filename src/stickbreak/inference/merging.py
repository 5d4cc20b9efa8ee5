"""Merges through losses: ascents from fewer clusters, where no single merge pays but several do after some laps."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..model import Posterior, Summary
from ..moves.agglomeration import Step, ancestry, level_start, levels_of, merges
from .laps import Laps
from .search import Search
from .state import Options

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_number.py and benchmarks/right_topics.py.

    Attributes
    ----------
    gamble : merges may lose so many times what the parameters of a cluster cost, before an ascent from there
    trials : numbers of clusters in a row from which an ascent did not pay, after which no other is tried
    few_trials : the same where these are given up early
    patience : laps, each like the last, in which such an ascent must reach the model in hand, where it is given up early
    longest : laps of such an ascent
    fine : share of the tolerance, to which such ascents settle where they are not given up early
    """

    gamble: float = 10.0
    trials: int = 4
    few_trials: int = 2
    patience: float = 10.0
    longest: int = 60
    fine: float = 0.1


TUNING = Tuning()


class Seen(Protocol):
    """What a visit to all data tells: their summary, and that of the nodes of a tree of merges without statistics."""

    @property
    def total(self) -> Summary:
        """Of all data, with the clusters as they are."""
        ...

    @property
    def nodes(self) -> Summary:
        """Of the nodes of the tree."""
        ...


S = TypeVar("S", bound=Seen)


class Surveyed(NamedTuple, Generic[S]):
    """The merges of an ascent's clusters down to one, and what a visit then told, at a bound of that ascent."""

    laps: Laps
    bound: float
    steps: list[Step]
    seen: S


@dataclass
class MergingSearch(Search, Generic[S]):
    """A search that agglomerates the clusters of an ascent, the best pair each time, down to one.

    Ascents from the numbers of clusters that promise most show whether fewer are better where no single merge pays.
    """

    _surveyed: Surveyed[S] | None = None  # the last survey
    _merged: Laps | None = None  # the last ascent from merged clusters, of the last attempt

    @abstractmethod
    def _look(self, laps: Laps, parents: NDArray[np.int64]) -> S:
        """Visit all data once with the parameters of an ascent, for a tree of merges (`ancestry`)."""

    @abstractmethod
    def _gives_up_early(self, K: int) -> bool:
        """Whether few ascents from merged clusters, K of them, are tried, and with little patience: where laps take long."""

    def _merges(self, posterior: Posterior) -> list[Step]:
        """The merges of its clusters that are looked at, the best each time."""
        return list(merges(posterior))

    def _counts(self, laps: Laps, groups: list[list[int]]) -> Array | None:
        """What is known of single documents, (K, N), with each group of clusters as one; None for rows."""
        return None

    def _order(self, losses: Array) -> Sequence[int]:
        """Which levels to try, given what each loses for each merge: those first that lose least."""
        return [int(i) for i in np.argsort(losses, kind="stable")]

    def _merge_more(self, laps: Laps, options: Options, through_losses: bool = True) -> bool:
        """Ascents from an ascent's clusters merged, also through losses; whether one beats the best model."""
        best = self._in_hand
        self._merged = None
        if "merge" not in self.moves or laps.total.K < 2:
            return False
        failures = 0
        for start, groups in self._levels(laps, TUNING.gamble if through_losses else 0.0):
            limit = min(self.options.max_laps, len(self.history) + TUNING.longest)
            early = self._gives_up_early(start.K)
            if failures == (TUNING.few_trials if early else TUNING.trials) or limit == len(self.history):
                break
            tol = options.tol * (1.0 if early else TUNING.fine)
            within = replace(options, max_laps=limit, tol=tol)
            patience = TUNING.patience if early else np.inf
            trial = self._laps(laps.model, (), within, self._in_hand, origin="merges", patience=patience)
            self._merged = trial
            trial.run(start, self._counts(laps, groups))
            failures = 0 if self._keep(self._in_hand, trial) > 0.0 else failures + 1
        return self.best is not best

    def _levels(self, laps: Laps, gamble: float) -> Iterator[tuple[Summary, list[list[int]]]]:
        """The summaries of fewer clusters, and the groups that become one.

        The level with the highest bound comes first, if responsibilities are only added; then those with fewer clusters.

        gamble : they may lose so many times what the parameters of a cluster cost
        """
        seen = self._survey(laps).seen
        found = levels_of(laps.model, seen.total, self._survey(laps).steps, seen.nodes)
        top = int(np.argmax([level.bound for level in found]))
        most = gamble * float(laps.model.parameter_cost(seen.total).mean())
        losses = np.array([(found[top].bound - level.bound) / (i + 1) for i, level in enumerate(found[top + 1 :])])
        order = [top + 1 + i for i in self._order(losses) if losses[i] < most]
        for level in (found[i] for i in ([top] if top > 0 else []) + order):
            yield level_start(laps.model, seen.total, seen.nodes, level)

    def _survey(self, laps: Laps) -> Surveyed[S]:
        """The merges of an ascent's clusters and a visit to all data, made once for each bound."""
        known = self._surveyed
        if known is None or known.laps is not laps or known.bound != laps.bound:
            steps = self._merges(laps.posterior)
            seen = self._look(laps, ancestry(steps, laps.total.K))
            known = self._surveyed = Surveyed(laps, laps.bound, steps, seen)
        return known
