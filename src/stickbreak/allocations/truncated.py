"""The truncated Dirichlet process of Blei and Jordan, for comparison with nested truncation."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import psi

from .._arguments import check_count
from ._base import Array
from ._stick_breaking import Sticks
from .concentration import GammaConcentration, check_belief
from .mixture import MixturePrior, normalised
from .seating import Seating
from .summaries import Counts


@dataclass(frozen=True)
class TruncatedDirichletProcess(MixturePrior):
    """Dirichlet-process mixture truncated at T = ``n_clusters``: q(u_T = 1) = 1  (BJ 3.2).

    The first T - 1 sticks are those of `DirichletProcess`, and the last cluster has all that they leave.  While fewer than T
    clusters have rows, bound and weights are those of the Dirichlet process, so nested truncation needs no T.  With T clusters,
    the stick of the last costs nothing.  BJ leave out what q(u_T = 1) costs under the prior, so this is a bound on the
    evidence of the truncated process, which may be above that of the Dirichlet process; their difference is at most about
    4 N exp(-(T - 1) / concentration) of the marginal density (Ishwaran and James, 2001).  ``Gibbs(kind="blocked")`` samples
    from its posterior (BJ 4.2); the log joint that comes with a draw is that of the process that is not truncated.

    Parameters
    ----------
    n_clusters : int >= 1
        T, the most clusters that are ever in use.
    concentration : float, 1e-300 to 1e300, or `GammaConcentration`
        gamma; larger values expect more clusters.
    """

    n_clusters: int = 10
    concentration: float | GammaConcentration = 1.0

    def __post_init__(self) -> None:
        check_belief(self)
        check_count(self.n_clusters, "n_clusters")

    @property
    def max_clusters(self) -> int:
        """The most clusters that may be in use."""
        return self.n_clusters

    def order(self, summary: Counts) -> NDArray[np.integer]:
        """The order of sticks with the highest bound: decreasing size, but for the last where all T clusters are in use.

        Before the last place, a larger cluster is better first, as in the Dirichlet process.  Of the last two, the larger is
        better first where gamma is below one, and last where it is above.  So each cluster is tried in the last place.
        """
        order = np.argsort(-summary.N, kind="stable")
        sizes = summary.N[order]
        if not self._is_full(sizes) or (
            not isinstance(self.concentration, GammaConcentration) and self.concentration <= 1
        ):
            return order
        moved = [np.append(np.delete(np.arange(len(sizes)), k), k) for k in reversed(range(len(sizes)))]
        bounds = [self._belief.log_mean(partial(self._log_evidence, sizes[way])) for way in moved]
        return np.asarray(order[moved[int(np.argmax(bounds))]])

    def joining(self, summary: Counts) -> Array:
        """Posterior mean weights of the clusters in use and, last, of all others, (K + 1,)."""
        weights = self._belief.expected(
            lambda c: self._log_evidence(summary.N, c), lambda c: self._weights(summary.N, c)
        )
        return np.append(weights, max(1.0 - weights.sum(), 0.0))

    def _is_full(self, N: Array) -> bool:
        return len(N) == self.n_clusters

    @property
    def seating(self) -> Seating:
        """None: with weights integrated out, rows are not seated by the sizes of clusters alone."""
        raise ValueError(
            'one pass and collapsed sampling need no truncation: use DirichletProcess, or algorithm=Gibbs(kind="blocked").'
        )

    def _seating(self, concentration: float) -> Seating:
        return Seating(concentration)

    def _log_evidence(self, N: Array, concentration: Any) -> Array:
        """Sum over k < T of c_Beta(1, gamma) - c_Beta(1 + N_k, gamma + N_{>k})."""
        terms = Sticks.of(N, concentration).log_evidence(N)
        return np.asarray(terms[..., : self.n_clusters - 1].sum(axis=-1))

    def _expected_log_weights(self, N: Array, concentration: Any) -> Array:
        """E[log u_k] + sum_{l<k} E[log (1 - u_l)], with u_T = 1, (K,)."""
        sticks = Sticks.of(N, concentration)
        logs = sticks.expected_log_weights()
        if self._is_full(N):
            last = sticks.on[-1]
            logs[..., -1] -= psi(last) - psi(last + sticks.off[..., -1])
        return logs

    def _mean_weights(self, N: Array, concentration: Any) -> Array:
        """E[u_k] prod_{l<k} (1 - E[u_l]) over the K clusters in use, normalised, (K,)."""
        return normalised(self._weights(N, concentration))

    def _weights(self, N: Array, concentration: Any) -> Array:
        """E[u_k] prod_{l<k} (1 - E[u_l]), with u_T = 1, (K,)."""
        sticks = Sticks.of(N, concentration)
        weights = sticks.mean_weights()
        if self._is_full(N):
            last = sticks.on[-1]
            weights[..., -1] /= last / (last + sticks.off[..., -1])
        return weights
