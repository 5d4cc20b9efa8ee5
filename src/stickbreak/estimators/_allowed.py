"""The values that parameters of estimators may have: clear refusals of all others."""

from collections.abc import Set as AbstractSet
from numbers import Integral
from typing import Any

import numpy as np

from .._arguments import real, shown
from ..allocations import Duration, GammaConcentration
from ..data.atomic import as_path
from ..inference.starts import STARTS
from ..likelihoods import REGISTRY
from ..model import BAGS, ROWS, SEQUENCES, Kind
from ..responses import ClassResponse, NumericResponse
from ._births import PUBLISHED, check_births, check_moves
from ._choices import MOVES, algorithm, mixture_prior
from ._devices import check_device
from ._named import check_seeds

RESPONSES = ("auto", "gaussian", "categorical")
COUNT = "a whole number of at least 1, below 2^31"
MOST_WHOLE = 1 << 63


def check_mixture(estimator: Any) -> None:
    """Refuse parameters of the wrong type or outside their range, naming the parameter, its value and what it must be."""
    _check_fit(estimator, *PUBLISHED)
    check_births(estimator, algorithm(estimator))
    check_seeds(estimator, algorithm(estimator))
    _require(count(estimator.n_init_clusters), "n_init_clusters", estimator, COUNT)
    known = _positive_or_prior(estimator.concentration)
    _require(known, "concentration", estimator, "a positive number or a GammaConcentration")
    _require(estimator.most_kept is None or count(estimator.most_kept), "most_kept", estimator, f"None or {COUNT}")
    several = count(estimator.candidates) and estimator.candidates > 1
    _require(estimator.candidates is None or several, "candidates", estimator, "None or a whole number of at least 2")
    _require_label_error(estimator)
    _named("allocation", estimator, ("dp", "pitman-yor", "finite"), "update")
    _require_allocation(estimator, ROWS)
    if algorithm(estimator).seats:
        _ = mixture_prior(estimator).seating  # refuses a prior that has none
    if isinstance(estimator.init, str):
        _named("init", estimator, ("one", *STARTS), "summary_")


def check_topics(estimator: Any) -> None:
    """The same for the parameters of topic models."""
    _check_fit(estimator)
    _require(count(estimator.n_init_topics), "n_init_topics", estimator, COUNT)
    _require(estimator.most_kept is None or count(estimator.most_kept), "most_kept", estimator, f"None or {COUNT}")
    none = type(estimator.restarts) is int and estimator.restarts == 0
    _require(none or count(estimator.restarts), "restarts", estimator, "a whole number of at least 0, below 2^31")
    _require_algorithm_of(estimator, BAGS)
    check_seeds(estimator, algorithm(estimator))
    words = estimator.vocabulary
    fits = words is None or (isinstance(words, (list, tuple, np.ndarray)) and all(isinstance(w, str) for w in words))
    _require(fits, "vocabulary", estimator, "None or a sequence of words")
    _require_learnable(estimator, "document_concentration")
    _require_shares(estimator)
    _named("allocation", estimator, ("hdp", "lda"), "update")
    _require_allocation(estimator, BAGS)
    _require(
        estimator.response is None
        or (isinstance(estimator.response, str) and estimator.response in RESPONSES)
        or isinstance(estimator.response, (NumericResponse, ClassResponse)),
        "response",
        estimator,
        f"one of {', '.join(map(repr, RESPONSES))}, an object of stickbreak.responses, or None",
    )
    if isinstance(estimator.init, str):
        _named("init", estimator, ("anchor", "k-means++", "random"), "summary_")


def check_states(estimator: Any) -> None:
    """The same for the parameters of hidden Markov models."""
    _check_fit(estimator)
    _require_label_error(estimator)
    _require(count(estimator.n_init_states), "n_init_states", estimator, COUNT)
    _require_algorithm_of(estimator, SEQUENCES)
    _require_learnable(estimator, "transition_concentration")
    _require_shares(estimator)
    first = estimator.start_concentration
    kappa = estimator.stickiness
    _require(_real(first) and first > 0, "start_concentration", estimator, "a positive number")
    fits = kappa == "learn" if isinstance(kappa, str) else isinstance(kappa, Duration) or (_real(kappa) and kappa >= 0)
    _require(fits, "stickiness", estimator, "a number of at least 0, a Duration, or 'learn'")
    _named("allocation", estimator, ("hdp", "finite"), "update")
    _require_allocation(estimator, SEQUENCES)
    if isinstance(estimator.init, str):
        _named("init", estimator, ("one", "blocks"), "summary_")


