"""What the commands read and write: rows with their names, and labels; and what is refused before any work is done."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import HMM, TopicModel
from ..cluster import DaskExecutor, need_dask
from ..data.atomic import replacing
from ..data.document_files import open_documents
from ..data.numpy_files import is_archive
from ..data.opening import open_table
from ..data.sequence_files import read_sequences
from ..data.table import DataError, ReadOptions, Table
from .words import listed

CONNECT = 10  # seconds to wait for a scheduler


class Data(NamedTuple):
    """What an estimator reads: rows and, where they form sequences, their ``lengths`` for `fit`, with the names of all."""

    table: Table
    lengths: Mapping[str, Any]
    sequences: list[str]


def read(data: Path, kind: type, sequence: str | None, reading: ReadOptions) -> Data:
    """A table, bags of words with their vocabulary for names, or sequences, for a kind of estimator."""
    if kind is HMM:
        X, lengths, names, sequences, levels = read_sequences(data, sequence, reading)
        return Data(Table(X, names, levels), {"lengths": lengths}, sequences)
    if sequence is not None:
        raise DataError(f"--sequence {sequence} is for a hidden Markov model, not a {kind.__name__}; leave it out.")
    if kind is TopicModel:
        return Data(open_documents(data, reading), {}, [])
    return Data(open_table(data, reading), {}, [])


def check_output(out: Path, *inputs: Path, option: str = "--out") -> None:
    """Refuse, before any work is done, an output that cannot be written or that would replace an input."""
    folder = Path(os.path.realpath(out)).parent
    if out.is_dir():
        raise IsADirectoryError(f"{option} {out} is a directory; name a file.")
    if not folder.is_dir():
        raise FileNotFoundError(f"{option} {out}: the folder {folder} does not exist; make it first.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{option} {out}: the folder {folder} is not writable.")
    for path in inputs:
        if out.exists() and path.exists() and out.samefile(path):
            raise DataError(f"{option} {out} would replace an input; choose another name.")


def check_shared(data: Path, scheduler: str | None, float32: bool) -> None:
    """Refuse data that the workers of a cluster cannot read piece by piece."""
    if scheduler is None:
        return
    if data.suffix.lower() != ".npy" or is_archive(data):
        raise DataError(
            f"--scheduler {scheduler} is for a .npy file, which {data} is not; save the array with numpy.save."
        )
    if float32:
        raise DataError("--float32 holds the data in memory, which workers cannot read; save them as float32 instead.")


@contextmanager
def executor_at(scheduler: str | None) -> Iterator[DaskExecutor | None]:
    """The executor on a cluster at this address, as long as it is connected; None without an address."""
    if scheduler is None:
        yield None
        return
    need_dask()
    client: Any = import_module("distributed").Client
    try:
        connected = client(scheduler, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise DataError(f"there is no Dask scheduler at {scheduler}; start one with `dask scheduler`.") from error
    try:
        yield DaskExecutor(connected)
    finally:
        connected.close()


def check_bed(out: Path, model: Any, bin_size: int | None, proba: bool) -> None:
    """Refuse what cannot be written as segments of chromosomes."""
    if out.suffix.lower() != ".bed":
        if bin_size is not None:
            raise DataError(f"--bin-size is for .bed, which {out} is not; leave it out.")
    elif not isinstance(model, HMM):
        raise DataError(f"{out}: .bed holds states of a hidden Markov model, and this is a {type(model).__name__}.")
    elif proba:
        raise DataError(f"{out}: .bed holds no probabilities; leave out --proba, or name a .npy or .csv.")
    elif bin_size is None:
        raise DataError(f"{out}: say how many bases a row stands for, such as --bin-size 200.")


def check_columns(model: Any, names: list[str] | None, data: Path) -> None:
    """Refuse columns that are not, by name and in order, those of the fit."""
    expected = getattr(model, "feature_names_in_", None)
    if names is None or expected is None or names == list(expected):
        return
    raise DataError(f"{data} has the columns{listed(names)}; the model was fitted to{listed(list(expected))}.")


def write_labels(out: Path, result: NDArray[Any], thing: str) -> None:
    """Labels (n,) or probabilities (n, K) as .npy, or as .csv with a line of names."""
    with replacing(out) as file:
        if out.suffix.lower() == ".npy":
            np.save(file, result)
        elif result.ndim == 1:
            np.savetxt(file, result, fmt="%d", header=thing, comments="")
        else:
            names = ",".join(f"{thing}_{k}" for k in range(result.shape[1]))
            np.savetxt(file, result, fmt="%.10g", delimiter=",", header=names, comments="")
