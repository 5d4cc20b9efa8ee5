"""Recovery from one cluster: 20,000 rows of ten well separated clusters of every family, ten seeds each.

A run recovers the clusters when it finds exactly ten and their labels agree (adjusted Rand index above 0.95, a bar that
the overlap of the generated clusters allows).

    python benchmarks/recovery.py
"""

import time

import numpy as np
from sklearn.metrics import adjusted_rand_score

from clustered_rows import FAMILIES
from common import report
from stickbreak import Mixture

N, K, SEEDS = 20_000, 10, 10


def main() -> None:
    rows = []
    for name, (likelihood, generate) in FAMILIES.items():
        recovered, found, agreement = 0, [], []
        began = time.perf_counter()
        for seed in range(SEEDS):
            rng = np.random.default_rng(seed)
            z = rng.integers(K, size=N)
            model = Mixture(likelihood, random_state=seed, learn=False).fit(generate(rng, z))
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
