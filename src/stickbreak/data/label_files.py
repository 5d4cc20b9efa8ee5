"""Labels of rows in .npy files, written some at a time."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .atomic import as_path, check_folder, replacing
from .numpy_files import map_npy

LABEL = np.dtype("<i4")


def check_labels(out: Any, X: Any) -> Path:
    """A path for labels; refuse, before any work is done, what is no .npy or would replace the data.

    Raises
    ------
    ValueError, TypeError : ``out`` is not the path of a .npy, or is the file X.
    FileNotFoundError : its folder does not exist.
    """
    path = as_path(out, "out")
    if path.suffix.lower() != ".npy":
        raise ValueError(
            f"out={str(out)!r} has another ending than .npy, in which labels are written; name such a file."
        )
    check_folder(path)
    data = getattr(X, "filename", X) if isinstance(X, np.memmap) else X
    if isinstance(data, (str, Path)) and path.exists() and Path(data).exists() and path.samefile(data):
        raise ValueError(f"out={str(out)!r} would replace the data; choose another name.")
    return path


def write_labels(path: Path, n_rows: int, pieces: Iterable[NDArray[np.integer]]) -> NDArray[Any]:
    """Write labels (n,) piece by piece, in order, to a file that appears when all ``n_rows`` are there.

    Returns
    -------
    The labels (N,), int32, mapped.
    """
    header = {"descr": LABEL.str, "fortran_order": False, "shape": (n_rows,)}
    with replacing(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for labels in pieces:
            file.write(labels.astype(LABEL).tobytes())
    return map_npy(path)
