"""Sparse restarts of documents (Thesis Alg. 5.2): what they bring to the ELBO of a fit and to held-out completion.

20 Newsgroups, a tenth of the documents left out.  Topics are found without restarts; then laps go on from them, without moves,
with 0, 5 and 25 topics of each document emptied on trial, and the documents left out are read with as many.  Completion is the
mean log probability of the tokens of one half of a document given the other half, in nats per token
(`TopicModel.completion_score`).  "Emptied" is the share of trials in documents left out after which a topic stayed empty.

    python benchmarks/topic_restarts.py [--documents 3000] [--laps 20]
"""

import argparse
import time
import warnings

import numpy as np
from scipy import sparse

from common import newsgroups, report
from stickbreak import TopicModel
from stickbreak.kernels.restarts import restart_documents
from topics import halves


def accepted(model: TopicModel, X: sparse.csr_array, most: int) -> float:
    """The share of trials after which a topic of a document stays empty, from counts that were settled without restarts."""
    E = np.ascontiguousarray((model.topics_ / model.topics_.max(axis=0)).T)
    prior = model.model_.posterior(model.summary_).step.prior[: model.n_topics_]
    theta = model.transform(X) * (X.sum(axis=1)[:, None] + prior.sum())
    N = np.maximum(theta - prior, 0.0)
    tried, emptied = restart_documents(X.indptr, X.indices, X.data.astype(float), E, prior, most, N)
    return emptied / max(tried, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=3000)
    parser.add_argument("--laps", type=int, default=20)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    X = newsgroups()[np.random.default_rng(0).permutation(11_214)[: arguments.documents]]
    n_test = arguments.documents // 10
    test = X[:n_test]
    fitted = X[n_test:]
    first = TopicModel(random_state=0).fit(fitted)
    A, B = halves(test)
    rows = []
    for most in (0, 5, 25):
        began = time.process_time()
        model = TopicModel(init=first, moves=(), max_laps=arguments.laps, restarts=most, random_state=0).fit(fitted)
        row = {"restarts": str(most), "CPU seconds": time.process_time() - began, "topics": model.n_topics_}
        row |= {"ELBO": model.lower_bound_, "held-out completion": model.completion_score(A, B)}
        model.set_params(restarts=0)
        row["the same, read without"] = model.completion_score(A, B)
        rows.append(row | ({"emptied": accepted(first, test, most)} if most else {}))
    report("topic_restarts", rows)


if __name__ == "__main__":
    main()
