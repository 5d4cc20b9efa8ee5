"""The choice of a likelihood for the rows of sequences: by what the columns hold, and among several by the bound."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..data import SequenceSource
from ..inference import StateSearch, Threads
from ..inference.init import one_cluster
from ..likelihoods import AutoregressiveGaussian, DiagonalGaussian, Gaussian, Likelihood
from ..model.learning import OF_LIKELIHOOD, settled
from . import _choices as choices
from ._selection import Begun, Candidate, Found, Problem, begun, compared, sample_rows
from ._sequences import lags

NUMBERS: list[type[Likelihood]] = [DiagonalGaussian, Gaussian]
MOST_LAPS = 15  # to begin a search with one family: those that fit badly need ever more states
TOLERANCE, ENOUGH = 0.1, 2  # as `Options.tol`, and quiet laps: a search has then begun well enough to be compared
WITH_HISTORY = 0.9  # of the rows, the least share that must have one for autoregressive rows to be tried


def families(estimator: Any, source: SequenceSource) -> dict[str, Likelihood]:
    """The likelihoods that suit the columns (`_choices.automatic`), by name; those of fewer parameters first.

    Where all columns are numbers, these are Gaussian rows with independent and with correlated columns, and autoregressive ones
    if most rows have a history: rows without one are not explained by them.  Those that a model given as ``init`` cannot start
    are left out.
    """
    found = choices.candidates(estimator, source.flat, numbers=NUMBERS)
    if _follows_history(found, source):
        D = source.n_columns
        found["autoregressive_gaussian"] = AutoregressiveGaussian().locate(None, 2 * D)
    first: Any = getattr(estimator.init, "model_", None)
    if first is not None and first.allocation.unit == "sequences":
        alike = {name: family for name, family in found.items() if lags(family) == lags(first.likelihood)}
        return alike or found
    return found


def select_rows(
    found: Mapping[str, Likelihood],
    problem: Callable[[Likelihood, SequenceSource], Problem],
    source: SequenceSource,
    moves: tuple[str, ...],
    threads: Threads,
    rng: np.random.Generator,
) -> list[Candidate]:
    """Begin to search a sample of sequences for states with each of several likelihoods; the best by the bound first.

    A bound is that of the same rows for each, those with a history.  The density of an autoregressive row is given the row
    before, and that of the first is not modelled; so first rows count for none, and are steps without an observation.
    Default priors do not decide: each bound is that with the prior learnt for the states found, at the cost that `select` has
    for that.  With such a prior, coefficients that are zero cost nothing; so to look back costs as much as one number more.

    problem : what a search with a likelihood on some sequences is
    """
    steps = max(map(lags, found.values()))
    whole = source.with_lags(steps)
    sample = whole.sample(sample_rows(source), rng)
    alone = sample.without_history()

    def begin(likelihood: Likelihood, best: Found | None) -> Begun:
        model, few, options = problem(likelihood, sample if lags(likelihood) else alone)
        options = replace(options, max_laps=min(options.max_laps, MOST_LAPS), tol=max(options.tol, TOLERANCE))
        search = StateSearch(model, few, moves, threads, rng.spawn(1)[0], options)
        search.begin(one_cluster(model), ENOUGH)
        total = search.total * (whole.total_weight / few.total_weight)
        learn = [OF_LIKELIHOOD + name for name in likelihood.not_given()]
        model = settled(search.found, total, learn, source.dtype)
        return begun(Found(model, total), whole.total_weight, learn, lags(likelihood))

    return compared(found, begin)[0]


def _follows_history(found: Mapping[str, Likelihood], source: SequenceSource) -> bool:
    """Whether autoregressive rows are an alternative: columns are numbers, few enough and complete, and rows have a history."""
    D = source.n_columns
    numbers = isinstance(found.get("diagonal_gaussian"), DiagonalGaussian) and (D == 1 or "gaussian" in found)
    if not numbers or 2 * D > choices.MOST_CORRELATED:
        return False
    return source.with_lags(1).total_weight >= WITH_HISTORY * source.total_weight
