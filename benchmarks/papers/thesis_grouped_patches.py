"""Patches grouped by image, a hierarchical Dirichlet process beside a Dirichlet process: the thesis, section 5.6.3.

Patches of 8 x 8 grey values without their mean from training images of the Berkeley Segmentation Data Set, a zero-mean Gaussian
likelihood.  A Dirichlet process (DP) has the same weights in all images, a hierarchical one (HDP) those of each image.  As
published: from K random patches, memoized, with merges and deletes, concentrations 10 of the shares and 0.5 of the images.
Then the library's DP as it is, from one cluster, and HDPs with the prior that it learnt, begun with its clusters, with births
and without; and, without moves, one begun with the clusters of the published HDP: its ELBO says which the bound prefers.

Of other images half of the patches say what the image's weights are, and the other half is scored (Thesis Eq. 5.59), with the
weights of the image or with those of all.  The thesis has 3.5 million patches of 400 images, 50 held out; this 40 patches of
each of 100 images, and 200 of each of 50 held out.  scikit-learn has EM with 20 components.

    python benchmarks/papers/thesis_grouped_patches.py [--small] [--seeds 1]

The full version takes a CPU minute a seed, the small one (20 images of 20 patches) 6 seconds.
"""

import time
import warnings

import numpy as np
from frame import Experiment, Outcome
from matplotlib.figure import Figure
from memoized_patches import NOISE, images
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from stickbreak import DataWarning, Mixture, TopicModel
from stickbreak.inference import Memoized
from stickbreak.likelihoods import Likelihood

SIZE = 8
FAMILY = "zero_mean_gaussian"
ALL = "all images"
MOVES = {"HDP, no births": ("merge", "delete"), "HDP, stickbreak": ("birth", "merge", "delete")}
OTHER = "published clusters, prior of stickbreak"
TOPICS, SAMPLES, EXAMPLES = 4, 6, 3  # drawn: clusters of an image, patches of each, images


def grouped(folder: str, n_images: int, n_patches: int, seed: int) -> np.ndarray:
    """As many patches of each image, (n_images, n_patches, 64)."""
    rng = np.random.default_rng(seed)
    found = []
    for image in images(folder)[:n_images]:
        i, j = (rng.integers(length - SIZE, size=n_patches) for length in image.shape)
        at = np.arange(SIZE)
        found.append(image[i[:, None, None] + at[:, None], j[:, None, None] + at].reshape(n_patches, -1))
    X = np.array(found)
    return X - X.mean(axis=2, keepdims=True) + rng.normal(0.0, NOISE, X.shape)


def published(seed: int, K: int, laps: int) -> dict[str, Mixture | TopicModel]:
    """Both processes as in the thesis."""
    of = {
        "algorithm": Memoized(accelerate=False),
        "init": "random",
        "moves": ("merge", "delete"),
        "n_batches": 10,
        "max_laps": laps,
        "concentration": 10.0,
        "n_jobs": 1,
        "random_state": seed,
    }
    return {
        "DP, published": Mixture(FAMILY, n_init_clusters=K, **of),
        "HDP, published": TopicModel(FAMILY, n_init_topics=K, document_concentration=0.5, **of),
    }


def from_clusters(
    likelihood: Likelihood, labels: np.ndarray, moves: tuple[str, ...], seed: int, laps: int
) -> TopicModel:
    """A hierarchical process with a prior, from clusters of the rows."""
    return TopicModel(
        likelihood,
        document_concentration="learn",
        init=labels,
        moves=moves,
        max_laps=laps,
        n_jobs=1,
        random_state=seed,
    )


def clusters_of(fit: TopicModel, X: np.ndarray) -> np.ndarray:
    """The most probable cluster of each row of images X, given the weights of its image; those without rows are left out."""
    rows = np.concatenate(X)
    weights = np.repeat(np.maximum(fit.transform(rows, lengths=lengths(X)), 1e-300), X.shape[1], axis=0)
    scores = fit.model_.likelihood.log_predictive(rows, fit.summary_.N, fit.summary_.S) + np.log(weights)
    return np.unique(scores.argmax(axis=1), return_inverse=True)[1]


