"""What documents say: a summary."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, psi

from .summary import Summary, cluster_axes, local_field

Array = NDArray[np.floating]

ROUNDING = 1e-9  # of E[log pi] of a document, which is zero where there is one topic


@dataclass(frozen=True)
class DocumentSummary(Summary):
    """What documents say to the global step and to the bound, beside what their rows say.

    Attributes
    ----------
    P : (K,) sum_d E[log pi_dk]                                                                    (Thesis Eq. 5.38)
    Q : (K,) sum_d log Gamma(theta_dk) - (theta_dk - N_dk) E[log pi_dk]                            (Thesis Eq. 5.48)
    P_rest : () the same as P for the topics that are not in use
    Q_rest : () the same as Q for these, - sum_d log Gamma(sum_k theta_dk)
    D : () number of documents
    counts : (K, n) N_dk of the documents of a batch, float32, from which its next visit starts; (K, 0) where not kept
    """

    P: Array = cluster_axes(1)
    Q: Array = cluster_axes(1)
    P_rest: Array = cluster_axes(0)
    Q_rest: Array = cluster_axes(0)
    D: Array = cluster_axes(0)
    counts: Array = local_field()

    @classmethod
    def of(cls, rows: Summary) -> Self:
        """What rows say, of no document."""
        nothing = np.zeros(rows.K)
        none = np.zeros(())
        local = np.empty((rows.K, 0), np.float32)
        return cls(rows.N, rows.S, rows.H, rows.base, nothing, nothing, none, none, none, local)

    def of_one_topic(self, sizes: Array, own: float, rest: float) -> Self:
        """This summary of the only topic of documents with ``sizes`` (n,) tokens, for pseudo-counts of it and of the rest."""
        totals = sizes + own + rest
        logs = psi(sizes + own) - psi(totals)
        logs_of_rest = psi(rest) - psi(totals)
        return replace(
            self,
            P=logs.sum(keepdims=True),
            Q=(gammaln(sizes + own) - own * logs).sum(keepdims=True),
            P_rest=np.array(logs_of_rest.sum()),
            Q_rest=np.array((gammaln(rest) - rest * logs_of_rest - gammaln(totals)).sum()),
        )

    @property
    def as_start(self) -> Summary:
        """The topics alone: what is known of documents changes with them."""
        return self.of(self)

    @property
    def warm_start(self) -> Array | None:
        """The counts."""
        return self.counts

    def check(self, F: int) -> None:
        """As for rows; also, logarithms of proportions must not be positive."""
        super().check(F)
        if not self.D > 0.0:
            raise ValueError(f"the summary is of {self.D:g} documents.")
        if (self.P > ROUNDING * self.D).any() or self.P_rest > ROUNDING * self.D:
            raise ValueError("the summary's P has logarithms of proportions that are positive.")

    @classmethod
    def of_sums(cls, prior: Array, rest: float, sums: Array, H: Array, S: Array, totals: Array, N: Array) -> Self:
        """The summary of documents, from sums over them.

        prior : (K,) pseudo-counts of the topics in every document;  rest : of topics not in use
        sums : (4, K), the first two of P and Q, as of `stickbreak.kernels.document_statistics.document_statistics`
        H : (K,);  S : (K, F)
        totals : (n,) sum_k theta_dk;  N : (n, K) counts
        """
        n = len(totals)
        psi_totals = psi(totals).sum()
        P = sums[0] - psi_totals
        Q = sums[1] - prior * P
        P_rest = n * psi(rest) - psi_totals if rest > 0.0 else 0.0
        Q_rest = n * gammaln(rest) - rest * P_rest if rest > 0.0 else 0.0
        Q_rest -= gammaln(totals).sum()
        base, P_rest, Q_rest, D = (np.array(value, dtype=np.float64) for value in (0.0, P_rest, Q_rest, n))
        counts = np.ascontiguousarray(N.T, dtype=np.float32)
        return cls(N.sum(axis=0), S, H, base, P, Q, P_rest, Q_rest, D, counts)
