"""Patches of natural images and denoising: the 2013 paper, section 4.4.

Patches of 8 x 8 grey values without their mean, from training images of the Berkeley Segmentation Data Set, with noise of a
hundredth of the range, which fills the direction that the mean left empty; the paper has 1.88 million patches of 200 images.
Validation images with noise of 25/255 are restored as in Zoran and Weiss (2011), beside EM with 200 components and some
iterations from k-means.  The paper restores 30 whole images, this the middle 128 x 128 pixels of 5.

    python benchmarks/papers/memoized_patches.py [--small] [--seeds 1]

The full version (40,000 patches) takes about 5 CPU minutes, the small one (1,500 patches, 10 components, 1 image) 10 seconds.
"""

import time
import warnings

import numpy as np
from frame import Experiment, Outcome
from matplotlib.figure import Figure
from matplotlib.image import imread
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from common import DATA
from papers.baselines.patch_restoration import SIZE, denoised, psnr
from stickbreak import Mixture

NOISE = 0.01
SIGMA = 25.0 / 255.0
GREY = np.array([0.299, 0.587, 0.114]) / 255.0
CROP = 128
ITERATIONS = 10  # of EM


def images(folder: str) -> list[np.ndarray]:
    """Grey values in [0, 1] of all images of a folder."""
    return [imread(file) @ GREY for file in sorted((DATA / "bsds500" / folder).glob("*.jpg"))]


def patches(folder: str, n: int, seed: int) -> np.ndarray:
    """As many patches of each image, (n, 64)."""
    rng = np.random.default_rng(seed)
    all_images = images(folder)
    found = []
    for image in all_images:
        rows, columns = (rng.integers(length - SIZE, size=n // len(all_images)) for length in image.shape)
        found += [image[i : i + SIZE, j : j + SIZE].ravel() for i, j in zip(rows, columns)]
    X = np.array(found)
    return X - X.mean(axis=1, keepdims=True) + rng.normal(0.0, NOISE, X.shape)


def middle(image: np.ndarray) -> np.ndarray:
    """The pixels in the middle of an image."""
    top, left = ((length - CROP) // 2 for length in image.shape)
    return image[top : top + CROP, left : left + CROP]


def run(
    name: str,
    model: Mixture | GaussianMixture,
    X: np.ndarray,
    held_out: np.ndarray,
    clean: list[np.ndarray],
    seed: int,
) -> dict[str, object]:
    """A fit, its held-out score, and what it makes of noisy images."""
    began = time.process_time()
    fit = model.fit(X)
    seconds = time.process_time() - began
    rng = np.random.default_rng(1)
    noisy = [image + rng.normal(0.0, SIGMA, image.shape) for image in clean]
    without = np.maximum(fit.weights_, 1e-300)
    covariances = fit.covariances_ - NOISE**2 * np.eye(SIZE**2)
    restored = [denoised(image, without, covariances, SIGMA) for image in noisy]
    laps = getattr(fit, "history_", [])
    return {
        "method": name,
        "seed": seed,
        "K": len(fit.weights_),
        "held-out nats": float(fit.score(held_out)),
        "noisy PSNR": float(np.mean([psnr(a, b) for a, b in zip(noisy, clean)])),
        "PSNR": float(np.mean([psnr(a, b) for a, b in zip(restored, clean)])),
        "CPU seconds": seconds,
        "clusters": [lap.n_clusters for lap in laps if not lap.sample_rows],
        "images": [np.round(image, 3).tolist() for image in (clean[0], noisy[0], restored[0])],
    }


def measure(small: bool, seeds: int) -> Outcome:
    warnings.simplefilter("ignore", ConvergenceWarning)
    n = 1_500 if small else 40_000
    components = 10 if small else 200
    clean = [middle(image) for image in images("val")[: 1 if small else 5]]
    X = patches("train", n, 0)
    held_out = patches("val", 10_000, 1)
    runs = []
    for seed in range(seeds):
        ours = Mixture("zero_mean_gaussian", random_state=seed)
        peer = GaussianMixture(components, max_iter=ITERATIONS, random_state=seed)
        runs.append(run("stickbreak", ours, X, held_out, clean, seed))
        runs.append(run("scikit-learn", peer, X, held_out, clean, seed))
    facts = {
        "PSNR (dB)": ("PSNR", 28.537),
        "components": ("K", "200 (its peer)"),
        "held-out nats per patch": ("held-out nats", "not given"),
        "CPU seconds": ("CPU seconds", "not given"),
    }
    mean = {
        name: {key: float(np.mean([r[key] for r in runs if r["method"] == name])) for key, _ in facts.values()}
        for name in ("stickbreak", "scikit-learn")
    }
    table = [
        {"what": what, "paper": paper, "ours": mean["stickbreak"][key], "peer": mean["scikit-learn"][key]}
        for what, (key, paper) in facts.items()
    ]
    return Outcome(table, runs)


def draw(outcome: Outcome, picture: Figure) -> None:
    """An image, what noise made of it, and what each model made of that."""
    ours, peer = outcome.runs[:2]
    clean, noisy, restored = ours["images"]
    shown = {
        "clean": clean,
        "noisy": noisy,
        f"stickbreak, K = {ours['K']}": restored,
        f"scikit-learn, K = {peer['K']}": peer["images"][2],
    }
    picture.set_size_inches(8.0, 2.4)
    for axes, (title, image) in zip(picture.subplots(1, 4), shown.items()):
        decibels = "" if title == "clean" else f"\n{psnr(np.array(image), np.array(clean)):.2f} dB"
        axes.imshow(image, cmap="gray", vmin=0.0, vmax=1.0)
        axes.set_title(title + decibels, fontsize=9)
        axes.set_axis_off()


EXPERIMENT = Experiment("memoized_patches", __doc__, measure, draw)

if __name__ == "__main__":
    EXPERIMENT.main()
