"""Hidden Markov models as a unit: sequences to smoothed states to a summary."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from ..data.sequences import Sequences, SequenceSource
from ..kernels.assign import accumulate
from ..kernels.markov import add_rows, collect, subtract_energies
from .local import DENSE_SHARE, Drawn, Responsibilities, RowUnit, join, responsibility_threshold
from .messages import Prepared, Smoothed, prepared_for, smoothed
from .model import Model, Parameters
from .summary import Array, Summary, cluster_axes


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

    @classmethod
    def of(cls, summary: Summary, M: Array, begins: Array) -> Self:
        """A summary of rows with transitions."""
        return cls(summary.N, summary.S, summary.H, summary.base, M, begins)


class SequenceUnit:
    """What visits do with sequences, whose rows depend on each other through their states (see `RowUnit`)."""

    sample_size = RowUnit.sample_size

    def prepare(self, model: Model, parameters: Parameters, source: SequenceSource) -> Prepared:
        """What the local step of every chunk shares; of distinct rows the scores."""
        return prepared_for(model, parameters, source)

    def local_step(
        self, model: Model, prepared: Prepared, X: Sequences, weights: Array, base: bool, start: Array | None
    ) -> tuple[SequenceSummary, Responsibilities]:
        """Smoothed states and summary of the sequences of a chunk (Thesis 6.3.3): the optimal q(z) for the parameters.

        H = sum_t log c_t - E[log potentials],   since q(z) is the product of all potentials over prod_t c_t.
        """
        K, table = prepared.K, prepared.table
        summary = Summary.zeros(*prepared.parameters.W.shape)
        M, begins = np.zeros(prepared.A.shape), np.zeros(K)
        per_code = None if table is None else np.zeros(table.C.shape)
        pieces = list[Responsibilities]()
        for block in smoothed(model, prepared, X):
            here, R = weights[block.rows], block.R[:, :K]
            M += block.alpha[:-1].T @ block.G
            begins += block.R[X.first(block.rows), :K].sum(axis=0)
            kept = _collected(block, here, summary)
            if per_code is None:
                subtract_energies(block.R, block.scores.C, summary.H)
                if kept.values.size > DENSE_SHARE * R.size:
                    summary.S.__iadd__((R * here[:, None]).T @ block.scores.T.astype(np.float64, copy=False))
                else:
                    accumulate(*kept, here, block.scores.T, summary.S)
                if base:
                    summary.base.__iadd__(here @ model.likelihood.log_base(X.rows(block.rows)))
            else:
                add_rows(block.R, block.scores.codes, per_code)
            pieces.append(kept)
        if per_code is not None and table is not None:
            source = X.source
            use = np.ones(len(source.X)) if source.weights is None else source.weights
            subtract_energies(per_code, table.C, summary.H)
            weighted = per_code[:, :K] * use[:, None]
            summary.S.__iadd__(np.asarray((table.T.T @ weighted).T, dtype=np.float64))
            if base:
                summary.base.__iadd__(weighted.sum(axis=1) @ model.likelihood.log_base(source.X))
        M = (prepared.A * M)[:K, :K]
        summary.H.__isub__((M * prepared.log_A).sum(axis=0) + begins * prepared.log_start)
        return SequenceSummary.of(summary, np.ascontiguousarray(M), begins), join(pieces[::-1])

    def track(
        self,
        model: Model,
        prepared: Prepared | None,
        removed: tuple[int, ...],
        X: Sequences,
        weights: Array,
        kept: Responsibilities,
        summary: SequenceSummary,
    ) -> SequenceSummary:
        """The summary under the states of a candidate, all of which may take part of the mass of those that are removed."""
        assert prepared is not None
        return self.local_step(model, prepared, X, weights, False, None)[0]

    def draw(
        self,
        X: Sequences,
        weights: Array,
        kept: Responsibilities,
        summary: Summary,
        limits: Array,
        salt: int,
        first: int,
    ) -> Drawn:
        """Rows drawn for each state, with chance ``limits`` (K,) per row."""
        return RowUnit().draw(X, weights, kept, summary, limits, salt, first)

    def sample(self, source: SequenceSource, drawn: list[Drawn], cluster: int, mass: float) -> tuple[Array, Array]:
        """The rows drawn for one state, and weights with which they stand for its ``mass``."""
        return RowUnit().sample(source, drawn, cluster, mass)


def _collected(block: Smoothed, weights: Array, summary: Summary) -> Responsibilities:
    """Add a block's counts and part of its entropies to a summary; its responsibilities without the negligible ones."""
    n, K = len(block.R), summary.K
    indptr, indices, values = np.empty(n + 1, np.int64), np.empty(n * K, np.int32), np.empty(n * K)
    threshold = responsibility_threshold(values.dtype)
    count = collect(block.R, block.scale, weights, threshold, summary.N, summary.H, indptr, indices, values)
    return Responsibilities(indptr, indices[:count].copy(), values[:count].copy())
