"""The likelihoods that an estimator may mean, its columns located in the table, and the model with one of them."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..allocations import Allocation
from ..data import ArraySource, SparseSource
from ..likelihoods import REGISTRY, Likelihood, Sample
from ..model import Kind, Model, RowKind
from ._automatic import INDEPENDENT, NUMBERS, Reading, automatic, readings
from ._base import Columns

FEW_COLUMNS = 6  # with no more, clusters cost little whatever their family
PRIOR_ROWS = 100_000  # rows that default priors are scaled from


def automatically(estimator: Any) -> bool:
    """Whether an estimator chooses its likelihood by what the columns hold."""
    return isinstance(estimator.likelihood, str) and estimator.likelihood == "auto"


def likelihood(estimator: Any, source: ArraySource, choice: Any = None) -> Likelihood:
    """The likelihood of an estimator, or ``choice`` in its place, its columns located in the table.

    Where there are several it is that of independent columns.
    """
    found = candidates(estimator, source, choice)
    return found.get(INDEPENDENT, next(iter(found.values())))


def candidates(
    estimator: Any,
    source: ArraySource,
    choice: Any = None,
    among: Collection[str] = tuple(NUMBERS),
    coded: bool = False,
) -> dict[str, Likelihood]:
    """The likelihoods that an estimator, or ``choice`` in its place, may mean, by name; their columns located in the table.

    among : the families that columns of numbers may have, where there are several
    coded : whether counts may also be codes of categories
    """
    choice = (continues(estimator, source) or estimator.likelihood) if choice is None else choice
    if isinstance(choice, str):
        chosen = choice == "auto"
        found = automatic(source, estimator.levels_, among, coded) if chosen else {choice: REGISTRY[choice]()}
    else:
        found = {type(choice).__name__: choice}
    return {name: _located(estimator, family, source) for name, family in found.items()}


def continues(estimator: Any, source: ArraySource) -> Any:
    """The likelihood that a mixture has from the one it starts from, if no other was asked for and columns are as many."""
    first: Any = getattr(estimator.init, "model_", None)
    if (
        first is None
        or not isinstance(first.kind, RowKind)
        or not automatically(estimator)
        or not as_wide(estimator.init, source)
    ):
        return None
    return first.likelihood.anew() if automatically(estimator.init) else estimator.init.likelihood


def as_wide(fitted: Any, source: ArraySource) -> bool:
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
    return [replace(reading, latent=latent, fills_in=latent) for reading in found]


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
