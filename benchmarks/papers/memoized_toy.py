"""The toy of the 2013 paper, section 4.1: 100,000 patches of 5 x 5 pixels from 8 zero-mean Gaussians with strong edges.

Each Gaussian has one edge through the patch, at one of 8 angles: pixels on the same side vary together, those on opposite sides
independently.  As in the paper, methods with a fixed number of clusters begin with 25 random patches: ascent on all rows
(Full), memoized over 100 batches (MO), stochastic at three learning rates (SO), and GreedyMerge.  Those that begin with one
are memoized with births and merges as published (MO-BM), and the library as it is.  Kurihara's splits and scikit-learn with 25
components run once.  A Gaussian is found if the covariance of a cluster is within 0.1 of its own in every entry.

    python benchmarks/papers/memoized_toy.py [--small] [--seeds 10]

The full version takes 20 CPU minutes, the small one (2,000 patches, 5 batches) 6 seconds.
"""

import time
import warnings

import numpy as np
from frame import Experiment, Outcome
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from papers.baselines.full_ascent import FullAscent
from papers.baselines.greedy_merge import GreedyMerge
from papers.baselines.methods_2013 import begun, births, fixed, mixture, trace
from papers.baselines.split_ascent import SplitAscent
from stickbreak import Mixture
from stickbreak.model import Summary

FAMILY, FIXED = "zero_mean_gaussian", 25
PAPER = {"SO-a": "0", "SO-b": "0", "SO-c": "0", "GreedyMerge": "0 of 5", "MO-BM": "10 of 10"}
ONCE = ("Kurihara", "scikit-learn")
SEARCHES = ("MO-BM", "stickbreak")
LEAST = 1e-3  # nats per patch: the least that the picture shows
DRAWN = 3  # runs of each method whose curves are drawn


def edge_covariances(size: int = 5, n: int = 8) -> np.ndarray:
    """Covariances (n, size^2, size^2) of patches with an edge at n angles."""
    y, x = np.mgrid[:size, :size] - (size - 1) / 2.0
    covariances = []
    for angle in np.arange(n) * np.pi / n:
        side = np.tanh(2.0 * (x * np.cos(angle) + y * np.sin(angle)).ravel())
        left, right = (1.0 + side) / 2.0, (1.0 - side) / 2.0
        covariances.append(np.outer(left, left) + np.outer(right, right) + 0.05 * np.eye(size * size))
    return np.array(covariances)


def edge_patches(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n_rows, 25) and the Gaussian each came from."""
    rng = np.random.default_rng(seed)
    factors = np.linalg.cholesky(edge_covariances())
    labels = rng.integers(len(factors), size=n_rows)
    noise = rng.standard_normal((n_rows, factors.shape[1]))
    return np.einsum("nij,nj->ni", factors[labels], noise), labels


def found(covariances: np.ndarray) -> int:
    """Gaussians that have a cluster."""
    closest = np.array([[np.abs(c - t).max() for t in edge_covariances()] for c in covariances])
    return len(set(closest.argmin(axis=1)[closest.min(axis=1) < 0.1]))


def fitted(name: str, seed: int, model: Mixture, X: np.ndarray) -> dict[str, object]:
    """A fit of the library."""
    began = time.process_time()
    model.fit(X)
    seconds = time.process_time() - began
    used = model.summary_.N >= 1.0
    of_laps = trace(model, len(X))
    return outcome(name, seed, int(used.sum()), model.covariances_[used], seconds, of_laps["passes"], of_laps["ELBO"])


def outcome(
    name: str, seed: int, K: int, covariances: np.ndarray, seconds: float, passes: list[float], curve: list[float]
) -> dict[str, object]:
    """What is kept of a run."""
    return {
        "method": name,
        "seed": seed,
        "K": K,
        "found": found(covariances),
        "CPU seconds": seconds,
        "passes": passes,
        "ELBO": curve,
    }


def of_stages(
    name: str, seed: int, ascent: FullAscent, stages: list[Summary], seconds: float, passes: list[float]
) -> dict[str, object]:
    """What is kept of a baseline, from its summaries of all rows."""
    model = ascent.model
    last = stages[-1]
    covariances = model.likelihood.posterior(last.N, last.S).covariances
    bounds = [model.bound(model.ordered(stage)) / len(ascent.X) for stage in stages]
    return outcome(name, seed, last.K, covariances, seconds, passes, bounds)


def greedy(seed: int, X: np.ndarray, n_batches: int, laps: int) -> dict[str, object]:
    """GreedyMerge from 25 random patches."""
    start = begun(FAMILY, "random", FIXED, seed).fit(X)
    began = time.process_time()
    merges = GreedyMerge.of(start.model_, X, n_batches)
    stages = list(merges.laps(start.summary_, laps, np.random.default_rng(seed)))
    seconds = time.process_time() - began
    return of_stages("GreedyMerge", seed, FullAscent(start.model_, X), stages, seconds, list(range(1, laps + 1)))


def kurihara(X: np.ndarray) -> dict[str, object]:
    """Splits from one cluster; the curve is by splits."""
    ascent = FullAscent(mixture(FAMILY, 1, 0, moves=(), max_laps=1).fit(X).model_, X)
    began = time.process_time()
    stages = list(SplitAscent(ascent, ascent.features).stages())
    seconds = time.process_time() - began
    return of_stages("Kurihara", 0, ascent, stages, seconds, list(range(len(stages))))


def peer(X: np.ndarray, laps: int) -> dict[str, object]:
    """scikit-learn's mixture, whose clusters also have means."""
    began = time.process_time()
    model = BayesianGaussianMixture(
        n_components=FIXED, init_params="random_from_data", max_iter=laps, random_state=0
    ).fit(X)
    seconds = time.process_time() - began
    used = model.weights_ * len(X) >= 1.0
    return outcome("scikit-learn", 0, int(used.sum()), model.covariances_[used], seconds, [], [])


