"""A stream whose clusters appear one after another: whether K follows, memory stays flat, and the end is as good as a fit.

    python benchmarks/streams.py [--rows 10_000_000] [--batch 10_000] [--clusters 50]

Rows of 32 columns come in batches; a cluster more is among them every so often, until half of the stream is over.  The held-out
score is compared with that of a default fit to a sample of `--compared` rows of the same stream, taken in one piece.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.metrics import adjusted_rand_score

from common import memory, report
from stickbreak import Mixture
from stickbreak.inference import Streaming

D = 32
HELD_OUT = 20_000
SHOWN = 20  # lines on the way


class Source:
    """Gaussians with random means and full covariances."""

    def __init__(self, K: int) -> None:
        rng = np.random.default_rng(0)
        self.means = rng.normal(0.0, 2.0, (K, D))
        self.factors = rng.normal(0.0, 1.0, (K, D, D)) / np.sqrt(D)

    def rows(self, n: int, K: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the first K clusters, and the cluster of each."""
        z = rng.integers(K, size=n)
        X = rng.standard_normal((n, D))
        for k in range(K):
            mine = z == k
            X[mine] = X[mine] @ self.factors[k].T + self.means[k]
        return X, z


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, metavar="N")
    parser.add_argument("--batch", type=int, default=10_000, metavar="N")
    parser.add_argument("--clusters", type=int, default=50, metavar="K")
    parser.add_argument(
        "--compared", type=int, default=500_000, metavar="N", help="rows of the stream in the batch fit"
    )
    parser.add_argument("--forgetting", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, metavar="N", help="threads, by default one for each processor")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    source = Source(options.clusters)
    rng = np.random.default_rng(1)
    batches = options.rows // options.batch
    each = max(1, batches // 2 // options.clusters)  # batches until one cluster more appears
    model = Mixture("gaussian", algorithm=Streaming(options.forgetting), random_state=0, n_jobs=options.jobs)
    kept = []
    rows = []
    seconds = busy = 0.0
    for t in range(batches):
        K = min(options.clusters, 1 + t // each)
        X, _ = source.rows(options.batch, K, rng)
        kept.append(X[:: max(1, options.rows // options.compared)])
        began, used = time.perf_counter(), time.process_time()
        model.partial_fit(X)
        seconds += time.perf_counter() - began
        busy += time.process_time() - used
        if (t + 1) % max(1, batches // SHOWN) == 0:
            row = {"batch": t + 1, "clusters so far": K, "K": model.n_clusters_, "seconds": seconds, "CPU s": busy}
            rows.append(row | {"MB": memory("VmRSS") - sum(x.nbytes for x in kept) / 2**20})
            print(rows[-1], flush=True)
    T, z = source.rows(HELD_OUT, options.clusters, np.random.default_rng(2))
    fit = Mixture("gaussian", random_state=0, n_jobs=options.jobs).fit(np.concatenate(kept))
    end = {"K of the fit": fit.n_clusters_, "score": model.score(T), "score of the fit": fit.score(T)}
    end["ARI"] = float(adjusted_rand_score(z, model.predict(T)))
    report("streams", [*rows, end])


if __name__ == "__main__":
    main()
