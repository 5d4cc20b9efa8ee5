"""Exchangeable seating of rows: the weights out of mixtures, for samplers and one-pass inference."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.special import log_rise

Array = NDArray[np.floating]

SOME = 1e-12  # of the concentration: a smaller weight of a new cluster is rounding, where none is left


class Seating(NamedTuple):
    """The two-parameter Chinese restaurant: how rows join clusters one after the other, with the weights integrated out.

        p(row joins cluster k | counts N of the others)  proportional to  N_k - discount
        p(row begins a new cluster | the same)           proportional to  concentration + discount K

    The Dirichlet process has discount 0; the Pitman-Yor process has one from 0 to 1; a symmetric Dirichlet prior of M clusters
    has ``discount = -concentration / M``, so that an M + 1st cluster has no chance (Pitman, Combinatorial Stochastic
    Processes, 2006, section 3.2; Thesis 3.1).

    Attributes
    ----------
    concentration : alpha
    discount : d < 1
    """

    concentration: float
    discount: float = 0.0

    def log_weights(self, N: Array) -> Array:
        """Log weights of K clusters with counts N (K,) of other rows and, last, of a new one, (K + 1,)  (BJ Eq. 26).

        They have a constant in common; minus infinity is no chance.
        """
        new = self.new_weight(len(N))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.append(np.where(N > 0.0, np.maximum(N - self.discount, 0.0), 0.0), new)))

    def new_weight(self, K: int) -> float:
        """The weight of a new cluster beside K others; 0 where there can be no more."""
        new = self.concentration + self.discount * K
        return new if new > SOME * abs(self.concentration) else 0.0

    def log_partition(self, N: Array) -> float:
        """Log probability of a partition into clusters of N rows (K,), all positive, whatever their order (SVA Eq. 4).

        log prod_{j=1}^{K-1} (alpha + d j) + sum_k log (1 - d)_{N_k - 1} - log (alpha + 1)_{n - 1},  where (a)_m = a (a + 1) ...
        """
        new = np.log(self.concentration + self.discount * np.arange(1, len(N)))
        return float(
            new.sum()
            + log_rise(N - 1.0, 1.0 - self.discount).sum()
            - log_rise(N.sum() - 1.0, self.concentration + 1.0).sum()
        )
