"""A model: a likelihood, an allocation and a kind of data; and its posterior given a summary of the data."""

import math
import sys
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..allocations import Allocation, GlobalStep, Solution
from ..likelihoods import Likelihood
from ..likelihoods.features import largest_terms
from ..responses import NoResponse, Reading, Response
from .kind import Kind
from .parameters import Parameters
from .rows import ROWS
from .summary import Summary

Array = NDArray[np.floating]

LARGEST_SINGLE = 1e30  # weights in less than float64, well within the range of float32


@dataclass(frozen=True)
class Model:
    """Likelihood and allocation, both with all hyperparameters known, and the kind of data that they are for.

    room : the most clusters that memory has room for; moves add no more
    response : what documents answer beside their words
    """

    likelihood: Likelihood
    allocation: Allocation
    kind: Kind = ROWS
    room: int = field(default=sys.maxsize, repr=False, compare=False)
    response: Response = NoResponse()

    def __post_init__(self) -> None:
        if not isinstance(self.allocation, self.kind.allocations):
            raise TypeError(f"{self.allocation!r} is not an allocation of {self.kind.units}.")
        hidden = self.likelihood.hidden
        if hidden is not None and not self.kind.takes_latent:
            raise ValueError(
                f"{type(self.likelihood).__name__} has {hidden}, which only Mixture can use; "
                "use Gaussian, or DiagonalGaussian."
            )

    @property
    def max_clusters(self) -> int:
        """The most clusters that the allocation allows and memory has room for."""
        return min(self.allocation.max_clusters, self.room)

    def posterior(self, summary: Summary) -> "Posterior":
        """The optimal posterior for a summary: the global step, the bound, and what else follows from them."""
        return Posterior(self, summary)

    def parameters(self, summary: Summary, dtype: np.dtype[np.floating]) -> Parameters:
        """`Posterior.parameters` of a summary."""
        return self.posterior(summary).parameters(dtype)

    def log_marginal(self, summary: Summary) -> Array:
        """`Posterior.log_marginal` of a summary."""
        return self.posterior(summary).log_marginal

    def bound(self, summary: Summary) -> float:
        """`Posterior.bound` of a summary."""
        return self.posterior(summary).bound

    def parameter_cost(self, summary: Summary) -> Array:
        """`Posterior.cost` of a summary."""
        return self.posterior(summary).cost

    def by_chance(self, summary: Summary) -> Array | None:
        """What parameters explain by chance of the rows that they are fitted to: half a nat each, of each cluster, (K,).

        It is what each e-fold of rows adds to their cost.  None for clusters as narrow as rounding allows.
        """
        try:
            return np.asarray(self.parameter_cost(summary * math.e) - self.parameter_cost(summary))
        except FloatingPointError:
            return None

    def divergences(self, summary: Summary) -> Array:
        """`Posterior.divergences` of a summary."""
        return self.posterior(summary).divergences

    def start(self, N: Array, S: Array) -> Summary:
        """A start from the counts (K,) and the statistics (K, F) of rows."""
        return self.kind.start(Summary(N, S, np.zeros(len(N)), np.zeros(())))

    def begun(self, start: Summary) -> Summary:
        """The start, with the clusters that are named in advance (`Likelihood.begun`), new ones last."""
        S = self.likelihood.begun(start.N, start.S, self.max_clusters)
        if S is start.S:
            return start
        return replace(start.insert_empty(len(S) - start.K), S=S)

    def named(self, summary: Summary) -> NDArray[np.bool_]:
        """Which clusters are named in advance, (K,)."""
        return self.likelihood.named(summary.S)

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


