"""Model files: safetensors with JSON metadata.  Nothing in them is executed, and a damaged file is refused.

Arrays are tensors; everything else is one JSON text in the metadata, beside the version of the format, that of the
package, and a checksum of both.  Likelihoods, allocations and summaries are written by their dataclass fields and read
back through a list of known classes.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from . import allocations
from .inference import Lap, Stochastic
from .likelihoods import REGISTRY, AutoregressiveGaussian, Likelihood, Product, Sample
from .model import DocumentSummary, Model, SequenceSummary, Summary
from .moves import MoveRecord

if TYPE_CHECKING:
    from .estimators._estimator import Estimator

FORMAT, FORMAT_VERSION = "stickbreak", 1
ESTIMATORS = {
    "HMM": "stickbreak.estimators.hmm",
    "Mixture": "stickbreak.estimators.mixture",
    "TopicModel": "stickbreak.estimators.topic_model",
}
SUMMARIES: dict[str, type] = {
    "Summary": Summary,
    "DocumentSummary": DocumentSummary,
    "SequenceSummary": SequenceSummary,
}
OF_UNIT = {"rows": Summary, "documents": DocumentSummary, "sequences": SequenceSummary}
DTYPES = ("float32", "float64")

Tensors = dict[str, NDArray[Any]]
Classes = Mapping[str, type]


class ModelFileError(ValueError):
    """A file that is no model of this package, is damaged, or comes from a newer version."""


def save_model(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file, in one step: an interrupted save leaves an older file as it was.

    Parameters
    ----------
    estimator : a fitted estimator of this package
    path : where to; by custom the name ends in ``.safetensors``

    Raises
    ------
    NotFittedError : there is nothing to save yet; call `fit` first.
    FileNotFoundError : the folder does not exist.
    TypeError : the likelihood or allocation is a class of your own.  Add a likelihood to
        ``stickbreak.likelihoods.REGISTRY`` before saving and before loading.

    Notes
    -----
    An ``init`` that is an array or a model, and a ``random_state`` that is a generator, are not kept: the loaded
    estimator has the default there.
    """
    from safetensors.numpy import save
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator, "model_")
    if type(estimator).__name__ not in ESTIMATORS:
        raise TypeError(f"cannot save a {type(estimator).__name__}: only {', '.join(ESTIMATORS)} can be saved.")
    tensors: Tensors = {}
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "stickbreak_version": _package_version(),
        "model": json.dumps(_describe(estimator, tensors)),
    }
    with replacing(path) as file:
        file.write(save(tensors, metadata | {"checksum": _checksum(metadata, tensors)}))


def load(path: str | os.PathLike[str]) -> "Estimator":
    """Read a fitted estimator from a file written by `save_model`; its predictions are the same bit for bit.

    Parameters
    ----------
    path : a file written by `save_model` or by ``stickbreak fit``

    Returns
    -------
    A fitted estimator.  Everything but ``labels_``, which belongs to the data, is there.

    Raises
    ------
    FileNotFoundError : there is no such file.
    ModelFileError : it is no model file, is damaged, or was written by a version newer than this one.
    """
    path = Path(path)
    metadata, tensors = _read(path)
    if metadata.pop("checksum", None) != _checksum(metadata, tensors):
        raise ModelFileError(f"{path} is damaged: its contents do not match their checksum.")
    try:
        return _restore(json.loads(metadata["model"]), tensors)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is damaged: {_one_line(error)}") from error


def file_version(path: str | os.PathLike[str]) -> str:
    """The version of the package that wrote a model file."""
    return _read(Path(path))[0].get("stickbreak_version", "unknown")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write that takes the place of ``path`` when the block ends, and leaves no trace if the block fails."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a directory; name a file to write.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {target.parent} does not exist.")
    if target.exists() and not target.is_file():  # a device or a pipe
        with target.open("wb") as file:
            yield file
        return
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _describe(estimator: Any, tensors: Tensors) -> dict[str, Any]:
    """Everything of a fitted estimator that is not an array, as JSON values; its arrays go to ``tensors``."""
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "estimator": type(estimator).__name__,
        "parameters": _encode_parameters(estimator.get_params(deep=False), tensors),
        "likelihood": _encode(estimator.model_.likelihood, "likelihood", tensors),
        "allocation": _encode(estimator.model_.allocation, "allocation", tensors),
        "summary": _encode(estimator.summary_, "summary", tensors),
        "dtype": np.dtype(estimator.dtype_).name,
        "n_features": int(estimator.n_features_in_),
        "n_targets": int(estimator.n_targets_),
        "grouped": bool(estimator.grouped_),
        "feature_names": None if names is None else [str(name) for name in names],
        "levels": [[int(d), list(levels)] for d, levels in estimator.levels_.items()],
        "converged": bool(estimator.converged_),
        "history": [asdict(lap) for lap in estimator.history_],
    }


