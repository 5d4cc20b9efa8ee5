"""What responses by weights with a Gaussian prior share: the precision of the prior, q(w), and the bound."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .._arguments import real, shown
from ..allocations.line_search import best_factor
from ._base import Answered, Reading, Terms

Array = NDArray[np.floating]

LEAST, MOST = 1e-6, 1e6  # of a precision: between them it is learnt
PRECISION = "precision"
NARROWEST = 1e-6  # of the widths gamma of a parabola, beyond which it is as steep as can be computed


def check_positive(value: Any, name: str) -> None:
    """Refuse what is no number within the range."""
    if not LEAST <= real(value) <= MOST:
        raise ValueError(f"{name} must be a number from {LEAST:g} to {MOST:g}; got {shown(value)}.")


class RidgeResponse(ABC):
    """A response by weights w_kc ~ Normal(0, 1 / precision): frozen dataclasses, with the precision or None among their fields.

    ``positive`` names the fields that are numbers within the range and always given.

    Given the sums of `stickbreak.responses`, Cov(w) = (M + precision I)^-1 for each column of w, and E[w] = Cov(w) B.
    """

    precision: float | None
    at_first: ClassVar[float] = 0.1  # a precision that is not given
    positive: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        for name in self.positive:
            check_positive(getattr(self, name), name)
        if self.precision is not None:
            check_positive(self.precision, PRECISION)
        self._check_others()

    @abstractmethod
    def _check_others(self) -> None:
        """Refuse fields of other kinds."""

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """C, the columns of w."""

    @property
    @abstractmethod
    def n_free(self) -> int:
        """The columns of w that vary freely."""

    @abstractmethod
    def parabolas(self, y: Array, psi: Array, spread: Array) -> Terms:
        """Of documents with answers y (n,); see `stickbreak.responses.Loss`."""

    def reading(self, sums: Any) -> Reading:
        """With slopes E[w] and curvature E[w (I - 11'/C) w'], of numbers E[w w']; nothing before any answer was seen."""
        covariance = self._covariance(sums)
        uncertainty = float(sums.A > 0.0) * self.n_free * covariance
        return Reading(covariance @ sums.B, covariance, 1.0, uncertainty, self)

    @abstractmethod
    def means(self, sums: Answered) -> Array:
        """What a document of one topic answers, for each topic, (K, C)."""

    @property
    def question(self) -> Self:
        """The same, whatever the precision."""
        return self._replaced(precision=None)

    def learnable(self) -> tuple[str, ...]:
        """The precision, where it was not given."""
        return () if self.precision is not None else (PRECISION,)

    def weights(self, sums: Answered) -> Array:
        """E[w], (K, C)."""
        return np.asarray(self._covariance(sums) @ sums.B)

    def bound(self, sums: Any) -> float:
        """Y + tr(B' Cov(w) B) / 2 less the volume that q(w) has lost."""
        return float(sums.Y) + 0.5 * float((sums.B * self.weights(sums)).sum()) - self._volume(sums)

    def tuned(self, sums: Any, names: tuple[str, ...]) -> Self:
        """This response with the best precision of the weights, if it is among ``names``."""
        if PRECISION not in names or not sums.A > 0.0:
            return self

        def bound_times(factor: float) -> float:
            return self._times(factor).bound(sums)

        return self._times(best_factor(bound_times).factor)

    def _times(self, factor: float) -> Self:
        """With the precision multiplied by a factor."""
        return self._replaced(precision=float(np.clip(self._precision * factor, LEAST, MOST)))

    def _replaced(self, **values: Any) -> Self:
        """With other values of fields."""
        own: Any = self  # a frozen dataclass
        found: Self = replace(own, **values)
        return found

    def _resolved(self, **values: Any) -> Self:
        """With these values of fields, a precision, and plain numbers."""
        given = {name: float(getattr(self, name)) for name in self.positive}
        precision = self.at_first if self.precision is None else float(self.precision)
        return self._replaced(precision=precision, **given | values)

    def _covariance(self, sums: Answered) -> Array:
        """Of each column of the weights, (K, K)."""
        values, vectors = np.linalg.eigh(sums.M)
        return np.asarray((vectors / (np.maximum(values, 0.0) + self._precision)) @ vectors.T)

    def _volume(self, sums: Answered) -> float:
        """What q(w) has lost: log det(I + M / precision) / 2 for each free column; M is not negative but for rounding."""
        values = np.maximum(np.linalg.eigvalsh(sums.M), 0.0)
        return 0.5 * self.n_free * float(np.log1p(values / self._precision).sum())

    @property
    def _precision(self) -> float:
        assert self.precision is not None
        return self.precision
