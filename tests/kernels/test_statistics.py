import numpy as np
import pytest

from stickbreak.kernels.statistics import gather_scatters, pack_products


def products(X, linear):
    """What `pack_products` states, for origin 0 and unit 1."""
    a, b = np.triu_indices(X.shape[1])
    upper = X[:, a] * X[:, b]
    return np.hstack([upper, X]) if linear else upper


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "D"), [(0, 2), (1, 1), (7, 3), (5, 8)])
def test_products_of_standardised_columns(n, D, dtype, linear):
    rng = np.random.default_rng(D)
    origin, unit = rng.normal(5.0, 1.0, D), rng.uniform(0.1, 9.0, D)
    X = (origin + unit * rng.standard_normal((n, D))).astype(dtype)
    T = np.full((n, D * (D + 1) // 2 + linear * D), np.nan, dtype)
    pack_products(X, origin, unit, linear, T)
    z = ((X - origin) / unit).astype(dtype)
    assert np.array_equal(T[:, T.shape[1] - D :], z) or not linear
    np.testing.assert_allclose(T, products(z, linear), rtol=2 * np.finfo(dtype).eps, atol=0)


def test_reference_is_the_upper_triangle_row_by_row():
    T = products(np.array([[2.0, 3.0, 5.0]]), True)
    assert T.tolist() == [[4, 6, 10, 9, 15, 25, 2, 3, 5]]


@pytest.mark.parametrize("columns", [[0, 1, 2, 3], [1, 3], [2], []])
def test_scatters_of_some_columns(columns):
    K, D, grain = 3, 4, 1.0 + 2.0**-20
    rng = np.random.default_rng(len(columns))
    S = rng.standard_normal((K, D * (D + 1) // 2 + D))
    q = len(columns)
    base, rounding = rng.standard_normal((q, q)), rng.random(q)
    weight, kappa, m = rng.random(K), rng.random(K), rng.standard_normal((K, q))
    B = np.full((K, q, q), np.nan)
    gather_scatters(S, D, np.array(columns, np.intp), base, weight, rounding, kappa, m, grain, B)
    whole = np.zeros((K, D, D))
    whole[:, *np.triu_indices(D)] = S[:, : D * (D + 1) // 2]
    whole *= np.where(np.eye(D, dtype=bool), grain, 1.0)
    want = base + whole[:, columns][:, :, columns] - kappa[:, None, None] * m[:, :, None] * m[:, None, :]
    want[:, np.arange(q), np.arange(q)] += weight[:, None] * rounding
    upper = np.triu_indices(q)
    np.testing.assert_allclose(B[:, *upper], want[:, *upper], rtol=1e-12, atol=1e-12)
