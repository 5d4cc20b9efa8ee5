"""What responses of classes share: scores of the classes, and parabolas in them."""

from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .._arguments import check_count
from ._base import Answered, Terms
from ._ridge import RidgeResponse

Array = NDArray[np.floating]


class Touching(NamedTuple):
    """Parabolas of documents above a loss L of the scores a, L(a) <= values + chances'(a - psi) + steepness/2 |a - psi|^2.

    Scores that are changed by the same number change nothing but the loss by as much.

    values : (n,);  chances : (n, C), which add up to one;  steepness : (n,)
    """

    values: Array
    chances: Array
    steepness: Array


def terms_of(loss: Touching, psi: Array, y: Array, cost: float) -> Terms:
    """The parabolas of -cost (L(a) - a_y) for documents with scores psi (n, C), which add up to zero, and classes y (n,)."""
    h = loss.steepness
    targets = h[:, None] * psi - loss.chances
    targets[np.arange(len(y)), y.astype(np.intp)] += 1.0
    constants = (psi * loss.chances).sum(axis=1) - loss.values - 0.5 * h * (psi**2).sum(axis=1)
    return Terms(cost * targets, cost * h, cost * constants)


class ClassResponse(RidgeResponse):
    """A response of classes 0, ..., C - 1 by scores w' m_d: frozen dataclasses with ``n_classes``.

    Scores count by their differences alone: the columns of B add up to zero, and q(w) is within the weights that do.
    """

    n_classes: int | None

    @property
    def n_outputs(self) -> int:
        """C."""
        assert self.n_classes is not None
        return self.n_classes

    @property
    def n_free(self) -> int:
        """C - 1: rows of w add up to zero."""
        return self.n_outputs - 1

    def resolved(self, n_classes: int) -> Self:
        """This response with all that was not given, for answers of so many classes."""
        return self._resolved(n_classes=n_classes)

    @abstractmethod
    def chances(self, sums: Answered, m: Array) -> Array:
        """The probabilities of the classes at E[w], for documents with shares m (n, K), (n, C)."""

    def means(self, sums: Answered) -> Array:
        """E[w], (K, C); rows add up to zero."""
        return self.weights(sums)

    def _check_others(self) -> None:
        """Refuse a number of classes that is none."""
        count: Any = self.n_classes
        if count is None:
            return
        check_count(count, "n_classes")
        if count < 2:
            raise ValueError(f"n_classes must be at least 2; got {count}.")
