"""The setup of a fit to rows: their family, what is said of them beside their values, where it begins and how it searches."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..data import ArraySource
from ..data.check import Finding
from ..inference import ClassSearch, LearningSearch, Search, Session, by_class
from ..inference.learning_search import Rival
from ..model import Model
from . import _choices as choices
from . import _hyperparameters as hyperparameters
from . import _likelihoods as likelihoods
from ._base import Columns
from ._births import PUBLISHED, published_birth
from ._check import checked
from ._chosen import Family
from ._devices import check_visits
from ._distinct import Distinct
from ._family import problem_of, rivals_of
from ._labelled import labelled
from ._links import check_links, linked_problem, linked_source
from ._seeds import with_rows
from ._setup import Setup
from ._start import choose_start
from ._told import Told


class RowSetup(NamedTuple):
    """The setup of a fit to rows, or to their groups, and what was found on the way.

    distinct : the rows to visit
    columns : what all rows say of each column
    findings : of the data check
    prior : the model before any hyperparameter was learnt
    """

    setup: Setup
    distinct: Distinct
    columns: Columns
    findings: list[Finding]
    prior: Model


def distinct_rows(estimator: Any, source: ArraySource) -> Distinct:
    """The rows of a source as an algorithm takes them: repeated ones once, if rows may have weights."""
    return Distinct.of(source) if choices.algorithm(estimator).takes_weights else Distinct(source)


def row_setup(
    estimator: Any,
    X: Any,
    source: ArraySource,
    plain: Distinct,
    told: Told,
    session: Session,
    rng: np.random.Generator,
    family: Family,
) -> RowSetup:
    """The setup of a fit with a family to the rows of a source, as X has them; sets ``levels_`` of the estimator.

    plain : the rows without what is told of them
    """
    executor = session.executor
    likelihood = family.likelihood
    estimator.levels_ = likelihoods.known_levels(estimator, likelihood, source.n_columns)
    learn = hyperparameters.learnt(estimator, likelihood)
    columns, findings = checked(estimator, likelihood, source, executor)
    likelihood = hyperparameters.continued(estimator, likelihood, source, learn)
    problem = problem_of(estimator, likelihood, plain.rows, columns, learn)
    check_visits(estimator, X, problem.model, source)
    if told.links is None:
        distinct = plain
        rivals = rivals_of(estimator, family, problem, columns, session, rng)
    else:
        check_links(estimator, X, source, problem.model.likelihood)
        distinct = Distinct(linked_source(problem.model.likelihood, source, told.links, executor))
        problem = linked_problem(problem, distinct.rows, source.n_columns)
        family = replace(family, rivals=[], found=None)  # these are of single rows
        rivals = []
    seeded = with_rows(estimator, problem.model, source, columns, executor)
    model, start = family.begin(seeded, partial(choose_start, estimator, seeded, distinct, session, learn=learn))
    if family.found is not None:
        model = with_rows(estimator, model, source, columns, executor)
    setup = Setup(problem._replace(model=model), start, _search(estimator, rivals))
    if told.classes is not None:
        data = told.labelled(source if told.links is None else distinct.rows)
        distinct = Distinct(data) if distinct.collapsed is None else Distinct.of(data)
        second = ClassSearch if published_birth(estimator) is None else setup.search
        setup = labelled(estimator, setup, len(told.classes.names), distinct.rows, executor, second, by_class)
    return RowSetup(setup, distinct, columns, findings, problem.model)


def _search(estimator: Any, rivals: Sequence[Rival]) -> Callable[..., Search]:
    """The search of an estimator, with what others may start from; births as published search by themselves."""
    birth = published_birth(estimator)
    if birth is None:
        return partial(LearningSearch, rivals=rivals, restarts=choices.searches_freely(estimator))
    return partial(PUBLISHED[type(birth)], birth=birth)
