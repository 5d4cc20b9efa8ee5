"""Special functions of arrays of any library, which the array API does not have."""

import math
from typing import Any

_SHIFT = 8
_HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)
_LARGEST_EXPONENT = 60.0


def digamma(xp: Any, x: Any) -> Any:
    """The function psi(x) for x > 0 in float64, by recurrence to x + 8 and the asymptotic series."""
    total = 1.0 / x
    for i in range(1, _SHIFT):
        total = total + 1.0 / (x + float(i))
    return _log_less_series(xp, x + float(_SHIFT)) - total


def _log_less_series(xp: Any, y: Any) -> Any:
    i = 1.0 / (y * y)
    series = i * (1 / 12 - i * (1 / 120 - i * (1 / 252 - i * (1 / 240 - i * (1 / 132 - i * (691 / 32760))))))
    return xp.log(y) - 0.5 / y - series


def log_gamma(xp: Any, x: Any) -> Any:
    """Log Gamma(x) for x > 0 in float64, by recurrence to x + 8 and Stirling's series."""
    below = x
    for i in range(1, _SHIFT):
        below = below * (x + float(i))
    y = x + float(_SHIFT)
    i = 1.0 / (y * y)
    series = (1 / 12 - i * (1 / 360 - i * (1 / 1260 - i * (1 / 1680 - i * (1 / 1188 - i * (691 / 360360)))))) / y
    return (y - 0.5) * xp.log(y) - y + _HALF_LOG_TAU + series - xp.log(below)


def exp_digamma(xp: Any, x: Any, least: float) -> Any:
    """The numbers exp(psi(x)), at least ``least``; in float32 to 3e-6 of their size, as in `stickbreak.kernels.documents`."""
    if x.dtype == xp.float64:
        return xp.clip(xp.exp(digamma(xp, x)), min=least)
    a = xp.clip(x, min=1e-3)
    b = a * (a + 5.0)
    s = (2.0 * a + 5.0) * (1.0 / b + 1.0 / (b + 4.0) + 1.0 / (b + 6.0))  # 1 / a + ... + 1 / (a + 5), by pairs
    z = a + 5.5
    i = 1.0 / z
    return xp.exp(-xp.clip(s, min=0.0, max=_LARGEST_EXPONENT)) * (z + i * (1 / 24 - (37 / 5760) * i * i))
