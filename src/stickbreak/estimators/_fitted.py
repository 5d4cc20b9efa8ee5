"""A fitted model as an estimator: the state of a fit, and the attributes that follow from it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..allocations import Allocation
from ..allocations.shared_sticks import SharedSticks
from ..inference import Lap
from ..inference.samplers.draws import Sampled
from ..inference.trace import shortened
from ..model import Model, Summary
from ..moves import MoveRecord
from ._hierarchy import Hierarchy
from ._presented import Presented


class Table(NamedTuple):
    """The columns of the data that a model was fitted to, and whether its rows came in groups."""

    n_features: int
    n_targets: int
    names: Sequence[str] | None
    levels: Mapping[int, Sequence[Any]]
    grouped: bool = False


class Fitted(Presented, ABC):
    """The state of a fit is ``model_`` and ``summary_``; every other attribute that does not belong to the data follows."""

    model_: Model
    summary_: Any

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

    def _append(
        self, model: Model, total: Any, n_rows: int, seconds: float, moves: tuple[MoveRecord, ...] = ()
    ) -> None:
        """Set what follows from the state after more rows, and a lap of the history for them."""
        bound = model.bound(total)
        K = total.K
        last = self.history_[-1]
        speed = n_rows / max(seconds, 1e-9)
        lap = Lap(last.number + 1, last.seconds + seconds, bound, K, bound, K, moves, speed, last.ascent + 1)
        self._set_fitted(model, total, self.dtype_, [*shortened(self.history_), lap], self._fitted_table())

    def _widen(self, missing: NDArray[np.bool_]) -> None:
        """Extend the model to missing values in columns (D,) that had none so far."""
        if missing.any():
            self.model_, self.summary_ = widened(self.model_, self.summary_, missing)

    def _table(self, n_targets: int, grouped: bool = False) -> Table:
        """The columns of the data that are known by now."""
        names = getattr(self, "feature_names_in_", None)
        return Table(self.n_features_in_, n_targets, names, self.levels_, grouped)

    def _fitted_table(self) -> Table:
        """The columns of the data that the model was fitted to."""
        return self._table(self.n_targets_, self.grouped_)

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

    def _name_concentration(self, allocation: Allocation, summary: Any) -> None:
        """Set the posterior mean and standard deviation of the concentration of shares, where there are sticks."""
        for name in ("concentration_", "concentration_std_"):
            self.__dict__.pop(name, None)
        if isinstance(allocation, SharedSticks):
            self.concentration_, self.concentration_std_ = allocation.concentration_moments(summary)

    @abstractmethod
    def _name_clusters(self, model: Model, summary: Summary) -> None:
        """Set what this kind of model calls the clusters, their number and their weights."""


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
