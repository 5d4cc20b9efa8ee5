"""Truncation-free stochastic inference (Wang and Blei 2012): rows of a batch may begin clusters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._arguments import check_boolean, check_count, shown
from ..allocations.mixture import MixturePrior
from ..data import ArraySource, Chunk
from ..likelihoods.features import features
from ..model import Model, Posterior, Summary
from ..model.local import responsibilities_of
from .executor import Executor
from .prior_search import prior_learner
from .samplers.collapsed import sweep
from .samplers.conjugate import require_conjugate, require_single_rows
from .samplers.partition import Partition, Table
from .search import Search
from .sequential import SAMPLE_ROWS, agglomerated
from .session import Session
from .state import Options
from .stochastic import Stochastic, StochasticLaps

DEALT = 10  # clusters to which the first rows are dealt out
LEAST_ROWS = 1.0  # a cluster that stands for fewer rows goes


@dataclass(frozen=True)
class TruncationFree:
    """Stochastic steps in which clusters are born, of `Mixture`: the rival of one pass in SVA, section 6.

    The decaying summary says how many rows N_k each cluster has, and their sums S_k.  The clusters of the rows of a batch are
    drawn by collapsed Gibbs sampling beside them, with n_k and s_k of the other rows of the batch:

        p(row joins cluster k)  ~  (N_k + n_k - d) p(x | N_k + n_k, S_k + s_k),
        p(row begins a cluster) ~  (alpha + d K) p(x | no rows).

    So rows are explained by expected densities, in place of exponentials of expected log densities, and new clusters need no
    place kept for them.  The sums of the batch are then mixed into the summary by the step of ``steps``, and clusters that
    stand for less than a row go.  A last lap at fixed parameters makes the ELBO exact.

    Steps never merge clusters, so that there are often more than needed.  Therefore they are agglomerated in the end, to the
    number with the highest ELBO.  Hyperparameters are learnt first, as for `Sequential`.

    Parameters
    ----------
    n_sweeps : int >= 1
        Sweeps over the rows of a batch.
    steps : Stochastic
        Sizes of steps.
    merge : bool
        Agglomerate clusters in the end; the published algorithm does not.

    References
    ----------
    Wang and Blei, *Truncation-free online variational inference for Bayesian nonparametric models*, 2012, for mixtures.
    """

    n_sweeps: int = 2
    steps: Stochastic = Stochastic()
    merge: bool = True
    searches: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = False
    takes: ClassVar[tuple[str, ...]] = ("rows",)
    resumes: ClassVar[bool] = True
    seats: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count(self.n_sweeps, "n_sweeps")
        check_boolean(self.merge, "merge")
        if not isinstance(self.steps, Stochastic):
            raise ValueError(f"steps must be a Stochastic; got {shown(self.steps)}.")

    def step(self, t: int) -> float:
        """xi_t for t = 1, 2, ..."""
        return self.steps.step(t)

    def begin(
        self,
        search: Callable[..., Search],
        model: Model,
        source: ArraySource,
        session: Session,
        rng: np.random.Generator,
        options: Options,
    ) -> StochasticLaps:
        """The steps for a problem; the search learns hyperparameters of a sample, where there are any to learn.

        Raises
        ------
        ValueError
            If the likelihood is not conjugate, or rows have weights.
        """
        require_conjugate(model, "TruncationFree")
        require_single_rows(source, "TruncationFree")
        sample = source.sample(SAMPLE_ROWS, rng)
        learner = prior_learner(search, model, sample, session, rng, replace(options, n_batches=1))
        held = replace(options, learn=(), learn_late=())
        return StochasticLaps(model, source, self, session, rng, held, learner)

    def kept(self, mixed: Summary) -> Summary:
        """Without clusters that stand for less than a row, the largest first."""
        order = np.argsort(-mixed.N, kind="stable")
        return mixed.take(order[mixed.N[order] >= LEAST_ROWS])

    def concluded(self, posterior: Posterior, source: ArraySource, executor: Executor) -> Posterior:
        """The posterior after the merges that the ELBO prefers."""
        return agglomerated(posterior, source, executor) if self.merge else posterior

    def seen(
        self,
        model: Model,
        mixed: Summary,
        source: ArraySource,
        chunks: Sequence[Chunk],
        executor: Executor,
        rng: np.random.Generator,
    ) -> Summary:
        """The summary of a batch whose rows are drawn clusters beside those of ``mixed``; new ones come last."""
        rows = [source.read(chunk)[0] for chunk in chunks]
        X = sparse.vstack(rows, format="csr") if sparse.issparse(rows[0]) else np.concatenate(rows)
        partition = beside(model, mixed, X, rng)
        moved = 1.0
        for _ in range(self.n_sweeps):
            moved = sweep(partition, rng, moved) / len(partition.labels)
        N, S = partition.table.sums(partition.labels, partition.K)
        return Summary(N, S, np.zeros(len(N)), np.array(partition.table.base))


def beside(
    model: Model, known: Summary, X: NDArray[np.floating] | sparse.csr_array, rng: np.random.Generator
) -> Partition:
    """The rows X of a batch in their most probable clusters among those known, whose rows count, too.

    Where none is known, rows are dealt out to ten at random, from which sweeps get further than from one.
    """
    assert isinstance(model.allocation, MixturePrior)
    likelihood = model.likelihood
    T = features(likelihood, X)
    table = Table.of(likelihood, model.allocation, T, float(likelihood.log_base(X).sum()))
    if known.K == 0:
        return Partition.of(table, rng.integers(min(DEALT, model.max_clusters), size=table.n_rows))
    parameters = model.parameters(known, np.dtype(np.float64))
    labels = np.asarray(responsibilities_of(likelihood, parameters, X).argmax(axis=1), np.int64)
    n, s = table.sums(labels, known.K)
    N = known.N + n
    S = known.S + s
    return Partition(table, labels, N, S, table.log_marginal(N, S), known.S)
