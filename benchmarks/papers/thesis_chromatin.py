"""States of chromatin, their number over time from one state and from 70: the thesis, section 6.6.4.

Presence of 10 marks in bins of 200 bases of human chromosome 11, cut in the middle of runs of 50 empty bins and more into
sequences of 2,000 bins or more, a Beta(0.1, 0.3) prior.  From one state: the library as it is. From 70 contiguous blocks of
rows: laps as published (Thesis Alg. 6.2), without moves or with merges and deletes; and hmmlearn, if it is installed, EM with
30 states, for which each combination of marks is a symbol.  The thesis has 41 marks in 15.4 million bins, days each run; this
the first 30,000 bins.  `thesis_chromatin_speed.py` has the speed-up.

    python benchmarks/papers/thesis_chromatin.py [--small] [--seeds 1]

The full version takes one CPU minute, the small one (4,000 bins, from 10 states) 8 seconds.
"""

import time
import warnings
from importlib.util import find_spec

import numpy as np
from frame import Experiment, Outcome
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

from common import DATA
from stickbreak import HMM
from stickbreak.inference import Memoized
from stickbreak.likelihoods import Bernoulli

EMPTY = 50  # bins without a mark that two sequences may meet in
SHORTEST = 2_000
PRIOR = Bernoulli(0.1, 0.3)
FROM_ONE, FIXED, MOVED = "stickbreak, from one", "fixed", "merges and deletes"


def marks(n_bins: int) -> np.ndarray:
    """The first bins (n_bins, 10)."""
    with np.load(DATA / "chromatin_GM12878_chr11.npz") as file:
        return file["X"][:n_bins]


def lengths_of(X: np.ndarray, shortest: int = SHORTEST, empty: int = EMPTY) -> np.ndarray:
    """Lengths of the sequences: cuts are in the middle of runs of empty rows, as early as the lengths allow."""
    bare = np.concatenate([[False], ~X.any(axis=1), [False]])
    begins, ends = (np.flatnonzero(bare[1:] & ~bare[:-1]), np.flatnonzero(bare[:-1] & ~bare[1:]))
    cuts = [0]
    for middle in (begins + ends)[ends - begins >= empty] // 2:
        if middle - cuts[-1] >= shortest and len(X) - middle >= shortest:
            cuts.append(int(middle))
    return np.diff([*cuts, len(X)])


def from_blocks(K: int, moves: tuple[str, ...], laps: int, seed: int) -> HMM:
    """Laps as published."""
    return HMM(
        PRIOR,
        algorithm=Memoized(accelerate=False),
        init="blocks",
        n_init_states=K,
        moves=moves,
        learn=False,
        max_laps=laps,
        n_jobs=1,
        random_state=seed,
    )


def run(name: str, seed: int, model: HMM, X: np.ndarray, lengths: np.ndarray) -> dict[str, object]:
    """A fit, and its K and bound by passes through all bins."""
    began = time.process_time()
    model.fit(X, lengths=lengths)
    seconds = time.process_time() - began
    laps = model.history_
    return {
        "method": name,
        "seed": seed,
        "K": model.n_states_,
        "ELBO per bin": model.lower_bound_ / len(X),
        "log evidence per bin": float(model.score(X, lengths=lengths)) / len(X),
        "CPU seconds": seconds,
        "passes": np.cumsum([(lap.sample_rows or len(X)) / len(X) for lap in laps]).tolist(),
        "states": [lap.n_clusters for lap in laps],
        "ELBO": [None if lap.sample_rows else lap.lower_bound / len(X) for lap in laps],
    }


def peer(X: np.ndarray, lengths: np.ndarray, K: int, laps: int) -> dict[str, object]:
    """Hmmlearn's EM on the combinations of marks."""
    from hmmlearn.hmm import CategoricalHMM

    _, symbols = np.unique(X, axis=0, return_inverse=True)
    symbols = symbols.reshape(-1, 1)
    began = time.process_time()
    model = CategoricalHMM(K, n_iter=laps, tol=1.0, random_state=0).fit(symbols, lengths)
    seconds = time.process_time() - began
    evidence = float(model.score(symbols, lengths)) / len(X)
    return {"method": "hmmlearn", "seed": 0, "K": K, "log evidence per bin": evidence, "CPU seconds": seconds}


def measure(small: bool, seeds: int) -> Outcome:
    warnings.simplefilter("ignore", ConvergenceWarning)
    n_bins, K, laps = (4_000, 10, 5) if small else (30_000, 70, 20)
    X = marks(n_bins)
    lengths = lengths_of(X, 500 if small else SHORTEST)
    runs = []
    for seed in range(seeds):
        adaptive = HMM(PRIOR, learn=False, max_laps=30 if small else 1_000, n_jobs=1, random_state=seed)
        runs.append(run(FROM_ONE, seed, adaptive, X, lengths))
        runs.append(run(f"from {K}, {FIXED}", seed, from_blocks(K, (), laps, seed), X, lengths))
        runs.append(run(f"from {K}, {MOVED}", seed, from_blocks(K, ("merge", "delete"), laps, seed), X, lengths))
    if find_spec("hmmlearn"):
        runs.append(peer(X, lengths, 5 if small else 30, laps))
    return Outcome(summarised(runs, len(lengths)), runs)


def summarised(runs: list[dict[str, object]], n_sequences: int) -> list[dict[str, object]]:
    """K, bounds and CPU seconds, means of the seeds."""
    table = []
    for name in dict.fromkeys(r["method"] for r in runs):
        of_method = [r for r in runs if r["method"] == name]
        row = {"what": name, "sequences": n_sequences}
        for key in ("K", "ELBO per bin", "log evidence per bin", "CPU seconds"):
            row[key] = float(np.mean([r[key] for r in of_method])) if key in of_method[0] else ""
        table.append(row)
    return table


def draw(outcome: Outcome, picture: Figure) -> None:
    """States and ELBO by passes through the bins (Figure 6.6, top)."""
    picture.set_size_inches(8.0, 3.2)
    left, right = picture.subplots(1, 2)
    with_laps = [r for r in outcome.runs if "passes" in r]
    names = list(dict.fromkeys(r["method"] for r in with_laps))
    for r in with_laps:
        color = f"C{names.index(r['method'])}"
        left.plot(r["passes"], r["states"], color=color)
        label = r["method"] if r["seed"] == 0 else None
        right.plot(r["passes"], np.array(r["ELBO"], dtype=float), color=color, label=label)
    best = max(r["ELBO per bin"] for r in with_laps)
    left.set(xlabel="passes through the data", ylabel="states", xscale="log")
    right.legend(fontsize=8, loc="upper left")
    right.set(xlabel="passes through the data", ylabel="ELBO per bin (nats)", xscale="log")
    right.set_ylim(best - 0.1 * abs(best), best + 0.02 * abs(best))


EXPERIMENT = Experiment("thesis_chromatin", __doc__, measure, draw)

if __name__ == "__main__":
    EXPERIMENT.main()
