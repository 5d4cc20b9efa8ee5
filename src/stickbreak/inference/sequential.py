"""Sequential variational approximation (SVA): one pass over the rows, as an algorithm."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from .._arguments import as_floats, check_boolean, check_count, real, shown
from ..allocations.mixture import MixturePrior
from ..data import ArraySource
from ..model import Model, Posterior, Summary
from ..moves.agglomeration import ancestry, level_start, levels_of, merges
from .executor import Executor
from .laps import Result
from .one_pass import Clusters, OnePass
from .prior_search import prior_learner, with_learnt_prior
from .samplers.conjugate import require_no_latent
from .search import Search
from .session import Leg, Session
from .state import Options
from .stochastic import used_clusters
from .survey import survey
from .trace import Lap
from .visit import visit

SAMPLE_ROWS = 3000  # rows of which hyperparameters are learnt


@dataclass(frozen=True)
class Sequential:
    """One pass over the rows, in their order (SVA Alg. 1 with prune and merge, section 5), of `Mixture`.

    Each row is shared out among the clusters so far, by their predictive densities, and begins a cluster where its share in a
    new one is more than ``epsilon``.  A second visit, at fixed parameters, then makes the summary of all rows and its exact
    ELBO.  Rows that come sorted by cluster find each cluster late, but do find it.

    Hyperparameters that are learnt are learnt first, by a search of a sample of at most 3,000 rows, and then held; if that
    finds one cluster, they keep their defaults, since a prior learnt from one cluster allows no others.  A vague prior that is
    given finds few of many clusters: the first ones take in the rows of others, and nothing splits them.
    `Mixture.partial_fit` goes on with the pass, and clusters may be born.

    Parameters
    ----------
    epsilon : float from 0 to 1
        The share of a row in a new cluster that begins it.  Where it is small, clusters begin with a part of a row.
    prune : float >= 0
        A cluster goes while its part of the rows since its birth is smaller.  0 keeps all.
    merge : bool
        In the end, make clusters one where that raises the bound: pairs by the sums of the pass, then as many as are best by
        the exact bound.  The published criterion, a small distance of the responsibilities averaged over all rows, holds for
        any two small clusters, and two merged early stay together.
    block_rows : int >= 1
        Most rows to score under the same clusters; 1 is the algorithm as published.

    References
    ----------
    Lin, *Online learning of nonparametric mixture models via sequential variational approximation*, 2013.
    """

    epsilon: float = 0.1
    prune: float = 1e-5
    merge: bool = True
    block_rows: int = 4096
    searches: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    takes: ClassVar[tuple[str, ...]] = ("rows",)
    resumes: ClassVar[bool] = False
    seats: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0.0 <= real(self.epsilon) <= 1.0:
            raise ValueError(f"epsilon must be a number from 0 to 1; got {shown(self.epsilon)}.")
        if not 0.0 <= real(self.prune) < 1.0:
            raise ValueError(f"prune must be a number of at least 0, below 1; got {shown(self.prune)}.")
        as_floats(self, "epsilon", "prune")
        check_boolean(self.merge, "merge")
        check_count(self.block_rows, "block_rows")

    def begin(
        self,
        search: Callable[..., Search],
        model: Model,
        source: ArraySource,
        session: Session,
        rng: np.random.Generator,
        options: Options,
    ) -> "SequentialRun":
        """The pass for a problem; the search learns hyperparameters of a sample, where there are any to learn."""
        require_no_latent(model, "Sequential")
        sample = source.sample(SAMPLE_ROWS, rng)
        learner = prior_learner(search, model, sample, session, rng, replace(options, n_batches=1))
        return SequentialRun(self, model, source, session, learner)

    def grown(self, model: Model, summary: Summary, source: ArraySource, executor: Executor) -> Summary:
        """Counts and statistics after a pass over more rows, which may begin clusters after those of the summary."""
        require_no_latent(model, "Sequential")
        clusters = Clusters.of(summary.N, summary.S)
        clusters = self.passing(model, summary.K).over(source, clusters, executor)
        return clusters.summary

    def passing(self, model: Model, protected: int = 0) -> OnePass:
        """How a pass with a model goes; the first ``protected`` clusters stay."""
        assert isinstance(model.allocation, MixturePrior)
        seating = model.allocation.seating
        return OnePass(model, seating, self.epsilon, self.prune, self.merge, self.block_rows, protected)


@dataclass
class SequentialRun:
    """A pass, and the visit after it.

    Attributes
    ----------
    learner : makes the search that learns hyperparameters; None where none are learnt
    result : what the visit found, None before it is done
    """

    sequential: Sequential
    model: Model
    source: ArraySource
    session: Session
    learner: Callable[[], Search] | None
    result: Result | None = None
    converged: bool = field(default=False, init=False)

    def run(self, start: Summary) -> None:
        """Pass over the rows: from nothing, or from the clusters of ``start``, each as if it had one row so far."""
        known = self.session.journal.next()
        if known is not None and known.laps:
            self._keep(known.state, known.laps[-1])
            return
        model, _ = with_learnt_prior(self.model, start, self.learner)
        rows = float(start.N.sum())
        seeds = start * (start.K / rows) if rows > 0.0 else start.take(np.empty(0, np.intp))
        executor = self.session.executor
        clusters = self.sequential.passing(model).over(self.source, Clusters.of(seeds.N, seeds.S), executor)
        posterior = visited(model, clusters.summary, self.source, executor)
        if self.sequential.merge:
            posterior = agglomerated(posterior, self.source, executor)
        now = time.perf_counter() - self.session.began
        bound = posterior.bound
        K = posterior.summary.K
        lap = Lap(1, now, bound, K, bound, K, (), self.source.n_rows / max(now, 1e-9))
        state = Result(model, posterior.summary, bound, lap)
        self._keep(state, lap)
        self.session.journal.note(Leg(state, (lap,)))

    def _keep(self, state: Result, lap: Lap) -> None:
        self.result = state
        self.converged = True
        self.session.add(lap)


def visited(model: Model, start: Summary, source: ArraySource, executor: Executor) -> Posterior:
    """The posterior of all rows, visited at the parameters of ``start``, without clusters to which none belongs."""
    posterior = model.posterior(model.ordered(start))
    chunks = source.batches(1)[0]
    while True:
        parameters = posterior.parameters(source.dtype)
        total = visit(model, parameters, source, chunks, executor, local=False).summary
        posterior = model.posterior(model.ordered(total))
        used = used_clusters(posterior)
        if len(used) == total.K:
            return posterior
        posterior = model.posterior(posterior.summary.take(used))


def agglomerated(posterior: Posterior, source: ArraySource, executor: Executor) -> Posterior:
    """The posterior after the merges that the exact bound prefers, of all numbers of clusters down to one."""
    model = posterior.model
    while posterior.summary.K > 1:
        steps = list(merges(posterior))
        parents = ancestry(steps, posterior.summary.K)
        seen = survey(model, posterior.summary, source, executor, parents)
        levels = levels_of(model, seen.total, steps, seen.nodes)
        best = max(levels, key=lambda level: level.bound)
        if best is levels[0]:
            return posterior
        start, _ = level_start(model, seen.total, seen.nodes, best)
        merged = visited(model, start, source, executor)
        if not merged.bound > posterior.bound:
            return posterior
        posterior = merged
    return posterior
