"""Latent variables of rows: what a likelihood with one for each row in each cluster says to the local step."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .responsibilities import Responsibilities

Array = NDArray[np.floating]


class Latent(Protocol):
    """A variable u >= 0 of each row in each cluster, by the mean of which under q(u | z) the row's statistics are multiplied.

    The last `n_statistics` of a row are its own: what it says of u beyond other statistics, such as the entropy of q(u).
    `Likelihood.features` has them as they are for rows without parameters, and the local step as they are at the best q(u).
    """

    @property
    def n_statistics(self) -> int:
        """How many statistics of a row are its own."""
        ...

    def integrate(self, C: Array) -> Array | None:
        """Integrate u out of scores C (n, K), in place, and return E[u], (n, K).

        None if scores are beyond the range of float32, and then C is spoilt.
        """
        ...

    def add(self, kept: Responsibilities, weights: Array, means: Array, S: Array) -> None:
        """Add what responsibilities ``kept`` and ``means`` E[u] (n, K) say to statistics of its own that are no products.

        weights : (n,) in;  S : (K, F) in and out, float64
        """
        ...
