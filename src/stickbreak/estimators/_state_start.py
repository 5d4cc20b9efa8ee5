"""Where fits of hidden Markov models start."""

from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..cluster.sources import SpreadSequences
from ..data import SequenceSource
from ..data.arrays import as_array
from ..data.frames import Levels
from ..data.sources import CHUNK_ROWS, Chunk
from ..inference import Executor, Options, Session, StateSearch
from ..inference.init import from_responsibilities, one_cluster
from ..inference.reader import Reader
from ..inference.visit import visit
from ..likelihoods.features import features
from ..model import Model, Summary
from ..model.sequences import labelled
from ..moves.blocks import block_states
from . import _choices as choices
from . import _hyperparameters as hyperparameters
from ._base import survey
from ._chains import lags
from ._sequence_reader import SequenceReader
from ._start import OfModel, Translation, label_codes

Array = NDArray[np.floating]

BLOCK_ROWS = 50  # of the blocks that states start from, where sequences are as long
SEARCH_ROWS = 20_000  # of the sample on which stochastic inference finds its states
ON_SAMPLE = 0.1  # the least tolerance of that search, in nats for each of them


def choose_start(
    estimator: Any,
    model: Model,
    source: SequenceSource,
    session: Session,
    rng: np.random.Generator,
    learn: tuple[str, ...],
) -> Summary:
    """The summary that ``estimator.init`` stands for; ``learn`` names the hyperparameters to learn."""
    init = estimator.init
    if not isinstance(init, str):
        if hasattr(init, "fit"):
            return _from_model(init, estimator.levels_, model, source, session.executor)
        return _from_labels(init, model, source)
    if init == "blocks":
        K = min(estimator.n_init_states, model.allocation.max_clusters)
        found = block_states(model, source, K, BLOCK_ROWS, rng)
        return found * float(source.total_weight / found.N.sum())
    if not choices.algorithm(estimator).searches and "birth" in choices.moves(estimator):
        sample = source.sample(SEARCH_ROWS, rng)
        options = hyperparameters.learning(Options(1, estimator.max_laps, max(estimator.tol, ON_SAMPLE)), learn)
        search = StateSearch(model, sample, choices.MOVES, session.aside(), rng, options)
        search.run(one_cluster(model))
        return search.total * (source.total_weight / sample.total_weight)
    return one_cluster(model)


def _from_model(other: Any, levels: Levels, model: Model, source: SequenceSource, executor: Executor) -> Summary:
    check_is_fitted(other, "model_")
    kind = other.model_.kind
    D = source.n_columns // (source.lags + 1)
    if kind.has_documents or other.n_targets_ or other.n_features_in_ != D:
        raise ValueError(
            f"init is a {type(other).__name__} of {other.n_features_in_} columns, which does not fit these rows."
        )
    if kind.has_order and lags(other.model_.likelihood) != source.lags:
        raise ValueError("init has another likelihood; fit it with the likelihood of this model, or pass its labels.")
    if kind.has_order and isinstance(source, SpreadSequences):
        raise TypeError("init cannot be an HMM where sequences are on a cluster; pass its labels, or a Mixture.")
    translate = Translation.between(levels, other)
    if kind.has_order:
        known = copy(source)
        known.X = translate(source.X)
        survey(other, other.model_.likelihood, known.flat, executor)
        may_miss = other.model_.likelihood.integrates_out(source.n_columns)
        reader = SequenceReader.of(other.model_, other.summary_, known, may_miss)
        parameters = reader.model.parameters(reader.summary, known.dtype)
        seen = visit(reader.model, parameters, known, known.batches(1)[0], executor).summary
        return replace(seen, S=_statistics(reader, known, model, source, executor))
    may_miss = other.model_.likelihood.may_miss(D)
    mixture = Reader.of(other.model_, other.summary_, may_miss, source.dtype)
    given = OfNewest(OfModel(mixture, translate, may_miss), D)
    return model.ordered(from_responsibilities(model, source.flat, given, executor))


@dataclass(frozen=True)
class OfNewest:
    """The responsibilities of rows, without the history that comes after their first D columns."""

    given: OfModel
    D: int

    def __call__(self, chunk: Chunk, X: Array) -> Array:
        """Those of the rows X of a chunk."""
        return self.given(chunk, np.ascontiguousarray(X[:, : self.D]))


def _statistics(
    reader: SequenceReader, known: SequenceSource, model: Model, source: SequenceSource, executor: Executor
) -> Array:
    """The statistics (K, F) of a model's own features, under the state probabilities of another model."""
    parts = executor.over(source, partial(_statistics_of, reader, known, model), source.batches(1)[0])
    return np.asarray(sum(parts))


def _statistics_of(
    reader: SequenceReader, known: SequenceSource, model: Model, source: SequenceSource, chunk: Chunk
) -> Array:
    """The same of one chunk."""
    R = reader.probabilities(known.read(chunk)[0]) * source.observed(chunk)[:, None]
    S = np.zeros((R.shape[1], model.likelihood.n_statistics))
    for start in range(0, len(R), CHUNK_ROWS):
        rows = Chunk(chunk.start + start, min(chunk.start + start + CHUNK_ROWS, chunk.stop))
        S += (features(model.likelihood, source.rows(rows)).T @ R[start : start + CHUNK_ROWS]).T
    return S


def _from_labels(given: Any, model: Model, source: SequenceSource) -> Summary:
    labels = as_array(given, "init")
    T = source.n_rows
    if labels.shape != (T,):
        raise ValueError(f"init must be labels ({T},) of the rows; got shape {labels.shape}.")
    return model.ordered(labelled(model.likelihood, source, label_codes(labels)))
