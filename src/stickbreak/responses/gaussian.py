"""Numbers that documents answer: a regression on the shares of topics (Thesis Eq. 8.4)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ._base import Answered, Reading, Terms
from ._numbers import NumericResponse

Array = NDArray[np.floating]

SHAPE, RATE = 1.0, 0.5  # of the prior of the precision of the noise, for answers of variance one


@dataclass(frozen=True)
class GaussianResponse(NumericResponse):
    """y_d ~ Normal(w' m_d, 1 / lambda), where m_d are the shares of topics among the tokens of document d (Thesis Eq. 8.4).

    With lambda ~ Gamma(1, rate 0.5) and w_k | lambda ~ Normal(0, 1 / (lambda precision)), for answers that are centred and
    scaled to variance one, q(w, lambda) is in closed form, and the objective gains

        - A/2 log(2 pi) - 1/2 log det(I + M / precision) + log Gamma(a) - log Gamma(1) + log 0.5 - a log b,
        a = 1 + A/2,    b = 0.5 + (Y - B' (M + precision I)^-1 B) / 2

    with the sums of `stickbreak.responses`.  Topics that no document with an answer has change nothing.  The loss is at the
    mean m_d of z_bar, as in the Thesis, so that the objective is no lower bound on log p(x, y); what it leaves out is
    E[lambda w' Cov(z_bar) w] / 2, which is small in documents of many words.

    Parameters
    ----------
    weight : float, 1e-6 to 1e6
        How many times the answer of a document counts; 1 is the model above, more makes topics follow the answers more closely.
    precision : float, 1e-6 to 1e6, or None
        Of the weights, beside that of the noise; None: 1 at first, then learnt.
    center, scale : float, or None
        Mean and standard deviation of the answers, which they are standardised by; None: those of the answers.
    """

    at_first: ClassVar[float] = 1.0
    positive: ClassVar[tuple[str, ...]] = ("weight",)

    weight: float = 1.0
    precision: float | None = None
    center: float | None = None
    scale: float | None = None

    def noise(self, sums: Answered) -> float:
        """The standard deviation of answers around their means, in their units: 1 / sqrt(E[lambda])."""
        _, _, a, b = self._posterior(sums)
        return self._units[1] * math.sqrt(b / a)

    def reading(self, sums: Answered) -> Reading:
        """With slopes E[lambda] E[w] and curvature E[lambda w w']; nothing before any answer was seen."""
        means, covariance, a, b = self._posterior(sums)
        return Reading(means, covariance, a / b, float(sums.A > 0.0) * covariance, self, self.weight, rounds=1)

    def parabolas(self, y: Array, psi: Array, spread: Array) -> Terms:
        """Targets y, weights 1 and constants y^2, times the weight: the square itself, wherever it is taken."""
        scaled = self.weight * y
        return Terms(scaled[:, None], np.full(len(y), self.weight), scaled * y)

    def bound(self, sums: Answered) -> float:
        """See above, in the units of the answers."""
        A = float(sums.A)
        _, _, a, b = self._posterior(sums)
        units = A * (0.5 * math.log(2.0 * math.pi) + math.log(self._units[1]))
        known = SHAPE * math.log(RATE) - math.lgamma(SHAPE)
        return math.lgamma(a) - a * math.log(b) + known - self._volume(sums) - units

    def _posterior(self, sums: Answered) -> tuple[Array, Array, float, float]:
        """E[w] (K, 1), Cov(w) times lambda (K, K), and shape and rate of lambda."""
        covariance = self._covariance(sums)
        means = covariance @ sums.B
        left = max(float(sums.Y) - float((sums.B * means).sum()), 0.0)
        return means, covariance, SHAPE + 0.5 * float(sums.A), RATE + 0.5 * left
