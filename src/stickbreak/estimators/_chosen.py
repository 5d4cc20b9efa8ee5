"""The family of the clusters of a fit, as a choice leaves it, and fits with families that are open or decided."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from ..inference.learning_search import Rival
from ..likelihoods import Likelihood
from ..model import Model, Summary
from ._setup import Outcome, Setup


@dataclass(frozen=True)
class Candidate:
    """What a likelihood explains of a table.

    Attributes
    ----------
    family : its name, or that of its part for numbers
    lower_bound : the ELBO of all rows, as far as those of the sample tell, less what the learnt hyperparameters cost
    n_clusters : clusters found in the sample, or by a whole fit
    seconds : time of the search, and of the fit
    """

    family: str
    lower_bound: float
    n_clusters: int
    seconds: float


class Found(NamedTuple):
    """The outcome of a search of all rows."""

    model: Model
    total: Summary


class Entry(NamedTuple):
    """A likelihood, before it has seen data, and what a search with it found."""

    candidate: Candidate
    likelihood: Likelihood
    found: Found


class Prepared(Protocol):
    """The setup of a fit with a family, and what was found on the way."""

    @property
    def setup(self) -> Setup:
        """What the fit consists of."""
        ...


P = TypeVar("P", bound=Prepared)
Ascend = Callable[[Setup], Outcome]  # what comes of a setup


class Fit(NamedTuple, Generic[P]):
    """A fit: what it consisted of, what came of it, and how many seconds it took."""

    prepared: P
    outcome: Outcome
    seconds: float


class Choice(Protocol):
    """The family of a fit, decided or not."""

    def fit(self, prepare: "Callable[[Family], P]", ascend: Ascend) -> "tuple[Family, Fit[P]]":
        """The family, once it is decided, and the fit with it.

        prepare : the setup with a family
        """
        ...


@dataclass(frozen=True)
class Family:
    """The family of the clusters of a fit, and what came of its choice, if there was one.

    likelihood : before it has seen data
    candidates : the one chosen by the bound, then the others, best first
    rivals : what its search found, for others to start from
    found : the outcome of its search, if the sample was all rows
    """

    likelihood: Likelihood
    candidates: list[Candidate] = field(default_factory=list)
    rivals: list[Rival] = field(default_factory=list)
    found: Found | None = None

    def begin(
        self, model: Model, start: Callable[[np.random.Generator], Summary]
    ) -> tuple[Model, Callable[[np.random.Generator], Summary]]:
        """Where a fit begins: a model and its start, unless a search of all rows has got further."""
        found = self.found
        return (model, start) if found is None else (found.model, lambda rng: found.total)

    def fit(self, prepare: "Callable[[Family], P]", ascend: Ascend) -> "tuple[Family, Fit[P]]":
        """Itself, and the fit with it."""
        return self, fitted(self, prepare, ascend)


def fitted(family: Family, prepare: Callable[[Family], P], ascend: Ascend) -> Fit[P]:
    """The fit with a family."""
    began = time.perf_counter()
    prepared = prepare(family)
    outcome = ascend(prepared.setup)
    return Fit(prepared, outcome, time.perf_counter() - began)
