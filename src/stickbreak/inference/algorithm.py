"""Algorithms as values: what ``algorithm=`` of an estimator means."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from .._arguments import check_boolean
from ..data import ArraySource
from ..model import Model, Summary
from .laps import Result
from .search import Search
from .session import Session
from .state import Options


class Ascending(Protocol):
    """An algorithm at work."""

    @property
    def result(self) -> Result | None:
        """What the last lap left, None before the first."""
        ...

    @property
    def converged(self) -> bool:
        """Whether it ended by itself."""
        ...

    def run(self, start: Summary) -> None:
        """Begin with the parameters that ``start`` implies, and go on to the end."""
        ...


class Algorithm(Protocol):
    """How the bound is raised.

    Attributes
    ----------
    searches : whether moves change the number of clusters meanwhile; if not, they are found on a sample before
    takes_weights : whether a row may count as several, so that equal rows are visited once
    takes : the kinds of data it takes, by their units (`stickbreak.model.Kind`)
    resumes : whether it notes how far it is (`stickbreak.inference.Journal`), so that a fit can go on from a checkpoint
    """

    searches: ClassVar[bool]
    takes_weights: ClassVar[bool]
    takes: ClassVar[tuple[str, ...]]
    resumes: ClassVar[bool]

    @property
    def seats(self) -> bool:
        """Whether rows join clusters one by one, so that it needs the seating of a prior (`MixturePrior.seating`)."""
        ...

    def begin(
        self,
        search: Callable[..., Search],
        model: Model,
        source: ArraySource,
        session: Session,
        rng: np.random.Generator,
        options: Options,
    ) -> Ascending:
        """The algorithm for a problem; ``search`` makes the search for such data."""
        ...


@dataclass(frozen=True)
class Memoized:
    """Laps over batches, with a global step after each batch from the exact total of what all batches said last.

    This is memoized variational inference (Thesis Alg. 3.3; on one batch, Alg. 3.1), with moves that change the number of
    clusters.  The bound never falls.

    Parameters
    ----------
    accelerate : bool, default True
        Extrapolate the parameters between laps, and undo laps that lower the bound; False is the algorithm as published.
    """

    accelerate: bool = True
    searches: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    takes: ClassVar[tuple[str, ...]] = ("rows", "documents", "sequences")
    resumes: ClassVar[bool] = True
    seats: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_boolean(self.accelerate, "accelerate")

    def begin(
        self,
        search: Callable[..., Search],
        model: Model,
        source: ArraySource,
        session: Session,
        rng: np.random.Generator,
        options: Options,
    ) -> Search:
        """The search for such data."""
        return search(model, source, session=session, rng=rng, options=replace(options, accelerate=self.accelerate))
