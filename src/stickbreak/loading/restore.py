"""A fitted estimator from the record in a model file, with everything checked against the rest.

Nothing that is read is trusted: no array is made of a size that only a number in the file names, `Likelihood.check` and
`Summary.check` say which sizes and domains the arrays must have, and parameters pass the checks of the constructors.
"""

from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from ..data.check import Finding
from ..estimators import HMM, Mixture, TopicModel
from ..estimators import _allowed as allowed
from ..estimators._chains import lags
from ..estimators._chosen import Candidate
from ..estimators._classes import as_names
from ..estimators._estimator import Estimator
from ..estimators._fitted import Table
from ..inference import Lap
from ..likelihoods import Labelled, Likelihood, Multinomial
from ..model import BAGS, GROUPS, ROWS, SEQUENCES, AnsweredBagKind, AnsweredSummary, Kind, Model, Summary
from ..moves import MoveRecord
from ..responses import ClassResponse, NoResponse
from ..storage.describe import OF_THE_MACHINE
from ..storage.older import as_known, with_learn
from ..storage.values import (
    RESPONSES,
    SUMMARIES,
    Tensors,
    allocation_classes,
    as_flag,
    as_list,
    as_number,
    as_text,
    as_whole,
    decode,
    expect,
    expect_keys,
    known_classes,
    likelihood_classes,
)

DTYPES = ("float32", "float64")
SAME = 1e-6  # the share of the terms of a bound by which another machine may differ
ALIKE = 0.25  # the same for another version of the package


class Home(NamedTuple):
    """The class of an estimator, which function checks its parameters, its kind of data, and that of rows in groups."""

    estimator: type[Estimator]
    check: Callable[[Any], None]
    kind: Kind
    grouped: Kind | None = None


ESTIMATORS = {
    "HMM": Home(HMM, allowed.check_states, SEQUENCES),
    "Mixture": Home(Mixture, allowed.check_mixture, ROWS),
    "TopicModel": Home(TopicModel, allowed.check_topics, BAGS, GROUPS),
}


def restore(record: Any, tensors: Tensors, same_version: bool) -> Estimator:
    """The estimator that `describe` described, if its record is consistent.

    Parameters
    ----------
    record : JSON values
    tensors : every one of them must be referred to, once
    same_version : whether this version of the package wrote the record, so that the bound must come out the same

    Raises
    ------
    ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError : it is not consistent.
    """
    expect_keys("record", record, RECORD, optional=OPTIONAL)
    name = as_text("estimator", record["estimator"])
    if name not in ESTIMATORS:
        raise ValueError(f"unknown estimator {name!r:.40}; known: {', '.join(ESTIMATORS)}.")
    dtype = as_text("dtype", record["dtype"])
    if dtype not in DTYPES:
        raise ValueError(f"unknown precision {dtype!r:.40}; known: {', '.join(DTYPES)}.")
    left = dict(tensors)
    likelihood = as_known(decode(record["likelihood"], left, likelihood_classes()))
    allocation = decode(record["allocation"], left, allocation_classes())
    summary = decode(record["summary"], left, SUMMARIES)
    response = decode(record["response"], left, RESPONSES) if "response" in record else NoResponse()
    expect(isinstance(likelihood, Likelihood), "likelihood", likelihood, "a likelihood")
    expect(type(allocation).__name__ in allocation_classes(), "allocation", allocation, "an allocation")
    table = _table(record)
    kind = _answered(_kind(name, table), response)
    expect(isinstance(allocation, kind.allocations), "allocation", allocation, f"one of {kind.units}")
    expect(type(summary) is kind.summary, "summary", type(summary), f"a {kind.summary.__name__}")
    estimator: Estimator = _estimator(name, record["parameters"], left)
    if left:
        raise ValueError(f"it has arrays that nothing refers to, such as {min(left)!r:.80}.")
    model = Model(likelihood, allocation, estimator._kind(kind), response=response)
    laps = _laps(record["history"])
    with np.errstate(all="ignore"):  # values that are not finite are refused
        _check_model(model, summary, np.dtype(dtype), (table.n_features + table.n_targets) * _steps(kind, likelihood))
        _check_table(name, table, likelihood)
        _check_bounds(model, summary, laps[-1].lower_bound, record.get("lower_bound") if same_version else None)
        estimator._set_fitted(model, summary, np.dtype(dtype), laps, table)
    estimator.data_check_ = [_finding(entry) for entry in as_list("data_check", record.get("data_check", []))]
    _name_classes(estimator, model, record.get("classes"))
    if kind.has_documents and record.get("fingerprint") is not None:
        estimator._fingerprint = as_text("fingerprint", record["fingerprint"])
    if not kind.has_documents:
        estimator.selection_ = [_candidate(entry) for entry in as_list("selection", record.get("selection", []))]
    estimator.converged_ = as_flag("converged", record["converged"])
    return estimator