def _check_fit(estimator: Any, *births: type) -> None:
    """Refuse what is wrong with the parameters that all estimators have; values of ``births`` may be among the moves."""
    _require(whole(estimator.n_init), "n_init", estimator, "a whole number of at least 1, below 2^63")
    _require(whole(estimator.max_laps), "max_laps", estimator, "a whole number of at least 1, below 2^63")
    _require(
        estimator.n_batches is None or whole(estimator.n_batches),
        "n_batches",
        estimator,
        "None or a whole number >= 1, below 2^63",
    )
    fits = isinstance(estimator.learn, (bool, np.bool_)) or (
        isinstance(estimator.learn, (list, tuple, AbstractSet))
        and all(isinstance(name, str) for name in estimator.learn)
    )
    _require(fits, "learn", estimator, "True, False, or names of hyperparameters in a list, tuple or set")
    _require(_real(estimator.tol) and estimator.tol >= 0, "tol", estimator, "a number of at least 0")
    jobs = estimator.n_jobs
    _require(
        jobs is None or (type(jobs) is not bool and isinstance(jobs, Integral) and 0 < abs(int(jobs)) < MOST_WHOLE),
        "n_jobs",
        estimator,
        "None or a whole number, not 0, below 2^63",
    )
    opens = estimator.executor is None or hasattr(estimator.executor, "open")
    _require(opens, "executor", estimator, "None, or a value such as DaskExecutor(client)")
    check_device(estimator)
    check_moves(estimator, MOVES, births)
    _check_checkpoint(estimator)
    limit = estimator.max_memory
    _require(
        limit is None or (_real(limit) and limit > 0), "max_memory", estimator, "None or a positive number of bytes"
    )
    shows = estimator.verbose
    fits = isinstance(shows, np.bool_) or (isinstance(shows, Integral) and abs(int(shows)) < MOST_WHOLE)
    _require(fits, "verbose", estimator, "True or False")
    _named("algorithm", estimator, ("memoized", "full", "stochastic", "sequential"), "begin")
    _named("likelihood", estimator, ("auto", *sorted(REGISTRY)), "resolve")


def _check_checkpoint(estimator: Any) -> None:
    """Refuse what names no file, and algorithms that cannot be taken up again."""
    seconds = estimator.checkpoint_seconds
    _require(_real(seconds) and seconds >= 0, "checkpoint_seconds", estimator, "a number of at least 0")
    if estimator.checkpoint is None:
        return
    as_path(estimator.checkpoint, "checkpoint")
    kind = algorithm(estimator)
    if not kind.resumes:
        raise ValueError(
            f"checkpoint={str(estimator.checkpoint)!r} does not cover the algorithm {type(kind).__name__}, which cannot be "
            "taken up again before its end; use checkpoint=None."
        )


def _require_label_error(estimator: Any) -> None:
    error = estimator.label_error
    fits = error is None or (_real(error) and 0.0 <= error < 1.0)
    _require(fits, "label_error", estimator, "None or a number from 0 to below 1")


def _require_learnable(estimator: Any, *names: str) -> None:
    for name in names:
        value = getattr(estimator, name)
        fits = value == "learn" if isinstance(value, str) else _real(value) and value > 0
        _require(fits, name, estimator, "a positive number or 'learn'")


def _require_shares(estimator: Any) -> None:
    """Require a concentration that is known, learnt, or has a prior."""
    value = estimator.concentration
    fits = value == "learn" if isinstance(value, str) else _positive_or_prior(value)
    _require(fits, "concentration", estimator, "a positive number or 'learn', or a GammaConcentration")


def _require_algorithm_of(estimator: Any, kind: Kind) -> None:
    fits = kind.units in algorithm(estimator).takes
    _require(fits, "algorithm", estimator, f"Memoized or Stochastic, or another that takes {kind.units}")


def _require_allocation(estimator: Any, kind: Kind) -> None:
    fits = isinstance(estimator.allocation, (str, kind.allocations))
    _require(fits, "allocation", estimator, f"an allocation of {kind.units}")


def _require(condition: bool, name: str, estimator: Any, wanted: str) -> None:
    if not condition:
        raise ValueError(f"{name} must be {wanted}; got {shown(getattr(estimator, name))}.")


def _named(name: str, estimator: Any, names: tuple[str, ...], method: str) -> None:
    """Require one of the names, or an object (not a class) with the method that such objects have."""
    value = getattr(estimator, name)
    fits = value in names if isinstance(value, str) else hasattr(value, method) and not isinstance(value, type)
    _require(fits, name, estimator, f"one of {', '.join(map(repr, names))}, or an object in its place")


def whole(value: Any) -> bool:
    """Whether a value is a whole number of at least 1 that a model file can hold."""
    return type(value) is not bool and isinstance(value, Integral) and 1 <= int(value) < MOST_WHOLE


def count(value: Any) -> bool:
    """Whether a value can be a number of clusters."""
    return whole(value) and int(value) < 2**31


def _positive_or_prior(value: Any) -> bool:
    return isinstance(value, GammaConcentration) or (_real(value) and value > 0)


def _real(value: Any) -> bool:
    return bool(np.isfinite(real(value)))
