"""Shared by likelihoods whose statistics are products of columns: symmetric packing and Wishart normalisers."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotri, dtrtri
from scipy.special import gammaln, psi

from ..kernels.inverses import invert
from ..kernels.statistics import gather_scatters, pack_products
from ._arrays import converted, like, namespace
from ._base import Array
from ._draws import LEAST as LEAST_CHISQUARE
from ._draws import student_width
from ._hyperparameters import column_values, farthest, hyperparameter, positive, require
from ._sample import SAME, Sample
from ._size import Size

DEFAULT_ROWS = 1e-3  # for which the prior mean counts
SHARE_OF_SPREAD = 0.1  # default prior: a cluster's variance is expected to be this share of the variance of the data


# For a cluster far from the origin, rounding of the sums of squares hides its spread about the mean.  So squares are multiplied
# by `GRAIN`, in statistics and weights alike: no cluster is narrower than rounding can resolve, and the bound stays exact.
GRAIN = 1.0 + 2.0**-48
LARGEST_RATIO = 1e140  # of variances of prior and data: products of two such numbers stay in range
RATIOS = f"{1.0 / LARGEST_RATIO:g} to {LARGEST_RATIO:g} times the variance of the data"
LEAST_SPARE = 1e-100  # degrees of freedom beyond D - 1, or shape, by which scales are divided
COMPILED = 64  # columns up to which a compiled loop over matrices is faster than a call of LAPACK for each
SPARE = 0.1, 1e6  # degrees of freedom beyond D - 1 that may be learnt
FLOAT32 = 1e-30, 1e30  # units that float32 can hold, with room for deviations in them
NOT_DEFINITE = (
    "a cluster's scatter matrix lost its positive definiteness to rounding: its width is below the precision of "
    "the data. Pass the data as float64, remove near-duplicate columns, raise the prior's `scale`, or divide large "
    "sample weights by a constant."
)


def n_products(D: int) -> int:
    """Number of distinct products of D columns, D (D + 1) / 2."""
    return D * (D + 1) // 2


def size(D: int) -> Size:
    """Numbers of a family of all products of D columns, and of the D x D matrices of its clusters and its prior."""
    F = n_products(D) + D
    return Size(F, F, 5 * D * D, 8 * D * D)


@lru_cache(maxsize=16)
def upper_triangle(D: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows a and columns b of the distinct products, a <= b."""
    return np.triu_indices(D)


@lru_cache(maxsize=16)
def squares(D: int) -> NDArray[np.intp]:
    """Which of the distinct products are squares, (D,)."""
    a, b = upper_triangle(D)
    return np.flatnonzero(a == b)


def embedded(values: Array, columns: NDArray[np.intp], D: int) -> Array:
    """Vectors (n, J) or matrices (n, J, J) of some columns as those of all D, zero elsewhere."""
    if len(columns) == D:
        return values
    out = np.zeros((len(values),) + (D,) * (values.ndim - 1))
    place = (columns,) if values.ndim == 2 else (columns[:, None], columns)
    out[:, *place] = values
    return out


def scatters(
    S: Array, columns: NDArray[np.intp], D: int, base: Array, weight: Array, rounding: Array, kappa: Array, m: Array
) -> Array:
    """The matrices B_k = base + S_k + weight_k diag(rounding) - kappa_k m_k m_k' of some of D columns, (K, q, q).

    S : (K, F), packed products first, of which squares count `GRAIN` times
    returns : the lower triangles of the matrices; what is above is not set
    """
    B = np.empty((len(S), len(columns), len(columns)))
    weight, m = np.ascontiguousarray(weight), np.ascontiguousarray(m)  # another layout would be compiled anew
    gather_scatters(S, D, columns, base, weight, rounding, kappa, m, GRAIN, B)
    return B.swapaxes(1, 2)


def spread_out(P: Array, variances: Array) -> None:
    """Add ``variances`` (n, D) to those of each column among packed products P (n, at least D (D + 1) / 2)."""
    P[:, squares(variances.shape[1])] += variances


def pack_quadratic(M: Array) -> Array:
    """The weights (K, D (D + 1) / 2) on packed products that give the quadratic forms z' M_k z, squares times `GRAIN`."""
    a, b = upper_triangle(M.shape[-1])
    return np.asarray(M[:, a, b] * np.where(a == b, GRAIN, 2.0))


def default_spread(name: str, variance: Array, times: Any, factor: str, value: Any) -> Array:
    """The default of a hyperparameter: `SHARE_OF_SPREAD` of the variance of the data, times what follows from another one.

    Raises
    ------
    ValueError : the other hyperparameter, ``factor``, has a ``value`` with which the default is out of range.
    """
    with np.errstate(over="ignore"):
        default = SHARE_OF_SPREAD * variance * times
    wanted = f"such that the default {name}, which grows with it, is {RATIOS}"
    require(bool(np.all(_in_range(SHARE_OF_SPREAD * np.asarray(times)) & np.isfinite(default))), factor, value, wanted)
    return np.asarray(default)