def _restore(record: dict[str, Any], tensors: Tensors) -> "Estimator":
    """The estimator that `_describe` described."""
    from .estimators._estimator import Table

    name = record["estimator"]
    if name not in ESTIMATORS:
        raise ValueError(f"unknown estimator {name!r}; known: {', '.join(ESTIMATORS)}.")
    model = Model(
        _decode(record["likelihood"], tensors, _likelihoods()), _decode(record["allocation"], tensors, _allocations())
    )
    summary = _decode(record["summary"], tensors, SUMMARIES)
    dtype, D, names = record["dtype"], record["n_features"], record["feature_names"]
    if dtype not in DTYPES:
        raise ValueError(f"unknown precision {dtype!r}; known: {', '.join(DTYPES)}.")
    if names is not None and (len(names) != D or not all(isinstance(name, str) for name in names)):
        raise ValueError(f"{len(names)} feature names for {D} features.")
    levels = {d: levels for d, levels in record["levels"]}
    table = Table(D, record["n_targets"], names, levels, bool(record["grouped"]))
    history = model.likelihood.order if name == "HMM" and isinstance(model.likelihood, AutoregressiveGaussian) else 0
    _check(model, summary, np.dtype(dtype), (D + table.n_targets) * (history + 1))
    parameters = {key: _decode(value, tensors, _classes()) for key, value in record["parameters"].items()}
    estimator: Estimator = getattr(import_module(ESTIMATORS[name]), name)(**parameters)
    laps = [_decode_lap(lap) for lap in record["history"]]
    if not laps:
        raise ValueError("it has no history of its fit.")
    estimator._set_fitted(model, summary, np.dtype(dtype), laps, table)
    estimator.converged_ = bool(record["converged"])
    return estimator


def _check(model: Model, summary: Summary, dtype: np.dtype[np.floating], D: int) -> None:
    """Refuse arrays whose shapes do not fit together or that give no valid parameters; compiled loops rely on it."""
    _check_likelihood(model.likelihood, D)
    K, F = summary.K, model.likelihood.n_statistics
    if type(summary) is not OF_UNIT[model.allocation.unit]:
        raise ValueError(f"a {type(summary).__name__} does not fit a {type(model.allocation).__name__}.")
    special = {"S": (K, F), "counts": (K, 0)}
    for field in fields(summary):
        shape = special.get(field.name, (K,) * field.metadata["cluster_axes"])
        found = getattr(summary, field.name).shape
        if found != shape:
            raise ValueError(f"the summary's {field.name} has shape {found} instead of {shape}.")
    if not 1 <= K <= model.allocation.max_clusters:
        raise ValueError(f"{K} clusters where the prior allows 1 to {model.allocation.max_clusters}.")
    W, bias, prior = model.parameters(summary, dtype)
    if W.shape != (K, F) or bias.shape != (K,):
        raise ValueError(f"the clusters' parameters have shapes {W.shape} and {bias.shape}.")
    if not all(np.isfinite(value).all() for value in (W, bias, model.bound(summary), 0.0 if prior is None else prior)):
        raise ValueError("the clusters' parameters are not finite.")


def _check_likelihood(likelihood: Likelihood, D: int) -> None:
    """Refuse a likelihood whose arrays do not have the shapes that data of D columns would give them."""
    own: Tensors = {}
    expected: Tensors = {}
    _encode(likelihood, "", own)
    _encode(likelihood.resolve(Sample.of(np.ones((2, D)))), "", expected)
    for name, array in own.items():
        if name not in expected or array.shape != expected[name].shape:
            raise ValueError(f"the likelihood's {name[1:]} has shape {array.shape}, which does not fit {D} features.")


