"""Held-out scores of variational inference and Gibbs sampling: Blei and Jordan 2006, section 5, Table 1 and Figure 3.

100 rows of a Dirichlet-process mixture of Gaussians with a known covariance, 0.9^|i - j|, and 100 more to score, each as the
101st; 10 data sets for each number of columns.  The means of the clusters have the same covariance times 10 / D, so that pairs
of them are equally far apart for all D; the paper does not say how it scaled them, and its scores, of data on another scale,
compare only within a row.  As published, variational inference has 20 clusters, 20 starts by rows in random order, and stops
at a relative change of 1e-10.  A sampler has converged after a burn-in of 10 times the autocorrelation time of the size of its
largest cluster, with 25 draws as far apart.  scikit-learn is told the covariance by a prior of a million degrees of freedom.

    python benchmarks/papers/variational_dp.py [--small] [--seeds 10]

The full version takes 5 CPU minutes, the small one (5 and 20 columns, 1 data set) 6 seconds.
"""

import time
import warnings

import arviz
import numpy as np
from frame import Experiment, Outcome
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from papers.baselines.predictive import log_predictive
from stickbreak import DataWarning, Mixture
from stickbreak.allocations import TruncatedDirichletProcess
from stickbreak.inference import Gibbs, Memoized
from stickbreak.likelihoods import KnownCovarianceGaussian

ROWS = 100  # to fit, and to score
SPREAD = 10.0  # half the mean squared distance of two means, in units of the covariance
TRUNCATION, STARTS = 20, 20
SURE = 1e6  # degrees of freedom with which scikit-learn is told the covariance
KEPT, BURN_IN = 25, 10  # draws, and autocorrelation times before them
PAPER = {  # variational, collapsed, truncated
    5: (-147.96, -148.08, -147.93),
    10: (-266.59, -266.29, -265.89),
    20: (-494.12, -492.32, -491.96),
    30: (-721.55, -720.05, -720.02),
    40: (-943.39, -941.04, -940.71),
    50: (-1151.01, -1148.51, -1147.48),
}
NAMES = ("variational", "collapsed Gibbs", "blocked Gibbs", "stickbreak", "scikit-learn")


