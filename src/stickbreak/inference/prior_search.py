"""Hyperparameters that are learnt before an algorithm begins, and then held."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from ..data import ArraySource
from ..model import Model, Summary
from .search import Search
from .session import NoJournal, Session
from .state import Options


def prior_learner(
    search: Callable[..., Search],
    model: Model,
    source: ArraySource,
    session: Session,
    rng: np.random.Generator,
    options: Options,
) -> Callable[[], Search] | None:
    """What makes the search that learns hyperparameters, apart from the journal; None where none are to be learnt."""
    if not options.learn:
        return None
    aside = replace(session.aside(), journal=NoJournal())
    return partial(search, model, source, session=aside, rng=rng, options=options)


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
