"""What the parameters of an estimator mean: strings to moves, algorithms and allocations."""

from typing import Any

from ..allocations import Allocation, DirichletProcess, FiniteDirichlet, GammaConcentration, PitmanYor
from ..allocations.mixture import MixturePrior
from ..inference import Algorithm, Memoized, Sequential, Stochastic
from ..model import Model
from ..moves.proposal import KINDS

MOVES = KINDS  # all of them, which are also the default


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


def of_shares(estimator: Any) -> float | GammaConcentration:
    """The concentration of the shares of topics or states; 1 for a start where it is learnt."""
    value = estimator.concentration
    if isinstance(value, GammaConcentration):
        return value
    return 1.0 if isinstance(value, str) else float(value)


def check_start(model: Model, K: int) -> None:
    """Refuse a start with more clusters than the allocation may have."""
    if model.allocation.max_clusters < K:
        raise ValueError(f"init has {K} clusters, but the allocation has no more than {model.allocation.max_clusters}.")
