import numpy as np
import pytest

from stickbreak.kernels.statistics import pack_products, pack_products_reference


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
    np.testing.assert_allclose(T, pack_products_reference(z, linear), rtol=2 * np.finfo(dtype).eps, atol=0)


def test_reference_is_the_upper_triangle_row_by_row():
    T = pack_products_reference(np.array([[2.0, 3.0, 5.0]]), True)
    assert T.tolist() == [[4, 6, 10, 9, 15, 25, 2, 3, 5]]
