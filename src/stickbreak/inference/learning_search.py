"""The search for the clusters of a mixture whose prior is learnt along with them."""

from dataclasses import dataclass, replace

from ..model import Summary
from .init import from_seeds
from .laps import Options
from .row_search import RowSearch

SEEDS = 10  # at least, from which the first ascent with a prior that is learnt begins
MORE = 2  # times as many seeds as clusters were found


@dataclass
class LearningSearch(RowSearch):
    """Find the best mixture and its prior, from one cluster where the start is that.

    A prior learnt from one cluster makes that cost nothing and bars every split, and the default prior may bar what a learnt
    one allows.  So where a search begins, on the smallest sample, several ascents compete, and that with the highest bound
    goes on: from one cluster with the prior as it is, then learnt; and from distant rows, twice as many as there are clusters
    in hand, learning from the first lap, until more do not help.  The rounds that follow learn all along.
    """

    def _begin(self, start: Summary, options: Options) -> None:
        if start.K > 1 or self._found_on_sample > 0 or not options.learn or "birth" not in self.moves:
            super()._begin(start, options)
            return
        super()._begin(start, replace(options, learn=()))
        self._again(self.options)  # settled, so that others beat it by what their clusters must be worth
        gain = 1.0
        while gain > 0.0 and len(self.history) < self.options.max_laps:
            gain = self._from_seeds(options)

    def _from_seeds(self, options: Options) -> float:
        """An ascent from distant rows; what it gained, zero if the best model stays."""
        best = self.best
        assert best is not None
        seeds = min(max(SEEDS, MORE * best.total.K), self.model.max_clusters)
        start = from_seeds(self.model, self.source, seeds, True, self.rng.spawn(1)[0])
        trial = self._laps(self.model, self.moves, options, best)
        trial.run(self.model.ordered(start))
        return self._keep(best, trial)
