"""Allocations for mixtures, where rows choose clusters independently: Dirichlet process and finite Dirichlet."""

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, psi

from ..kernels.assign import softmax_rows
from ._base import Array, Responsibilities

if TYPE_CHECKING:
    from ..model.summary import Summary


class _Mixture:
    """What all mixtures share: a softmax per row (Thesis Eq. 3.49)."""

    def local(self, C: Array, bias: Array, threshold: float) -> Responsibilities:
        """Responsibilities of a block of rows with scores ``C + bias`` (n, K); C becomes their dense form."""
        n, K = C.shape
        indptr = np.empty(n + 1, dtype=np.int64)
        indices, values = np.empty(n * K, dtype=np.int32), np.empty(n * K, dtype=C.dtype)
        kept = softmax_rows(C, bias, threshold, indptr, indices, values)
        return Responsibilities(indptr, indices[:kept], values[:kept])


@dataclass(frozen=True)
class DirichletProcess(_Mixture):
    """Dirichlet-process mixture by stick-breaking: pi_k = u_k prod_{l<k} (1 - u_l),  u_k ~ Beta(1, concentration).

    The posterior is q(u_k) = Beta(1 + N_k, concentration + N_{>k}) with N_{>k} = sum_{l>k} N_l (Thesis Eq. 3.43; the count
    of later clusters as in Alg. 3.1, line 16).  Assignments are truncated at K, the sticks are not, so that adding an empty
    cluster changes nothing (nested truncation, Thesis 3.4.3).

    Parameters
    ----------
    concentration : float > 0
        gamma; larger values expect more clusters.
    """

    concentration: float = 1.0

    def __post_init__(self) -> None:
        _check_concentration(self.concentration)

    def scaled(self, factor: float) -> Self:
        """This prior with its concentration multiplied by a factor."""
        return replace(self, concentration=self.concentration * factor)

    @property
    def max_clusters(self) -> int:
        """The most clusters that may be in use: no limit."""
        return sys.maxsize

    def update(self, summary: "Summary") -> Array:
        """E[log u_k] + sum_{l<k} E[log (1 - u_l)], (K,)  (Thesis Eq. 3.32, 3.33)."""
        eta1, eta0 = self._sticks(summary.N)
        both = psi(eta1 + eta0)
        log_rest = np.cumsum(psi(eta0) - both)
        return np.asarray(psi(eta1) - both + np.concatenate([[0.0], log_rest[:-1]]))

    def bound(self, summary: "Summary") -> float:
        """Sum over k of c_Beta(1, gamma) - c_Beta(1 + N_k, gamma + N_{>k})  (Thesis Eq. 3.44)."""
        return float((betaln(*self._sticks(summary.N)) - betaln(1.0, self.concentration)).sum())

    def order(self, summary: "Summary") -> NDArray[np.integer]:
        """Decreasing size, which is the order of sticks with the highest bound."""
        return np.argsort(-summary.N, kind="stable")

    def mean_weights(self, summary: "Summary") -> Array:
        """E[u_k] prod_{l<k} (1 - E[u_l]) over the K clusters in use, normalised, (K,)  (Thesis Eq. 3.18)."""
        eta1, eta0 = self._sticks(summary.N)
        log_rest = np.cumsum(np.log(eta0 / (eta1 + eta0)))
        weights = eta1 / (eta1 + eta0) * np.exp(np.concatenate([[0.0], log_rest[:-1]]))
        return np.asarray(weights / weights.sum())

    def _sticks(self, N: Array) -> tuple[Array, Array]:
        later = np.concatenate([np.cumsum(N[::-1])[-2::-1], [0.0]])
        return 1.0 + N, self.concentration + later


@dataclass(frozen=True)
class FiniteDirichlet(_Mixture):
    """Finite mixture with a symmetric prior: pi ~ Dirichlet(concentration / n_clusters, ...)  (Thesis 2.6).

    Clusters without rows keep their share of the prior, so adding an empty one among the ``n_clusters`` changes nothing.

    Parameters
    ----------
    n_clusters : int >= 1
        The number of clusters in the model; at most this many are ever in use.
    concentration : float > 0
        Total pseudo-count, shared equally.
    """

    n_clusters: int = 10
    concentration: float = 1.0

    def __post_init__(self) -> None:
        _check_concentration(self.concentration)
        if int(self.n_clusters) != self.n_clusters or self.n_clusters < 1:
            raise ValueError(f"n_clusters must be a whole number of at least 1; got {self.n_clusters!r}.")

    def scaled(self, factor: float) -> Self:
        """This prior with its concentration multiplied by a factor."""
        return replace(self, concentration=self.concentration * factor)

    @property
    def max_clusters(self) -> int:
        """The most clusters that may be in use."""
        return self.n_clusters

    def update(self, summary: "Summary") -> Array:
        """E[log pi_k] = psi(N_k + a) - psi(N + n_clusters a),  a = concentration / n_clusters  (Thesis 2.6.2)."""
        return np.asarray(psi(summary.N + self._share) - psi(summary.N.sum() + self.concentration))

    def bound(self, summary: "Summary") -> float:
        """Log Dirichlet-multinomial normaliser ratio; unused clusters contribute nothing."""
        total = gammaln(self.concentration) - gammaln(self.concentration + summary.N.sum())
        return float((gammaln(summary.N + self._share) - gammaln(self._share)).sum() + total)

    def order(self, summary: "Summary") -> NDArray[np.integer]:
        """Decreasing size (the bound does not depend on the order)."""
        return np.argsort(-summary.N, kind="stable")

    def mean_weights(self, summary: "Summary") -> Array:
        """Posterior mean weights over the clusters in use, normalised, (K,)."""
        weights = summary.N + self._share
        return np.asarray(weights / weights.sum())

    @property
    def _share(self) -> float:
        return self.concentration / self.n_clusters


def _check_concentration(concentration: float) -> None:
    if not (np.isfinite(concentration) and concentration > 0):
        raise ValueError(f"concentration must be a positive number; got {concentration!r}.")
