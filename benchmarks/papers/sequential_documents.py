"""Documents by their proportions of topics: an imitation of Lin 2013, section 6.3.

The paper's 1.8 million articles are not at hand.  Here topics of 800 BBC news are found by scikit-learn's LDA, each document
is the vector of its proportions, and the last 225 are held out.  Clusters of these vectors have Dirichlet distributions, which
are not conjugate: sequential variational approximation (SVA), with prune and merge (SVA-PM), both row by row with a prior that
is held, and the library as it is, which also learns the prior.  Truncation-free steps (TFV) and collapsed Gibbs sampling with
split-merge moves, 50 sweeps, need a conjugate family: they have the log ratios of the proportions and Gaussians with
independent columns, as have the library once more, and scikit-learn with 20 components.  Their densities are those of the
proportions: the Jacobian is counted.  "Rand" is the adjusted Rand index with the five sections, which no method is told.

    python benchmarks/papers/sequential_documents.py [--small] [--seeds 1]

The full version takes 6 CPU minutes, the small one (200 documents, 4 topics) 8 seconds.
"""

import time
import warnings
from dataclasses import dataclass

import numpy as np
from frame import Experiment, Outcome
from matplotlib.figure import Figure
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture

from common import DATA
from stickbreak import DataWarning, Mixture
from stickbreak.inference import Gibbs, Sequential, TruncationFree
from stickbreak.likelihoods import Dirichlet

HELD_OUT = 225
PROPORTIONS, LOG_RATIOS = "proportions", "log ratios"
METHODS = {
    "SVA": (PROPORTIONS, {"algorithm": Sequential(prune=0.0, merge=False, block_rows=1), "learn": False}),
    "SVA-PM": (PROPORTIONS, {"algorithm": Sequential(block_rows=1), "learn": False}),
    "stickbreak": (PROPORTIONS, {}),
    "TFV, log ratios": (LOG_RATIOS, {"algorithm": TruncationFree(merge=False), "max_laps": 50}),
    "Gibbs, log ratios": (LOG_RATIOS, {"algorithm": Gibbs(50, 0, n_chains=1)}),
    "stickbreak, log ratios": (LOG_RATIOS, {}),
}
PAPER = {"SVA": "better, sooner", "SVA-PM": "the same, fewer clusters", "TFV, log ratios": "worse, more clusters"}


@dataclass(frozen=True)
class Documents:
    """Proportions of topics (N, m), all above zero, and sections (N,)."""

    P: np.ndarray
    sections: np.ndarray

    def part(self, rows: slice) -> "Documents":
        """Some of the documents."""
        return Documents(self.P[rows], self.sections[rows])

    def of_kind(self, kind: str) -> np.ndarray:
        """What a method sees: the proportions, or log(p_k / p_m), (N, m - 1)."""
        return self.P if kind == PROPORTIONS else np.log(self.P[:, :-1] / self.P[:, -1:])

    def log_jacobian(self, kind: str) -> float:
        """What turns the mean log density of log ratios into that of proportions: - sum_k log p_k, averaged."""
        return 0.0 if kind == PROPORTIONS else float(-np.log(self.P).sum(axis=1).mean())


def news(n: int, n_topics: int, seed: int) -> Documents:
    """So many BBC news in random order."""
    lines = (DATA / "bbc_news.tsv").read_text().splitlines()
    chosen = np.random.default_rng(seed).permutation(len(lines))[:n]
    cells = [lines[i].split("\t") for i in chosen]
    counts = CountVectorizer(min_df=5, max_features=2_000).fit_transform([text for text, *_ in cells])
    topics = LatentDirichletAllocation(n_topics, doc_topic_prior=0.1, max_iter=20, random_state=seed)
    P = topics.fit(counts[: min(800, n // 2)]).transform(counts)
    return Documents(P, np.array([section for *_, section in cells]))


def run(name: str, train: Documents, test: Documents, seed: int) -> dict[str, object]:
    """A fit of the library."""
    kind, parameters = METHODS[name]
    family = Dirichlet() if kind == PROPORTIONS else "diagonal_gaussian"
    X = train.of_kind(kind)
    began = time.process_time()
    model = Mixture(family, n_jobs=1, random_state=seed, **parameters).fit(X)
    seconds = time.process_time() - began
    held_out = model.score(test.of_kind(kind)) + test.log_jacobian(kind)
    return record(name, seed, model.n_clusters_, held_out, train, model.labels_, seconds)


def peer(train: Documents, test: Documents, seed: int) -> dict[str, object]:
    """scikit-learn's mixture of log ratios."""
    X = train.of_kind(LOG_RATIOS)
    began = time.process_time()
    model = BayesianGaussianMixture(n_components=20, covariance_type="diag", max_iter=200, random_state=seed).fit(X)
    seconds = time.process_time() - began
    held_out = float(model.score(test.of_kind(LOG_RATIOS))) + test.log_jacobian(LOG_RATIOS)
    K = int((model.weights_ * len(X) >= 1.0).sum())
    return record("scikit-learn, log ratios", seed, K, held_out, train, model.predict(X), seconds)


def record(
    name: str, seed: int, K: int, held_out: float, train: Documents, labels: np.ndarray, seconds: float
) -> dict[str, object]:
    """What is kept of a run."""
    return {
        "method": name,
        "seed": seed,
        "clusters": K,
        "held-out nats": float(held_out),
        "Rand": float(adjusted_rand_score(train.sections, labels)),
        "CPU seconds": seconds,
    }


def measure(small: bool, seeds: int) -> Outcome:
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", DataWarning)
    n, n_topics, held_out = (200, 4, 40) if small else (2_225, 20, HELD_OUT)
    compiled = news(120, 3, 0)
    for name in () if small else METHODS:
        run(name, compiled, compiled, 0)
    runs = []
    for seed in range(seeds):
        documents = news(n, n_topics, seed)
        train, test = documents.part(slice(n - held_out)), documents.part(slice(n - held_out, n))
        runs += [run(name, train, test, seed) for name in METHODS]
        runs.append(peer(train, test, seed))
    return Outcome(summarised(runs), runs)


def summarised(runs: list[dict[str, object]]) -> list[dict[str, object]]:
    """Means of the seeds."""
    table = []
    for name in dict.fromkeys(r["method"] for r in runs):
        of_method = [r for r in runs if r["method"] == name]
        row = {"what": name, "paper": PAPER.get(name, "")}
        row |= {
            key: float(np.mean([r[key] for r in of_method]))
            for key in ("clusters", "held-out nats", "Rand", "CPU seconds")
        }
        table.append(row)
    return table


def draw(outcome: Outcome, picture: Figure) -> None:
    """Held-out score by CPU time, and by the number of clusters (Figure 5)."""
    picture.set_size_inches(8.0, 3.4)
    left, right = picture.subplots(1, 2, sharey=True)
    for i, name in enumerate(dict.fromkeys(r["method"] for r in outcome.runs)):
        of_method = [r for r in outcome.runs if r["method"] == name]
        for axes, key in ((left, "CPU seconds"), (right, "clusters")):
            marker = "s" if LOG_RATIOS in name else "o"
            values = [r[key] for r in of_method]
            axes.plot(values, [r["held-out nats"] for r in of_method], marker, color=f"C{i}", label=name)
    left.set(xlabel="CPU seconds", ylabel="held-out nats per document", xscale="log")
    right.set(xlabel="clusters", xscale="log")
    right.legend(fontsize=7)


EXPERIMENT = Experiment("sequential_documents", __doc__, measure, draw)

if __name__ == "__main__":
    EXPERIMENT.main()