def measure(small: bool, seeds: int) -> Outcome:
    warnings.simplefilter("ignore", ConvergenceWarning)
    n_rows, n_batches, laps = (2_000, 5, 2) if small else (100_000, 100, 30)
    runs = []
    for seed in range(seeds):
        X, _ = edge_patches(n_rows, seed)
        narrow = X.astype(np.float32)
        models = fixed(FAMILY, n_batches, "random", FIXED, laps, seed)
        models |= {"MO-BM": births(FAMILY, n_batches, seed), "stickbreak": mixture(FAMILY, n_batches, seed)}
        runs += [fitted(name, seed, model, narrow) for name, model in models.items()]
        runs.append(greedy(seed, X, n_batches, 4))
    X, _ = edge_patches(n_rows, 0)
    runs += [kurihara(X), peer(X, laps)]
    return Outcome(summarised(runs), runs)


def summarised(runs: list[dict[str, object]]) -> list[dict[str, object]]:
    """Who finds the eight."""
    table = []
    for name in dict.fromkeys(r["method"] for r in runs):
        of_method = [r for r in runs if r["method"] == name]
        table.append(
            {
                "what": name,
                "paper: find all 8": PAPER.get(name, ""),
                "find all 8": f"{sum(r['found'] == 8 for r in of_method)} of {len(of_method)}",
                "found": span([r["found"] for r in of_method]),
                "clusters": span([r["K"] for r in of_method]),
                "ELBO below the best": lacking(of_method, runs),
                "CPU seconds": float(np.mean([r["CPU seconds"] for r in of_method])),
            }
        )
    return table


def lacking(of_method: list[dict[str, object]], runs: list[dict[str, object]]) -> str:
    """Nats per patch by which final ELBOs are below the best of all methods on the same rows, the least and the most."""
    best = {seed: max(final(r) for r in runs if r["seed"] == seed) for seed in {r["seed"] for r in runs}}
    below = [best[r["seed"]] - final(r) for r in of_method if r["ELBO"]]
    return f"{min(below):.3f} to {max(below):.3f}" if below else ""


def final(run: dict[str, object]) -> float:
    """The ELBO per patch of the model that a fit returns: the best that a search has found, the last of other methods."""
    if not run["ELBO"]:
        return -np.inf
    return max(run["ELBO"]) if run["method"] in SEARCHES else run["ELBO"][-1]


def span(values: list[int]) -> str:
    """The least and the most."""
    return f"{min(values)} to {max(values)}" if min(values) < max(values) else f"{min(values)}"


def draw(outcome: Outcome, picture: Figure) -> None:
    """What the ELBO lacks by passes, and the Gaussians that each run has found (Figure 2)."""
    picture.set_size_inches(9.0, 3.6)
    left, right = picture.subplots(1, 2)
    names = list(dict.fromkeys(r["method"] for r in outcome.runs))
    best = {r["seed"]: max(r["ELBO"]) for r in outcome.runs if r["method"] == "stickbreak"}
    for i, name in enumerate(names):
        of_method = [r for r in outcome.runs if r["method"] == name]
        for r in of_method[:DRAWN] if name not in ONCE else []:
            curve = np.maximum.accumulate(r["ELBO"]) if name in SEARCHES else np.array(r["ELBO"])
            lacking = np.maximum(best[r["seed"]] - curve, LEAST)
            left.plot(r["passes"], lacking, color=f"C{i}", linewidth=0.8, label=name if r["seed"] == 0 else None)
        spread = 0.5 * (np.arange(len(of_method)) / len(of_method) - 0.5)
        right.plot(i + spread, [r["found"] for r in of_method], "o", color=f"C{i}", markersize=4)
    left.set(
        xlabel="passes through the data", ylabel="ELBO below the best (nats per patch)", xscale="log", yscale="log"
    )
    left.invert_yaxis()
    left.legend(fontsize=7, loc="lower right")
    right.set(ylabel="of the eight edges, found", ylim=(-0.4, 8.4))
    right.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize=8)


EXPERIMENT = Experiment("memoized_toy", __doc__, measure, draw, seeds=10)

if __name__ == "__main__":
    EXPERIMENT.main()
