"""Recovery from one cluster: 20,000 rows of ten well separated clusters of every family, ten seeds each.

A run recovers the clusters when it finds exactly ten and their labels agree (adjusted Rand index above 0.95, a bar that
the overlap of the generated clusters allows).

    python benchmarks/recovery.py
"""

import time
from collections.abc import Callable

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from common import report
from stickbreak import Mixture
from stickbreak.likelihoods import (
    AutoregressiveGaussian,
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Gamma,
    LinearRegression,
    Product,
)

N, K, SEEDS = 20_000, 10, 10

Rows = tuple[np.ndarray, np.ndarray]


def points(rng: np.random.Generator, z: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Rows about centers ten standard deviations apart on average."""
    centers = rng.normal(0.0, 10.0, (K, 5))
    return centers[z] + widths[z] * rng.standard_normal((N, 5))


def zero_mean(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    factors = rng.standard_normal((K, 12, 12)) * np.exp(rng.standard_normal((K, 12, 1)))
    return np.einsum("nij,nj->ni", factors[z], rng.standard_normal((N, 12)))


def bits(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    chances = rng.beta(0.1, 0.1, (K, 40)).clip(0.02, 0.98)
    return (rng.random((N, 40)) < chances[z]).astype(float)


def categories(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    chances = rng.dirichlet(np.full(5, 0.15), (K, 20))
    return (rng.random((N, 20, 1)) > chances[z].cumsum(-1)).sum(-1).clip(0, 4).astype(float)


def words(rng: np.random.Generator, z: np.ndarray) -> sparse.csr_array:
    chances = rng.dirichlet(np.full(100, 0.1), K)
    return sparse.csr_array(np.stack([rng.multinomial(80, chances[k]) for k in z]).astype(float))


def lines(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    """Rows [x, y]: planes over the same x, with three targets, so that few rows lie near two of them."""
    x = rng.standard_normal((N, 3))
    y = np.einsum("nij,nj->ni", rng.normal(0.0, 5.0, (K, 3, 3))[z], x) + rng.normal(0.0, 10.0, (K, 3))[z]
    return np.hstack([x, y + 0.3 * rng.standard_normal((N, 3))])


def steps(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    """Rows [x, previous x] of rotations, each about a center of its own."""
    turns = np.linalg.qr(rng.standard_normal((K, 4, 4)))[0]
    before = rng.normal(0.0, 5.0, (N, 4))
    after = (
        np.einsum("nij,nj->ni", turns[z], before) + rng.normal(0.0, 10.0, (K, 4))[z] + 0.1 * rng.standard_normal((N, 4))
    )
    return np.hstack([after, before])


def mixed(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return np.hstack([points(rng, z, np.ones((K, 1)))[:, :2], categories(rng, z)[:, :8], bits(rng, z)[:, :10]])


MIXED = Product(
    {
        "numbers": (DiagonalGaussian(), range(2)),
        "kinds": (Categorical(), range(2, 10)),
        "bits": (Bernoulli(), range(10, 20)),
    }
)
FAMILIES: dict[str, tuple[object, Callable[[np.random.Generator, np.ndarray], object]]] = {
    "gaussian": ("gaussian", lambda rng, z: points(rng, z, rng.gamma(4.0, 0.25, (K, 5)))),
    "zero-mean Gaussian": ("zero_mean_gaussian", zero_mean),
    "diagonal Gaussian": ("diagonal_gaussian", lambda rng, z: points(rng, z, rng.gamma(4.0, 0.25, (K, 5)))),
    "spherical Gaussian": ("spherical_gaussian", lambda rng, z: points(rng, z, rng.gamma(4.0, 0.25, (K, 1)))),
    "known covariance": ("known_covariance_gaussian", lambda rng, z: points(rng, z, np.ones((K, 1)))),
    "Bernoulli": ("bernoulli", bits),
    "categorical": ("categorical", categories),
    "multinomial (CSR)": ("multinomial", words),
    "Poisson": ("poisson", lambda rng, z: rng.poisson(rng.gamma(0.7, 10.0, (K, 15))[z]).astype(float)),
    "exponential": ("exponential", lambda rng, z: rng.exponential(np.exp(rng.normal(0.0, 2.0, (K, 20)))[z])),
    "Gamma, known shape 2": (Gamma(2.0), lambda rng, z: rng.gamma(2.0, np.exp(rng.normal(0.0, 2.0, (K, 20)))[z])),
    "linear regression": (LinearRegression(targets=3), lines),
    "autoregressive": (AutoregressiveGaussian(), steps),
    "product": (MIXED, mixed),
}


def main() -> None:
    rows = []
    for name, (likelihood, generate) in FAMILIES.items():
        recovered, found, agreement = 0, [], []
        began = time.perf_counter()
        for seed in range(SEEDS):
            rng = np.random.default_rng(seed)
            z = rng.integers(K, size=N)
            model = Mixture(likelihood, random_state=seed).fit(generate(rng, z))
            agreement.append(adjusted_rand_score(z, model.labels_))
            found.append(model.n_clusters_)
            recovered += model.n_clusters_ == K and agreement[-1] > 0.95
        rows.append(
            {
                "family": name,
                "recovered": f"{recovered} of {SEEDS}",
                "K": f"{min(found)} to {max(found)}",
                "least Rand": min(agreement),
                "s per fit": (time.perf_counter() - began) / SEEDS,
            }
        )
        print(rows[-1], flush=True)
    report("recovery", rows)


if __name__ == "__main__":
    main()