RECORD = {
    "estimator",
    "parameters",
    "likelihood",
    "allocation",
    "summary",
    "dtype",
    "n_features",
    "n_targets",
    "grouped",
    "feature_names",
    "levels",
    "converged",
    "history",
}

OPTIONAL = {"lower_bound", "data_check", "selection", "classes", "fingerprint", "response"}
LATER = {"ascent": 1, "origin": "start", "sample_rows": 0}  # what laps of the first files do not say
LAP = {f.name for f in fields(Lap)}
COUNTED = {
    "number": 1,
    "n_clusters": 1,
    "explored_clusters": 1,
    "ascent": 1,
    "sample_rows": 0,
}  # and their least values


def _estimator(name: str, record: Any, tensors: Tensors) -> Any:
    """An estimator that is not fitted yet, its parameters checked."""
    if not isinstance(record, dict):
        raise TypeError(f"parameters must be a table; got {record!r:.80}.")
    parameters = {key: decode(value, tensors, known_classes()) for key, value in with_learn(record).items()}
    expect(not parameters.keys() & set(OF_THE_MACHINE), "parameters", sorted(parameters), "those of a model")
    home = ESTIMATORS[name]
    estimator = home.estimator(**parameters)
    home.check(estimator)
    check_random_state(estimator.random_state)
    return estimator


def _kind(name: str, table: Table) -> Kind:
    """The kind of data of an estimator."""
    home = ESTIMATORS[name]
    if not table.grouped:
        return home.kind
    if home.grouped is None:
        raise ValueError(f"a {name} has no rows in groups.")
    return home.grouped


def _answered(kind: Kind, response: Any) -> Kind:
    """The kind of data with what documents answer, whose response must have all that is learnt from answers."""
    if isinstance(response, NoResponse):
        return kind
    expect(kind is BAGS, "response", response, "none, but of counts of words")
    known = all(value is not None for value in vars(response).values())
    expect(known, "response", response, "one of a fit")
    return AnsweredBagKind(n_outputs=response.n_outputs)


def _steps(kind: Kind, likelihood: Likelihood) -> int:
    """The number of rows of the data in one row of the likelihood: of sequences those before, too."""
    return 1 + lags(likelihood) if kind.has_order else 1


def _table(record: dict[str, Any]) -> Table:
    """The columns of the data that a model was fitted to."""
    D = as_whole("n_features", record["n_features"], 1)
    names = record["feature_names"]
    if names is not None and len([as_text("a feature name", name) for name in as_list("feature_names", names)]) != D:
        raise ValueError(f"{len(names)} feature names for {D} features.")
    levels = {}
    for entry in as_list("levels", record["levels"]):
        expect(isinstance(entry, list) and len(entry) == 2, "levels", entry, "pairs of a column and its levels")
        d = as_whole("column", entry[0], 0)
        known = as_list("levels", entry[1])
        expect(d < D and d not in levels, "column", d, f"one of {D} columns, once")
        expect(all(isinstance(level, (str, bool, int, float)) for level in known), "levels", known, "texts or numbers")
        levels[d] = known
    return Table(D, as_whole("n_targets", record["n_targets"], 0), names, levels, as_flag("grouped", record["grouped"]))


def _check_model(model: Model, summary: Summary, dtype: np.dtype[np.floating], D: int) -> None:
    """Refuse arrays that do not fit together, that no rows have as sums, or that give invalid parameters."""
    summary.check(model.likelihood.n_statistics)
    if isinstance(summary, AnsweredSummary):
        C = model.response.n_outputs
        expect(summary.B.shape[1] == C, "B", summary.B.shape, f"those of {C} outputs")
    model.likelihood.check(D, summary.N, summary.S)
    K, F = summary.S.shape
    if model.allocation.max_clusters < K:
        raise ValueError(f"{K} clusters where the prior allows {model.allocation.max_clusters}.")
    W, bias, prior, _ = model.parameters(summary, dtype)
    if W.shape != (K, F) or bias.shape != (K,):
        raise ValueError(f"the clusters' parameters have shapes {W.shape} and {bias.shape}.")
    profile = model.likelihood.profile(summary.N, summary.S)
    weights = model.allocation.mean_weights(summary)
    shown = (W, bias, 0.0 if prior is None else prior, profile.means, profile.variances, weights)
    if not all(np.isfinite(values).all() for values in shown) or (weights < 0.0).any():
        raise ValueError("the clusters' parameters are not finite.")


