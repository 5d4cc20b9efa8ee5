"""Restarts: words that begin in other topics, documents that leave topics, and documents that mix more at first."""

from dataclasses import dataclass, field, replace

import numpy as np

from ...data import BagSource
from ...model.documents import DocumentKind
from ...moves.better import WORTH
from ..laps import Laps
from ..state import Options
from .ascents import TopicAscents, alpha_of
from .word_restarts import words_restarted


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py and benchmarks/topics.py.

    Attributes
    ----------
    words : ascents in a row from words that begin in other topics
    documents : laps in which topics of documents are emptied on trial, of an ascent
    most_emptied : topics of a document that are, in such a lap
    mixing, most_mixed : times alpha with which ascents begin in which documents mix more, the first only where laps take long,
        and the largest alpha
    longest_mixed : the most laps of such an ascent before it settles
    """

    words: int = 4
    documents: int = 2
    most_emptied: int = 50
    mixing: tuple[float, ...] = (10.0, 1000.0)
    most_mixed: float = 1e4
    longest_mixed: int = 200


TUNING = Tuning()


@dataclass
class Restarts:
    """Restarts of the words and documents of ascents.

    search : the search that has the best model
    gained : nats that a round of restarts of all words and documents has gained at most
    """

    search: TopicAscents
    gained: float = field(default=0.0, init=False)

    def all(self, options: Options) -> None:
        """Restarts of documents and words, of the best model and then of its topics alone, documents mixing more at first.

        Documents of one topic each have been mixed before.  Where laps are fast, all of this again until it gains too little:
        what each restart gains may be little, and what all of them do is not.
        """
        again = True
        while again and self.possible():
            bound = self.search.outcome.bound
            self.of(self.search.outcome, options)
            if self.search.unmixed is None:
                self._all_mixed(options)
            gain = self.search.outcome.bound - bound
            self.gained = max(self.gained, gain)
            again = self.search.is_fast() and gain > WORTH * self.search.total.K

    def _all_mixed(self, options: Options) -> None:
        """Restarts of the best topics alone, documents mixing ever more at first."""
        search = self.search
        for times in TUNING.mixing if search.is_fast() and search.learns_alpha else TUNING.mixing[:1]:
            bound = -np.inf
            while self.possible() and search.outcome.bound > bound + WORTH * search.total.K:
                bound = search.outcome.bound
                self.mixed(times, options)

    def possible(self) -> bool:
        """Whether the best model has topics to begin in, and ascents may follow."""
        return self.search.may_lap() and bool(self.search.moves) and self.search.total.K > 1

    def mixed(self, times: float, options: Options) -> float:
        """An ascent from the best topics alone with so many times their alpha, and restarts from there; its bound.

        Documents of few topics make alpha small, and a small alpha keeps them so: laps leave that optimum by little at a time.
        """
        search = self.search
        best = search.outcome
        first = search.with_alpha(best.model, min(times * alpha_of(best.model), TUNING.most_mixed))
        within = replace(options, max_laps=min(options.max_laps, len(search.history) + TUNING.longest_mixed))
        mixed = search.ascend(first, best.total.as_start, within, "documents mixed")
        if not mixed.converged and not mixed.beats(best):  # alpha comes down by little at a time
            return mixed.bound
        fine = search.speed.with_short_steps(search.options, best.total.K)
        mixed.polish(fine)
        self.documents(mixed)
        self.of(mixed, fine)
        return mixed.bound

    def of(self, laps: Laps, options: Options) -> None:
        """Words of an ascent begin in other topics, and documents leave topics, until neither gains anything."""
        bound = -np.inf
        while laps.bound > bound + WORTH * laps.total.K:
            bound = laps.bound
            laps = self.words(laps, options)
            self.documents(laps)
            self.search.keep(laps)

    def keep(self, trial: Laps, options: Options) -> bool:
        """Keep an excursion if it is better, after restarts if it is behind by less than these have gained; whether it is."""
        if self.search.keep(trial):
            return True
        best = self.search.outcome
        if trial.bound > best.bound - self.gained:
            self.of(trial, options)
        return self.search.outcome is not best

    def words(self, laps: Laps, options: Options) -> Laps:
        """The last ascent that gains from words that begin in other topics, the first from those of ``laps``."""
        search = self.search
        source = search.source
        if not isinstance(source, BagSource):
            return laps
        for _ in range(TUNING.words if search.moves else 0):
            counts = laps.counts
            if not search.may_lap() or counts is None or laps.total.K == 1:
                break
            start = words_restarted(laps.model, laps.total, source, counts, search.executor)
            if start is None:
                break
            again = search.ascend(laps.model, start, options, "words", counts=counts)
            gain = again.bound - laps.bound
            if gain > 0.0:
                laps = again
            if gain <= max(WORTH, options.tol) * laps.total.K:
                break
        return laps

    def documents(self, laps: Laps) -> None:
        """Laps of an ascent in which topics of documents are emptied on trial, until these gain little."""
        kind = laps.model.kind
        assert isinstance(kind, DocumentKind)
        sparse_kind = replace(kind, restarts=max(kind.restarts, TUNING.most_emptied))
        for _ in range(TUNING.documents if self.search.moves and laps.total.K > 1 else 0):
            if not self.search.may_lap() or not laps.remembers:
                break
            gain = laps.lap_as(sparse_kind)
            laps.polish(laps.options)
            if gain <= laps.options.tol * laps.total.K:
                break
