"""The data check of a fit, on the rows that are read anyway."""

from typing import Any

import numpy as np

from ..data import ArraySource
from ..data.check import Finding, Picked, Roles, Table, Watch, data_check, sampled_rows
from ..inference import Executor
from ..likelihoods import Likelihood
from . import _likelihoods as likelihoods
from ._base import Columns, survey


def checked(
    estimator: Any, likelihood: Likelihood, source: ArraySource, executor: Executor
) -> tuple[Columns, list[Finding]]:
    """The `survey` of the rows of a fit, and what the data check finds in them; nothing in sparse rows."""
    sample = sampled_rows(source)
    if sample is None:
        return _survey(estimator, likelihood, source, executor), []
    D = source.n_columns
    ignored = ~likelihood.describes(D) | likelihood.compositional(D)
    own = np.arange(D) < estimator.n_features_in_  # those that follow are rows before, of sequences
    aside = ~likelihood.describes(D) & own & likelihoods.automatically(estimator)
    roles = Roles(likelihood.nominal(D), likelihood.measured(D) & ~ignored, ignored, aside)
    with np.errstate(all="ignore"):  # infinite values are refused below
        watch = Watch(*sample.limits(), Picked.of(sample, ~aside, roles.measured))
    columns = _survey(estimator, likelihood, source, executor, watch)
    names = getattr(estimator, "feature_names_in_", None)
    return columns, data_check(Table(sample, watch, roles, names))


def _survey(
    estimator: Any, likelihood: Likelihood, source: ArraySource, executor: Executor, watch: Watch | None = None
) -> Columns:
    """The `survey`; where the family was taken from ``init``, an error about a value says so."""
    try:
        return survey(estimator, likelihood, source, executor, watch)
    except ValueError as error:
        if likelihoods.continues(estimator, source) is None:
            raise
        raise ValueError(f"{error}  The likelihood was taken from init; choose another with likelihood=.") from None
