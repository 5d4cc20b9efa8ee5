"""Sticks of a hierarchical Dirichlet process under q(u_k) = Beta(w_k u_k, w_k (1 - u_k)): their share of a bound, its optimum.

Clusters are k = 1, ..., K and what comes after them, K + 1; beta_k = u_k prod_{l<k} (1 - u_l), with u_{K+1} = 1.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit, psi

from ..kernels import sticks as kernels
from ._base import Array

SMALLEST = 1e-100  # of a stick mean, so that its weight and the square of that are numbers
LEAST, ROUNDING = 1e-9, 3e-15  # gains with which a search ends: nats, and share of a bound, of which less is rounding


def stick_weight(u: Array, exponents: Array, gamma: float, strengths: Array) -> Array:
    """The weight w of q(u), (K,), for stick means u (K,).

        w_k = (1 + c_k) (1 - u_k) / u_k + (gamma + c_{k+1} + ... + c_{K+1}) u_k / (1 - u_k)
            + 2 sum_i n_i a_i h_k (1 - 1 / (1 + C a_i h_k)),    h_k = prod_{l<k} (1 - u_l)

    The first terms are the best weight of large counts at this mean.  At the mean that the counts alone have they are the sum
    of the counts (Thesis Eq. 5.39 and 6.44), but rows may want another: next to no share of what is not in use.  The sum is
    the curvature that n_i rows of concentration a_i add to the bound through the variance of shares, with C = pi^2 / 12: rows
    of a large concentration follow the shares closely, so q(u) must be as narrow as they require.

    exponents : c, (K + 1,);  strengths : (n, 2), in each row n_i and a_i
    """
    w, by_left, by_own = np.empty((3, len(u)))
    kernels.stick_weights(u, 1.0 - u, exponents, gamma, strengths, w, by_left, by_own)
    return np.asarray(w)


def stick_bound(
    x: Array,
    exponents: Array,
    gamma: float,
    strengths: Array,
    of_means: Callable[[Array], tuple[float, Array, Array, Array]],
) -> tuple[float, Array]:
    """E[log p(u) / q(u)] + sum_k c_k (E[log beta_k] - log m_k) - sum_k s_k Var(beta_k) + f(m), m = E[beta], and its gradient.

    Both parts of E[log beta_k] are taken together, so that no term is larger than the bound.

    x : (K,) logit(u), the variables of the gradient;  exponents : c, (K + 1,);  strengths : see `stick_weight`
    of_means : function of m (K + 1,); returns f, and three arrays (K + 1,): its gradient by log m, s, and the derivatives
        of s by log m
    """
    u = np.maximum(expit(x), SMALLEST)
    v = np.maximum(expit(-x), SMALLEST)
    gradient = np.empty(len(x))
    means = np.empty(len(x) + 1)
    means[0] = 1.0
    np.cumprod(v, out=means[1:])
    means[:-1] *= u
    value, slope, spread, by_spread = of_means(means)
    log_u = -np.logaddexp(0.0, -x)
    log_v = -np.logaddexp(0.0, x)
    value += kernels.stick_bound(u, v, log_u, log_v, exponents, gamma, strengths, spread, by_spread, slope, gradient)
    return float(value), gradient


def best_sticks(value: Callable[[Array], tuple[float, Array]], x: Array, counts: Array) -> tuple[Array, float]:
    """Logits of stick means that maximise a bound, from x (K,) on, by L-BFGS, and its value.

    counts : (K + 1,) approximate number of draws of each share, for the scale of the first steps
    """
    scale = first_scale(x, counts)
    here = value(x)
    first = here[0]

    def loss(t: Array) -> tuple[float, Array]:
        found, gradient = value(x + scale * t) if t.any() else here
        return first - found, -gradient * scale

    scales = {"ftol": least_gain(first), "gtol": 1e-5, "maxiter": 200}
    found = minimize(loss, np.zeros_like(x), jac=True, method="L-BFGS-B", options=scales)
    best = found.x if found.fun < 0.0 else np.zeros_like(x)
    return np.asarray(x + scale * best), first - min(float(found.fun), 0.0)


def first_scale(x: Array, counts: Array) -> Array:
    """The scale (K,) of logits x (K,) of stick means in which the curvature of the bound is about one; counts : (K + 1,)"""
    u = expit(x)
    return np.asarray(1.0 / np.sqrt((counts[:-1] + _after(counts)) * u * (1.0 - u) + 1.0))


def least_gain(bound: float) -> float:
    """The gain of a step with which a search ends."""
    return max(LEAST, ROUNDING * abs(bound))


def best_gamma(shares: Array, exponents: Array, gamma: float, strengths: Array) -> float:
    """The concentration of the sticks that maximises the bound where shares (K + 1,) are at the optimum for ``gamma``."""
    u = expit(stick_logits(shares))
    _, rest = expected_logs(u, stick_weight(u, exponents, gamma, strengths))
    return float(-len(u) / rest.sum())


def expected_rest(x: Array, exponents: Array, gamma: float, strengths: Array) -> float:
    """sum_k E[log (1 - u_k)] where stick means have the logits x (K,): what sticks say of their concentration."""
    u = np.maximum(expit(x), SMALLEST)
    v = np.maximum(expit(-x), SMALLEST)
    w, by_left, by_own = np.empty((3, len(x)))
    kernels.stick_weights(u, v, exponents, gamma, strengths, w, by_left, by_own)
    return float((psi(v * w) - psi(w)).sum())


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
