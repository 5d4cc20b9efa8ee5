"""A fitted model with fewer clusters, topics or states: those of its hierarchy, cut, fitted anew without moves."""

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..data import ArraySource
from ..inference import Executor, Options, Refit, Session
from ..model.learning import settled
from ..moves.agglomeration import with_groups
from . import _memory as memory
from ._estimator import Estimator, seed_of
from ._setup import SearchProblem

E = TypeVar("E", bound=Estimator)


class Again(NamedTuple):
    """The data that a fitted model is fitted to anew.

    missing : (D,) the columns in which values are missing
    learn : the hyperparameters to learn between laps
    labels : the labels of the rows according to the model as it then is; None where it has no ``labels_``
    """

    source: ArraySource
    missing: NDArray[np.bool_]
    learn: tuple[str, ...]
    labels: Callable[[], NDArray[np.intp]] | None = None


def merged(model: E, n: int, read: Callable[[E, Executor], Again]) -> E:
    """A copy of a fitted model with the n clusters of its hierarchy, fitted to data by laps without moves.

    read : what the copy is fitted to

    Raises
    ------
    ValueError : n is not a number of clusters that the hierarchy can be cut to, or below that of names.
    """
    check_is_fitted(model)
    of = model.hierarchy_.cut(n)
    names = model.model_.likelihood.names_of(model.summary_.S)
    if n < len(names):
        raise ValueError(
            f"n must be at least {len(names)}: clusters with names are not merged with each other; got {n}."
        )
    groups = [np.flatnonzero(of == group).tolist() for group in range(n)]
    fewer = copy(model)
    return fewer._guarded(lambda: _refit(fewer, groups, read))


def _refit(model: E, groups: list[list[int]], read: Callable[[E, Executor], Again]) -> str | None:
    """Fit the groups of a model's clusters, set the attributes, and say what there is to warn of."""
    rng = np.random.default_rng(seed_of(model))
    with model._executor() as executor:
        data = read(model, executor)
        model._widen(data.missing)
        start = model.model_.ordered(with_groups(model.summary_.as_start, groups))
        begun = settled(model.model_, start, data.learn, data.source.dtype)
        batches = memory.n_batches(model, begun.likelihood, data.source)
        options = Options(batches, model.max_laps, model.tol, learn=data.learn)
        problem = SearchProblem(begun, data.source, options)
        outcome = model._best_of([rng], partial(Refit, moves=()), problem, lambda rng: start, Session(executor))
        model._set_fitted(outcome.model, outcome.total, data.source.dtype, outcome.history, model._fitted_table())
        trouble = outcome.trouble
        if data.labels is not None:
            trouble = model._set_labels(data.labels) or trouble
    model.converged_ = trouble is None
    return trouble
