"""Values and arrays of a model file: to JSON values and tensors, and back with their types checked.

Dataclasses are written by their fields and read back only if their class is among those expected.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import allocations
from ..inference import Gibbs, Memoized, Sequential, Stochastic, Streaming, TruncationFree
from ..likelihoods import REGISTRY, Labelled, Linked, Product, Seeded
from ..model import AnsweredSummary, DocumentSummary, SequenceSummary, Summary
from ..moves import AdoptedBirth, BatchBirth
from ..responses import CategoricalResponse, GaussianResponse, HingeResponse, MarginResponse, NoResponse

SUMMARIES: dict[str, type] = {
    "AnsweredSummary": AnsweredSummary,
    "Summary": Summary,
    "DocumentSummary": DocumentSummary,
    "SequenceSummary": SequenceSummary,
}
RESPONSES: dict[str, type] = {
    kind.__name__: kind for kind in (CategoricalResponse, GaussianResponse, HingeResponse, MarginResponse, NoResponse)
}
DIGITS = 300  # the most of a whole number, so that it is a finite float too

Tensors = dict[str, NDArray[Any]]
Classes = Mapping[str, type]


def parse(text: str | bytes) -> Any:
    """JSON with numbers that are finite and not too long."""
    return json.loads(text, parse_constant=_refuse_number, parse_int=_parsed_int, parse_float=_parsed_float)


def encode(value: Any, name: str, tensors: Tensors) -> Any:
    """A JSON value for a scalar, string, sequence, array or known dataclass; arrays are put in ``tensors``."""
    if isinstance(value, (np.ndarray, np.number, np.bool_)):
        return encode_array(value, name, tensors)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        items = [encode(item, f"{name}.{i}", tensors) for i, item in enumerate(value)]
        return {"tuple": items} if isinstance(value, tuple) else items
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": [[key, encode(item, f"{name}.{key}", tensors)] for key, item in value.items()]}
    kind = type(value)
    if known_classes().get(kind.__name__) is not kind:
        raise TypeError(
            f"cannot save {name} of class {kind.__name__}, which a model file would not know how to read back. "
            "Add a likelihood of your own to stickbreak.likelihoods.REGISTRY, and a prior of your own to "
            "stickbreak.allocations.REGISTRY, before saving and before loading."
        )
    record = {f.name: encode(getattr(value, f.name), f"{name}.{f.name}", tensors) for f in fields(value) if f.init}
    return {"class": kind.__name__, "fields": record}


def encode_array(value: Any, name: str, tensors: Tensors) -> dict[str, Any]:
    """Put an array or NumPy scalar in ``tensors``, C-ordered and in native byte order, and refer to it by name."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise TypeError(f"cannot save {name}: arrays of {array.dtype} are not supported.")
    while name in tensors:  # names of parts may hold dots
        name += "'"
    tensors[name] = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous  # sums depend on the layout in the last bit
    return {"tensor": name, "scalar": not isinstance(value, np.ndarray), "order": "F" if fortran else "C"}


