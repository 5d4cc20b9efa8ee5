"""Special functions for compiled loops, where scipy's cannot be called."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._jit import jit as _jit
from ._jit import part as _part

_FAR = 10.0  # the least number for which a series is used
_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
_LEAST_PSI = -1e150  # the least psi that is inverted: the derivative there is its square
_EULER = 0.5772156649015329  # -psi(1)
_HUGE = 1e25  # the tenth power of a count up to this does not overflow


@_part
def _ten_factors(x):
    """The product x (x + 1) ... (x + 9), and the derivative of its logarithm.

    With t = x (x + 9), opposite factors have the products t, t + 8, t + 14, t + 18 and t + 20.
    """
    t = x * (x + 9.0)
    product = t * (40320.0 + t * (12176.0 + t * (1308.0 + t * (60.0 + t))))
    by_t = 40320.0 + t * (24352.0 + t * (3924.0 + t * (240.0 + t * 5.0)))
    return product, (x + x + 9.0) * by_t / product


@_part
def _two_squares(total, product):
    """1 / a^2 + 1 / b^2, for a + b and a b."""
    return (total * total - 2.0 * product) / (product * product)


@_part
def _log_gamma_series(j):
    """The series of x (log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2), for j = 1 / x^2 and x from 10 on."""
    return 1 / 12 - j * (1 / 360 - j * (1 / 1260 - j * (1 / 1680 - j * (1 / 1188 - j * 691 / 360360))))


@_part
def _psi_series(j):
    """The series of log x - 1 / (2 x) - psi(x), for j = 1 / x^2 and x from 10 on."""
    return j * (1 / 12 - j * (1 / 120 - j * (1 / 252 - j * (1 / 240 - j * (1 / 132 - j * 691 / 32760)))))


@_jit
def digamma(x):
    """psi(x) for x > 0, by recurrence to x + 10 and the asymptotic series."""
    less = 0.0
    if x < _FAR:
        less = _ten_factors(x)[1]
        x += 10.0
    i = 1.0 / x
    return math.log(x) - 0.5 * i - _psi_series(i * i) - less


@_jit
def trigamma_times(x):
    """X psi'(x) - 1 for x > 0, by the same recurrence and series."""
    if x >= _FAR:
        return x * _beyond_inverse(x)
    t = x * (x + 9.0)
    s = x + x + 9.0
    total = _two_squares(s, t + 8.0) + _two_squares(s, t + 14.0) + _two_squares(s, t + 18.0) + _two_squares(s, t + 20.0)
    total += 1.0 / ((x + 9.0) * (x + 9.0)) + _beyond_inverse(x + 10.0) + 1.0 / (x + 10.0)
    return x * total + (1.0 / x - 1.0)


@_part
def _beyond_inverse(y):
    """psi'(y) - 1 / y for y from 10 on."""
    j = 1.0 / (y * y)
    series = j * (1 / 6 - j * (1 / 30 - j * (1 / 42 - j * (1 / 30 - j * (5 / 66 - j * 691 / 2730)))))
    return (0.5 / y + series) / y


@_jit
def inverse_digamma(y):
    """The x with psi(x) = y, by Newton steps (Minka 2000, appendix C); 1e-150 where x is smaller."""
    y = max(y, _LEAST_PSI)
    x = math.exp(min(y, 700.0)) + 0.5 if y >= -2.22 else -1.0 / (y + _EULER)
    for _ in range(4):
        x -= (digamma(x) - y) * x / (trigamma_times(x) + 1.0)
    return x


@_part
def log_gamma_beside(x):
    """Log Gamma(x) + log p for x > 0, and p: the product of factors by which the recurrence divides, 1 from 10 on."""
    product = 1.0
    if x < _FAR:
        product = _ten_factors(x)[0]
        x += 10.0
    i = 1.0 / x
    return (x - 0.5) * math.log(x) - x + _HALF_LOG_2_PI + _log_gamma_series(i * i) * i, product


@_jit
def log_gamma(x):
    """Log Gamma(x) and psi(x) for x > 0, by recurrence to x + 10 and the asymptotic series."""
    product = 1.0
    slope = 0.0
    if x < _FAR:
        product, slope = _ten_factors(x)
        x += 10.0
    i = 1.0 / x
    j = i * i
    log = math.log(x)
    value = (x - 0.5) * log - x + _HALF_LOG_2_PI + _log_gamma_series(j) * i
    psi = log - 0.5 * i - _psi_series(j)
    if product != 1.0:
        value -= math.log(product)
        psi -= slope
    return value, psi


