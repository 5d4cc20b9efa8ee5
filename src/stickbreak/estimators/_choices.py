"""What the parameters of an estimator mean: strings to objects, defaults from the size of the data, clear refusals."""

from collections.abc import Iterable
from numbers import Integral, Real
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
    rows = source.present()
    spaced = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), PRIOR_ROWS)).astype(np.intp))
    X, weights = source.take(rows[spaced])
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
    """Refuse parameters of the wrong type or outside their range, naming the parameter, its value and what it must be."""
    for name in ("n_init_clusters", "max_laps"):
        _require(whole(getattr(estimator, name)), name, estimator, "a whole number of at least 1")
    _require(
        estimator.n_batches is None or whole(estimator.n_batches),
        "n_batches",
        estimator,
        "None or a whole number >= 1",
    )
    _require(_real(estimator.tol) and estimator.tol >= 0, "tol", estimator, "a number of at least 0")
    _require(
        _real(estimator.concentration) and estimator.concentration > 0, "concentration", estimator, "a positive number"
    )
    jobs = estimator.n_jobs
    _require(
        jobs is None or (isinstance(jobs, Integral) and jobs != 0), "n_jobs", estimator, "None or a whole number, not 0"
    )
    known = isinstance(estimator.moves, Iterable) and all(isinstance(m, str) and m in MOVES for m in estimator.moves)
    _require(known and not isinstance(estimator.moves, str), "moves", estimator, f"a sequence of names among {MOVES}")
    _named("algorithm", estimator, ("memoized", "full", "stochastic"), "step")
    _named("likelihood", estimator, tuple(sorted(REGISTRY)), "resolve")
    _named("allocation", estimator, ("dp", "finite"), "update")
    if isinstance(estimator.init, str):
        _named("init", estimator, ("one", "k-means++", "random"), "summary_")


def _require(condition: bool, name: str, estimator: Any, wanted: str) -> None:
    if not condition:
        raise ValueError(f"{name} must be {wanted}; got {getattr(estimator, name)!r}.")


def _named(name: str, estimator: Any, names: tuple[str, ...], method: str) -> None:
    """Require one of the names, or an object (not a class) with the method that such objects have."""
    value = getattr(estimator, name)
    fits = value in names if isinstance(value, str) else hasattr(value, method) and not isinstance(value, type)
    _require(fits, name, estimator, f"one of {', '.join(map(repr, names))}, or an object in its place")


def _likelihood(choice: str | Likelihood) -> Likelihood:
    if not isinstance(choice, str):
        return choice
    likelihood: Likelihood = REGISTRY[choice]()
    return likelihood


def _allocation(estimator: Any) -> Allocation:
    choice = estimator.allocation
    if not isinstance(choice, str):
        allocation: Allocation = choice
        return allocation
    if choice == "dp":
        return DirichletProcess(estimator.concentration)
    return FiniteDirichlet(estimator.n_init_clusters, estimator.concentration)


def whole(value: Any) -> bool:
    """Whether a value is a whole number of at least 1."""
    return type(value) is not bool and isinstance(value, Integral) and int(value) >= 1


def _real(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, Real) and bool(np.isfinite(float(value)))
