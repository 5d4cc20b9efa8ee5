"""Learning from more data: what they say is added to the model, or a stream goes on, of which an estimator keeps something."""

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..data import ArraySource
from ..inference import Executor, Options, Streaming
from ..inference.stream import Streamed
from ..inference.visit import visit
from ..likelihoods import Labelled
from ..model import Model
from ..responses import NoResponse
from . import _choices as choices
from . import _hyperparameters as hyperparameters
from ._estimator import seed_of

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


class Continuation(NamedTuple):
    """How a stream goes on.

    unknown : makes the memory of a stream of which nothing is remembered
    learner : says how a batch is learnt from, for a model before any hyperparameter was learnt
    """

    unknown: Callable[[], Any]
    learner: Callable[[Model], Learner]


def begin_stream(
    estimator: Any, prior: Model, source: Any, remember: Callable[[Streaming, Any, np.random.Generator], Any]
) -> None:
    """Keep what a stream that began with a source needs later, if the algorithm of the estimator is for streams.

    prior : the model as it was before any hyperparameter was learnt
    remember : makes the memory
    """
    algorithm = choices.algorithm(estimator)
    estimator.__dict__.pop(STREAM, None)
    if isinstance(algorithm, Streaming):
        estimator.__dict__[STREAM] = _begun(estimator, prior, partial(remember, algorithm, source))


def learn_more(
    estimator: Any,
    source: ArraySource,
    executor: Executor,
    continuation: Callable[[Streaming], Continuation],
    known: Any = None,
) -> None:
    """Learn from more data, in one visit; of a stream with births, merges and deaths.

    known : the summary that the parameters of the visit follow from, if more clusters are known now than the model has

    Raises
    ------
    ValueError : a stream goes on from a model that was fitted with y.
    """
    algorithm = choices.algorithm(estimator)
    if isinstance(algorithm, Streaming):
        _refuse_told(estimator.model_)
        _go_on(estimator, source, executor, continuation(algorithm))
    else:
        _absorb(estimator, source, executor, estimator.summary_ if known is None else known)


def renewing(
    estimator: Any,
    algorithm: Streaming,
    weight: float,
    search: Callable[..., Any],
    ready: Callable[[Any], Any],
    learn: tuple[str, ...],
) -> Continuation:
    """How a stream goes on whose moves are judged by searches of what is remembered.

    weight : of all data so far
    search : the class of searches
    ready : a source as searches visit it
    learn : the hyperparameters to learn
    """
    options = hyperparameters.learning(Options(1, estimator.max_laps, estimator.tol), learn)
    moves = choices.moves(estimator)
    renewal = partial(search, moves=moves, options=options)
    return Continuation(
        lambda: algorithm.unknown(weight), lambda prior: algorithm.renewed(prior, renewal, ready, moves, learn)
    )


def _begun(estimator: Any, prior: Model, remembered: Callable[[np.random.Generator], Any]) -> Underway:
    """What is kept of a stream that begins; ``remembered`` makes the memory."""
    rng = np.random.default_rng(seed_of(estimator))
    return Underway(remembered(rng), rng, prior)


def _refuse_told(fitted: Model) -> None:
    """Refuse a stream that goes on from a model with labels, or with a response."""
    if isinstance(fitted.likelihood, Labelled):
        raise ValueError("a stream has no labels, and this model was fitted with y; use another algorithm.")
    if not isinstance(fitted.response, NoResponse):
        raise ValueError("a stream learns from no answers, and this model was fitted with y; use another algorithm.")


def _go_on(estimator: Any, source: ArraySource, executor: Executor, continuation: Continuation) -> None:
    """Learn from a batch, with births, merges and deaths."""
    began = time.perf_counter()
    model = estimator.model_
    known = estimator.__dict__.get(STREAM) or _begun(estimator, model, lambda rng: continuation.unknown())
    prior = known.prior
    rng = deepcopy(known.rng)  # a batch that fails changes nothing
    if prior.likelihood.n_statistics != model.likelihood.n_statistics:  # more columns have missing values now
        prior = replace(prior, likelihood=model.likelihood)
    learner = continuation.learner(prior)
    after = learner.learned(model, estimator.summary_, known.memory, source, executor, rng)
    estimator._append(after.model, after.total, source.n_rows, time.perf_counter() - began, after.moves)
    estimator.__dict__[STREAM] = Underway(after.memory, rng, prior)


def _absorb(estimator: Any, source: ArraySource, executor: Executor, known: Any) -> None:
    """Add what more data say to the model, in one visit; the numbers of the clusters stay.

    known : the summary that the parameters of the visit follow from
    """
    began = time.perf_counter()
    model = estimator.model_
    summary = estimator.summary_
    parameters = model.parameters(known, estimator.dtype_)
    seen = visit(model, parameters, source, source.batches(1)[0], executor, local=False).summary
    K = summary.K
    kept = np.append(np.arange(K), K + np.flatnonzero(seen.N[K:] > 0.0))
    total = (summary.insert_empty(seen.K - K) + seen).take(kept) if seen.K > K else summary + seen
    estimator._append(model, total, source.n_rows, time.perf_counter() - began)
