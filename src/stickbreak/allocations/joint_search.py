"""A search for several hyperparameters that depend on each other: the values with the highest bound."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from ._base import Array

NEAR = 1e-3  # differences of the variables that tell the slopes
LARGEST = 50.0  # size of a variable, such as the logarithm of a concentration


class Highest(NamedTuple):
    """Where a value is highest, (n,), and the value there."""

    x: Array
    value: float


def highest(value: Callable[[Array], float], x: Array) -> Highest:
    """Variables of a local maximum of a smooth function, from x (n,) on, by L-BFGS with slopes from differences.

    value : function of variables (n,) on a scale on which steps of about one are sensible, such as logarithms
    """
    steps = NEAR * np.eye(len(x))
    here = value(x)

    def loss(x: Array) -> tuple[float, Array]:
        slopes = [(value(x + step) - value(x - step)) / (2.0 * NEAR) for step in steps]
        return here - value(x), -np.array(slopes)

    limits = [(-LARGEST, LARGEST)] * len(x)
    scale = {"ftol": 1e-12, "gtol": 1e-5, "maxiter": 100}
    found = minimize(loss, x, jac=True, method="L-BFGS-B", bounds=limits, options=scale)
    return Highest(found.x, here - float(found.fun)) if found.fun < 0.0 else Highest(x, here)
