"""The prior of a regression: what may be given of it, its pseudo-rows in working coordinates, and what suggests its scale."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from . import _quadratic as quadratic
from ._base import Array
from ._hyperparameters import hyperparameter, positive, require
from ._regression_layout import Layout
from ._sample import clear_correlations


@dataclass(frozen=True, eq=False)
class PseudoRows:
    """The prior as rows, in working coordinates z = (x - origin) / unit, where r_data = G r_work:

        M0_work = U^-1 (M0 G - o e'),   K0_work = G^-1 K0 G^-T,   B_work = U^-1 B U^-1

    with o and U the origin and units of the targets, and e' r = 1; without an intercept the origin is zero.

    layout : targets and regressors among the D columns
    origin, unit : (D,)
    mean, precision, scale : M0 (q, M), K0, a number of pseudo-rows or (M, M), and B (q, q), in the units of the data
    """

    layout: Layout
    origin: Array
    unit: Array
    mean: Array
    precision: Any
    scale: Array

    @cached_property
    def G(self) -> Array:
        """From regressors in working coordinates to those in the units of the data, (M, M)."""
        layout = self.layout
        G = np.diag(np.append(self.unit[layout.r], np.ones(int(layout.intercept))))
        if layout.intercept:
            G[:-1, -1] = self.origin[layout.r]
        return G

    @cached_property
    def working_mean(self) -> Array:
        """M0_work (q, M)."""
        layout = self.layout
        shift = np.zeros((layout.q, layout.M))
        if layout.intercept:
            shift[:, -1] = self.origin[layout.y]
        with np.errstate(over="ignore", invalid="ignore"):  # too large a mean is refused where it is given
            return np.asarray((self.mean @ self.G - shift) / self.unit[layout.y][:, None])

    @cached_property
    def line(self) -> Array:
        """The sums of their products but for the scale, [[K0, K0 M0'], [M0 K0, M0 K0 M0']] (M + q, M + q)."""
        M = self.layout.M
        mean = self.working_mean
        J = np.zeros((M + self.layout.q, M + self.layout.q))
        if np.ndim(self.precision):
            inverse = np.linalg.inv(self.G)
            J[:M, :M] = inverse @ self.precision @ inverse.T
            J[M:, :M] = mean @ J[:M, :M]
        else:
            np.fill_diagonal(J[:M, :M], self.precision)
            J[M:, :M] = mean * self.precision
        J[:M, M:] = J[M:, :M].T
        J[M:, M:] = J[M:, :M] @ mean.T
        return J

    @cached_property
    def noise(self) -> Array:
        """B_work (q, q)."""
        unit = self.unit[self.layout.y]
        return np.divide(self.scale, np.outer(unit, unit), order="C")

    @cached_property
    def products(self) -> Array:
        """J (M + q, M + q), the sums of their products."""
        J = self.line.copy()
        J[self.layout.M :, self.layout.M :] += self.noise
        return J


def prior_mean(mean: Any, center: Array, P: int, intercept: bool) -> Array:
    """M0 (q, M) from a number, a matrix, or None: zero, with the intercept at the mean of the targets."""
    shape = (len(center), P + intercept)
    if mean is None:
        return np.hstack([np.zeros((len(center), P)), center[:, None]])[:, : shape[1]]
    values = hyperparameter("mean", mean)
    require(values.shape in ((), shape), "mean", mean, f"a number or a {shape[0]} x {shape[1]} matrix")
    require(bool(np.isfinite(values).all()), "mean", mean, "finite")
    return np.array(np.broadcast_to(values, shape))


def prior_precision(precision: Any, M: int) -> Any:
    """K0, as a number that multiplies the identity in working coordinates, or as a matrix (M, M) in units of the data."""
    values = hyperparameter("mean_precision", 1e-2 if precision is None else precision)
    if values.ndim == 0:
        return positive("mean_precision", values)
    require(values.shape == (M, M), "mean_precision", precision, f"a number or a {M} x {M} matrix")
    return quadratic.symmetric_matrix("mean_precision", precision, M)


def residuals(J: Array, M: int, n: float) -> tuple[Array, Array]:
    """Variances (q,) and correlations (q, q) of the targets about the line that n rows with sums of products J suggest.

    They are in working coordinates; where a target does not vary, 1.  Of n residuals n - M are free: as many rows of
    independent columns have such correlations by chance.

    M : number of regressors, the first in J
    """
    half = solve_triangular(quadratic.cholesky(J[:M, :M]), J[:M, M:], lower=True)
    covariance = J[M:, M:] - half.T @ half
    variance = np.diagonal(covariance) / n
    varies = variance > 1e-12
    pattern = clear_correlations(np.where(np.outer(varies, varies), covariance / n, 0.0), max(n - M, 1.0))
    return np.where(varies, variance, 1.0), pattern
