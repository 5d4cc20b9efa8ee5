"""Splits of topics, all promising ones at once: growth without annealing, and a last look for topics that are missing."""

from dataclasses import dataclass, replace

from ...model import Summary
from ..laps import Laps
from ..state import Options
from .ascents import TopicAscents
from .restarts import Restarts


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py and benchmarks/topics.py.

    Attributes
    ----------
    coarse : excursions of groups of rows are compared when settled to this multiple of the tolerance
    settle : laps before the topics of an excursion must pay
    worthwhile : an excursion that gains less than this multiple of the tolerance, for each topic, is the last
    tries : splits of settled topics, of documents drawn anew, that gain nothing, after which there are no more
    """

    coarse: float = 100.0
    settle: int = 12
    worthwhile: float = 30.0
    tries: int = 2


TUNING = Tuning()


@dataclass
class Splits:
    """Excursions from topics that are split in two.

    search : the search that has the best model
    """

    search: TopicAscents
    restarts: Restarts

    def run(self, start: Summary) -> None:
        """Search for topics of rows: ascents from ever more topics, compared before they have settled."""
        search = self.search
        coarse = replace(search.options, tol=TUNING.coarse * search.options.tol)
        self.while_better(search.begin(start, coarse, moves=search.moves), coarse)
        search.settle()

    def while_better(self, laps: Laps, options: Options) -> None:
        """Excursions from all promising splits at once of the topics of an ascent, then of the last excursion."""
        search = self.search
        while search.may_grow():
            start = search.split(laps)
            if start is None:
                break
            best = search.outcome
            settle = TUNING.settle
            trial = search.ascend(best.model, start, options, "splits", removes=True, settle=settle, draws=True)
            self.restarts.keep(trial, options)
            if search.outcome.bound - best.bound <= TUNING.worthwhile * search.options.tol * search.total.K:
                break
            laps = search.outcome

    def at_last(self) -> None:
        """Look once more for topics that the best model lacks, now that it has settled: all promising splits at once.

        Growth ends where a few more topics, annealed, are no better, and words and documents that begin elsewhere change what
        topics are worth.  So do those that begin elsewhere after splits, and splits are fitted to documents drawn by chance.
        """
        search = self.search
        in_vain = 0
        while in_vain < TUNING.tries and search.may_grow():
            laps = search.go_on(search.options, births=True)
            search.keep(laps)
            settled = search.outcome
            self.while_better(laps, search.options)
            in_vain += 1
            if search.outcome is not settled:
                in_vain = 0
                search.settle()
                self.restarts.all(search.options)
