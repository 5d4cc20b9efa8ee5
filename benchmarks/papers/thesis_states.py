"""States of toy data and of motion capture, from too many and from one: the thesis, sections 6.6.1 and 6.6.3.

Toy: 32 sequences of 1,000 steps from 8 sticky Gaussian states in the plane, 8 batches, without stickiness and with kappa = 50.
Motion capture: 6 sequences of 12 joint angles, 2,058 steps with labels of 12 exercises, autoregressive Gaussians of order 1
whose coefficients are expected to be zero, kappa = 50, a batch for each sequence.  As published, from contiguous blocks of rows
(50 in the toy, 30 and 60 in motion capture): laps without moves, stochastic steps of size (1 + t)^-0.51, and laps with merges
and deletes; blocked Gibbs sampling from the same; and the library from one state with all moves.  All have the prior that the
library has learnt.  hmmlearn, if it is installed, has the true number of states.  "Hamming" is the share of steps with a wrong
label when each state stands for one label, "many to one" when several states may stand for one.  The thesis has 10 runs of
thousands of sweeps.

    python benchmarks/papers/thesis_states.py [--small] [--seeds 3]

The full version takes 11 CPU minutes, the small one (2 sequences of the toy, from 8) 6 seconds.
"""

import time
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from frame import Experiment, Outcome
from matplotlib.figure import Figure

from hmm_mocap import motions
from hmm_toy import sequences
from state_labels import hamming, many_to_one
from stickbreak import HMM
from stickbreak.inference import Gibbs, Memoized, Stochastic
from stickbreak.likelihoods import AutoregressiveGaussian, Gaussian, Likelihood

FROM_ONE = "stickbreak, from one"
SWEEPS, LAPS = 100, 100


@dataclass(frozen=True)
class Setting:
    """Sequences (T, D) one after the other, their labels and lengths; family, starts and batches of the fits."""

    name: str
    X: np.ndarray
    truth: np.ndarray
    lengths: np.ndarray
    family: Likelihood
    stickiness: float
    starts: tuple[int, ...]
    n_batches: int


def settings(small: bool) -> list[Setting]:
    """The data sets."""
    if small:
        X, z, lengths = sequences(0, 2, 300)
        return [Setting("toy, kappa = 50", X, z, lengths, Gaussian(), 50.0, (8,), 2)]
    X, z, lengths = sequences(0, 32, 1_000)
    toys = [Setting(f"toy, kappa = {kappa:g}", X, z, lengths, Gaussian(), kappa, (50,), 8) for kappa in (0.0, 50.0)]
    angles, of_angles, exercises = motions()
    no_history = np.hstack([np.zeros((angles.shape[1], angles.shape[1])), angles.mean(axis=0)[:, None]])
    family = AutoregressiveGaussian(order=1, mean=no_history)
    return [*toys, Setting("motion capture", angles, exercises, of_angles, family, 50.0, (30, 60), 6)]


def published(setting: Setting, family: Likelihood, K: int, laps: int, seed: int) -> dict[str, HMM]:
    """The methods of the thesis, from blocks of rows."""
    of: dict[str, Any] = {
        "stickiness": setting.stickiness,
        "init": "blocks",
        "n_init_states": K,
        "learn": False,
        "n_batches": setting.n_batches,
        "n_jobs": 1,
        "random_state": seed,
    }
    rate = Stochastic(1.0, 0.51)
    plain = Memoized(accelerate=False)
    return {
        "fixed": HMM(family, algorithm=plain, moves=(), max_laps=laps, **of),
        "stochastic": HMM(family, algorithm=rate, moves=(), max_laps=laps, **of),
        "merges and deletes": HMM(family, algorithm=plain, moves=("merge", "delete"), max_laps=laps, **of),
        "Gibbs": HMM(family, algorithm=Gibbs(min(laps, SWEEPS), 0, n_chains=1, kind="blocked", truncation=K), **of),
    }


def run(name: str, setting: Setting, seed: int, model: HMM) -> dict[str, object]:
    """A fit, and its bound and K by laps."""
    began = time.process_time()
    model.fit(setting.X, lengths=setting.lengths)
    seconds = time.process_time() - began
    labels = model.draws_["labels"][0][-1] if hasattr(model, "draws_") else model.labels_
    T = len(setting.X)
    laps = model.history_
    return judged(name, setting, seed, labels, seconds) | {
        "ELBO per step": None if hasattr(model, "draws_") else model.lower_bound_ / T,
        "passes": np.cumsum([(lap.sample_rows or T) / T for lap in laps]).tolist(),
        "states": [lap.n_clusters for lap in laps],
        "ELBO": [None if lap.sample_rows or hasattr(model, "draws_") else lap.lower_bound / T for lap in laps],
    }


