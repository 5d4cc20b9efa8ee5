"""Sticks of a hierarchical Dirichlet process under q(u_k) = Beta(w_k u_k, w_k (1 - u_k)): their share of a bound, its optimum.

Clusters are k = 1, ..., K and what comes after them, K + 1; beta_k = u_k prod_{l<k} (1 - u_l), with u_{K+1} = 1.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit, psi

from ..kernels import sticks as kernels
from ._base import Array


def stick_weight(exponents: Array, gamma: float) -> Array:
    """The weight w of q(u) (Thesis Eq. 5.39 and 6.44), (K,): all counts that its terms in the bound have."""
    return np.asarray(exponents[:-1] + _after(exponents) + 1.0 + gamma)


def stick_bound(
    x: Array, exponents: Array, spread: Array, gamma: float, of_means: Callable[[Array], tuple[float, Array]]
) -> tuple[float, Array]:
    """E[log p(u) / q(u)] + sum_k c_k E[log beta_k] - sum_k s_k Var(beta_k) + f(E[beta]), and its gradient by x = logit(u).

    exponents : c, (K + 1,);  spread : s, (K + 1,)
    of_means : f and its gradient, of E[beta] (K + 1,)
    """
    u, gradient = expit(x), np.empty(len(x))
    m = stick_means(u)
    value, slope = of_means(m)
    value += len(x) * np.log(gamma) + kernels.stick_bound(u, expit(-x), exponents, spread, gamma, m, slope, gradient)
    return float(value), gradient


def best_sticks(value: Callable[[Array], tuple[float, Array]], x: Array, strength: float) -> tuple[Array, float]:
    """Logits of stick means that maximise a bound, from x (K,) on, by L-BFGS, and its value.

    strength : how many rows of counts the bound has, for the scale of the first steps
    """
    u, later = expit(x), np.arange(len(x), 0, -1)
    scale = 1.0 / np.sqrt(strength * (1.0 + later * u) * (1.0 - u) + 1.0)
    first = value(x)[0]

    def loss(t: Array) -> tuple[float, Array]:
        found, gradient = value(x + scale * t)
        return first - found, -gradient * scale

    found = minimize(loss, np.zeros_like(x), jac=True, method="L-BFGS-B", options={"gtol": 1e-5, "maxiter": 200})
    best = found.x if found.fun < 0.0 else np.zeros_like(x)
    return np.asarray(x + scale * best), first - min(float(found.fun), 0.0)


def best_gamma(shares: Array, exponents: Array, gamma: float) -> float:
    """The concentration of the sticks that maximises the bound where shares (K + 1,) are at the optimum for ``gamma``."""
    left = np.cumsum(shares[::-1])[::-1]
    w = stick_weight(exponents, gamma)
    _, rest = expected_logs(shares[:-1] / left[:-1], w)
    return float(-len(w) / rest.sum())


def expected_logs(u: Array, w: Array) -> tuple[Array, Array]:
    """E[log u] and E[log (1 - u)] under Beta(w u, w (1 - u)) (Thesis Eq. 5.11)."""
    return psi(u * w) - psi(w), psi((1.0 - u) * w) - psi(w)


def stick_logits(shares: Array) -> Array:
    """Logits of the stick means u of which shares (K + 1,) are the means, (K,)."""
    shares = np.maximum(shares, 1e-12)
    left = np.cumsum(shares[::-1])[::-1]
    return np.asarray(logit(np.clip(shares[:-1] / left[:-1], 1e-12, 1.0 - 1e-12)))


def stick_means(u: Array) -> Array:
    """E[beta] of the K clusters and of the rest, (K + 1,) (Thesis Eq. 5.11)."""
    return np.asarray(np.concatenate([u, [1.0]]) * np.concatenate([[1.0], np.cumprod(1.0 - u)]))


def _after(values: Array) -> Array:
    """Sums of what comes after each of the first K of K + 1 values, (K,)."""
    return np.asarray(np.cumsum(values[::-1])[-2::-1])
