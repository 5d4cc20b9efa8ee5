"""What a model file says of a fitted estimator: JSON values and arrays, and back with everything checked against the rest.

Likelihoods, allocations and summaries are written by their dataclass fields and read back through a list of known classes.
Nothing that is read is believed: no array is made of a size that only a number in the file names, what sizes and domains the
arrays must have is said by `Likelihood.check` and `Summary.check`, and parameters pass the checks of the constructors.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from . import allocations
from .inference import Lap, Stochastic
from .likelihoods import REGISTRY, Likelihood, Multinomial, Product
from .model import DocumentSummary, Model, SequenceSummary, Summary
from .moves import MoveRecord

if TYPE_CHECKING:
    from .estimators._estimator import Estimator, Table

SUMMARIES: dict[str, type] = {
    "Summary": Summary,
    "DocumentSummary": DocumentSummary,
    "SequenceSummary": SequenceSummary,
}
OF_UNIT = {"rows": Summary, "documents": DocumentSummary, "sequences": SequenceSummary}
DTYPES = ("float32", "float64")
DIGITS = 300  # of a whole number, so that it is finite as a float too
SAME = 1e-6  # of the terms of a bound, that another machine may compute otherwise
ALIKE = 0.25  # of them, that another version of the package may

Tensors = dict[str, NDArray[Any]]
Classes = Mapping[str, type]


class Kind(NamedTuple):
    """Where an estimator is defined, what its allocation is for, and which function checks its parameters."""

    module: str
    unit: str
    check: str


ESTIMATORS = {
    "HMM": Kind("stickbreak.estimators.hmm", "sequences", "check_states"),
    "Mixture": Kind("stickbreak.estimators.mixture", "rows", "check"),
    "TopicModel": Kind("stickbreak.estimators.topic_model", "documents", "check_topics"),
}


def describe(estimator: Any, tensors: Tensors) -> dict[str, Any]:
    """Everything of a fitted estimator that is not an array, as JSON values; its arrays go to ``tensors``."""
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "estimator": type(estimator).__name__,
        "parameters": _encode_parameters(estimator.get_params(deep=False), tensors),
        "likelihood": encode(estimator.model_.likelihood, "likelihood", tensors),
        "allocation": encode(estimator.model_.allocation, "allocation", tensors),
        "summary": encode(estimator.summary_, "summary", tensors),
        "dtype": np.dtype(estimator.dtype_).name,
        "n_features": int(estimator.n_features_in_),
        "n_targets": int(estimator.n_targets_),
        "grouped": bool(estimator.grouped_),
        "feature_names": None if names is None else [str(name) for name in names],
        "levels": [[int(d), list(levels)] for d, levels in estimator.levels_.items()],
        "converged": bool(estimator.converged_),
        "lower_bound": float(estimator.lower_bound_),
        "history": [vars(lap) | {"moves": [asdict(move) for move in lap.moves]} for lap in estimator.history_],
    }


def restore(record: Any, tensors: Tensors, same_version: bool) -> "Estimator":
    """The estimator that `describe` described, if all that is said of it fits together.

    Parameters
    ----------
    record : JSON values
    tensors : every one of them must be referred to, once
    same_version : whether this version of the package wrote the record, so that the bound must come out the same

    Raises
    ------
    ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError : it does not.
    """
    _expect_keys("record", record, RECORD, optional={"lower_bound"})
    name = _text("estimator", record["estimator"])
    if name not in ESTIMATORS:
        raise ValueError(f"unknown estimator {name!r:.40}; known: {', '.join(ESTIMATORS)}.")
    dtype = _text("dtype", record["dtype"])
    if dtype not in DTYPES:
        raise ValueError(f"unknown precision {dtype!r:.40}; known: {', '.join(DTYPES)}.")
    left = dict(tensors)
    likelihood = decode(record["likelihood"], left, _likelihoods())
    allocation = decode(record["allocation"], left, _allocations())
    summary = decode(record["summary"], left, SUMMARIES)
    _expect(isinstance(likelihood, Likelihood), "likelihood", likelihood, "a likelihood")
    _expect(type(allocation).__name__ in _allocations(), "allocation", allocation, "an allocation")
    unit = ESTIMATORS[name].unit
    _expect(allocation.unit == unit, "allocation", allocation, f"one of {unit}")
    _expect(type(summary) is OF_UNIT[unit], "summary", type(summary), f"a {OF_UNIT[unit].__name__}")
    estimator: Estimator = _estimator(name, record["parameters"], left)
    if left:
        raise ValueError(f"it has arrays that nothing refers to, such as {min(left)!r:.80}.")
    model, table, laps = Model(likelihood, allocation), _table(record), _laps(record["history"])
    with np.errstate(all="ignore"):  # what is not finite is refused
        _check_model(model, summary, np.dtype(dtype), (table.n_features + table.n_targets) * _steps(estimator))
        _check_table(name, table, likelihood)
        _check_bounds(model, summary, laps[-1].lower_bound, record.get("lower_bound") if same_version else None)
        estimator._set_fitted(model, summary, np.dtype(dtype), laps, table)
    estimator.converged_ = _flag("converged", record["converged"])
    return estimator


def parse(text: str | bytes) -> Any:
    """JSON with numbers that are finite and not too long."""
    return json.loads(text, parse_constant=_refuse_number, parse_int=_parsed_int, parse_float=_parsed_float)


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

LAP, COUNTED = {f.name for f in fields(Lap)}, {"number", "n_clusters", "explored_clusters"}


def _estimator(name: str, record: Any, tensors: Tensors) -> Any:
    """An estimator that is not fitted yet, its parameters checked."""
    from .estimators import _choices

    if not isinstance(record, dict):
        raise TypeError(f"parameters must be a table; got {record!r:.80}.")
    parameters = {key: decode(value, tensors, _classes()) for key, value in record.items()}
    kind = ESTIMATORS[name]
    estimator = getattr(import_module(kind.module), name)(**parameters)
    getattr(_choices, kind.check)(estimator)
    check_random_state(estimator.random_state)
    return estimator


def _steps(estimator: Any) -> int:
    """How many rows of a sequence make one row that the likelihood sees."""
    from .estimators import _sequences

    if ESTIMATORS[type(estimator).__name__].unit != "sequences":
        return 1
    return 1 + _whole("order", _sequences.lags(estimator), 0)


def _table(record: dict[str, Any]) -> "Table":
    """The columns of the data that a model was fitted to."""
    from .estimators._estimator import Table

    D, names = _whole("n_features", record["n_features"], 1), record["feature_names"]
    if names is not None and len([_text("a feature name", name) for name in _list("feature_names", names)]) != D:
        raise ValueError(f"{len(names)} feature names for {D} features.")
    levels = {}
    for entry in _list("levels", record["levels"]):
        _expect(isinstance(entry, list) and len(entry) == 2, "levels", entry, "pairs of a column and its levels")
        d, known = _whole("column", entry[0], 0), _list("levels", entry[1])
        _expect(d < D and d not in levels, "column", d, f"one of {D} columns, once")
        _expect(all(isinstance(level, (str, bool, int, float)) for level in known), "levels", known, "texts or numbers")
        levels[d] = known
    return Table(D, _whole("n_targets", record["n_targets"], 0), names, levels, _flag("grouped", record["grouped"]))


def _check_model(model: Model, summary: Summary, dtype: np.dtype[np.floating], D: int) -> None:
    """Refuse arrays that do not fit together, that rows cannot give, or that give no valid parameters."""
    summary.check(model.likelihood.n_statistics)
    model.likelihood.check(D, summary.N, summary.S)
    K, F = summary.S.shape
    if model.allocation.max_clusters < K:
        raise ValueError(f"{K} clusters where the prior allows {model.allocation.max_clusters}.")
    W, bias, prior = model.parameters(summary, dtype)
    if W.shape != (K, F) or bias.shape != (K,):
        raise ValueError(f"the clusters' parameters have shapes {W.shape} and {bias.shape}.")
    profile, weights = model.likelihood.profile(summary.N, summary.S), model.allocation.mean_weights(summary)
    shown = (W, bias, 0.0 if prior is None else prior, profile.means, profile.variances, weights)
    if not all(np.isfinite(values).all() for values in shown) or (weights < 0.0).any():
        raise ValueError("the clusters' parameters are not finite.")


def _check_table(name: str, table: "Table", likelihood: Likelihood) -> None:
    """Refuse columns of categories, targets and documents that the likelihood cannot have."""
    D = table.n_features + table.n_targets
    if table.levels and not likelihood.nominal(D)[list(table.levels)].all():
        raise ValueError("a column has levels, but its likelihood knows of none.")
    if table.n_targets and not (
        name == "Mixture" and likelihood.takes_targets() and likelihood.describes(D)[table.n_features :].all()
    ):
        raise ValueError(f"it has {table.n_targets} targets, but no regression of them.")
    if table.grouped and name != "TopicModel":
        raise ValueError(f"a {name} has no rows in groups.")
    if name == "TopicModel" and not table.grouped and not isinstance(likelihood, Multinomial):
        raise ValueError(f"a {type(likelihood).__name__} has no words.")


def _check_bounds(model: Model, summary: Summary, last: float, stored: Any) -> None:
    """Refuse a model without a bound, and one whose bound is not that of its last lap or, if known, the one of the fit."""
    marginal = model.log_marginal(summary)
    bound = model.bound(summary, marginal)
    terms = abs(float(summary.base)) + np.abs(marginal).sum() + np.abs(summary.H).sum() + abs(bound) + 1.0
    claimed, allowed = (last, ALIKE) if stored is None else (_number("lower_bound", stored), SAME)
    if not (abs(claimed - bound) <= allowed * terms and last <= bound + allowed * terms):
        raise ValueError(f"it claims a bound of {claimed:.10g}, but has one of {bound:.10g}.")


def _laps(record: Any) -> list[Lap]:
    """The history of a fit."""
    laps = [_lap(entry) for entry in _list("history", record)]
    if not laps:
        raise ValueError("it has no history of its fit.")
    if any(lap.number <= before.number for before, lap in pairwise(laps)):
        raise ValueError("the laps of its history are out of order.")
    return laps


def _lap(record: Any) -> Lap:
    _expect_keys("lap", record, LAP)
    values: dict[str, Any] = {name: _number(name, record[name]) for name in LAP - COUNTED - {"moves"}}
    values |= {name: _whole(name, record[name], 1) for name in COUNTED}
    return Lap(**values, moves=tuple(_move(entry) for entry in _list("moves", record["moves"])))


def _move(record: Any) -> MoveRecord:
    _expect_keys("move", record, {f.name for f in fields(MoveRecord)})
    gains = tuple(_number("gain", gain) for gain in _list("gains", record["gains"]))
    return MoveRecord(_text("kind", record["kind"]), _whole("tried", record["tried"], len(gains)), gains)


# Values and arrays -------------------------------------------------------------------------------------------------------


def encode(value: Any, name: str, tensors: Tensors) -> Any:
    """A JSON value for a scalar, string, sequence, array or known dataclass; arrays are put in ``tensors``."""
    if isinstance(value, (np.ndarray, np.number, np.bool_)):
        return _encode_array(value, name, tensors)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        items = [encode(item, f"{name}.{i}", tensors) for i, item in enumerate(value)]
        return {"tuple": items} if isinstance(value, tuple) else items
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": [[key, encode(item, f"{name}.{key}", tensors)] for key, item in value.items()]}
    kind = type(value)
    if _classes().get(kind.__name__) is not kind:
        raise TypeError(
            f"cannot save {name} of class {kind.__name__}, which a model file would not know how to read back. "
            "Add a likelihood of your own to stickbreak.likelihoods.REGISTRY before saving and before loading."
        )
    record = {f.name: encode(getattr(value, f.name), f"{name}.{f.name}", tensors) for f in fields(value) if f.init}
    return {"class": kind.__name__, "fields": record}


def _encode_array(value: Any, name: str, tensors: Tensors) -> dict[str, Any]:
    """Put an array or NumPy scalar in ``tensors``, C-ordered and in native byte order, and refer to it by name."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise TypeError(f"cannot save {name}: arrays of {array.dtype} are not supported.")
    while name in tensors:  # names of parts may hold dots
        name += "'"
    tensors[name] = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous  # sums depend on the layout in the last bit
    return {"tensor": name, "scalar": not isinstance(value, np.ndarray), "order": "F" if fortran else "C"}


