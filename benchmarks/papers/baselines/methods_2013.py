"""The methods of Hughes and Sudderth 2013 and those they compare with, as values of the library, and the traces of fits."""

import warnings
from typing import Any

import numpy as np

from stickbreak import Mixture
from stickbreak.inference import Memoized, Stochastic
from stickbreak.likelihoods import Likelihood
from stickbreak.moves import AdoptedBirth

warnings.filterwarnings("ignore", message="decay=", category=UserWarning)  # two of the paper's rates are 0.5

PUBLISHED = Memoized(accelerate=False)
RATES = {"SO-a": Stochastic(10.0, 0.5), "SO-b": Stochastic(100.0, 0.5), "SO-c": Stochastic(10.0, 0.9)}


def mixture(likelihood: Likelihood | str, n_batches: int, seed: int, **parameters: Any) -> Mixture:
    """The library, its prior held."""
    return Mixture(likelihood, n_batches=n_batches, learn=False, n_jobs=1, random_state=seed, **parameters)


def begun(likelihood: Likelihood | str, start: str, K: int, seed: int) -> Mixture:
    """One lap from K rows as seeds: a start for others."""
    return mixture(likelihood, 1, seed, algorithm=PUBLISHED, init=start, n_init_clusters=K, moves=(), max_laps=1)


def fixed(likelihood: Likelihood | str, n_batches: int, start: str, K: int, laps: int, seed: int) -> dict[str, Mixture]:
    """All methods whose number of clusters is fixed: on all rows (Full), memoized (MO), and stochastic at three rates (SO).

    start : of the K clusters, "random" or "k-means++"
    """
    of = {"init": start, "n_init_clusters": K, "moves": (), "max_laps": laps}
    found = {
        "Full": mixture(likelihood, 1, seed, algorithm=PUBLISHED, **of),
        "MO": mixture(likelihood, n_batches, seed, algorithm=PUBLISHED, **of),
    }
    return found | {name: mixture(likelihood, n_batches, seed, algorithm=rate, **of) for name, rate in RATES.items()}


def births(likelihood: Likelihood | str, n_batches: int, seed: int, **parameters: Any) -> Mixture:
    """MO-BM: memoized laps with births and merges, from one cluster."""
    moves = (AdoptedBirth(), "merge", "delete")
    return mixture(likelihood, n_batches, seed, algorithm=PUBLISHED, moves=moves, **parameters)


def trace(model: Mixture, n_rows: int) -> dict[str, list[float]]:
    """Passes through the data (laps of samples are parts of one), ELBO per row and K of what each lap worked on."""
    laps = model.history_
    return {
        "passes": np.cumsum([(lap.sample_rows or n_rows) / n_rows for lap in laps]).tolist(),
        "ELBO": [lap.explored_bound / (lap.sample_rows or n_rows) for lap in laps],
        "clusters": [lap.explored_clusters for lap in laps],
    }
