"""A fitted hidden Markov model reading sequences that users pass: states, classes and evidence; and sequences drawn from it."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._arguments import check_count, shown
from ..data import SequenceSource
from ..data.frames import values_of
from ..data.label_files import check_labels, write_labels
from ..inference import Executor
from . import _chains as chains
from . import _sequences as sequences
from ._base import Columns, survey
from ._classes import Classified, with_known_classes
from ._estimator import Estimator, seed_of
from ._sequence_reader import SequenceReader, of_chunk

Array = NDArray[np.floating]


class SequenceReading(Classified, Estimator):
    """What a fitted hidden Markov model says of sequences."""

    random_state: Any
    n_states_: int
    start_probabilities_: Array
    transition_matrix_: Array

    def predict(self, X: Any, lengths: Any = None, *, y: Any = None, out: Any = None) -> NDArray[np.integer]:
        """The most probable path of states through each sequence (Viterbi), (T,).

        Parameters
        ----------
        X, lengths : as in `fit`, with the same columns
        y : array (T,), optional
            Labels of some rows, if the model was fitted with labels: the path keeps to states of their classes
        out : path of a .npy file, optional
            Where to write the states as int32, some at a time; the file appears when all are written.  What is returned is
            mapped from it.

        Raises
        ------
        ValueError
            If ``out`` does not end with .npy, or is the file X.
        FileNotFoundError
            If the folder of ``out`` does not exist.
        """
        if out is None:
            return self.decode(X, lengths, y=y)
        path = check_labels(out, X)
        with self._executor(X) as executor:
            source, columns = self._source(X, lengths, executor, y)
            pieces = self._by_chunk(source, columns, executor, SequenceReader.path)
            return write_labels(path, source.n_rows, pieces)

    def decode(self, X: Any, lengths: Any = None, method: str = "viterbi", *, y: Any = None) -> NDArray[np.intp]:
        """The states of all rows, (T,).

        method : "viterbi", the most probable path of each sequence; or "map", the most probable state of each row
        y : as in `predict`
        """
        if not isinstance(method, str) or method not in ("viterbi", "map"):
            raise ValueError(f"method must be 'viterbi' or 'map'; got {shown(method)}.")
        task = SequenceReader.path if method == "viterbi" else SequenceReader.labels
        return np.concatenate(self._read(X, lengths, task, y))

    def predict_proba(self, X: Any, lengths: Any = None, *, y: Any = None) -> Array:
        """The probability of each state at each row, given all rows of its sequence, and labels y (T,) if given, (T, K)."""
        return np.concatenate(self._read(X, lengths, SequenceReader.probabilities, y))

    def predict_class(self, X: Any, lengths: Any = None, *, y: Any = None) -> NDArray[Any]:
        """The most probable class of each row, (T,), one of ``classes_``; of a model that was fitted with labels.

        Parameters
        ----------
        X, lengths : as in `fit`, with the same columns
        y : array (T,), optional
            Labels of some rows, which then tell of the rows around them

        Examples
        --------
        >>> import numpy as np
        >>> from stickbreak import HMM
        >>> rng = np.random.default_rng(0)
        >>> z = np.repeat(np.arange(4), 50)[rng.permutation(4).repeat(50) * 50]
        >>> X = rng.normal(np.array([-20.0, -7.0, 7.0, 20.0])[z][:, None], 1.0)
        >>> y = np.full(200, None)
        >>> for state, name in enumerate(["far", "near", "near", "far"]):
        ...     y[np.flatnonzero(z == state)[:5]] = name
        >>> HMM(random_state=0).fit(X, y).predict_class([[-19.0], [-21.0], [6.0], [8.0]])
        array(['far', 'far', 'near', 'near'], dtype='<U4')
        """
        return self._most_probable(self.predict_class_proba(X, lengths, y=y))

    def predict_class_proba(self, X: Any, lengths: Any = None, *, y: Any = None) -> Array:
        """The probability of each of ``classes_`` at each row, (T, C): of its states by ``cluster_classes_``.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the model was fitted without labels: use ``fit(X, y)``.
        """
        self._require_classes()
        return self._class_chances(self.predict_proba(X, lengths, y=y))

    def class_accuracy(self, X: Any, y: Any, lengths: Any = None) -> float:
        """The share of the labels y (T,) whose class `predict_class` finds; rows with unknown labels do not count."""
        return self._accuracy(self.predict_class_proba(X, lengths), sequences.labels_of(y, X))

    def score(self, X: Any, y: Any = None, lengths: Any = None) -> float:
        """Log evidence of sequences, in nats, all rows together.

        Of the model with posterior mean transitions and each row's posterior-predictive density given its state;
        where the model was fitted with labels, also of labels y (T,).
        """
        return float(sum(self._read(X, lengths, SequenceReader.log_evidence, y)))

    def durations(self) -> Array:
        """Expected number of steps that each state lasts, 1 / (1 - transition_matrix_[k, k]), (K,)."""
        check_is_fitted(self)
        leaving = self.transition_matrix_.sum(axis=1) - np.diag(self.transition_matrix_)
        return np.asarray(np.divide(1.0, leaving, out=np.full(self.n_states_, np.inf), where=leaving > 0.0))

    def sample(self, n_samples: int = 1) -> tuple[Array, NDArray[np.intp]]:
        """Draw a sequence: rows X (n_samples, D) and their states (n_samples,).  Autoregressive ones begin at zero."""
        check_is_fitted(self)
        check_count(n_samples, "n_samples")
        rng = np.random.default_rng(seed_of(self))
        chances = np.vstack([self.start_probabilities_, self.transition_matrix_]).cumsum(axis=1)
        states = np.empty(n_samples, np.intp)
        last = -1
        for t, u in enumerate(rng.random(n_samples)):
            row = chances[last + 1]
            last = states[t] = min(int(np.searchsorted(row, u * row[-1], side="right")), self.n_states_ - 1)
        family = self.model_.likelihood
        N = self.summary_.N
        S = self.summary_.S
        D = self.n_features_in_
        lags = chains.lags(family)
        X = np.zeros((n_samples, D))
        if lags:
            past = np.zeros(D * lags)
            for t, k in enumerate(states):
                row = family.complete(np.concatenate([np.zeros(D), past])[None], float(N[k]), S[k], rng)[0]
                X[t] = row[:D]
                past = row[: D * lags]
            return X, states
        for k in np.unique(states):
            X[states == k] = family.sample(float(N[k]), S[k], rng, int((states == k).sum()))
        return values_of(X, self.levels_), states

    def _source(self, X: Any, lengths: Any, executor: Executor, y: Any = None) -> tuple[SequenceSource, Columns]:
        check_is_fitted(self)
        source = sequences.as_sequences(self, X, lengths, chains.lags(self.model_.likelihood), reset=False)
        columns = survey(self, self.model_.likelihood, source.flat, executor)
        return sequences.collapsed(with_known_classes(self, source, sequences.labels_of(y, X))), columns

    def _read(self, X: Any, lengths: Any, task: Callable[..., Any], y: Any = None) -> list[Any]:
        """The results of a task on every chunk."""
        with self._executor(X) as executor:
            source, columns = self._source(X, lengths, executor, y)
            return list(self._by_chunk(source, columns, executor, task))

    def _by_chunk(
        self, source: SequenceSource, columns: Columns, executor: Executor, task: Callable[..., Any]
    ) -> Iterator[Any]:
        """The results of a task on every chunk, in order."""
        reader = SequenceReader.of(self.model_, self.summary_, source, columns.missing)
        for found in executor.over(source, partial(of_chunk, reader, task), source.whole()):
            source.release()
            yield found

    def _paths(self, source: SequenceSource, columns: Columns, executor: Executor) -> NDArray[np.intp]:
        """The most probable path of states through each sequence, (T,)."""
        return np.concatenate(list(self._by_chunk(source, columns, executor, SequenceReader.path)))
