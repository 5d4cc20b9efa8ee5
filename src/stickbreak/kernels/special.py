"""Special functions for compiled loops, where scipy's cannot be called."""

import math

from ._jit import jit as _jit

_SHIFT = 8
_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)


@_jit
def digamma(x):
    """psi(x) for x > 0, by recurrence to x + 8 and the asymptotic series."""
    total = 0.0
    while x < _SHIFT:
        total -= 1.0 / x
        x += 1.0
    i = 1.0 / (x * x)
    series = i * (1 / 12 - i * (1 / 120 - i * (1 / 252 - i * (1 / 240 - i * (1 / 132 - i * 691 / 32760)))))
    return total + math.log(x) - 0.5 / x - series


@_jit
def trigamma(x):
    """psi'(x) for x > 0, in the same way."""
    total = 0.0
    while x < _SHIFT:
        total += 1.0 / (x * x)
        x += 1.0
    i = 1.0 / (x * x)
    series = i * (1 / 6 - i * (1 / 30 - i * (1 / 42 - i * (1 / 30 - i * (5 / 66 - i * 691 / 2730)))))
    return total + (1.0 + 0.5 / x + series) / x


@_jit
def log_gamma_and_digamma(x):
    """Both for x > 0, with one recurrence: the product of x, x + 1, ... and its derivative, up to x + 8."""
    product, slope = 1.0, 0.0
    while x < _SHIFT:
        slope = slope * x + product
        product *= x
        x += 1.0
    i, log = 1.0 / (x * x), math.log(x)
    above = 1 / 12 - i * (1 / 360 - i * (1 / 1260 - i * (1 / 1680 - i * (1 / 1188 - i * 691 / 360360))))
    series = i * (1 / 12 - i * (1 / 120 - i * (1 / 252 - i * (1 / 240 - i * (1 / 132 - i * 691 / 32760)))))
    log_gamma = (x - 0.5) * log - x + _HALF_LOG_2_PI + above / x - math.log(product)
    return log_gamma, log - 0.5 / x - series - slope / product
