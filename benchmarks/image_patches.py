"""Patches of natural images, 8 x 8 grey values without their mean: rows left out, beside plain EM with 200 components.

100,000 patches of the training images of the Berkeley Segmentation Data Set, and 10,000 of its validation images, held out.
Noise of a hundredth of the range fills the direction that the mean left empty.  EM is scikit-learn's, from k-means.

    python benchmarks/image_patches.py [--seeds 1] [--iterations 30]
"""

import argparse
import time
import warnings

import numpy as np
from matplotlib.image import imread
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from common import DATA, report
from stickbreak import Mixture

SIZE, NOISE = 8, 0.01
GREY = np.array([0.299, 0.587, 0.114]) / 255.0


def patches(folder: str, n: int, seed: int) -> np.ndarray:
    """As many patches of each image, (n, 64)."""
    rng = np.random.default_rng(seed)
    files = sorted((DATA / "bsds500" / folder).glob("*.jpg"))
    found = []
    for file in files:
        image = imread(file) @ GREY
        y, x = (rng.integers(length - SIZE, size=n // len(files)) for length in image.shape)
        found += [image[i : i + SIZE, j : j + SIZE].ravel() for i, j in zip(y, x)]
    X = np.array(found)
    return X - X.mean(axis=1, keepdims=True) + rng.normal(0.0, NOISE, X.shape)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=30, help="of EM, at most")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, held_out = patches("train", 100_000, 0), patches("val", 10_000, 1)
    models = {
        "stickbreak": lambda seed: Mixture("zero_mean_gaussian", random_state=seed),
        "EM, 200": lambda seed: GaussianMixture(200, max_iter=options.iterations, random_state=seed),
    }
    rows = []
    for name, model in models.items():
        for seed in range(options.seeds):
            began = time.perf_counter()
            fit = model(seed).fit(X)
            seconds = time.perf_counter() - began
            found = {"K": len(fit.weights_), "held-out nats a row": fit.score(held_out), "seconds": seconds}
            rows.append({"model": name, "seed": seed} | found)
    report("image_patches", rows)


if __name__ == "__main__":
    main()
