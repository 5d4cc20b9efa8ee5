"""Numbers that documents answer, with a loss that forgives small errors: maximum entropy discrimination (Thesis Eq. 8.5)."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .._arguments import real, shown
from ._base import Terms
from ._numbers import NumericResponse
from ._ridge import NARROWEST

Array = NDArray[np.floating]


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

    positive: ClassVar[tuple[str, ...]] = ("cost",)

    cost: float = 10.0
    tolerance: float = 0.1
    precision: float | None = None
    center: float | None = None
    scale: float | None = None

    def resolved(self, y: Array) -> Self:
        """This response with all that was not given from answers y (n,)."""
        return super().resolved(y)._replaced(tolerance=float(self.tolerance))

    def parabolas(self, y: Array, psi: Array, spread: Array) -> Terms:
        """Those with widths gamma = sqrt(E[(y -+ epsilon - w' m)^2]), where they are the highest."""
        half = 0.5 * self.cost
        targets = np.zeros(len(y))
        weights = np.zeros(len(y))
        constants = np.full(len(y), 2.0 * half * self.tolerance)
        for edge in (y - self.tolerance, y + self.tolerance):
            width = np.maximum(np.sqrt((edge - psi[:, 0]) ** 2 + spread), NARROWEST)
            targets += half * edge / width
            weights += half / width
            constants -= 0.5 * half * (edge**2 / width + width)
        return Terms(targets[:, None], weights, constants)

    def _check_others(self) -> None:
        """Refuse a tolerance, or units, that are no numbers."""
        if not 0.0 <= real(self.tolerance) <= 1e6:
            raise ValueError(f"tolerance must be a number from 0 to 1e+06; got {shown(self.tolerance)}.")
        super()._check_others()