@dataclass(frozen=True, eq=False)
class Posterior:
    """q(phi) and the posterior of the allocation that are optimal for a summary.

    Every attribute is computed when it is first asked for, and then kept.
    """

    model: Model
    summary: Summary

    @classmethod
    def known(cls, model: Model, summary: Summary, log_marginal: Array | None, solution: Solution | None) -> Self:
        """A posterior of which some is known; another ``solution`` than the optimum gives a lower ``bound``."""
        posterior = cls(model, summary)
        if log_marginal is not None:
            posterior.__dict__["log_marginal"] = log_marginal
        if solution is not None:
            posterior.__dict__["solution"] = solution
        return posterior

    def beside(self, model: Model, solution: Solution) -> "Posterior":
        """The posterior of a model with the same likelihood, and its optimum: what is known of the clusters stays known."""
        other = Posterior.known(model, self.summary, self.__dict__.get("log_marginal"), solution)
        if "weights" in self.__dict__:
            other.__dict__["weights"] = self.weights
        return other

    @cached_property
    def weights(self) -> tuple[Array, Array]:
        """Expected natural parameters W (K, F), and b (K,), of the likelihood alone."""
        return self.model.likelihood.weights(self.summary.N, self.summary.S)

    @cached_property
    def log_marginal(self) -> Array:
        """Each cluster's part of the data term of the bound (Thesis Eq. 3.42), (K,)."""
        return self.model.likelihood.log_marginal(self.summary.N, self.summary.S)

    @cached_property
    def solution(self) -> Solution:
        """The optimum of the allocation."""
        return self.model.allocation.solve(self.summary)

    @cached_property
    def step(self) -> GlobalStep:
        """What local steps need to know of the allocation."""
        return self.model.allocation.update(self.summary, self.solution)

    @cached_property
    def reading(self) -> Reading | None:
        """What local steps need to know of the response; None where nothing is known of it."""
        return self.model.response.reading(self.summary)

    @cached_property
    def bound(self) -> float:
        """The ELBO at the optimal global step: base + sum_k logZ ratio + sum_k H_k + allocation  (Thesis Eq. 3.24).

        It bounds the log evidence and the log prior probability of what is learnt with one (`Likelihood.log_hyperprior`).
        With what documents answer, that of Thesis Eq. 8.3.  It is a function of the total summary alone.
        """
        summary = self.summary
        data = float(summary.base + self.log_marginal.sum() + summary.H.sum()) + self.model.likelihood.log_hyperprior
        return data + self.model.allocation.bound_at(summary, self.solution) + self.model.response.bound(summary)

    def parameters(self, dtype: np.dtype[np.floating]) -> Parameters:
        """Global step: the optimal parameters (Thesis Eq. 3.41 and 3.43).

        They are rounded to their `precision`: features and scores of rows are formed in that of W.
        """
        W, b = self.weights
        bias = b + self.step.log_weights
        return self.model.kind.rounded(Parameters(W, bias, self.step.prior, self.reading), self.precision(dtype))

    def precision(self, dtype: np.dtype[np.floating]) -> np.dtype[np.floating]:
        """That of the data, ``dtype``, where it is enough, else float64.  Missing cells that are latent take float64."""
        if dtype == np.float64:
            return dtype
        W, b = self.weights
        fits = self.model.likelihood.cells is None and _fits(dtype, self.summary, W, b + self.step.log_weights)
        return dtype if fits else np.dtype(np.float64)

    @property
    def explained(self) -> Array:
        """E[log p(x | phi_k)] of the rows of each cluster, all together, (K,)."""
        W, b = self.weights
        return np.asarray(np.einsum("kf,kf->k", self.summary.S, W) + self.summary.N * b)

    @cached_property
    def cost(self) -> Array:
        """KL(q(phi_k) || prior): what the bound pays for the parameters of each cluster, (K,)."""
        return self.explained - self.log_marginal

    @cached_property
    def divergences(self) -> Array:
        """What each row of cluster a loses on average if cluster b explains it, (K, K): zero on the diagonal."""
        W, b = self.weights
        N = self.summary.N
        rows = np.where(N > 1e-9, N, np.inf)  # an empty cluster has no mean row
        scores = (self.summary.S / rows[:, None]) @ W.T + b
        return np.asarray(np.diagonal(scores)[:, None] - scores)


def score_terms(summary: Summary, W: Array, bias: Array) -> float:
    """The sum of the sizes of the terms of an average row's score under its cluster, in nats: the largest of all clusters."""
    rows = np.where(summary.N > 0.0, summary.N, np.inf)
    products = summary.S * W
    terms = np.abs(products, out=products).sum(axis=1) / rows + np.abs(bias)
    return float(terms.max(initial=0.0))


def _fits(dtype: np.dtype[np.floating], summary: Summary, W: Array, bias: Array) -> bool:
    """Whether a precision is enough for the scores of an average row of each cluster under that cluster.

    The terms of a score cancel where a cluster is narrow and far from the origin, or where counts are large.
    """
    terms = score_terms(summary, W, bias)
    return terms <= largest_terms(dtype) and bool(np.abs(W).max(initial=0.0) <= LARGEST_SINGLE)
