"""The setup of a fit with labels of some rows, from that of a fit without."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..data import ArraySource
from ..inference import Executor, LabelledSearch, Search, Sequential, Streaming, TruncationFree
from ..likelihoods import Labelled
from ..likelihoods.labelled import OWN
from ..model import Model, Summary
from ..model.learning import OF_LIKELIHOOD
from . import _choices as choices
from ._setup import SearchProblem, Setup, Start

FIRST_ERROR = 0.1  # an error rate that is learnt, at first

Apart = Callable[[Model, Summary, Any, Executor], Summary]


def labelled(
    estimator: Any,
    setup: Setup,
    n_classes: int,
    source: ArraySource,
    executor: Executor,
    second: Callable[..., Search],
    apart: Apart,
    steps: int = 1,
) -> Setup:
    """The setup of an estimator with labels, from that without.

    It begins with the search for clusters of rows without labels, unless the algorithm does not search.

    n_classes : C
    source : rows with labels
    second : the search that follows, of rows with labels
    apart : makes a start that labels allow of one without labels
    steps : rows of the data in one row, with its history

    Raises
    ------
    ValueError : the algorithm begins clusters in a pass over rows, or in a stream, which labels cannot keep to.
    """
    if isinstance(choices.algorithm(estimator), (Sequential, Streaming, TruncationFree)):
        raise ValueError(
            f"algorithm={estimator.algorithm!r} takes no labels; leave out y, or use algorithm='memoized', 'full', "
            "'stochastic' or a Gibbs()."
        )
    plain = setup.problem
    error = estimator.label_error
    first_error = FIRST_ERROR if error is None else float(error)
    family = Labelled(plain.model.likelihood, source.n_columns - steps, n_classes, first_error, steps)
    model = replace(plain.model, likelihood=family)
    options = plain.options
    if error is None:
        options = replace(options, learn=(*options.learn, OF_LIKELIHOOD + OWN))
    start = setup.start
    if not choices.algorithm(estimator).searches:
        start = partial(_allowed, apart, model, source, executor, start)
    first = partial(setup.search, plain.model, plain.source)
    return Setup(
        SearchProblem(model, source, options), start, partial(LabelledSearch, first=first, second=second, apart=apart)
    )


def _allowed(
    apart: Apart, model: Model, source: ArraySource, executor: Executor, start: Start, rng: np.random.Generator
) -> Summary:
    """A start that labels allow."""
    return apart(model, start(rng), source, executor)
