"""Hyperparameters that are learnt before an algorithm begins, and then held."""

from collections.abc import Callable

from ..model import Model, Summary
from .search import Search


def with_learnt_prior(model: Model, start: Summary, learner: Callable[[], Search] | None) -> tuple[Model, Summary]:
    """The model with its hyperparameters learnt by a search, and the clusters of that.

    A prior learnt from one cluster allows no others: its mean and scale are those of the cluster, for certain.  So one cluster
    leaves the model as it was.

    learner : makes the search; None where nothing is learnt
    """
    if learner is None:
        return model, start
    search = learner()
    search.run(start)
    assert search.result is not None
    found = search.result
    return (found.model if found.total.K > 1 else model), found.total
