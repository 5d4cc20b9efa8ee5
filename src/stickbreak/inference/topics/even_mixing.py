"""Topics that documents mix evenly: ascents that hold a large alpha until words have settled in them."""

from dataclasses import dataclass, replace

import numpy as np

from . import growth, restarts
from .annealing import Annealing
from .ascents import ALPHA, TopicAscents
from .restarts import Restarts


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py and benchmarks/topics.py.

    Attributes
    ----------
    even : pseudo-counts of each topic in a document, where documents mix topics evenly
    fewest_even : topics of such an excursion, at least
    near_even : nats a document: one that is further below before alpha is learnt is the last
    """

    even: float = 1.0
    fewest_even: int = 4
    near_even: float = 3.0


TUNING = Tuning()


@dataclass
class EvenMixing:
    """Excursions from topics that documents mix evenly.

    search : the search that has the best model
    """

    search: TopicAscents
    annealing: Annealing
    restarts: Restarts

    def run(self, K: int, patience: float) -> None:
        """Excursions from ever fewer topics than K, while these get better and are not too far below."""
        bound = -np.inf
        better = True
        while better and growth.TUNING.growth * TUNING.fewest_even <= K and self.search.may_lap():
            K = int(np.ceil(K / growth.TUNING.growth))
            found = self._excursion(K, patience)
            better = found > bound
            bound = found

    def _excursion(self, K: int, patience: float) -> float:
        """The bound of an ascent from so many annealed topics that documents mix evenly at first; -inf if that is hopeless.

        Alpha is not learnt until words have begun in other topics: it would follow topics that are poor as yet, of which
        documents seem to need few.
        """
        search = self.search
        best = search.outcome
        alpha = TUNING.even * K
        annealed = self.annealing.warm(self.annealing.nothing(K), alpha)
        options = search.speed.compared(search.options, K)
        most = min(options.max_laps, len(search.history) + restarts.TUNING.longest_mixed)
        held = replace(options, max_laps=most, learn=tuple(name for name in options.learn if name != ALPHA))
        first = search.with_alpha(search.model, alpha)
        trial = search.ascend(first, annealed.summary, held, "mixed evenly", patience=patience)
        if trial.gave_up:
            return -np.inf
        trial = self.restarts.words(trial, held)
        if trial.bound < best.bound - TUNING.near_even * search.source.n_rows:
            return -np.inf
        trial.polish(options)
        trial = self.restarts.words(trial, options)
        self.restarts.documents(trial)
        trial = self.restarts.words(trial, options)
        search.keep(trial)
        return trial.bound
