"""Dust: what a likelihood with a background says to the local step."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels.dust import FARTHEST, add_bits, integrate_bits
from .features import largest_terms
from .responsibilities import Responsibilities

Array = NDArray[np.floating]

OWN = 3  # statistics


@dataclass(frozen=True)
class Dust:
    """A bit t of each row in each cluster (see `stickbreak.likelihoods.Latent`): 1 where it is from the family.

    Scores are the log odds of t = 1.  Two of the three statistics of its own are multiplied by E[t], as all of the family are,
    and the last is the entropy of q(t).
    """

    @property
    def n_statistics(self) -> int:
        """Three."""
        return OWN

    def integrate(self, C: Array) -> Array | None:
        """Integrate bits out of log odds C (n, K), in place, and return E[t], (n, K); None as `Latent.integrate`."""
        U = np.empty_like(C)
        exact = C.dtype == np.float64
        return U if integrate_bits(C, FARTHEST if exact else largest_terms(C.dtype), exact, U) else None

    def add(self, kept: Responsibilities, weights: Array, means: Array, S: Array) -> None:
        """Add the entropies of bits with the means E[t] to the last statistic."""
        add_bits(*kept, weights, means, S)
