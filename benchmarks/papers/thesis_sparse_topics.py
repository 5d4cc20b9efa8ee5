"""L-sparse topics of documents: the thesis, section 7.4.

20 Newsgroups, K = 50 topics from anchor words that stay, alpha = 0.5 in all, laps in 5 batches, as published but for what L
limits: the topics of a document, not those of each of its tokens.  A tenth of the documents is held out: the mean log
probability of one half of the tokens of each, given the other half, read without a limit, as in the thesis, which has 1,392
and 7,961 documents, with 80% of the tokens given; this 4,000.

    python benchmarks/papers/thesis_sparse_topics.py [--small] [--seeds 1]

The full version takes 2 CPU minutes, the small one (300 documents, K = 20) 10 seconds.
"""

import time
import warnings

import numpy as np
from frame import Experiment, Outcome
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import ConvergenceWarning

from common import newsgroups
from stickbreak import TopicModel
from stickbreak.inference import Memoized
from topics import halves

LEVELS = (1, 4, 8, 16, None)  # L
ALPHA = 0.5


def limited(K: int, most_kept: int | None, laps: int, seed: int) -> TopicModel:
    """Topics from anchor words, at most L of them in a document."""
    return TopicModel(
        document_concentration=ALPHA,
        algorithm=Memoized(accelerate=False),
        init="anchor",
        n_init_topics=K,
        n_batches=5,
        moves=(),
        learn=False,
        max_laps=laps,
        most_kept=most_kept,
        n_jobs=1,
        random_state=seed,
    )


def run(name: str, model: TopicModel, laps: int, X: sparse.csr_array, test: sparse.csr_array) -> dict[str, object]:
    """A fit of so many laps."""
    began = time.process_time()
    model.fit(X)
    seconds = time.process_time() - began
    score = model.set_params(most_kept=None).completion_score(*halves(test))
    return {"method": name, "laps": laps, "score": score, "CPU seconds": seconds}


def peer(K: int, laps: int, X: sparse.csr_array, test: sparse.csr_array, seed: int) -> dict[str, object]:
    """scikit-learn's topics with the same prior."""
    A, B = halves(test)
    model = LatentDirichletAllocation(
        K, doc_topic_prior=ALPHA / K, topic_word_prior=0.1, max_iter=laps, random_state=seed
    )
    began = time.process_time()
    model.fit(X)
    seconds = time.process_time() - began
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    B = B.tocoo()
    p = np.einsum("nk,nk->n", model.transform(A)[B.row], topics.T[B.col])
    return {
        "method": "scikit-learn",
        "laps": laps,
        "score": float(B.data @ np.log(p) / B.data.sum()),
        "CPU seconds": seconds,
    }


def measure(small: bool, seeds: int) -> Outcome:
    warnings.simplefilter("ignore", ConvergenceWarning)
    n, K, steps = (300, 20, (2, 4)) if small else (4_000, 50, (1, 3, 10, 30))
    chosen = newsgroups()[np.random.default_rng(0).permutation(11_214)[:n]]
    test, X = chosen[: n // 10], chosen[n // 10 :]
    for L in LEVELS[1:]:
        limited(5, L, 2, 0).fit(X[:50])  # compiles
    runs = []
    for seed in range(seeds):
        for L in LEVELS:
            name = f"L = {K if L is None else L}"
            runs += [run(name, limited(K, L, laps, seed), laps, X, test) for laps in steps]
        runs += [peer(K, laps, X, test, seed) for laps in steps]
    return Outcome(summarised(runs, steps), runs)


def summarised(runs: list[dict[str, object]], steps: tuple[int, ...]) -> list[dict[str, object]]:
    """CPU seconds and the score after the last lap, of each method."""
    table = []
    for name in dict.fromkeys(r["method"] for r in runs):
        last = [r for r in runs if r["method"] == name and r["laps"] == steps[-1]]
        score, seconds = (float(np.mean([r[key] for r in last])) for key in ("score", "CPU seconds"))
        table.append({"what": name, "held-out nats per token": score, "CPU seconds": seconds})
    return table


def draw(outcome: Outcome, picture: Figure) -> None:
    """Held-out score by CPU time (Figure 7.4)."""
    picture.set_size_inches(5.5, 3.4)
    axes = picture.subplots()
    for name in dict.fromkeys(r["method"] for r in outcome.runs):
        of_method = [r for r in outcome.runs if r["method"] == name]
        axes.plot(
            [r["CPU seconds"] for r in of_method], [r["score"] for r in of_method], "o-", markersize=4, label=name
        )
    axes.set(xlabel="CPU seconds", ylabel="held-out nats per token", xscale="log")
    axes.legend(fontsize=8)


EXPERIMENT = Experiment("thesis_sparse_topics", __doc__, measure, draw)

if __name__ == "__main__":
    EXPERIMENT.main()
