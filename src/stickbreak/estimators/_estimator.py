"""What the fits of all estimators share: they lose nothing when they fail, and ascend under a progress line and a journal."""

import pickle
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import joblib
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..cluster import executor_of
from ..data import ArraySource
from ..data.check import DataWarning, Finding
from ..device import LANES, OnDevice, device_of
from ..inference import Executor, Journal, Lap, Session, Threads
from ..inference.algorithm import Ascending
from ..inference.executor import n_threads
from ..inference.known import check_posterior
from ..inference.laps import Result
from ..inference.memory import Sizes
from ..inference.session import OUTCOME, NoJournal
from ..likelihoods import REGISTRY, Likelihood
from ..model import Kind, Model, Summary
from . import _choices as choices
from ._chosen import Candidate, Family
from ._fitted import Fitted
from ._setup import Outcome, SearchProblem, Setup, Start

PACE = (
    "checkpoint",
    "checkpoint_seconds",
    "executor",
    "max_laps",
    "n_jobs",
    "verbose",
)  # parameters that may change when a fit is taken up again


class Estimator(Fitted):
    """An estimator with the parameters that all have in common."""

    data_check_: list[Finding]
    checkpoint: Any
    checkpoint_seconds: float
    max_memory: float | None
    executor: Any
    device: str | None
    likelihood: Any
    _takes_latent: ClassVar[bool] = False  # whether rows may have latent variables
    _cluster_axis = 1  # the axis of clusters in a two-dimensional ``init``: responsibilities (N, K)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        family = self._family()
        tags.input_tags.sparse = self.likelihood == "auto" or family.takes_sparse
        may_miss = family.takes_missing and (self._takes_latent or not family.missing_latent)
        tags.input_tags.allow_nan = self.likelihood == "auto" or may_miss
        tags.input_tags.positive_only = not family.takes_negative
        return tags

    def _family(self) -> type[Likelihood]:
        """The class of ``likelihood``; that of all likelihoods for "auto", and for what `fit` refuses."""
        choice = self.likelihood
        family = REGISTRY.get(choice, Likelihood) if isinstance(choice, str) else type(choice)
        return family if issubclass(family, Likelihood) else Likelihood

    def _guarded(self, fit: Callable[[], str | None]) -> Self:
        """Fit; whatever fails leaves the estimator as it was."""
        before = dict(self.__dict__)
        try:
            trouble = fit()
        except BaseException:
            self.__dict__ = before
            raise
        found = self.data_check_
        if found and found is not before.get("data_check_"):
            warnings.warn(DataWarning.of(found), stacklevel=3)
        if trouble is not None:
            warnings.warn(trouble, ConvergenceWarning, stacklevel=3)
        return self

    def _ascend(self, setup: Setup, session: Session, rng: np.random.Generator, last: bool = True) -> Outcome:
        """Run the algorithm ``n_init`` times and keep the best, by the bound; Ctrl-C keeps the best model so far.

        A fit whose journal has the outcome is over.

        last : whether the fit is over with this outcome
        """
        problem = setup.problem
        if session.journal.is_over:
            return self._known_outcome(session.journal.results[OUTCOME], problem)
        session.journal.check(problem.model)
        begin = partial(choices.algorithm(self).begin, partial(setup.search, moves=choices.moves(self)))
        streams = [rng] if self.n_init == 1 else rng.spawn(self.n_init)
        outcome = self._best_of(streams, begin, problem, setup.start, session)
        if last:
            self._close(session, outcome)
        return outcome

    def _close(self, session: Session, outcome: Outcome) -> None:
        """Tell the journal the outcome of a fit, unless it knows: chains of a sampler are not kept."""
        if outcome.sampled is None and not session.journal.is_over:
            session.journal.close(outcome if outcome.trouble is None else None)

    def _best_of(
        self,
        streams: Iterable[np.random.Generator],
        begin: Callable[..., Ascending],
        problem: SearchProblem,
        start: Start,
        session: Session,
    ) -> Outcome:
        """Run an algorithm once for each stream of random numbers and keep the best, as far as it went before Ctrl-C.

        begin : the algorithm for a problem
        start : makes a start, under the progress line
        """
        model, source, options = problem
        best: Result | None = None
        history: list[Lap] = []
        interrupted = False
        with self._progress(source) as on_lap:
            for stream in streams:
                own = session.told(on_lap)
                ascent = begin(model, source, session=own, rng=stream, options=options)
                try:
                    first = start(stream)
                    choices.check_start(model, first.K)
                    ascent.run(first)
                except KeyboardInterrupt:
                    if best is None and ascent.result is None:
                        raise
                    interrupted = True
                session.journal.leave(over=ascent.converged and not interrupted)
                result = ascent.result
                if result is not None and (best is None or result.bound > best.bound):
                    best = result
                    history = own.history
                    converged = ascent.converged
                if interrupted:
                    break
        assert best is not None
        if best.lap.number > len(history):  # interrupted between the two
            history.append(best.lap)
        trouble = None
        if interrupted:
            trouble = interruption(history)
        elif not converged:
            trouble = f"not converged after max_laps={self.max_laps}; raise max_laps or tol for a settled bound."
        if best.sampled is not None:  # the draws are those of this prior
            return Outcome(best.total.without_local(), best.model, history, trouble, best.sampled, interrupted)
        model, history[-1] = _concluded(best.model, best.total, options.learn, history[-1])
        return Outcome(best.total.without_local(), model, history, trouble, interrupted=interrupted)

    def _known_outcome(self, outcome: Any, problem: SearchProblem) -> Outcome:
        """An outcome from a journal, checked against the problem."""
        if not isinstance(outcome, Outcome) or not outcome.history or outcome.trouble or outcome.sampled:
            raise ValueError("the journal is damaged: it has no outcome of a fit.")
        check_posterior(outcome.model.posterior(outcome.total), problem.model, problem.source.n_columns)
        return outcome

    def _session(self, executor: Executor, source: Any) -> Session:
        """What the searches of a fit share, with the journal of that fit; ``source`` is all that it is fitted to."""
        journal = self._journal()
        journal.open(partial(self._fit_of, source))
        return Session(executor, journal=journal)

    def _seed(self, journal: Journal) -> int:
        """The seed of a fit; one that is taken up again has the one that it began with."""
        return journal.seeded(seed_of(self))

    @abstractmethod
    def _clusters_of_named_start(self) -> int:
        """How many clusters a fit begins with where ``init`` is a name."""

    def _sized(self, sizes: Sizes, source: ArraySource) -> Sizes:
        """Complete the sizes of a fit to single rows, where ``source`` holds documents or sequences."""
        return sizes

    def _kind(self, kind: Kind) -> Kind:
        """A kind of data with the settings of this estimator."""
        return kind

    def _executor(self, X: Any = None) -> AbstractContextManager[Executor]:
        """Where tasks on X run, from entry to exit."""
        chosen = executor_of(self.executor, X)
        device = device_of(self.device, X)
        if device is None:
            return Threads(self.n_jobs) if chosen is None else chosen.open(self.n_jobs)
        if chosen is not None:
            raise TypeError(
                "a device visits rows of this computer, not those of a cluster; leave out device=, or executor=."
            )
        return OnDevice(device, Threads(max(LANES, n_threads(self.n_jobs))))

    def _journal(self) -> Journal:
        """Where the searches of a fit note how far they are."""
        if self.checkpoint is None:
            return NoJournal()
        from ..storage.checkpoint import Checkpoint

        return Checkpoint(self.checkpoint, float(self.checkpoint_seconds), (Candidate, Family, Outcome))

    def _fit_of(self, source: Any) -> dict[str, str]:
        """What is fitted to what, a hash for each part; how far, how fast and how loudly does not matter."""
        from .. import __version__

        parts = {name: value for name, value in self.get_params(deep=False).items() if name not in PACE}
        parts |= {"data": source, "estimator": type(self).__name__, "version of stickbreak": __version__}
        return {name: _hashed(name, value) for name, value in parts.items()}

    def _progress(self, source: ArraySource) -> Any:
        if not self.verbose:
            return nullcontext(lambda lap: None)
        from ..report.progress import Progress

        return Progress(source.n_rows, self.max_laps, enabled="auto")


def interruption(history: Sequence[Lap]) -> str:
    """What there is to warn of after Ctrl-C, once there is a model."""
    return f"interrupted after {len(history)} laps; the best model so far is kept."


def seed_of(estimator: Any) -> int:
    """A seed that follows from ``random_state``; another one each time if that is a `RandomState`, or None."""
    return int(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max))


def _hashed(name: str, value: Any) -> str:
    """The hash of a part of a fit."""
    try:
        return str(joblib.hash(value, "sha1", coerce_mmap=True))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(f"{name} cannot be pickled, as the hash of a checkpoint needs: {error}.") from error


def _concluded(model: Model, total: Summary, learn: tuple[str, ...], last: Lap) -> tuple[Model, Lap]:
    """The model that an ascent ends with as the result of the fit, and the last lap with its bound."""
    allocation = model.allocation.concluded(total, learn)
    if allocation is model.allocation:
        return model, last
    model = replace(model, allocation=allocation)
    bound = model.bound(total)
    return model, replace(last, lower_bound=bound, explored_bound=bound)
