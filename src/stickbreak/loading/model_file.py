"""Loading a fitted estimator."""

import os

from ..data.atomic import as_path
from ..estimators._estimator import Estimator
from ..storage.container import DAMAGED, RECORD, ModelFileError, check_sum, one_line, package_version, read
from ..storage.values import parse
from .restore import restore


def load(path: str | os.PathLike[str]) -> Estimator:
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
    metadata, tensors = read(path)
    check_sum(path, metadata, tensors)
    try:
        text = tensors.pop(RECORD).tobytes() if "model" not in metadata else metadata["model"]
        return restore(parse(text), tensors, metadata["stickbreak_version"] == package_version())
    except DAMAGED as error:
        raise ModelFileError(f"{path} is damaged: {one_line(error)}") from error