@_jit
def rise(count, prior):
    """Log Gamma(prior + count) - log Gamma(prior), and its derivative by the prior, psi(prior + count) - psi(prior).

    Neither is a difference of large numbers: from 10 on the differences of the asymptotic series have a closed form, and
    smaller priors are raised to 10 by recurrence.

    count : >= 0;  prior : > 0
    """
    if count == 0.0:
        return 0.0, 0.0
    if count > _HUGE and prior < _FAR:  # the two terms differ so much that nothing cancels
        return math.lgamma(prior + count) - math.lgamma(prior), digamma(prior + count) - digamma(prior)
    value = 0.0
    slope = 0.0
    if prior < _FAR:
        above, by_above, below, by_below = 1.0, 0.0, 1.0, 0.0  # products of prior + count and of prior, and derivatives
        while prior < _FAR and prior <= count:
            total = prior + count
            by_above = by_above * total + above
            above = above * total
            by_below = by_below * prior + below
            below = below * prior
            prior += 1.0
        if by_above > 0.0:
            value -= math.log(above) - math.log(below)
            slope += by_below / below - by_above / above
        growth, by_growth = 0.0, 0.0  # the product of 1 + count / prior, less one, and its derivative by -prior
        while prior < _FAR:
            inverse = 1.0 / prior
            share = count * inverse
            by_growth += share * (by_growth + inverse + growth * inverse)
            growth += share + growth * share
            prior += 1.0
        slope += by_growth / (1.0 + growth)
        value -= math.log1p(growth)
    total = prior + count
    i = 1.0 / prior
    j = 1.0 / total
    log = math.log1p(count / prior)
    gap = count * i * j  # i - j
    a = i * i
    b = j * j
    f1, g1 = i + j, a + b  # f_n = i^n + i^(n-1) j + ... + j^n;  g_n: the same of the squares
    f2 = i * f1 + b
    g2 = a * g1 + b * b
    b2 = b * b
    f4 = a * f2 + b * (i * j + b)
    g3 = a * g2 + b * b2
    b3 = b * b2
    f6 = a * f4 + b2 * (i * j + b)
    g4 = a * g3 + b2 * b2
    f8 = a * f6 + b3 * (i * j + b)
    g5 = a * g4 + b2 * b3
    f10 = a * f8 + b2 * b2 * (i * j + b)
    rest = 1 / 12 - f2 * (1 / 360) + f4 * (1 / 1260) - f6 * (1 / 1680) + f8 * (1 / 1188) - f10 * (691 / 360360)
    value += (prior - 0.5) * log + count * (math.log(total) - 1.0) - gap * rest
    rest = 1 / 12 - g1 * (1 / 120) + g2 * (1 / 252) - g3 * (1 / 240) + g4 * (1 / 132) - g5 * (691 / 32760)
    slope += log + gap * (0.5 + f1 * rest)
    return value, slope


@_jit
def rises(counts, priors, out):
    """Log Gamma(prior + count) - log Gamma(prior) of each element; all (n,), ``out`` out."""
    for i in range(counts.size):
        out[i] = rise(counts[i], priors[i])[0]


def log_rise(count: Any, prior: Any) -> NDArray[np.float64]:
    """Log Gamma(prior + count) - log Gamma(prior), element by element, without a difference of large numbers."""
    counts, priors = np.broadcast_arrays(np.asarray(count, dtype=np.float64), np.asarray(prior, dtype=np.float64))
    out = np.empty(counts.size)
    rises(counts.flatten(), priors.flatten(), out)  # copies: compiled loops take no broadcast arrays
    return out.reshape(counts.shape)


@_jit
def beyond_stirling(x):
    """What log Gamma(x) and psi(x) are beyond (x - 1/2) log x - x + log(2 pi) / 2 and log x, for x > 0."""
    product = 1.0
    slope = 0.0
    y = x
    if x < _FAR:
        product, slope = _ten_factors(x)
        y = x + 10.0
    i = 1.0 / y
    j = i * i
    log_gamma = _log_gamma_series(j) * i
    psi = -0.5 * i - _psi_series(j)
    if y > x:
        log_x = math.log(x)
        log_y = math.log(y)
        log_gamma += (y - 0.5) * log_y - (x - 0.5) * log_x - 10.0 - math.log(product)
        psi += log_y - log_x - slope
    return log_gamma, psi
