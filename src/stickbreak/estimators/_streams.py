"""Streams: what an estimator keeps of one from call to call of `partial_fit`."""

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.utils import check_random_state

from ..data import ArraySource
from ..inference import Executor
from ..inference.stream import Streamed
from ..likelihoods import Labelled
from ..model import Model

STREAM = "_stream"  # the attribute


class Underway(NamedTuple):
    """What is kept of a stream.

    memory : what is remembered of it
    rng : its random numbers
    prior : the model as it was before any hyperparameter was learnt
    """

    memory: Any
    rng: np.random.Generator
    prior: Model


class Learner(Protocol):
    """How a batch is learnt from."""

    def learned(
        self,
        model: Model,
        summary: Any,
        memory: Any,
        source: Any,
        executor: Executor,
        rng: np.random.Generator,
    ) -> Streamed:
        """The state after a batch."""
        ...


def begun(estimator: Any, prior: Model, remembered: Callable[[np.random.Generator], Any]) -> Underway:
    """What is kept of a stream that begins; ``remembered`` makes the memory."""
    rng = np.random.default_rng(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max))
    return Underway(remembered(rng), rng, prior)


def set_stream(estimator: Any, underway: Underway | None) -> None:
    """Keep this; None: the estimator has no stream."""
    if underway is None:
        estimator.__dict__.pop(STREAM, None)
    else:
        estimator.__dict__[STREAM] = underway


def refuse_labels(fitted: Model) -> None:
    """Refuse a stream that goes on from a model with labels."""
    if isinstance(fitted.likelihood, Labelled):
        raise ValueError("a stream has no labels, and this model was fitted with y; use another algorithm.")


def go_on(
    estimator: Any,
    source: ArraySource,
    executor: Executor,
    unknown: Callable[[], Any],
    learner: Callable[[Model], Learner],
) -> None:
    """Learn from a batch, with births, merges and deaths.

    unknown : makes the memory of a stream of which nothing is remembered
    learner : says how a batch is learnt from, for a model before any hyperparameter was learnt
    """
    began = time.perf_counter()
    model = estimator.model_
    known = estimator.__dict__.get(STREAM) or begun(estimator, model, lambda rng: unknown())
    prior = known.prior
    rng = deepcopy(known.rng)  # a batch that fails changes nothing
    if prior.likelihood.n_statistics != model.likelihood.n_statistics:  # more columns have missing values now
        prior = replace(prior, likelihood=model.likelihood)
    after = learner(prior).learned(model, estimator.summary_, known.memory, source, executor, rng)
    estimator._append(after.model, after.total, source.n_rows, time.perf_counter() - began, after.moves)
    set_stream(estimator, Underway(after.memory, rng, prior))
