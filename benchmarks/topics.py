"""Topic models of 20 Newsgroups or of short texts, judged by one procedure: seconds, held-out completion and coherence.

A random tenth of the documents is kept from all fits to test them: of the 11,214 of 20 Newsgroups or, with --windows, of the
46,405 windows of six words into which texts of the BBC news are cut.  The tokens of a test document are split in random
halves; its proportions of topics are estimated from the one, given the topics (K, V) of a model, and the other is scored: mean
log predictive probability in nats per token, higher is better.  The prior of the proportions is alpha times the topics' shares
of all tokens, for every model with the alpha of those in `ALPHAS` that is best on other documents.  Coherence is the mean
NPMI of the pairs of a topic's ten top words, by the documents fitted: of the most relevant words (Sievert and Shirley 2014,
lambda = 0.6, the order in which stickbreak shows words), and of the most probable ones, for every model alike.  Words that
occur in none of the documents fitted are left out.

stickbreak and tomotopy's HDP infer the number of topics; the others are given it (200).  All have their defaults but:
tomotopy 590 sweeps; gensim `LdaModel` 10 passes and alpha="auto", on one core; scikit-learn 10 iterations.  "seconds" are those
of the fit, with the documents ready in the form that the library takes.  Peers that are not installed are left out.

    python benchmarks/topics.py [--models stickbreak tomotopy tomotopy-hdp gensim scikit-learn] [--seeds 3] [--topics 200 ...]
        [--windows]
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import psi
from sklearn.exceptions import ConvergenceWarning

from common import newsgroups, report
from right_topics import windows
from stickbreak import TopicModel
from stickbreak.description.topics import RELEVANCE, coherence

ALPHAS = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
OTHERS = 1000  # windows to choose alpha on
SWEEPS, PASSES, ITERATIONS = 590, 10, 10  # of tomotopy, gensim and scikit-learn


class Topics(NamedTuple):
    """What a model found: probabilities of the words (K, V), tokens of each topic (K,), and the seconds it took."""

    phi: np.ndarray
    sizes: np.ndarray
    seconds: float


class Split(NamedTuple):
    """Documents to fit, to choose alpha on and to test with; of the latter two both halves of the tokens."""

    fitted: sparse.csr_array
    choice: tuple[sparse.csr_array, sparse.csr_array]
    test: tuple[sparse.csr_array, sparse.csr_array]


def split(n_documents: int | None) -> Split:
    """The same for all models and seeds."""
    X, others = newsgroups("tr"), newsgroups("va")
    chosen = np.random.default_rng(0).permutation(X.shape[0])[:n_documents]
    n_test = len(chosen) // 10
    fitted, test = X[np.sort(chosen[n_test:])], X[np.sort(chosen[:n_test])]
    used = np.flatnonzero(fitted.sum(axis=0))
    return Split(fitted[:, used], halves(others[:, used]), halves(test[:, used]))


def split_windows(n_documents: int | None) -> Split:
    """The same of windows of short texts."""
    X = windows(0).X
    chosen = np.random.default_rng(0).permutation(X.shape[0])[:n_documents]
    n_test = len(chosen) // 10
    fitted, others, test = X[chosen[n_test + OTHERS :]], X[chosen[n_test : n_test + OTHERS]], X[chosen[:n_test]]
    used = np.flatnonzero(fitted.sum(axis=0))
    return Split(fitted[:, used], halves(others[:, used]), halves(test[:, used]))


def halves(X: sparse.csr_array) -> tuple[sparse.csr_array, sparse.csr_array]:
    """The tokens of each document in two random halves; of an odd number the second gets one more."""
    words = np.repeat(X.indices, X.data)
    lengths = X.sum(axis=1)
    documents = np.repeat(np.arange(X.shape[0]), lengths)
    words = words[np.lexsort((np.random.default_rng(0).random(len(words)), documents))]
    first = np.arange(len(words)) - np.repeat(np.cumsum(lengths) - lengths, lengths) < lengths[documents] // 2
    A, B = (
        sparse.csr_array((np.ones(part.sum()), (documents[part], words[part])), X.shape) for part in (first, ~first)
    )
    return A, B


def completion(A: sparse.csr_array, B: sparse.csr_array, topics: Topics, alpha: float) -> float:
    """Mean log probability of the tokens of B, under the mean proportions of topics given A, in nats per token."""
    words, a = np.ascontiguousarray(topics.phi.T), alpha * topics.sizes / topics.sizes.sum()
    total = 0.0
    for d in range(A.shape[0]):
        seen, hidden = slice(*A.indptr[d : d + 2]), slice(*B.indptr[d : d + 2])
        E, counts = words[A.indices[seen]], A.data[seen]
        theta = a + len(counts) / len(a)
        for _ in range(200):
            logs = psi(theta)
            p = np.exp(logs - logs.max())
            before, theta = theta, a + p * (counts / (E @ p) @ E)
            if np.abs(theta - before).mean() < 1e-5:
                break
        total += B.data[hidden] @ np.log(words[B.indices[hidden]] @ (theta / theta.sum()))
    return float(total / B.sum())


def stickbreak(X: sparse.csr_array, K: int, seed: int) -> Topics:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        TopicModel(n_init_topics=5, max_laps=2, random_state=0).fit(X[:100])  # compiles
    began = time.perf_counter()
    model = TopicModel(random_state=seed).fit(X)
    return Topics(model.topics_, model.summary_.N, time.perf_counter() - began)


def tomotopy(X: sparse.csr_array, K: int, seed: int) -> Topics:
    import tomotopy as tp

    return _sampled(tp.LDAModel(k=K, seed=seed), X)


def tomotopy_hdp(X: sparse.csr_array, K: int, seed: int) -> Topics:
    import tomotopy as tp

    return _sampled(tp.HDPModel(seed=seed), X)


def _sampled(model, X: sparse.csr_array) -> Topics:
    """The topics in use of a model of tomotopy."""
    for row in range(X.shape[0]):
        entries = slice(*X.indptr[row : row + 2])
        model.add_doc([str(word) for word in np.repeat(X.indices[entries], X.data[entries])])
    began = time.perf_counter()
    model.train(SWEEPS, workers=os.cpu_count())
    seconds = time.perf_counter() - began
    live = [k for k in range(model.k) if not hasattr(model, "is_live_topic") or model.is_live_topic(k)]
    phi = np.empty((len(live), X.shape[1]))
    phi[:, [int(word) for word in model.used_vocabs]] = [model.get_topic_word_dist(k) for k in live]
    return Topics(phi, np.array(model.get_count_by_topics(), float)[live], seconds)


def gensim(X: sparse.csr_array, K: int, seed: int) -> Topics:
    from gensim.models import LdaModel

    rows = (slice(*X.indptr[row : row + 2]) for row in range(X.shape[0]))
    bags = [list(zip(X.indices[row].tolist(), X.data[row].tolist())) for row in rows]
    began = time.perf_counter()
    model = LdaModel(bags, num_topics=K, passes=PASSES, alpha="auto", random_state=seed)
    seconds = time.perf_counter() - began
    return Topics(model.get_topics().astype(float), model.state.get_lambda().sum(axis=1, dtype=float), seconds)


def scikit_learn(X: sparse.csr_array, K: int, seed: int) -> Topics:
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(K, max_iter=ITERATIONS, n_jobs=os.cpu_count(), random_state=seed)
    model.fit(X[:100])  # starts the processes
    began = time.perf_counter()
    model.fit(X)
    seconds, sizes = time.perf_counter() - began, model.components_.sum(axis=1)
    return Topics(model.components_ / sizes[:, None], sizes, seconds)


FITS: dict[str, Callable[[sparse.csr_array, int, int], Topics]] = {
    "stickbreak": stickbreak,
    "tomotopy": tomotopy,
    "tomotopy-hdp": tomotopy_hdp,
    "gensim": gensim,
    "scikit-learn": scikit_learn,
}
GIVEN = ("tomotopy", "gensim", "scikit-learn")  # models that do not find the number of topics


def measure(topics: Topics, data: Split) -> dict[str, float]:
    alpha = max(ALPHAS, key=lambda alpha: completion(*data.choice, topics, alpha))
    word_shares = topics.sizes / topics.sizes.sum() @ topics.phi
    return {
        "seconds": topics.seconds,
        "K": len(topics.phi),
        "alpha": alpha,
        "held-out nats per token": completion(*data.test, topics, alpha),
        "NPMI": float(coherence(topics.phi, data.fitted, 10, RELEVANCE, word_shares).mean()),
        "NPMI by probability": float(coherence(topics.phi, data.fitted).mean()),
    }


def over_seeds(values: list[float]) -> str:
    """The mean, and the range."""
    digits = 0 if all(float(value).is_integer() for value in values) else 1 if min(values) > 1 else 4
    mean, least, most = (f"{value:,.{digits}f}" for value in (np.mean(values), min(values), max(values)))
    return mean if least == most else f"{mean} ({least} to {most})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=FITS, default=list(FITS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--topics", type=int, nargs="+", default=[200], metavar="K", help="of the models that do not find their number"
    )
    parser.add_argument("--windows", action="store_true", help="short texts instead")
    parser.add_argument("--documents", type=int, help="how many, of which a tenth for testing; all by default")
    arguments = parser.parse_args()
    data = (split_windows if arguments.windows else split)(arguments.documents)
    rows = []
    for name in arguments.models:
        for K in arguments.topics if name in GIVEN else arguments.topics[:1]:
            runs = []
            try:
                for seed in range(arguments.seeds):
                    runs.append(measure(FITS[name](data.fitted, K, seed), data))
                    print({"model": name, "seed": seed} | runs[-1], flush=True)
            except ModuleNotFoundError as error:
                print(f"{name} is left out: {error}")
                break
            rows.append({"model": name} | {key: over_seeds([run[key] for run in runs]) for key in runs[0]})
    if rows:
        report("topics_of_windows" if arguments.windows else "topics", rows)


if __name__ == "__main__":
    main()
