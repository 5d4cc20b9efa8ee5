"""The record of a fitted estimator in a model file: JSON values, and arrays apart."""

from dataclasses import asdict
from typing import Any

import numpy as np

from ..responses import NoResponse
from .values import Tensors, encode, encode_parameters

OF_THE_MACHINE = (
    "checkpoint",
    "checkpoint_seconds",
    "device",
    "executor",
    "max_memory",
)  # parameters that a model file neither has nor may have


def describe(estimator: Any, tensors: Tensors) -> dict[str, Any]:
    """Everything of a fitted estimator that is not an array, as JSON values; its arrays go to ``tensors``."""
    parameters = {name: value for name, value in estimator.get_params(deep=False).items() if name not in OF_THE_MACHINE}
    names = getattr(estimator, "feature_names_in_", None)
    classes = getattr(estimator, "classes_", None)
    if classes is not None and not all(isinstance(name, (str, bool, int, float)) for name in classes.tolist()):
        raise TypeError(f"cannot save classes other than numbers and texts; got {classes.tolist()!r:.80}.")
    response = estimator.model_.response
    asked = {} if isinstance(response, NoResponse) else {"response": encode(response, "response", tensors)}
    return asked | {
        "estimator": type(estimator).__name__,
        "parameters": encode_parameters(parameters, tensors),
        "likelihood": encode(estimator.model_.likelihood, "likelihood", tensors),
        "allocation": encode(estimator.model_.allocation, "allocation", tensors),
        "summary": encode(estimator.summary_, "summary", tensors),
        "dtype": np.dtype(estimator.dtype_).name,
        "n_features": int(estimator.n_features_in_),
        "n_targets": int(estimator.n_targets_),
        "grouped": bool(estimator.grouped_),
        "feature_names": None if names is None else [str(name) for name in names],
        "classes": None if classes is None else classes.tolist(),
        "levels": [[int(d), list(levels)] for d, levels in estimator.levels_.items()],
        "data_check": [asdict(finding) for finding in estimator.data_check_],
        "selection": [asdict(candidate) for candidate in getattr(estimator, "selection_", [])],
        "converged": bool(estimator.converged_),
        "lower_bound": float(estimator.lower_bound_),
        "fingerprint": getattr(estimator, "_fingerprint", None),
        "history": [vars(lap) | {"moves": [asdict(move) for move in lap.moves]} for lap in estimator.history_],
    }
