"""Model files and checkpoints: safetensors.  Nothing in them is executed, and a damaged file is refused.

Arrays are tensors; everything else is one JSON text (`stickbreak.storage.describe`), itself a tensor of bytes, because the
header of the format has a limit.  The metadata hold the version of the format, that of the package, and a checksum of all.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..data.atomic import as_path, replacing
from .values import Tensors

FORMAT = "stickbreak"
FORMAT_VERSION = 3  # version 1 had the record in the metadata; version 2 knew nothing of `learn` and of rounded values
RECORD = "record"
DAMAGED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)  # of what is in a file
KEYS = {"format", "format_version", "stickbreak_version", "checksum"}


class Form(NamedTuple):
    """A kind of file: the name and the version of its format, and what messages call it."""

    name: str
    version: int
    title: str


MODEL = Form(FORMAT, FORMAT_VERSION, "model file")
CHECKPOINT = Form(f"{FORMAT} checkpoint", 1, "checkpoint")


class ModelFileError(ValueError):
    """A file that is no model of this package, is damaged, or comes from a newer version."""


def write(record: str, tensors: Tensors, path: str | os.PathLike[str], form: Form = MODEL) -> None:
    """Write a record and its arrays to a file, in one step: an interrupted save leaves an older file as it was."""
    from safetensors.numpy import save

    tensors = tensors | {RECORD: np.frombuffer(record.encode(), np.uint8)}
    metadata = {
        "format": form.name,
        "format_version": str(form.version),
        "stickbreak_version": package_version(),
    }
    with replacing(path) as file:
        file.write(save(tensors, metadata | {"checksum": checksum_of(metadata, tensors)}))


def file_version(path: str | os.PathLike[str]) -> str:
    """The version of the package that wrote a model file."""
    return _shown(read(as_path(path))[0])


def read(path: Path, form: Form = MODEL) -> tuple[dict[str, str], Tensors]:
    """Metadata and tensors of a file of a version that can be read, its checksum still to be compared."""
    from safetensors import SafetensorError, safe_open

    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    if not path.is_file():
        raise ModelFileError(f"{path} is not a file.")
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            _check_version(path, metadata, form)
            names = file.keys()
            return metadata, {name: file.get_tensor(name) for name in names}
    except (SafetensorError, AttributeError, TypeError) as error:  # the last two: types that NumPy does not have
        raise ModelFileError(f"{path} is not a {form.title}, or is cut short: {one_line(error)}") from error


def check_sum(path: Path, metadata: dict[str, str], tensors: Tensors) -> None:
    """Refuse contents that do not match their checksum, and take that from the metadata."""
    if metadata.pop("checksum", None) != checksum_of(metadata, tensors):
        raise ModelFileError(f"{path} is damaged: its contents do not match their checksum.")


def _check_version(path: Path, metadata: dict[str, str], form: Form) -> None:
    if metadata.get("format") != form.name or "format_version" not in metadata:
        raise ModelFileError(f"{path} is a safetensors file, but not a {form.title} written by {FORMAT}.")
    version = metadata["format_version"]
    if not (version.isascii() and version.isdecimal() and len(version) <= 9 and int(version) >= 1):
        raise ModelFileError(f"{path} is damaged: its format version is {version[:20]!r}.")
    if int(version) > form.version:
        raise ModelFileError(
            f"{path} was written by stickbreak {_shown(metadata)}, format {version}; "
            f"this version reads up to {form.version}; upgrade stickbreak."
        )
    if metadata.keys() != (KEYS | {"model"} if form is MODEL and int(version) == 1 else KEYS):
        raise ModelFileError(f"{path} is damaged: its metadata are {', '.join(sorted(metadata))[:200]}.")


def _shown(metadata: dict[str, str]) -> str:
    """The version of the package that wrote a file, to show in messages; it may be any text."""
    version = metadata.get("stickbreak_version", "")
    return "".join(character for character in version[:40] if character.isprintable()) or "unknown"


def checksum_of(metadata: dict[str, str], tensors: Tensors) -> str:
    """The checksum of metadata and tensors."""
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype.name} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def package_version() -> str:
    """The version of this package."""
    from .. import __version__

    return __version__


def one_line(error: BaseException) -> str:
    """An error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
