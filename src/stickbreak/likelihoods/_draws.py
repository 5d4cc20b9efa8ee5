"""Random draws that do not fail where parameters are larger than the generators of NumPy take."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._hyperparameters import LARGEST

Array = NDArray[np.floating]

LEAST = 1e-150  # a chi-square variable of few degrees of freedom can be zero in floats
MOST = 1e15  # for larger counts the normal distribution agrees with the others to all digits


def poisson(rng: np.random.Generator, mean: Any, size: Any = None) -> Array:
    """Poisson counts as floats; large ones by the normal distribution."""
    mean = np.broadcast_to(np.minimum(mean, LARGEST), np.shape(mean) if size is None else size)
    counts: Array = rng.poisson(np.minimum(mean, MOST)).astype(np.float64)
    large = mean > MOST
    if large.any():
        counts[large] = np.floor(mean[large] + np.sqrt(mean[large]) * rng.standard_normal(int(large.sum())))
    return counts


def gamma(rng: np.random.Generator, shape: Any, rate: Any) -> Array:
    """Gamma variables of a shape and a rate, clipped to the range that likelihoods take."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        return np.asarray(np.clip(rng.standard_gamma(shape) / rate, 1.0 / LARGEST, LARGEST))


def student_width(rng: np.random.Generator, degrees: Any, size: Any) -> Array:
    """What a normal variable is multiplied by to follow Student's t of so many degrees of freedom."""
    return np.asarray(np.sqrt(degrees / np.maximum(rng.chisquare(degrees, size), LEAST)))
