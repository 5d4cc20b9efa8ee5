"""Model files: safetensors.  Nothing in them is executed, and a damaged file is refused.

Arrays are tensors; everything else is one JSON text (`stickbreak.model_record`), itself a tensor of bytes, because the header
of the format has a limit.  The metadata hold the version of the format, that of the package, and a checksum of all of it.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .data.atomic import as_path, replacing
from .model_record import ESTIMATORS, describe, restore
from .model_values import Tensors, parse

if TYPE_CHECKING:
    from .estimators._estimator import Estimator

__all__ = ["ModelFileError", "file_version", "load", "replacing", "save_model"]

FORMAT = "stickbreak"
FORMAT_VERSION = 3  # version 1 had the record in the metadata; version 2 knew nothing of `learn` and of rounded values
RECORD = "record"
KEYS = {"format", "format_version", "stickbreak_version", "checksum"}
DAMAGED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


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
    OSError : the disk is full; the error names ``path``.
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
    record = json.dumps(describe(estimator, tensors)).encode()
    tensors[RECORD] = np.frombuffer(record, np.uint8)
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "stickbreak_version": _package_version(),
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
    path = as_path(path)
    metadata, tensors = _read(path)
    if metadata.pop("checksum", None) != _checksum(metadata, tensors):
        raise ModelFileError(f"{path} is damaged: its contents do not match their checksum.")
    try:
        text = tensors.pop(RECORD).tobytes() if "model" not in metadata else metadata["model"]
        return restore(parse(text), tensors, metadata["stickbreak_version"] == _package_version())
    except DAMAGED as error:
        raise ModelFileError(f"{path} is damaged: {_one_line(error)}") from error


def file_version(path: str | os.PathLike[str]) -> str:
    """The version of the package that wrote a model file."""
    return _shown(_read(as_path(path))[0])


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
    if metadata.get("format") != FORMAT or "format_version" not in metadata:
        raise ModelFileError(f"{path} is a safetensors file, but not a model saved by {FORMAT}.")
    version = metadata["format_version"]
    if not (version.isascii() and version.isdecimal() and len(version) <= 9 and int(version) >= 1):
        raise ModelFileError(f"{path} is damaged: its format version is {version[:20]!r}.")
    if int(version) > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} was written by stickbreak {_shown(metadata)}, format {version}; "
            f"this version reads up to {FORMAT_VERSION}; upgrade stickbreak."
        )
    if metadata.keys() != (KEYS | {"model"} if int(version) == 1 else KEYS):
        raise ModelFileError(f"{path} is damaged: its metadata are {', '.join(sorted(metadata))[:200]}.")


def _shown(metadata: dict[str, str]) -> str:
    """The version of the package that wrote a file, to show in messages; it may be any text."""
    version = metadata.get("stickbreak_version", "")
    return "".join(character for character in version[:40] if character.isprintable()) or "unknown"


def _checksum(metadata: dict[str, str], tensors: Tensors) -> str:
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype.name} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _package_version() -> str:
    from . import __version__

    return __version__


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
