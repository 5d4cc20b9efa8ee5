"""Nine Gaussians in one pass: Lin 2013, section 6.1.

10,000 rows of 9 Gaussians of unit variance on a grid 3.5 apart, with moderate overlap; concentration 1, and N(0, 100^2 I) for
the means.  1,000 rows are held out.  Methods are those of the library: sequential variational approximation row by row (SVA),
with prune and merge (SVA-PM), truncation-free steps (TFV) as published, collapsed Gibbs sampling (CGS) with or without
split-merge moves (MC-SM), 100 sweeps each.  The paper gives samplers and TFV one hour.  scikit-learn has 20 components.

    python benchmarks/papers/sequential_nine.py [--small] [--seeds 1]

The full version takes a CPU minute, the small one (1,000 rows) 10 seconds.
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

GAP, HELD_OUT, SWEEPS = 3.5, 1_000, 100
SHOWN = (1, 2, 5, 10, 20, 50, 100)  # sweeps after which samplers are scored
GRID = GAP * np.array([[x, y] for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0)])
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


def rows_of(n: int, seed: int) -> np.ndarray:
    """Rows (n, 2)."""
    rng = np.random.default_rng(seed)
    return GRID[rng.integers(len(GRID), size=n)] + rng.normal(size=(n, 2))


def found(means: np.ndarray) -> int:
    """Gaussians that have a mean within a tenth of the gap."""
    distances = np.linalg.norm(GRID[:, None] - means, axis=2)
    return int((distances.min(axis=1) < 0.1 * GAP).sum())


def run(name: str, X: np.ndarray, Y: np.ndarray, seed: int) -> dict[str, object]:
    """A fit, its held-out nats per row, of samplers after several sweeps, too."""
    likelihood = KnownCovarianceGaussian(1.0, mean=0.0, mean_precision=1e-4)
    began = time.process_time()
    fit = Mixture(likelihood, learn=False, n_jobs=1, random_state=seed, **METHODS[name]).fit(X)
    seconds = time.process_time() - began
    K, means = fit.n_clusters_, fit.means_
    curve = [(seconds, float(fit.score(Y)))]
    if hasattr(fit, "draws_"):
        labels = fit.draws_["labels"][0]
        K = int(labels[-1].max()) + 1
        means = np.array([X[labels[-1] == k].mean(axis=0) for k in range(K)])
        known = fit.model_.likelihood
        scores = [float(log_predictive(known, X, labels[t - 1 : t], Y).mean()) for t in SHOWN]
        curve = [(seconds * t / SWEEPS, score) for t, score in zip(SHOWN, scores)]
    return {"method": name, "seed": seed, "K": K, "found": found(means), "CPU seconds": seconds, "curve": curve}


def peer(X: np.ndarray, Y: np.ndarray, seed: int) -> dict[str, object]:
    """What scikit-learn makes of it."""
    model = BayesianGaussianMixture(n_components=20, covariance_type="spherical", max_iter=500, random_state=seed)
    began = time.process_time()
    model.fit(X)
    seconds = time.process_time() - began
    used = model.weights_ * len(X) >= 1.0
    curve = [(seconds, float(model.score(Y)))]
    about = {"method": "scikit-learn", "seed": seed, "K": int(used.sum()), "found": found(model.means_[used])}
    return about | {"CPU seconds": seconds, "curve": curve}


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
    table = []
    for name in (*METHODS, "scikit-learn"):
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
    """Held-out score by CPU time (Figure 2)."""
    picture.set_size_inches(6.0, 3.6)
    axes = picture.subplots()
    for i, name in enumerate((*METHODS, "scikit-learn")):
        for r in (r for r in outcome.runs if r["method"] == name):
            label = name if r["seed"] == 0 else None
            axes.plot(*np.transpose(r["curve"]), "o-", color=f"C{i}", markersize=4, label=label)
    axes.set(xlabel="CPU seconds", ylabel="held-out nats per row", xscale="log", ylim=(-6.0, -4.6))
    axes.legend(fontsize=8)


EXPERIMENT = Experiment("sequential_nine", __doc__, measure, draw)

if __name__ == "__main__":
    EXPERIMENT.main()
