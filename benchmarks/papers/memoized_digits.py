"""MNIST digits: the 2013 paper, section 4.2.

Images on their 50 leading principal components, full covariances, one prior for all methods.  Those with a fixed number of
clusters begin with 100 rows, at random or far apart (k-means++): ascent on all rows (Full), memoized over batches of 1,000 (MO)
and stochastic at three learning rates (SO), 15 passes each; and GreedyMerge.  From one cluster: memoized with births and merges
as published (MO-BM), Kurihara's splits, and the library as it is.  scikit-learn has 100 components.  "aligned" is the share of
the images whose digit is the most frequent one of their cluster.  The paper has all 60,000 images, 10 runs of 200 passes each,
and batches of 3,000 and 600; this the first 10,000.

    python benchmarks/papers/memoized_digits.py [--small] [--seeds 1]

The full version takes 5 CPU minutes, the small one (600 images, 8 clusters, 2 passes) 8 seconds.
"""

import time
import warnings
from typing import NamedTuple

import numpy as np
from frame import Experiment, Outcome
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import confusion_matrix
from sklearn.mixture import BayesianGaussianMixture

from common import DATA, mnist_prior
from papers.baselines.full_ascent import FullAscent
from papers.baselines.greedy_merge import GreedyMerge
from papers.baselines.methods_2013 import begun, births, fixed, mixture, trace
from papers.baselines.split_ascent import SplitAscent
from stickbreak import Mixture
from stickbreak.model import Summary

STARTS = {"random": "at random", "k-means++": "far apart"}
PAPER_K = {"MO-BM": "over 80", "Kurihara": "30 to 40 fewer"}
SIDE = 28  # pixels
SHOWN = 10  # clusters whose mean is drawn
DIMENSIONS = 50


class Digits(NamedTuple):
    """Images on the principal components of all: X (n, 50), digits y (n,), mean (784,) and components (50, 784) in pixels."""

    X: np.ndarray
    y: np.ndarray
    mean: np.ndarray
    components: np.ndarray


def projected(n: int) -> Digits:
    """The first n images."""
    with np.load(DATA / "mnist_train.npz") as file:
        X, y = file["X"].astype(np.float32) / 255.0, file["y"]
    mean = X.mean(axis=0)
    X -= mean
    vectors = np.linalg.eigh((X.T @ X).astype(np.float64))[1][:, ::-1][:, :DIMENSIONS]
    return Digits((X[:n] @ vectors).astype(np.float64), y[:n], mean, vectors.T)


def aligned(truth: np.ndarray, labels: np.ndarray) -> float:
    """The share of rows with the most frequent digit of their cluster."""
    return float(confusion_matrix(truth, labels).max(axis=0).sum() / len(truth))


def record(
    name: str, start: str, seed: int, K: int, share: float, ELBO: float | None, seconds: float
) -> dict[str, object]:
    """What the table has of a run."""
    return {
        "method": name,
        "start": start,
        "seed": seed,
        "K": K,
        "aligned": share,
        "ELBO per image": ELBO,
        "CPU seconds": seconds,
    }


def fitted(name: str, start: str, seed: int, model: Mixture, X: np.ndarray, y: np.ndarray) -> dict[str, object]:
    """A fit of the library."""
    began = time.process_time()
    model.fit(X)
    seconds = time.process_time() - began
    K = int((model.summary_.N >= 1.0).sum())
    found = record(name, start, seed, K, aligned(y, model.predict(X)), model.lower_bound_ / len(X), seconds)
    return found | trace(model, len(X)) | {"means": model.means_[:SHOWN].tolist()}


def of_summary(
    name: str, start: str, seed: int, ascent: FullAscent, last: Summary, y: np.ndarray, seconds: float
) -> dict[str, object]:
    """What is kept of a baseline."""
    last = ascent.model.ordered(last)
    labels = ascent.responsibilities(last).argmax(axis=1)
    return record(name, start, seed, last.K, aligned(y, labels), ascent.model.bound(last) / len(y), seconds)


def greedy(start: str, seed: int, K: int, n_batches: int, X: np.ndarray, y: np.ndarray) -> dict[str, object]:
    """GreedyMerge, four passes."""
    first = begun(mnist_prior(), start, K, seed).fit(X)
    began = time.process_time()
    merges = GreedyMerge.of(first.model_, X, n_batches)
    *_, last = merges.laps(first.summary_, 4, np.random.default_rng(seed))
    seconds = time.process_time() - began
    return of_summary("GreedyMerge", start, seed, FullAscent(first.model_, X), last, y, seconds)


