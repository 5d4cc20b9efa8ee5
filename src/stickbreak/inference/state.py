"""What an ascent is given, and its state: everything that the next lap needs, as a value."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource, Chunk
from ..model import Drawn, Kind, Memo, Model, Posterior, Summary
from ..moves import BatchBirth, Proposal, Schedule
from ..moves.better import accepts
from .executor import Executor

ROUNDING = {"float64": 1e-11, "float32": 1e-9}  # of the bound: what a lap gains less is not told from nothing
MOVED = 1e-3  # of the rows: a fit has not settled while the count of a cluster changes by more


@dataclass(frozen=True)
class Options:
    """How long to run and what to check.

    Attributes
    ----------
    n_batches : 1 is full-dataset inference
    max_laps : stop after this many passes
    tol : converged when a lap raises the bound by less than so many nats for each cluster
    accelerate : extrapolate the parameters between laps, and undo laps that lower the bound
    learn : what to learn between laps by empirical Bayes: names of concentrations of the allocation, and of hyperparameters of
        the likelihood as "likelihood.<name>"
    learn_late : the same, but only once there are several clusters, and no more were born for two laps; or at last (`at_last`)
    check : verify after every step that the bound has not decreased
    share : converged also, with a prior that is learnt, by a gain below this share of what the parameters of all clusters cost
    moved : but not while the count of a cluster changes by more than this share of the rows
    longest_step : multiple of the last change by which parameters are extrapolated, at most
    """

    n_batches: int = 1
    max_laps: int = 1000
    tol: float = 0.01
    accelerate: bool = True
    learn: tuple[str, ...] = ()
    learn_late: tuple[str, ...] = ()
    check: bool = False
    share: float = 0.0
    moved: float = MOVED
    longest_step: float = 20.0

    @property
    def at_last(self) -> "Options":
        """Those of the last laps of a search: what is to be learnt late is learnt then, whatever the number of clusters."""
        return replace(self, learn=self.learn + self.learn_late, learn_late=())


class Floor(NamedTuple):
    """A better model in hand while an ascent explores: its bound, its number of clusters, and nats to be ahead of it."""

    bound: float
    K: int
    least: float = 0.0


@dataclass(frozen=True)
class Problem:
    """What the laps of an ascent share.

    Attributes
    ----------
    source : the data
    executor : where tasks run
    options : how long to run and what to check
    most_quiet : laps in a row that changed little, after which an ascent is over although there are moves left to try
    floor : None, or a better model in hand
    patience : an excursion is over if it would take more laps than this, each like the last, to reach ``floor``
    goal : a bound that the ascent must be able to reach in as many laps, too
    birth : births that single batches decide on, if any (Thesis 4.2)
    kind : the kind whose local steps laps take, if it is not that of the model
    """

    source: ArraySource
    executor: Executor
    options: Options = field(default_factory=Options)
    most_quiet: int = sys.maxsize
    floor: Floor | None = None
    patience: float = np.inf
    goal: float = -np.inf
    birth: BatchBirth | None = None
    kind: Kind | None = None

    @cached_property
    def batches(self) -> list[list[Chunk]]:
        """The batches of all rows."""
        return self.source.batches(self.options.n_batches)

    def rounding(self, bound: float) -> float:
        """By how much bounds may differ that only rounding tells apart."""
        return ROUNDING[self.source.dtype.name] * abs(bound)

    def reported(self, bound: float, K: int) -> Floor:
        """The better of a model with K clusters and the one in hand."""
        floor = self.floor
        ahead = floor is None or accepts(bound - floor.bound - floor.least, K - floor.K, floor.bound)
        return Floor(bound, K) if ahead or floor is None else floor


class State(NamedTuple):
    """Everything that the next lap needs: a value that no lap changes.

    Attributes
    ----------
    posterior : of all rows, which says what the parameters are, and the model with the hyperparameters learnt so far
    memo : the summaries of the batches
    bound : the ELBO of all rows at the end of the last lap
    schedule : identities of the clusters, and what has failed
    rng : random numbers for the next lap
    settle : laps before the first moves are tried, other than deletes of clusters to which no row belongs
    proposals : to verify over the next lap
    drawn : rows drawn in the last lap to represent the clusters
    before : the posterior one lap ago, with today's clusters; None where the next lap cannot extrapolate
    step : how far to extrapolate
    stalled : whether the last lap gained nothing
    owners : for each batch, the identity of the cluster of each row at the last visit, where these are kept
    near : whether laps may look only at clusters near these: until one lowers the bound, or nothing is left to gain; moves
        that are accepted bring it back
    outside : nats, to first order, that the next lap is to lose if it does, for each breadth of what is near, narrowest first
    looked_near : whether the last lap did
    quiet, barren : laps in a row that changed little, and without births
    learns : whether what is learnt late is learnt now
    rests : laps before hyperparameters are learnt again, unless one gains no more than the tolerance; in excursions, and
        ``learnt`` is more than next to nothing
    learnt : nats that learning them gained the last time
    done : whether the ascent is over
    """

    posterior: Posterior
    memo: Memo
    bound: float
    schedule: Schedule
    rng: np.random.Generator
    settle: int
    proposals: Sequence[Proposal] = ()
    drawn: Sequence[Drawn] = ()
    before: Posterior | None = None
    step: float = 0.0
    stalled: bool = False
    owners: tuple[NDArray[np.integer], ...] = ()
    near: bool = False
    outside: tuple[float, ...] = ()
    looked_near: bool = False
    quiet: int = 0
    barren: int = 0
    learns: bool = True
    rests: int = 0
    learnt: float = np.inf
    done: bool = False

    @property
    def model(self) -> Model:
        """The model, with its hyperparameters as they were learnt."""
        return self.posterior.model

    @property
    def total(self) -> Summary:
        """The summary of all rows."""
        return self.posterior.summary
