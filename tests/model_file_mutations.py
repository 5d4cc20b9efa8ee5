"""Alter model files, with a checksum to match, and judge what becomes of them: for tests and for `make attack`.

`mutations(content, rng)` gives altered files without end; `outcome(path, X)` says what loading one leads to.
"""

import copy
import json
import warnings

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from stickbreak import HMM, TopicModel, load
from stickbreak.storage import ModelFileError, container

NUMBERS = [0, 1, -1, 2, 7, 10**9, 2**31, 2**63, -(2**63), 10**18, 10**400, 0.5, -0.5, 1e-300, 1e300, 1e-9]
CONSTANTS = [float("nan"), float("inf"), -float("inf")]
OTHERS = [None, True, False, "", "x", "Gaussian", "\udcff", [], {}, [[]], {"tuple": []}, {"dict": []}, {"tensor": "no"}]
DTYPES = ["float32", "float16", "int64", "int8", "uint8", "bool", "uint64"]


def read(path):
    """Metadata, record and tensors of a model file."""
    with safe_open(path, framework="np") as file:
        metadata, names = file.metadata(), file.keys()
        tensors = {name: file.get_tensor(name) for name in names}
    record = json.loads(metadata["model"] if "model" in metadata else tensors.pop(container.RECORD).tobytes())
    return metadata, record, tensors


def written(metadata, record, tensors, text=None):
    """The bytes of a model file with a checksum to match; ``text`` in the place of the record, if given."""
    text = json.dumps(record) if text is None else text
    metadata = {name: value for name, value in metadata.items() if name not in ("checksum", "model")}
    if metadata.get("format_version") == "1":
        metadata["model"] = text
    else:
        tensors = tensors | {container.RECORD: np.frombuffer(text.encode(), np.uint8)}
    return save(tensors, metadata | {"checksum": container.checksum_of(metadata, tensors)})


def as_version_1(content, path):
    """A file as the first version of the format had it: the record in the metadata, and no bound in it."""
    path.write_bytes(content)
    metadata, record, tensors = read(path)
    record.pop("lower_bound", None)
    return written(metadata | {"format_version": "1"}, record, tensors)


def mutations(path, rng):
    """The bytes of altered files, each by one to three changes."""
    content = path.read_bytes()
    metadata, record, tensors = read(path)
    while True:
        if rng.random() < 0.15:
            yield _damaged(content, rng)
            continue
        changed = (dict(metadata), copy.deepcopy(record), {name: array.copy() for name, array in tensors.items()})
        text = None
        for _ in range(rng.integers(1, 4)):
            kind = rng.choice(["tensor", "record", "history", "metadata", "text"], p=[0.5, 0.3, 0.1, 0.05, 0.05])
            if kind == "tensor":
                _alter_tensor(changed[2], rng)
            elif kind == "record":
                _alter_record(changed[1], rng)
            elif kind == "history":
                _alter_record(changed[1].get("history"), rng)
            elif kind == "metadata":
                _alter_metadata(changed[0], rng)
            else:
                text = _altered_text(json.dumps(changed[1]), rng)
        yield written(*changed, text)


