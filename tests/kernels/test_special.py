"""Special functions of compiled loops against scipy."""

import numpy as np
import pytest
from scipy.special import gammaln, polygamma, psi

from stickbreak.kernels.special import digamma, log_gamma_and_digamma, trigamma

POINTS = [1e-300, 1e-12, 1e-3, 0.3, 1.0, 1.4616, 2.0, 3.7, 7.999, 8.0, 8.001, 55.5, 1e4, 1e9]


@pytest.mark.parametrize("x", POINTS)
def test_they_agree_with_scipy(x):
    log_gamma, slope = log_gamma_and_digamma(x)
    assert log_gamma == pytest.approx(gammaln(x), rel=2e-14, abs=2e-14)
    assert slope == pytest.approx(psi(x), rel=2e-14, abs=2e-14)
    assert digamma(x) == pytest.approx(psi(x), rel=2e-14, abs=2e-14)
    if x > 1e-100:
        assert trigamma(x) == pytest.approx(float(polygamma(1, x)), rel=2e-14)
    assert np.isfinite(log_gamma)
