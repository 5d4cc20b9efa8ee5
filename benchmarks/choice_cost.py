"""What the choice of the family costs: CPU seconds of default fits beside fits that are told the family that was chosen.

Gaussian clusters with covariances of their own, and tables that scikit-learn brings along.  "ratio" is the time of the default
fit over that of a fit with the chosen likelihood given; both search with learnt priors, and both may begin with simpler
families.

    python benchmarks/choice_cost.py
"""

import time
import warnings

import numpy as np
from sklearn import datasets

from common import report
from held_out import clusters
from stickbreak import Mixture

SHAPES = (
    (1, 8, 3000),
    (5, 2, 1000),
    (10, 8, 3000),
    (8, 5, 20_000),
    (20, 16, 10_000),
    (4, 32, 2000),
    (10, 64, 5000),
    (30, 10, 60_000),
)
BUNDLED = ("iris", "wine", "breast_cancer", "diabetes")


def measure(name: str, X: np.ndarray) -> dict[str, object]:
    began = time.process_time()
    chosen = Mixture(random_state=0).fit(X)
    default = time.process_time() - began
    family = chosen.model_.likelihood.anew()
    began = time.process_time()
    told = Mixture(family, random_state=0).fit(X)
    given = time.process_time() - began
    row = {"data": name, "family": type(family).__name__, "default": default, "given": given, "ratio": default / given}
    return row | {"K default": chosen.n_clusters_, "K given": told.n_clusters_}


def main() -> None:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    measure("compiles", clusters(rng, 2, 3, 300)[0])
    rows = [measure(f"K = {K}, D = {D}, N = {N:,}", clusters(rng, K, D, N)[0]) for K, D, N in SHAPES]
    rows += [measure(name, getattr(datasets, f"load_{name}")().data) for name in BUNDLED]
    ratios = np.array([row["ratio"] for row in rows])
    rows.append({"data": "all, geometric mean", "ratio": float(np.exp(np.log(ratios).mean()))})
    report("choice_cost", rows)


if __name__ == "__main__":
    main()
