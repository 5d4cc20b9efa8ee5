"""Shared by likelihoods that regress some columns of a row on others: the matrix-normal-Wishart algebra."""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from .._sums import check_between
from ..kernels.statistics import pack_products
from . import _quadratic as quadratic
from ._base import Array, Profile, Size
from ._hyperparameters import (
    FARTHEST,
    check_coordinates,
    check_rounding,
    farthest,
    hyperparameter,
    positive,
    require,
)
from ._regression_belief import Belief, RegressionPosterior
from ._sample import Sample, clear_correlations
from ._wishart_prior import Precisions, WishartPrior, prior_scale
from .features import features

SHARE_OF_RESIDUAL = 0.5  # default prior: a cluster's residual variance is expected to be this share of one line's
A_TRACE = 1e-9  # of a row like the sample, so that a cluster without rows has moments of its regressors too


@dataclass(frozen=True, eq=False)
class Regression(WishartPrior):
    """Base of the families in which q columns y of a row are a noisy linear function of its other columns.

        y | r, A, Lambda ~ Normal(A r, Lambda^-1),   A | Lambda ~ MatrixNormal(M0, Lambda^-1, K0^-1),
        Lambda ~ Wishart(nu, B^-1)

    with r (M,) the regressors, and a trailing 1 where there is an ``intercept``.  The prior is that many pseudo-rows
    v = [r, y] with sums of products J, to which real rows add theirs (Minka 2000):

        J = [[K0, K0 M0'], [M0 K0, B + M0 K0 M0']],   J' = J + sum v v',   nu' = nu + n

    One Cholesky factor says the rest.  With J' = L L' and L = [[P, 0], [Q, R]]:

        K' = P P',  M' = Q P^-1,  B' = R R',   L^-1 v = [P^-1 r, R^-1 (y - M' r)]

        2 E[log p(y | r)] = E log |Lambda| - q log 2 pi - |diag(sqrt(q) .., sqrt(nu') ..) L^-1 v|^2

    Working coordinates z = (x - origin) / unit make this accurate and free of units.  There r_data = G r_work, so that

        M0_work = U^-1 (M0 G - o e'),   K0_work = G^-1 K0 G^-T,   B_work = U^-1 B U^-1

    with o and U the origin and units of the targets, and e' r = 1; without an intercept the origin is zero.

    Statistics are the packed products z_a z_b of all columns, z, and 1 where the targets are missing, if they may be:
    rows without targets add nothing, and n = N - their number.

    Attributes
    ----------
    holes : whether targets may be missing
    """

    measures: ClassVar[bool] = True
    tunable: ClassVar[tuple[str, ...]] = ("mean_precision", *WishartPrior.tunable)

    intercept: bool = field(default=True, kw_only=True)
    mean: Any = field(default=None, kw_only=True)
    mean_precision: Any = field(default=None, kw_only=True)
    degrees_of_freedom: Any = field(default=None, kw_only=True)
    scale: Any = field(default=None, kw_only=True)
    correlation: Any = field(default=None, kw_only=True)
    origin: Any = field(default=None, repr=False, kw_only=True)
    unit: Any = field(default=None, repr=False, kw_only=True)
    rounding: Any = field(default=None, repr=False, kw_only=True)
    pattern: Any = field(default=None, repr=False, kw_only=True)
    holes: bool = field(default=False, repr=False, kw_only=True)

    @abstractmethod
    def _columns(self, D: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The columns of the targets (q,) and of the regressors, of D."""

    def resolve(self, sample: Sample) -> Self:
        """Fill in the defaults from a sample of the data, and check what was given."""
        y, r = self._columns(sample.D)
        require(isinstance(self.intercept, bool | np.bool_), "intercept", self.intercept, "True or False")
        origin = sample.mean() if self.intercept else np.zeros(sample.D)
        draft = replace(
            self,
            mean=_prior_mean(self.mean, origin[y], len(r), bool(self.intercept)),
            mean_precision=_prior_precision(self.mean_precision, len(r) + bool(self.intercept)),
            degrees_of_freedom=quadratic.prior_degrees(self.degrees_of_freedom, len(y)),
            scale=np.zeros((len(y), len(y))),
            origin=origin,
            unit=sample.spread(origin),
            holes=bool(sample.missing[y].any()),
        )
        lost = quadratic.rounding(sample.take(y), draft.unit[y])
        draft = replace(draft, rounding=np.where(np.isinf(lost), 1.0, lost))
        near = bool((np.abs(draft._working_mean) <= FARTHEST).all())
        require(near, "mean", self.mean, f"within {FARTHEST:g} of zero in units of the columns")
        residuals, pattern = draft._residuals(sample)
        variance = residuals * SHARE_OF_RESIDUAL / quadratic.SHARE_OF_SPREAD
        scale = prior_scale(self.scale, self.correlation, variance, pattern, draft.degrees_of_freedom)
        return replace(draft, **scale._asdict())

    def size(self, missing: NDArray[np.bool_], largest: Array) -> Size:
        """The size of a family of all products of D columns."""
        return quadratic.size(len(largest))

    @property
    def largest(self) -> Any:
        """The largest size of a value, (D,) where units are known."""
        return farthest(self.origin, self.unit)

    @property
    def n_statistics(self) -> int:
        """F = D (D + 1) / 2 + D, and one more where targets may be missing."""
        return quadratic.n_products(len(self._unit)) + len(self._unit) + self.holes

    def features(self, X: Array, out: Any) -> Any:
        """T (n, F): packed products of the working coordinates z, then z; all zero, then 1, where targets are missing."""
        pack_products(X, self.origin, self._unit, True, out)
        if self.holes:
            absent = self._absent(X)
            out[absent] = 0.0
            out[:, -1] = absent
        return out

    def log_base(self, X: Array) -> Array:
        """Log h(x) = -(q / 2) log 2 pi - sum log unit of the targets, (n,); zero where they are missing."""
        constant = -0.5 * self._q * np.log(2.0 * np.pi) - np.log(self._unit[self._y]).sum()
        return np.asarray(np.where(self._absent(X), 0.0, constant))

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """W = -V / 2 on the products of [z, 1], with V = L^-T diag(q .., nu' ..) L^-1; b = (E log |Lambda| - V_11) / 2.

        V_11 is the entry of 1 times 1, which is no statistic.
        """
        belief = self._update(N, S)
        order = self._order
        q = self._q
        D = len(self._unit)
        half = np.linalg.inv(belief.L)
        half[:, : belief.M] *= np.sqrt(q)
        half[:, belief.M :] *= np.sqrt(belief.nu)[:, None, None]
        V = np.zeros((len(N), D + 1, D + 1))
        V[:, order[:, None], order] = half.swapaxes(1, 2) @ half
        logdet = quadratic.expected_log_determinant(belief.nu, quadratic.log_determinant(belief.noise), q)
        b = 0.5 * (logdet - V[:, D, D] - V[:, self._y, self._y] @ self.rounding)
        W = np.hstack([-0.5 * quadratic.pack_quadratic(V[:, :D, :D]), -V[:, :D, D]])
        return np.hstack([W, -b[:, None]]) if self.holes else W, b

    def log_marginal(self, N: Array, S: Array) -> Array:
        """LogZ(nu', J') - logZ(nu, J), (K,)."""
        return self._update(N, S).log_normaliser - self._log_normaliser

    def divergence(self, X: Array, centers: Array) -> Array:
        """How much worse than its own belief that of a center explains row x, (n, J); zero where x lacks its targets.

        With q_x and q_c the posteriors of (A, Lambda) after row x alone and row c alone, and L(x) the log marginal of x:

            KL[q_c || q_x] = L(x) - L(c) - W_c . (t(x) - t(c))

        the Bregman divergence of logZ.  It compares rows as evidence of a line.  Distances between the points [y, r]
        start from pieces of space instead, and lines cross.
        """
        rows = np.asarray(X, np.float64)
        seeds = np.asarray(centers, np.float64)
        T = features(self, rows)
        C = features(self, seeds)
        W, _ = self.weights(np.ones(len(C)), C)
        own, other = (self.log_predictive(Z, *self._nothing()) - self.log_base(Z)[:, None] for Z in (rows, seeds))
        slack = own - other.T - T @ W.T + np.einsum("jf,jf->j", C, W)
        return np.where(self._absent(rows)[:, None], 0.0, np.maximum(slack, 0.0))

    def posterior(self, N: Array, S: Array) -> RegressionPosterior:
        """Posterior means of A and of Lambda^-1, B' / (nu' - q - 1) (where that exists, else B' / nu')."""
        belief = self._update(N, S)
        unit = self._unit[self._y, None]
        q = self._q
        P = len(self._r)
        A = unit * belief.means @ np.linalg.inv(self._G)
        spare = np.where(belief.nu > q + 1.0, belief.nu - q - 1.0, belief.nu)
        noise = unit * (belief.noise / np.sqrt(spare)[:, None, None])
        intercepts = self.origin[self._y] + (A[:, :, P] if self.intercept else np.zeros((len(N), q)))
        return RegressionPosterior(A[:, :, :P], intercepts, noise @ noise.swapaxes(1, 2))

    def profile(self, N: Array, S: Array) -> Profile:
        """Mean of the targets at the mean regressors of each cluster's rows, and their variance about the line."""
        coefficients, intercepts, covariances = self.posterior(N, S)
        center = self.origin[self._r] + self._unit[self._r] * self._regressors(N, S)[0]
        means = intercepts + np.einsum("kqp,kp->kq", coefficients, center)
        own = np.full(self._q, -1)
        return Profile(self._y, own, means, covariances.diagonal(axis1=1, axis2=2), own > 0)

    def log_predictive(self, X: Array, N: Array, S: Array) -> Array:
        """Log density of y given r: Student-t with dof = nu' - q + 1, mean M' r, shape B' (1 + r' K'^-1 r) / dof, (n, K).

        Zero where the targets are missing.
        """
        belief = self._update(N, S)
        V = self._stacked(X)
        q = self._q
        out = np.empty((len(V), len(N)))
        for k, logdet in enumerate(quadratic.log_determinant(belief.noise)):
            squares = solve_triangular(belief.L[k], V.T, lower=True, check_finite=False) ** 2
            width = 1.0 + squares[: belief.M].sum(axis=0)
            dof = float(belief.nu[k]) - q + 1.0
            density = quadratic.log_student(squares[belief.M :].sum(axis=0) * dof / width, logdet, dof, q)
            out[:, k] = density - 0.5 * q * np.log(width / dof)
        return np.where(self._absent(X)[:, None], 0.0, out - np.log(self._unit[self._y]).sum())

    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` rows (size, D): targets from the predictive given regressors.

        The model says nothing of regressors.  They come from the Gaussian with the mean and covariance of those of the
        cluster's rows; in an empty cluster, with the origin as mean and the units of the columns as deviations.
        """
        count = np.atleast_1d(N)
        S = np.atleast_2d(S)
        mean, covariance = self._regressors(count, S)
        Z = np.zeros((size, len(self._unit)))
        Z[:, self._r] = rng.multivariate_normal(mean[0], covariance[0], size, check_valid="ignore", method="eigh")
        return self.complete(self.origin + self._unit * Z, N, S, rng)

    def complete(self, X: Array, N: float, S: Array, rng: np.random.Generator) -> Array:
        """Rows with targets drawn from the predictive given their regressors."""
        belief = self._update(np.atleast_1d(N), np.atleast_2d(S))
        size = len(X)
        R = self._stacked(X)[:, : belief.M]
        dof = float(belief.nu[0]) - self._q + 1.0
        width = 1.0 + quadratic.mahalanobis(R, belief.L[0, : belief.M, : belief.M])
        noise = quadratic.sample_student(belief.noise[0] / np.sqrt(dof), dof, rng, size) * np.sqrt(width)[:, None]
        drawn = X.copy()
        drawn[:, self._y] = self.origin[self._y] + self._unit[self._y] * (R @ belief.means[0].T + noise)
        return drawn

    def describes(self, D: int) -> NDArray[np.bool_]:
        """The columns of targets."""
        return np.isin(np.arange(D), self._columns(D)[0])

    def _precisions(self, N: Array, S: Array) -> Precisions:
        belief = self._update(N, S)
        unit = self._unit[self._y]
        return Precisions.of_factors(np.arange(self._q), unit, self.degrees_of_freedom, belief.nu, belief.noise)

    def resolved_columns(self) -> int:
        """The length of ``unit``."""
        return len(self._unit)

    def check_sums(self, N: Array, S: Array) -> None:
        """Check the units, and that no more rows lack targets than there are rows."""
        super().check_sums(N, S)
        check_coordinates(self.origin, self.unit)
        check_rounding(self.rounding)
        if self.holes:
            check_between("numbers of rows without targets", S[:, -1], N)

    # Working coordinates ---------------------------------------------------------------------------------------------

    @property
    def _unit(self) -> Array:
        if self.unit is None:
            raise TypeError("this likelihood has no data yet; call resolve(sample) first.")
        return np.asarray(self.unit)

    @cached_property
    def _y(self) -> NDArray[np.intp]:
        return self._columns(len(self._unit))[0]

    @cached_property
    def _r(self) -> NDArray[np.intp]:
        return self._columns(len(self._unit))[1]

    @cached_property
    def _q(self) -> int:
        return len(self._y)

    @cached_property
    def _M(self) -> int:
        return len(self._r) + self.intercept

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """Where v = [r, y] finds its entries in [z, 1]."""
        y, r = self._columns(len(self._unit))
        return np.concatenate([r, [len(self._unit)] if self.intercept else [], y]).astype(np.intp)

    @cached_property
    def _G(self) -> Array:
        """From regressors in working coordinates to those in the units of the data, (M, M)."""
        G = np.diag(np.append(self._unit[self._r], np.ones(int(self.intercept))))
        if self.intercept:
            G[:-1, -1] = self.origin[self._r]
        return G

    @cached_property
    def _working_mean(self) -> Array:
        """M0 (q, M) in working coordinates."""
        shift = np.zeros((self._q, self._M))
        if self.intercept:
            shift[:, -1] = self.origin[self._y]
        with np.errstate(over="ignore", invalid="ignore"):  # `resolve` refuses what is too large
            return np.asarray((self.mean @ self._G - shift) / self._unit[self._y][:, None])

    @cached_property
    def _prior(self) -> Array:
        """J (M + q, M + q)."""
        unit = self._unit[self._y]
        mean = self._working_mean
        inverse = np.linalg.inv(self._G)
        K = self.mean_precision * np.eye(self._M)
        if np.ndim(self.mean_precision):
            K = inverse @ self.mean_precision @ inverse.T
        return np.block([[K, K @ mean.T], [mean @ K, self.scale / np.outer(unit, unit) + mean @ K @ mean.T]])

    @cached_property
    def _log_normaliser(self) -> Array:
        """LogZ(nu, J), (1,)."""
        return self._update(*self._nothing()).log_normaliser

    def _absent(self, X: Array) -> NDArray[np.bool_]:
        """The rows (n,) whose targets are missing."""
        return np.asarray(np.isnan(X[:, self._y]).all(axis=1)) if self.holes else np.zeros(len(X), np.bool_)

    def _stacked(self, X: Array) -> Array:
        """Each row as v = [r, y], (n, M + q)."""
        Z = np.column_stack([(X - self.origin) / self._unit, np.ones(len(X))])
        return np.asarray(Z[:, self._order])

    @cached_property
    def _place(self) -> NDArray[np.intp]:
        """Where the sums of the products of [z, 1] are in [S, n], (D + 1, D + 1)."""
        D = len(self._unit)
        P = quadratic.n_products(len(self._unit))
        a, b = quadratic.upper_triangle(D)
        place = np.full((D + 1, D + 1), self.n_statistics)
        place[a, b] = place[b, a] = np.arange(P)
        place[:D, D] = place[D, :D] = np.arange(P, P + D)
        return place

    @cached_property
    def _place_stacked(self) -> NDArray[np.intp]:
        """The same of v = [r, y], (M + q, M + q)."""
        return self._place[np.ix_(self._order, self._order)]

    def _counts(self, N: Array, S: Array) -> Array:
        """The number n of rows with targets, (K,)."""
        return np.maximum(N - S[:, -1], 0.0) if self.holes else N  # a difference may miss zero by rounding

    def _products(self, N: Array, S: Array, place: NDArray[np.intp]) -> Array:
        """Sums of products over the rows with targets, (K, *place.shape)."""
        return np.asarray(np.column_stack([S, self._counts(N, S)])[:, place])

    def _update(self, N: Array, S: Array) -> Belief:
        J = self._products(N, S, self._place_stacked)
        squares = np.flatnonzero(self._order < len(self._unit))  # of columns; 1 times 1 is a count
        J[:, squares, squares] *= quadratic.GRAIN
        J += self._prior
        targets = np.arange(self._M, self._M + self._q)
        J[:, targets, targets] += self._counts(N, S)[:, None] * self.rounding
        return Belief(self.degrees_of_freedom + self._counts(N, S), quadratic.cholesky(J), self._M)

    def _nothing(self) -> tuple[Array, Array]:
        """Counts and statistics of an empty cluster."""
        return np.zeros(1), np.zeros((1, self.n_statistics))

    def _regressors(self, N: Array, S: Array) -> tuple[Array, Array]:
        """Mean (K, P) and covariance (K, P, P) of the regressors of each cluster's rows."""
        sums = self._products(N, S, self._place)
        r = self._r
        n = sums[:, -1, -1, None] + A_TRACE
        mean = sums[:, r, -1] / n
        square = (sums[:, r[:, None], r] + A_TRACE * np.eye(len(r))) / n[:, :, None]
        return mean, square - mean[:, :, None] * mean[:, None, :]

    def _residuals(self, sample: Sample) -> tuple[Array, Array]:
        """Variances (q,) and correlations (q, q) of the targets about the line that the prior of A and the sample suggest."""
        w = sample.weights
        M = self._M
        N = np.atleast_1d(w.sum())
        S = w[None] @ features(self, sample.X)
        J = self._prior + self._products(N, S, self._place_stacked)[0]
        half = solve_triangular(quadratic.cholesky(J[:M, :M]), J[:M, M:], lower=True)
        covariance = J[M:, M:] - half.T @ half
        n = float(self._counts(N, S)[0]) or 1.0
        variance = np.diagonal(covariance) / n
        varies = variance > 1e-12
        pattern = clear_correlations(np.where(np.outer(varies, varies), covariance / n, 0.0), n)
        return np.where(varies, variance, 1.0) * self._unit[self._y] ** 2, pattern


def _prior_mean(mean: Any, center: Array, P: int, intercept: bool) -> Array:
    """M0 (q, M) from a number, a matrix, or None: zero, with the intercept at the mean of the targets."""
    shape = (len(center), P + intercept)
    if mean is None:
        return np.hstack([np.zeros((len(center), P)), center[:, None]])[:, : shape[1]]
    values = hyperparameter("mean", mean)
    require(values.shape in ((), shape), "mean", mean, f"a number or a {shape[0]} x {shape[1]} matrix")
    require(bool(np.isfinite(values).all()), "mean", mean, "finite")
    return np.array(np.broadcast_to(values, shape))


def _prior_precision(precision: Any, M: int) -> Any:
    """K0, as a number that multiplies the identity in working coordinates, or as a matrix (M, M) in units of the data."""
    values = hyperparameter("mean_precision", 1e-2 if precision is None else precision)
    if values.ndim == 0:
        return positive("mean_precision", values)
    require(values.shape == (M, M), "mean_precision", precision, f"a number or a {M} x {M} matrix")
    return quadratic.symmetric_matrix("mean_precision", precision, M)


def whole(name: str, value: Any) -> int:
    """A whole number of at least one."""
    fine = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 1)
    require(fine, name, value, "a whole number of at least 1")
    return int(value)
