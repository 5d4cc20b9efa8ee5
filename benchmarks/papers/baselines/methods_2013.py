"""The methods of Hughes and Sudderth 2013 and those they compare with, as values of the library, and the traces of fits."""

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np

from stickbreak import Mixture
from stickbreak.inference import Memoized, Session, Stochastic
from stickbreak.inference.algorithm import Ascending
from stickbreak.inference.laps import Result
from stickbreak.likelihoods import Likelihood
from stickbreak.moves import AdoptedBirth

warnings.filterwarnings("ignore", message="decay=", category=UserWarning)  # two of the paper's rates are 0.5

PUBLISHED = Memoized(accelerate=False)
RATES = {"SO-a": Stochastic(10.0, 0.5), "SO-b": Stochastic(100.0, 0.5), "SO-c": Stochastic(10.0, 0.9)}


class Watched(Mixture):
    """A mixture whose best model so far is looked at after every lap.

    Attributes
    ----------
    seen : what the look returned, by lap
    seconds : CPU time that looking took
    """

    @classmethod
    def of(cls, model: Mixture, look: Callable[[Result], float]) -> Self:
        """The same model; ``look`` is given the result of the laps so far."""
        self = cls(**model.get_params(deep=False))
        self.look = look
        self.seen = []
        self.seconds = 0.0
        return self

    def _best_of(self, streams: Any, begin: Callable[..., Ascending], *others: Any) -> Any:
        def begin_watched(*args: Any, session: Session, **named: Any) -> Ascending:
            def on_lap(lap: Any) -> None:
                session.on_lap(lap)
                began = time.process_time()
                self.seen.append(self.look(ascent.result))
                self.seconds += time.process_time() - began

            ascent = begin(*args, session=replace(session, on_lap=on_lap), **named)
            return ascent

        return super()._best_of(streams, begin_watched, *others)


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