def _check_table(name: str, table: Table, likelihood: Likelihood) -> None:
    """Refuse columns of categories, targets and documents that the likelihood cannot have."""
    D = table.n_features + table.n_targets
    if table.levels and not likelihood.nominal(D)[list(table.levels)].all():
        raise ValueError("a column has levels, but its likelihood knows of none.")
    if table.n_targets and not (
        name == "Mixture" and likelihood.takes_targets() and likelihood.describes(D)[table.n_features :].all()
    ):
        raise ValueError(f"it has {table.n_targets} targets, but no regression of them.")
    if name == "TopicModel" and not table.grouped and not isinstance(likelihood.plain, Multinomial):
        raise ValueError(f"a {type(likelihood).__name__} has no words.")


def _check_bounds(model: Model, summary: Summary, last: float, stored: Any) -> None:
    """Refuse a model without a finite bound, or with another than that of its last lap or, if known, of the fit."""
    posterior = model.posterior(summary)
    marginal = posterior.log_marginal
    bound = posterior.bound
    terms = abs(float(summary.base)) + np.abs(marginal).sum() + np.abs(summary.H).sum() + abs(bound) + 1.0
    claimed, allowed = (last, ALIKE) if stored is None else (as_number("lower_bound", stored), SAME)
    if not (abs(claimed - bound) <= allowed * terms and last <= bound + allowed * terms):
        raise ValueError(f"it claims a bound of {claimed:.10g}, but has one of {bound:.10g}.")


def _name_classes(estimator: Any, model: Model, record: Any) -> None:
    """Set the classes of a fit with labels, which are as many as the likelihood or the response has."""
    family = model.likelihood
    C = family.n_classes if isinstance(family, Labelled) else 0
    if isinstance(model.response, ClassResponse):
        C = model.response.n_outputs
    if not C:
        expect(record is None, "classes", record, "those of a fit with labels")
        return
    names = as_list("classes", record)
    expect(len(names) == C, "classes", names, f"{C} names")
    expect(all(isinstance(name, (str, bool, int, float)) for name in names), "classes", names, "texts or numbers")
    expect(len(set(names)) == len(names), "classes", names, "names that differ")
    estimator._name_classes(as_names(names))


def _finding(record: Any) -> Finding:
    """A finding of the data check."""
    expect_keys("finding", record, {f.name for f in fields(Finding)})
    columns, names, rows = (as_list(name, record[name]) for name in ("columns", "names", "rows"))
    expect(len(columns) == len(names), "names", names, f"one for each of {len(columns)} columns")
    return Finding(
        as_text("kind", record["kind"]),
        tuple(as_whole("column", d, 0) for d in columns),
        tuple(as_text("name", name) for name in names),
        tuple(as_whole("row", row, 0) for row in rows),
        as_text("message", record["message"]),
        as_text("cure", record["cure"]),
    )


def _laps(record: Any) -> list[Lap]:
    """The history of a fit."""
    laps = [_lap(entry) for entry in as_list("history", record)]
    if not laps:
        raise ValueError("it has no history of its fit.")
    if any(lap.number <= before.number for before, lap in pairwise(laps)):
        raise ValueError("the laps of its history are out of order.")
    return laps


def _lap(record: Any) -> Lap:
    expect_keys("lap", record, LAP - set(LATER), optional=set(LATER))
    record = LATER | record
    values: dict[str, Any] = {name: as_number(name, record[name]) for name in LAP - set(COUNTED) - {"moves", "origin"}}
    values |= {name: as_whole(name, record[name], least) for name, least in COUNTED.items()}
    values["origin"] = as_text("origin", record["origin"])
    return Lap(**values, moves=tuple(_move(entry) for entry in as_list("moves", record["moves"])))


def _candidate(record: Any) -> Candidate:
    expect_keys("candidate", record, {f.name for f in fields(Candidate)})
    bound, seconds = (as_number(name, record[name]) for name in ("lower_bound", "seconds"))
    return Candidate(
        as_text("family", record["family"]), bound, as_whole("n_clusters", record["n_clusters"], 1), seconds
    )


def _move(record: Any) -> MoveRecord:
    expect_keys("move", record, {f.name for f in fields(MoveRecord)})
    gains = tuple(as_number("gain", gain) for gain in as_list("gains", record["gains"]))
    return MoveRecord(as_text("kind", record["kind"]), as_whole("tried", record["tried"], len(gains)), gains)