def _encode_parameters(parameters: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
    """Constructor parameters that can be written; arrays and other objects are left at their defaults."""
    record = {}
    for name, value in parameters.items():
        arrays: Tensors = {}
        try:
            encoded = encode(value, f"parameters.{name}", arrays)
        except TypeError:
            continue
        if not isinstance(value, np.ndarray):
            record[name] = encoded
            tensors.update(arrays)
    return record


def decode(value: Any, tensors: Tensors, classes: Classes) -> Any:
    """The value that `encode` was given; dataclasses only from ``classes``; tensors are taken out of their table."""
    if isinstance(value, list):
        return [decode(item, tensors, classes) for item in value]
    if not isinstance(value, dict):
        return value
    keys = value.keys()
    if keys == {"tuple"}:
        return tuple(decode(item, tensors, classes) for item in _list("tuple", value["tuple"]))
    if keys == {"dict"}:
        return {_text("key", key): decode(item, tensors, classes) for key, item in _list("dict", value["dict"])}
    if keys == {"tensor", "scalar", "order"}:
        return _decode_array(value, tensors)
    _expect_keys("value", value, {"class", "fields"})
    kind = classes.get(_text("class", value["class"]))
    if kind is None:
        raise ValueError(f"unknown class {value['class']!r:.40}; expected one of {', '.join(sorted(classes))}.")
    return _made(kind, {name: decode(item, tensors, classes) for name, item in value["fields"].items()})


def _decode_array(value: dict[str, Any], tensors: Tensors) -> Any:
    name, order = _text("tensor", value["tensor"]), value["order"]
    array = tensors.pop(name)
    _expect(order in ("C", "F"), "order", order, "'C' or 'F'")
    if not _flag("scalar", value["scalar"]):
        return np.array(array, order=order)
    if array.ndim:
        raise ValueError(f"{name!r:.80} has shape {array.shape}, but is said to be one number.")
    return array[()]


def _made(kind: type, values: dict[str, Any]) -> Any:
    """A dataclass, its fields of the types that are declared as numbers or truth values."""
    for f in fields(kind):
        if f.name in values and f.type in (bool, int, float):
            value = values[f.name]
            number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            fits = isinstance(value, (bool, np.bool_)) if f.type is bool else number and bool(np.isfinite(float(value)))
            _expect(fits, f"{kind.__name__}.{f.name}", value, "True or False" if f.type is bool else "a number")
    return kind(**values)


def _expect_keys(name: str, value: Any, required: set[str], optional: frozenset[str] | set[str] = frozenset()) -> None:
    if not isinstance(value, dict) or not required <= value.keys() <= required | optional:
        given = sorted(value) if isinstance(value, dict) else value
        raise ValueError(f"a {name} must have {', '.join(sorted(required))}; got {given!r:.200}.")


def _expect(fits: bool, name: str, value: Any, wanted: str) -> None:
    if not fits:
        raise ValueError(f"{name} must be {wanted}; got {value!r:.80}.")


def _list(name: str, value: Any) -> list[Any]:
    _expect(isinstance(value, list), name, value, "a list")
    return list(value)


def _text(name: str, value: Any) -> str:
    _expect(isinstance(value, str), name, value, "a text")
    return str(value)


def _flag(name: str, value: Any) -> bool:
    _expect(isinstance(value, bool), name, value, "true or false")
    return bool(value)


def _whole(name: str, value: Any, least: int) -> int:
    fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= sys.maxsize
    _expect(fits, name, value, f"a whole number of at least {least}")
    return int(value)


def _number(name: str, value: Any) -> float:
    _expect(isinstance(value, (int, float)) and not isinstance(value, bool), name, value, "a number")
    return float(value)


def _refuse_number(text: str) -> float:
    raise ValueError(f"{text[:20]} is not a finite number.")


def _parsed_int(text: str) -> int:
    if len(text) > DIGITS:
        raise ValueError(f"a number has {len(text)} digits.")
    return int(text)


def _parsed_float(text: str) -> float:
    value = float(text)
    return value if np.isfinite(value) else _refuse_number(text)


def _classes() -> dict[str, type]:
    return _likelihoods() | _allocations() | SUMMARIES | {"Stochastic": Stochastic}


def _likelihoods() -> dict[str, type]:
    kinds: list[type] = [*REGISTRY.values(), Product]
    return {kind.__name__: kind for kind in kinds}


def _allocations() -> dict[str, type]:
    kinds = [getattr(allocations, name) for name in allocations.__all__]
    return {kind.__name__: kind for kind in kinds if isinstance(kind, type) and is_dataclass(kind)}
