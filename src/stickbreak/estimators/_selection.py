"""The choice of a likelihood by the bound: short searches on a sample of the rows, one for each candidate."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ..data import ArraySource
from ..inference import LearningSearch, Options, Threads
from ..inference.init import one_cluster
from ..inference.learning_search import Rival
from ..likelihoods import Likelihood
from ..model import Model, Summary
from ..model.learning import OF_LIKELIHOOD
from ..model.local import responsibilities_of

FEWEST_ROWS = 5000  # of the sample
MOST_LAPS = 100  # to begin a search with one family
SMALLER, MOST_ROWS = 20, 20_000  # a sample has one row in so many, and no more than these


class Problem(NamedTuple):
    """What a search needs: the rows, the model before any of them is seen, and options."""

    model: Model
    source: ArraySource
    options: Options


@dataclass(frozen=True)
class Candidate:
    """What a likelihood explains of a table.

    Attributes
    ----------
    family : its name, or that of its part for numbers
    lower_bound : the ELBO of all rows, as far as those of the sample tell, less what the learnt hyperparameters cost
    n_clusters : clusters found in the sample
    seconds : time of the search
    """

    family: str
    lower_bound: float
    n_clusters: int
    seconds: float


class Found(NamedTuple):
    """The outcome of a search of all rows."""

    model: Model
    total: Summary


class Begun(NamedTuple):
    """A search with one family that has begun: its bound, as if of all rows, less what is not in it, and its outcome."""

    bound: float
    found: Found


class Selection(NamedTuple):
    """The best family, all candidates, best first, what was found with the best one if the sample was all rows, and rivals.

    rivals : what the best search found, for others to start from
    """

    family: str
    candidates: list[Candidate]
    found: Found | None
    rivals: list[Rival]


def select(
    families: Mapping[str, Likelihood],
    problem: Callable[[Likelihood, ArraySource], Problem],
    source: ArraySource,
    moves: tuple[str, ...],
    threads: Threads,
    rng: np.random.Generator,
) -> Selection:
    """Begin to search a sample with each of several likelihoods; the bound, as if of all rows, says which is best.

    Each search may start from what the best one before it found, so those of fewer parameters come first.  Hyperparameters
    that are learnt cost half the logarithm of the number of rows each, as in BIC (Schwarz 1978): a family that others hold as
    a special case is otherwise never ahead.

    problem : what a search with a likelihood on some rows is
    """
    sample = source.sample(sample_rows(source), rng)

    def begin(likelihood: Likelihood, best: Found | None) -> Begun:
        model, few, options = problem(likelihood, sample)
        rivals = [] if best is None else [_rival(best, source.dtype)]
        options = replace(options, max_laps=min(options.max_laps, MOST_LAPS))
        search = LearningSearch(model, few, moves, threads, rng.spawn(1)[0], options, rivals=rivals)
        search.begin(one_cluster(model))
        total = search.total * (source.total_weight / few.total_weight)
        return begun(Found(search.found, total), source.total_weight, options.learn)

    candidates, found = compared(families, begin)
    best = candidates[0].family
    return Selection(best, candidates, found[best] if sample is source else None, [_rival(found[best], source.dtype)])


def begun(found: Found, rows: float, learn: Sequence[str], n_more: int = 0) -> Begun:
    """An outcome with its bound, less half the logarithm of the number of rows for each number that is learnt.

    n_more : such numbers beside those of the prior
    """
    cost = 0.5 * np.log(rows) * (_n_learnt(found.model.likelihood, learn) + n_more)
    return Begun(found.model.bound(found.total) - float(cost), found)


def sample_rows(source: ArraySource) -> int:
    """Rows of the sample on which families are compared."""
    return min(max(FEWEST_ROWS, source.n_rows // SMALLER), MOST_ROWS)


def compared(
    families: Mapping[str, Likelihood], begin: Callable[[Likelihood, Found | None], Begun]
) -> tuple[list[Candidate], dict[str, Found]]:
    """The candidates, best first, and what the search with each has found.

    begin : begins a search with a likelihood, given what the best one before it found
    """
    candidates: list[Candidate] = []
    found: dict[str, Found] = {}
    for family, likelihood in families.items():
        began = time.perf_counter()
        bound, found[family] = begin(likelihood, found[candidates[0].family] if candidates else None)
        candidates.append(Candidate(family, bound, found[family].total.K, time.perf_counter() - began))
        candidates.sort(key=lambda candidate: -candidate.lower_bound)
    return candidates, found


def _rival(found: Found, dtype: np.dtype[np.floating]) -> Rival:
    """The responsibilities of rows according to the outcome of a search."""
    rival: Rival = partial(responsibilities_of, found.model, found.model.parameters(found.total, dtype))
    return rival


def _n_learnt(likelihood: Likelihood, names: Sequence[str]) -> int:
    """How many numbers of its prior are learnt, of the hyperparameters that `tuned` is told."""
    own = [name.removeprefix(OF_LIKELIHOOD) for name in names if name.startswith(OF_LIKELIHOOD)]
    return sum(likelihood.n_learnt(name) for name in own)
