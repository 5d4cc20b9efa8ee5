"""States of chromatin: presence of 10 marks in 672,261 bins of 200 bases, human chromosome 11 of GM12878, one sequence.

--laps: seconds of a lap with 15 and 50 states given (median, without the first).  --finite: 15 states from nothing else,
beside what ChromHMM 1.27 reached with 15 states on these data and two cores, run apart from this script.  --search: any number,
from one state, 3 seeds.  --random: the fit of --finite, and 20 ascents without moves from random states of the distinct rows,
15 given, which together have as many CPU seconds, and at least 10 laps each.  --fixed: numbers of states from 10 to 60 given to
the same prior, for comparison with the ELBO of --search.  --drawn: --random on as many rows drawn from a model of 40 states,
which no search has found: 40 blocks of bins, fitted without moves.
The first three by default; each has its own file of results.  "log evidence" is `HMM.score`, of the model with posterior mean
transitions; "seconds" and "CPU s" are those of the fit, which ends with the most probable path of all rows.

    python benchmarks/hmm_chromatin.py [--laps] [--finite] [--search] [--random] [--fixed] [--drawn]
"""

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from common import DATA, report
from state_labels import fitted, warm_up
from stickbreak import HMM

GIVEN, STATES, LAPS = (15, 50), 15, 10
DRAWN, DRAWN_LAPS = 40, 20
FIXED = (10, 20, 30, 40, 50, 60)
STARTS, START_LAPS = 20, 10
SEEDS = (0, 1, 2)  # of --search
CHROMHMM = {"model": f"ChromHMM, {STATES} states, run apart", "log evidence": -335_443.50, "seconds": 152.0}


def marks(n_bins: int | None) -> np.ndarray:
    with np.load(DATA / "chromatin_GM12878_chr11.npz") as file:
        return file["X"][:n_bins]


def measure(name: str, X: np.ndarray, max_laps: int | None, seed: int = 0, **options: Any) -> dict[str, Any]:
    options |= {} if max_laps is None else {"max_laps": max_laps}
    began = time.process_time()
    model, seconds = fitted(HMM("bernoulli", random_state=seed, **options), X)
    cpu_seconds = time.process_time() - began
    ends = [lap.seconds for lap in model.history_]
    row = {
        "model": name,
        "K": model.n_states_,
        "ELBO": model.lower_bound_,
        "log evidence": model.score(X),
        "seconds": seconds,
        "CPU s": cpu_seconds,
        "laps": model.n_laps_,
        "converged": str(model.converged_),
    }
    row |= {"s per lap": float(np.median(np.diff(ends)))} if len(ends) > 1 else {}
    print(row, flush=True)
    return row


def laps(X: np.ndarray, max_laps: int | None) -> Iterator[dict[str, object]]:
    for K in GIVEN:
        given = {"allocation": "finite", "n_init_states": K, "init": "blocks", "moves": ()}
        yield measure(f"{K} states given", X, max_laps or LAPS, **given)


def finite(X: np.ndarray, max_laps: int | None) -> Iterator[dict[str, object]]:
    yield CHROMHMM
    yield found(X, max_laps)


def found(X: np.ndarray, max_laps: int | None) -> dict[str, Any]:
    return measure(f"{STATES} states, found", X, max_laps, allocation="finite", n_init_states=STATES)


def search(X: np.ndarray, max_laps: int | None) -> Iterator[dict[str, object]]:
    for seed in SEEDS:
        yield measure(f"from one state, seed {seed}", X, max_laps, seed)


def random(X: np.ndarray, max_laps: int | None) -> Iterator[dict[str, object]]:
    fit = found(X, max_laps)
    each = random_start(X, 0, START_LAPS)["CPU s"]
    n_laps = max(START_LAPS, int(START_LAPS * fit["CPU s"] / (STARTS * each)))
    rivals = [random_start(X, seed, n_laps) for seed in range(STARTS)]
    best = max(rivals, key=lambda row: row["ELBO"])
    yield fit
    yield best | {"model": f"best of {STARTS}: {best['model']}", "CPU s": sum(row["CPU s"] for row in rivals)}


def random_start(X: np.ndarray, seed: int, n_laps: int) -> dict[str, Any]:
    """An ascent without moves from random states of the distinct rows."""
    rows, codes = np.unique(X, axis=0, return_inverse=True)
    start = np.random.default_rng(seed).integers(STATES, size=len(rows))[codes.ravel()]
    given = {"allocation": "finite", "n_init_states": STATES, "moves": ()}
    return measure(f"random start {seed}", X, n_laps, init=start, **given)


def fixed(X: np.ndarray, max_laps: int | None) -> Iterator[dict[str, object]]:
    for K in FIXED:
        yield measure(f"from {K} blocks, no moves", X, max_laps, init="blocks", n_init_states=K, moves=())


def drawn(X: np.ndarray, max_laps: int | None) -> Iterator[dict[str, object]]:
    blocks = HMM("bernoulli", init="blocks", n_init_states=DRAWN, moves=(), max_laps=DRAWN_LAPS, random_state=0)
    yield from random(fitted(blocks, X)[0].sample(len(X))[0], max_laps)


PARTS = {"laps": laps, "finite": finite, "search": search, "random": random, "fixed": fixed, "drawn": drawn}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in PARTS:
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--max-laps", type=int, help=f"of every fit; by default {LAPS} of --laps, 1000 of the others")
    parser.add_argument("--bins", type=int, help="use only so many")
    arguments = parser.parse_args()
    chosen = [name for name in PARTS if getattr(arguments, name)] or ["laps", "finite", "search"]
    X = marks(arguments.bins)
    warm_up("bernoulli", X)
    for name in chosen:
        report(f"hmm_chromatin_{name}", list(PARTS[name](X, arguments.max_laps)))


if __name__ == "__main__":
    main()
