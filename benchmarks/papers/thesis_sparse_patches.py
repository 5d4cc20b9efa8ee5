"""L-sparse responsibilities of mixtures: the thesis, section 7.2.

Patches of 8 x 8 pixels without their mean, a zero-mean Gaussian likelihood, concentration 10, K = 100 clusters that begin with
random patches and stay, 10 batches, laps as published.  Rows have responsibilities for L clusters at most; 10,000 patches of
other images are scored.  The thesis has 3.6 million patches and K up to 1,600; this 20,000.  scikit-learn has EM.

    python benchmarks/papers/thesis_sparse_patches.py [--small] [--seeds 1]

The full version takes 3 CPU minutes, the small one (2,000 patches, K = 20) 10 seconds.
"""

import time
import warnings

import numpy as np
from frame import Experiment, Outcome
from matplotlib.figure import Figure
from memoized_patches import patches
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from stickbreak import DataWarning, Mixture
from stickbreak.inference import Memoized

LEVELS = (1, 4, 16, None)  # L


def sparse(K: int, most_kept: int | None, laps: int, seed: int) -> Mixture:
    """As published."""
    return Mixture(
        "zero_mean_gaussian",
        concentration=10.0,
        algorithm=Memoized(accelerate=False),
        n_batches=10,
        init="random",
        n_init_clusters=K,
        moves=(),
        learn=False,
        max_laps=laps,
        most_kept=most_kept,
        candidates=None,
        n_jobs=1,
        random_state=seed,
    )


def run(
    name: str, model: Mixture | GaussianMixture, laps: int, X: np.ndarray, Y: np.ndarray, seed: int
) -> dict[str, object]:
    """A fit of so many laps."""
    began = time.process_time()
    model.fit(X)
    seconds = time.process_time() - began
    return {"method": name, "seed": seed, "laps": laps, "score": float(model.score(Y)), "CPU seconds": seconds}


def measure(small: bool, seeds: int) -> Outcome:
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", DataWarning)
    n, K, steps = (2_000, 20, (2, 4)) if small else (20_000, 100, (1, 2, 5, 10, 20))
    X = patches("train", n, 0)
    Y = patches("val", 2_000 if small else 10_000, 1)
    sparse(2, 1, 1, 0).fit(X[:500])  # compiles
    runs = []
    for seed in range(seeds):
        for L in LEVELS:
            name = f"L = {K if L is None else L}"
            runs += [run(name, sparse(K, L, laps, seed), laps, X, Y, seed) for laps in steps]
        for laps in steps:
            peer = GaussianMixture(K, max_iter=laps, init_params="random_from_data", random_state=seed)
            runs.append(run("scikit-learn", peer, laps, X, Y, seed))
    return Outcome(summarised(runs, steps), runs)


def summarised(runs: list[dict[str, object]], steps: tuple[int, ...]) -> list[dict[str, object]]:
    """CPU seconds for a lap, and the score after the last, of each method."""
    table = []
    for name in dict.fromkeys(r["method"] for r in runs):
        last, first = (
            {
                key: float(np.mean([r[key] for r in runs if r["method"] == name and r["laps"] == laps]))
                for key in COLUMNS
            }
            for laps in (steps[-1], steps[0])
        )
        lap = (last["CPU seconds"] - first["CPU seconds"]) / (steps[-1] - steps[0])
        table.append({"what": name, "held-out nats": last["score"], "CPU seconds a lap": lap})
    return table


COLUMNS = ("score", "CPU seconds")


def draw(outcome: Outcome, picture: Figure) -> None:
    """Held-out score by CPU time (Figure 7.2)."""
    picture.set_size_inches(5.5, 3.4)
    axes = picture.subplots()
    for name in dict.fromkeys(r["method"] for r in outcome.runs):
        of_method = [r for r in outcome.runs if r["method"] == name and r["seed"] == 0]
        axes.plot(
            [r["CPU seconds"] for r in of_method], [r["score"] for r in of_method], "o-", markersize=4, label=name
        )
    axes.set(xlabel="CPU seconds", ylabel="held-out nats per patch", xscale="log")
    axes.legend(fontsize=8)


EXPERIMENT = Experiment("thesis_sparse_patches", __doc__, measure, draw)

if __name__ == "__main__":
    EXPERIMENT.main()
