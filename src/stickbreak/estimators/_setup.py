"""What a fit consists of: a problem, where it begins and how it is searched; and what comes of it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..data import ArraySource
from ..inference import Lap, Options, Search
from ..inference.samplers.draws import Sampled
from ..model import Model, Summary

Start = Callable[[np.random.Generator], Summary]


class SearchProblem(NamedTuple):
    """What a search needs: the data, the model before any of them is seen, and options."""

    model: Model
    source: ArraySource
    options: Options


class Setup(NamedTuple):
    """A problem, what makes a start from random numbers, and the search that begins there."""

    problem: SearchProblem
    start: Start
    search: Callable[..., Search]


class Outcome(NamedTuple):
    """What an ascent found, lap by lap, and what there is to warn of; the draws of a sampler; whether Ctrl-C ended it."""

    total: Summary
    model: Model
    history: list[Lap]
    trouble: str | None
    sampled: Sampled | None = None
    interrupted: bool = False
