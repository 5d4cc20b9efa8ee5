"""Nine Gaussians in one pass: Lin 2013, section 6.1.

10,000 rows of 9 Gaussians of unit variance on a grid; concentration 1, and N(0, 100^2 I) for the means.  1,000 rows are held
out.  The paper says "moderate overlap" and shows rows from -8 to 8: with 4.5 between neighbours.  Methods are those of the
library: sequential variational approximation row by row (SVA), with prune and merge (SVA-PM), truncation-free steps (TFV) as
published, collapsed Gibbs sampling (CGS) with or without split-merge moves (MC-SM), 100 sweeps each.  The paper gives samplers
and TFV one hour.  One pass is also made over Gaussians that are 3.5 apart.  scikit-learn has 20 components.

    python benchmarks/papers/sequential_nine.py [--small] [--seeds 1]

The full version takes a CPU minute for each seed, the small one (1,000 rows) 10 seconds.
"""

import time
import warnings

import numpy as np
from frame import Experiment, Outcome
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from papers.baselines.predictive import log_predictive
from stickbreak import DataWarning, Mixture
from stickbreak.inference import Gibbs, Sequential, TruncationFree
from stickbreak.likelihoods import KnownCovarianceGaussian

APART, CLOSE = 4.5, 3.5  # neighbours on the grid
HELD_OUT, SWEEPS = 1_000, 100
SHOWN = (1, 2, 5, 10, 20, 50, 100)  # sweeps after which samplers are scored
GRID = np.array([[x, y] for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0)])
ONE_PASS = ("SVA", "SVA-PM")
DRAWN = ("CGS", "TFV", "SVA", "SVA-PM", "stickbreak")
METHODS = {
    "SVA": {"algorithm": Sequential(epsilon=1e-3, prune=0.0, merge=False, block_rows=1)},
    "SVA-PM": {"algorithm": Sequential(epsilon=1e-3, block_rows=1)},
    "TFV": {"algorithm": TruncationFree(merge=False)},
    "CGS": {"algorithm": Gibbs(SWEEPS, 0, n_chains=1, split_merge=False)},
    "MC-SM": {"algorithm": Gibbs(SWEEPS, 0, n_chains=1)},
    "stickbreak": {},
}
PAPER = {
    "SVA": "9, sometimes more",
    "SVA-PM": "9, in seconds",
    "TFV": "redundant",
    "CGS": "redundant",
    "MC-SM": "9, after many sweeps",
}


def rows_of(n: int, seed: int, gap: float = APART) -> np.ndarray:
    """Rows (n, 2)."""
    rng = np.random.default_rng(seed)
    return gap * GRID[rng.integers(len(GRID), size=n)] + rng.normal(size=(n, 2))


def found(means: np.ndarray, gap: float) -> int:
    """Gaussians that have a mean within a tenth of the gap."""
    distances = np.linalg.norm(gap * GRID[:, None] - means, axis=2)
    return int((distances.min(axis=1) < 0.1 * gap).sum())


def run(name: str, X: np.ndarray, Y: np.ndarray, seed: int, gap: float = APART) -> dict[str, object]:
    """A fit, its held-out nats per row, of samplers after several sweeps, too."""
    likelihood = KnownCovarianceGaussian(1.0, mean=0.0, mean_precision=1e-4)
    began = time.process_time()
    fit = Mixture(likelihood, learn=False, n_jobs=1, random_state=seed, **METHODS[name]).fit(X)
    seconds = time.process_time() - began
    means = fit.means_
    curve = [(seconds, float(fit.score(Y)))]
    if hasattr(fit, "draws_"):
        labels = fit.draws_["labels"][0]
        means = np.array([X[labels[-1] == k].mean(axis=0) for k in range(int(labels[-1].max()) + 1)])
        known = fit.model_.likelihood
        scores = [float(log_predictive(known, X, labels[t - 1 : t], Y).mean()) for t in SHOWN]
        curve = [(seconds * t / SWEEPS, score) for t, score in zip(SHOWN, scores)]
    where = name if gap == APART else f"{name}, {gap} apart"
    return record(where, seed, means, gap, curve)


