"""Mutations of values that files hold: bytes, JSON, arrays; drawn as seeds, so that a case stays a plain value."""

import copy
import json
from typing import Any

import numpy as np

NUMBERS = (
    0,
    -1,
    1,
    2,
    7,
    50,
    10**6,
    2**31 - 1,
    2**31,
    2**63 - 1,
    -(2**63),
    10**19,
    10**400,
    0.5,
    1e300,
    -1e300,
    1e-300,
    5e-324,
)
OTHERS = (None, True, False, "", "x", "9" * 5000, [], {}, [[]], {"a": 1}, float("nan"), float("inf"), "NaN", "../x")


def damaged_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """Bytes flipped, cut, doubled, zeroed or overwritten by others of the same file."""
    data_, n = bytearray(data), len(data)
    kind = rng.integers(6)
    at = int(rng.integers(n)) if rng.random() < 0.5 else int(rng.integers(min(n, 200)))
    size = int(min(n - at, 2 ** rng.integers(0, 8)))
    if kind == 0:
        for i in rng.integers(n, size=1 + int(rng.integers(4))):
            data_[i] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del data_[at:]
    elif kind == 2:
        del data_[at : at + size]
    elif kind == 3:
        data_[at:at] = data_[at : at + size]
    elif kind == 4:
        data_[at : at + size] = bytes(size)
    else:
        data_[at : at + size] = rng.bytes(size)
    return bytes(data_)


def places(value: Any, path: tuple = ()) -> list[tuple]:
    """The paths of all values inside a JSON value."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


def mutated_json(value: Any, rng: np.random.Generator) -> Any:
    """One value replaced, removed, repeated, moved or nested deeply."""
    value = copy.deepcopy(value)
    paths = places(value)
    path = paths[rng.integers(len(paths))]
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    key, kind = path[-1], rng.integers(8)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        holder[key] = OTHERS[rng.integers(len(OTHERS))]
    elif kind == 2:
        other = value
        for step in paths[rng.integers(len(paths))]:
            other = other[step]
        holder[key] = copy.deepcopy(other)
    elif kind == 3 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    elif kind == 4 and isinstance(holder, dict):
        holder[f"{key}_"] = holder.pop(key)
    elif kind == 5 and isinstance(holder[key], str):
        holder[key] = holder[key][:-1]
    else:
        holder[key] = NUMBERS[rng.integers(len(NUMBERS))]
    return value


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def mutated_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Another shape, type or value."""
    array = np.array(array)
    kind = rng.integers(8)
    if kind == 0 and array.ndim:
        return np.concatenate([array, array[:1]]) if rng.random() < 0.5 else array[:-1]
    if kind == 1:
        return array.T.copy() if array.ndim > 1 else array.reshape(1, *array.shape)
    if kind == 2:
        with np.errstate(all="ignore"):  # of values that the type does not hold
            return array.astype(("int8", "float32", "int64", "bool", "float16")[rng.integers(5)])
    if kind == 3:
        return array.reshape(-1)[:0]
    if not array.size:
        return array
    flat = array.reshape(-1)
    at = rng.integers(flat.size, size=1 if kind < 7 else flat.size)
    values = (np.nan, np.inf, -1.0, 1e300, -1e300, 0.0, 1e-300, 1e18, 3.7, 10.0**6, 50.0, 2.0**31)
    with np.errstate(all="ignore"):
        flat[at] = np.asarray(values[rng.integers(len(values))]).astype(array.dtype)
    return array


def parsed(text: str) -> Any:
    return json.loads(text)
