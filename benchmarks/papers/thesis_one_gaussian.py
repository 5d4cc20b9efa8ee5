"""Merges stick, deletes do not: the thesis, section 4.4.1.

25,000 rows of one standard Gaussian, concentration 10, a prior variance of 1, begun with 5 random clusters.  As published, all
pairs of clusters are tried after each of 200 steps of coordinate ascent on all rows; then deletes of each cluster are tried,
too, in which the others absorb its rows in 50 steps.  A cluster of scikit-learn counts if it has the weight of a row.

    python benchmarks/papers/thesis_one_gaussian.py [--small] [--seeds 10]

The full version takes 2 CPU minutes, the small one (15,000 rows, 60 steps) 5 seconds.
"""

import warnings
from collections.abc import Iterable

import numpy as np
from frame import Experiment, Outcome
from matplotlib.figure import Figure
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from papers.baselines.full_ascent import FullAscent
from stickbreak import Mixture
from stickbreak.likelihoods import Gaussian
from stickbreak.model import Summary

START, CONCENTRATION = 5, 10.0
PRIOR = Gaussian(mean=0.0, degrees_of_freedom=3.0, scale=1.0)  # an expected variance of 1
EVERY = 20  # steps between tries of deletes
ABSORBING = 50  # steps within a delete
MOVES = [("merge",), ("delete",), ("merge", "delete")]


def merged(ascent: FullAscent, summary: Summary) -> Summary:
    """A step, and the best merge if one raises the bound."""
    after = ascent.step(summary)
    return max([after, *ascent.merges(summary)], key=ascent.model.bound)


def trace(ascent: FullAscent, summary: Summary, deletes: bool, steps: int) -> tuple[Summary, list[float], list[int]]:
    """Steps with merges, and perhaps deletes: the last summary, and bound and K after each step."""
    bounds, sizes = [], []
    for t in range(steps):
        summary = merged(ascent, summary)
        if deletes and t % EVERY == 0:
            summary = max([summary, *ascent.deletes(summary, ABSORBING)], key=ascent.model.bound)
        bounds.append(ascent.model.bound(summary))
        sizes.append(summary.K)
    return summary, bounds, sizes


def mixture(seed: int, **parameters: object) -> Mixture:
    return Mixture(PRIOR, concentration=CONCENTRATION, n_batches=1, learn=False, random_state=seed, **parameters)


def run(seed: int, n_rows: int, alone: int) -> dict[str, object]:
    """All methods from 5 clusters: as published steps with merges ``alone``, then half as many with deletes or not."""
    together = alone // 2
    X = np.random.default_rng(seed).normal(size=(n_rows, 1))
    start = mixture(seed, init="random", n_init_clusters=START, moves=(), max_laps=1).fit(X)
    ascent = FullAscent(start.model_, X)
    stuck, bounds, sizes = trace(ascent, start.summary_, False, alone)
    here = ascent.model.bound(stuck)
    posterior = ascent.model.likelihood.posterior(stuck.N, stuck.S)
    _, with_merges, sizes_merges = trace(ascent, stuck, False, together)
    _, with_deletes, sizes_deletes = trace(ascent, stuck, True, together)
    ours = {moves: mixture(seed, init=start, moves=moves).fit(X).n_clusters_ for moves in MOVES}
    peer = BayesianGaussianMixture(
        n_components=START,
        weight_concentration_prior=CONCENTRATION,
        init_params="random_from_data",
        max_iter=alone + together,
        random_state=seed,
    ).fit(X)
    return {
        "seed": seed,
        "steps": alone,
        "one cluster": ascent.model.bound(ascent.summary(np.ones((n_rows, 1)))),
        "merge": best(ascent, ascent.merges(stuck)) - here,
        "delete of 1 step": best(ascent, ascent.deletes(stuck, 1)) - here,
        "delete": best(ascent, ascent.deletes(stuck, ABSORBING)) - here,
        "bounds": {"merges": bounds + with_merges, "deletes": bounds + with_deletes},
        "clusters": {"merges": sizes + sizes_merges, "deletes": sizes + sizes_deletes},
        "stuck": np.column_stack([stuck.N / n_rows, posterior.means[:, 0], posterior.covariances[:, 0, 0]]).tolist(),
        "ours": {" and ".join(moves): K for moves, K in ours.items()},
        "peer": int((peer.weights_ * n_rows >= 1.0).sum()),
    }


def best(ascent: FullAscent, candidates: Iterable[Summary]) -> float:
    """The highest bound, NaN without candidates."""
    return max(map(ascent.model.bound, candidates), default=np.nan)


def spread(values: list[int]) -> str:
    """How often each number came."""
    return ", ".join(f"{n} in {values.count(n)}" for n in sorted(set(values)))


def measure(small: bool, seeds: int) -> Outcome:
    warnings.simplefilter("ignore", ConvergenceWarning)
    runs = [run(seed, *((15_000, 60) if small else (25_000, 200))) for seed in range(seeds)]
    last = {kind: spread([r["clusters"][kind][-1] for r in runs]) for kind in ("merges", "deletes")}
    ours = {moves: spread([r["ours"][moves] for r in runs]) for moves in runs[0]["ours"]}
    table = [
        {
            "what": "clusters left by merges, in runs",
            "paper": 3,
            "published": last["merges"],
            "ours": ours["merge"],
            "peer": spread([r["peer"] for r in runs]),
        },
        {"what": "deletes alone", "ours": ours["delete"]},
        {"what": "both", "paper": "fewer", "published": last["deletes"], "ours": ours["merge and delete"]},
        {"what": "best merge then (nats)", "paper": "below 0", "published": max(r["merge"] for r in runs)},
        {"what": "best delete then", "paper": "above 0", "published": min(r["delete"] for r in runs)},
        {"what": "best delete of one step", "published": max(r["delete of 1 step"] for r in runs)},
    ]
    return Outcome(table, runs)


def draw(outcome: Outcome, picture: Figure) -> None:
    """The bound while merges are stuck and deletes are not; the clusters where merges are stuck."""
    picture.set_size_inches(8.0, 3.2)
    left, right = picture.subplots(1, 2)
    for run, color in zip(outcome.runs[:5], ("C0", "C1", "C2", "C3", "C4")):
        for kind, style in (("merges", "--"), ("deletes", "-")):
            left.plot(np.array(run["bounds"][kind]) - run["one cluster"], style, color=color)
    left.axvline(outcome.runs[0]["steps"], color="0.7", linewidth=1.0)
    left.set(xlabel="step", ylabel="ELBO less that of one cluster (nats)", ylim=(-100.0, 5.0))
    left.plot([], [], "k--", label="merges")
    left.plot([], [], "k-", label="deletes from there on")
    left.legend(fontsize=8, loc="lower right")
    x = np.linspace(-4.0, 4.0, 300)
    for weight, mean, variance in outcome.runs[0]["stuck"]:
        right.plot(x, weight * norm.pdf(x, mean, np.sqrt(variance)))
    right.plot(x, norm.pdf(x), "k:", label="the one Gaussian")
    right.set(xlabel="x", ylabel="density", title="run 1, where merges are stuck")
    right.legend(fontsize=8)


EXPERIMENT = Experiment("thesis_one_gaussian", __doc__, measure, draw, seeds=10)

if __name__ == "__main__":
    EXPERIMENT.main()