def record(name: str, seed: int, means: np.ndarray, gap: float, curve: list[tuple[float, float]]) -> dict[str, object]:
    """What is kept of a run; the curve is held-out nats by CPU seconds."""
    return {
        "method": name,
        "seed": seed,
        "K": len(means),
        "found": found(means, gap),
        "CPU seconds": curve[-1][0],
        "curve": curve,
        "means": np.round(means, 3).tolist(),
    }


def peer(X: np.ndarray, Y: np.ndarray, seed: int) -> dict[str, object]:
    """What scikit-learn makes of it."""
    model = BayesianGaussianMixture(n_components=20, covariance_type="spherical", max_iter=500, random_state=seed)
    began = time.process_time()
    model.fit(X)
    seconds = time.process_time() - began
    used = model.weights_ * len(X) >= 1.0
    return record("scikit-learn", seed, model.means_[used], APART, [(seconds, float(model.score(Y)))])


def measure(small: bool, seeds: int) -> Outcome:
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", DataWarning)
    n = 1_000 if small else 10_000
    compiled = rows_of(50, 0)
    runs = []
    for name in METHODS:
        run(name, compiled, compiled, 0)
    for seed in range(seeds):
        X, Y = np.split(rows_of(n + HELD_OUT, seed), [n])
        runs += [*(run(name, X, Y, seed) for name in METHODS), peer(X, Y, seed)]
        X, Y = np.split(rows_of(n + HELD_OUT, seed, CLOSE), [n])
        runs += [run(name, X, Y, seed, CLOSE) for name in ONE_PASS]
    table = []
    for name in dict.fromkeys(r["method"] for r in runs):
        of_method = [r for r in runs if r["method"] == name]
        table.append(
            {
                "what": name,
                "paper": PAPER.get(name, ""),
                "clusters": ", ".join(str(r["K"]) for r in of_method),
                "of the nine": ", ".join(str(r["found"]) for r in of_method),
                "held-out nats": float(np.mean([r["curve"][-1][1] for r in of_method])),
                "CPU seconds": float(np.mean([r["CPU seconds"] for r in of_method])),
            }
        )
    return Outcome(table, runs)


def draw(outcome: Outcome, picture: Figure) -> None:
    """Means of the clusters (Figure 1), and held-out scores by CPU time (Figure 2)."""
    picture.set_size_inches(9.0, 5.6)
    top, bottom = picture.subfigures(2, 1, height_ratios=(1.2, 1.8))
    first = {r["method"]: r for r in outcome.runs if r["seed"] == 0}
    for axes, name in zip(top.subplots(1, len(DRAWN), sharey=True), DRAWN):
        axes.plot(*APART * GRID.T, "o", color="0.8", markersize=12)
        axes.plot(*np.transpose(first[name]["means"]), "k+", markersize=8)
        axes.set(xlim=(-8.0, 8.0), ylim=(-8.0, 8.0), aspect="equal")
        axes.set_title(f"{name}, K = {first[name]['K']}", fontsize=9)
    axes = bottom.subplots()
    for i, name in enumerate((*METHODS, "scikit-learn")):
        for r in (r for r in outcome.runs if r["method"] == name):
            label = name if r["seed"] == 0 else None
            axes.plot(*np.transpose(r["curve"]), "o-", color=f"C{i}", markersize=4, label=label)
    axes.set(xlabel="CPU seconds", ylabel="held-out nats per row", xscale="log", ylim=(-6.0, -4.8))
    axes.legend(fontsize=8, loc="lower right")


EXPERIMENT = Experiment("sequential_nine", __doc__, measure, draw)

if __name__ == "__main__":
    EXPERIMENT.main()
