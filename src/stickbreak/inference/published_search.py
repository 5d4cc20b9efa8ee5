"""The search for the clusters of a mixture with the births of Thesis 4.2: one ascent, as published."""

from dataclasses import dataclass, replace

from ..model import Summary
from ..moves import BatchBirth
from .search import Search


@dataclass
class PublishedSearch(Search):
    """One ascent of laps that are not extrapolated, with births that single batches decide on (see `BatchBirth`).

    Hyperparameters are learnt once no more clusters are born: a prior learnt from one cluster bars every birth.
    """

    birth: BatchBirth = BatchBirth()
    draws: bool = False

    def run(self, start: Summary) -> None:
        """Lap from the parameters that ``start`` implies; the outcome is ``best``."""
        options = replace(self.options, accelerate=False)
        late = replace(options, learn=(), learn_late=(*options.learn, *options.learn_late))
        self.best = self._laps(self.model, self.moves, late)
        self.best.birth = self.birth
        self.best.run(start)
        if late.learn_late:
            self.best.polish(late.at_last)
