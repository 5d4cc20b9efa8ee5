"""What all estimators do alike: fits that lose nothing when they fail, an ascent with a progress line, fitted attributes."""

import pickle
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Self

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..allocations import Allocation
from ..allocations.shared_sticks import SharedSticks
from ..cluster import executor_of
from ..data import ArraySource
from ..data.check import DataWarning, Finding
from ..device import LANES, OnDevice, device_of
from ..inference import Executor, Journal, Lap, Options, Search, Session, Threads
from ..inference.algorithm import Ascending
from ..inference.executor import n_threads
from ..inference.known import check_posterior
from ..inference.laps import Result
from ..inference.memory import Sizes
from ..inference.samplers.draws import Sampled
from ..inference.session import OUTCOME, NoJournal
from ..inference.trace import shortened
from ..inference.visit import visit
from ..likelihoods import REGISTRY, Likelihood
from ..model import Kind, Model, Summary
from ..moves import MoveRecord
from . import _choices as choices
from ._chosen import Candidate, Family
from ._hierarchy import Hierarchy
from ._presented import Presented

Array = NDArray[np.floating]

PACE = (
    "checkpoint",
    "checkpoint_seconds",
    "executor",
    "max_laps",
    "n_jobs",
    "verbose",
)  # parameters that may change when a fit is taken up again


class Table(NamedTuple):
    """The columns of the data that a model was fitted to, and whether its rows came in groups."""

    n_features: int
    n_targets: int
    names: Sequence[str] | None
    levels: Mapping[int, Sequence[Any]]
    grouped: bool = False


class Outcome(NamedTuple):
    """What an ascent found, lap by lap, and what there is to warn of; the draws of a sampler."""

    total: Summary
    model: Model
    history: list[Lap]
    trouble: str | None
    sampled: Sampled | None = None