def run(
    name: str, model: Mixture | TopicModel, X: np.ndarray, given: np.ndarray, scored: np.ndarray, seed: int
) -> dict[str, object]:
    """A fit, and its held-out nats per patch with the weights of each image, and with the same for all."""
    rows = np.concatenate(X)
    began = time.process_time()
    fit = model.fit(rows, lengths=lengths(X)) if isinstance(model, TopicModel) else model.fit(rows)
    seconds = time.process_time() - began
    likelihood = fit.model_.likelihood
    N, S = fit.summary_.N, fit.summary_.S
    log_densities = likelihood.log_predictive(np.concatenate(scored), N, S)
    of_all = np.tile(N / N.sum(), (len(given), 1))
    weights = {ALL: of_all}
    if isinstance(fit, TopicModel):
        weights["each image"] = fit.transform(np.concatenate(given), lengths=lengths(given))
    covariances = likelihood.posterior(N, S).covariances
    return {
        "method": name,
        "seed": seed,
        "K": fit.n_topics_ if isinstance(fit, TopicModel) else fit.n_clusters_,
        "ELBO": fit.lower_bound_,
        "CPU seconds": seconds,
        "clusters": [lap.n_clusters for lap in fit.history_ if not lap.sample_rows],
        "scores": {which: score(log_densities, w, scored.shape[1]) for which, w in weights.items()},
        "patches": patches_of(covariances, weights.get("each image", of_all[:1])),
    }


def lengths(X: np.ndarray) -> np.ndarray:
    """Patches of each image."""
    return np.full(len(X), X.shape[1])


def score(log_densities: np.ndarray, weights: np.ndarray, n_patches: int) -> float:
    """Mean log density of patches with log densities (n, K) in clusters, under weights of each image (images, K)."""
    b = np.repeat(np.maximum(weights, 1e-300), n_patches, axis=0)
    return float(logsumexp(log_densities, b=b, axis=1).mean())


def patches_of(covariances: np.ndarray, weights: np.ndarray) -> list[list[float]]:
    """Some patches of the clusters with the largest weights in some images, those whose largest weights are most unlike."""
    rng = np.random.default_rng(0)
    chosen = [0]
    while len(chosen) < min(EXAMPLES, len(weights)):
        apart = np.abs(weights[:, None] - weights[chosen]).sum(axis=2).min(axis=1)
        chosen.append(int(apart.argmax()))
    found = []
    for image in weights[chosen]:
        top = np.argsort(-image)[:TOPICS]
        found.append([rng.multivariate_normal(np.zeros(SIZE**2), covariances[k], SAMPLES) for k in top])
    return np.round(found, 3).tolist()


def peer(K: int, X: np.ndarray, scored: np.ndarray, seed: int) -> dict[str, object]:
    """scikit-learn's mixture."""
    began = time.process_time()
    model = GaussianMixture(K, reg_covar=NOISE**2, random_state=seed).fit(np.concatenate(X))
    seconds = time.process_time() - began
    scores = {ALL: float(model.score(np.concatenate(scored)))}
    return {"method": "scikit-learn", "seed": seed, "K": K, "CPU seconds": seconds, "scores": scores}


def measure(small: bool, seeds: int) -> Outcome:
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", DataWarning)
    n_images, n_patches, K, laps = (20, 20, 10, 5) if small else (100, 40, 50, 40)
    X = grouped("train", n_images, n_patches, 0)
    given, scored = np.split(grouped("val", 10 if small else 50, 200, 1), 2, axis=1)
    runs = []
    for seed in range(seeds):
        models = published(seed, K, laps)
        runs += [run(name, model, X, given, scored, seed) for name, model in models.items()]
        ours = Mixture(FAMILY, max_laps=20 if small else 1_000, n_jobs=1, random_state=seed)
        runs.append(run("DP, stickbreak", ours, X, given, scored, seed))
        prior = ours.model_.likelihood
        for name, moves in MOVES.items():
            runs.append(run(name, from_clusters(prior, ours.labels_, moves, seed, 5 * laps), X, given, scored, seed))
        theirs = from_clusters(prior, clusters_of(models["HDP, published"], X), (), seed, 5 * laps)
        runs.append(run(f"HDP, {OTHER}", theirs, X, given, scored, seed))
        runs.append(peer(4 if small else 20, X, scored, seed))
    return Outcome(summarised(runs), runs)