def encode_parameters(parameters: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
    """Constructor parameters that can be written; arrays of numbers and other objects are left at their defaults."""
    record = {}
    for name, given in parameters.items():
        value = given
        if isinstance(given, np.ndarray) and all(isinstance(item, str) for item in given.tolist()):
            value = given.tolist()
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
    """The value that `encode` was given; dataclasses only from ``classes``; ``tensors`` loses those used."""
    if isinstance(value, list):
        return [decode(item, tensors, classes) for item in value]
    if not isinstance(value, dict):
        return value
    keys = value.keys()
    if keys == {"tuple"}:
        return tuple(decode(item, tensors, classes) for item in as_list("tuple", value["tuple"]))
    if keys == {"dict"}:
        return {as_text("key", key): decode(item, tensors, classes) for key, item in as_list("dict", value["dict"])}
    if keys == {"tensor", "scalar", "order"}:
        return decode_array(value, tensors)
    expect_keys("value", value, {"class", "fields"})
    kind = classes.get(as_text("class", value["class"]))
    if kind is None:
        raise ValueError(
            f"unknown class {value['class']!r:.40}; add one of your own to REGISTRY of stickbreak.likelihoods or "
            f"stickbreak.allocations before loading (in a shell: --register module:Name); known: {', '.join(sorted(classes))}."
        )
    return made(kind, {name: decode(item, tensors, classes) for name, item in value["fields"].items()})


def decode_array(value: dict[str, Any], tensors: Tensors) -> Any:
    """The array or NumPy scalar that `encode_array` was given; ``tensors`` loses it."""
    name = as_text("tensor", value["tensor"])
    order = value["order"]
    array = tensors.pop(name)
    expect(order in ("C", "F"), "order", order, "'C' or 'F'")
    if not as_flag("scalar", value["scalar"]):
        return np.array(array, order=order)
    if array.ndim:
        raise ValueError(f"{name!r:.80} has shape {array.shape}, but is said to be one number.")
    return array[()]


def made(kind: type, values: dict[str, Any]) -> Any:
    """A dataclass; fields declared as numbers or truth values must hold these."""
    for f in fields(kind):
        if f.name in values and f.type in (bool, int, float):
            value = values[f.name]
            number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            fits = isinstance(value, (bool, np.bool_)) if f.type is bool else number and bool(np.isfinite(float(value)))
            expect(fits, f"{kind.__name__}.{f.name}", value, "True or False" if f.type is bool else "a number")
    return kind(**values)


def expect_keys(name: str, value: Any, required: set[str], optional: frozenset[str] | set[str] = frozenset()) -> None:
    """Refuse all but a table with the required keys and no others than the optional ones."""
    if not isinstance(value, dict) or not required <= value.keys() <= required | optional:
        given = sorted(value) if isinstance(value, dict) else value
        raise ValueError(f"a {name} must have {', '.join(sorted(required))}; got {given!r:.200}.")


def expect(fits: bool, name: str, value: Any, wanted: str) -> None:
    """Refuse a value that does not fit, with the name of what it stands for."""
    if not fits:
        raise ValueError(f"{name} must be {wanted}; got {value!r:.80}.")


def as_list(name: str, value: Any) -> list[Any]:
    """A list, or a ValueError that names what it stands for."""
    expect(isinstance(value, list), name, value, "a list")
    return list(value)


def as_text(name: str, value: Any) -> str:
    """A text, or a ValueError."""
    expect(isinstance(value, str), name, value, "a text")
    return str(value)


def as_flag(name: str, value: Any) -> bool:
    """A truth value, or a ValueError."""
    expect(isinstance(value, bool), name, value, "true or false")
    return bool(value)


def as_whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least ``least`` that fits a size, or a ValueError."""
    fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= sys.maxsize
    expect(fits, name, value, f"a whole number of at least {least}")
    return int(value)


def as_number(name: str, value: Any) -> float:
    """A number, or a ValueError."""
    expect(isinstance(value, (int, float)) and not isinstance(value, bool), name, value, "a number")
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


def known_classes() -> dict[str, type]:
    """All classes that a model file may name, by name."""
    choices: list[type] = [AdoptedBirth, BatchBirth, Gibbs, Memoized, Sequential, Stochastic, Streaming, TruncationFree]
    return (
        likelihood_classes() | allocation_classes() | RESPONSES | SUMMARIES | {kind.__name__: kind for kind in choices}
    )


def likelihood_classes() -> dict[str, type]:
    """The classes of likelihoods, by name."""
    kinds: list[type] = [*REGISTRY.values(), Labelled, Linked, Product, Seeded]
    return {kind.__name__: kind for kind in kinds}


def allocation_classes() -> dict[str, type]:
    """The classes of allocations and of what their fields may hold, by name."""
    return {kind.__name__: kind for kind in allocations.REGISTRY.values()}
