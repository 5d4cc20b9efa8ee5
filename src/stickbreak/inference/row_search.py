"""The search for the clusters of a mixture: ascents with moves, merges through losses, births from odd rows, splits."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..likelihoods.features import entries
from ..model import Drawn, Summary
from ..moves.birth import propose_birth
from ..moves.sample import Draw, most_drawn, poor_targets
from .laps import Laps
from .merging import MergingSearch
from .sample_sizes import most_larger, sample_rows
from .search import GAMBLE, PSEUDO_COUNTS, Split
from .state import MOVED, Options
from .survey import Survey, survey


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_number.py (what is found) and benchmarks/many_rows.py (how soon).

    Attributes
    ----------
    coarse : excursions are compared when settled to this multiple of the tolerance
    share : where laps take long, or to this share of what the parameters of the clusters cost
    last_share : to which the search then settles in the end
    drift : share of the rows, by which counts of clusters may then still change in a lap
    settle : laps of one batch before the clusters of an excursion must pay
    quick_settle : the same for laps of several batches: the parameters take a step with each
    worthwhile : a round that gains less than this multiple of the tolerance, for each cluster, is the last
    nothing : nats: a change made in vain is not made again before so much was gained
    chance : times what parameters gain on rows of one cluster: what a split must gain, to be worth an excursion
    fast : numbers that a lap looks at, beyond which laps take long, with as many clusters as there are
    to_come : or with so many, since a search that begins with few may find more
    sampled : the same, beyond which as many clusters as on a sample are not looked for again in every way
    vast : the same, beyond which what a telling sample shows is not looked for again: each lap takes minutes
    sparse : a number that a sparse row stores takes as long as so many numbers of a dense row
    telling : rows of a sample, for each cluster, in which splits and merges that pay show
    """

    coarse: float = 200.0
    share: float = 5e-4
    last_share: float = 1e-4
    drift: float = 0.01
    settle: int = 12
    quick_settle: int = 6
    worthwhile: float = 30.0
    nothing: float = 0.1
    chance: float = 1.5
    fast: int = 1 << 30
    to_come: int = 32
    sampled: int = 1 << 24
    vast: int = 1 << 37
    sparse: int = 32
    telling: int = 10_000


TUNING = Tuning()


@dataclass
class Change:
    """A change of the model in hand that no lap finds.

    attempt : makes it, of the clusters of an ascent, and says whether that bettered the best model
    in_vain : the bound at which it last did not help
    """

    attempt: Callable[[Laps, Options], bool]
    in_vain: float = -np.inf

    def was_in_vain(self, laps: Laps) -> bool:
        """Whether it did not help when the bound was about as high."""
        return laps.bound - self.in_vain < TUNING.nothing


class Changes(NamedTuple):
    """The changes of a round, in the order in which they are tried where laps are quick."""

    merges: Change
    births: Change
    splits: Change
    fine_splits: Change
    smoothing: Change


