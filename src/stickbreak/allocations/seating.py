"""Exchangeable seating of rows: the weights out of mixtures, for samplers and one-pass inference."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, logsumexp

from ..kernels.special import log_rise

Array = NDArray[np.floating]

LEAST = 1e-300  # a gamma variable of a small shape can be zero in floats
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

    def draw_log_weights(self, N: Array, rng: np.random.Generator) -> Array:
        """Log weights of K clusters drawn from their posterior, given the rows N (K,) of each.

        Sticks v_k ~ Beta(1 - d + N_k, alpha + d k + N_{>k}), k = 1, 2, ..., of which the last is one (BJ 4.2): a process cut
        off after K clusters.  With a negative discount, the symmetric Dirichlet prior of K clusters.
        """
        if self.discount < 0.0:
            return log_dirichlet(N - self.discount, rng)
        later = N.sum() - np.cumsum(N)
        first = np.log(_gamma(1.0 - self.discount + N, rng))
        rest = np.log(_gamma(self.concentration + self.discount * np.arange(1, len(N) + 1) + later, rng))
        both = np.logaddexp(first, rest)
        log_rest = np.concatenate([[0.0], np.cumsum(rest - both)[:-1]])
        return np.asarray(np.append((first - both)[:-1], 0.0) + log_rest)

    def log_labels(self, N: Array) -> float:
        """Log probability of labels with N (K,) rows each under the prior of `draw_log_weights`."""
        if self.discount < 0.0:
            M = len(N)
            return float(log_rise(N, -self.discount).sum() - log_rise(N.sum(), -self.discount * M).sum())
        later = (N.sum() - np.cumsum(N))[:-1]
        on = 1.0 - self.discount
        off = self.concentration + self.discount * np.arange(1, len(N))
        return float((betaln(on + N[:-1], off + later) - betaln(on, off)).sum())

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


def log_dirichlet(counts: Array, rng: np.random.Generator) -> Array:
    """Logs of draws from Dirichlet distributions with pseudo-counts (..., K) along the last axis."""
    drawn = np.log(_gamma(counts, rng))
    return np.asarray(drawn - logsumexp(drawn, axis=-1, keepdims=True))


def _gamma(shape: Array, rng: np.random.Generator) -> Array:
    """Gamma variables of rate one, above zero."""
    return np.asarray(np.maximum(rng.standard_gamma(shape), LEAST))
