"""States of known number from too few and too many: 32 sequences of 1,000 steps from eight sticky states (Thesis 6.6.1).

The means of the states lie on a circle of radius 20 in the plane, with unit covariance; a state follows itself with
probability 0.99.  Fits start from one state, and from 50 and 100 contiguous blocks of rows, without stickiness and with a
pseudo-count of 50, from ten seeds each.  "Hamming" is the share of rows with a wrong state after the best one-to-one
alignment.  "settled" is the lap at which the bound came within 1e-4 of its final value, as a share of that, and "at 8" the
first lap with eight states.  Means over the seeds, and ranges.

    python benchmarks/hmm_toy.py [--seeds 10] [--starts 1 50 100] [--stickiness 0 50]
"""

import argparse

import numpy as np

from common import report
from state_labels import fitted, hamming, warm_up
from stickbreak import HMM
from topics import over_seeds

K, RADIUS, STAY = 8, 20.0, 0.99
SETTLED = 1e-4


def sequences(seed: int, G: int, T: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows (G T, 2), their states and the lengths of the sequences."""
    rng = np.random.default_rng(seed)
    angles = 2.0 * np.pi * np.arange(K) / K
    means = RADIUS * np.column_stack([np.cos(angles), np.sin(angles)])
    steps = np.where(rng.random((G, T)) < STAY, 0, rng.integers(1, K, (G, T)))  # to the same state or to any other
    steps[:, 0] = rng.integers(K, size=G)
    z = (steps.cumsum(axis=1) % K).ravel()
    return means[z] + rng.standard_normal((G * T, 2)), z, np.full(G, T)


def measure(
    X: np.ndarray, z: np.ndarray, lengths: np.ndarray, start: int, stickiness: float, seed: int
) -> dict[str, float]:
    init = {"init": "one"} if start == 1 else {"init": "blocks", "n_init_states": start}
    model, seconds = fitted(HMM("gaussian", stickiness=stickiness, random_state=seed, **init), X, lengths)
    bounds = np.array(model.lower_bounds_)
    found = np.array([lap.n_clusters for lap in model.history_]) == K
    return {
        "Hamming": hamming(model.labels_, z),
        "K": model.n_states_,
        "settled": 1 + int((bounds >= bounds[-1] - SETTLED * abs(bounds[-1])).argmax()),
        "at 8": 1 + int(found.argmax()) if found.any() else np.nan,
        "laps": model.n_laps_,
        "seconds": seconds,
        "ELBO": model.lower_bound_,
    }


def table(runs: list[dict[str, float]]) -> dict[str, str]:
    """Each figure over the runs that have it."""
    known = {name: [run[name] for run in runs if not np.isnan(run[name])] for name in runs[0]}
    return {name: over_seeds(values) if values else "never" for name, values in known.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="how many fits of each kind")
    parser.add_argument("--seed", type=int, default=0, help="of the data")
    parser.add_argument("--starts", type=int, nargs="+", default=[1, 50, 100], help="states to start from")
    parser.add_argument("--stickiness", type=float, nargs="+", default=[0.0, 50.0])
    parser.add_argument("--sequences", type=int, default=32)
    parser.add_argument("--steps", type=int, default=1000, help="in a sequence")
    arguments = parser.parse_args()
    data, rows = sequences(arguments.seed, arguments.sequences, arguments.steps), []
    warm_up("gaussian", data[0])
    for start in arguments.starts:
        for stickiness in arguments.stickiness:
            runs = [measure(*data, start, stickiness, seed) for seed in range(arguments.seeds)]
            exact = sum(run["K"] == K for run in runs)
            row = {"start": start, "stickiness": stickiness, "K = 8": f"{exact} of {len(runs)}"} | table(runs)
            print(row, flush=True)
            rows.append(row)
    report("hmm_toy", rows)


if __name__ == "__main__":
    main()
