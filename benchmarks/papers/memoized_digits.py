"""MNIST digits: the 2013 paper, section 4.2.

60,000 images on their 50 leading principal components, full covariances, one prior for all methods.  Those with a fixed number
of clusters begin with 100 rows, at random or far apart (k-means++), 20 passes each: ascent on all rows (Full), memoized (MO)
and stochastic at three learning rates (SO) over 20 and over 100 batches; and GreedyMerge, 4 passes over 100.  From one cluster:
memoized with births and merges as published (MO-BM), the library as it is, and Kurihara's splits, which are too slow for more
than the first 10,000 images.  scikit-learn has 100 components and 20 passes.  "aligned" is the share of the images whose digit
is the most frequent one of their cluster; by passes, that of every twelfth image.  The paper has 10 runs of 200 passes.

    python benchmarks/papers/memoized_digits.py [--small] [--seeds 1]

The full version takes 14 CPU minutes, the small one (600 images, 8 clusters, 2 passes) 6 seconds.
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
from papers.baselines.methods_2013 import Watched, begun, births, fixed, mixture, trace
from papers.baselines.split_ascent import SplitAscent
from stickbreak import Mixture
from stickbreak.inference.laps import Result
from stickbreak.model import Summary
from stickbreak.model.local import likeliest

STARTS = ("random", "k-means++")
BEGUN = {"random": "from 100 rows at random", "k-means++": "from 100 rows far apart", "one": "from one cluster"}
LINES = {"random": ":", "k-means++": "--", "one": "-"}
MARKERS = {"random": "v", "k-means++": "^", "one": "o"}
MOST_LAPS = 200  # of MO-BM, as in the paper
SETTLED = (
    60.0  # nats for each cluster, a thousandth of one for each image: laps that gain less let the next births follow
)
PAPER_K = {"MO-BM": "over 80", "Kurihara": "30 to 40 fewer"}
SIDE = 28  # pixels
EVERY = 12  # images of which one is looked at after each pass
SHOWN = 10  # clusters whose mean is drawn
DIMENSIONS = 50


class Digits(NamedTuple):
    """Images on the principal components of all: X (n, 50), digits y (n,), mean (784,) and components (50, 784) in pixels."""

    X: np.ndarray
    y: np.ndarray
    mean: np.ndarray
    components: np.ndarray


def projected() -> Digits:
    """All images, in the order of the file."""
    with np.load(DATA / "mnist_train.npz") as file:
        X, y = file["X"].astype(np.float32) / 255.0, file["y"]
    mean = X.mean(axis=0)
    X -= mean
    vectors = np.linalg.eigh((X.T @ X).astype(np.float64))[1][:, ::-1][:, :DIMENSIONS]
    return Digits((X @ vectors).astype(np.float64), y, mean, vectors.T)


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
    """A fit of the library, and its alignment after every lap."""
    rows, digits = X[::EVERY], y[::EVERY]

    def alignment(result: Result) -> float:
        parameters = result.model.parameters(result.total, X.dtype)
        return aligned(digits, likeliest(result.model.likelihood, parameters, rows))

    model = Watched.of(model, alignment)
    began = time.process_time()
    model.fit(X)
    seconds = time.process_time() - began - model.seconds
    K = int((model.summary_.N >= 1.0).sum())
    found = record(name, start, seed, K, aligned(y, model.predict(X)), model.lower_bound_ / len(X), seconds)
    return found | trace(model, len(X)) | {"alignment": model.seen, "means": model.means_[:SHOWN].tolist()}


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
    n, K, laps, batches = (600, 8, 2, (3,)) if small else (60_000, 100, 20, (100, 20))
    of_kurihara = 600 if small else 10_000
    X, y, mean, components = projected()
    X, y = X[:n], y[:n]
    narrow = X.astype(np.float32)
    prior = mnist_prior()
    runs = []
    for seed in range(seeds):
        for start in STARTS:
            for n_batches in batches:
                models = fixed(prior, n_batches, start, K, laps, seed)
                full = models.pop("Full")
                if n_batches == batches[0]:
                    runs.append(fitted("Full", start, seed, full, narrow, y))
                runs += [
                    fitted(f"{name}, {n_batches} batches", start, seed, model, narrow, y)
                    for name, model in models.items()
                ]
            runs.append(greedy(start, seed, K, batches[0], X, y))
        runs.append(
            fitted("MO-BM", "one", seed, births(prior, batches[0], seed, max_laps=MOST_LAPS, tol=SETTLED), narrow, y)
        )
        runs.append(fitted("stickbreak", "one", seed, mixture(prior, batches[0], seed), narrow, y))
    runs += [kurihara(X[:of_kurihara], y[:of_kurihara]), peer(X, y, K, laps)]
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
    """ELBO, K and alignment by passes, what they end at, and the means of the largest clusters (Figure 3)."""
    picture.set_size_inches(10.0, 9.0)
    top, bottom = picture.subfigures(2, 1, height_ratios=(7.0, 1.0))
    (bound, growth), (share, final) = top.subplots(2, 2)
    names = list(dict.fromkeys(r["method"] for r in outcome.runs))
    colors = {name: f"C{i}" for i, name in enumerate(dict.fromkeys(plain(name) for name in names))}
    with_bounds = [r for r in outcome.runs if r["ELBO per image"] is not None]
    for r in with_bounds:
        at, marker, color = names.index(r["method"]), MARKERS[r["start"]], colors[plain(r["method"])]
        final.plot(at, r["ELBO per image"], marker, color=color, markersize=6, alpha=0.8)
    curves = [r for r in with_bounds if "passes" in r and r["seed"] == 0 and not r["method"].endswith(" 20 batches")]
    for r in curves:
        best = np.maximum.accumulate(r["ELBO"]) if r["start"] == "one" else r["ELBO"]
        for panel, values in ((bound, best), (growth, r["clusters"]), (share, r["alignment"])):
            panel.plot(r["passes"], values, LINES[r["start"]], color=colors[plain(r["method"])], linewidth=1.0)
    for panel, label in ((bound, "ELBO per image (nats)"), (growth, "K"), (share, "aligned with digits")):
        panel.set(xlabel="passes through the data", ylabel=label, xscale="log")
    ends = [r["ELBO per image"] for r in with_bounds]
    bound.set_ylim(np.quantile(ends, 0.1) - 2.0, max(ends) + 1.0)
    final.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=7)
    final.set(ylabel="final ELBO per image (nats)")
    for name in dict.fromkeys(plain(r["method"]) for r in curves):
        growth.plot([], [], color=colors[name], label=name)
    for start, style in LINES.items():
        growth.plot([], [], style, color="k", label=BEGUN[start])
    growth.legend(fontsize=7)
    images = next(r["images"] for r in outcome.runs if r["method"] == "stickbreak")
    for axes, image in zip(bottom.subplots(1, SHOWN), images):
        axes.imshow(np.array(image).reshape(SIDE, SIDE), cmap="gray_r")
    for axes in bottom.axes:
        axes.set_axis_off()


def plain(name: str) -> str:
    """A method whatever its batches."""
    return name.split(",")[0]


EXPERIMENT = Experiment("memoized_digits", __doc__, measure, draw)

if __name__ == "__main__":
    EXPERIMENT.main()
