"""Hidden Markov models and sequences: what users pass as sources, where fits start, and a fitted model reading sequences."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..allocations import Allocation, Duration, FiniteMarkovChain, HDPMarkovChain
from ..allocations.markov import ChainPrior
from ..cluster.sources import SpreadSequences
from ..data import ArraySource, Sequences, SequenceSource, SparseSource
from ..data.arrays import NUMBERS, as_array
from ..data.distinct import collapse
from ..data.frames import Encoded, Levels, as_column, as_frame, encode
from ..data.opening import as_data, is_path
from ..data.sequence_files import read_sequences
from ..data.sources import CHUNK_ROWS, Chunk
from ..data.table import Table
from ..inference import Executor, Options, Session, StateSearch
from ..inference.init import from_responsibilities, one_cluster
from ..inference.visit import visit
from ..kernels.markov import forward
from ..likelihoods import REGISTRY, AutoregressiveGaussian, Labelled, Likelihood
from ..likelihoods.features import features
from ..model import Model, SequenceSummary, Summary
from ..model.messages import Prepared, blocks, padded, smoothed
from ..model.paths import viterbi
from ..model.sequences import labelled
from ..moves.blocks import block_states
from . import _choices as choices
from ._base import as_source, survey
from ._given import check_columns, whole_numbers
from ._reader import Reader
from ._spread import goes_to_workers, spread_sequences
from ._start import OfModel, Translation, label_codes

Array = NDArray[np.floating]

FIRST_STICKINESS, FIRST_CONCENTRATION = 50.0, 1.0  # where they are learnt
CONCENTRATIONS = "stickiness", "transition_concentration", "start_concentration", "concentration"  # that can be learnt
BLOCK_ROWS = 50  # of the blocks that states start from, where sequences are as long
SEARCH_ROWS = 20_000  # of the sample on which stochastic inference finds its states
ON_SAMPLE = 0.1  # the least tolerance of that search, in nats for each of them
REPEATED = 4  # rows are looked up by their distinct patterns where these are fewer than one in so many


def stacked(estimator: Any, X: Any, lengths: Any, reset: bool) -> tuple[Any, Any]:
    """The rows of all sequences one after another, and their lengths, from one table or a list of sequences.

    A list holds sequences if its items are arrays, frames, columns or tables as nested lists; one-dimensional items are
    sequences of one column.  A nested list of single numbers is a table.
    """
    if not isinstance(X, (list, tuple)) or isinstance(X, Encoded) or not any(map(_is_sequence, X)):
        return X, lengths
    if lengths is not None:
        raise ValueError(
            "lengths go with one array of all rows; pass either a list of sequences or one array with lengths."
        )
    frames = _as_frames(X)
    if frames is not None:
        sizes = [len(frame) for frame in frames]
        table = encode(*frames)
        check_columns(estimator, frames[0].columns, len(frames[0].columns), reset)
        named = all(isinstance(name, str) for name in table.names or ())
        rows: Any = table if named else table._replace(names=None)
    else:
        arrays = [_table(x, i) for i, x in enumerate(X)]
        sizes = [len(x) for x in arrays]
        widths = [x.shape[1] for x in arrays]
        if len(set(widths)) > 1:
            other = next(i for i, width in enumerate(widths) if width != widths[0])
            raise ValueError(
                f"all sequences must have the same columns; that at position 0 has {widths[0]}, "
                f"that at position {other} has {widths[other]}."
            )
        kinds = {x.dtype.kind for x in arrays}
        rows = np.concatenate(arrays if kinds <= set(NUMBERS) else [x.astype(object) for x in arrays])
    if 0 in sizes:
        raise ValueError(f"the sequence at position {sizes.index(0)} of the list has no rows; each needs at least 1.")
    return rows, sizes


def _is_sequence(x: Any) -> bool:
    """Whether an item of a list is a sequence, not a row of numbers."""
    if isinstance(x, (list, tuple)):
        return len(x) > 0 and any(isinstance(row, (list, tuple, np.ndarray)) and np.ndim(row) > 0 for row in x[:1])
    return bool(getattr(x, "ndim", 0)) or as_frame(x) is not None or as_column(x) is not None


def _as_frames(X: Any) -> list[Any] | None:
    """Frames or columns of a list as frames of narwhals with the same names of columns, or None if the list holds arrays."""
    frames = [as_frame(x) for x in X]
    columns = [as_column(x) for x in X]
    if all(column is not None for column in columns):
        names = {column.name for column in columns}
        name = columns[0].name if len(names) == 1 and isinstance(columns[0].name, str) and columns[0].name else None
        if name is None and all(column.dtype.is_numeric() for column in columns):
            return None
        return [column.alias(name or "value").to_frame() for column in columns]
    if all(frame is not None for frame in frames):
        return frames
    mixed = [type(x).__name__ for x, frame, c in zip(X, frames, columns) if frame is not None or c is not None]
    if mixed:
        other = next(
            type(x).__name__ for x, f, c in zip(X, frames, columns) if f is None or type(x).__name__ != mixed[0]
        )
        raise TypeError(f"a list of sequences must hold items of one kind; got {mixed[0]} and {other}.")
    return None


def _table(x: Any, position: int) -> NDArray[Any]:
    """A sequence of a list as a table of rows; one-dimensional ones have one column."""
    try:
        array = as_array(x)
    except (ValueError, TypeError) as error:
        raise type(error)(f"the sequence at position {position} of the list: {error}") from None
    if array.ndim not in (1, 2):
        raise ValueError(f"the sequence at position {position} of the list has {array.ndim} axes; it must have 1 or 2.")
    return array if array.ndim == 2 else array[:, None]


def as_sequences(estimator: Any, X: Any, lengths: Any, lags: int, reset: bool) -> SequenceSource:
    """Rows and the lengths of their sequences as a source, remembering or comparing the columns."""
    if goes_to_workers(estimator, X, reset):
        return spread_sequences(estimator, X, lengths, lags, reset)
    X, lengths = _of_files(estimator, X, lengths, reset)
    X, lengths = stacked(estimator, X, lengths, reset)
    source = as_source(estimator, X, reset=reset)
    if isinstance(source, SparseSource):
        raise TypeError("sequences must be dense; pass X.toarray().")
    T = source.n_rows
    sizes = whole_numbers("lengths", [T] if lengths is None else lengths, 1, T)
    return SequenceSource(source.X, sizes, lags)


def _of_files(estimator: Any, X: Any, lengths: Any, reset: bool) -> tuple[Any, Any]:
    """The rows of files and the lengths of their sequences, where X is a path and ``lengths`` at most names a column."""
    if not is_path(X):
        if isinstance(lengths, str):
            raise ValueError(
                f"lengths={lengths!r} names a column of files, and X is no path; pass the number of rows of each sequence."
            )
        return X, lengths
    known = {} if reset else estimator.levels_
    rows = read_sequences(X, lengths if isinstance(lengths, str) else None)
    data = as_data(Table(rows.X, rows.names, rows.levels), known)
    return data, rows.lengths if lengths is None or isinstance(lengths, str) else lengths


def collapsed(source: SequenceSource) -> SequenceSource:
    """The same sequences with codes for their distinct rows, where there are few."""
    distinct = None if source.lags or isinstance(source, SpreadSequences) else collapse(ArraySource(source.X))
    if distinct is None or distinct.source.n_rows * REPEATED > source.n_rows:
        return source
    return source.like(distinct.source.X, np.diff(source.edges), codes=distinct.inverse.astype(np.int32))


def labels_of(y: Any, X: Any) -> Any:
    """Labels of all rows, one after another, where they come as a list of arrays, one for each sequence of X.

    Raises
    ------
    ValueError : X is a list of sequences, too, and one of them has other rows than its labels.
    """
    if not isinstance(y, (list, tuple)) or not any(np.ndim(one) > 0 and not isinstance(one, str) for one in y):
        return y
    labels = [as_array(one, f"y[{i}]").tolist() for i, one in enumerate(y)]
    if isinstance(X, (list, tuple)):
        sizes = [len(rows) for rows in X]
        if sizes != [len(one) for one in labels]:
            i = next((i for i, (n, one) in enumerate(zip(sizes, labels)) if n != len(one)), min(len(X), len(labels)))
            raise ValueError(
                f"y must hold an array of labels for each sequence of X, with one for each row; see sequence {i}."
            )
    return np.array([label for one in labels for label in one], dtype=object)


def refuse_lengths(y: Any, n: int) -> None:
    """Refuse whole numbers, fewer than there are rows, that sum to their number."""
    numbers = isinstance(y, (list, tuple)) and all(isinstance(one, (int, np.integer)) for one in y)
    given = np.asarray(y) if numbers else y
    whole = isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype.kind in "iu"
    if whole and len(given) < n and given.sum() == n:
        raise ValueError(
            f"y holds {len(given)} numbers that sum to the number of rows: pass the lengths of sequences as lengths=."
        )


def check_observed(source: SequenceSource) -> None:
    """Refuse sequences without a single observation."""
    if not source.total_weight > 0.0:
        raise ValueError("no row has an observation: all values are missing.")


def lags(likelihood: Likelihood) -> int:
    """The steps before a row that a likelihood wants to see."""
    family = likelihood.family if isinstance(likelihood, Labelled) else likelihood
    return family.lags if isinstance(family, AutoregressiveGaussian) else 0


def given_lags(estimator: Any) -> int:
    """The same of the likelihood that an estimator is given, as far as that is known before the data."""
    choice = estimator.likelihood
    if isinstance(choice, str):
        return lags(REGISTRY[choice]()) if choice in REGISTRY else 0
    return lags(choice)


def likelihood(estimator: Any, source: SequenceSource) -> Likelihood:
    """The likelihood of the rows, where the estimator is given one."""
    choice = estimator.likelihood
    if source.lags:
        located: Likelihood = (REGISTRY[choice]() if isinstance(choice, str) else choice).locate(None, source.n_columns)
        choices.refuse_categories(estimator, located, estimator.n_features_in_)
        return located
    return choices.likelihood(estimator, source.flat)


def allocation(estimator: Any) -> Allocation:
    """The allocation of a hidden Markov model."""
    choice = estimator.allocation
    if not isinstance(choice, str):
        given: Allocation = choice
        return given
    n = estimator.n_init_states
    alpha = FIRST_CONCENTRATION if choice == "hdp" else float(n)
    alpha = alpha if isinstance(estimator.transition_concentration, str) else float(estimator.transition_concentration)
    kappa = FIRST_STICKINESS
    if isinstance(estimator.stickiness, Duration):
        kappa = estimator.stickiness.stickiness(alpha)
    elif not isinstance(estimator.stickiness, str):
        kappa = float(estimator.stickiness)
    first = float(estimator.start_concentration)
    if choice == "finite":
        return FiniteMarkovChain(n, alpha, kappa, first)
    return HDPMarkovChain(alpha, kappa, first, choices.of_shares(estimator))


def learnt(estimator: Any, likelihood: Likelihood) -> tuple[str, ...]:
    """The hyperparameters to learn: concentrations that are "learn", and those that ``learn`` names."""
    names = choices.without_priors(estimator, CONCENTRATIONS)
    return choices.with_concentrations(estimator, choices.learnt(estimator, likelihood, names), names)


def learnt_again(estimator: Any) -> tuple[str, ...]:
    """The same of a fitted model."""
    names = choices.without_priors(estimator, CONCENTRATIONS)
    return choices.with_concentrations(estimator, choices.learnt_again(estimator, names), names)


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
        options = choices.learning(Options(1, estimator.max_laps, max(estimator.tol, ON_SAMPLE)), learn)
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
    may_miss = other.model_.likelihood.may_miss
    if kind.has_order:
        known = copy(source)
        known.X = translate(source.X)
        survey(other, other.model_.likelihood, known.flat, executor)
        reader = SequenceReader.of(other.model_, other.summary_, known, may_miss(source.n_columns))
        parameters = reader.model.parameters(reader.summary, known.dtype)
        seen = visit(reader.model, parameters, known, known.batches(1)[0], executor).summary
        return replace(seen, S=_statistics(reader, known, model, source, executor))
    mixture = Reader.of(other.model_, other.summary_, may_miss(D), source.dtype)
    given = OfNewest(OfModel(mixture, translate, may_miss(D)), D)
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
    reader: "SequenceReader", known: SequenceSource, model: Model, source: SequenceSource, executor: Executor
) -> Array:
    """The statistics (K, F) of a model's own features, under the state probabilities of another model."""
    parts = executor.over(source, partial(_statistics_of, reader, known, model), source.batches(1)[0])
    return np.asarray(sum(parts))


