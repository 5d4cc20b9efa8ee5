"""The search for the number of clusters: an ascent with verified moves, then excursions."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..data import ArraySource
from ..model import Model, Summary
from ..moves import Schedule
from ..moves.birth import fit_children
from ..moves.sample import targets
from .executor import Threads
from .laps import Laps, Options
from .trace import Lap

GAMBLE = 0.7  # a split may cost this share of what its parameters cost, and still be worth an excursion
COARSE = 100.0  # excursions are compared when settled to this multiple of the tolerance
SETTLE = 12  # laps before the clusters of an excursion must pay
WORTHWHILE = 30.0  # an excursion that gains less than this multiple of the tolerance is the last


@dataclass
class Search:
    """Find the best model that moves can reach.

    Births, merges and deletes that pay at once are accepted lap by lap.  When no more do, the clusters have settled into a
    local optimum in which no single split pays, although many splits together would once the rows have rearranged
    themselves.  An excursion splits every cluster with a chance, laps until the pieces have settled, merges what does not
    pay, and is kept if the ELBO of the whole data set is then higher, or else undone.  So the bound of the model in hand
    never goes down.
    """

    model: Model
    source: ArraySource
    moves: tuple[str, ...]
    threads: Threads
    rng: np.random.Generator
    options: Options
    on_lap: Callable[[Lap], None] = lambda lap: None
    history: list[Lap] = field(default_factory=list)
    best: Laps | None = None
    trial: Laps | None = None

    def run(self, start: Summary) -> None:
        """Search from the parameters that ``start`` implies; the outcome is ``best``."""
        coarse = replace(self.options, tol=COARSE * self.options.tol)
        self.best = self._laps(self.model, self.moves, coarse)
        self.best.run(start)
        while "birth" in self.moves and len(self.history) < self.options.max_laps:
            trial_start = self._split(self.best)
            if trial_start is None:
                break
            trial = self.trial = self._laps(
                self.best.model, tuple(m for m in self.moves if m != "birth"), coarse, floor=self.best, settle=SETTLE
            )
            trial.run(trial_start)
            gain = trial.bound - self.best.bound
            if not trial.beats(self.best):
                break
            trial.floor, self.best = None, trial
            if gain <= WORTHWHILE * self.options.tol * abs(self.best.bound):
                break
        self.best.polish(self.options)

    @property
    def outcome(self) -> Laps:
        """The ascent with the best model, also when the search was interrupted."""
        if self.best is None:
            raise RuntimeError("the search has not begun")
        return self.trial if self.trial is not None and self.trial.beats(self.best) else self.best

    @property
    def total(self) -> Summary:
        """The summary of the best model."""
        return self.outcome.total

    @property
    def found(self) -> Model:
        """The best model, with its hyperparameters as they were learnt."""
        return self.outcome.model

    @property
    def converged(self) -> bool:
        """Whether the search ended by itself."""
        return self.best is not None and self.best.converged

    def _laps(
        self, model: Model, moves: tuple[str, ...], options: Options, floor: Laps | None = None, settle: int = 0
    ) -> Laps:
        rng = self.rng.spawn(1)[0]  # of its own: how many laps one ascent takes must not change the next
        schedule = Schedule(moves, rng)
        return Laps(model, self.source, schedule, self.threads, rng, options, self.on_lap, self.history, floor, settle)

    def _split(self, laps: Laps) -> Summary | None:
        """The summary with every cluster split in two where that has a chance; None where it has not."""
        total, model = laps.total, laps.model
        samples = targets(total, laps.schedule.ids, self.source, laps.drawn, lambda k: 2, self.rng.spawn(1)[0])
        cost = model.parameter_cost(total)
        fits = self.threads.map(lambda target: fit_children(model, target), samples)
        hopeful = [
            (gain, t.cluster, children)
            for t, (children, gain) in zip(samples, fits)
            if gain > -GAMBLE * cost[t.cluster]
        ]
        hopeful = sorted(hopeful, key=lambda fit: -fit[0])[: max(0, model.allocation.max_clusters - total.K)]
        if not hopeful:
            return None
        start = total.take([k for k in range(total.K) if k not in {cluster for _, cluster, _ in hopeful}])
        for _, _, children in hopeful:
            start = start.exchange((), children)
        return model.ordered(start)
