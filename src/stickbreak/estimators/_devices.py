"""The parameter ``device`` of estimators: what it may be, and what cannot be visited on one."""

import warnings
from typing import Any

from ..data import ArraySource, SparseSource
from ..device import device_of, refusal, returning_kind
from ..likelihoods import Likelihood
from ..model import ROWS, Kind, Model


def check_device(estimator: Any) -> None:
    """Refuse a name of no device, and a device whose library is missing or that this computer does not have."""
    device = device_of(estimator.device)
    if device is not None:
        device.check()


def check_visits(estimator: Any, X: Any, model: Model, source: ArraySource) -> None:
    """Refuse what a device cannot visit; a family that the estimator chose by itself is visited on processors then.

    Raises
    ------
    TypeError
        If the likelihood or the rows given are of no kind that a device computes.
    """
    trouble = _trouble(estimator, X, model, source)
    if trouble is not None and (isinstance(source, SparseSource) or estimator.likelihood != "auto"):
        raise TypeError(f"device={estimator.device!r}: {trouble}")


def warn_of_processors(estimator: Any, X: Any, model: Model, source: ArraySource) -> None:
    """Say where the family that an estimator chose by itself is visited, if that is not on its device."""
    if _trouble(estimator, X, model, source) is None:
        return
    name = type(model.likelihood).__name__
    warnings.warn(
        f'likelihood="auto" chose {name}, which is visited on processors, not on device={estimator.device!r}; '
        'give likelihood="gaussian" or another family to choose for the device.',
        UserWarning,
        stacklevel=4,
    )


def _trouble(estimator: Any, X: Any, model: Model, source: ArraySource) -> str | None:
    """Why a device does not visit these rows; None where it does, or where there is none."""
    if device_of(estimator.device, X) is None:
        return None
    return refusal(model.kind, model.likelihood, isinstance(source, SparseSource))


def reading_kind(estimator: Any, likelihood: Likelihood, source: ArraySource) -> Kind:
    """The kind of rows whose responsibilities are read: on the device of an estimator, if it names one that computes them."""
    device = device_of(estimator.device)
    return ROWS if device is None else returning_kind(device, ROWS, likelihood, source)
