"""The search for the clusters of a mixture: ascents with moves, merges through losses, births from odd rows, splits."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ..model import Summary
from ..moves.agglomeration import Step, ancestry, levels, merges, with_groups
from ..moves.birth import propose_birth
from ..moves.sample import poor_targets
from .laps import Laps, Options
from .search import Search
from .survey import Survey, survey

COARSE = 200.0  # excursions are compared when settled to this multiple of the tolerance
SETTLE = 12  # laps before the clusters of an excursion must pay
WORTHWHILE = 30.0  # a round that gains less than this multiple of the tolerance, for each cluster, is the last
NOTHING = 0.1  # nats: a change made in vain is not made again before so much was gained
GAMBLE = 10.0  # merges may lose so many times what the parameters of a cluster cost, before an ascent from there
TRIALS = 4  # numbers of clusters in a row from which an ascent did not pay, after which no other is tried
FEW_TRIALS = 2  # the same where laps take long
PATIENCE = 10.0  # laps, each like the last, in which such an ascent must reach the model in hand, where laps take long
LONGEST = 60  # laps of such an ascent
FAST = 1 << 24  # numbers that a lap looks at, beyond which laps take long
FINE = 0.1  # of the tolerance, to which ascents from merged clusters settle where laps do not take long
FEWEST_ROWS = 5000  # of a sample
ROWS_PER_STATISTIC = 100  # of a sample, at least
SMALLER = 4  # a search of many rows begins on one in so many
MOST_NUMBERS = 1 << 26  # of a sample: 512 MiB


def sample_rows(N: int, row_size: int, F: int) -> int:
    """Rows of the sample on which a search of N rows of so many numbers and F statistics begins; none where that is no help."""
    fewest, most = max(FEWEST_ROWS, ROWS_PER_STATISTIC * F), MOST_NUMBERS // max(row_size, 1)
    return min(max(fewest, N // SMALLER), most) if fewest <= most and SMALLER * fewest < N else 0


class Surveyed(NamedTuple):
    """The merges of an ascent's clusters down to one, and a survey of all rows, at a bound of that ascent."""

    laps: Laps
    bound: float
    steps: list[Step]
    survey: Survey


