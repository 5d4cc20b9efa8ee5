"""Stochastic variational inference (Thesis Alg. 3.2)."""

import time
import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._arguments import as_floats, real, shown
from ..data import ArraySource, Chunk
from ..model import Model, Posterior, Summary
from ..model.learning import tuned
from ..moves.better import NEGLIGIBLE
from .executor import Executor
from .known import check_posterior
from .laps import Result
from .prior_search import with_learnt_prior
from .search import Search
from .session import Leg, Session
from .state import MOVED, Options
from .trace import Lap
from .visit import visit

CONVERGES = 0.5  # steps with a larger decay have a finite sum of squares
NOISE = 1e-6  # of the bound: changes by less say nothing, since every step sees a part of the rows
LEAST = 1e-100  # of the weight of all rows: a batch with less says nothing, and scaling it to all rows could overflow


@dataclass(frozen=True)
class Stochastic:
    """Noisy steps, one for each batch, of sizes xi_t = (t + delay)^-decay (Thesis Alg. 3.2).

    Parameters
    ----------
    delay : float >= 0
        Weakens the first steps.
    decay : float in (0, 1]
        How fast steps shrink.  Above 0.5 they converge (Robbins and Monro 1951); a warning says so for others.
    """

    delay: float = 1.0
    decay: float = 0.6
    searches: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True
    takes: ClassVar[tuple[str, ...]] = ("rows", "documents", "sequences")
    resumes: ClassVar[bool] = True
    seats: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0.0 <= real(self.delay) < np.inf:
            raise ValueError(f"delay must be a number of at least 0; got {shown(self.delay)}.")
        if not 0.0 < real(self.decay) <= 1.0:
            raise ValueError(f"decay must be above 0 and at most 1; got {shown(self.decay)}.")
        as_floats(self, "delay", "decay")
        if self.decay <= CONVERGES:
            warnings.warn(
                f"decay={self.decay:g}: steps that shrink so slowly do not converge; use a decay above {CONVERGES:g}.",
                UserWarning,
                stacklevel=3,
            )

    def step(self, t: int) -> float:
        """xi_t for t = 1, 2, ..."""
        return float((t + self.delay) ** -self.decay)

    def kept(self, mixed: Summary) -> Summary:
        """All clusters."""
        return mixed

    def seen(
        self,
        model: Model,
        mixed: Summary,
        source: ArraySource,
        chunks: Sequence[Chunk],
        executor: Executor,
        rng: np.random.Generator,
    ) -> Summary:
        """The summary of a batch, visited with the parameters of the decaying summary."""
        parameters = model.parameters(mixed, source.dtype)
        return visit(model, parameters, source, list(chunks), executor, local=False).summary

    def concluded(self, posterior: Posterior, source: ArraySource, executor: Executor) -> Posterior:
        """The same."""
        return posterior

    def begin(
        self,
        search: Callable[..., Search],
        model: Model,
        source: ArraySource,
        session: Session,
        rng: np.random.Generator,
        options: Options,
    ) -> "StochasticLaps":
        """The steps for a problem; there are no moves, and so no search."""
        return StochasticLaps(model, source, self, session, rng, options)


class Steps(Protocol):
    """How a batch is visited and what its step is."""

    def step(self, t: int) -> float:
        """xi_t for t = 1, 2, ..."""
        ...

    def kept(self, mixed: Summary) -> Summary:
        """The decaying summary before a step, without clusters that are given up."""
        ...

    def seen(
        self,
        model: Model,
        mixed: Summary,
        source: ArraySource,
        chunks: Sequence[Chunk],
        executor: Executor,
        rng: np.random.Generator,
    ) -> Summary:
        """The summary of a batch; clusters that ``mixed`` does not have come last."""
        ...

    def concluded(self, posterior: Posterior, source: ArraySource, executor: Executor) -> Posterior:
        """The posterior of all rows in the end."""
        ...


class StochasticState(NamedTuple):
    """Everything that the next epoch needs.

    Attributes
    ----------
    posterior : of the decaying summary; in the end, of all rows
    bound : the estimate of the ELBO, in the end its value
    steps : taken so far
    rng : random numbers for the next epoch
    settled : whether the estimate changes no more
    exact : whether all rows were visited with the same parameters: the last lap
    """

    posterior: Posterior
    bound: float
    steps: int
    rng: np.random.Generator
    settled: bool = False
    exact: bool = False


