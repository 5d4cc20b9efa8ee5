"""What the parameters of an estimator mean: strings to objects, defaults from the size of the data, clear refusals."""

from typing import Any

import numpy as np

from ..allocations import Allocation, DirichletProcess, FiniteDirichlet
from ..data import ArraySource
from ..inference import Stochastic
from ..likelihoods import REGISTRY, Likelihood
from ..model import Model

MOVES = ("birth", "merge", "delete")
PRIOR_ROWS = 100_000  # rows that default priors are scaled from
ROWS_PER_BATCH, MOST_BATCHES = 5000, 10
ROWS_PER_STEP, MOST_STEPS = 1000, 100  # the same for stochastic inference


def model(estimator: Any, source: ArraySource) -> Model:
    """The model of an estimator, its hyperparameters scaled from the data where they were not given."""
    rows = np.unique(np.linspace(0, source.n_rows - 1, min(source.n_rows, PRIOR_ROWS)).astype(np.intp))
    X, weights = source.take(rows)
    weights = weights if weights.sum() > 0.0 else np.ones(len(X))
    likelihood = _likelihood(estimator.likelihood).resolve(np.asarray(X, dtype=np.float64), weights)
    return Model(likelihood, _allocation(estimator))


def stochastic(algorithm: str | Stochastic) -> Stochastic | None:
    """The schedule of steps, or None for exact inference."""
    if isinstance(algorithm, Stochastic):
        return algorithm
    return Stochastic() if algorithm == "stochastic" else None


def n_batches(estimator: Any, source: ArraySource) -> int:
    """Batches per lap."""
    if estimator.algorithm == "full":
        return 1
    if estimator.n_batches is not None:
        return min(int(estimator.n_batches), source.n_rows)
    if stochastic(estimator.algorithm) is not None:
        return int(np.clip(source.n_rows // ROWS_PER_STEP, 1, MOST_STEPS))
    return int(np.clip(source.n_rows // ROWS_PER_BATCH, 1, MOST_BATCHES))


def check(estimator: Any) -> None:
    """Refuse parameters outside their range, naming the parameter, its value and what it must be."""
    for name, least in (("n_init_clusters", 1), ("max_laps", 1), ("n_batches", 1)):
        value = getattr(estimator, name)
        if value is not None and not _whole(value, least):
            raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    if not (np.isfinite(estimator.tol) and estimator.tol >= 0):
        raise ValueError(f"tol must be a number of at least 0; got {estimator.tol!r}.")
    if isinstance(estimator.moves, str) or not set(estimator.moves) <= set(MOVES):
        raise ValueError(f"moves must be a sequence of names among {MOVES}; got {estimator.moves!r}.")
    _among(
        "algorithm", estimator.algorithm, ("memoized", "full", "stochastic"), "or a Stochastic schedule", (Stochastic,)
    )
    if isinstance(estimator.init, str):
        _among("init", estimator.init, ("one", "k-means++", "random"), "an array or a fitted model")


def _likelihood(choice: str | Likelihood) -> Likelihood:
    if not isinstance(choice, str):
        return choice
    _among("likelihood", choice, tuple(sorted(REGISTRY)), "or a likelihood object")
    likelihood: Likelihood = REGISTRY[choice]()
    return likelihood


def _allocation(estimator: Any) -> Allocation:
    choice = estimator.allocation
    if not isinstance(choice, str):
        allocation: Allocation = choice
        return allocation
    _among("allocation", choice, ("dp", "finite"), "or an allocation object")
    if choice == "dp":
        return DirichletProcess(estimator.concentration)
    return FiniteDirichlet(estimator.n_init_clusters, estimator.concentration)


def _among(name: str, value: Any, names: tuple[str, ...], others: str, types: tuple[type, ...] = ()) -> None:
    if not isinstance(value, types) and value not in names:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, names))}, {others}; got {value!r}.")


def _whole(value: Any, least: int) -> bool:
    return not isinstance(value, bool) and np.isreal(value) and int(value) == value and value >= least
