"""A line search for one hyperparameter: the factor that raises the bound."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

WIDEST = 2.0  # log of the largest factor by which one step changes a hyperparameter
LEAST_GAIN = 1e-6  # nats, below which a factor is not worth a change: where data say nothing, priors stay as they are
NEAR = 0.02  # log of the factors whose values tell the slope and the curvature
LEAP = 1.0  # log of the factor that is tried first where the value bends upwards
SHORTER = 4.0  # times, a step that does not help


class Best(NamedTuple):
    """A factor, and the value there."""

    factor: float
    value: float


def best_factor(value: Callable[[float], float], here: float | None = None) -> Best:
    """A factor near one with a higher value, in nats; one if none is higher by more than rounding.

    here : the value at one, if that is known

    A step of Newton's method on the logarithm of the factor, with the slope and the curvature of differences; longer while
    that helps where the value bends upwards, shorter until it helps where it overshoots.  Repeated it ends at a local optimum.
    """

    def height(step: float) -> float:
        try:
            with np.errstate(all="ignore"):
                found = value(float(np.exp(step)))
        except (FloatingPointError, ValueError):
            return -np.inf
        return found if np.isfinite(found) else -np.inf

    here = height(0.0) if here is None or not np.isfinite(here) else here
    step = _newton_step(height(-NEAR), here, height(NEAR))
    if step == 0.0:
        return Best(1.0, here)
    best = height(step)
    while best > here and LEAP <= abs(step) <= WIDEST / 2.0 and (further := height(2.0 * step)) > best:
        step = 2.0 * step
        best = further
    while best <= here and abs(step) > NEAR:
        step /= SHORTER
        best = height(step)
    return Best(float(np.exp(step)), best) if best > here + LEAST_GAIN else Best(1.0, here)


def _newton_step(behind: float, here: float, ahead: float) -> float:
    """Where the parabola through three heights has its top, no further than `WIDEST`; zero if that gains too little."""
    if not (np.isfinite(behind) and np.isfinite(ahead)):
        return float(np.copysign(NEAR, ahead - behind)) if ahead != behind else 0.0
    slope = (ahead - behind) / (2.0 * NEAR)
    curvature = (ahead - 2.0 * here + behind) / NEAR**2
    if curvature >= 0.0:
        return float(np.copysign(LEAP, slope)) if abs(slope) * LEAP > LEAST_GAIN else 0.0
    step = -slope / curvature
    return float(np.clip(step, -WIDEST, WIDEST)) if 0.5 * slope * step > LEAST_GAIN else 0.0