@dataclass
class RowSearch(MergingSearch[Survey]):
    """Find the best mixture that moves can reach (see `Search` and `MergingSearch`).

    A search of many rows begins on a sample.  An ascent with moves is followed by rounds of the changes that no lap can find,
    each kept only if the ELBO of the whole data set is higher in the end:

    - merges through losses: clusters are agglomerated, the best pair each time, down to one; ascents from the numbers of
      clusters that promise most show whether the pieces of one cluster are better as one where no single merge pays;
    - births from the rows that each cluster explains worst, among which are those of clusters too rare for a sample;
    - splits: every cluster with a chance is split in two, laps go on until the pieces have settled, and what does not pay
      is merged or deleted; when nothing else helps, also those that only samples as large as clusters need can show;
    - smoothing: of categories, laps under a smoothed prior, after which the prior is again as it was (`Likelihood.smoothed`),
      from the clusters in hand, then from their splits.

    After a change, and after a round without any, all moves are tried again, whatever has failed before.  The search ends
    when that gains next to nothing, too, or changes no cluster where laps take long.  Where they do and there are as many
    clusters as on the sample, only births and splits from larger samples are tried, since the search there has tried all else.
    Where laps take minutes and the sample had ten thousand rows of each cluster, only births from the rows that clusters
    explain worst are, which a sample cannot show.
    """

    _found_on_sample: int = 0  # clusters
    _rows_of_sample: int = 0

    @cached_property
    def _changes(self) -> Changes:
        """The changes that rounds consist of."""
        return Changes(
            merges=Change(self._merge_more),
            births=Change(self._give_birth),
            splits=Change(self._split_all),
            fine_splits=Change(self._split_again),
            smoothing=Change(self._smooth),
        )

    def run(self, start: Summary) -> None:
        """Search from the parameters that ``start`` implies; the outcome is ``best``."""
        self.begin(start)
        self._improve()
        last = self.options
        if self._takes_long(self._in_hand.total.K):
            last = replace(last, share=TUNING.last_share)
        self._in_hand.polish(last)
        if not self._changes.merges.was_in_vain(self._in_hand) and self._merge_more(self._in_hand, last):
            self._in_hand.polish(last)

    def _improve(self) -> None:
        """Rounds of changes, until one gains next to nothing."""
        gain = np.inf
        least = 0.0
        while gain > least and self._laps_left > 0:
            before = self._in_hand
            least = self._worthwhile(before)
            bound = before.bound
            counts = before.total.N
            coarse = self._coarse(before.total.K)
            self._round(coarse)
            if self._gain(bound, counts) <= least and not self._known(self._in_hand.total.K):
                self._again(coarse, sys.maxsize)
            gain = self._gain(bound, counts)

    def _worthwhile(self, best: Laps) -> float:
        """What a round must gain for another: where laps take long, as much as the parameters of a cluster cost."""
        least = TUNING.worthwhile * self.options.tol * best.total.K
        if not self._takes_long(best.total.K):
            return least
        return max(least, float(best.posterior.cost.mean()))

    def _gain(self, bound: float, counts: NDArray[np.floating]) -> float:
        """What was gained since a bound; nothing where laps take long and the clusters are those that had these counts."""
        best = self._in_hand
        N = best.total.N
        same = self._takes_long(len(N)) and len(N) == len(counts)
        if same and np.abs(np.sort(N) - np.sort(counts)).max() <= MOVED * N.sum():
            return 0.0
        return best.bound - bound

    def begin(self, start: Summary) -> None:
        """Search on a sample, where there are many rows, and ascend once: what comes before the rounds."""
        rows = sample_rows(self.source.n_rows, self.source.row_size, self.model.likelihood.n_statistics)
        if start.K == 1 and self._may_grow() and rows > 0 and self._laps_left > 1:
            start = self._begin_with(self._sampled(rows, self.options), start)
            self._rows_of_sample = rows
            self._found_on_sample = start.K
        self._begin(start, self._coarse(start.K))

    def _coarse(self, K: int) -> Options:
        """How well ascents with K clusters settle before they are compared."""
        coarse = replace(self.options, tol=TUNING.coarse * self.options.tol)
        return replace(coarse, share=TUNING.share, moved=TUNING.drift) if self._takes_long(K) else coarse

    def _begin(self, start: Summary, options: Options) -> None:
        """The first ascent.

        Births fail once only while learning waits, since the prior bars most, and where a sample has shown the clusters.
        """
        tries = 1 if options.learn_late or self._known(start.K) else sys.maxsize
        self.best = self._laps(self.model, self.moves, options, tries=tries, many=self._found_on_sample == 0)
        self.best.run(start)

    def _known(self, K: int) -> bool:
        """Whether as many clusters were found on a sample, or as many as there are to find, and laps are not the shortest."""
        return self._numbers(K) > TUNING.sampled and (self._found_on_sample == K or self._has_been_told(K))

    def _has_been_told(self, K: int) -> bool:
        """Whether laps take minutes, and a sample has shown all that one can show."""
        return self._numbers(K) > TUNING.vast and self._rows_of_sample >= TUNING.telling * K

    def _gives_up_early(self, K: int) -> bool:
        return self._takes_long(K)

    def _takes_long(self, K: int) -> bool:
        """Whether laps with K clusters take long."""
        return self._numbers(max(K, TUNING.to_come)) > TUNING.fast

    def _numbers(self, K: int) -> int:
        """The numbers that a lap looks at."""
        return self.source.n_rows * K * self._row_numbers

    @cached_property
    def _row_numbers(self) -> int:
        """The numbers of a row that a lap looks at for each cluster: of sparse features those stored, which take longer."""
        likelihood = self.model.likelihood
        return min(likelihood.n_statistics, TUNING.sparse * entries(likelihood, self.source.row_size))

    def _round(self, options: Options) -> None:
        """Every change once; where laps take long, splits come before merges through losses, and a change ends the round."""
        every = self._changes
        long = self._takes_long(self._in_hand.total.K)
        for change in (every.births, every.splits, every.merges, every.fine_splits) if long else every:
            best = self._in_hand
            before = best.bound
            if change.was_in_vain(best):
                continue
            if change.attempt(best, options):
                self._again(options)
                if long:
                    return
            else:
                change.in_vain = before

    def _again(self, options: Options, tries: int = 1) -> None:
        """Ascend from the best model with all moves, whatever has failed before; what fails so often is given up."""
        best = self._in_hand
        if self._laps_left <= 0:
            return
        again = self._laps(best.model, self.moves, options, best, origin="again", tries=tries)
        again.run(best.total)
        self._keep(best, again)

    def _merge_more(self, laps: Laps, options: Options, through_losses: bool = True) -> bool:
        return not self._known(laps.total.K) and super()._merge_more(laps, options, through_losses)

    def _give_birth(self, laps: Laps, options: Options) -> bool:
        """Births from the rows that each cluster explains worst, verified like others; the ascent goes on with them."""
        if "birth" not in self.moves or laps.model.max_clusters <= laps.total.K:
            return False
        poor = self._survey(laps).seen.poor
        rng = self.rng.spawn(1)[0]
        targets = poor_targets(laps.model, laps.total, laps.identities, self.source, laps.drawn, poor, rng)
        births = self.executor.map(partial(propose_birth, laps.model), targets)
        promising = [birth for birth in births if birth.estimate > 0.0]
        if promising or not self._has_been_told(laps.total.K):
            laps.offer(promising)
            laps.polish(options)
        return False

    def _split_all(self, laps: Laps, options: Options) -> bool:
        """An excursion from all clusters split that have a chance; whether it, or its clusters merged, beat the best model."""
        may = self._may_grow() and not self._known(laps.total.K)
        return may and self._split_from(laps, self._promising_splits(laps), options)

    def _split_again(self, laps: Laps, options: Options) -> bool:
        """The same of clusters whose samples are too small to tell splits that pay, from larger ones."""
        may = self._may_grow() and not self._has_been_told(laps.total.K)
        drawn = self._survey(laps).seen.drawn if may else []
        return len(drawn) > 0 and self._split_from(laps, self._telling_splits(laps, drawn), options)

    def _smooth(self, laps: Laps, options: Options) -> bool:
        """Excursions after laps under a smoothed prior, from the clusters in hand, then from splits; whether one was better."""
        K = laps.total.K
        smooths = laps.model.likelihood.smoothed(PSEUDO_COUNTS[0]) is not laps.model.likelihood
        if not smooths or K == 1 or not self._may_grow() or self._takes_long(K) or self._known(K):
            return False
        return self._from_smoothed(laps, laps.total, options) or self._from_smoothed(laps, self._split(laps), options)

    def _split(self, laps: Laps) -> Summary | None:
        """All clusters split that have a chance."""
        return self._with_splits(laps, self._fitted_splits(laps, laps.drawn, thorough=True))

    def _from_smoothed(self, laps: Laps, clusters: Summary | None, options: Options) -> bool:
        """An excursion from clusters after laps under a smoothed prior; whether it beat the best model."""
        if clusters is None or self._laps_left <= 0:
            return False
        start = self._smoothed(laps.model, clusters, options)
        trial = self._laps(laps.model, self._removals, options, self._in_hand, settle=TUNING.settle, origin="smoothed")
        trial.run(start)
        return self._keep(self._in_hand, trial) > 0.0

    def _split_from(self, laps: Laps, promising: list[Split], options: Options) -> bool:
        """An excursion from these splits; whether it, or its clusters merged, beat the best model."""
        start = self._with_splits(laps, promising)
        if start is None:
            return False
        settle = TUNING.settle if options.n_batches == 1 else TUNING.quick_settle
        trial = self._laps(laps.model, self._removals, options, self._in_hand, settle=settle, origin="splits")
        trial.run(start)
        kept = self._keep(self._in_hand, trial) > 0.0
        return self._merge_more(trial, options, not self._takes_long(trial.total.K)) or kept

    def _promising_splits(self, laps: Laps) -> list[Split]:
        """Splits in two that have a chance, and explain their rows better than rows of one cluster can be, by chance."""
        return self._telling_splits(laps, laps.drawn)

    def _telling_splits(self, laps: Laps, drawn: Sequence[Drawn]) -> list[Split]:
        """The same, fitted to these rows."""
        return self._beyond_chance(laps, self._fitted_splits(laps, drawn, thorough=True), drawn)

    def _beyond_chance(self, laps: Laps, promising: list[Split], drawn: Sequence[Drawn]) -> list[Split]:
        """The splits that explain rows drawn better than rows of one cluster can be, by chance.

        Parameters fitted to rows of one cluster explain them better by half a nat each (`Model.by_chance`), for every row that
        a row of the sample stands for.
        """
        model = laps.model
        cost = laps.posterior.cost
        by_chance = model.by_chance(laps.total)
        if by_chance is None:
            return promising
        each = [_rows_each(drawn, identity) for identity in laps.identities]
        return [
            (gain, k, children)
            for gain, k, children in promising
            if gain + model.parameter_cost(children).sum() - cost[k] > TUNING.chance * by_chance[k] * each[k]
        ]

    def _look(self, laps: Laps, parents: NDArray[np.int64]) -> Survey:
        draw = None
        if "birth" in self.moves and not self._has_been_told(laps.total.K):
            draw = self._larger_samples(laps)
        return survey(laps.model, laps.total, self.source, self.executor, parents, draw)

    def _larger_samples(self, laps: Laps) -> Draw | None:
        """How rows are drawn of clusters whose samples cannot tell a split that just pays from chance; None where all can.

        So many are drawn that they can tell a split that is just worth an excursion, or as many as have room.
        """
        model = laps.model
        N = laps.total.N
        by_chance = model.by_chance(laps.total)
        if by_chance is None:
            return None
        telling = TUNING.chance * by_chance / np.maximum(laps.posterior.cost, TUNING.nothing) * N
        most = min(most_drawn(model, self.source), most_larger(self.source.row_size, len(N)))
        usual = min(model.kind.sample_size, most)
        limits = np.where(telling > usual, np.minimum(telling / (1.0 - GAMBLE), most) / np.maximum(N, 1.0), 0.0)
        if not (limits > 0.0).any() or most == usual:
            return None
        return Draw(limits, int(self.rng.spawn(1)[0].integers(2**63)), np.array(laps.identities))


def _rows_each(drawn: Sequence[Drawn], identity: int) -> float:
    """How many rows each row drawn for a cluster stands for."""
    chosen = np.concatenate([part.chosen[part.owners == identity] for part in drawn])
    return max(1.0, float(chosen.mean())) if len(chosen) > 0 else 1.0
