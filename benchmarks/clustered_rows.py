"""Rows of well separated clusters of every family, given the cluster of each row.

Every generator takes a random generator and labels z (N,) from 0 to K - 1, all of which occur.
"""

from collections.abc import Callable

import numpy as np
from scipy import sparse

from stickbreak.likelihoods import (
    AutoregressiveGaussian,
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Gamma,
    LinearRegression,
    Product,
)


def clusters(z: np.ndarray) -> int:
    """K."""
    return int(z.max()) + 1


def points(rng: np.random.Generator, z: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Rows about centers ten standard deviations apart on average."""
    centers = rng.normal(0.0, 10.0, (clusters(z), 5))
    return centers[z] + widths[z] * rng.standard_normal((len(z), 5))


def zero_mean(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    factors = rng.standard_normal((clusters(z), 12, 12)) * np.exp(rng.standard_normal((clusters(z), 12, 1)))
    return np.einsum("nij,nj->ni", factors[z], rng.standard_normal((len(z), 12)))


def bits(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    chances = rng.beta(0.1, 0.1, (clusters(z), 40)).clip(0.02, 0.98)
    return (rng.random((len(z), 40)) < chances[z]).astype(float)


def categories(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    chances = rng.dirichlet(np.full(5, 0.15), (clusters(z), 20))
    return (rng.random((len(z), 20, 1)) > chances[z].cumsum(-1)).sum(-1).clip(0, 4).astype(float)


def words(rng: np.random.Generator, z: np.ndarray) -> sparse.csr_array:
    chances = rng.dirichlet(np.full(100, 0.1), clusters(z))
    return sparse.csr_array(np.stack([rng.multinomial(80, chances[k]) for k in z]).astype(float))


def lines(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    """Rows [x, y]: planes over the same x, with three targets, so that few rows lie near two of them."""
    x = rng.standard_normal((len(z), 3))
    y = (
        np.einsum("nij,nj->ni", rng.normal(0.0, 5.0, (clusters(z), 3, 3))[z], x)
        + rng.normal(0.0, 10.0, (clusters(z), 3))[z]
    )
    return np.hstack([x, y + 0.3 * rng.standard_normal((len(z), 3))])


def steps(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    """Rows [x, previous x] of rotations, each about a center of its own."""
    turns = np.linalg.qr(rng.standard_normal((clusters(z), 4, 4)))[0]
    before = rng.normal(0.0, 5.0, (len(z), 4))
    after = (
        np.einsum("nij,nj->ni", turns[z], before)
        + rng.normal(0.0, 10.0, (clusters(z), 4))[z]
        + 0.1 * rng.standard_normal((len(z), 4))
    )
    return np.hstack([after, before])


def mixed(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return np.hstack(
        [points(rng, z, np.ones((clusters(z), 1)))[:, :2], categories(rng, z)[:, :8], bits(rng, z)[:, :10]]
    )


MIXED = Product(
    {
        "numbers": (DiagonalGaussian(), range(2)),
        "kinds": (Categorical(), range(2, 10)),
        "bits": (Bernoulli(), range(10, 20)),
    }
)
FAMILIES: dict[str, tuple[object, Callable[[np.random.Generator, np.ndarray], object]]] = {
    "gaussian": ("gaussian", lambda rng, z: points(rng, z, rng.gamma(4.0, 0.25, (clusters(z), 5)))),
    "zero-mean Gaussian": ("zero_mean_gaussian", zero_mean),
    "diagonal Gaussian": ("diagonal_gaussian", lambda rng, z: points(rng, z, rng.gamma(4.0, 0.25, (clusters(z), 5)))),
    "spherical Gaussian": ("spherical_gaussian", lambda rng, z: points(rng, z, rng.gamma(4.0, 0.25, (clusters(z), 1)))),
    "known covariance": ("known_covariance_gaussian", lambda rng, z: points(rng, z, np.ones((clusters(z), 1)))),
    "Bernoulli": ("bernoulli", bits),
    "categorical": ("categorical", categories),
    "multinomial (CSR)": ("multinomial", words),
    "Poisson": ("poisson", lambda rng, z: rng.poisson(rng.gamma(0.7, 10.0, (clusters(z), 15))[z]).astype(float)),
    "exponential": ("exponential", lambda rng, z: rng.exponential(np.exp(rng.normal(0.0, 2.0, (clusters(z), 20)))[z])),
    "Gamma, known shape 2": (
        Gamma(2.0),
        lambda rng, z: rng.gamma(2.0, np.exp(rng.normal(0.0, 2.0, (clusters(z), 20)))[z]),
    ),
    "linear regression": (LinearRegression(targets=3), lines),
    "autoregressive": (AutoregressiveGaussian(), steps),
    "product": (MIXED, mixed),
}