class Estimator(Presented, ABC):
    """The skeleton of an estimator; the state of a fit is ``model_`` and ``summary_``, the rest follows from them."""

    model_: Model
    summary_: Any
    data_check_: list[Finding]
    checkpoint: Any
    checkpoint_seconds: float
    max_memory: float | None
    executor: Any
    device: str | None
    likelihood: Any
    _takes_latent: ClassVar[bool] = False  # whether rows may have latent variables
    _cluster_axis = 1  # the axis of clusters in a two-dimensional ``init``: responsibilities (N, K)

    def save(self, path: Any) -> None:
        """Write the fitted model to a file that `stickbreak.load` reads; no pickle is involved."""
        from ..storage.saving import save_model

        check_is_fitted(self)
        save_model(self, path)

    @cached_property
    def hierarchy_(self) -> Hierarchy:
        """The merges of the clusters down to one, made when first asked for."""
        check_is_fitted(self)
        return Hierarchy.of(self.model_, self.summary_)

    @property
    def covariances_(self) -> Any:
        """Posterior mean covariances (K, D, D) of clusters that have them, also where columns are independent."""
        check_is_fitted(self)
        return self.posterior_.covariances

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

    def _ascend(
        self,
        model: Model,
        source: ArraySource,
        session: Session,
        rng: np.random.Generator,
        options: Options,
        start: Callable[[np.random.Generator], Summary],
        search: Callable[..., Search],
    ) -> Outcome:
        """Run the algorithm ``n_init`` times and keep the best, by the bound; Ctrl-C keeps the best model so far.

        A fit whose journal has the outcome is over.

        start, search : make a start, under the progress line, and the search that begins there
        """
        if session.journal.is_over:
            return self._known_outcome(session.journal.results[OUTCOME], model, source.n_columns)
        session.journal.check(model)
        begin = partial(choices.algorithm(self).begin, partial(search, moves=choices.moves(self)))
        streams = [rng] if self.n_init == 1 else rng.spawn(self.n_init)
        return self._best_of(streams, begin, model, source, session, options, start)

    def _best_of(
        self,
        streams: Iterable[np.random.Generator],
        begin: Callable[..., Ascending],
        model: Model,
        source: ArraySource,
        session: Session,
        options: Options,
        start: Callable[[np.random.Generator], Summary],
    ) -> Outcome:
        """Run an algorithm once for each stream of random numbers and keep the best, as far as it went before Ctrl-C.

        begin : the algorithm for a problem
        """
        best: Result | None = None
        history: list[Lap] = []
        trouble = None
        with self._progress(source) as on_lap:
            for stream in streams:
                own = session.told(on_lap)
                ascent = begin(model, source, session=own, rng=stream, options=options)
                interrupted = False
                try:
                    first = start(stream)
                    choices.check_start(model, first.K)
                    ascent.run(first)
                except KeyboardInterrupt:
                    if best is None and ascent.result is None:
                        raise
                    interrupted = True
                result = ascent.result
                if result is not None and (best is None or result.bound > best.bound):
                    best = result
                    history = own.history
                    converged = ascent.converged
                if interrupted:
                    trouble = f"interrupted after {len(history)} laps; the best model so far is kept."
                    break
        assert best is not None
        if best.lap.number > len(history):  # interrupted between the two
            history.append(best.lap)
        if trouble is None and not converged:
            trouble = f"not converged after max_laps={self.max_laps}; raise max_laps or tol for a settled bound."
        if best.sampled is not None:  # the draws are those of this prior
            return Outcome(best.total.without_local(), best.model, history, trouble, best.sampled)
        model, history[-1] = _concluded(best.model, best.total, options.learn, history[-1])
        outcome = Outcome(best.total.without_local(), model, history, trouble)
        session.journal.close(outcome if trouble is None else None)
        return outcome

    def _known_outcome(self, outcome: Any, model: Model, D: int) -> Outcome:
        """An outcome from a journal, checked against the model, and data of D columns."""
        if not isinstance(outcome, Outcome) or not outcome.history or outcome.trouble or outcome.sampled:
            raise ValueError("the journal is damaged: it has no outcome of a fit.")
        check_posterior(outcome.model.posterior(outcome.total), model, D)
        return outcome

    def _session(self, executor: Executor, source: Any) -> Session:
        """What the searches of a fit share, with the journal of that fit; ``source`` is all that it is fitted to."""
        journal = self._journal()
        journal.open(partial(self._fit_of, source))
        return Session(executor, journal=journal)

    def _seed(self, journal: Journal) -> int:
        """The seed of a fit; one that is taken up again has the one that it began with."""
        return journal.seeded(int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)))

    def _widen(self, missing: NDArray[np.bool_]) -> None:
        """Extend the model to missing values in columns (D,) that had none so far."""
        if missing.any():
            self.model_, self.summary_ = widened(self.model_, self.summary_, missing)

    def _absorb(self, source: ArraySource, executor: Executor, known: Any = None) -> None:
        """Add what more data say to the model, in one visit; the numbers of the clusters stay.

        known : the summary that the parameters of the visit follow from, if more clusters are known now than the model has
        """
        began = time.perf_counter()
        known = self.summary_ if known is None else known
        parameters = self.model_.parameters(known, self.dtype_)
        seen = visit(self.model_, parameters, source, source.batches(1)[0], executor, local=False).summary
        K = self.summary_.K
        kept = np.append(np.arange(K), K + np.flatnonzero(seen.N[K:] > 0.0))
        total = (self.summary_.insert_empty(seen.K - K) + seen).take(kept) if seen.K > K else self.summary_ + seen
        self._append(self.model_, total, source.n_rows, time.perf_counter() - began)

    def _append(
        self, model: Model, total: Any, n_rows: int, seconds: float, moves: tuple[MoveRecord, ...] = ()
    ) -> None:
        """Set what follows from the state after more rows, and a lap of the history for them."""
        bound = model.bound(total)
        K = total.K
        last = self.history_[-1]
        speed = n_rows / max(seconds, 1e-9)
        lap = Lap(last.number + 1, last.seconds + seconds, bound, K, bound, K, moves, speed, last.ascent + 1)
        self._set_fitted(model, total, self.dtype_, [*shortened(self.history_), lap], self._table())

    def _table(self) -> Table:
        """The columns of the data that the model was fitted to."""
        names = getattr(self, "feature_names_in_", None)
        return Table(self.n_features_in_, self.n_targets_, names, self.levels_, self.grouped_)

    def _set_labels(self, labels: Callable[[], NDArray[np.intp]] | None) -> str | None:
        """Set ``labels_``, and say if an interrupt left it unset; None: those of so many rows are not wanted."""
        if labels is None:
            self.__dict__.pop("labels_", None)
            return None
        try:
            self.labels_ = labels()
        except KeyboardInterrupt:
            self.__dict__.pop("labels_", None)
            return "interrupted while labelling the rows: the model is complete, but labels_ is not set."
        return None

    def _set_drawn(self, sampled: Sampled | None, labels: Callable[[], NDArray[np.intp]] | None) -> str | None:
        """Set ``labels_``, and ``draws_`` of a sampler, and say if an interrupt left ``labels_`` unset."""
        if sampled is None:
            return self._set_labels(labels)
        self.draws_ = sampled.draws
        self.labels_ = sampled.labels
        return None

    def _set_fitted(
        self, model: Model, summary: Summary, dtype: np.dtype[np.floating], history: list[Lap], table: Table
    ) -> None:
        """Derive every fitted attribute that does not belong to the data from the state of a fit."""
        for name in _shown(getattr(self, "posterior_", None)):
            self.__dict__.pop(name, None)
        for name in ("hierarchy_", "draws_"):
            self.__dict__.pop(name, None)
        self.model_ = model
        self.summary_ = summary
        self.dtype_ = dtype
        self.history_ = history
        self.n_features_in_ = table.n_features
        self.n_targets_ = table.n_targets
        self.levels_ = table.levels
        self.grouped_ = table.grouped
        if table.names is not None:
            self.feature_names_in_ = np.asarray(table.names, dtype=object)
        self.posterior_ = model.likelihood.posterior(summary.N, summary.S)
        self.__dict__.update(_shown(self.posterior_))
        self.lower_bound_ = model.bound(summary)
        self.lower_bounds_ = [lap.lower_bound for lap in history if not lap.sample_rows]
        self.n_laps_ = history[-1].number
        self._name_clusters(model, summary)

    def _name_concentration(self, allocation: Allocation, summary: Any) -> None:
        """Set the posterior mean and standard deviation of the concentration of shares, where there are sticks."""
        for name in ("concentration_", "concentration_std_"):
            self.__dict__.pop(name, None)
        if isinstance(allocation, SharedSticks):
            self.concentration_, self.concentration_std_ = allocation.concentration_moments(summary)

    @abstractmethod
    def _name_clusters(self, model: Model, summary: Summary) -> None:
        """Set what this kind of model calls the clusters, their number and their weights."""

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


def widened(model: Model, summary: Summary, missing: NDArray[np.bool_]) -> tuple[Model, Summary]:
    """A model and its summary for data in which values of the columns ``missing`` (D,) may be missing."""
    likelihood, S = model.likelihood.with_missing(missing, summary.S)
    return replace(model, likelihood=likelihood), replace(summary, S=S)


def _shown(posterior: Any) -> dict[str, Any]:
    """The parameters of the clusters as attributes of the estimator; of a Product, those of each part together."""
    if posterior is None:
        return {}
    if isinstance(posterior, dict):
        return {"parts_": posterior}
    return {f"{name}_": value for name, value in posterior._asdict().items()}
