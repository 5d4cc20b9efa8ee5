"""Local optima of letters: the thesis, section 3.6.1.

50,000 patches of 8 x 8 pixels from 26 zero-mean Gaussians, one for each letter, of which each has 95% of the patches of the
letter before.  The thesis does not give the covariances; here a patch is the letter m times a Gaussian number, with noise:
m m' + 0.01 I.  All fits have the prior that is best for the true clusters.  From K random patches, or K far apart, coordinate
ascent on all patches runs as published (Alg. 3.1), without moves; the library begins with one cluster.  A letter is found if
a cluster has 8 in 10 of its patches, and they are 8 in 10 of the cluster's.

    python benchmarks/papers/thesis_letters.py [--small] [--seeds 5]

The full version takes 30 CPU minutes, the small one (6,000 patches, 5 letters) 10 seconds.
"""

import string
import time
import warnings

import numpy as np
from frame import Experiment, Outcome
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import confusion_matrix
from sklearn.mixture import BayesianGaussianMixture

from stickbreak import Mixture
from stickbreak.inference import Memoized
from stickbreak.likelihoods import Likelihood

SIZE, FINE = 8, 8  # pixels of a patch along a side, and points along a side of a pixel
NOISE = 0.01
PURE = 0.8
STARTS = {"random": "random patches", "k-means++": "patches far apart"}


def glyph(letter: str) -> np.ndarray:
    """The share of each pixel that a letter covers, (64,)."""
    outline = TextPath((0.0, 0.0), letter, prop=FontProperties(family="DejaVu Sans Mono", weight="bold"))
    box = outline.get_extents()
    at = (np.arange(SIZE * FINE) + 0.5) / (SIZE * FINE)
    x, y = np.meshgrid(box.x0 + at * box.width, box.y1 - at * box.height)
    covered = outline.contains_points(np.column_stack([x.ravel(), y.ravel()]))
    return covered.reshape(SIZE, FINE, SIZE, FINE).mean(axis=(1, 3)).ravel()


def letters(n_rows: int, n_letters: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Patches (n_rows, 64) and the letter of each."""
    rng = np.random.default_rng(seed)
    shares = 0.95 ** np.arange(n_letters)
    labels = rng.choice(n_letters, n_rows, p=shares / shares.sum())
    glyphs = np.array([glyph(letter) for letter in string.ascii_uppercase[:n_letters]])
    strength = rng.normal(size=(n_rows, 1))
    return strength * glyphs[labels] + np.sqrt(NOISE) * rng.normal(size=(n_rows, SIZE**2)), labels


def found(truth: np.ndarray, labels: np.ndarray) -> int:
    """Letters that have a cluster of their own."""
    table = confusion_matrix(truth, labels).astype(float)
    of_letter = table / np.maximum(table.sum(axis=1, keepdims=True), 1.0)
    of_cluster = table / np.maximum(table.sum(axis=0), 1.0)
    return int(((of_letter >= PURE) & (of_cluster >= PURE)).sum())


def run(
    method: str, model: Mixture | BayesianGaussianMixture, X: np.ndarray, truth: np.ndarray, K: int
) -> dict[str, object]:
    """A fit from K clusters."""
    began = time.process_time()
    model.fit(X)
    seconds = time.process_time() - began
    sizes = np.asarray(model.weights_) * len(X)
    return {
        "method": method,
        "K": K,
        "ELBO": float(model.lower_bound_) / (len(X) if isinstance(model, Mixture) else 1.0),
        "effective": int((sizes >= 1.0).sum()),
        "letters": found(truth, model.predict(X)),
        "CPU seconds": seconds,
    }


def best_prior(X: np.ndarray, truth: np.ndarray) -> Likelihood:
    """The likelihood whose prior gives the true clusters, and what they become, the highest ELBO."""
    return Mixture("zero_mean_gaussian", init=truth, moves=(), random_state=0).fit(X).model_.likelihood


def published(likelihood: Likelihood, start: str, K: int, seed: int) -> Mixture:
    """Coordinate ascent on all rows, the number of clusters fixed."""
    return Mixture(
        likelihood,
        algorithm=Memoized(accelerate=False),
        n_batches=1,
        init=start,
        n_init_clusters=K,
        moves=(),
        learn=False,
        max_laps=100,
        random_state=seed,
    )


def measure(small: bool, seeds: int) -> Outcome:
    warnings.simplefilter("ignore", ConvergenceWarning)
    n_rows, n_letters = (6_000, 5) if small else (50_000, 26)
    X, truth = letters(n_rows, n_letters, 0)
    numbers = (5, 10) if small else (30, 60, 100)
    likelihood = best_prior(X, truth)
    runs = [run("the true clusters", Mixture(likelihood, init=truth, moves=(), learn=False), X, truth, 1)]
    for seed in range(seeds):
        for start in STARTS:
            runs += [run(start, published(likelihood, start, K, seed), X, truth, K) for K in numbers]
        runs.append(run("stickbreak", Mixture(likelihood, learn=False, random_state=seed), X, truth, 1))
    K = numbers[1]
    peer = BayesianGaussianMixture(n_components=K, max_iter=3 if small else 50, random_state=0)
    runs.append(run("scikit-learn", peer, X, truth, K))
    return Outcome(summarised(runs), runs)


def summarised(runs: list[dict[str, object]]) -> list[dict[str, object]]:
    """The best and the worst run of each method and number of clusters."""
    table = []
    for method, K in dict.fromkeys((r["method"], r["K"]) for r in runs):
        of_method = [r for r in runs if (r["method"], r["K"]) == (method, K)]
        table.append(
            {
                "what": f"{STARTS.get(method, method)}, {K} at first" if K > 1 else method,
                "letters": between([r["letters"] for r in of_method]),
                "clusters with rows": between([r["effective"] for r in of_method]),
                "best ELBO per patch": max(r["ELBO"] for r in of_method) if method != "scikit-learn" else "",
                "CPU seconds": float(np.mean([r["CPU seconds"] for r in of_method])),
            }
        )
    return table


def between(values: list[int]) -> str:
    return f"{min(values)} to {max(values)}" if min(values) < max(values) else f"{min(values)}"


def draw(outcome: Outcome, picture: Figure) -> None:
    """ELBO and clusters with rows by the number of clusters at first, as in Figure 3.3."""
    picture.set_size_inches(8.0, 3.2)
    axes = picture.subplots(1, 2)
    ours = [r for r in outcome.runs if r["method"] == "stickbreak"]
    for key, panel in zip(("ELBO", "effective"), axes):
        for shift, (start, name) in zip((-1.0, 1.0), STARTS.items()):
            runs = [r for r in outcome.runs if r["method"] == start]
            panel.plot([r["K"] + shift for r in runs], [r[key] for r in runs], "o", markersize=4, alpha=0.7, label=name)
        for r in ours:
            panel.axhline(r[key], color="k", linewidth=1.0, label="stickbreak, from one" if r is ours[0] else None)
        panel.set(xlabel="clusters at first")
    axes[0].set(ylabel="ELBO per patch (nats)")
    axes[1].set(ylabel="clusters with rows")
    axes[0].legend(fontsize=8)


EXPERIMENT = Experiment("thesis_letters", __doc__, measure, draw, seeds=5)

if __name__ == "__main__":
    EXPERIMENT.main()
