"""A prior of your own over the weights of clusters: sticks from any Beta distribution, in one file.

python examples/beta_sticks.py
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaln, psi

from stickbreak.allocations import Array, GammaConcentration, MixturePrior, check_belief, normalised


@dataclass(frozen=True)
class BetaSticks(MixturePrior):
    """Mixture by stick-breaking: pi_k = u_k prod_{l<k} (1 - u_l),  u_k ~ Beta(shape, concentration).

    The posterior is q(u_k) = Beta(shape + N_k, concentration + N_{>k}) with N_{>k} = sum_{l>k} N_l.  With shape 1 this is
    `DirichletProcess`; a larger shape expects the first clusters to be larger.  A cluster without rows comes last, where its
    stick keeps its prior, so it changes nothing.  Decreasing size is the best order: of clusters of a and b rows in places k
    and k + 1, with M rows after them, the first is worth Gamma(concentration + M + b) / Gamma(shape + concentration + M + b)
    to the other, which falls with b.

    Parameters
    ----------
    concentration : float, 1e-300 to 1e300, or `GammaConcentration`
        Larger values expect more clusters.
    shape : float > 0
        The other parameter of the sticks.

    References
    ----------
    Ishwaran and James, Gibbs sampling methods for stick-breaking priors, JASA 2001 (the beta two-parameter process).
    """

    concentration: float | GammaConcentration = 1.0
    shape: float = 1.0

    def __post_init__(self) -> None:
        check_belief(self)
        if not 0.0 < self.shape < np.inf:
            raise ValueError(f"shape must be a positive number; got {self.shape!r}.")

    def _sticks(self, N: Array, concentration: Any) -> tuple[Array, Array]:
        """Both parameters of q(u_k), (K,), or (n, K) for concentrations (n, 1)."""
        on = np.broadcast_to(self.shape + N, (*np.shape(concentration)[:-1], len(N)))
        return on, concentration + np.append(N[::-1].cumsum()[-2::-1], 0.0)

    def _log_evidence(self, N: Array, concentration: Any) -> Array:
        """Log p(z) = sum_k log B(shape + N_k, concentration + N_{>k}) - log B(shape, concentration)."""
        terms = betaln(*self._sticks(N, concentration)) - betaln(self.shape, concentration)
        return np.asarray(terms.sum(axis=-1))

    def _expected_log_weights(self, N: Array, concentration: Any) -> Array:
        """E[log pi_k] = E[log u_k] + sum_{l<k} E[log (1 - u_l)]: the derivative of the log evidence by N_k."""
        on, off = self._sticks(N, concentration)
        both = psi(on + off)
        rest = psi(off) - both
        return np.asarray(psi(on) - both + np.cumsum(rest, axis=-1) - rest)

    def _mean_weights(self, N: Array, concentration: Any) -> Array:
        """E[pi_k] = E[u_k] prod_{l<k} (1 - E[u_l]) over the K clusters in use, normalised."""
        on, off = self._sticks(N, concentration)
        before = np.cumprod(off / (on + off), axis=-1) * (on + off) / off
        return normalised(on / (on + off) * before)


if __name__ == "__main__":
    from stickbreak import Mixture

    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(center, 1.0, (n, 2)) for center, n in ((-9, 800), (0, 150), (9, 50))])
    for shape in (0.5, 1.0, 5.0):
        model = Mixture("gaussian", allocation=BetaSticks(1.0, shape), random_state=0).fit(X)
        print(
            f"shape {shape}: {model.n_clusters_} clusters, ELBO {model.lower_bound_:.1f}, weights {model.weights_.round(3)}"
        )
