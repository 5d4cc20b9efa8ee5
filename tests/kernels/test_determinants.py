import numpy as np
import pytest

from stickbreak.kernels.determinants import (
    gathered_reference,
    log_determinants,
    log_determinants_left,
    log_determinants_reference,
)
from stickbreak.kernels.quadratic_weights import quadratic_weights, quadratic_weights_reference


def sums(D, K, seed):
    """Sums of products of rows [z, 1], z with D - 1 columns, and where these are in [S, n]; the 1 comes second."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 3 * D, size=K).astype(float)
    order = np.insert(np.arange(D - 1), min(1, D - 1), D - 1)
    a, b = np.triu_indices(D - 1)
    place = np.full((D, D), len(a) + D - 1)
    place[a, b] = place[b, a] = np.arange(len(a))
    place[: D - 1, -1] = place[-1, : D - 1] = len(a) + np.arange(D - 1)
    S = []
    for rows in n.astype(int):
        z = rng.normal(1.0, 2.0, (rows, D - 1))
        S.append(np.concatenate([(z[:, a] * z[:, b]).sum(axis=0), z.sum(axis=0)]))
    return np.array(S), n, np.ascontiguousarray(place[np.ix_(order, order)])


@pytest.mark.parametrize(("D", "M"), [(2, 1), (3, 0), (4, 4), (5, 2), (8, 3), (19, 13), (37, 25)])
@pytest.mark.parametrize("K", [0, 1, 4, 7])
def test_determinants_of_sums_of_products(D, M, K):
    S, n, place = sums(D, 7, D)
    S, n = S[:K], n[:K]
    rng = np.random.default_rng(0)
    root = rng.normal(size=(D, D))
    base, weight, rounding = root @ root.T + np.eye(D), rng.uniform(1.0, 1.5, D), rng.uniform(0.0, 0.5, D)
    added = np.cov(rng.normal(size=(D - M, 3 * D))).reshape(D - M, D - M)
    out, left = np.empty((K, 2)), np.empty((K, D - M, D - M))
    log_determinants(S, n, place, base, weight, rounding, added, out, left)
    wanted, rest = log_determinants_reference(gathered_reference(S, n, place, base, weight, rounding), added)
    np.testing.assert_allclose(out, wanted, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(np.triu(left), np.triu(rest), rtol=1e-10, atol=1e-10)
    again = np.empty(K)
    log_determinants_left(left, 2.0 * added, again)
    np.testing.assert_allclose(again, np.linalg.slogdet(rest + 2.0 * added)[1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("pivot", [-1.0, 0.0, np.nan])
def test_what_is_not_positive_definite_is_not_finite(pivot):
    for i in range(5):
        base = np.diag(np.where(np.arange(5) == i, pivot, 1.0))
        out, left, place, added = np.zeros((1, 2)), np.zeros((1, 3, 3)), np.zeros((5, 5), int), np.zeros((3, 3))
        log_determinants(np.zeros((1, 1)), np.zeros(1), place, base, np.ones(5), np.zeros(5), added, out, left)
        assert not np.isfinite(out[0, int(i >= 2)])
        again = np.zeros(1)
        log_determinants_left(left, added, again)
        assert np.isfinite(again[0]) == np.isfinite(out[0, 1])


@pytest.mark.parametrize(("D", "M"), [(1, 0), (3, 1), (4, 4), (8, 3), (19, 13), (37, 25)])
@pytest.mark.parametrize("K", [0, 1, 4, 7])
def test_weights_of_quadratic_forms(D, M, K):
    S, n, place = sums(D, 7, D)
    rng = np.random.default_rng(0)
    root = rng.normal(size=(D, D))
    base, weight, rounding = root @ root.T + np.eye(D), rng.uniform(1.0, 1.5, D), rng.uniform(0.0, 0.5, D)
    given = S[:K], n[:K], place, base, weight, rounding, M, n[:K] + D + 1.0
    V = quadratic_weights_reference(*given)
    a, b = np.triu_indices(D)
    times = rng.normal(size=len(a))
    logdets, out, variances = np.empty((K, 2)), np.empty((K, len(a))), np.empty((K, D))
    quadratic_weights(*given, a * D + b, times, logdets, out, variances)
    np.testing.assert_allclose(out, V[:, a, b] * times, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(variances, V.diagonal(axis1=1, axis2=2), rtol=1e-9)
    J = gathered_reference(*given[:6])
    np.testing.assert_allclose(
        logdets, log_determinants_reference(J, np.zeros((D - M, D - M)))[0], rtol=1e-10, atol=1e-10
    )