@dataclass
class StochasticLaps:
    """Steps along noisy natural gradients: each batch, scaled to the whole data set, is mixed into a decaying summary.

    The bound of the decaying summary is an estimate; `run` ends with one lap at fixed parameters, whose bound is exact, and
    without the clusters to which no row belongs.

    Attributes
    ----------
    learner : makes the search that learns hyperparameters before the first step; None where none are learnt so
    result : what the last lap left, None before the first
    """

    model: Model
    source: ArraySource
    schedule: Steps
    session: Session
    rng: np.random.Generator
    options: Options
    learner: Callable[[], Search] | None = None
    converged: bool = False
    result: Result | None = None

    def run(self, start: Summary) -> None:
        """Step from the parameters that ``start`` implies until the estimate of the bound settles."""
        history = self.session.history
        laps: list[Lap] = []
        known = self.session.journal.next()
        if known is not None and known.laps:
            laps = list(known.laps)
            state: StochasticState = known.state
            check_posterior(state.posterior, self.model, self.source.n_columns)
            self.session.known(laps)
            self._keep(state, laps[-1])
        else:
            start = self.model.begun(start)
            model, _ = with_learnt_prior(self.model, start, self.learner)
            state = StochasticState(model.posterior(start), -np.inf, 0, deepcopy(self.rng))
        while not state.exact:
            began = time.perf_counter()
            going = not state.settled and len(history) < self.options.max_laps - 1
            state = self._epoch(state) if going else self._exact(state)
            laps.append(self._record(began, state))
            self.session.journal.note(Leg(state, tuple(laps)))

    def _epoch(self, state: StochasticState) -> StochasticState:
        """One step for each batch, in random order."""
        pieces = self.source.cut(self.options.n_batches)
        batches = pieces.batches(self.options.n_batches)
        rows = self.source.total_weight
        dtype = self.source.dtype
        model = state.posterior.model
        mixed = state.posterior.summary
        t = state.steps
        rng = deepcopy(state.rng)
        for b in rng.permutation(len(batches)):
            t += 1
            mixed = self.schedule.kept(mixed)
            seen = self.schedule.seen(model, mixed, pieces, batches[b], self.session.executor, rng)
            weight = float(seen.N.sum())
            mixed = mixed.as_sum
            if seen.K > mixed.K:
                mixed = mixed.insert_empty(seen.K - mixed.K)
            if weight > LEAST * rows:
                xi = self.schedule.step(t)
                mixed = mixed * (1.0 - xi) + seen * (xi * rows / weight)
        posterior = model.posterior(mixed)
        learn = self.options.learn + self.options.learn_late
        if learn:
            posterior = tuned(posterior, learn, dtype)
        bound = posterior.bound
        before = state.posterior.summary.N
        moved = np.abs(mixed.N - before).max() / rows if len(before) == mixed.K else np.inf
        least = max(self.options.tol * mixed.K, NOISE * max(abs(bound), rows))
        settled = bool(abs(bound - state.bound) <= least and moved <= MOVED)
        return StochasticState(posterior, bound, t, rng, settled)

    def _exact(self, state: StochasticState) -> StochasticState:
        """Visit all rows with the same parameters, again without the clusters to which none turns out to belong."""
        model = state.posterior.model
        everything = [chunk for batch in self.source.batches(self.options.n_batches) for chunk in batch]
        posterior = state.posterior
        used = used_clusters(posterior)
        while True:
            mixed = posterior.summary.take(used)
            parameters = model.parameters(mixed, self.source.dtype)
            total = visit(model, parameters, self.source, everything, self.session.executor, local=False).summary
            posterior = model.posterior(model.ordered(total))
            used = used_clusters(posterior)
            if len(used) == total.K:
                posterior = self.schedule.concluded(posterior, self.source, self.session.executor)
                return state._replace(posterior=posterior, bound=posterior.bound, exact=True)

    def _record(self, began: float, state: StochasticState) -> Lap:
        now = time.perf_counter()
        K = state.posterior.summary.K
        speed = self.source.n_rows / max(now - began, 1e-9)
        number = len(self.session.history) + 1
        lap = Lap(number, now - self.session.began, state.bound, K, state.bound, K, (), speed)
        self._keep(state, lap)
        self.session.add(lap)
        return lap

    def _keep(self, state: StochasticState, lap: Lap) -> None:
        self.result = Result(state.posterior.model, state.posterior.summary, state.bound, lap)
        self.converged = state.settled


def used_clusters(posterior: Posterior) -> NDArray[np.intp]:
    """The clusters that cost something or have a name, or all: one to which no row belongs has the prior for parameters."""
    used = np.flatnonzero((posterior.cost >= NEGLIGIBLE) | posterior.model.named(posterior.summary))
    return used if len(used) else np.arange(posterior.summary.K)
