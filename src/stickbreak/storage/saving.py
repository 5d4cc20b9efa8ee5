"""Saving a fitted estimator."""

import json
import os
from typing import Any

from sklearn.utils.validation import check_is_fitted

from .container import write
from .describe import describe
from .values import Tensors

ESTIMATORS = "HMM", "Mixture", "TopicModel"


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
        ``stickbreak.likelihoods.REGISTRY``, and a prior to ``stickbreak.allocations.REGISTRY``, before saving and before
        loading.

    Notes
    -----
    An ``init`` that is an array or a model, and a ``random_state`` that is a generator, are not kept: the loaded
    estimator has the default there.
    """
    check_is_fitted(estimator, "model_")
    if type(estimator).__name__ not in ESTIMATORS:
        raise TypeError(f"cannot save a {type(estimator).__name__}: only {', '.join(ESTIMATORS)} can be saved.")
    tensors: Tensors = {}
    record = json.dumps(describe(estimator, tensors))
    write(record, tensors, path)
