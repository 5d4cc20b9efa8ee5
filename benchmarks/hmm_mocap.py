"""Motion capture: exercises in six sequences of 12 joint angles, found with default arguments from several starts.

2,058 rows at 10 Hz, with labels of 12 exercises that the fit does not see.  Fits start from one state, and from 30 and 60
contiguous blocks of rows.  "Hamming" is the share of rows with a wrong exercise after the best one-to-one alignment of states;
in "many to one" each state stands for the exercise most frequent among its rows.  "of 12" is the same for `merge_states(12)`,
as many states as there are exercises.  Spreads are (most - least) / mean, and the run with the best bound is the one to keep
of several.

--people: instead, ascents without moves that begin with the exercises as states, for autoregressive rows of order 1 and 2:
their ELBO, for comparison with that of the states found.

    python benchmarks/hmm_mocap.py [--seeds 5] [--starts 1 30 60] [--people]
"""

import argparse
import time

import numpy as np

from common import DATA, report
from state_labels import fitted, hamming, many_to_one, segments, warm_up
from stickbreak import HMM
from stickbreak.likelihoods import AutoregressiveGaussian

EXERCISES = 12


def motions() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows (T, 12), lengths of the sequences and exercises."""
    with np.load(DATA / "mocap6.npz") as file:
        return file["X"], np.diff(file["doc_range"]), file["TrueZ"]


def measure(
    X: np.ndarray, lengths: np.ndarray, truth: np.ndarray, start: int, seed: int, max_laps: int
) -> dict[str, float]:
    init = {"init": "one"} if start == 1 else {"init": "blocks", "n_init_states": start}
    model = HMM(max_laps=max_laps, random_state=seed, **init)
    began = time.process_time()
    model, seconds = fitted(model, X, lengths)
    cpu_seconds = time.process_time() - began
    fewer = model.merge_states(min(EXERCISES, model.n_states_), X, lengths=lengths)
    return {
        "start": start,
        "seed": seed,
        "ELBO": model.lower_bound_,
        "K": model.n_states_,
        "Hamming": hamming(model.labels_, truth),
        "many to one": many_to_one(model.labels_, truth),
        "ELBO of 12": fewer.lower_bound_,
        "Hamming of 12": hamming(fewer.labels_, truth),
        "segments": segments(model.labels_, lengths),
        "laps": model.n_laps_,
        "seconds": seconds,
        "CPU s": cpu_seconds,
    }


def of_people(X: np.ndarray, lengths: np.ndarray, truth: np.ndarray) -> list[dict[str, float]]:
    """What the exercises are worth as states."""
    rows = []
    for order in (1, 2):
        start = HMM(AutoregressiveGaussian(order=order), init=truth, moves=(), random_state=0)
        model, _ = fitted(start, X, lengths)
        rows.append(
            {
                "order": order,
                "ELBO": model.lower_bound_,
                "K": model.n_states_,
                "Hamming": hamming(model.labels_, truth),
            }
        )
    return rows


def spread(values: list[float]) -> float:
    """In percent of the mean."""
    return 100.0 * (max(values) - min(values)) / abs(float(np.mean(values)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--starts", type=int, nargs="+", default=[1, 30, 60], help="states to start from")
    parser.add_argument("--max-laps", type=int, default=5000)
    parser.add_argument("--people", action="store_true", help="ascents from the exercises instead")
    arguments = parser.parse_args()
    data, rows = motions(), []
    if arguments.people:
        report("hmm_mocap_people", of_people(*data))
        return
    warm_up("autoregressive_gaussian", data[0])
    for start in arguments.starts:
        for seed in range(arguments.seeds):
            rows.append(measure(*data, start, seed, arguments.max_laps))
            print(rows[-1], flush=True)
    best = max(rows, key=lambda row: row["ELBO"])
    spreads = {name: spread([row[name] for row in rows]) for name in ("ELBO", "K")}
    report("hmm_mocap", [*rows, best | {"run": "best bound"}, spreads | {"run": "spread, %"}])


if __name__ == "__main__":
    main()
