"""What the parameters of an estimator mean: strings to objects, defaults from the size of the data, clear refusals."""

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arguments import real, shown
from ..allocations import Allocation, DirichletProcess, Duration, FiniteDirichlet, GammaConcentration, PitmanYor
from ..allocations.mixture import MixturePrior
from ..data import ArraySource, SparseSource
from ..data.atomic import as_path
from ..inference import Algorithm, Memoized, Options, Sequential, Stochastic
from ..inference.starts import STARTS
from ..likelihoods import REGISTRY, Likelihood, Sample
from ..model import BAGS, ROWS, SEQUENCES, Kind, Model, RowKind
from ..model.learning import OF_LIKELIHOOD
from ..responses import CategoricalResponse, NumericResponse
from ._automatic import INDEPENDENT, NUMBERS, Reading, automatic, readings
from ._base import Columns
from ._births import PUBLISHED, check_births, check_moves
from ._devices import check_device
from ._named import check_seeds

MOVES = ("birth", "merge", "delete")
RESPONSES = ("auto", "gaussian", "categorical")
FEW_COLUMNS = 6  # with no more, clusters cost little whatever their family
COUNT = "a whole number of at least 1, below 2^31"
MOST_WHOLE = 1 << 63
PRIOR_ROWS = 100_000  # rows that default priors are scaled from


def likelihood(estimator: Any, source: ArraySource, choice: Any = None) -> Likelihood:
    """The likelihood of an estimator, or ``choice`` in its place, its columns located in the table.

    Where there are several it is that of independent columns.
    """
    found = candidates(estimator, source, choice)
    return found.get(INDEPENDENT, next(iter(found.values())))


def candidates(
    estimator: Any, source: ArraySource, choice: Any = None, among: Collection[str] = tuple(NUMBERS)
) -> dict[str, Likelihood]:
    """The likelihoods that an estimator, or ``choice`` in its place, may mean, by name; their columns located in the table.

    among : the families that columns of numbers may have, where there are several
    """
    choice = (continues(estimator, source) or estimator.likelihood) if choice is None else choice
    if isinstance(choice, str):
        found = automatic(source, estimator.levels_, among) if choice == "auto" else {choice: REGISTRY[choice]()}
    else:
        found = {type(choice).__name__: choice}
    return {name: _located(estimator, family, source) for name, family in found.items()}


def automatically(estimator: Any) -> bool:
    """Whether an estimator chooses its likelihood by what the columns hold."""
    return isinstance(estimator.likelihood, str) and estimator.likelihood == "auto"


def continues(estimator: Any, source: ArraySource) -> Any:
    """The likelihood that a mixture has from the one it starts from, if no other was asked for and columns are as many."""
    first: Any = getattr(estimator.init, "model_", None)
    if (
        first is None
        or not isinstance(first.kind, RowKind)
        or not automatically(estimator)
        or not _as_wide(estimator.init, source)
    ):
        return None
    return first.likelihood.anew() if automatically(estimator.init) else estimator.init.likelihood


def _as_wide(fitted: Any, source: ArraySource) -> bool:
    """Whether a fitted estimator has seen as many columns."""
    return bool(fitted.n_features_in_ + fitted.n_targets_ == source.n_columns)


def ways(estimator: Any, source: ArraySource, latent: bool = True) -> list[Reading]:
    """The ways to take the columns of a dense table among which ``likelihood="auto"`` of a mixture chooses; else none.

    latent : whether rows may have latent variables; not where some clusters have priors of their own
    """
    if not automatically(estimator) or isinstance(source, SparseSource) or continues(estimator, source) is not None:
        return []
    latent = latent and estimator.seeds is None
    found = readings(source, estimator.levels_, _names(estimator, source), aside=True)
    return [replace(reading, latent=latent) for reading in found]


def several(ways: Sequence[Reading]) -> bool:
    """Whether there is a choice among likelihoods."""
    return any(reading.long_tailed.any() for reading in ways) or sum(len(reading.families()) for reading in ways) > 1


