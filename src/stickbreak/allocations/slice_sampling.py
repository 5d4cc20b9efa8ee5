"""A step of slice sampling of one number (Neal, Slice sampling, Annals of Statistics 2003, figures 3 and 5)."""

from collections.abc import Callable

import numpy as np

MOST_WIDTHS = 50  # to step out


def slice_step(log_density: Callable[[float], float], x: float, rng: np.random.Generator, width: float = 1.0) -> float:
    """Another point, drawn so that the density stays as it is.

    A level below the density at x is drawn; an interval about x, at a random place, is widened until its ends are below the
    level; points are drawn in it, and those below the level shrink it, until one is above.

    width : about that of the density
    """
    level = log_density(x) - rng.exponential()
    left = x - width * rng.random()
    right = left + width
    steps = int(rng.integers(MOST_WIDTHS))
    for _ in range(steps):
        if log_density(left) <= level:
            break
        left -= width
    for _ in range(MOST_WIDTHS - 1 - steps):
        if log_density(right) <= level:
            break
        right += width
    while True:
        new = rng.uniform(left, right)
        if log_density(new) > level:
            return float(new)
        if new < x:
            left = new
        else:
            right = new
