"""A model: a likelihood, an allocation and a kind of data, with the two functions of a summary that inference needs."""

import sys
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..allocations import Allocation, Solution
from ..likelihoods import Likelihood
from ..likelihoods._base import largest_terms
from .kind import Kind
from .parameters import Parameters
from .rows import ROWS
from .summary import Summary

Array = NDArray[np.floating]

LARGEST_SINGLE = 1e30  # weights in less than float64, well within the range of float32


class Clusters(NamedTuple):
    """What a likelihood says of clusters: expected natural parameters W (K, F), b (K,), and log marginals (K,)."""

    W: Array
    b: Array
    log_marginal: Array


@dataclass(frozen=True)
class Model:
    """Likelihood and allocation, both with all hyperparameters known, and the kind of data that they are for.

    room : the most clusters that memory has room for; moves add no more
    """

    likelihood: Likelihood
    allocation: Allocation
    kind: Kind = ROWS
    room: int = field(default=sys.maxsize, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.allocation, self.kind.allocations):
            raise TypeError(f"{self.allocation!r} is not an allocation of {self.kind.units}.")
        if self.likelihood.scales is not None and not self.kind.takes_scales:
            raise ValueError(
                f"{type(self.likelihood).__name__} has a scale for each row, which only Mixture can use; "
                "use Gaussian, or DiagonalGaussian."
            )

    @property
    def max_clusters(self) -> int:
        """The most clusters that the allocation allows and memory has room for."""
        return min(self.allocation.max_clusters, self.room)

    def clusters(self, summary: Summary) -> Clusters:
        """What the likelihood says of the clusters of a summary."""
        return Clusters(*self.likelihood.weights(summary.N, summary.S), self.log_marginal(summary))

    def parameters(
        self,
        summary: Summary,
        dtype: np.dtype[np.floating],
        clusters: Clusters | None = None,
        solution: Solution | None = None,
    ) -> Parameters:
        """Global step: the optimal parameters given a summary (Thesis Eq. 3.41 and 3.43).

        They are rounded to ``dtype``, the precision of the data, if that is enough: features and scores of rows are
        formed in the precision of W.  Here and below, ``clusters``, ``log_marginal``
        and ``solution``, the optimum of the allocation, may be given where they are known already.
        """
        W, b = self.likelihood.weights(summary.N, summary.S) if clusters is None else (clusters.W, clusters.b)
        log_weights, prior = self.allocation.update(summary, solution)
        bias = b + log_weights
        if not (dtype == np.float64 or _fits(dtype, summary, W, bias)):
            dtype = np.dtype(np.float64)
        return self.kind.rounded(Parameters(W, bias, prior), dtype)

    def log_marginal(self, summary: Summary) -> Array:
        """Each cluster's part of the data term of the bound (Thesis Eq. 3.42), (K,)."""
        return self.likelihood.log_marginal(summary.N, summary.S)

    def bound(self, summary: Summary, log_marginal: Array | None = None, solution: Solution | None = None) -> float:
        """The ELBO at the optimal global step: base + sum_k logZ ratio + sum_k H_k + allocation  (Thesis Eq. 3.24).

        It is a function of the total summary alone.  Another ``solution`` than the optimum gives a lower bound.
        """
        data = self.log_marginal(summary) if log_marginal is None else log_marginal
        return float(summary.base + data.sum() + summary.H.sum()) + self.allocation.bound(summary, solution)

    def start(self, N: Array, S: Array) -> Summary:
        """A start from the counts (K,) and the statistics (K, F) of rows."""
        return self.kind.start(Summary(N, S, np.zeros(len(N)), np.zeros(())))

    @property
    def flat(self) -> "Model":
        """The model of rows without documents or sequences, which births are fitted with."""
        return Model(self.likelihood, self.allocation.flat)

    def shared(self, clusters: Summary, dtype: np.dtype[np.floating]) -> Parameters:
        """Parameters of clusters of `flat` that are to share what another cluster has."""
        if not self.kind.has_documents:
            return self.flat.parameters(clusters, dtype)
        W, b = self.likelihood.weights(clusters.N, clusters.S)
        return Parameters(W, b, self.allocation.flat.mean_weights(clusters))

    def ordered(self, summary: Summary) -> Summary:
        """The summary with its clusters in the order of the highest bound."""
        return summary.take(self.allocation.order(summary))

    def parameter_cost(self, summary: Summary, clusters: Clusters | None = None) -> Array:
        """KL(q(phi_k) || prior): what the bound pays for the parameters of each cluster, (K,)."""
        W, b, log_marginal = clusters or self.clusters(summary)
        return np.asarray((summary.S * W).sum(axis=1) + summary.N * b - log_marginal)

    def divergences(self, summary: Summary, clusters: Clusters | None = None) -> Array:
        """What each row of cluster a loses on average if cluster b explains it, (K, K): zero on the diagonal."""
        W, b, _ = clusters or self.clusters(summary)
        rows = np.where(summary.N > 1e-9, summary.N, np.inf)  # an empty cluster has no mean row
        scores = (summary.S / rows[:, None]) @ W.T + b
        return np.asarray(np.diagonal(scores)[:, None] - scores)


def score_terms(summary: Summary, W: Array, bias: Array) -> float:
    """The sum of the sizes of the terms of an average row's score under its cluster, in nats: the largest of all clusters."""
    rows = np.where(summary.N > 0.0, summary.N, np.inf)
    terms = np.einsum("kf,kf->k", np.abs(summary.S / rows[:, None]), np.abs(W)) + np.abs(bias)
    return float(terms.max(initial=0.0))


def _fits(dtype: np.dtype[np.floating], summary: Summary, W: Array, bias: Array) -> bool:
    """Whether a precision is enough for the scores of an average row of each cluster under that cluster.

    The terms of a score cancel where a cluster is narrow and far from the origin, or where counts are large.
    """
    terms = score_terms(summary, W, bias)
    return terms <= largest_terms(dtype) and bool(np.abs(W).max(initial=0.0) <= LARGEST_SINGLE)
