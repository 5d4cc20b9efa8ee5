"""What responses of numbers share: the units of the answers, and predictions in them."""

import math
from typing import Self

import numpy as np
from numpy.typing import NDArray

from .._arguments import real, shown
from ._base import Answered
from ._ridge import RidgeResponse

Array = NDArray[np.floating]


class NumericResponse(RidgeResponse):
    """A response of numbers, which are centred and scaled to variance one: frozen dataclasses with ``center`` and ``scale``."""

    center: float | None
    scale: float | None

    @property
    def n_outputs(self) -> int:
        """One."""
        return 1

    @property
    def n_free(self) -> int:
        """One."""
        return 1

    def standardised(self, y: Array) -> Array:
        """Answers as local steps read them."""
        center, scale = self._units
        return np.asarray((y - center) / scale)

    def predicted(self, sums: Answered, m: Array) -> Array:
        """The mean answer of documents with shares m (n, K), in their units, (n,)."""
        center, scale = self._units
        return np.asarray(center + scale * (m @ self.weights(sums))[:, 0])

    def means(self, sums: Answered) -> Array:
        """The mean answer of a document of one topic, in their units, for each topic, (K, 1)."""
        center, scale = self._units
        return np.asarray(center + scale * self.weights(sums))

    def resolved(self, y: Array) -> Self:
        """This response with all that was not given: units are the mean and the standard deviation of answers y (n,)."""
        center = float(y.mean()) if self.center is None else float(self.center)
        scale = float(y.std()) if self.scale is None else float(self.scale)
        return self._resolved(center=center, scale=scale)

    def _check_others(self) -> None:
        """Refuse units that are no numbers."""
        if self.center is not None and not math.isfinite(real(self.center)):
            raise ValueError(f"center must be a finite number or None; got {shown(self.center)}.")
        if self.scale is not None and not (real(self.scale) > 0.0 and math.isfinite(real(self.scale))):
            raise ValueError(f"scale must be a positive number or None; got {shown(self.scale)}.")

    @property
    def _units(self) -> tuple[float, float]:
        assert self.center is not None
        assert self.scale is not None
        return self.center, self.scale
