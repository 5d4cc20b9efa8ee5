"""Images restored by a mixture of patches: the 2013 paper, end of section 4.4.

30 whole validation images of the Berkeley Segmentation Data Set (every third; the paper does not name its 30) with noise of
25/255, restored as in Zoran and Weiss (2011, EPLL): five times all overlapping patches are replaced by their posterior means
under their most probable clusters, and averaged.  The library's mixture is the one that `memoized_patches.py` fitted to 1.88
million patches (it is fitted here if that has not run).  Beside it EM with 200 components, 10 iterations from k-means on every
tenth of these patches.

    python benchmarks/papers/memoized_denoising.py [--small] [--seeds 1]

The full version takes 15 CPU minutes after the other command, the small one (1,500 patches, 10 components, 128 x 128 pixels of
one image) 5 seconds.
"""

import time
import warnings
from pathlib import Path

import numpy as np
from frame import Experiment, Outcome
from matplotlib.figure import Figure
from memoized_patches import FAMILY, NOISE, OURS, images, model_file, patches, training
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from papers.baselines.patch_restoration import SIZE, Patches, denoised, psnr
from stickbreak import Mixture, load

SIGMA = 25.0 / 255.0
CROP = 128  # pixels of an image that are drawn, and all that the small version restores
COMPONENTS, ITERATIONS = 200, 10  # of the peer
PEER = "scikit-learn"
DRAWN = 3  # images


def fitted(small: bool, X: np.ndarray) -> Mixture:
    """The library's mixture."""
    file = Path(model_file(small))
    if not file.exists():
        Mixture(FAMILY, n_jobs=1, random_state=0).fit(X).save(file)
    return load(file)


def middle(image: np.ndarray) -> np.ndarray:
    """The pixels in the middle of an image."""
    top, left = ((length - CROP) // 2 for length in image.shape)
    return image[top : top + CROP, left : left + CROP]


def restored(
    name: str, model: Mixture | GaussianMixture, pairs: list[tuple[np.ndarray, np.ndarray]]
) -> dict[str, object]:
    """What a model makes of images, each without and with noise."""
    known = Patches(np.maximum(model.weights_, 1e-300), model.means_, model.covariances_ - NOISE**2 * np.eye(SIZE**2))
    began = time.process_time()
    found = [denoised(noisy, known, SIGMA) for _, noisy in pairs]
    seconds = time.process_time() - began
    print(f"{name}: restored in {seconds:.0f} CPU seconds", flush=True)
    return {
        "method": name,
        "K": len(model.weights_),
        "PSNR": [psnr(image, clean) for image, (clean, _) in zip(found, pairs)],
        "CPU seconds, images": seconds,
        "images": [np.round(middle(image), 3).tolist() for image in found[:DRAWN]],
    }


def measure(small: bool, seeds: int) -> Outcome:
    warnings.simplefilter("ignore", ConvergenceWarning)
    X = training(small)
    ours = fitted(small, X)
    began = time.process_time()
    components = 10 if small else COMPONENTS
    peer = GaussianMixture(components, max_iter=ITERATIONS, random_state=0).fit(X if small else X[::10])
    seconds = time.process_time() - began
    del X
    clean = [middle(image) for image in images("val")[:1]] if small else images("val")[::3][:30]
    rng = np.random.default_rng(1)
    pairs = [(image, image + rng.normal(0.0, SIGMA, image.shape)) for image in clean]
    held_out = patches("val", 10_000, 1)
    runs = [restored(OURS, ours, pairs), restored(PEER, peer, pairs)]
    runs[0]["held-out nats"] = float(ours.score(held_out))
    runs[1] |= {"held-out nats": float(peer.score(held_out)), "CPU seconds": seconds}
    drawn = [[np.round(middle(image), 3).tolist() for image in pair] for pair in pairs[:DRAWN]]
    runs.append({"method": "noise", "PSNR": [psnr(noisy, image) for image, noisy in pairs], "images": drawn})
    return Outcome(summarised(*runs[:2]), runs)


def summarised(ours: dict[str, object], peer: dict[str, object]) -> list[dict[str, object]]:
    """The paper's figure beside those of both models."""
    gains = np.subtract(ours["PSNR"], peer["PSNR"])
    facts = [
        ("PSNR (dB), mean", 28.537, float(np.mean(ours["PSNR"])), float(np.mean(peer["PSNR"]))),
        ("images", 30, len(ours["PSNR"]), len(peer["PSNR"])),
        ("clusters", "", ours["K"], peer["K"]),
        ("held-out nats per patch", "", ours["held-out nats"], peer["held-out nats"]),
        ("images that it restores better", "", int((gains > 0.0).sum()), int((gains < 0.0).sum())),
        ("CPU seconds an image", "", *(r["CPU seconds, images"] / len(gains) for r in (ours, peer))),
    ]
    return [{"what": what, "paper": paper, "ours": a, "peer": b} for what, paper, a, b in facts]


def draw(outcome: Outcome, picture: Figure) -> None:
    """The middle of some images, what noise made of it, and what each model made of that."""
    ours, peer, noise = outcome.runs
    picture.set_size_inches(8.0, 2.2 * len(noise["images"]))
    rows = picture.subplots(len(noise["images"]), 4, squeeze=False)
    for i, (row, (clean, noisy)) in enumerate(zip(rows, noise["images"])):
        shown = {
            "clean": clean,
            "noisy": noisy,
            f"stickbreak, K = {ours['K']}": ours["images"][i],
            f"scikit-learn, K = {peer['K']}": peer["images"][i],
        }
        for axes, (title, image) in zip(row, shown.items()):
            decibels = "" if title == "clean" else f"\n{psnr(np.array(image), np.array(clean)):.2f} dB"
            axes.imshow(image, cmap="gray", vmin=0.0, vmax=1.0)
            axes.set_title(title + decibels, fontsize=8)
            axes.set_axis_off()


EXPERIMENT = Experiment("memoized_denoising", __doc__, measure, draw)

if __name__ == "__main__":
    EXPERIMENT.main()
