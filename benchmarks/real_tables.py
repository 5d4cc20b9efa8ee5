"""Tables that are not Gaussian: chromatin marks, 20 Newsgroups as counts, and a mixed table with holes.

Each row is a fit with default settings from one cluster, moves on, to convergence, in a process of its own; "peak" is its
largest resident memory.  The mixed table has 20,000 rows of ten clusters in numbers, counts, yes/no columns and categories; the
same table with 20% of its entries missing at random must give the same clusters.

    python benchmarks/real_tables.py
"""

import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from sklearn.metrics import adjusted_rand_score

from common import DATA, memory, newsgroups, report
from stickbreak import Mixture
from stickbreak.likelihoods import Bernoulli, Categorical, DiagonalGaussian, Likelihood, Poisson, Product

SEEDS = 3


def chromatin() -> np.ndarray:
    """Ten marks, present or not, in 672,261 bins of 200 base pairs."""
    with np.load(DATA / "chromatin_GM12878_chr11.npz") as file:
        return file["X"]


def mixed(seed: int, missing: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """A table of 6 numbers, 6 counts, 12 bits and 8 categories, and the cluster of each row."""
    rng, N, K = np.random.default_rng(seed), 20_000, 10
    z = rng.integers(K, size=N)
    numbers = rng.normal(0.0, 5.0, (K, 6))[z] + rng.standard_normal((N, 6))
    counts = rng.poisson(rng.gamma(0.7, 10.0, (K, 6))[z])
    bits = rng.random((N, 12)) < rng.beta(0.1, 0.1, (K, 12)).clip(0.02, 0.98)[z]
    chances = rng.dirichlet(np.full(4, 0.2), (K, 8)).cumsum(-1)
    kinds = (rng.random((N, 8, 1)) > chances[z]).sum(-1).clip(0, 3)
    X = np.hstack([numbers, counts, bits, kinds]).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X, z


MIXED = Product(
    {
        "numbers": (DiagonalGaussian(), range(6)),
        "counts": (Poisson(), range(6, 12)),
        "bits": (Bernoulli(), range(12, 24)),
        "kinds": (Categorical(), range(24, 32)),
    }
)


def fit(likelihood: str | Likelihood, X: object, seed: int) -> tuple[Mixture, dict[str, object]]:
    Mixture(likelihood, tol=1.0, moves=(), random_state=0).fit(X[:500])  # compiles
    began = time.perf_counter()
    model = Mixture(likelihood, random_state=seed, learn=False).fit(X)
    seconds = time.perf_counter() - began
    return model, {
        "seed": seed,
        "seconds": seconds,
        "K": model.n_clusters_,
        "ELBO": model.lower_bound_,
        "laps": model.n_laps_,
    }


def run(name: str, seed: int) -> dict[str, object]:
    """One fit, as a row of the table."""
    if name == "mixed":
        whole, z = mixed(seed)
        holes, _ = mixed(seed, 0.2)
        complete, _ = fit(MIXED, whole, seed)
        model, figures = fit(MIXED, holes, seed)
        same = adjusted_rand_score(complete.labels_, model.labels_)
        figures |= {"Rand with complete": same, "Rand with truth": adjusted_rand_score(z, model.labels_)}
        return {"data": "mixed, 20% missing"} | figures
    likelihood, data = {"chromatin": ("bernoulli", chromatin), "newsgroups": ("multinomial", newsgroups)}[name]
    _, figures = fit(likelihood, data(), seed)
    return {"data": name} | figures | {"peak MB": memory()}


def main() -> None:
    names = sys.argv[1:] or ["chromatin", "newsgroups", "mixed"]
    rows = []
    for name in names:
        for seed in range(SEEDS):
            with ProcessPoolExecutor(1) as process:
                rows.append(process.submit(run, name, seed).result())
    report("real_tables", rows)


if __name__ == "__main__":
    main()
