"""What a response must say: its part of the bound, and how it pulls at the topics of a document.

The response of document d follows from m_d = N_d / n_d, the shares of its tokens that topics have (Thesis 8.3: E[z_bar]), by
weights w with a Gaussian prior.  Every response bounds what it adds to the objective of a document from below by a parabola

    c_d + t_d' w' m_d - h_d / 2 |w' m_d|^2

in w' m_d, whose coefficients follow from the answer.  So sums over documents say all:

    M = sum_d h_d m_d m_d',   B = sum_d m_d t_d',   Y = sum_d c_d,   A = sum_d of their weights

and q(w) is Gaussian in closed form.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

ROUNDS = 3  # of parabolas in a local step, where they depend on the shares of topics


class Answered(Protocol):
    """What a response reads of a summary; see above."""

    @property
    def M(self) -> Array:
        """sum_d h_d m_d m_d', (K, K)."""
        ...

    @property
    def B(self) -> Array:
        """sum_d m_d t_d', (K, C)."""
        ...

    @property
    def Y(self) -> Array:
        """sum_d c_d, ()."""
        ...

    @property
    def A(self) -> Array:
        """The weights of the documents that have answers, added up, ()."""
        ...


class Terms(NamedTuple):
    """The parabolas of documents.

    targets : (n, C) t_d;  weights : (n,) h_d >= 0;  constants : (n,) c_d
    """

    targets: Array
    weights: Array
    constants: Array


class Loss(Protocol):
    """What a response makes of the scores a_d = w' m_d of a document."""

    def parabolas(self, y: Array, psi: Array, spread: Array) -> Terms:
        """The parabolas of documents with answers y (n,) that are the highest in expectation.

        psi : (n, C) E[a_d];  spread : (n,) the variance of each of the scores
        """
        ...


class Reading(NamedTuple):
    """What local steps need to know of q(w): a document gains (slopes t_d)' m_d - h_d / 2 m_d' curvature m_d.

    means : E[w], (K, C);  covariance : of each column of w, (K, K)
    precision : that of the answers, E[lambda]; 1 where there is none
    uncertainty : what the covariance of q(w) adds to the curvature, (K, K), not negative
    loss : makes the parabolas
    weight : how many times a document counts
    rounds : how often a local step makes parabolas anew, where they depend on m
    """

    means: Array
    covariance: Array
    precision: float
    uncertainty: Array
    loss: Loss
    weight: float = 1.0
    rounds: int = ROUNDS

    @property
    def slopes(self) -> Array:
        """E[lambda w], (K, C)."""
        return self.precision * self.means

    @property
    def curvature(self) -> Array:
        """E[lambda w w'], (K, K), not negative."""
        return np.asarray(self.precision * (self.means @ self.means.T) + self.uncertainty)

    def terms(self, y: Array, m: Array) -> Terms:
        """The parabolas of documents with answers y (n,) that touch what they bound at shares m (n, K)."""
        return self.loss.parabolas(y, m @ self.means, np.einsum("nk,nk->n", m @ self.covariance, m))

    def ahead(self, before: Self, step: float) -> Self:
        """With E[w] beyond by ``step`` times its change since ``before``: parabolas follow the scores slowly."""
        return self._replace(means=self.means + step * (self.means - before.means))


class Response(Protocol):
    """A response: a frozen dataclass of hyperparameters.  Methods are pure functions of the sums, which are `Answered`."""

    @property
    def n_outputs(self) -> int:
        """C, the columns of w."""
        ...

    def reading(self, sums: Any) -> Reading | None:
        """The optimal q(w), as local steps need it; None where there are no answers at all."""
        ...

    def bound(self, sums: Any) -> float:
        """What the response adds to the objective at the optimal q(w), in nats."""
        ...

    @property
    def question(self) -> Self:
        """This response without what is learnt: sums for one are those for another with the same question."""
        ...

    def learnable(self) -> tuple[str, ...]:
        """The hyperparameters that were not given."""
        ...

    def tuned(self, sums: Any, names: tuple[str, ...]) -> Self:
        """This response with the hyperparameters ``names`` set to values that raise the bound."""
        ...


@dataclass(frozen=True)
class NoResponse:
    """Documents that are asked nothing."""

    @property
    def n_outputs(self) -> int:
        """None."""
        return 0

    @property
    def question(self) -> Self:
        """The same."""
        return self

    def reading(self, sums: object) -> None:
        """Nothing."""

    def bound(self, sums: object) -> float:
        """Zero."""
        return 0.0

    def learnable(self) -> tuple[str, ...]:
        """None."""
        return ()

    def tuned(self, sums: object, names: tuple[str, ...]) -> Self:
        """The same."""
        return self
