"""Hidden Markov models: sequences to smoothed states to a summary."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._sums import check_between
from ..allocations.markov import ChainPrior
from ..data import ArraySource, Chunk
from ..data.sequences import Sequences, SequenceSource
from ..kernels.markov import compress, subtract_energies
from ..likelihoods import Likelihood
from ..likelihoods.features import features
from ..likelihoods.responsibilities import Responsibilities, join
from .kind import THRESHOLD, Batch, Drawn, Recipe, looks_at_all
from .local import DENSE_SHARE, responsibility_threshold
from .messages import Smoothed, smoothed, smoothed_counts
from .parameters import Parameters
from .potentials import WORKSPACE, Prepared, Scores, prepared_for
from .products import add_kept, add_product
from .rows import ROWS, drawn_rows, sampled_rows
from .summary import Array, Summary, cluster_axes

STAYS = 0.9  # self-transition share that is assumed where a start has only counts
TAKEN = 1 << 15  # rows whose features are held at a time


@dataclass(frozen=True)
class SequenceSummary(Summary):
    """What sequences say to the global step and to the bound, beside what their rows say.

    H_k is state k's part of the entropy of q(z), -E[log q(z_1)] - sum_t E[log q(z_t | z_{t-1})]  (Thesis Eq. 6.25).

    Attributes
    ----------
    M : (K, K) expected transitions, sum_t q(z_{t-1} = j, z_t = k)                                  (Thesis Eq. 6.27)
    begins : (K,) expected first states, sum_d q(z_d1 = k)
    """

    M: Array = cluster_axes(2)
    begins: Array = cluster_axes(1)

    def check(self, F: int) -> None:
        """As for rows; also, each step of a state must be a first step or follow another, and have at most one successor."""
        super().check(F)
        steps = self.M.sum(axis=0) + self.begins
        check_between("transitions", self.M)
        check_between("first states", self.begins)
        check_between("counts", self.N, steps)
        check_between("transitions from states", self.M.sum(axis=1), steps)

    @property
    def transitions(self) -> Array:
        """First states and transitions, (K + 1, K)."""
        counted = np.empty((self.K + 1, self.K))
        counted[0] = self.begins
        counted[1:] = self.M
        return counted

    @classmethod
    def of(cls, summary: Summary, M: Array, begins: Array) -> Self:
        """A summary of rows with transitions."""
        return cls(summary.N, summary.S, summary.H, summary.base, M, begins)


@dataclass(frozen=True)
class StateStart(Summary):
    """A start that knows the rows of states and no transitions: states are taken to last."""

    @property
    def transitions(self) -> Array:
        """First states and transitions that the counts suggest, (K + 1, K)."""
        share = self.N / max(self.N.sum(), 1e-300)
        M = (1.0 - STAYS) * np.outer(self.N, share) + STAYS * np.diag(self.N)
        return np.ascontiguousarray(np.vstack([share, M]))

    @property
    def as_sum(self) -> SequenceSummary:
        """The same rows, of no sequence."""
        return SequenceSummary.of(self, np.zeros((self.K, self.K)), np.zeros(self.K))


@dataclass(frozen=True)
class SequenceKind:
    """Sequences of rows that depend on each other through their states (see `stickbreak.model.kind.Kind`)."""

    units: ClassVar[str] = "sequences"
    allocations: ClassVar[type] = ChainPrior
    summary: ClassVar[type[Summary]] = SequenceSummary
    sample_size: ClassVar[int] = ROWS.sample_size
    takes_latent: ClassVar[bool] = False
    has_documents: ClassVar[bool] = False
    has_order: ClassVar[bool] = True
    recipe: ClassVar[Recipe] = Recipe(
        whole=True, tries={"birth": 1, "merge": 1, "delete": 1}, scored=False, pairs=0.0, ordered=False, rests=3
    )

    def start(self, rows: Summary) -> Summary:
        """A start that knows of no transition."""
        return StateStart(rows.N, rows.S, rows.H, rows.base)

    near = looks_at_all  # messages need every state

    def rounded(self, parameters: Parameters, dtype: np.dtype[np.floating]) -> Parameters:
        """Weights in this precision; messages are in float64."""
        return parameters._replace(W=parameters.W.astype(dtype, copy=False))

    def prepare(self, likelihood: Likelihood, parameters: Parameters, source: SequenceSource) -> Prepared:
        """What the local step of every chunk shares; of distinct rows the scores."""
        return prepared_for(likelihood, parameters, source)

    def local_step(
        self, likelihood: Likelihood, prepared: Prepared, batch: Batch, base: bool, keep: bool
    ) -> tuple[SequenceSummary, Responsibilities | Array]:
        """Smoothed states and summary of the sequences of a chunk (Thesis 6.3.3): the optimal q(z) for the parameters.

        H = sum_t log c_t - E[log potentials],   since q(z) is the product of all potentials over prod_t c_t.

        keep : whether the larger responsibilities are wanted, for rows to be drawn
        """
        if prepared.table is not None:
            return self._of_distinct(likelihood, prepared, prepared.table, batch, base)
        X: Sequences = batch.X
        K = prepared.K
        summary = Summary.zeros(*prepared.parameters.W.shape)
        M = np.zeros(prepared.A.shape)
        begins = np.zeros(K)
        pieces = dict[int, Responsibilities]()
        first = X.first(slice(0, len(X)))
        for block in smoothed(likelihood, prepared, X):
            rows = block.rows
            R = block.R[:, :K]
            here = batch.weights[rows]
            M += block.alpha.T @ block.G
            begins += R[np.flatnonzero(first[rows])].sum(axis=0)
            summary.N[...] += here @ R
            summary.H[...] += np.log(block.scale) @ R
            _add_statistics(block, R, None if X.source.weights is None else here, summary)
            for lane in block.lanes if base else ():
                summary.base[...] += batch.weights[lane] @ likelihood.log_base(X.rows(lane))
            if keep:
                kept = _compressed(R, THRESHOLD)
                for lane, (a, b) in zip(block.lanes, pairwise(block.edges)):
                    if a < b:
                        pieces[lane.start] = kept.part(int(a), int(b))
        return _of_chain(prepared, summary, M, begins), join([pieces[start] for start in sorted(pieces)])

    def _of_distinct(
        self, likelihood: Likelihood, prepared: Prepared, table: Scores, batch: Batch, base: bool
    ) -> tuple[SequenceSummary, Array]:
        """The same where the distinct rows are known; what is kept is how many of each are in each state, (U, K)."""
        X: Sequences = batch.X
        K = prepared.K
        found = smoothed_counts(likelihood, prepared, X)
        weights = X.source.weights
        counts = found.counts[:, :K] if weights is None else found.counts[:, :K] * weights[:, None]
        summary = Summary.zeros(*prepared.parameters.W.shape)
        summary.N[...] = counts.sum(axis=0)
        summary.H[...] = found.log_scale[:K]
        subtract_energies(found.counts, table.C, summary.H)
        add_product(counts, table.T, summary.S)
        if base:
            summary.base[...] = counts.sum(axis=1) @ likelihood.log_base(X.source.X)
        return _of_chain(prepared, summary, found.M, found.begins[:K]), counts

    def track(
        self,
        likelihood: Likelihood,
        prepared: Prepared | None,
        removed: tuple[int, ...],
        batch: Batch,
        kept: Responsibilities | Array,
        summary: SequenceSummary,
    ) -> SequenceSummary:
        """The summary under the states of a candidate, all of which may take part of the mass of those that are removed."""
        assert prepared is not None
        return self.local_step(likelihood, prepared, batch, False, False)[0]

    def draw(self, batch: Batch, kept: Responsibilities | Array, summary: Summary, limits: Array, salt: int) -> Drawn:
        """Rows drawn for each state, with chance ``limits`` (K,) per row; of distinct ones for all rows like them."""
        if isinstance(kept, Responsibilities):
            return drawn_rows(batch, kept, limits, salt)
        chance = np.minimum(kept * limits, 1.0)
        rng = np.random.default_rng([salt, batch.first])
        codes, states = np.nonzero(rng.random(chance.shape) < chance)
        return Drawn(
            states.astype(np.int32), batch.X.source.examples[codes], (kept / np.maximum(chance, 1e-300))[codes, states]
        )

    def sample(self, source: ArraySource, drawn: Sequence[Drawn], cluster: int, mass: float) -> tuple[Array, Array]:
        """The rows drawn for one state, and weights with which they stand for its ``mass``."""
        return sampled_rows(source, drawn, cluster, mass)


SEQUENCES = SequenceKind()


def labelled(likelihood: Likelihood, source: SequenceSource, labels: NDArray[np.intp]) -> SequenceSummary:
    """The summary of rows that are each wholly in the state of its label, with the transitions between these."""
    n = len(labels)
    K = int(labels.max()) + 1
    summary = rows_of_labels(likelihood, source, labels)
    M = np.zeros((K, K))
    begins = np.bincount(labels[source.edges[:-1]], minlength=K).astype(float)
    follows = np.ones(n, np.bool_)
    follows[source.edges[:-1]] = False
    after = np.flatnonzero(follows)
    np.add.at(M, (labels[after - 1], labels[after]), 1.0)
    return SequenceSummary.of(summary, M, begins)


def rows_of_labels(likelihood: Likelihood, source: SequenceSource, labels: NDArray[np.intp]) -> Summary:
    """The same without the transitions: counts and statistics of the rows of every label."""
    K = int(labels.max()) + 1
    summary = Summary.zeros(K, likelihood.n_statistics)
    N = summary.N
    for X, counts in _counts_of_labels(source, labels, K):
        N += counts.sum(axis=0)
        add_product(counts, features(likelihood, X), summary.S)
    return summary


def _counts_of_labels(
    source: SequenceSource, labels: NDArray[np.intp], K: int
) -> Iterator[tuple[Array, sparse.csr_array]]:
    """Rows, or the distinct ones if they are known, and the weight of each label for each row (n, K)."""
    n = len(labels)
    if source.codes is not None:
        counts = (source.observed(Chunk(0, n)), (source.codes, labels))
        yield np.asarray(source.X, dtype=source.dtype), sparse.csr_array(counts, (len(source.X), K))
        return
    for rows in np.array_split(np.arange(n), -(-n // TAKEN)):
        X, weights = source.take(rows)
        yield X, sparse.csr_array((weights, labels[rows], np.arange(len(rows) + 1)), (len(rows), K))


def _of_chain(prepared: Prepared, summary: Summary, M: Array, begins: Array) -> SequenceSummary:
    """The summary with transitions A * M, of which the entropies H then lack the energies."""
    K = prepared.K
    M = (prepared.A * M)[:K, :K]
    summary.H[...] -= (M * prepared.log_A).sum(axis=0) + begins * prepared.log_start
    return SequenceSummary.of(summary, np.ascontiguousarray(M), begins)


def _add_statistics(block: Smoothed, R: Array, weights: Array | None, summary: Summary) -> None:
    """Add a block's statistics and energies to a summary."""
    subtract_energies(block.R, block.scores.C, summary.H)
    threshold = responsibility_threshold(R.dtype)
    if np.count_nonzero(threshold < R) > DENSE_SHARE * R.size:
        weighted = R if weights is None else R * weights[:, None]
        add_product(weighted, block.scores.T, summary.S)
    else:
        weights = np.ones(len(R)) if weights is None else weights
        add_kept(_compressed(R, threshold), weights, block.scores.T, summary.S)


def _compressed(R: Array, threshold: float) -> Responsibilities:
    """Responsibilities R (n, K) above a threshold."""
    n, K = R.shape
    indptr = np.empty(n + 1, np.int64)
    values = WORKSPACE.array("values", (1, n * K))[0]
    indices = WORKSPACE.array("indices", (1, n * K), np.int32)[0]
    count = compress(R, threshold, indptr, indices, values)
    return Responsibilities(indptr, indices[:count].copy(), values[:count].copy())