@dataclass
class RowSearch(Search):
    """Find the best mixture that moves can reach (see `Search`).

    A search of many rows begins on a sample.  An ascent with moves is followed by rounds of the changes that no lap can find,
    each kept only if the ELBO of the whole data set is higher in the end:

    - merges through losses: clusters are agglomerated, the best pair each time, down to one; ascents from the numbers of
      clusters that promise most show whether the pieces of one cluster are better as one where no single merge pays;
    - births from the rows that each cluster explains worst, among which are those of clusters too rare for a sample;
    - splits: every cluster with a chance is split in two, laps go on until the pieces have settled, and what does not pay
      is merged or deleted.

    After a change, and after a round without any, all moves are tried again, whatever has failed before.  The search ends
    when that gains next to nothing, too.
    """

    _found_on_sample: int = 0  # clusters
    _in_vain: list[float] = field(default_factory=lambda: [-np.inf] * 3)  # bounds at which each change did not help
    _surveyed: Surveyed | None = None  # the last survey

    def run(self, start: Summary) -> None:
        """Search from the parameters that ``start`` implies; the outcome is ``best``."""
        coarse = replace(self.options, tol=COARSE * self.options.tol)
        rows = sample_rows(self.source.n_rows, self.source.row_size, self.model.likelihood.n_statistics)
        if start.K == 1 and "birth" in self.moves and rows > 0:
            start = self._on_sample(start, rows)
        self._begin(start, coarse)
        assert self.best is not None
        gain, least = np.inf, 0.0
        while gain > least and len(self.history) < self.options.max_laps:
            before, least = self.best.bound, WORTHWHILE * self.options.tol * self.best.total.K
            self._round(coarse)
            if self.best.bound - before <= least:
                self._again(coarse, self._tries(self.best.total.K))
            gain = self.best.bound - before
        self.best.polish(self.options)
        if self.best.bound - self._in_vain[0] >= NOTHING and self._merge_more(self.best, self.options):
            self.best.polish(self.options)

    def _begin(self, start: Summary, options: Options) -> None:
        """The first ascent."""
        best = self._laps(self.model, self.moves, options)
        self.best, best.schedule.tries = best, self._tries(start.K)
        best.run(start)

    def _on_sample(self, start: Summary, rows: int) -> Summary:
        """The outcome of a search on a sample, which may begin on a smaller one, as if of all rows."""
        sample = self.source.sample(rows, self.rng.spawn(1)[0])
        options = replace(self.options, n_batches=1)
        search = type(self)(self.model, sample, self.moves, self.threads, self.rng.spawn(1)[0], options)
        search.run(start)
        self.model, self._found_on_sample = search.found, search.total.K
        return search.total * (self.source.total_weight / sample.total_weight)

    def _tries(self, K: int) -> int:
        """How often births of K clusters may fail."""
        return 1 if self._known(K) else sys.maxsize

    def _known(self, K: int) -> bool:
        """Whether as many clusters were found on a sample, and laps take long."""
        return self._found_on_sample == K and self._is_large(K)

    def _is_large(self, K: int) -> bool:
        return self.source.n_rows * K * self.model.likelihood.n_statistics > FAST

    def _round(self, options: Options) -> None:
        for kind, change in enumerate((self._merge_more, self._give_birth, self._split_all)):
            best = self.best
            assert best is not None
            before = best.bound
            if before - self._in_vain[kind] < NOTHING:
                continue
            if change(best, options):
                self._again(options)
            else:
                self._in_vain[kind] = before

    def _again(self, options: Options, tries: int = 1) -> None:
        """Ascend from the best model with all moves, whatever has failed before; what fails so often is given up."""
        best = self.best
        assert best is not None
        if len(self.history) >= self.options.max_laps:
            return
        again = self._laps(best.model, self.moves, options, best)
        again.schedule.tries = tries
        again.run(best.total)
        self._keep(best, again)

    def _merge_more(self, laps: Laps, options: Options) -> bool:
        """Ascents from an ascent's clusters merged, through losses; whether one beats the best model."""
        best = self.best
        assert best is not None
        if "merge" not in self.moves or laps.total.K < 2:
            return False
        failures = 0
        for start in self._levels(laps):
            limit = min(self.options.max_laps, len(self.history) + LONGEST)
            large = self._is_large(start.K)
            if failures == (FEW_TRIALS if large else TRIALS) or limit == len(self.history):
                break
            tol = options.tol * (1.0 if large else FINE)
            trial = self._laps(laps.model, (), replace(options, max_laps=limit, tol=tol), self.best)
            trial.patience = PATIENCE if large else np.inf
            trial.run(start)
            failures = 0 if self._keep(self.best or best, trial) > 0.0 else failures + 1
        return self.best is not best

    def _levels(self, laps: Laps) -> Iterator[Summary]:
        """The summaries of fewer clusters, those first that lose least for each merge if responsibilities are only added."""
        seen = self._survey(laps)
        total = seen.survey.total
        now, *fewer = levels(laps.model, total, seen.steps, seen.survey.entropies)
        most = GAMBLE * float(laps.model.parameter_cost(total).mean())
        losses = [(now.bound - level.bound) / (total.K - len(level.groups)) for level in fewer]
        for i in np.argsort(losses, kind="stable"):
            if losses[i] < most:
                yield laps.model.ordered(with_groups(total, fewer[i].groups))

    def _give_birth(self, laps: Laps, options: Options) -> bool:
        """Births from the rows that each cluster explains worst, verified like others; the ascent goes on with them."""
        if "birth" not in self.moves or laps.model.max_clusters <= laps.total.K:
            return False
        poor, rng = self._survey(laps).survey.poor, self.rng.spawn(1)[0]
        targets = poor_targets(laps.model, laps.total, laps.schedule.ids, self.source, laps.drawn, poor, rng)
        births = self.threads.map(partial(propose_birth, laps.model), targets)
        laps.offer([birth for birth in births if birth.estimate > 0.0])
        laps.polish(options)
        return False

    def _split_all(self, laps: Laps, options: Options) -> bool:
        """An excursion from all clusters split that have a chance; whether it, or its clusters merged, beat the best model."""
        may = "birth" in self.moves and not self._known(laps.total.K) and len(self.history) < self.options.max_laps
        start = self._split(laps) if may else None
        if start is None:
            return False
        trial = self._laps(laps.model, self._removals, options, self.best, SETTLE)
        trial.run(start)
        kept = self._keep(self.best or laps, trial) > 0.0
        return self._merge_more(trial, options) or kept

    def _survey(self, laps: Laps) -> Surveyed:
        """The merges of an ascent's clusters and a survey of all rows, made once for each bound."""
        known = self._surveyed
        if known is None or known.laps is not laps or known.bound != laps.bound:
            steps = list(merges(laps.model, laps.total, laps.model.log_marginal(laps.total)))
            seen = survey(laps.model, laps.total, self.source, self.threads, ancestry(steps, laps.total.K))
            known = self._surveyed = Surveyed(laps, laps.bound, steps, seen)
        return known
