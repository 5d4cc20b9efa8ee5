"""Hundreds of clusters in a million rows, told nothing: time, ARI and held-out nats, beside scikit-learn told K.

    python benchmarks/many_clusters.py [--rows 1000000] [--clusters 500] [--columns 32] [--without mixture] [--phases]

Rows are Gaussians of unit variance.  scikit-learn is given the true number of clusters: MiniBatchKMeans, and GaussianMixture
with full covariances from the start of k-means, 20 iterations.  --phases says where the time of the fit went.
"""

import argparse
import time
from collections import Counter

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from common import report
from many_rows import gaussians
from stickbreak import Mixture

HELD_OUT = 20_000


def phases(fit: Mixture) -> list[dict[str, object]]:
    """Seconds of the laps of a fit by where they came from and how many rows they looked at; the choice of a family apart."""
    seconds: Counter[tuple[str, int]] = Counter()
    laps: Counter[tuple[str, int]] = Counter()
    last = 0.0
    for lap in fit.history_:
        phase = (lap.origin, lap.sample_rows)
        seconds[phase] += lap.seconds - last
        laps[phase] += 1
        last = lap.seconds
    found = [
        {"phase": origin, "rows": rows or "all", "laps": laps[origin, rows], "s": seconds[origin, rows]}
        for origin, rows in seconds
    ]
    families = [{"phase": f"family {c.family}", "rows": "sample", "s": c.seconds} for c in fit.selection_]
    return families + found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--clusters", type=int, default=500)
    parser.add_argument("--columns", type=int, default=32)
    parser.add_argument("--without", nargs="*", default=[], choices=["kmeans", "mixture", "default"])
    parser.add_argument("--phases", action="store_true")
    options = parser.parse_args()
    K = options.clusters
    X, z = gaussians(options.rows + HELD_OUT, K, options.columns)
    X, held_out, z, z_held_out = X[:-HELD_OUT], X[-HELD_OUT:], z[:-HELD_OUT], z[-HELD_OUT:]
    Mixture(random_state=0).fit(X[:2000])  # compiles
    methods = {
        "default": Mixture(random_state=0),
        "kmeans": MiniBatchKMeans(K, random_state=0, batch_size=4096),
        "mixture": GaussianMixture(K, random_state=0, reg_covar=1e-4, max_iter=20),
    }
    rows: list[dict[str, object]] = []
    for name, method in methods.items():
        if name in options.without:
            continue
        began = time.perf_counter()
        busy = time.process_time()
        method.fit(X)
        row = {"method": "Mixture()" if name == "default" else f"{type(method).__name__}({K})"}
        row |= {"s": time.perf_counter() - began, "CPU s": time.process_time() - busy}
        row |= {"K": len(np.unique(method.predict(X))), "ARI": adjusted_rand_score(z, method.predict(X))}
        row["held-out ARI"] = adjusted_rand_score(z_held_out, method.predict(held_out))
        row["held-out nats"] = np.nan if name == "kmeans" else method.score(held_out)
        rows.append(row)
        if name == "default" and options.phases:
            report("many_clusters_phases", phases(method))
    report("many_clusters", rows)


if __name__ == "__main__":
    main()