def _encode(value: Any, name: str, tensors: Tensors) -> Any:
    """A JSON value for a scalar, string, sequence, array or known dataclass; arrays are put in ``tensors``."""
    if isinstance(value, (np.ndarray, np.number, np.bool_)):
        return _encode_array(value, name, tensors)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        items = [_encode(item, f"{name}.{i}", tensors) for i, item in enumerate(value)]
        return {"tuple": items} if isinstance(value, tuple) else items
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": [[key, _encode(item, f"{name}.{key}", tensors)] for key, item in value.items()]}
    kind = type(value)
    if _classes().get(kind.__name__) is not kind:
        raise TypeError(
            f"cannot save {name} of class {kind.__name__}, which a model file would not know how to read back. "
            "Add a likelihood of your own to stickbreak.likelihoods.REGISTRY before saving and before loading."
        )
    record = {f.name: _encode(getattr(value, f.name), f"{name}.{f.name}", tensors) for f in fields(value) if f.init}
    return {"class": kind.__name__, "fields": record}


def _encode_array(value: Any, name: str, tensors: Tensors) -> dict[str, Any]:
    """Put an array or NumPy scalar in ``tensors``, C-ordered and in native byte order, and refer to it by name."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise TypeError(f"cannot save {name}: arrays of {array.dtype} are not supported.")
    tensors[name] = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous  # sums depend on the layout in the last bit
    return {"tensor": name, "scalar": not isinstance(value, np.ndarray), "order": "F" if fortran else "C"}


def _encode_parameters(parameters: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
    """Constructor parameters that can be written; arrays and other objects are left at their defaults."""
    record = {}
    for name, value in parameters.items():
        arrays: Tensors = {}
        try:
            encoded = _encode(value, f"parameters.{name}", arrays)
        except TypeError:
            continue
        if not isinstance(value, np.ndarray):
            record[name] = encoded
            tensors.update(arrays)
    return record


def _decode(value: Any, tensors: Tensors, classes: Classes) -> Any:
    """The value that `_encode` was given; dataclasses only from ``classes``."""
    if isinstance(value, list):
        return [_decode(item, tensors, classes) for item in value]
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(_decode(item, tensors, classes) for item in value["tuple"])
    if "dict" in value:
        return {key: _decode(item, tensors, classes) for key, item in value["dict"]}
    if "tensor" in value:
        array = tensors[value["tensor"]]
        return array[()] if value["scalar"] else np.array(array, order=value["order"])
    if value["class"] not in classes:
        raise ValueError(f"unknown class {value['class']!r}; expected one of {', '.join(sorted(classes))}.")
    record = {name: _decode(item, tensors, classes) for name, item in value["fields"].items()}
    return classes[value["class"]](**record)


def _decode_lap(record: dict[str, Any]) -> Lap:
    moves = tuple(MoveRecord(**(move | {"gains": tuple(move["gains"])})) for move in record["moves"])
    return Lap(**(record | {"moves": moves}))


def _read(path: Path) -> tuple[dict[str, str], Tensors]:
    """Metadata and tensors of a model file of a version that can be read."""
    from safetensors import SafetensorError, safe_open

    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    if not path.is_file():
        raise ModelFileError(f"{path} is not a file.")
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            _check_version(path, metadata)
            names = file.keys()
            return metadata, {name: file.get_tensor(name) for name in names}
    except (SafetensorError, AttributeError, TypeError) as error:  # the last two: types that NumPy does not have
        raise ModelFileError(f"{path} is not a model file, or is cut short: {_one_line(error)}") from error


def _check_version(path: Path, metadata: dict[str, str]) -> None:
    if metadata.get("format") != FORMAT or "model" not in metadata:
        raise ModelFileError(f"{path} is a safetensors file, but not a model saved by {FORMAT}.")
    version = metadata.get("format_version", "")
    if not version.isdecimal() or int(version) < 1:
        raise ModelFileError(f"{path} is damaged: its format version is {version[:20]!r}.")
    if int(version) > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} was written by stickbreak {metadata.get('stickbreak_version', 'unknown')}, format {version}; "
            f"this version reads up to {FORMAT_VERSION}; upgrade stickbreak."
        )


def _checksum(metadata: dict[str, str], tensors: Tensors) -> str:
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype.name} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _classes() -> dict[str, type]:
    return _likelihoods() | _allocations() | SUMMARIES | {"Stochastic": Stochastic}


def _likelihoods() -> dict[str, type]:
    kinds: list[type] = [*REGISTRY.values(), Product]
    return {kind.__name__: kind for kind in kinds}


def _allocations() -> dict[str, type]:
    kinds = [getattr(allocations, name) for name in allocations.__all__]
    return {kind.__name__: kind for kind in kinds if isinstance(kind, type) and is_dataclass(kind)}


def _package_version() -> str:
    from . import __version__

    return __version__


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
