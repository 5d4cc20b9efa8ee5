import numpy as np
import pytest

from stickbreak.kernels.inverses import invert, invert_reference
from stickbreak.likelihoods import _quadratic


@pytest.mark.parametrize("D", [1, 2, 5, 33])
def test_inverses_of_small_matrices(D):
    rng = np.random.default_rng(D)
    A = rng.normal(size=(7, D, D + 2))
    B = A @ A.swapaxes(1, 2) + 0.1 * np.eye(D)
    L = np.linalg.cholesky(B)
    L += np.triu(np.full((D, D), np.nan), 1)  # upper triangles do not count
    P = np.zeros(B.shape)
    invert(L, P)
    np.testing.assert_allclose(P, invert_reference(np.tril(L)), rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(P, P.swapaxes(1, 2))


def test_small_and_large_matrices_have_the_same_inverses(monkeypatch):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 12, 20))
    L = np.linalg.cholesky(A @ A.swapaxes(1, 2))
    compiled = _quadratic.inverses(L)
    monkeypatch.setattr(_quadratic, "COMPILED", 0)
    np.testing.assert_allclose(compiled, _quadratic.inverses(L), rtol=1e-10)
