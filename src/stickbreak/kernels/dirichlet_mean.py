"""The mean of a Dirichlet distribution of known sum that makes the logarithms of its rows most probable."""

import math

from ._jit import jit as _jit
from .special import digamma, inverse_digamma, trigamma_times

_MOST_STEPS = 100
_SETTLED = 1e-12  # of the logarithm of the sum


@_jit
def dirichlet_mean(logs, total, m):
    """The m that maximises total m . logs - sum_k log Gamma(total m_k): psi(total m_k) = logs_k - x, where sum_k m_k = 1.

    x is found by Newton steps on the logarithm of the sum of total m_k.

    logs : (K,) in;  total : > 0;  m : (K,) out
    """
    largest = logs[0]
    for k in range(logs.size):
        largest = max(largest, logs[k])
    x = largest - digamma(total)  # one entry alone is enough here, so the solution is to the right
    for _ in range(_MOST_STEPS):
        sum_a = 0.0
        slopes = 0.0
        for k in range(logs.size):
            a = inverse_digamma(logs[k] - x)
            m[k] = a
            sum_a += a
            slopes += a / (trigamma_times(a) + 1.0)  # 1 / psi'(a)
        excess = math.log(sum_a / total)
        if abs(excess) < _SETTLED:
            break
        x += excess * sum_a / slopes
    for k in range(logs.size):
        m[k] /= sum_a
