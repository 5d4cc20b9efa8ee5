"""Topics that are bars: the thesis, section 5.6.1 and Figure 5.6, and documents of one bar each: section 3.6.2, Figure 3.4.

900 words as pixels of 30 x 30, ten topics: nine tenths of the tokens of a topic are in one horizontal or vertical bar 6 pixels
wide, the others are anywhere.  Topics: 1,000 documents of 200 tokens from 1 to 3 bars, 100 more held out; concentrations 10
and 0.5, 0.1 pseudo-counts a word.  As published, from the words of 50 or 100 random documents, 50 laps: without moves (memoized
and stochastic), and with merges and deletes; then the library as it is; scikit-learn's LDA with 10 and 50 topics.  A bar is
found if it has more than half of the tokens of a topic.  Clusters: 100 documents of one bar each, Dirichlet-process mixtures
as published from 5 to 40 documents at random or far apart, 25 runs each, and the library from one.  The thesis does not say
how noisy its bars are.

    python benchmarks/papers/thesis_bars.py [--small] [--seeds 3]

The full version takes 5 CPU minutes, the small one (100 documents, from 15) 8 seconds.
"""

import time
import warnings

import numpy as np
from frame import Experiment, Outcome
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation

from papers.baselines.methods_2013 import PUBLISHED, mixture
from stickbreak import Mixture, TopicModel
from stickbreak.inference import Stochastic
from stickbreak.likelihoods import Multinomial
from topics import halves

SIDE, WIDE, TOKENS = 30, 6, 200
NOISE = 0.1  # share of a bar's tokens that are anywhere
TAU = 0.1  # pseudo-counts of a word
OURS = "stickbreak"


