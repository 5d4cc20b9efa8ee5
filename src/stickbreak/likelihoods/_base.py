"""What a likelihood must say: its features, its weights, its marginal likelihood and how to show itself."""

from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


class Likelihood(Protocol):
    """An exponential family with its conjugate prior: ``p(x | phi) = h(x) exp(phi . t(x) - c(phi))`` (Thesis 2.2).

    A likelihood is a frozen dataclass whose fields are the hyperparameters of the prior.  Fields left at None are given
    values by `resolve`, from the data.  Everything learnt is held outside, in the counts N (K,) and summed statistics
    S (K, F) of the clusters, and every method is a pure function of them.
    """

    def resolve(self, X: Array, weights: Array) -> Self:
        """This likelihood with every hyperparameter a number, scaled from a sample X (n, D) with row weights (n,)."""
        ...

    @property
    def n_statistics(self) -> int:
        """F, the length of t(x)."""
        ...

    def features(self, X: Array, out: Array) -> Array:
        """Sufficient statistics T = [t(x_1) ... t(x_n)], written to ``out`` (n, F)."""
        ...

    def log_base(self, X: Array) -> Array:
        """Log base measure log h(x_n), (n,)."""
        ...

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """W = E_q[phi] (K, F) and b = -E_q[c(phi)] (K,), so that E_q[log p(x_n | phi_k)] = log h + t(x_n) . W_k + b_k."""
        ...

    def log_marginal(self, N: Array, S: Array) -> Array:
        """Log marginal likelihood of each cluster's data, without base measure: logZ(posterior) - logZ(prior), (K,)."""
        ...

    def divergence(self, X: Array, centers: Array) -> Array:
        """Bregman divergence (n, J) of rows X from rows ``centers``, both smoothed by the prior (Thesis Alg. 2.2)."""
        ...

    def posterior(self, N: Array, S: Array) -> NamedTuple:
        """Posterior means of the parameters, in the units of the data, each with a leading cluster axis."""
        ...

    def log_predictive(self, X: Array, N: Array, S: Array) -> Array:
        """Log posterior-predictive density of each row under each cluster, (n, K)."""
        ...

    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` rows from the posterior predictive of one cluster."""
        ...


def require(condition: bool, name: str, value: Any, wanted: str) -> None:
    """Raise a ValueError that names the hyperparameter, its value and what it must be."""
    if not condition:
        raise ValueError(f"{name} must be {wanted}; got {value!r}.")


def column_values(name: str, value: Any, D: int) -> Array:
    """A hyperparameter given as a scalar or per column, as a finite (D,) float64 array."""
    values = np.asarray(value, dtype=np.float64)
    require(
        values.ndim <= 1 and values.size in (1, D), name, value, f"a number or an array of {D} numbers, one per column"
    )
    require(bool(np.isfinite(values).all()), name, value, "finite")
    return np.array(np.broadcast_to(values, (D,)))
