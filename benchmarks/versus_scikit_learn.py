"""MNIST in 50 dimensions: seconds, clusters, held-out log density and agreement with the digits.

Both are fitted to the first 50,000 rows and scored on the last 10,000.  scikit-learn's BayesianGaussianMixture has to be told
how many components to begin with (30, 100) and when to stop (100 iterations here, its default); stickbreak has its defaults,
and beside them Gaussian clusters with the fixed default prior, which are nearest to scikit-learn's.

    python benchmarks/versus_scikit_learn.py [--components 30 100]
"""

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score
from sklearn.mixture import BayesianGaussianMixture

from common import mnist50, report
from stickbreak import Mixture


def measure(name: str, model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, object]:
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[:50_000])
    seconds = time.perf_counter() - began
    labels = model.predict(X[50_000:])
    return {
        "model": name,
        "seconds": seconds,
        "clusters used": len(np.unique(model.predict(X[:50_000]))),
        "converged": str(model.converged_),
        "held-out nats per row": float(model.score(X[50_000:])),
        "NMI with digits": float(normalized_mutual_info_score(y[50_000:], labels)),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--components", type=int, nargs="*", default=[30, 100])
    arguments = parser.parse_args()
    X, y = mnist50()
    rows = [measure("stickbreak", Mixture(random_state=0), X, y)]
    plain = Mixture("gaussian", learn=False, random_state=0)
    rows.append(measure("stickbreak, Gaussian clusters with a fixed prior", plain, X, y))
    rows.append(measure("the same, float32", plain, X.astype(np.float32), y))
    for K in arguments.components:
        peer = BayesianGaussianMixture(n_components=K, max_iter=100, random_state=0)
        rows.append(measure(f"scikit-learn BayesianGaussianMixture, {K} components", peer, X, y))
    report("versus_scikit_learn", rows)