def judged(name: str, setting: Setting, seed: int, labels: np.ndarray, seconds: float) -> dict[str, object]:
    """What labels are worth."""
    return {
        "data": setting.name,
        "method": name,
        "seed": seed,
        "K": len(np.unique(labels)),
        "Hamming": hamming(labels, setting.truth),
        "many to one": many_to_one(labels, setting.truth),
        "CPU seconds": seconds,
    }


def peer(setting: Setting, laps: int) -> dict[str, object]:
    """Hmmlearn's EM with as many states as are true."""
    from hmmlearn.hmm import GaussianHMM

    K = len(np.unique(setting.truth))
    began = time.process_time()
    model = GaussianHMM(K, "full", n_iter=laps, random_state=0).fit(setting.X, setting.lengths)
    seconds = time.process_time() - began
    return judged("hmmlearn", setting, 0, model.predict(setting.X, setting.lengths), seconds)


def measure(small: bool, seeds: int) -> Outcome:
    warnings.simplefilter("ignore")
    laps = 5 if small else LAPS
    runs = []
    for setting in settings(small):
        for seed in range(seeds):
            ours = HMM(
                setting.family,
                stickiness=setting.stickiness,
                max_laps=20 if small else 1_000,
                n_jobs=1,
                random_state=seed,
            )
            runs.append(run(FROM_ONE, setting, seed, ours))
            family = ours.model_.likelihood
            for K in setting.starts:
                for name, model in published(setting, family, K, laps, seed).items():
                    runs.append(run(f"from {K}, {name}", setting, seed, model))
        if find_spec("hmmlearn"):
            runs.append(peer(setting, laps))
    return Outcome(summarised(runs), runs)


def summarised(runs: list[dict[str, object]]) -> list[dict[str, object]]:
    """Means of the seeds, and ranges of K."""
    table = []
    for data, name in dict.fromkeys((r["data"], r["method"]) for r in runs):
        of_method = [r for r in runs if (r["data"], r["method"]) == (data, name)]
        states = [r["K"] for r in of_method]
        row = {"data": data, "what": name, "K": f"{min(states)} to {max(states)}"}
        for key in ("Hamming", "many to one", "ELBO per step", "CPU seconds"):
            values = [r[key] for r in of_method if r.get(key) is not None]
            row[key] = float(np.mean(values)) if values else ""
        table.append(row)
    return table


def draw(outcome: Outcome, picture: Figure) -> None:
    """States and ELBO by passes through the data, and Hamming distances (Figures 6.2 and 6.4)."""
    sets = list(dict.fromkeys(r["data"] for r in outcome.runs))
    picture.set_size_inches(9.0, 2.8 * len(sets))
    for panels, data in zip(picture.subplots(len(sets), 3, squeeze=False), sets):
        draw_set(panels, [r for r in outcome.runs if r["data"] == data])
        panels[0].set(title=data, ylabel="states", xscale="log")


def draw_set(panels: Any, runs: list[dict[str, object]]) -> None:
    """A row of the picture."""
    growth, bound, wrong = panels
    names = list(dict.fromkeys(r["method"] for r in runs))
    for r in runs:
        color = f"C{names.index(r['method']) % 10}"
        wrong.plot(r["Hamming"], names.index(r["method"]), "o", color=color, alpha=0.7)
        wrong.plot(r["many to one"], names.index(r["method"]), "|", color=color, markersize=10)
        if "passes" in r:
            growth.plot(r["passes"], r["states"], color=color, linewidth=1.0)
            bound.plot(r["passes"], np.array(r["ELBO"], dtype=float), color=color, linewidth=1.0)
    ends = [r["ELBO per step"] for r in runs if r.get("ELBO per step") is not None]
    room = 0.3 * (max(ends) - min(ends)) + 1e-3
    bound.set(ylabel="ELBO per step (nats)", xscale="log", ylim=(min(ends) - 2.0 * room, max(ends) + room))
    bound.set_xlabel("passes through the data")
    wrong.set_xlabel("o Hamming, | many to one", fontsize=8)
    wrong.set_yticks(range(len(names)), names, fontsize=7)
    wrong.invert_yaxis()


EXPERIMENT = Experiment("thesis_states", __doc__, measure, draw, seeds=3)

if __name__ == "__main__":
    EXPERIMENT.main()