def outcome(path, X, lengths=None):
    """What loading a file leads to: "refused", or "answers", all of them finite; anything else is an error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        try:
            model = load(path)
        except ModelFileError as error:
            message = str(error)
        else:
            message = None
        if message is not None:
            assert str(path) in message
            assert "\n" not in message
            return "refused"
        warnings.simplefilter("ignore")
        for name, answer in answers(model, X, lengths).items():
            assert np.isfinite(answer).all(), f"{name} is not finite"
    return "answers"


def answers(model, X, lengths):
    """What a fitted model says of rows or documents, and what it draws, without columns that no part describes."""
    found = {"lower_bound_": model.lower_bound_, "n_laps_": model.n_laps_}
    if model.n_features_in_ != X.shape[1]:
        return found
    if isinstance(model, TopicModel):
        found["transform"] = model.transform(X, lengths if model.grouped_ else None)
        found["score"] = model.score(X, lengths=lengths if model.grouped_ else None)
        return found
    found["predict_proba"] = model.predict_proba(X, lengths) if isinstance(model, HMM) else model.predict_proba(X)
    found["score"] = model.score(X, lengths=lengths) if isinstance(model, HMM) else model.score_samples(X)
    found["sample"] = model.sample(3)[0]
    return found


def _damaged(content, rng):
    """A file cut off, or with some bytes changed."""
    if rng.random() < 0.5:
        return content[: rng.integers(len(content))]
    changed = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        changed[rng.integers(len(changed))] = rng.integers(256)
    return bytes(changed)


def _alter_tensor(tensors, rng):
    """Change values, type, shape or name of one array; there are few left to change where others went."""
    name = rng.choice(sorted(tensors))
    array, kind = tensors[name], rng.integers(9)
    flat = array.reshape(-1)
    if kind < 4 and flat.size and array.dtype.kind in "fiu":
        scale = np.abs(flat.astype(float)).max()
        values = [
            np.nan,
            np.inf,
            -np.inf,
            1e300,
            -1e300,
            1e-300,
            0.0,
            -scale - 1.0,
            scale * 1e3,
            10.0 ** rng.integers(-9, 9),
        ]
        some = rng.choice(flat.size, rng.integers(1, flat.size + 1), replace=False)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flat[some] = np.array(values)[rng.integers(len(values))].astype(array.dtype)
    elif kind == 4 and array.dtype.kind == "f":
        with np.errstate(all="ignore"):
            array *= 10.0 ** rng.integers(-160, 160) if rng.random() < 0.5 else rng.choice([-1.0, 1.001, 0.5, 1e3])
    elif kind == 5:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tensors[name] = array.astype(rng.choice(DTYPES))
    elif kind == 6:
        twice = np.concatenate([flat, flat])
        shapes = [array[None], array[..., None], flat[:1], flat[:0], twice, array[:0] if array.ndim else flat]
        tensors[name] = np.ascontiguousarray(shapes[rng.integers(len(shapes))])
    elif kind == 7:
        tensors.pop(name)
    else:
        other = rng.choice(sorted(tensors))
        tensors[name] = tensors[other].copy()


def _alter_record(record, rng):
    """Change one value somewhere in nested JSON values."""
    place = record
    while True:
        if not isinstance(place, (dict, list)) or not len(place):
            return
        keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
        key = keys[rng.integers(len(keys))]
        if not isinstance(place[key], (dict, list)) or not place[key] or rng.random() < 0.2:
            break
        place = place[key]
    kind = rng.integers(6)
    if kind == 0:
        place.pop(key)
    elif kind == 1 and isinstance(place, dict):
        place[f"new{rng.integers(9)}"] = place[key]
    elif kind == 2 and isinstance(place[key], (int, float)) and not isinstance(place[key], bool):
        place[key] *= rng.choice([2, -1, 1000]).item()
    else:
        values = NUMBERS + CONSTANTS + OTHERS
        place[key] = copy.deepcopy(values[rng.integers(len(values))])


def _alter_metadata(metadata, rng):
    key = rng.choice([*metadata, "extra"])
    values = ["", "x", "0", "-1", "1", "2", "3", "9" * 5000, "\u0663", "1.5", "\x00", "🦆" * 50, "\u202e"]
    metadata[str(key)] = values[rng.integers(len(values))]


def _altered_text(text, rng):
    """JSON that a parser chokes on, deep or long."""
    deep = int(rng.integers(50, 200_000))
    place = int(rng.integers(len(text)))
    return [
        "[" * deep + "]" * deep,
        '{"a":' * deep + "1" + "}" * deep,
        text[:place],
        text[:place] + "9" * 5000 + text[place:],
        text.replace('"converged": ', '"converged": ' + "[" * deep + "]" * deep + ', "x": ', 1),
        text.replace("1", "1" * 400, 1),
        text.replace("1", "1e999", 1),
        text.replace("null", "NaN", 1),
        text.replace('"C"', '"K"', 1),
        "",
        "null",
        "\ufeff" + text,
    ][rng.integers(12)]
