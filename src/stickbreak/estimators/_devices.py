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
    """Refuse what a device cannot visit; where the estimator chose the family by itself, warn that processors will.

    Raises
    ------
    TypeError
        If the likelihood or the rows given are of no kind that a device computes.
    """
    if device_of(estimator.device, X) is None:
        return
    trouble = refusal(model.kind, model.likelihood, isinstance(source, SparseSource))
    if trouble is None:
        return
    if isinstance(source, SparseSource) or estimator.likelihood != "auto":
        raise TypeError(f"device={estimator.device!r}: {trouble}")
    name = type(model.likelihood).__name__
    warnings.warn(
        f'likelihood="auto" chose {name}, which is visited on processors, not on device={estimator.device!r}; '
        'give likelihood="gaussian" or another family to choose for the device.',
        UserWarning,
        stacklevel=4,
    )


def reading_kind(estimator: Any, likelihood: Likelihood, source: ArraySource) -> Kind:
    """The kind of rows whose responsibilities are read: on the device of an estimator, if it names one that computes them."""
    device = device_of(estimator.device)
    return ROWS if device is None else returning_kind(device, ROWS, likelihood, source)
