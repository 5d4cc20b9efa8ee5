"""Log probabilities of counts from 0 to 1e20 against the definitions, in 60 digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln, psi

from stickbreak.kernels import counts
from stickbreak.likelihoods import Multinomial, Poisson, Sample

DIGITS = 60
BERNOULLI = [Decimal(int(a)) / b for a, b in ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6))]
LOG_TAU = Decimal("1.83787706640934548356065947281123527972279494727556682563430308")


def log_gamma(x):
    """By recurrence to 500 and the asymptotic series."""
    x, product = Decimal(x), Decimal(1)
    while x < 500:
        product *= x
        x += 1
    series = sum(b / (2 * n * (2 * n - 1) * x ** (2 * n - 1)) for n, b in enumerate(BERNOULLI, 1))
    return (x - Decimal("0.5")) * x.ln() - x + LOG_TAU / 2 + series - product.ln()


def exactly(definition, *numbers):
    with localcontext() as context:
        context.prec = DIGITS
        return float(definition(*(exact(n) for n in numbers)))


def exact(number):
    return [Decimal(float(n)) for n in number] if np.ndim(number) else Decimal(float(number))


def coefficient(x):
    return log_gamma(sum(x) + 1) - sum(log_gamma(n + 1) for n in x)


def dirichlet_multinomial(x, c):
    kinds = sum(log_gamma(a + n) - log_gamma(a) for n, a in zip(x, c))
    return coefficient(x) + kinds + log_gamma(sum(c)) - log_gamma(sum(c) + sum(x))


def negative_binomial(x, a, b, e):
    return log_gamma(a + x) - log_gamma(a) - log_gamma(x + 1) + a * (b / (b + e)).ln() + x * (e / (b + e)).ln()


def rows():
    """Rows of six counts, few and many, alike and unlike, with fractions and zeros."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(6, 0.5), 15)
    drawn = [np.floor(size * p) for size, p in zip(np.geomspace(1.0, 1e20, 15), shares)]
    single = [np.where(np.arange(6) == d, size, 0.0) for d, size in ((0, 3.0), (1, 1e6), (2, 1e15), (3, 1e20))]
    other = [
        [0.0] * 6,
        [1e20, 3.0, 0.0, 0.0, 2.0, 1e20],
        [0.25, 1e-12, 3.5, 0.0, 17.2, 1e3],
        [16.0, 17.0, 1.0, 15.0, 18.0, 1e15],
        [1e15, 1e15 + 3e7, 1e15 - 3e7, 1e15, 1e15, 1e15],
    ]
    return np.array([*drawn, *single, *other])


def clusters(X):
    """Sums of no rows, of few counts, of all rows, and of twice the largest."""
    return np.array([np.zeros(6), [1.0, 0.0, 7.0, 0.5, 3.0, 100.0], X.sum(axis=0), 2.0 * X[-4]])


def close(found, want, size):
    """To the rounding of the result, or of deviations as large as those of such counts themselves."""
    slack = 1e-13 * (1.0 + np.abs(want)) + 1e-16 * np.sqrt(size)
    np.testing.assert_array_less(np.abs(found - want), 20.0 * slack)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("concentration", [1e-3, 1.0, [0.1, 1e3, 2.0, 1.0, 1e-2, 1e12]])
def test_rows_of_counts_have_all_digits(form, concentration):
    X = rows()
    likelihood, S = Multinomial(concentration).resolve(Sample.of(X[:5])), clusters(X)
    c = likelihood.concentration + S
    want = np.array([[exactly(dirichlet_multinomial, x, a) for a in c] for x in X])
    close(likelihood.log_predictive(form(X), np.ones(len(S)), S), want, X.sum(axis=1, keepdims=True))
    base = np.array([exactly(coefficient, x) for x in X])
    np.testing.assert_allclose(likelihood.log_base(form(X)), base, rtol=1e-13, atol=1e-13)


def test_counts_of_events_have_all_digits():
    X = np.floor(rows())
    N, S = np.array([0.0, 3.0, len(X), 2.0]), clusters(X)
    shape, rate = [1e-3, 1.0, 50.0, 1.0, 1e6, 1.0], [1e-3, 1.0, 1e-12, 1e12, 1.0, 1e-18]
    likelihood = Poisson(shape, rate).resolve(Sample.of(X[:5]))
    a, b = likelihood.shape + S, likelihood.rate + N[:, None]
    want = [[sum(exactly(negative_binomial, *z, 1.0) for z in zip(x, *k)) for k in zip(a, b)] for x in X]
    close(likelihood.log_predictive(X, N, S), np.array(want), X.sum(axis=1, keepdims=True))


def test_sums_of_log_gamma_and_digammas():
    rng = np.random.default_rng(0)
    S = rng.gamma(0.3, 100.0, (4, 30)) * rng.integers(2, size=(4, 30))
    S[0, 0] = 1e-15  # rounding
    prior = rng.gamma(0.5, 1.0, 30)
    sums, psis = np.empty(4), np.empty((4, 30))
    counts.log_gamma_sums(S, prior, gammaln(prior), 1e-12, sums)
    less = rng.gamma(1.0, 1.0, 4)
    counts.digammas(S, prior, psi(prior), 1e-12, less, psis)
    S[0, 0] = 0.0
    np.testing.assert_allclose(sums, (gammaln(prior + S) - gammaln(prior)).sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(psis, psi(prior + S) - less[:, None], rtol=1e-12, atol=1e-13)  # psi has a root


def test_sums_of_log_gamma_of_many_small_counts_neither_overflow_nor_vanish():
    """Their factors are multiplied before a logarithm is taken."""
    S = np.array([np.full(400, 9.5), np.full(400, 1e-9)])
    prior = np.full(400, 1e-12)
    sums = np.empty(2)
    counts.log_gamma_sums(S, prior, gammaln(prior), 1e-12, sums)
    np.testing.assert_allclose(sums, (gammaln(prior + S) - gammaln(prior)).sum(axis=1), rtol=1e-13)
