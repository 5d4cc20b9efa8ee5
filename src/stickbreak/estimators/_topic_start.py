"""Where fits of topic models start."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..data import ArraySource, BagSource, GroupSource
from ..data.arrays import as_array, numbers
from ..data.frames import Levels
from ..inference import Chain, Executor, Options, Session, TopicSearch
from ..inference.init import from_responsibilities, from_seeds
from ..inference.reader import Reader
from ..inference.topics.anchors import anchor_topics
from ..likelihoods.features import features
from ..model import DocumentSummary, Model, Summary
from ..model.seeding import hard_summary
from . import _choices as choices
from . import _hyperparameters as hyperparameters
from ._start import OfModel, Translation, label_codes

FIRST = 64  # topics at the start where more can be born
SEARCH_DOCUMENTS = 20_000  # of the sample on which stochastic inference finds its topics
ON_SAMPLE = 0.1  # the least tolerance of that search, in nats for each of them


def choose_start(
    estimator: Any,
    model: Model,
    source: BagSource | GroupSource,
    session: Session,
    rng: np.random.Generator,
    learn: tuple[str, ...],
) -> Summary:
    """The summary that ``estimator.init`` stands for; ``learn`` names the hyperparameters to learn."""
    init = estimator.init
    K = estimator.n_init_topics
    if isinstance(source, BagSource):
        K = first_topics(estimator)
    K = min(K, model.allocation.max_clusters)
    if isinstance(init, type(estimator)):
        check_is_fitted(init)
        same = init.n_features_in_ == source.n_columns and init.grouped_ == isinstance(source, GroupSource)
        if not same or type(init.model_.likelihood.plain) is not type(model.likelihood.plain):
            raise ValueError(f"init is a model of other data: {init.n_features_in_} columns; X has {source.n_columns}.")
        return _from_model(init, estimator.levels_, model, source, session.executor)
    if not isinstance(init, str):
        if not isinstance(init, (list, tuple)) and not hasattr(init, "__array__"):
            raise ValueError(f"init must be a name, an array or a fitted {type(estimator).__name__}; got {init!r}.")
        return _from_array(as_array(init, "init"), model, source)
    if not choices.algorithm(estimator).searches and "birth" in choices.moves(estimator):
        sample = source.sample(SEARCH_DOCUMENTS, rng)
        options = hyperparameters.learning(Options(1, estimator.max_laps, max(estimator.tol, ON_SAMPLE)), learn)
        search = TopicSearch(
            model,
            sample,
            choices.MOVES,
            session.aside(),
            rng,
            options,
            make_chain=partial(make_chain, estimator, model, sample, learn),
        )
        search.run(_by_name(init, model, sample, K, rng))
        return search.total.without_local() * (source.total_weight / sample.total_weight)
    return _by_name(init, model, source, K, rng)


def first_topics(estimator: Any) -> int:
    """Topics of words at the start: the same whatever number is given, where growth and merges can leave it either way."""
    K = int(estimator.n_init_topics)
    moves = choices.moves(estimator)
    if "birth" not in moves:
        return K
    init = estimator.init
    return FIRST if "merge" in moves and isinstance(init, str) and init == "random" else min(K, FIRST)


def make_chain(
    estimator: Any, model: Model, source: ArraySource, learn: tuple[str, ...], rng: np.random.Generator
) -> Chain | None:
    """The sampler that finds the first topics of words before laps.

    None if ``init`` is not a name or the data are rows in groups.
    """
    if isinstance(estimator.init, str) and isinstance(source, BagSource):
        return Chain(model, source, rng, "document_concentration" in learn)
    return None


def _by_name(init: str, model: Model, source: BagSource | GroupSource, K: int, rng: np.random.Generator) -> Summary:
    if init == "anchor":
        if not isinstance(source, BagSource):
            raise ValueError('init="anchor" takes counts of words; use "k-means++" for rows in groups.')
        topics = anchor_topics(source.X, K, rng)
        return _from_array(topics, model, source)
    if init == "random" and isinstance(source, BagSource):
        return model.start(np.ones(K), np.zeros((K, source.n_columns)))
    return from_seeds(model, source.flat, K, init == "k-means++", rng)


def _from_model(
    other: Any, levels: Levels, model: Model, source: BagSource | GroupSource, executor: Executor
) -> Summary:
    """From another topic model: its counts of words, or the rows of groups as a mixture of its topics explains them."""
    summary: DocumentSummary = other.summary_
    if isinstance(source, BagSource):
        return model.start(summary.N, summary.S[:, : source.n_columns])
    translate = Translation.between(levels, other)
    mixture = other.model_.flat
    rows = mixture.start(summary.N, summary.S)
    reader = Reader.of(mixture, rows, mixture.likelihood.may_miss(source.n_columns), source.dtype)
    given = OfModel(reader, translate, mixture.likelihood.may_miss(source.n_columns))
    return from_responsibilities(model, source.flat, given, executor)


def _from_array(given: NDArray[Any], model: Model, source: BagSource | GroupSource) -> Summary:
    """From topics (K, V), or labels (n,) of the rows of groups."""
    if isinstance(source, GroupSource):
        if given.shape != (len(source.X),):
            raise ValueError(f"init must be labels ({len(source.X)},) of the rows; got shape {given.shape}.")
        labels = label_codes(given)
        T = features(model.likelihood, source.flat.take(np.arange(len(labels)))[0])
        return model.kind.start(hard_summary(T, np.ones(len(labels)), labels))
    topics = numbers(given, "init").astype(np.float64)
    good = topics.ndim == 2 and topics.shape[1] == source.n_columns and np.isfinite(topics).all()
    if not good or not len(topics) or (topics < 0.0).any() or not (topics.sum(axis=1) > 1e-200).all():
        raise ValueError(
            f"init must be topics (K, {source.n_columns}), non-negative, with a positive entry in each row; "
            f"got shape {topics.shape}."
        )
    S = topics * (source.total_weight / len(topics) / topics.sum(axis=1, keepdims=True))
    return model.start(S.sum(axis=1), S)
