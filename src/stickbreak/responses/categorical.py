"""Classes that documents answer: a multinomial logistic regression on the shares of topics, by Boehning's bound."""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from .._arguments import check_count
from ._base import Answered, Terms
from ._ridge import PRECISION, check_positive, eigenvalues, inverse, with_best_precision

Array = NDArray[np.floating]

ROUNDS = 3  # of parabolas in a local step


class CategoricalReading(NamedTuple):
    """q(w) as local steps need it, and the weight of a document (see `stickbreak.responses.Reading`)."""

    means: Array
    curvature: Array
    weight: float
    rounds: int = ROUNDS

    @property
    def slopes(self) -> Array:
        """The means."""
        return self.means

    def terms(self, y: Array, m: Array) -> Terms:
        """Boehning's parabola at the expected scores psi = E[w]' m, where it is the highest; y are codes 0, ..., C - 1."""
        psi = m @ self.means
        chances = softmax(psi, axis=1)
        targets = 0.5 * psi - chances
        targets[np.arange(len(y)), y.astype(np.intp)] += 1.0
        constants = (psi * chances).sum(axis=1) - logsumexp(psi, axis=1) - 0.25 * (psi**2).sum(axis=1)
        return Terms(self.weight * targets, np.full(len(y), self.weight), self.weight * constants)


@dataclass(frozen=True)
class CategoricalResponse:
    """p(y_d = c) = softmax(w' m_d)_c, where m_d are the shares of topics among the tokens of document d.

    w_kc ~ Normal(0, 1 / precision).  The log-sum-exp is bounded from above by a parabola of the fixed curvature
    (I - 11'/C) / 2 (Boehning 1992), which touches it at a point psi_d of the document's own.  So q(w) is Gaussian, and the
    objective gains, with the sums of `stickbreak.responses`,

        Y + tr(B' S B) / 2 - (C - 1)/2 log det(I + M / (2 precision)),    S = (M / 2 + precision I)^-1

    where the columns of B add up to zero.  Topics that no document with an answer has change nothing.

    Parameters
    ----------
    n_classes : int >= 2, or None
        C; None: the classes of the answers.
    weight : float, 1e-6 to 1e6
        How many times the answer of a document counts; 1 is the model above, more makes topics follow the answers more closely.
    precision : float, 1e-6 to 1e6, or None
        Of the weights; None: 0.1 at first, then learnt.

    References
    ----------
    Boehning, Multinomial logistic regression algorithm, Annals of the Institute of Statistical Mathematics 44, 1992.
    """

    n_classes: int | None = None
    weight: float = 1.0
    precision: float | None = None

    def __post_init__(self) -> None:
        if self.n_classes is not None:
            check_count(self.n_classes, "n_classes")
            if self.n_classes < 2:
                raise ValueError(f"n_classes must be at least 2; got {self.n_classes}.")
        check_positive(self.weight, "weight")
        if self.precision is not None:
            check_positive(self.precision, PRECISION)

    @property
    def n_outputs(self) -> int:
        """C."""
        assert self.n_classes is not None
        return self.n_classes

    @property
    def question(self) -> Self:
        """The same, whatever the precision."""
        return replace(self, precision=None)

    def learnable(self) -> tuple[str, ...]:
        """The precision, where it was not given."""
        return () if self.precision is not None else (PRECISION,)

    def resolved(self, n_classes: int) -> Self:
        """This response with all that was not given, for answers of so many classes."""
        precision = 0.1 if self.precision is None else float(self.precision)
        return replace(self, n_classes=n_classes, weight=float(self.weight), precision=precision)

    def chances(self, sums: Answered, m: Array) -> Array:
        """The probabilities of the classes at E[w], for documents with shares m (n, K), (n, C)."""
        return np.asarray(softmax(m @ self.means(sums), axis=1))

    def means(self, sums: Answered) -> Array:
        """E[w], (K, C); rows add up to zero."""
        return np.asarray(self._covariance(sums) @ sums.B)

    def reading(self, sums: Answered) -> CategoricalReading:
        """The curvature is E[w (I - 11'/C) w'] / 2; nothing before any answer was seen."""
        covariance = self._covariance(sums)
        means = covariance @ sums.B
        if not sums.A > 0.0:
            return CategoricalReading(means, 0.0 * covariance, self.weight)
        curvature = 0.5 * (means @ means.T + (self.n_outputs - 1) * covariance)
        return CategoricalReading(means, curvature, self.weight)

    def bound(self, sums: Answered) -> float:
        """See above."""
        gain = 0.5 * float((sums.B * self.means(sums)).sum())
        volume = float(np.log1p(0.5 * eigenvalues(sums.M) / self._precision).sum())
        return float(sums.Y) + gain - 0.5 * (self.n_outputs - 1) * volume

    def tuned(self, sums: Answered, names: tuple[str, ...]) -> Self:
        """This response with the best precision of the weights, if it is among ``names``."""
        return with_best_precision(self, sums, names, lambda response: response.bound(sums))

    def _covariance(self, sums: Answered) -> Array:
        """Of the weights of each class, within those that differ by class, (K, K)."""
        return inverse(0.5 * sums.M, self._precision)

    @property
    def _precision(self) -> float:
        assert self.precision is not None
        return self.precision