def _located(estimator: Any, choice: Likelihood, source: ArraySource) -> Likelihood:
    check_sparse(choice, source)
    n_targets = source.n_columns - estimator.n_features_in_
    located: Likelihood = choice.locate(_names(estimator, source), source.n_columns)
    if not located.describes(source.n_columns)[source.n_columns - n_targets :].all():
        raise ValueError("y is given, but no LinearRegression part of the Product has it as its last columns.")
    refuse_categories(estimator, located, source.n_columns)
    return located


def refuse_categories(estimator: Any, likelihood: Likelihood, D: int) -> None:
    """Refuse columns of categories, of D columns, where the likelihood would take their codes as numbers."""
    nominal = likelihood.nominal(D)
    for d in estimator.levels_:
        if not nominal[d]:
            raise ValueError(
                f"column {d} holds categories, which {type(likelihood).__name__} cannot use; drop it, or use "
                'likelihood="auto" or a Product with a Categorical part.'
            )


def known_levels(estimator: Any, likelihood: Likelihood, D: int) -> dict[int, Sequence[Any]]:
    """The levels of the columns of categories; none of those of D columns that the likelihood leaves out."""
    used = likelihood.describes(D)
    return {d: levels if used[d] else [] for d, levels in estimator.levels_.items()}


def _names(estimator: Any, source: ArraySource) -> list[str] | None:
    """The names of the columns, if any; targets that came as y are y0, y1, ..."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return None
    return [*names, *(f"y{d}" for d in range(source.n_columns - len(names)))]


def takes_targets(estimator: Any) -> bool:
    """Whether the likelihood of an estimator has targets, which `fit` then takes as y."""
    choice = estimator.likelihood
    if isinstance(choice, str):
        return choice in REGISTRY and REGISTRY[choice]().takes_targets()
    return bool(choice.takes_targets())


def check_sparse(likelihood: Likelihood, source: ArraySource) -> None:
    """Refuse sparse rows where the likelihood does not take them."""
    if isinstance(source, SparseSource) and not likelihood.takes_sparse:
        raise TypeError(f"{type(likelihood).__name__} does not take sparse rows; pass X.toarray().")


def model(
    estimator: Any,
    likelihood: Likelihood,
    source: ArraySource,
    columns: Columns,
    allocation: Allocation,
    kind: Kind,
    room: int,
) -> Model:
    """The model of an estimator, its hyperparameters scaled from the data where they were not given.

    room : the most clusters that memory has room for
    """
    X, weights = source.take(source.spaced(PRIOR_ROWS))
    names = _names(estimator, source)
    sample = Sample(X.astype(np.float64, copy=False), weights, *columns, names, estimator.levels_)
    return Model(likelihood.resolve(sample), allocation, kind, room)


def simpler(likelihood: Likelihood, missing: NDArray[np.bool_]) -> dict[str, Likelihood]:
    """The families, ever simpler ones last, whose clusters may be where a search with a likelihood of many columns starts."""
    found: dict[str, Likelihood] = {}
    other = likelihood.simpler(missing) if len(missing) > FEW_COLUMNS else None
    while other is not None:
        found[f"simpler by {len(found) + 1}"] = other
        other = other.simpler(missing)
    return found


def check_start(model: Model, K: int) -> None:
    """Refuse a start with more clusters than the allocation may have."""
    if model.allocation.max_clusters < K:
        raise ValueError(f"init has {K} clusters, but the allocation has no more than {model.allocation.max_clusters}.")


def learnt(estimator: Any, likelihood: Likelihood, concentrations: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """The hyperparameters that ``learn`` of an estimator names, as `stickbreak.model.learning.tuned` names them.

    likelihood : as it was given, before `Likelihood.resolve`
    concentrations : of the allocation, that ``learn`` may name, too; None: those of a mixture
    """
    concentrations = mixture_prior(estimator).learnable if concentrations is None else concentrations
    if isinstance(estimator.learn, (bool, np.bool_)):
        return tuple(OF_LIKELIHOOD + name for name in likelihood.not_given()) if estimator.learn else ()
    own = [OF_LIKELIHOOD + name for name in likelihood.tunables()]
    found = []
    for wanted in estimator.learn:
        named = [wanted] if wanted in concentrations else [n for n in own if f".{n}".endswith(f".{wanted}")]
        if not named:
            raise ValueError(
                f"learn names {wanted!r:.80}, but what can be learnt is {', '.join([*concentrations, *own])}."
            )
        found += named
    return tuple(dict.fromkeys(found))


def learnt_again(estimator: Any, concentrations: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """The same of a fitted model, whose likelihood no longer says what was given: of one that was named, nothing."""
    fitted = estimator.model_.likelihood
    if not isinstance(estimator.likelihood, str):
        return learnt(estimator, estimator.likelihood, concentrations)
    if isinstance(estimator.learn, (bool, np.bool_)):
        return tuple(OF_LIKELIHOOD + name for name in fitted.tunables()) if estimator.learn else ()
    return learnt(estimator, fitted, concentrations)


def of_shares(estimator: Any) -> float | GammaConcentration:
    """The concentration of the shares of topics or states; 1 for a start where it is learnt."""
    value = estimator.concentration
    if isinstance(value, GammaConcentration):
        return value
    return 1.0 if isinstance(value, str) else float(value)


def without_priors(estimator: Any, concentrations: tuple[str, ...]) -> tuple[str, ...]:
    """The concentrations of an estimator that can be learnt: one with a prior has a posterior instead."""
    allocation = estimator if isinstance(estimator.allocation, str) else estimator.allocation
    return tuple(c for c in concentrations if not isinstance(getattr(allocation, c, None), GammaConcentration))


def with_concentrations(estimator: Any, named: tuple[str, ...], concentrations: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the concentrations that are "learn" or ``named``, and what else is named."""
    wanted = tuple(name for name in concentrations if isinstance(getattr(estimator, name), str) or name in named)
    return wanted + tuple(name for name in named if name not in concentrations)