def kurihara(X: np.ndarray, y: np.ndarray) -> dict[str, object]:
    """Splits from one cluster; the curve of K has one point for each."""
    ascent = FullAscent(mixture(mnist_prior(), 1, 0, moves=(), max_laps=1).fit(X).model_, X)
    began = time.process_time()
    *_, last = SplitAscent(ascent, X).stages()
    return of_summary("Kurihara", "one", 0, ascent, last, y, time.process_time() - began)


def peer(X: np.ndarray, y: np.ndarray, K: int, laps: int) -> dict[str, object]:
    """scikit-learn's mixture."""
    began = time.process_time()
    model = BayesianGaussianMixture(n_components=K, init_params="k-means++", max_iter=laps, random_state=0).fit(X)
    seconds = time.process_time() - began
    K = int((model.weights_ * len(X) >= 1.0).sum())
    return record("scikit-learn", "k-means++", 0, K, aligned(y, model.predict(X)), None, seconds)


def measure(small: bool, seeds: int) -> Outcome:
    warnings.simplefilter("ignore", ConvergenceWarning)
    n, K, laps = (600, 8, 2) if small else (10_000, 100, 15)
    X, y, mean, components = projected(n)
    n_batches = n // (200 if small else 1_000)
    narrow = X.astype(np.float32)
    prior = mnist_prior()
    runs = []
    for seed in range(seeds):
        for start in STARTS:
            models = fixed(prior, n_batches, start, K, laps, seed)
            runs += [fitted(name, start, seed, model, narrow, y) for name, model in models.items()]
            runs.append(greedy(start, seed, K, n_batches, X, y))
        runs.append(fitted("MO-BM", "one", seed, births(prior, n_batches, seed), narrow, y))
        runs.append(fitted("stickbreak", "one", seed, mixture(prior, n_batches, seed), narrow, y))
    runs += [kurihara(X, y), peer(X, y, K, laps)]
    for run in runs:
        if "means" in run:
            means = run.pop("means")
            if run["method"] == "stickbreak":
                run["images"] = np.round(mean + np.array(means) @ components, 3).tolist()
    return Outcome(summarised(runs), runs)


def summarised(runs: list[dict[str, object]]) -> list[dict[str, object]]:
    """The mean of each method and start."""
    table = []
    for name, start in dict.fromkeys((r["method"], r["start"]) for r in runs):
        of_method = [r for r in runs if (r["method"], r["start"]) == (name, start)]
        row = {"what": name, "start": start, "paper: K": PAPER_K.get(name, "")}
        for key in ("ELBO per image", "K", "aligned", "CPU seconds"):
            values = [r[key] for r in of_method if r[key] is not None]
            row[key] = float(np.mean(values)) if values else ""
        table.append(row)
    return table


def draw(outcome: Outcome, picture: Figure) -> None:
    """Final ELBO, alignment with digits, K by passes, and the means of the largest clusters (Figure 3)."""
    picture.set_size_inches(9.0, 6.0)
    top, bottom = picture.subfigures(2, 1, height_ratios=(3.0, 1.0))
    final, share, growth = top.subplots(1, 3)
    names = list(dict.fromkeys(r["method"] for r in outcome.runs))
    markers = {"random": "v", "k-means++": "^", "one": "o"}
    for r in outcome.runs:
        at = names.index(r["method"])
        for panel, key in ((final, "ELBO per image"), (share, "aligned")):
            if r[key] is not None:
                panel.plot(at, r[key], markers[r["start"]], color=f"C{at % 10}", markersize=6, alpha=0.8)
    for panel in (final, share):
        panel.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=8)
    final.set(ylabel="final ELBO per image (nats)")
    share.set(ylabel="aligned with digits")
    for start, marker in markers.items():
        label = f"from 100 rows {STARTS[start]}" if start in STARTS else "from one cluster"
        share.plot([], [], marker, color="k", label=label)
    share.legend(fontsize=7, loc="lower right")
    for name, style in (("MO-BM", "-"), ("stickbreak", "--")):
        for r in (r for r in outcome.runs if r["method"] == name):
            label = name if r["seed"] == 0 else None
            growth.plot(r["passes"], r["clusters"], style, color=f"C{names.index(name) % 10}", label=label)
    growth.set(xlabel="passes through the data", ylabel="K")
    growth.legend(fontsize=8)
    images = next(r["images"] for r in outcome.runs if r["method"] == "stickbreak")
    for axes, image in zip(bottom.subplots(1, SHOWN), images):
        axes.imshow(np.array(image).reshape(SIDE, SIDE), cmap="gray_r")
    for axes in bottom.axes:
        axes.set_axis_off()


EXPERIMENT = Experiment("memoized_digits", __doc__, measure, draw)

if __name__ == "__main__":
    EXPERIMENT.main()
