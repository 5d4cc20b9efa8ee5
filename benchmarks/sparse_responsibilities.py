"""Responsibilities for at most L clusters a row (Thesis 7.2): CPU seconds, ELBO and held-out score for L = 1, 2, 4, 8, 16, K.

MNIST in 50 dimensions, 50,000 rows, K = 100 Gaussian clusters with a fixed prior from k-means++ seeds, the same for all L,
without moves; 10,000 rows are left out.  With ``--search`` the whole search from one cluster.

With ``--topics``, documents of at most L topics (Thesis 7.4): 20 Newsgroups, K topics from anchor words, the same for all L,
without moves; a tenth of the documents is left out.  Completion is the mean log probability of the tokens of one half of a
document given the other half, in nats per token (`TopicModel.completion_score`), the other half read with the same limit, and
read without a limit.

    python benchmarks/sparse_responsibilities.py [--clusters 100] [--laps 30] [--search | --topics [--documents 2000]]
"""

import argparse
import time
import warnings

import numpy as np
from scipy import sparse

from common import mnist50, mnist_prior, newsgroups, report
from stickbreak import Mixture, TopicModel
from topics import halves

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


def documents(n: int) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Documents to fit, and a tenth of n to hold out."""
    X = newsgroups()[np.random.default_rng(0).permutation(11_214)[:n]]
    return X[n // 10 :], X[: n // 10]


def measure_topics(L: int | None, parameters: dict[str, object], n: int) -> dict[str, object]:
    fitted, test = documents(n)
    A, B = halves(test)
    began = time.process_time()
    model = TopicModel(most_kept=L, random_state=0, n_jobs=1, **parameters).fit(fitted)
    seconds = time.process_time() - began
    completion = model.completion_score(A, B)
    return {
        "L": "K" if L is None else str(L),
        "CPU seconds": seconds,
        "CPU seconds a lap": seconds / model.n_laps_,
        "topics": model.n_topics_,
        "ELBO": model.lower_bound_,
        "held-out completion": completion,
        "the same, read without": model.set_params(most_kept=None).completion_score(A, B),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--laps", type=int, default=30)
    parser.add_argument("--search", action="store_true", help="from one cluster, with all moves")
    parser.add_argument("--topics", action="store_true", help="documents of at most L topics")
    parser.add_argument("--documents", type=int, default=2000)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    laps = {"moves": (), "max_laps": arguments.laps}
    if arguments.topics:
        given = {"init": "anchor", "n_init_topics": arguments.clusters} | laps
        for L in (1, 2, None):  # machine code
            measure_topics(L, given | {"max_laps": 2}, 200)
        report("sparse_topics", [measure_topics(L, given, arguments.documents) for L in LIMITS])
    else:
        given = {"init": "k-means++", "n_init_clusters": arguments.clusters} | laps
        report("sparse_responsibilities", [measure(L, {} if arguments.search else given) for L in LIMITS])
