"""Log probabilities of counts of any size, of which no term is larger than the result.

With the beta function, log p is a difference of numbers of size n log n.  Here each count has the probability of a negative
binomial, in the form of Loader (Fast and accurate computation of binomial probabilities, 2000): deviances from the
mean, which are never negative, and logarithms.
"""

import math

import numpy as np

from ._jit import jit as _jit
from ._jit import part as _part
from .special import beyond_stirling, digamma, log_gamma_beside, rise

_FEW = 16  # counts of which a product has few factors
_SUMMABLE = 1e15  # beyond which a product of that many factors might overflow
_TINY = 1e-300
_SMALL, _LARGE = 1e-150, 1e150  # products between which one more factor neither overflows nor vanishes
_ALMOST_ALL = 0.999  # of a total: what is left is no longer taken as a difference
_HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)


@_jit
def deviance(x, mean):
    """X log(x / mean) - x + mean for x, mean > 0."""
    gap = x - mean
    v = gap / (x + mean)
    if abs(v) > 0.1:
        return x * math.log(x / mean) - gap
    total, power, square = gap * v, 2.0 * x * v, v * v  # the series of x log((1 + v) / (1 - v))
    for j in range(1, 9):
        power *= square
        total += power / (2 * j + 1)
    return total


@_jit
def is_few(x, prior):
    """Whether the product of `log_choices` is short."""
    return x <= _TINY or (x <= _FEW and x == math.floor(x) and prior < _SUMMABLE)


@_jit
def log_choices(x, prior):
    """Log of Gamma(prior + x) / (Gamma(prior) x!), where few."""
    product = 1.0
    for i in range(int(x)):
        product *= (prior + i) / (i + 1.0)
    return math.log(product)


@_jit
def log_many(x, prior, share, rest):
    """Log negative binomial probability of x > 0 for ``prior`` > 0 and the chance ``share`` of a count; rest = 1 - share."""
    total = prior + x
    beyond = beyond_stirling(total)[0] - beyond_stirling(prior)[0] - beyond_stirling(x)[0]
    deviances = deviance(x, total * share) + deviance(prior, total * rest)
    return 0.5 * math.log(prior / total / x) - _HALF_LOG_TAU + beyond - deviances


@_jit
def negative_binomials(x, prior, rate, exposure, out):
    """Log Gamma(a + x) / (Gamma(a) x!) + a log(b / (b + e)) + x log(e / (b + e)), a = prior, b = rate, e = exposure.

    x : (n,) >= 0;  prior, rate, exposure : (n,) > 0;  out : (n,) out
    """
    for i in range(out.size):
        both = rate[i] + exposure[i]
        share = max(exposure[i] / both, _TINY)
        rest = max(rate[i] / both, _TINY)
        if is_few(x[i], prior[i]):
            out[i] = log_choices(x[i], prior[i]) + x[i] * math.log(share) - prior[i] * math.log1p(exposure[i] / rate[i])
        else:
            out[i] = log_many(x[i], prior[i], share, rest)


@_jit
def dirichlet_multinomials(data, indices, indptr, priors, out):
    """Log probability of rows of counts given their totals n, after pseudo-counts c with sum C.

    Given their total, negative binomial counts with the same chance are Dirichlet-multinomial: sum_d log NB(x_d | c_d) -
    log NB(n | C) for any chance; here that of n / (C + n).

    data, indices, indptr : rows as CSR, >= 0, with indices in order;  priors : (K, D), > 0;  out : (n, K) out
    """
    for k in range(priors.shape[0]):
        c = priors[k]
        C = 0.0
        for d in range(c.size):
            C += c[d]
        for i in range(out.shape[0]):
            out[i, k] = _one_row(data, indices, indptr[i], indptr[i + 1], c, C)


@_jit
def _one_row(data, indices, start, stop, c, C):
    n = 0.0
    for p in range(start, stop):
        n += data[p]
    if n <= _TINY:
        return 0.0
    share = max(n / (C + n), _TINY)
    rest = max(C / (C + n), _TINY)
    total, few, many = 0.0, 0.0, 0.0  # sums of few counts, and of the pseudo-counts of kinds with many
    for p in range(start, stop):
        x = data[p]
        prior = c[indices[p]]
        if is_few(x, prior):
            total += log_choices(x, prior)
            few += x
        else:
            total += log_many(x, prior, share, rest)
            many += prior
    others = C - many if many <= _ALMOST_ALL * C else _sum_of_few(data, indices, start, stop, c)
    return total + few * math.log(share) - others * math.log1p(n / C) - log_many(n, C, share, rest)


@_jit
def _sum_of_few(data, indices, start, stop, c):
    """The sum of c over kinds without many counts."""
    total = 0.0
    at = start
    for d in range(c.size):
        stored = at < stop and indices[at] == d
        if not stored or is_few(data[at], c[d]):
            total += c[d]
        if stored:
            at += 1
    return total


@_jit
def multinomial_coefficients(data, indptr, out):
    """Log n! - sum_d log x_d! of each row of counts with total n, count by count: log (s + x)! / (s! x!) after a sum s.

    data, indptr : rows as CSR, >= 0;  out : (n,) out
    """
    for i in range(out.size):
        before = 0.0
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            x = data[p]
            if is_few(x, before + 1.0):
                total += log_choices(x, before + 1.0)
            else:
                less = min(x, before)
                more = max(x, before)
                total += rise(less, more + 1.0)[0] - math.lgamma(less + 1.0)
            before += x
        out[i] = total


@_part
def _above(row, least, at):
    """Write the places of the numbers above ``least`` to ``at``, which has room for one more than all, and count them."""
    n = 0
    for d in range(row.size):
        at[n] = d
        n += row[d] > least
    return n


@_jit
def log_gamma_sums(S, prior, log_gammas, least, out):
    """The sums over d of log Gamma(prior_d + S_kd) - log Gamma(prior_d), where S_kd is above ``least`` > 1e-100.

    S : (K, D), prior, log_gammas : (D,) in;  out : (K,) out
    """
    at = np.empty(prior.size + 1, np.int64)
    for k in range(S.shape[0]):
        row = S[k]
        total = 0.0
        product = 1.0  # of the factors of several, so that they take one logarithm
        for i in range(_above(row, least, at)):
            d = at[i]
            value, factors = log_gamma_beside(prior[d] + row[d])
            total += value - log_gammas[d]
            product *= factors
            if product > _LARGE or product < _SMALL:
                total -= math.log(product)
                product = 1.0
        out[k] = total - math.log(product)


@_jit
def digammas(S, prior, known, least, less, out):
    """Psi(prior_d + S_kd) - less_k where S_kd is above ``least``, and known_d - less_k elsewhere.

    S : (K, D), prior, known : (D,), less : (K,) in;  out : (K, D) out
    """
    at = np.empty(prior.size + 1, np.int64)
    for k in range(S.shape[0]):
        row = S[k]
        psi = out[k]
        for d in range(prior.size):
            psi[d] = known[d] - less[k]
        for i in range(_above(row, least, at)):
            d = at[i]
            psi[d] = digamma(prior[d] + row[d]) - less[k]