def rows_of(D: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit and to score, (100, D) each, by the Polya urn with a concentration of 1."""
    rng = np.random.default_rng(seed)
    labels = [0]
    for _ in range(2 * ROWS - 1):
        chances = np.append(np.bincount(labels), 1.0)
        labels.append(int(rng.choice(len(chances), p=chances / chances.sum())))
    factor = np.linalg.cholesky(covariance(D))
    means = np.sqrt(SPREAD / D) * rng.standard_normal((max(labels) + 1, D)) @ factor.T
    X = means[rng.permutation(labels)] + rng.standard_normal((2 * ROWS, D)) @ factor.T
    return X[:ROWS], X[ROWS:]


def covariance(D: int) -> np.ndarray:
    """That of a first-order autoregressive process."""
    return 0.9 ** np.abs(np.subtract.outer(np.arange(D), np.arange(D)))


def mixture(D: int, seed: int, **parameters: object) -> Mixture:
    likelihood = KnownCovarianceGaussian(covariance(D), mean=0.0, mean_precision=D / SPREAD)
    return Mixture(likelihood, learn=False, random_state=seed, n_jobs=1, **parameters)


def variational(D: int, seed: int) -> Mixture:
    """As published."""
    return mixture(
        D,
        seed,
        allocation=TruncatedDirichletProcess(TRUNCATION, 1.0),
        algorithm=Memoized(accelerate=False),
        init="permutation",
        n_init=STARTS,
        n_init_clusters=TRUNCATION,
        n_batches=1,
        moves=(),
        tol=1e-8,
    )


def autocorrelation_time(labels: np.ndarray) -> float:
    """Sweeps that are worth one independent draw of the size of the largest cluster."""
    sizes = np.array([[np.bincount(partition).max() for partition in labels]], dtype=float)
    return len(labels) / float(arviz.ess(sizes)) if np.ptp(sizes) > 0.0 else 1.0


def sampled(D: int, seed: int, draws: int, kind: str) -> tuple[float, float]:
    """Score and CPU seconds to converge of a sampler."""
    X, Y = rows_of(D, seed)
    gibbs = Gibbs(draws, draws // 4, n_chains=1, kind=kind, split_merge=False, truncation=TRUNCATION)
    began = time.process_time()
    fit = mixture(D, seed, algorithm=gibbs).fit(X)
    seconds = (time.process_time() - began) / gibbs.n_sweeps
    labels = fit.draws_["labels"][0]
    apart = autocorrelation_time(labels)
    kept = np.linspace(0, draws - 1, KEPT).astype(int)
    score = log_predictive(fit.model_.likelihood, X, labels[kept], Y).sum()
    return float(score), seconds * apart * (BURN_IN + KEPT)


def fitted(model: Mixture | BayesianGaussianMixture, D: int, seed: int) -> tuple[float, float]:
    """Score and CPU seconds of a fit."""
    X, Y = rows_of(D, seed)
    began = time.process_time()
    model.fit(X)
    seconds = time.process_time() - began
    scores = model.score_samples(Y, unseen=True) if isinstance(model, Mixture) else model.score_samples(Y)
    return float(scores.sum()), seconds


def run(D: int, seed: int, draws: int) -> list[dict[str, object]]:
    """All methods on one data set."""
    peer = BayesianGaussianMixture(
        n_components=TRUNCATION,
        covariance_type="tied",
        weight_concentration_prior=1.0,
        mean_precision_prior=D / SPREAD,
        mean_prior=np.zeros(D),
        degrees_of_freedom_prior=SURE,
        covariance_prior=SURE * covariance(D),
        max_iter=1000,
        random_state=seed,
    )
    outcomes = (
        fitted(variational(D, seed), D, seed),
        sampled(D, seed, draws, "collapsed"),
        sampled(D, seed, draws, "blocked"),
        fitted(mixture(D, seed), D, seed),
        fitted(peer, D, seed),
    )
    return [
        {"method": name, "D": D, "seed": seed, "score": score, "seconds": seconds}
        for name, (score, seconds) in zip(NAMES, outcomes)
    ]


def measure(small: bool, seeds: int) -> Outcome:
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", DataWarning)
    columns = (5, 20) if small else tuple(PAPER)
    draws = 200 if small else 2_000
    run(5, 0, 10)  # compiles
    runs = [found for D in columns for seed in range(seeds) for found in run(D, seed, draws)]
    table = []
    for key in ("score", "seconds"):
        for D in columns:
            published = " / ".join(f"{score}" for score in PAPER[D]) if key == "score" else ""
            means = {name: mean(runs, key, name, D)[0] for name in NAMES}
            table.append({"what": f"D = {D}, {key}", "paper": published} | means)
    return Outcome(table, runs)


def mean(runs: list[dict[str, object]], key: str, name: str, D: int) -> tuple[float, float]:
    """Mean over the data sets, and its standard error."""
    values = np.array([r[key] for r in runs if r["method"] == name and r["D"] == D])
    return float(values.mean()), float(values.std() / np.sqrt(max(len(values) - 1, 1)))


def draw(outcome: Outcome, picture: Figure) -> None:
    """Scores less those of collapsed Gibbs sampling, and time to converge (Figure 3)."""
    picture.set_size_inches(8.0, 3.2)
    left, right = picture.subplots(1, 2)
    columns = sorted({r["D"] for r in outcome.runs})
    base = {(r["D"], r["seed"]): r["score"] for r in outcome.runs if r["method"] == NAMES[1]}
    gains = [r | {"gain": (r["score"] - base[r["D"], r["seed"]]) / ROWS} for r in outcome.runs]
    for i, name in enumerate(NAMES):
        gain, error = np.transpose([mean(gains, "gain", name, D) for D in columns])
        left.errorbar(columns, gain, error, fmt="o-", color=f"C{i}", label=name, markersize=4)
        seconds, error = np.transpose([mean(outcome.runs, "seconds", name, D) for D in columns])
        right.errorbar(columns, seconds, error, fmt="o-", color=f"C{i}", label=name, markersize=4)
    left.set(xlabel="columns D", ylabel="nats per row less collapsed Gibbs")
    right.set(xlabel="columns D", ylabel="CPU seconds to converge", yscale="log")
    right.legend(fontsize=7)


EXPERIMENT = Experiment("variational_dp", __doc__, measure, draw, seeds=10)

if __name__ == "__main__":
    EXPERIMENT.main()