def check_ratio(name: str, given: Any, ratio: Any) -> None:
    """Refuse a hyperparameter whose ratio to the variance of the data is outside the range of computation."""
    require(bool(np.all(_in_range(ratio))), name, given, RATIOS)


def _in_range(ratio: Any) -> Any:
    return (ratio >= 1.0 / LARGEST_RATIO) & (ratio <= LARGEST_RATIO)


def coordinates(sample: Sample) -> tuple[Array, Array]:
    """Origin and unit (D,) of working coordinates: mean and deviation of the columns without outliers; 1 where constant."""
    usual = sample.without_outliers()
    origin = usual.mean()
    deviation = usual.deviation(origin)
    return origin, np.where(deviation > 0.0, deviation, sample.spread(origin))


def mean_prior(mean: Any, origin: Array, unit: Any) -> Array:
    """The prior mean m (D,) of a cluster's mean, by default that of the data."""
    m = origin if mean is None else column_values("mean", mean, len(origin))
    limit = np.min(farthest(origin, unit))
    require(
        bool((np.abs(m) <= farthest(origin, unit)).all()), "mean", mean, f"near the data, within {limit:.3g} of zero"
    )
    return m


def prior_rows(mean_precision: Any) -> float:
    """The kappa of all columns, by default 1e-3 rows."""
    return positive("mean_precision", DEFAULT_ROWS if mean_precision is None else mean_precision)


def symmetric_matrix(name: str, value: Any, D: int) -> Array:
    """A hyperparameter given as a number, D numbers or a positive definite matrix, as a matrix (D, D)."""
    B = hyperparameter(name, value)
    if B.ndim < 2:
        B = np.diag(column_values(name, value, D))
    require(B.shape == (D, D), name, value, f"a number, {D} numbers or a {D} x {D} matrix")
    require(bool(np.isfinite(B).all()), name, value, "finite")
    deviation = np.sqrt(np.abs(np.diagonal(B)))
    correlation = B / np.outer(deviation, deviation) if deviation.all() else B  # judged free of the columns' units
    require(np.allclose(correlation, correlation.T), name, value, "symmetric")
    require(bool(np.linalg.eigvalsh(correlation)[0] > 0.0), name, value, "positive definite")
    return B


def prior_degrees(degrees_of_freedom: float | None, D: int) -> float:
    """Degrees of freedom of the Wishart prior, D + 2 by default so that the covariance has a mean."""
    if degrees_of_freedom is None:
        return D + 2.0
    nu = hyperparameter("degrees_of_freedom", degrees_of_freedom)
    fine = nu.ndim == 0 and bool(np.isfinite(nu) and nu - (D - 1) >= LEAST_SPARE)
    require(fine, "degrees_of_freedom", degrees_of_freedom, f"a number greater than D - 1 = {D - 1}")
    return float(nu)


def scaled_degrees(degrees_of_freedom: float, D: int, factor: float) -> float:
    """Degrees of freedom of which those beyond D - 1 are multiplied by a factor, but not further out of range than they are."""
    spare = degrees_of_freedom - (D - 1.0)
    return D - 1.0 + float(np.clip(spare * factor, min(spare, SPARE[0]), max(spare, SPARE[1])))


def rounding(sample: Sample, unit: Array) -> Array:
    """Variance (D,) of what rounding has taken from values, uniform within a step, in squares of ``unit``.

    A step is at least `SAME` units, so that rows at the very origin are no cluster without width.  Infinite for constant
    columns, which say nothing.  See `DiagonalGaussian`.
    """
    return np.asarray(np.maximum(sample.resolution() / unit, SAME) ** 2 / 12.0)


def cholesky(B: Array) -> Array:
    """Cholesky factors of posterior scale matrices, of which the lower triangles count, with an error a user can act on."""
    try:
        return np.linalg.cholesky(B)
    except np.linalg.LinAlgError:
        raise FloatingPointError(NOT_DEFINITE) from None


def inverses(L: Array) -> Array:
    """The inverses (K, D, D) of the matrices whose Cholesky factors are L (K, D, D)."""
    if not L.size:  # of no columns, or no clusters
        return L
    if L.shape[-1] <= COMPILED:
        P = np.zeros(L.shape)
        invert(np.ascontiguousarray(L), P)
        return P
    upper = np.empty_like(L)
    for factor, place in zip(L, upper):
        place[...] = dpotri(factor.T)[0]  # half of what `numpy.linalg.inv` would cost, which takes L for any matrix
    diagonal = np.arange(L.shape[-1])
    upper[:, diagonal, diagonal] *= 0.5
    return np.asarray(upper + upper.swapaxes(1, 2))


def triangular_inverses(L: Array) -> Array:
    """The inverses (K, D, D) of Cholesky factors L (K, D, D), lower triangles, at a fifth of the cost of `numpy.linalg.inv`."""
    found = np.empty_like(L)
    for factor, place in zip(L, found):
        place[...] = dtrtri(factor.T)[0].T
    return found


