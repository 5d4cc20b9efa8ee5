"""Log marginals of the same sums under one regression after another."""

from typing import Any, Protocol

import numpy as np

from ..kernels.determinants import log_determinants_left
from ._base import Array
from ._regression_belief import Left


class Line(Protocol):
    """A regression: priors of its line, M0 and K0, and of its noise."""

    mean: Any
    mean_precision: Any

    @property
    def noise(self) -> Array:
        """B in working coordinates, (q, q)."""
        ...

    def left(self, N: Array, S: Array) -> tuple[Left, Array]:
        """What is left of sums once the regressors are eliminated, and log |B'| (K,)."""
        ...

    def normalisers_of(self, left: Left, logdet_B: Array) -> Array:
        """LogZ(nu', J'), (K,), from what `left` says."""
        ...


class Marginals:
    """`Regression.log_marginal` as a function of the regression: those in turn often have the same prior of the line.

    Then the regressors, which are eliminated first, need not be eliminated again.
    """

    def __init__(self, N: Array, S: Array) -> None:
        self._sums = np.append(N, 0.0), np.vstack([S, np.zeros(S.shape[1])])  # and of an empty cluster
        self._last: Line | None = None

    def __call__(self, line: Line) -> Array:
        """The log marginals, (K,)."""
        last = self._last
        if last is None or line.mean is not last.mean or line.mean_precision is not last.mean_precision:
            self._last = line
            self._left, logdet_B = line.left(*self._sums)
        else:
            logdet_B = np.empty(len(self._left.n))
            log_determinants_left(self._left.targets, line.noise, logdet_B)
        found = line.normalisers_of(self._left, logdet_B)
        return np.asarray(found[:-1] - found[-1])
