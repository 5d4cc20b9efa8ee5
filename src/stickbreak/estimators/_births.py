"""The moves of an estimator, and published births among those of a mixture."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from .._arguments import shown
from ..inference import AdoptedSearch, Algorithm, Memoized, PublishedSearch, Search
from ..moves import AdoptedBirth, BatchBirth

PUBLISHED: dict[type, Callable[..., Search]] = {BatchBirth: PublishedSearch, AdoptedBirth: AdoptedSearch}


def published_birth(estimator: Any) -> BatchBirth | AdoptedBirth | None:
    """The published births that the moves of an estimator name, if any."""
    return next((move for move in estimator.moves if type(move) in PUBLISHED), None)


def check_moves(estimator: Any, names: tuple[str, ...], births: tuple[type, ...]) -> None:
    """Refuse moves other than these names and values of these classes of births."""
    given = estimator.moves
    fits = isinstance(given, (list, tuple, AbstractSet, np.ndarray))  # an iterator can be read only once
    if not fits or not all(isinstance(move, births) or (isinstance(move, str) and move in names) for move in given):
        others = "".join(f", or a {birth.__name__}" for birth in births)
        raise ValueError(
            f"moves must be a sequence of names among {names}{others}, in a list, tuple or set; got {shown(given)}."
        )


def check_births(estimator: Any, algorithm: Algorithm) -> None:
    """Refuse two kinds of births at once, and published births without a memo of batches."""
    birth = published_birth(estimator)
    if birth is None:
        return
    name = type(birth).__name__
    if sum(type(move) in PUBLISHED or move == "birth" for move in estimator.moves) > 1:
        raise ValueError(f"moves must be with at most one kind of births; got {shown(estimator.moves)}.")
    if not isinstance(algorithm, Memoized):
        raise ValueError(
            f"algorithm must be 'memoized', 'full' or a Memoized() where moves have a {name}; "
            f"got {shown(estimator.algorithm)}."
        )