def learning(options: Options, names: tuple[str, ...]) -> Options:
    """Options that learn hyperparameters: those of the allocation from the start, those of the likelihood late.

    A likelihood that is learnt from one topic or state would bar every split.
    """
    own = tuple(name for name in names if name.startswith(OF_LIKELIHOOD))
    return replace(options, learn=tuple(name for name in names if name not in own), learn_late=own)


def continued(estimator: Any, likelihood: Likelihood, source: ArraySource, learn: tuple[str, ...]) -> Likelihood:
    """A likelihood with the hyperparameters to learn as the model that a mixture starts from has learnt them, if it does."""
    first: Any = getattr(estimator.init, "model_", None)
    own = [name.removeprefix(OF_LIKELIHOOD) for name in learn if name.startswith(OF_LIKELIHOOD)]
    if first is None or not _as_wide(estimator.init, source):
        return likelihood
    return likelihood.continued(own, first.likelihood.plain)


def moves(estimator: Any) -> tuple[str, ...]:
    """The moves of an estimator, in the order of `MOVES`."""
    return tuple(move for move in MOVES if move in set(estimator.moves))


def algorithm(estimator: Any) -> Algorithm:
    """The algorithm of an estimator."""
    choice = estimator.algorithm
    if not isinstance(choice, str):
        given: Algorithm = choice
        return given
    if choice == "sequential":
        return Sequential()
    return Stochastic() if choice == "stochastic" else Memoized()


def from_one(estimator: Any) -> bool:
    """Whether the search of an estimator begins with one cluster."""
    return isinstance(estimator.init, str) and estimator.init == "one"


def searches_freely(estimator: Any) -> bool:
    """Whether it begins with one cluster and has all moves, so that a search may go anywhere."""
    return from_one(estimator) and moves(estimator) == MOVES


def check(estimator: Any) -> None:
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
        or isinstance(estimator.response, (NumericResponse, CategoricalResponse)),
        "response",
        estimator,
        f"one of {', '.join(map(repr, RESPONSES))}, a GaussianResponse, MarginResponse or CategoricalResponse, or None",
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


def allocation(estimator: Any) -> Allocation:
    """The allocation of a mixture."""
    choice = estimator.allocation
    if not isinstance(choice, str):
        given: Allocation = choice
        return given
    if choice == "finite":
        return FiniteDirichlet(estimator.n_init_clusters, estimator.concentration)
    if choice == "pitman-yor":
        return PitmanYor(estimator.concentration)
    return DirichletProcess(estimator.concentration)


def mixture_prior(estimator: Any) -> MixturePrior:
    """The allocation of a mixture, by its own type."""
    prior = allocation(estimator)
    assert isinstance(prior, MixturePrior)
    return prior


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
