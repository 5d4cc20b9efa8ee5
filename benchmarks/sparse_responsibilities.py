"""Responsibilities for at most L clusters a row (Thesis 7.2): CPU seconds, ELBO and held-out score for L = 1, 2, 4, 8, 16, K.

MNIST in 50 dimensions, 50,000 rows, K = 100 Gaussian clusters with a fixed prior from k-means++ seeds, the same for all L,
without moves; 10,000 rows are left out.  With ``--search`` the whole search from one cluster.

    python benchmarks/sparse_responsibilities.py [--clusters 100] [--laps 30] [--search]
"""

import argparse
import time
import warnings

from common import mnist50, mnist_prior, report
from stickbreak import Mixture

LIMITS = (1, 2, 4, 8, 16, None)


def measure(L: int | None, parameters: dict[str, object]) -> dict[str, object]:
    X, _ = mnist50()
    began = time.process_time()
    model = Mixture(mnist_prior(), most_kept=L, random_state=0, **parameters).fit(X[:50_000])
    seconds = time.process_time() - began
    held_out = model.score(X[50_000:])
    return {
        "L": "K" if L is None else str(L),
        "CPU seconds": seconds,
        "CPU seconds a lap": seconds / model.n_laps_,
        "clusters": model.n_clusters_,
        "ELBO": model.lower_bound_,
        "held-out nats per row": held_out,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--laps", type=int, default=30)
    parser.add_argument("--search", action="store_true", help="from one cluster, with all moves")
    arguments = parser.parse_args()
    given = {"init": "k-means++", "n_init_clusters": arguments.clusters, "moves": (), "max_laps": arguments.laps}
    warnings.simplefilter("ignore")
    report("sparse_responsibilities", [measure(L, {} if arguments.search else given) for L in LIMITS])
