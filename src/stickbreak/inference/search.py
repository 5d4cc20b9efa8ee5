"""What searches for the number of clusters, topics or states share: ascents, excursions, and the best model so far."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource
from ..model import Drawn, Model, Summary
from ..model.learning import OF_LIKELIHOOD
from ..moves import Schedule
from ..moves.birth import fit_children
from ..moves.sample import targets
from .executor import Executor, for_fits
from .laps import Laps, Result
from .session import NoJournal, Session
from .state import Options
from .trace import Lap

Array = NDArray[np.floating]
Split = tuple[float, int, Summary]  # gain, cluster and children

SMOOTHED = 30  # laps under a smoothed prior, at most
PSEUDO_COUNTS = (0.5, 0.25)  # of an outcome there: fewer keep clusters apart that more would make one
FEWEST = 0.5  # rows of a cluster after these
GAMBLE = 0.7  # a split may cost this share of what its parameters cost, and still be worth an excursion


@dataclass
class Search(ABC):
    """Find the best model that moves can reach.

    Births, merges and deletes that pay at once are accepted lap by lap.  When no more do, the clusters have settled into a
    local optimum, which excursions leave: ascents from a changed model, kept if the ELBO of the whole data set is then
    higher, or else undone.  So the bound of the model in hand never goes down.

    sample_rows : rows of the source, if that is a sample on which a larger search begins; 0 for all rows
    draws : whether laps draw rows to represent the clusters, which births and splits are fitted to, if an ascent is not told
    """

    model: Model
    source: ArraySource
    moves: tuple[str, ...]
    session: Session
    rng: np.random.Generator
    options: Options
    sample_rows: int = 0
    best: Laps | None = None
    trial: Laps | None = None
    draws: bool = True

    @abstractmethod
    def run(self, start: Summary) -> None:
        """Search from the parameters that ``start`` implies; the outcome is ``best``."""

    def _sampled(self, rows: int, options: Options) -> Self:
        """The same search on a sample of so many rows, for up to half of the laps that are left."""
        sample = self.source.sample(rows, self.rng.spawn(1)[0])
        rng = self.rng.spawn(1)[0]
        options = replace(options, n_batches=1, max_laps=(len(self.history) + options.max_laps) // 2)
        return type(self)(self.model, sample, self.moves, self.session, rng, options, sample.n_rows)

    def _begin_with(self, sampled: Self, start: Summary) -> Summary:
        """The outcome of a search on a sample, as if of all rows; ``model`` then has the hyperparameters learnt.

        An interrupt ends that search, and one lap makes its outcome a model of all rows.
        """
        try:
            sampled.run(start)
        except KeyboardInterrupt:
            if sampled.result is not None:
                self.session = replace(self.session, journal=NoJournal())  # a search taken up again is not interrupted
                self.best = self._laps(sampled.found, (), replace(self.options, max_laps=0))
                self.best.run(self._scaled(sampled))
            raise
        self.model = sampled.found
        return self._scaled(sampled)

    def _scaled(self, sampled: Self) -> Summary:
        return sampled.total * (self.source.total_weight / sampled.source.total_weight)

    @property
    def _in_hand(self) -> Laps:
        """The ascent with the best model so far, excursions that are not over apart."""
        if self.best is None:
            raise RuntimeError("the search has not begun")
        return self.best

    @property
    def executor(self) -> Executor:
        """Where tasks run."""
        return self.session.executor

    @property
    def history(self) -> list[Lap]:
        """The laps so far."""
        return self.session.history

    @property
    def _laps_left(self) -> int:
        return self.options.max_laps - len(self.history)

    def _may_grow(self) -> bool:
        return "birth" in self.moves and self._laps_left > 0

    @property
    def _removals(self) -> tuple[str, ...]:
        return tuple(move for move in self.moves if move != "birth")

    def _keep(self, best: Laps, trial: Laps) -> float:
        """Keep an excursion if its bound is higher; what it gained, or zero."""
        if not trial.beats(best):
            return 0.0
        trial.floor = None
        self.best = trial
        return trial.bound - best.bound

    @property
    def outcome(self) -> Laps:
        """The ascent with the best model, also when the search was interrupted."""
        best = self._in_hand
        return self.trial if self.trial is not None and self.trial.beats(best) else best

    @property
    def result(self) -> Result | None:
        """What the last lap of the best model left, with its hyperparameters as they were learnt; None before any lap."""
        return None if self.best is None else self.outcome.result

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
        self,
        model: Model,
        moves: tuple[str, ...],
        options: Options,
        floor: Laps | None = None,
        *,
        settle: int = 0,
        origin: str = "start",
        most_quiet: int = sys.maxsize,
        patience: float = np.inf,
        tries: int = sys.maxsize,
        many: bool = True,
        pause: int = 0,
        draws: bool | None = None,
    ) -> Laps:
        """An ascent; ``floor`` is the one with the best model so far, where it begins with a change of that.

        The rest are attributes of `Laps` and of its `Schedule`; ``draws`` is that of the search if it is None.
        """
        draws = self.draws if draws is None else draws
        rng = self.rng.spawn(1)[0]  # of its own: how many laps one ascent takes must not change the next
        laps = Laps(
            model,
            self.source,
            Schedule(moves, model.kind.recipe, tries, draws, many, pause),
            self.session,
            rng,
            options,
            floor=None if floor is None else floor.as_floor,
            settle=settle,
            most_quiet=most_quiet,
            patience=patience,
            origin=origin,
            sample_rows=self.sample_rows,
        )
        self.trial = None if floor is None else laps
        return laps

    def _smoothed(self, model: Model, start: Summary, options: Options, least: float = PSEUDO_COUNTS[0]) -> Summary:
        """The clusters after some laps under a smoothed prior, where there is such, which is not learnt meanwhile.

        Clusters that are right in part then exchange rows of which they have shown nothing yet (`Likelihood.smoothed`).  Those
        to which no row belongs any more are left out.

        least : pseudo-counts of an outcome
        """
        smooth = replace(model, likelihood=model.likelihood.smoothed(least))
        if smooth.likelihood is model.likelihood:
            return start
        names = (*options.learn, *options.learn_late)
        learn = tuple(name for name in names if not name.startswith(OF_LIKELIHOOD))
        options = replace(options, max_laps=SMOOTHED, learn=learn, learn_late=())
        schedule = Schedule((), model.kind.recipe)
        laps = Laps(smooth, self.source, schedule, self.session.aside(), self.rng.spawn(1)[0], options)
        laps.run(smooth.ordered(start))
        kept = np.flatnonzero(laps.total.N > FEWEST)
        return laps.total.take(kept) if len(kept) > 0 else start

    def _with_splits(self, laps: Laps, promising: list[Split]) -> Summary | None:
        """The summary with these splits, as many of them as there may be; None where there are none."""
        total = laps.total
        model = laps.model
        promising = promising[: max(0, model.max_clusters - total.K)]
        if not promising:
            return None
        start = total.as_start.take([k for k in range(total.K) if k not in {cluster for _, cluster, _ in promising}])
        for _, _, children in promising:
            start = start.exchange((), model.kind.start(children))
        return model.ordered(start)

    def _promising_splits(self, laps: Laps) -> list[Split]:
        """Gain, cluster and children of the splits in two that have a chance, best first."""
        return self._fitted_splits(laps, laps.drawn)

    def _fitted_splits(self, laps: Laps, drawn: Sequence[Drawn], thorough: bool = False) -> list[Split]:
        """The same, fitted to these rows."""
        total = laps.total
        model = laps.model
        cost = laps.posterior.cost
        samples = targets(model, total, laps.identities, self.source, drawn, lambda k: 2, self.rng.spawn(1)[0])
        samples = [
            replace(sample, least=-GAMBLE * float(cost[sample.cluster]), thorough=thorough) for sample in samples
        ]
        fits = for_fits(self.executor, self.source)(partial(fit_children, model), samples)
        promising = [
            (gain, t.cluster, children)
            for t, (children, gain) in zip(samples, fits)
            if gain > -GAMBLE * cost[t.cluster]
        ]
        return sorted(promising, key=lambda fit: -fit[0])
