"""The search for the number of clusters: an ascent with verified moves, then excursions."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource
from ..model import Model, Summary
from ..moves import Schedule
from ..moves.birth import fit_children
from ..moves.sample import targets
from .executor import Threads
from .gibbs import CRUMB, Chain
from .laps import Laps, Options, Result
from .trace import Lap

Array = NDArray[np.floating]

GAMBLE = 0.7  # a split may cost this share of what its parameters cost, and still be worth an excursion
COARSE = 100.0  # excursions are compared when settled to this multiple of the tolerance
SETTLE, SETTLE_TOPICS = 12, 4  # laps before the clusters of an excursion must pay
WORTHWHILE = 30.0  # an excursion that gains less than this multiple of the tolerance is the last
WORTHWHILE_TOPICS = 0.004  # twice as many topics must raise the bound by this share of its size
SWEEPS, LAST_SWEEPS = 60, 180  # of annealing, at the start of an ascent and of the last one
COARSE_TOPICS = 1e-3  # annealed ascents are compared when settled to this tolerance


@dataclass
class Search:
    """Find the best model that moves can reach.

    Births, merges and deletes that pay at once are accepted lap by lap.  When no more do, the clusters have settled into a
    local optimum in which no single split pays, although many splits together would once the rows have rearranged
    themselves.  An excursion splits every cluster with a chance, laps until the pieces have settled, merges what does not
    pay, and is kept if the ELBO of the whole data set is then higher, or else undone.  So the bound of the model in hand
    never goes down.

    Topics of words have poor local optima in such numbers that every ascent starts by annealing (`stickbreak.inference.gibbs`),
    and an excursion splits the largest until there are as many as the next power of two.

    chain : the sampler, for topics of words
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
    chain: Chain | None = None

    def run(self, start: Summary) -> None:
        """Search from the parameters that ``start`` implies; the outcome is ``best``."""
        if self.chain is not None:
            self._run_annealed(self.chain, start)
            return
        coarse = replace(self.options, tol=COARSE * self.options.tol)
        self.best = self._laps(self.model, self.moves, coarse)
        self.best.run(start)
        while self._may_grow():
            trial_start = self._split(self.best)
            if trial_start is None:
                break
            trial = self._laps(self.best.model, self._removals, coarse, self.best, SETTLE)
            trial.run(trial_start)
            gain = self._keep(self.best, trial)
            if gain <= WORTHWHILE * self.options.tol * abs(self.best.bound):
                break
        self.best.polish(self.options)

    def _run_annealed(self, chain: Chain, start: Summary) -> None:
        """Search for topics: the largest split, up to the next power of two, while that pays; then one long ascent."""
        coarse = replace(self.options, tol=max(COARSE_TOPICS, self.options.tol))
        annealed = chain.from_summary(start, SWEEPS, self.threads)
        self.best = self._laps(self.model, (), coarse)
        self.best.run(annealed.summary, annealed.counts)
        while self._may_grow():
            K = annealed.summary.K
            wanted = min(2 ** int(np.ceil(np.log2(1.1 * K + 1.0))), self.model.max_clusters)
            if wanted <= K:
                break
            annealed = chain.from_topics(chain.split(annealed, wanted), wanted, SWEEPS, self.threads)
            trial = self._laps(self.best.model, (), coarse, self.best)
            trial.run(annealed.summary, annealed.counts)
            if self._keep(self.best, trial) <= WORTHWHILE_TOPICS * np.log2(wanted / K) * abs(self.best.bound):
                break  # as it stands; more sweeps may tell otherwise
        if len(self.history) < self.options.max_laps:
            annealed = chain.from_topics(annealed.topics, annealed.summary.K, LAST_SWEEPS, self.threads)
            annealed = chain.pruned(annealed, self.threads)
            trial = self._laps(self.best.model, self._removals, self.options, self.best, SETTLE_TOPICS)
            trial.run(annealed.summary, annealed.counts)
            self._keep(self.best, trial)
        if self.best.options is not self.options:
            self.best.polish(self.options)
        self._drop_crumbs(self.best)

    def _drop_crumbs(self, best: Laps) -> None:
        """An excursion without the topics much smaller than the mean: their deletion alone may pay only after some laps."""
        total, counts = best.total, best.counts
        kept = np.flatnonzero(CRUMB * total.N.mean() <= total.N)
        if counts is None or len(kept) == total.K or not self._removals or len(self.history) >= self.options.max_laps:
            return
        trial = self._laps(best.model, self._removals, self.options, best, SETTLE_TOPICS)
        trial.run(Summary(total.N, total.S, total.H, total.base).take(kept), counts[kept])
        self._keep(best, trial)

    def _may_grow(self) -> bool:
        return "birth" in self.moves and len(self.history) < self.options.max_laps

    @property
    def _removals(self) -> tuple[str, ...]:
        return tuple(move for move in self.moves if move != "birth")

    def _keep(self, best: Laps, trial: Laps) -> float:
        """Keep an excursion if its bound is higher; what it gained, or zero."""
        if not trial.beats(best):
            return 0.0
        trial.floor, self.best = None, trial
        return trial.bound - best.bound

    @property
    def outcome(self) -> Laps:
        """The ascent with the best model, also when the search was interrupted."""
        if self.best is None:
            raise RuntimeError("the search has not begun")
        return self.trial if self.trial is not None and self.trial.beats(self.best) else self.best

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
        self, model: Model, moves: tuple[str, ...], options: Options, floor: Laps | None = None, settle: int = 0
    ) -> Laps:
        rng = self.rng.spawn(1)[0]  # of its own: how many laps one ascent takes must not change the next
        schedule = Schedule(moves, rng, model.allocation.unit)
        laps = Laps(model, self.source, schedule, self.threads, rng, options, self.on_lap, self.history, floor, settle)
        self.trial = None if floor is None else laps
        return laps

    def _split(self, laps: Laps) -> Summary | None:
        """The summary with every cluster split in two where that has a chance; None where it has not."""
        total, model = laps.total, laps.model
        hopeful = self._hopeful(laps)[: max(0, model.max_clusters - total.K)]
        if not hopeful:
            return None
        rows = Summary(
            total.N, total.S, total.H, total.base
        )  # what is known of documents does not say how they will be
        start = rows.take([k for k in range(total.K) if k not in {cluster for _, cluster, _ in hopeful}])
        for _, _, children in hopeful:
            start = start.exchange((), children)
        return model.ordered(start)

    def _hopeful(self, laps: Laps) -> list[tuple[float, int, Summary]]:
        """Gain, cluster and children of the splits in two that have a chance, best first."""
        total, model = laps.total, laps.model
        samples = targets(model, total, laps.schedule.ids, self.source, laps.drawn, lambda k: 2, self.rng.spawn(1)[0])
        cost = model.parameter_cost(total)
        fits = self.threads.map(lambda target: fit_children(model, target), samples)
        hopeful = [
            (gain, t.cluster, children)
            for t, (children, gain) in zip(samples, fits)
            if gain > -GAMBLE * cost[t.cluster]
        ]
        return sorted(hopeful, key=lambda fit: -fit[0])