def summarised(runs: list[dict[str, object]]) -> list[dict[str, object]]:
    """Held-out nats per patch and ELBO of each run, means of K and CPU seconds."""
    table = []
    for name in dict.fromkeys(r["method"] for r in runs):
        of_method = [r for r in runs if r["method"] == name]
        row = {"what": name, "K": float(np.mean([r["K"] for r in of_method]))}
        for which in of_method[0]["scores"]:
            row[f"nats, weights of {which}"] = ", ".join(f"{r['scores'][which]:.2f}" for r in of_method)
        row["ELBO"] = ", ".join(f"{r['ELBO']:,.0f}" for r in of_method if "ELBO" in r)
        table.append(row | {"CPU seconds": float(np.mean([r["CPU seconds"] for r in of_method]))})
    return table


def draw(outcome: Outcome, picture: Figure) -> None:
    """K by laps, held-out scores, and patches of the largest clusters (Figure 5.8)."""
    picture.set_size_inches(9.0, 5.6)
    top, bottom = picture.subfigures(2, 1, height_ratios=(1.2, 1.0))
    left, right = top.subplots(1, 2)
    first = [r for r in outcome.runs if r["seed"] == 0 and OTHER not in r["method"]]
    floor = min(min(r["scores"].values()) for r in first if "clusters" in r) - 0.3
    for i, r in enumerate(first):
        if "clusters" in r:
            left.plot(np.arange(len(r["clusters"])) + 1, r["clusters"], label=r["method"])
        for which, marker in ((ALL, "o"), ("each image", "*")):
            if which in r["scores"]:
                at = r["scores"][which]
                right.plot(i, max(at, floor), marker if at >= floor else "v", color=f"C{i}", markersize=9)
    left.set(xlabel="laps over all patches", ylabel="K", xscale="log")
    left.legend(fontsize=8)
    right.set(ylabel="held-out nats per patch")
    right.set_xticks(range(len(first)), [r["method"] for r in first], rotation=20, ha="right", fontsize=8)
    for which, marker in ((ALL, "o"), ("each image", "*")):
        right.plot([], [], marker, color="k", label=f"weights of {which}")
    right.plot([], [], "v", color="k", label="below the picture")
    right.legend(fontsize=8)
    shown = {"DP, all images": next(r for r in first if r["method"] == "DP, stickbreak")["patches"][0]}
    of_images = next(r for r in first if r["method"] == "HDP, stickbreak")["patches"]
    shown |= {f"HDP, held-out image {i + 1}": patches for i, patches in enumerate(of_images)}
    for axes, (title, patches) in zip(bottom.subplots(1, len(shown)), shown.items()):
        axes.imshow(mosaic(np.array(patches)), cmap="gray", vmin=-0.5, vmax=0.5)
        axes.set_title(title, fontsize=8)
        axes.set_axis_off()


def mosaic(patches: np.ndarray) -> np.ndarray:
    """Patches (topics, samples, 64) as one image, a column for each topic, with gaps."""
    squares = patches.reshape(*patches.shape[:2], SIZE, SIZE)
    framed = np.pad(squares, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=0.5)
    return np.concatenate([np.concatenate(list(column), axis=0) for column in framed], axis=1)


EXPERIMENT = Experiment("thesis_grouped_patches", __doc__, measure, draw)

if __name__ == "__main__":
    EXPERIMENT.main()
