"""The sticks of a mixture given counts: pi_k = u_k prod_{l<k} (1 - u_l),  u_k ~ Beta(1 - d, gamma + k d), k = 1, 2, ...

The posterior is q(u_k) = Beta(1 - d + N_k, gamma + k d + N_{>k}) with N_{>k} = sum_{l>k} N_l (Thesis Eq. 3.43; the count of
later clusters as in Alg. 3.1, line 16).  With d = 0 these are the sticks of a Dirichlet process.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import gammaln, psi

from ..kernels.special import log_rise
from ._base import Array


class Sticks(NamedTuple):
    """The parameters of q(u_k) and of its prior that differ from stick to stick, (K,), or for n concentrations (n, K).

    on, off : 1 - d + N_k and gamma + k d + N_{>k}, the parameters of q(u_k)
    prior_off : gamma + k d
    discount : d
    """

    on: Array
    off: Array
    prior_off: Array
    discount: float

    @classmethod
    def of(cls, N: Array, concentration: Any, discount: float = 0.0) -> Self:
        """The sticks of clusters with counts N (K,), in their order, at one concentration or at several, (n, 1)."""
        later = np.concatenate([N[::-1].cumsum()[-2::-1], [0.0]])
        prior_off = concentration + discount * np.arange(1.0, len(N) + 1.0)
        return cls(1.0 - discount + N, prior_off + later, prior_off, discount)

    def log_evidence(self, N: Array) -> Array:
        """c_Beta(1 - d, gamma + k d) - c_Beta(1 - d + N_k, gamma + k d + N_{>k})  (Thesis Eq. 3.44), each (K,).

        The difference of the normalisers is arranged so that no terms cancel which are larger than itself.
        """
        first = 1.0 - self.discount
        rises = gammaln(self.on) - gammaln(first) - log_rise(N, first + self.off)
        if self.discount > 0.0:
            rises = rises + log_rise(self.discount, first + self.off) - log_rise(self.discount, first + self.prior_off)
        return np.asarray(rises - (np.log(self.off) - np.log(self.prior_off)))

    def expected_log_weights(self) -> Array:
        """E[log u_k] + sum_{l<k} E[log (1 - u_l)], (K,)  (Thesis Eq. 3.32, 3.33)."""
        both = psi(self.on + self.off)
        return np.asarray(psi(self.on) - both + _before(psi(self.off) - both))

    def mean_weights(self) -> Array:
        """E[u_k] prod_{l<k} (1 - E[u_l]), (K,)  (Thesis Eq. 3.18)."""
        return np.asarray(self.on / (self.on + self.off) * np.exp(_before(np.log(self.off / (self.on + self.off)))))


def _before(values: Array) -> Array:
    """Sums of the values before each along the last axis."""
    sums = np.cumsum(values, axis=-1)
    return np.asarray(np.concatenate([np.zeros((*values.shape[:-1], 1)), sums[..., :-1]], axis=-1))
