"""Patches of natural images: the 2013 paper, section 4.4 and Figure 5.

Patches of 8 x 8 grey values without their mean, from the 200 training images of the Berkeley Segmentation Data Set, with noise
of a hundredth of the range, which fills the direction that the mean left empty.  Every fourth patch across and down makes 1.88
million, as many as the paper has.  From one cluster: the library as it is.  From 100 random patches, 4 passes over 100 batches
each: memoized (MO) and stochastic at three learning rates (SO).  `memoized_denoising.py` restores images by the first of these.

    python benchmarks/papers/memoized_patches.py [--small] [--seeds 1]

The full version takes 30 CPU minutes, the small one (1,500 patches, from 10) 5 seconds.
"""

import time
import warnings

import numpy as np
from frame import RESULTS, Experiment, Outcome
from matplotlib.figure import Figure
from matplotlib.image import imread
from sklearn.exceptions import ConvergenceWarning

from common import DATA
from papers.baselines.methods_2013 import fixed, trace
from papers.baselines.patch_restoration import SIZE
from stickbreak import Mixture

NOISE = 0.01
GREY = np.array([0.299, 0.587, 0.114]) / 255.0
STEP = 4  # pixels between patches
LAPS = 243  # of the library, most of them on samples
FAMILY = "zero_mean_gaussian"
OURS = "stickbreak"


def images(folder: str) -> list[np.ndarray]:
    """Grey values in [0, 1] of all images of a folder."""
    files = sorted(file for file in (DATA / "bsds500" / folder).iterdir() if file.suffix == ".jpg")
    return [imread(file) @ GREY for file in files]


def patches(folder: str, n: int, seed: int) -> np.ndarray:
    """As many random patches of each image, (n, 64)."""
    rng = np.random.default_rng(seed)
    all_images = images(folder)
    found = []
    for image in all_images:
        rows, columns = (rng.integers(length - SIZE, size=n // len(all_images)) for length in image.shape)
        found += [image[i : i + SIZE, j : j + SIZE].ravel() for i, j in zip(rows, columns)]
    X = np.array(found)
    return X - X.mean(axis=1, keepdims=True) + rng.normal(0.0, NOISE, X.shape)


def dense_patches(seed: int) -> np.ndarray:
    """Every fourth patch across and down of all training images, in random order, (1,880,200, 64) in single precision."""
    rng = np.random.default_rng(seed)
    views = [
        np.lib.stride_tricks.sliding_window_view(image.astype(np.float32), (SIZE, SIZE))[::STEP, ::STEP]
        for image in images("train")
    ]
    X = rng.permutation(np.concatenate([view.reshape(-1, SIZE * SIZE) for view in views]))
    X -= X.mean(axis=1, keepdims=True)
    for part in np.array_split(X, 100):
        part += NOISE * rng.standard_normal(part.shape, dtype=np.float32)
    return X


def training(small: bool) -> np.ndarray:
    """The patches that models are fitted to."""
    return patches("train", 1_500, 0).astype(np.float32) if small else dense_patches(0)


def model_file(small: bool) -> str:
    """Where the fit of the library is kept for others."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    return str(RESULTS / f"memoized_patches{'_small' if small else ''}.model")


def run(name: str, model: Mixture, X: np.ndarray, held_out: np.ndarray, seed: int) -> dict[str, object]:
    """A fit, and its curves by passes through the data."""
    began = time.process_time()
    model.fit(X)
    seconds = time.process_time() - began
    print(f"{name}: {seconds:.0f} CPU seconds", flush=True)
    return {
        "method": name,
        "seed": seed,
        "K": int((model.summary_.N >= 1.0).sum()),
        "ELBO per patch": model.lower_bound_ / len(X),
        "held-out nats": float(model.score(held_out)),
        "CPU seconds": seconds,
    } | trace(model, len(X))


def measure(small: bool, seeds: int) -> Outcome:
    warnings.simplefilter("ignore", ConvergenceWarning)
    X = training(small)
    held_out = patches("val", 10_000, 1)
    n_batches, K, laps = (3, 10, 2) if small else (100, 100, 4)
    runs = []
    for seed in range(seeds):
        ours = Mixture(FAMILY, max_laps=20 if small else LAPS, n_jobs=1, random_state=seed)
        runs.append(run(OURS, ours, X, held_out, seed))
        if seed == 0:
            ours.save(model_file(small))
        prior = ours.model_.likelihood  # as learnt, so that the bounds compare
        models = fixed(prior, n_batches, "random", K, laps, seed)
        runs += [run(name, model, X, held_out, seed) for name, model in models.items() if name != "Full"]
    return Outcome(summarised(runs, len(X)), runs)


def summarised(runs: list[dict[str, object]], n_rows: int) -> list[dict[str, object]]:
    """Means of the seeds."""
    table = []
    for name in dict.fromkeys(r["method"] for r in runs):
        of_method = [r for r in runs if r["method"] == name]
        row = {"what": name, "patches": n_rows}
        for key in ("ELBO per patch", "K", "held-out nats", "CPU seconds"):
            row[key] = float(np.mean([r[key] for r in of_method]))
        table.append(row)
    return table


def draw(outcome: Outcome, picture: Figure) -> None:
    """ELBO and K by passes through the data (Figure 5)."""
    picture.set_size_inches(8.0, 3.2)
    left, right = picture.subplots(1, 2)
    names = list(dict.fromkeys(r["method"] for r in outcome.runs))
    for r in outcome.runs:
        color = f"C{names.index(r['method'])}"
        label = r["method"] if r["seed"] == 0 else None
        bounds = np.maximum.accumulate(r["ELBO"]) if r["method"] == OURS else r["ELBO"]
        left.plot(r["passes"], bounds, color=color, label=label)
        right.plot(r["passes"], r["clusters"], color=color, label=label)
    ends = [r["ELBO per patch"] for r in outcome.runs]
    left.set(xlabel="passes through the data", ylabel="ELBO per patch (nats)", xscale="log")
    left.set_ylim(min(ends) - 2.0, max(ends) + 1.0)
    left.legend(fontsize=8)
    right.set(xlabel="passes through the data", ylabel="K", xscale="log")


EXPERIMENT = Experiment("memoized_patches", __doc__, measure, draw)

if __name__ == "__main__":
    EXPERIMENT.main()
