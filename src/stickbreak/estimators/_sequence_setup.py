"""The setup of a fit to sequences with a family of their rows: labels, where it begins and how it searches."""

from functools import partial
from typing import Any, NamedTuple

from ..cluster.sources import is_spread
from ..data import SequenceSource
from ..data.check import Finding
from ..data.labelled_rows import with_classes
from ..inference import Session, StateSearch, Streaming, states_by_class
from ..model import Model
from . import _chains as chains
from . import _sequences as sequences
from ._base import Columns
from ._check import checked
from ._chosen import Family
from ._classes import Classes, classes_of, require_rows
from ._continued import learnt_along
from ._devices import check_visits
from ._labelled import labelled
from ._setup import Setup
from ._state_selection import problem_of
from ._state_start import choose_start


class SequenceSetup(NamedTuple):
    """The setup of a fit to sequences, and what was found on the way.

    source : the sequences, with the history that their family wants
    visited : as laps visit them
    columns : what all rows say of each column
    findings : of the data check
    prior : the model before any hyperparameter was learnt
    """

    setup: Setup
    source: SequenceSource
    visited: SequenceSource
    columns: Columns
    findings: list[Finding]
    prior: Model


def classes_of_sequences(estimator: Any, X: Any, y: Any, source: SequenceSource) -> Classes | None:
    """The classes of the rows of a source, as X has them, or None where no label is known.

    Raises
    ------
    ValueError, TypeError : labels do not fit the rows, or sequences on a cluster, or a stream.
    """
    sequences.refuse_lengths(y, source.n_rows)
    classes = classes_of(sequences.labels_of(y, X), source.n_rows)
    if classes is not None and is_spread(source):
        raise TypeError(
            "sequences on a cluster cannot have classes; leave out y, or pass X.compute() and executor=None."
        )
    if classes is not None and isinstance(estimator.algorithm, Streaming):
        raise ValueError("a stream of sequences has no labels; leave out y, or algorithm=Streaming(...).")
    return classes


def sequence_setup(
    estimator: Any, X: Any, source: SequenceSource, classes: Classes | None, session: Session, family: Family
) -> SequenceSetup:
    """The setup of a fit of states with a family to the sequences of a source, as X has them."""
    likelihood = family.likelihood
    executor = session.executor
    lagged = source.with_lags(chains.lags(likelihood))
    columns, findings = checked(estimator, likelihood, lagged.flat, executor)
    sequences.check_observed(lagged)
    visited = sequences.collapsed(lagged)
    problem = problem_of(estimator, likelihood, visited, columns)
    check_visits(estimator, X, problem.model, lagged)
    learn = problem.options.learn + problem.options.learn_late
    start = partial(choose_start, estimator, problem.model, visited, session, learn=learn)
    learnt = learnt_along(estimator, problem.model, learn)
    setup = Setup(problem, start, partial(StateSearch, learnt=learnt))
    if classes is not None:
        require_rows(classes, lagged.weights)
        visited = sequences.collapsed(with_classes(lagged, classes.codes))
        n_classes = len(classes.names)
        steps = lagged.lags + 1
        setup = labelled(estimator, setup, n_classes, visited, executor, StateSearch, states_by_class, steps)
    return SequenceSetup(setup, lagged, visited, columns, findings, problem.model)