def _statistics_of(
    reader: "SequenceReader", known: SequenceSource, model: Model, source: SequenceSource, chunk: Chunk
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


@dataclass(frozen=True)
class SequenceReader:
    """A fitted hidden Markov model and its potentials, for the sequences of a source."""

    model: Model
    summary: SequenceSummary
    prepared: Prepared

    @classmethod
    def of(cls, model: Model, summary: SequenceSummary, source: SequenceSource, missing: NDArray[np.bool_]) -> Self:
        """A reader of sequences in which values of the columns ``missing`` (D,) may be missing."""
        located, S = model.likelihood.with_missing(missing, summary.S)
        model = replace(model, likelihood=located)
        summary = replace(summary, S=S)
        return cls(
            model, summary, model.kind.prepare(model.likelihood, model.parameters(summary, source.dtype), source)
        )

    def path(self, X: Sequences) -> NDArray[np.intp]:
        """The most probable path (Viterbi), (n,)."""
        return viterbi(self.model.likelihood, self.prepared, X)

    def probabilities(self, X: Sequences) -> Array:
        """The probability of each state at each row, given all of its sequence, (n, K)."""
        R = np.empty((len(X), self.prepared.K))
        for block in smoothed(self.model.likelihood, self.prepared, X):
            R[block.rows] = block.R[:, : self.prepared.K]
        return R

    def labels(self, X: Sequences) -> NDArray[np.intp]:
        """The most probable state at each row, (n,)."""
        labels = np.empty(len(X), np.intp)
        for block in smoothed(self.model.likelihood, self.prepared, X):
            labels[block.rows] = block.R[:, : self.prepared.K].argmax(axis=1)
        return labels

    def log_evidence(self, X: Sequences) -> float:
        """The log evidence of all sequences of a chunk: mean transitions, predictive densities of rows given their states."""
        N = self.summary.N
        S = self.summary.S
        K = self.prepared.K
        allocation = self.model.allocation
        assert isinstance(allocation, ChainPrior)
        means = allocation.means(self.summary)
        Kp = padded(K)
        start = np.zeros(Kp)
        A = np.zeros((Kp, Kp))
        start[:K], A[:K, :K] = means[0], means[1:]
        table = None
        if X.source.codes is not None:
            table = self.model.likelihood.log_predictive(X.source.X.astype(np.float64), N, S)
        total = 0.0
        last = np.zeros(Kp)
        for (rows,) in blocks([0, len(X)], K):
            if table is None:
                C = self.model.likelihood.log_predictive(X.rows(rows).astype(np.float64), N, S)
            else:
                C = table[X.codes(rows)]
            C = C * X.weights(rows)[:, None]
            top = C.max(axis=1, keepdims=True)
            L = np.zeros((len(C), Kp))
            scale = np.empty(len(C))
            L[:, :K] = np.exp(C - top)
            alpha = np.empty((len(C) + 1, Kp))
            alpha[0] = last
            forward(L, np.arange(len(L)), X.first(rows), np.array([0, len(L)]), start, A, alpha, scale)
            last = alpha[-1]
            total += float(np.log(scale).sum() + top.sum())
        return total


def of_chunk(
    reader: SequenceReader, task: Callable[[SequenceReader, Sequences], Any], source: SequenceSource, chunk: Chunk
) -> Any:
    """The result of a task on the sequences of one chunk."""
    return task(reader, source.read(chunk)[0])
