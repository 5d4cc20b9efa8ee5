"""Does a Pitman-Yor mixture find the discount of clusters whose sizes follow a power law, and does its bound beat others?

Words are drawn one after another from a Pitman-Yor process of discount 0.5, and each is seen with noise: an observation is
normal with standard deviation 1 around the place of its word, 10 from the next.  Fits start from the words, without moves, and
learn concentration and discount.  The bound of a Pitman-Yor process is that on the partition, which is tighter than one by
sticks; "at discount 0.001" is that of such a discount for the same clusters, with the best concentration: the difference is
what the discount is worth.  "discount by sticks" is where the bound by sticks has its maximum for these clusters.

    python benchmarks/power_law.py [--draws 100000] [--seeds 3]
"""

import argparse
import time
from dataclasses import replace

import numpy as np

from common import report
from stickbreak import Mixture
from stickbreak.allocations import DirichletProcess, PitmanYor
from stickbreak.likelihoods import KnownCovarianceGaussian

DISCOUNT = 0.5


def words(n: int, concentration: float, rng: np.random.Generator) -> np.ndarray:
    """Labels of n draws, one after another."""
    labels = np.zeros(n, dtype=np.int64)
    sizes = [1]
    for i in range(1, n):
        if rng.random() * (i + concentration) < concentration + len(sizes) * DISCOUNT:
            labels[i] = len(sizes)
            sizes.append(1)
            continue
        while True:  # a word of size m in proportion to m, and then kept with chance 1 - d / m
            labels[i] = labels[rng.integers(i)]
            if rng.random() * sizes[labels[i]] > DISCOUNT:
                break
        sizes[labels[i]] += 1
    return labels


def without_discount(model: Mixture) -> float:
    """The bound of a fitted model with next to no discount, and the concentration that is best for it."""
    prior = PitmanYor(model.model_.allocation.concentration, 1e-3, partition=True)
    for _ in range(50):
        prior, _ = prior.tuned(model.summary_, ("concentration",), prior.solve(model.summary_))
    return replace(model.model_, allocation=prior).bound(model.summary_)


def discount_by_sticks(model: Mixture) -> float:
    """The discount, and with it the concentration, of the highest bound by sticks for the clusters of a fit."""
    prior = PitmanYor(1.0, 0.1)
    for _ in range(50):
        prior, _ = prior.tuned(model.summary_, ("concentration", "discount"), prior.solve(model.summary_))
    return prior.discount


def fits(n: int, concentration: float, seed: int) -> list[dict[str, object]]:
    """One row for each prior."""
    rng = np.random.default_rng(seed)
    labels = words(n, concentration, rng)
    K = labels.max() + 1
    X = (10.0 * rng.permutation(K)[labels] + rng.standard_normal(n))[:, None]
    likelihood = KnownCovarianceGaussian(covariance=1.0, mean=5.0 * K, mean_precision=(5.0 * K) ** -2)
    priors = {
        "Dirichlet process": (DirichletProcess(), ("concentration",)),
        "Pitman-Yor process": (PitmanYor(1.0, 0.1), ("concentration", "discount")),
    }
    rows = []
    for name, (prior, learn) in priors.items():
        began = time.perf_counter()
        options = {"init": labels, "moves": (), "learn": learn, "n_batches": 1, "random_state": 0}
        model = Mixture(likelihood, allocation=prior, **options).fit(X)
        found = model.model_.allocation
        rows.append(
            {
                "true concentration": concentration,
                "seed": seed,
                "words": K,
                "prior": name,
                "K": model.n_clusters_,
                "concentration": found.concentration,
                "discount": getattr(found, "discount", 0.0),
                "bound": model.lower_bound_,
                "at discount 0.001": without_discount(model),
                "discount by sticks": discount_by_sticks(model),
                "seconds": time.perf_counter() - began,
            }
        )
    return rows


def main() -> None:
    """Fit and report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    rows = [row for seed in range(arguments.seeds) for c in (1.0, 10.0) for row in fits(arguments.draws, c, seed)]
    report("power_law", rows)


if __name__ == "__main__":
    main()