def bars() -> np.ndarray:
    """Topics (10, 900), horizontal bars first."""
    across = np.repeat(np.eye(SIDE // WIDE), WIDE, axis=1)
    masks = np.concatenate([across[:, :, None] * np.ones(SIDE), across[:, None, :] * np.ones(SIDE)[:, None]])
    flat = masks.reshape(len(masks), -1)
    return (1.0 - NOISE) * flat / flat.sum(axis=1, keepdims=True) + NOISE / SIDE**2


def documents(n: int, most: int, seed: int) -> sparse.csr_array:
    """Counts (n, 900) of tokens from 1 to ``most`` bars in random shares."""
    rng = np.random.default_rng(seed)
    topics = bars()
    counts = []
    for _ in range(n):
        chosen = rng.choice(len(topics), size=rng.integers(1, most + 1), replace=False)
        counts.append(rng.multinomial(TOKENS, rng.dirichlet(np.ones(len(chosen))) @ topics[chosen]))
    return sparse.csr_array(np.array(counts))


def found(topics: np.ndarray) -> int:
    """How many bars have more than half of the tokens of a topic (K, 900)."""
    inside = topics @ (bars() > NOISE / SIDE**2).T.astype(float)
    return len(set(inside.argmax(axis=1)[inside.max(axis=1) > 0.5]))


def published(X: sparse.csr_array, K: int, laps: int, seed: int) -> dict[str, TopicModel]:
    """The methods of the thesis, from the words of K documents."""
    rng = np.random.default_rng(seed)
    chosen = X[rng.choice(X.shape[0], K, replace=False)].toarray() + TAU
    of = {
        "document_concentration": 0.5,
        "concentration": 10.0,
        "init": chosen / chosen.sum(axis=1, keepdims=True),
        "n_init_topics": K,
        "n_batches": 10,
        "learn": False,
        "max_laps": laps,
        "n_jobs": 1,
        "random_state": seed,
    }
    family = Multinomial(TAU)
    return {
        "memoized, fixed": TopicModel(family, algorithm=PUBLISHED, moves=(), **of),
        "stochastic, fixed": TopicModel(family, algorithm=Stochastic(1.0, 0.5), moves=(), **of),
        "merges and deletes": TopicModel(family, algorithm=PUBLISHED, moves=("merge", "delete"), **of),
    }


def run(name: str, seed: int, model: TopicModel, X: sparse.csr_array, test: sparse.csr_array) -> dict[str, object]:
    """A fit of topics."""
    began = time.process_time()
    model.fit(X)
    seconds = time.process_time() - began
    score = model.completion_score(*halves(test))
    laps = [lap for lap in model.history_ if not lap.sample_rows]
    return record(name, seed, model.n_topics_, model.topics_, score, seconds) | {
        "ELBO per token": model.lower_bound_ / X.sum(),
        "curve": [lap.n_clusters for lap in laps],
    }


def record(name: str, seed: int, K: int, topics: np.ndarray, score: float, seconds: float) -> dict[str, object]:
    """What is kept of topics (K, 900), the largest first."""
    return {
        "kind": "topics",
        "method": name,
        "seed": seed,
        "K": K,
        "found": found(topics),
        "held-out nats": score,
        "CPU seconds": seconds,
        "topics": np.round(topics[:10], 5).tolist() if seed == 0 else [],
    }


def peer(K: int, seed: int, laps: int, X: sparse.csr_array, test: sparse.csr_array) -> dict[str, object]:
    """scikit-learn's LDA with the same prior."""
    model = LatentDirichletAllocation(
        K, doc_topic_prior=0.5 / K, topic_word_prior=TAU, max_iter=laps, random_state=seed
    )
    began = time.process_time()
    model.fit(X)
    seconds = time.process_time() - began
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    A, B = halves(test)
    B = B.tocoo()
    p = np.einsum("nk,nk->n", model.transform(A)[B.row], topics.T[B.col])
    order = np.argsort(-model.components_.sum(axis=1))
    score = float(B.data @ np.log(p) / B.data.sum())
    return record(f"scikit-learn, {K} topics", seed, K, topics[order], score, seconds)


def cluster(name: str, K: int, seed: int, model: Mixture, X: sparse.csr_array) -> dict[str, object]:
    """A fit of clusters of documents."""
    model.fit(X)
    used = int((model.summary_.N >= 0.5).sum())
    return {
        "kind": "clusters",
        "method": name,
        "from": K,
        "seed": seed,
        "K": used,
        "ELBO per document": model.lower_bound_ / X.shape[0],
    }


def clusters(X: sparse.csr_array, starts: tuple[int, ...], n_runs: int) -> list[dict[str, object]]:
    """Runs from several numbers of clusters."""
    family = Multinomial(TAU)
    runs = [cluster(OURS, 1, 0, mixture(family, 1, 0), X)]
    for start in ("random", "k-means++"):
        for K in starts:
            for seed in range(n_runs):
                of = {"algorithm": PUBLISHED, "init": start, "n_init_clusters": K, "moves": (), "max_laps": 100}
                runs.append(cluster(start, K, seed, mixture(family, 1, seed, **of), X))
    return runs


def measure(small: bool, seeds: int) -> Outcome:
    warnings.simplefilter("ignore")
    n, starts, laps = (100, (15,), 3) if small else (1_000, (50, 100), 50)
    X, test = documents(n, 3, 0), documents(n // 10, 3, 1)
    runs = []
    for seed in range(seeds):
        for K in starts:
            for name, model in published(X, K, laps, seed).items():
                runs.append(run(f"from {K}, {name}", seed, model, X, test))
        ours = TopicModel(max_laps=20 if small else 1_000, n_jobs=1, random_state=seed)
        runs.append(run(OURS, seed, ours, X, test))
        runs += [peer(K, seed, laps, X, test) for K in ((10,) if small else (10, 50))]
    runs += clusters(documents(100, 1, 2), (5, 10, 40), 2 if small else 25)
    return Outcome(summarised(runs), runs)


def summarised(runs: list[dict[str, object]]) -> list[dict[str, object]]:
    """Ranges of K and of bars found, means of scores."""
    table = []
    topics = [r for r in runs if r["kind"] == "topics"]
    for name in dict.fromkeys(r["method"] for r in topics):
        of_method = [r for r in topics if r["method"] == name]
        row = {"what": name}
        row |= {key: span([r[key] for r in of_method]) for key in ("K", "found")}
        row |= {key: float(np.mean([r[key] for r in of_method])) for key in ("held-out nats", "CPU seconds")}
        table.append(row)
    for name, K in dict.fromkeys((r["method"], r["from"]) for r in runs if r["kind"] == "clusters"):
        of_method = [r for r in runs if r["kind"] == "clusters" and (r["method"], r["from"]) == (name, K)]
        bounds = [r["ELBO per document"] for r in of_method]
        row = {"what": f"clusters, {name}, from {K}", "K": span([r["K"] for r in of_method])}
        table.append(row | {"ELBO per document": f"{min(bounds):.2f} to {max(bounds):.2f}"})
    return table


def span(values: list[int]) -> str:
    """The least and the most."""
    return f"{min(values)} to {max(values)}" if min(values) < max(values) else f"{min(values)}"


def draw(outcome: Outcome, picture: Figure) -> None:
    """Topics, their number and scores (Figure 5.6), and bounds of clusters by their number at first (Figure 3.4)."""
    picture.set_size_inches(9.0, 7.0)
    top, bottom = picture.subfigures(2, 1, height_ratios=(1.3, 1.0))
    topics = [r for r in outcome.runs if r["kind"] == "topics"]
    shown = [r for r in topics if r["topics"]]
    for row, r in zip(top.subplots(len(shown), 11), shown):
        row[0].text(1.0, 0.5, f"{r['method']}\nK = {r['K']}", ha="right", va="center", fontsize=7)
        for axes, topic in zip(row[1:], r["topics"]):
            axes.imshow(np.array(topic).reshape(SIDE, SIDE), cmap="gray_r")
        for axes in row:
            axes.set_axis_off()
    growth, score, bound = bottom.subplots(1, 3)
    names = list(dict.fromkeys(r["method"] for r in topics))
    for r in topics:
        color = f"C{names.index(r['method']) % 10}"
        label = r["method"] if r["seed"] == 0 else None
        if "curve" in r:
            growth.plot(np.arange(len(r["curve"])) + 1, r["curve"], color=color, linewidth=1.0)
        score.plot(r["K"], r["held-out nats"], "o", color=color, alpha=0.7, label=label)
    growth.set(xlabel="laps", ylabel="topics", xscale="log")
    score.set(xlabel="topics at the end", ylabel="held-out nats per token")
    score.legend(fontsize=6)
    for r in (r for r in outcome.runs if r["kind"] == "clusters"):
        marker = {"random": "v", "k-means++": "^"}.get(r["method"], "o")
        shift = {"random": -0.4, "k-means++": 0.4}.get(r["method"], 0.0)
        bound.plot(r["from"] + shift, r["ELBO per document"], marker, color="C0" if marker != "o" else "C1", alpha=0.4)
    for label, marker, color in (("at random", "v", "C0"), ("far apart", "^", "C0"), (OURS, "o", "C1")):
        bound.plot([], [], marker, color=color, label=label)
    bound.set(xlabel="clusters at first", ylabel="ELBO per document of one bar (nats)")
    bound.legend(fontsize=7)


EXPERIMENT = Experiment("thesis_bars", __doc__, measure, draw, seeds=3)

if __name__ == "__main__":
    EXPERIMENT.main()
