"""The search for the clusters of a mixture: ascents with moves, merges through losses, births from odd rows, splits."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..model import Summary
from ..moves.agglomeration import ancestry, levels, merges, with_groups
from ..moves.birth import propose_birth
from ..moves.sample import poor_targets
from ..moves.verify import WORTH
from .laps import Laps, Options
from .search import Search
from .survey import survey

COARSE = 200.0  # excursions are compared when settled to this multiple of the tolerance
SETTLE = 12  # laps before the clusters of an excursion must pay
WORTHWHILE = 30.0  # a round that gains less than this multiple of the tolerance, for each cluster, is the last
GAMBLE = 10.0  # merges may lose so many times what the parameters of a cluster cost, before an ascent from there
TRIALS, FEW_TRIALS = (
    4,
    2,
)  # numbers of clusters in a row from which an ascent did not pay, after which no other is tried
PATIENCE = 10.0  # laps, each like the last, in which such an ascent must reach the model in hand
LONGEST = 60  # laps of such an ascent
FAST, FINE = (
    1 << 24,
    0.1,
)  # numbers a lap looks at, up to which all laps are patient, and to this share of the tolerance
FEWEST_ROWS, ROWS_PER_STATISTIC = 5000, 200  # of a sample
SMALLER = 4  # a search of many rows begins on one in so many


@dataclass
class RowSearch(Search):
    """Find the best mixture that moves can reach (see `Search`).

    A round begins with an ascent with moves, from the result of the last round, whose failures are forgotten.  What follows
    are the changes that no lap of it can find, each kept only if the ELBO of the whole data set is higher in the end:

    - merges through losses: clusters are agglomerated, the best pair each time, down to one; ascents from the numbers of
      clusters that promise most show whether the pieces of one cluster are better as one where no single merge pays;
    - births from the rows that each cluster explains worst, among which are those of clusters too rare for a sample;
    - splits: every cluster with a chance is split in two, laps go on until the pieces have settled, and what does not pay
      is merged or deleted.

    The search ends with the first round that gains next to nothing.
    """

    _looked_at: tuple[Laps, float] | None = None  # the ascent whose clusters were merged last, and its bound then

    def run(self, start: Summary) -> None:
        """Search from the parameters that ``start`` implies; the outcome is ``best``."""
        coarse = replace(self.options, tol=COARSE * self.options.tol)
        if start.K == 1 and "birth" in self.moves and self.source.n_rows > SMALLER * self._fewest:
            start = self._on_sample(start)
        self.best = self._laps(self.model, self.moves, coarse)
        self.best.run(start)
        gain, least = np.inf, 0.0
        while gain > least and len(self.history) < self.options.max_laps:
            before, least = self.best.bound, WORTHWHILE * self.options.tol * self.best.total.K
            self._round(coarse)
            if self.best.bound - before <= least:
                self._again(coarse, sys.maxsize)
            gain = self.best.bound - before
        self.best.polish(self.options)
        if self._merge_more(self.best, self.options):
            self.best.polish(self.options)

    def _on_sample(self, start: Summary) -> Summary:
        """The outcome of a search on a sample, which may begin on a smaller one, as if of all rows."""
        sample = self.source.sample(max(self._fewest, self.source.n_rows // SMALLER), self.rng.spawn(1)[0])
        options = replace(self.options, n_batches=1)
        search = RowSearch(self.model, sample, self.moves, self.threads, self.rng.spawn(1)[0], options)
        search.run(start)
        self.model = search.found
        return search.total * (self.source.total_weight / sample.total_weight)

    @property
    def _fewest(self) -> int:
        """The fewest rows of a sample."""
        return max(FEWEST_ROWS, ROWS_PER_STATISTIC * self.model.likelihood.n_statistics)

    def _round(self, options: Options) -> None:
        for change in (self._merge_more, self._give_birth, self._split_all):
            assert self.best is not None
            if change(self.best, options):
                self._again(options)

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
        known = self._looked_at is not None and self._looked_at[0] is laps and laps.bound - self._looked_at[1] < 0.1 * WORTH
        if known or "merge" not in self.moves or laps.total.K < 2:
            return False
        failures, self._looked_at = 0, (laps, laps.bound)
        for start in self._levels(laps):
            limit = min(self.options.max_laps, len(self.history) + LONGEST)
            fast = self.source.n_rows * start.S.size <= FAST
            if failures == (TRIALS if fast else FEW_TRIALS) or limit == len(self.history):
                break
            tol = options.tol * (FINE if fast else 1.0)
            trial = self._laps(laps.model, (), replace(options, max_laps=limit, tol=tol), self.best)
            trial.patience = np.inf if fast else PATIENCE
            trial.run(start)
            failures = 0 if self._keep(self.best or best, trial) > 0.0 else failures + 1
        return self.best is not best

    def _levels(self, laps: Laps) -> Iterator[Summary]:
        """The summaries of fewer clusters, those first that lose least for each merge if responsibilities are only added."""
        steps = list(merges(laps.model, laps.total, laps.model.log_marginal(laps.total)))
        seen = survey(laps.model, laps.total, self.source, self.threads, ancestry(steps, laps.total.K))
        now, *fewer = levels(laps.model, seen.total, steps, seen.entropies)
        most = GAMBLE * float(laps.model.parameter_cost(seen.total).mean())
        losses = [(now.bound - level.bound) / (laps.total.K - len(level.groups)) for level in fewer]
        for i in np.argsort(losses, kind="stable"):
            if losses[i] < most:
                yield laps.model.ordered(with_groups(seen.total, fewer[i].groups))

    def _give_birth(self, laps: Laps, options: Options) -> bool:
        """Births from the rows that each cluster explains worst, verified like others; the ascent goes on with them."""
        if "birth" not in self.moves or laps.model.max_clusters <= laps.total.K:
            return False
        poor = survey(laps.model, laps.total, self.source, self.threads, ancestry((), laps.total.K)).poor
        rng = self.rng.spawn(1)[0]
        targets = poor_targets(laps.model, laps.total, laps.schedule.ids, self.source, laps.drawn, poor, rng)
        births = self.threads.map(partial(propose_birth, laps.model), targets)
        laps.offer([birth for birth in births if birth is not None])
        laps.polish(options)
        return False

    def _split_all(self, laps: Laps, options: Options) -> bool:
        """An excursion from all clusters split that have a chance; whether it, or its clusters merged, beat the best model."""
        start = self._split(laps) if "birth" in self.moves else None
        if start is None or len(self.history) >= self.options.max_laps:
            return False
        trial = self._laps(laps.model, self._removals, options, self.best, SETTLE)
        trial.run(start)
        assert self.best is not None
        kept = self._keep(self.best, trial) > 0.0
        return self._merge_more(trial, options) or kept