def log_determinant(L: Array) -> Array:
    """Log determinants (K,) of the matrices whose Cholesky factors are L (K, D, D)."""
    return np.asarray(2.0 * np.log(np.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1))


def log_wishart(nu: Array, logdet: Array, D: int) -> Array:
    """Log normaliser of the Wishart with inverse scale B: (nu D / 2) log 2 + log Gamma_D(nu / 2) - (nu / 2) log |B|."""
    return np.asarray(0.5 * nu * D * np.log(2.0) + _log_gamma(0.5 * nu, D) - 0.5 * nu * logdet)


def draw_wishart(nu: Array, L: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draws of the Wishart with inverse scale L L' (K, D, D): G with precision G G', and log |G G'|, by Bartlett's factors."""
    K, D = L.shape[:2]
    A = np.tril(rng.standard_normal((K, D, D)), -1)
    chi = np.sqrt(np.maximum(rng.chisquare(nu[:, None] - np.arange(D)), LEAST_CHISQUARE))
    A[:, np.arange(D), np.arange(D)] = chi
    return np.linalg.inv(L).swapaxes(1, 2) @ A, np.asarray(2.0 * np.log(chi).sum(axis=1) - log_determinant(L))


def expected_log_determinant(nu: Array, logdet: Array, D: int) -> Array:
    """E[log |precision|] = psi_D(nu / 2) + D log 2 - log |B|  (2013 supplement, Eq. 20)."""
    halves = 0.5 * (nu[:, None] - np.arange(D))
    return np.asarray(psi(halves).sum(axis=1) + D * np.log(2.0) - logdet)


def log_student(squares: Array, logdet: float, dof: float, D: int) -> Array:
    """Log density of the D-variate Student-t with Mahalanobis squares given, and log |shape matrix|."""
    constant = gammaln(0.5 * (dof + D)) - gammaln(0.5 * dof) - 0.5 * D * np.log(np.pi * dof) - 0.5 * logdet
    return np.asarray(constant - 0.5 * (dof + D) * np.log1p(squares / dof))


def mahalanobis(Z: Array, L: Array) -> Array:
    """Squares z' (L L')^-1 z of the rows of Z (n, D)."""
    return np.asarray((solve_triangular(L, Z.T, lower=True, check_finite=False) ** 2).sum(axis=0))


def sample_student(L: Array, dof: float, rng: np.random.Generator, size: int) -> Array:
    """Draws (size, D) from the centred Student-t with shape matrix L L'."""
    normal = rng.standard_normal((size, len(L)))
    return np.asarray(normal @ L.T * student_width(rng, dof, size)[:, None])


def _log_gamma(a: Array, D: int) -> Array:
    """Log of the multivariate gamma function, (K,); scipy's goes from dimension to dimension in Python."""
    return np.asarray(0.25 * D * (D - 1) * np.log(np.pi) + gammaln(a[:, None] - 0.5 * np.arange(D)).sum(axis=1))


def packed_products(X: Any, origin: Array, unit: Array, linear: bool, T: Any) -> None:
    """`stickbreak.kernels.statistics.pack_products` for arrays of any library."""
    if isinstance(X, np.ndarray):
        pack_products(X, origin, unit, linear, T)
        return
    Z = standardised(X, origin, unit)
    D = X.shape[1]
    start = 0
    for a in range(D):
        T[:, start : start + D - a] = Z[:, a : a + 1] * Z[:, a:]
        start += D - a
    if linear:
        T[:, start : start + D] = Z


def standardised(X: Any, origin: Array, unit: Any, out: Any = None) -> Any:
    """Working coordinates z = (x - origin) / unit of rows X (n, D), in their precision, as if rounded once."""
    if not isinstance(X, np.ndarray):
        exact = (converted(X, namespace(X).float64) - like(origin, X, "float64")) / like(unit, X, "float64")
        return converted(exact, X.dtype)
    near = origin.astype(X.dtype)
    scale = np.asarray(unit)
    if X.dtype == np.float64 or not FLOAT32[0] < scale.min(initial=1.0) <= scale.max(initial=1.0) < FLOAT32[1]:
        return np.asarray(np.divide(X - origin, scale, out=out, casting="same_kind"))
    Z = np.subtract(X, near, out=out)
    Z /= scale.astype(X.dtype)
    rest = (origin - near) / scale  # the part of the origin beyond the precision of X
    if rest.any():
        Z -= rest.astype(X.dtype)
    return Z


def squared_distances(Z: Array, centers: Array) -> Array:
    """Half the squared Euclidean distances (n, J) between rows of Z and ``centers``."""
    cross = Z @ centers.T
    squares = (Z**2).sum(axis=1)[:, None] + (centers**2).sum(axis=1) - 2.0 * cross
    return np.asarray(0.5 * np.maximum(squares, 0.0))
