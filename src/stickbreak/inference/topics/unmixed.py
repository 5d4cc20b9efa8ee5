"""Ascents from documents of one topic each, where a mixture of documents explains them about as well as topics do."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...data import SparseSource
from ...model import Summary
from ..state import Options
from . import ascents
from .annealing import Annealing
from .ascents import TopicAscents
from .one_topic import OneTopicEach, OneTopicSearch


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py and benchmarks/topics.py.

    Attributes
    ----------
    unmixed : alpha from which documents of one topic each begin
    fewest_unmixed : topics from which mixtures of documents are fitted first, then from twice as many, and so on
    """

    unmixed: float = 1e-4
    fewest_unmixed: int = 16


TUNING = Tuning()


@dataclass
class UnmixedAscents:
    """Excursions from mixtures of documents; the best mixture is kept with the search for it.

    search : the search that has the best model
    annealing : makes what mixtures begin with
    """

    search: TopicAscents
    annealing: Annealing
    _found: tuple[OneTopicSearch, OneTopicEach] | None = field(default=None, init=False)  # the best mixture

    def run(self, options: Options) -> None:
        """An ascent from documents of one topic each, where these explain about as much: laps hardly ever get there."""
        search = self.search
        assert isinstance(search.source, SparseSource)
        learn = tuple(name for name in (*options.learn, *options.learn_late) if name.startswith("likelihood."))
        mixtures = OneTopicSearch(search.model, search.source, search.session, Options(tol=options.tol, learn=learn))
        if not mixtures.has_a_chance(search.total, search.outcome.bound, search.rng.spawn(1)[0]):
            return
        found = mixtures.best(self._ever_more(), search.rng.spawn(1)[0])
        if found is None:
            return
        self._found = mixtures, found
        if found.topics.K > 1 or search.total.K == 1 or not search.is_fast():  # several topics gain more as they settle
            self._ascend(found, options)

    def run_at_last(self) -> bool:
        """The same from clusters that the mixture lacks, if it explains documents about as well as topics do.

        Whether an ascent from there is better.
        """
        search = self.search
        if self._found is None:
            return False
        mixtures, found = self._found
        if found.agreed or not mixtures.is_near(found.bound, search.outcome.bound):
            return False
        better = mixtures.with_births(found, search.rng.spawn(1)[0])
        if better is None and found.topics.K == 1 < search.total.K:
            better = found
        return better is not None and self._ascend(better, search.options)

    def _ascend(self, found: OneTopicEach, options: Options) -> bool:
        """An ascent from a mixture of documents; whether it beats the best model."""
        search = self.search
        best = search.outcome
        first = search.with_alpha(found.model, TUNING.unmixed)
        start = first.kind.start(found.topics)
        patience = ascents.TUNING.fresh_patience
        trial = search.ascend(first, start, options, "one topic each", counts=found.counts, patience=patience)
        search.keep(trial)
        search.merge_all(trial, options)
        if search.outcome is best:
            return False
        search.unmixed = first
        return True

    def _ever_more(self) -> Iterator[Summary]:
        """Annealed topics, twice as many each time."""
        many = TUNING.fewest_unmixed
        while many <= self.search.most:
            yield self.annealing.at_random(many).summary
            many *= 2
