"""Gibbs sampling as an algorithm: `Gibbs` is the value, `GibbsRun` a run of it."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..._arguments import check_boolean, check_count, real, shown
from ...data import ArraySource
from ...model import Model, Summary
from ..laps import Result
from ..memory import check_room
from ..prior_search import prior_learner, with_learnt_prior
from ..search import Search
from ..session import Leg, Session
from ..state import Options
from ..trace import Lap
from .chain import ChainDraws, ChainStart, ChainTask, Rows
from .draws import Draws, Sampled
from .rows import ROWS
from .states import STATES
from .subject import Subject

KINDS = ("collapsed", "blocked")
DEALT = 10  # clusters to which rows are dealt where a chain begins at random
LABEL = 4  # bytes


@dataclass(frozen=True)
class Gibbs:
    """Draws from the posterior of partitions, by Gibbs sampling (BJ 4), of `Mixture`, and of states, of `HMM` (Thesis 6.6).

    Collapsed sweeps draw the cluster of every row given those of all others, parameters and weights integrated out.  The fitted
    model is that of the partition nearest to all draws (`Draws.nearest_partition`), each row wholly in one cluster;
    ``lower_bound_`` is the exact ELBO of that, and ``draws_`` has the draws.

    States of sequences have blocked sweeps (``kind="blocked"``), of a sticky HDP-HMM of ``truncation`` states, its weak limit
    (Fox et al. 2011): the shares of the states, transitions, parameters, and then the states of each sequence all at once.

    A concentration with a prior (`stickbreak.allocations.GammaConcentration`) is drawn along with the partition.

    Hyperparameters that are learnt (``learn``) are learnt first, by the search of `Memoized`, and then held, unless it finds
    one cluster, from which a prior learnt would allow no others.  Every second
    chain, the first among them, begins where that ended, or where ``init`` says; the others with rows dealt to clusters at
    random, so that chains which agree in the end have forgotten where they began.

    Parameters
    ----------
    n_draws : int >= 1
        Draws kept of each chain.
    n_burn_in : int >= 0
        Sweeps before the first of them.
    n_chains : int >= 1
        Chains, which may run at the same time (``n_jobs``); draws do not depend on that.
    kind : {"collapsed", "blocked"}
        Integrate weights and parameters out and draw one row after the other, or draw weights, parameters, and all rows at
        once, of a process cut off after ``truncation`` clusters (BJ 4.2).  A blocked sweep is much quicker, but a chain needs
        more of them.
    split_merge : bool
        Propose splits and merges of whole clusters between collapsed sweeps (Dahl 2005).
    thin : int >= 1
        Sweeps from one draw to the next.
    truncation : int >= 1
        Clusters of the process cut off, or states, for ``kind="blocked"``; a finite or truncated prior has its own number.

    References
    ----------
    Blei and Jordan, *Variational inference for Dirichlet process mixtures*, 2006, section 4; MacEachern 1994; Neal,
    *Markov chain sampling methods for Dirichlet process mixture models*, 2000; Fox, Sudderth, Jordan and Willsky, *A sticky
    HDP-HMM with application to speaker diarization*, 2011, Algorithm 3.
    """

    n_draws: int = 1000
    n_burn_in: int = 500
    n_chains: int = 4
    kind: str = "collapsed"
    split_merge: bool = True
    thin: int = 1
    truncation: int = 50
    searches: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = False
    takes: ClassVar[tuple[str, ...]] = ("rows", "sequences")
    resumes: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in ("n_draws", "n_chains", "thin", "truncation"):
            check_count(getattr(self, name), name)
        burn = self.n_burn_in
        if not (0.0 <= real(burn) < 2**31 and float(burn).is_integer()):
            raise ValueError(f"n_burn_in must be a whole number of at least 0, below 2^31; got {shown(burn)}.")
        if not (isinstance(self.kind, str) and self.kind in KINDS):
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}; got {shown(self.kind)}.")
        check_boolean(self.split_merge, "split_merge")

    @property
    def n_sweeps(self) -> int:
        """Sweeps of each chain."""
        return int(self.n_burn_in) + self.n_draws * self.thin

    @property
    def seats(self) -> bool:
        """Whether sweeps are collapsed."""
        return self.kind == "collapsed"

    def begin(
        self,
        search: Callable[..., Search],
        model: Model,
        source: ArraySource,
        session: Session,
        rng: np.random.Generator,
        options: Options,
    ) -> "GibbsRun":
        """The chains for a problem; the search learns hyperparameters, where there are any to learn.

        Raises
        ------
        ValueError
            If rows have latent variables, or weights.
        TypeError
            If blocked sweeps are asked for and the likelihood draws no parameters.
        """
        _subject(model).check(model, source, self.kind == "collapsed")
        learner = prior_learner(search, model, source, session, rng, options)
        return GibbsRun(self, model, source, session, rng, learner)


@dataclass
class GibbsRun:
    """Chains from one start.

    Attributes
    ----------
    learner : makes the search that learns hyperparameters; None where none are learnt
    result : the partition nearest to the draws, None before they are done
    draws : of all chains
    """

    gibbs: Gibbs
    model: Model
    source: ArraySource
    session: Session
    rng: np.random.Generator
    learner: Callable[[], Search] | None
    result: Result | None = None
    converged: bool = field(default=False, init=False)

    def run(self, start: Summary) -> None:
        """Run the chains from the clusters that ``start`` implies."""
        known = self.session.journal.next()
        if known is not None and known.laps:
            self._keep(known.state, known.laps[-1])
            return
        model, start = with_learnt_prior(self.model, start, self.learner)
        subject = _subject(model)
        self._check_room(subject)
        table = subject.table(model, self.source)
        draws = self._drawn(subject, model, start, table)
        state = self._nearest(subject, model, table, draws)
        now = time.perf_counter() - self.session.began
        speed = self.source.n_rows * self.gibbs.n_sweeps * self.gibbs.n_chains / max(now, 1e-9)
        K = state.total.K
        lap = Lap(1, now, state.bound, K, state.bound, K, (), speed)
        self._keep(state, lap)
        self.session.journal.note(Leg(state, (lap,)))

    def _check_room(self, subject: Subject) -> None:
        """Refuse what memory has no room for."""
        N = self.source.n_rows
        n_draws = self.gibbs.n_chains * self.gibbs.n_draws
        check_room(
            subject.size(self.model, self.source) + LABEL * n_draws * N,
            f"{N:,} rows with {self.model.likelihood.n_statistics:,} statistics each and {n_draws:,} draws",
            "use fewer draws, more thin, or a sample of the rows",
        )

    def _drawn(self, subject: Subject, model: Model, start: Summary, table: Rows) -> Draws:
        """The draws of all chains."""
        gibbs = self.gibbs
        n_clusters = model.allocation.max_clusters
        first = subject.most_probable(model, start, self.source, self.session.executor)
        most = min(DEALT, n_clusters)
        seeds = self.rng.integers(2**63, size=gibbs.n_chains)
        starts = [
            ChainStart(self.rng.integers(most, size=table.n_rows) if chain % 2 else first, int(seed))
            for chain, seed in enumerate(seeds)
        ]
        n_blocked = n_clusters if n_clusters < sys.maxsize else gibbs.truncation
        begin = subject.steps(gibbs.kind == "collapsed", gibbs.split_merge, n_blocked)
        task = ChainTask(table, begin, int(gibbs.n_burn_in), gibbs.n_draws, gibbs.thin)
        chains: list[ChainDraws] = list(self.session.executor.map(task, starts))
        return Draws(*(np.stack(arrays) for arrays in zip(*chains)))

    def _nearest(self, subject: Subject, model: Model, table: Rows, draws: Draws) -> Result:
        """The model of the partition nearest to the draws."""
        labels = draws.nearest_partition()
        total = subject.total(model, table, labels)
        order = model.allocation.order(total)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        total = total.take(order)
        bound = model.bound(total)
        K = total.K
        lap = Lap(1, 0.0, bound, K, bound, K, (), 0.0)
        return Result(model, total, bound, lap, Sampled(draws, place[labels]))

    def _keep(self, state: Result, lap: Lap) -> None:
        self.result = state._replace(lap=lap)
        self.converged = True
        self.session.add(lap)


def _subject(model: Model) -> Subject:
    """The kind of data of a model, as samplers see it."""
    return STATES if model.kind.has_order else ROWS
