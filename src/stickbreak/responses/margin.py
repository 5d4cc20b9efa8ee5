"""Numbers that documents answer, with a loss that forgives small errors: maximum entropy discrimination (Thesis Eq. 8.5)."""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .._arguments import real, shown
from ._base import Answered, Terms
from ._numbers import NumericResponse
from ._ridge import PRECISION, check_positive, eigenvalues, inverse, with_best_precision

Array = NDArray[np.floating]

ROUNDS = 3  # of parabolas in a local step
NARROWEST = 1e-6  # of the widths gamma, beyond which a parabola is as steep as can be computed


class MarginReading(NamedTuple):
    """q(w) as local steps need it, the loss, and the weight of a document (see `stickbreak.responses.Reading`)."""

    means: Array
    covariance: Array
    curvature: Array
    cost: float
    tolerance: float
    weight: float = 1.0
    rounds: int = ROUNDS

    @property
    def slopes(self) -> Array:
        """The means."""
        return self.means

    def terms(self, y: Array, m: Array) -> Terms:
        """The parabolas with widths gamma = sqrt(E[(y -+ epsilon - w' m)^2]), where they are the highest."""
        found = (m @ self.means)[:, 0]
        spread = np.einsum("nk,nk->n", m @ self.covariance, m)
        half = 0.5 * self.cost
        targets = np.zeros(len(y))
        weights = np.zeros(len(y))
        constants = np.full(len(y), 2.0 * half * self.tolerance)
        for edge in (y - self.tolerance, y + self.tolerance):
            width = np.maximum(np.sqrt((edge - found) ** 2 + spread), NARROWEST)
            targets += half * edge / width
            weights += half / width
            constants -= 0.5 * half * (edge**2 / width + width)
        return Terms(targets[:, None], weights, constants)


@dataclass(frozen=True)
class MarginResponse(NumericResponse):
    """Numbers with the loss C max(0, |y_d - w' m_d| - epsilon), m_d the shares of topics in document d (Thesis Eq. 8.5).

    w_k ~ Normal(0, 1 / precision), for answers that are centred and scaled to variance one.  As |u| <= u^2 / (2 gamma) +
    gamma / 2 for every gamma > 0, the expected loss has a parabola above it for each document, whose widths are the document's
    own.  So q(w) is Gaussian, and the objective gains, with the sums of `stickbreak.responses`,

        Y + B' S B / 2 - 1/2 log det(I + M / precision),    S = (M + precision I)^-1

    Unlike `GaussianResponse` it is no model of answers: C and epsilon say how much errors matter, they are not learnt, and
    there is no noise to tell.  Errors below epsilon pull at no topic, and those far above pull no more than others.

    Parameters
    ----------
    cost : float, 1e-6 to 1e6
        C, in nats for each standard deviation of the answers.
    tolerance : float, 0 to 1e6
        epsilon, in standard deviations of the answers.
    precision : float, 1e-6 to 1e6, or None
        Of the weights; None: 0.1 at first, then learnt.
    center, scale : float, or None
        Mean and standard deviation of the answers, which they are standardised by; None: those of the answers.

    References
    ----------
    Zhu, Ahmed and Xing, MedLDA: maximum margin supervised topic models, Journal of Machine Learning Research 13, 2012.

    The parabolas: Polson and Scott, Data augmentation for support vector machines, Bayesian Analysis 6, 2011.
    """

    cost: float = 10.0
    tolerance: float = 0.1
    precision: float | None = None
    center: float | None = None
    scale: float | None = None

    def __post_init__(self) -> None:
        check_positive(self.cost, "cost")
        if not 0.0 <= real(self.tolerance) <= 1e6:
            raise ValueError(f"tolerance must be a number from 0 to 1e+06; got {shown(self.tolerance)}.")
        if self.precision is not None:
            check_positive(self.precision, PRECISION)
        self._check_units()

    @property
    def question(self) -> Self:
        """The same, whatever the precision."""
        return replace(self, precision=None)

    def learnable(self) -> tuple[str, ...]:
        """The precision, where it was not given."""
        return () if self.precision is not None else (PRECISION,)

    def resolved(self, y: Array) -> Self:
        """This response with all that was not given from answers y (n,)."""
        precision = 0.1 if self.precision is None else float(self.precision)
        own = self.in_units_of(y)
        return replace(own, cost=float(self.cost), tolerance=float(self.tolerance), precision=precision)

    def weights(self, sums: Answered) -> Array:
        """E[w], (K, 1)."""
        return np.asarray(self._covariance(sums) @ sums.B)

    def reading(self, sums: Answered) -> MarginReading:
        """The curvature is E[w w']; nothing before any answer was seen."""
        covariance = self._covariance(sums)
        means = covariance @ sums.B
        curvature = means @ means.T + covariance if sums.A > 0.0 else 0.0 * covariance
        return MarginReading(means, covariance, curvature, self.cost, self.tolerance)

    def bound(self, sums: Answered) -> float:
        """See above."""
        gain = 0.5 * float((sums.B * self.weights(sums)).sum())
        return float(sums.Y) + gain - 0.5 * float(np.log1p(eigenvalues(sums.M) / self._precision).sum())

    def tuned(self, sums: Answered, names: tuple[str, ...]) -> Self:
        """This response with the best precision of the weights, if it is among ``names``."""
        return with_best_precision(self, sums, names, lambda response: response.bound(sums))

    def _covariance(self, sums: Answered) -> Array:
        """Of the weights, (K, K)."""
        return inverse(sums.M, self._precision)

    @property
    def _precision(self) -> float:
        assert self.precision is not None
        return self.precision
