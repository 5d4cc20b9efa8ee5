"""What the priors of weights share: the range of their precision, and its search."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._arguments import real, shown
from ..allocations.line_search import best_factor
from ._base import Answered

Array = NDArray[np.floating]

LEAST, MOST = 1e-6, 1e6  # of a precision: between them it is learnt
PRECISION = "precision"

R = TypeVar("R", bound=Any)


def check_positive(value: Any, name: str) -> None:
    """Refuse what is no number within the range."""
    if not LEAST <= real(value) <= MOST:
        raise ValueError(f"{name} must be a number from {LEAST:g} to {MOST:g}; got {shown(value)}.")


def eigenvalues(M: Array) -> Array:
    """Those of a sum of squares, which are not negative but for rounding, (K,)."""
    return np.asarray(np.maximum(np.linalg.eigvalsh(M), 0.0))


def inverse(M: Array, ridge: float) -> Array:
    """(M + ridge I)^-1, symmetric."""
    values, vectors = np.linalg.eigh(M)
    return np.asarray((vectors / (np.maximum(values, 0.0) + ridge)) @ vectors.T)


def with_best_precision(response: R, sums: Answered, names: tuple[str, ...], bound: Callable[[R], float]) -> R:
    """The response with a precision of the weights that raises the bound, if that is to be learnt."""
    if PRECISION not in names or not sums.A > 0.0:
        return response

    def times(factor: float) -> R:
        return replace(response, precision=float(np.clip(response.precision * factor, LEAST, MOST)))

    return times(best_factor(lambda factor: bound(times(factor))).factor)
