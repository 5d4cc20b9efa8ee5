"""Shared by likelihoods that regress some columns of a row on others: the matrix-normal-Wishart algebra."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from .._sums import check_between
from ..kernels.determinants import log_determinants
from ..kernels.quadratic_weights import quadratic_weights
from . import _quadratic as quadratic
from ._arrays import converted, like, namespace
from ._base import Array
from ._hyperparameters import FARTHEST, check_coordinates, check_rounding, farthest, require
from ._profile import Profile
from ._regression_belief import Belief, Left, RegressionPosterior, log_normaliser
from ._regression_layout import Layout, layout_of
from ._regression_marginals import Marginals
from ._regression_prior import PseudoRows, prior_mean, prior_precision, residuals
from ._sample import Sample
from ._size import Size
from ._wishart_prior import Precisions, WishartPrior, prior_scale
from .features import features

SHARE_OF_RESIDUAL = 0.5  # default prior: a cluster's residual variance is expected to be this share of one line's

SAYS_NOTHING = 1.0 / math.sqrt(2.0 * math.pi * math.e)  # unit of constant targets: a Gaussian so wide has entropy 0


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

    Working coordinates z = (x - origin) / unit make this accurate and free of units (`PseudoRows`).  Statistics are the packed
    products z_a z_b of all columns, z, and 1 where the targets are missing, if they may be (`Layout`): rows without targets
    add nothing but that.

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
            mean=prior_mean(self.mean, origin[y], len(r), bool(self.intercept)),
            mean_precision=prior_precision(self.mean_precision, len(r) + bool(self.intercept)),
            degrees_of_freedom=quadratic.prior_degrees(self.degrees_of_freedom, len(y)),
            scale=np.zeros((len(y), len(y))),
            origin=origin,
            unit=sample.spread(origin),
            holes=bool(sample.missing[y].any()),
        )
        lost = quadratic.rounding(sample.take(y), draft.unit[y])
        constant = np.isinf(lost)
        unit = np.array(draft.unit)
        unit[y[constant]] = SAYS_NOTHING
        draft = replace(draft, rounding=np.where(constant, 1.0, lost), unit=unit)
        sums, n = draft._sums(sample)
        if self.mean is None:
            draft = replace(draft, mean=draft._default_mean(sums))
        near = bool((np.abs(draft._prior.working_mean) <= FARTHEST).all())
        require(near, "mean", self.mean, f"within {FARTHEST:g} of zero in units of the columns")
        variance, pattern = residuals(draft._prior.products + sums, draft._layout.M, n or 1.0)
        about_line = variance * draft._unit[y] ** 2
        variance = about_line * SHARE_OF_RESIDUAL / quadratic.SHARE_OF_SPREAD
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
        return self._layout.n_statistics

    @property
    def portable(self) -> bool:
        """Yes."""
        return True

    def features(self, X: Array, out: Any) -> Any:
        """T (n, F): packed products of the working coordinates z, then z; all zero, then 1, where targets are missing."""
        quadratic.packed_products(X, self.origin, self._unit, True, out)
        if self.holes:
            xp = namespace(X)
            absent = xp.all(xp.isnan(xp.take(X, like(self._layout.y, X, "int64"), axis=1)), axis=1)
            out[...] = xp.where(absent[:, None], xp.zeros_like(out), out)
            out[:, -1] = converted(absent, out.dtype)
        return out

    def log_base(self, X: Array) -> Array:
        """Log h(x) = -(q / 2) log 2 pi - sum log unit of the targets, (n,); zero where they are missing."""
        layout = self._layout
        constant = -0.5 * layout.q * np.log(2.0 * np.pi) - np.log(self._unit[layout.y]).sum()
        return np.asarray(np.where(layout.absent(X), 0.0, constant))

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """W = -V / 2 on the products of [z, 1], with V = L^-T diag(q .., nu' ..) L^-1; b = (E log |Lambda| - V_11) / 2.

        V_11 is the entry of 1 times 1, which is no statistic.
        """
        nu = self.degrees_of_freedom + self._layout.counts(N, S)
        W, variances, logdet_B = self._inverses(N, S, nu) if self._compiled else self._inverses_of_factors(N, S, nu)
        return self._with_bias(W, variances, quadratic.expected_log_determinant(nu, logdet_B, self._layout.q))

    def _inverses(self, N: Array, S: Array, nu: Array) -> tuple[Array, Array, Array]:
        """Weights from V, the diagonals of V (K, M + q), and log |B'| (K,), by a compiled loop."""
        layout = self._layout
        W = np.empty((len(nu), len(layout.times)))
        variances = np.empty((len(nu), layout.M + layout.q))
        logdets = np.empty((len(nu), 2))
        given = layout.place_stacked, self._prior.products, layout.grain, self._lost, layout.M, nu
        wanted = layout.place_packed, layout.times
        quadratic_weights(np.ascontiguousarray(S), layout.counts(N, S), *given, *wanted, logdets, W, variances)
        _check(logdets)
        return W, variances, logdets[:, 1]

    def _inverses_of_factors(self, N: Array, S: Array, nu: Array) -> tuple[Array, Array, Array]:
        """The same of matrices of many columns."""
        belief = self._update(N, S)
        half = quadratic.triangular_inverses(belief.L)
        half[:, : belief.M] *= np.sqrt(self._layout.q)
        half[:, belief.M :] *= np.sqrt(nu)[:, None, None]
        return *self._laid_out(half), quadratic.log_determinant(belief.noise)

    def draw_weights(self, N: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """The same of coefficients A and precisions Lambda drawn from their posterior: V = [-A, I]' Lambda [-A, I]."""
        belief = self._update(N, S)
        M = belief.M
        q = self._layout.q
        root, logdet = quadratic.draw_wishart(belief.nu, belief.noise, rng)
        noise = np.linalg.solve(root.swapaxes(1, 2), rng.standard_normal((len(N), q, M)))
        A = belief.means + noise @ np.linalg.inv(belief.L[:, :M, :M])
        half = root.swapaxes(1, 2) @ np.concatenate([-A, np.broadcast_to(np.eye(q), (len(N), q, q))], axis=2)
        return self._with_bias(*self._laid_out(half), logdet)

    def _laid_out(self, half: Array) -> tuple[Array, Array]:
        """Weights from V = half' half of regressors and targets, and the diagonals of V (K, M + q)."""
        V = half.swapaxes(1, 2) @ half
        W = V.reshape(len(V), -1).take(self._layout.place_packed, axis=1) * self._layout.times
        return W, V.diagonal(axis1=1, axis2=2)

    def _with_bias(self, W: Array, variances: Array, logdet: Array) -> tuple[Array, Array]:
        """Weights, of all statistics, and b, from the diagonals of V and the log determinants of the precisions (K,)."""
        layout = self._layout
        b = 0.5 * (logdet - variances[:, layout.M :] @ self.rounding)
        if layout.intercept:
            b -= 0.5 * variances[:, layout.M - 1]
        return np.hstack([W, -b[:, None]]) if self.holes else W, b

    def log_marginal(self, N: Array, S: Array) -> Array:
        """LogZ(nu', J') - logZ(nu, J), (K,)."""
        return self._log_normalisers(N, S) - self._log_normaliser

    def log_marginals_of(self, N: Array, S: Array) -> Callable[[Any], Array]:
        """As others; regressors are eliminated again only where their prior is another."""
        return Marginals(N, S) if self._compiled else super().log_marginals_of(N, S)

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
        return np.where(self._layout.absent(rows)[:, None], 0.0, np.maximum(slack, 0.0))

    def posterior(self, N: Array, S: Array) -> RegressionPosterior:
        """Posterior means of A and of Lambda^-1, B' / (nu' - q - 1) (where that exists, else B' / nu')."""
        belief = self._update(N, S)
        layout = self._layout
        unit = self._unit[layout.y, None]
        q = layout.q
        P = len(layout.r)
        A = unit * belief.means @ np.linalg.inv(self._prior.G)
        spare = np.where(belief.nu > q + 1.0, belief.nu - q - 1.0, belief.nu)
        noise = unit * (belief.noise / np.sqrt(spare)[:, None, None])
        intercepts = self.origin[layout.y] + (A[:, :, P] if self.intercept else np.zeros((len(N), q)))
        return RegressionPosterior(A[:, :, :P], intercepts, noise @ noise.swapaxes(1, 2))

    def profile(self, N: Array, S: Array) -> Profile:
        """Mean of the targets at the mean regressors of each cluster's rows, and their variance about the line."""
        coefficients, intercepts, covariances = self.posterior(N, S)
        layout = self._layout
        center = self.origin[layout.r] + self._unit[layout.r] * layout.regressors(N, S)[0]
        means = intercepts + np.einsum("kqp,kp->kq", coefficients, center)
        own = np.full(layout.q, -1)
        return Profile(layout.y, own, means, covariances.diagonal(axis1=1, axis2=2), own > 0)

    def log_predictive(self, X: Array, N: Array, S: Array) -> Array:
        """Log density of y given r: Student-t with dof = nu' - q + 1, mean M' r, shape B' (1 + r' K'^-1 r) / dof, (n, K).

        Zero where the targets are missing.
        """
        belief = self._update(N, S)
        V = self._stacked(X)
        layout = self._layout
        q = layout.q
        out = np.empty((len(V), len(N)))
        for k, logdet in enumerate(quadratic.log_determinant(belief.noise)):
            squares = solve_triangular(belief.L[k], V.T, lower=True, check_finite=False) ** 2
            width = 1.0 + squares[: belief.M].sum(axis=0)
            dof = float(belief.nu[k]) - q + 1.0
            density = quadratic.log_student(squares[belief.M :].sum(axis=0) * dof / width, logdet, dof, q)
            out[:, k] = density - 0.5 * q * np.log(width / dof)
        return np.where(layout.absent(X)[:, None], 0.0, out - np.log(self._unit[layout.y]).sum())

    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` rows (size, D): targets from the predictive given regressors.

        The model says nothing of regressors.  They come from the Gaussian with the mean and covariance of those of the
        cluster's rows; in an empty cluster, with the origin as mean and the units of the columns as deviations.
        """
        count = np.atleast_1d(N)
        S = np.atleast_2d(S)
        layout = self._layout
        mean, covariance = layout.regressors(count, S)
        Z = np.zeros((size, layout.D))
        Z[:, layout.r] = rng.multivariate_normal(mean[0], covariance[0], size, check_valid="ignore", method="eigh")
        return self.complete(self.origin + self._unit * Z, N, S, rng)

    def complete(self, X: Array, N: float, S: Array, rng: np.random.Generator) -> Array:
        """Rows with targets drawn from the predictive given their regressors."""
        belief = self._update(np.atleast_1d(N), np.atleast_2d(S))
        size = len(X)
        y = self._layout.y
        R = self._stacked(X)[:, : belief.M]
        dof = float(belief.nu[0]) - len(y) + 1.0
        width = 1.0 + quadratic.mahalanobis(R, belief.L[0, : belief.M, : belief.M])
        noise = quadratic.sample_student(belief.noise[0] / np.sqrt(dof), dof, rng, size) * np.sqrt(width)[:, None]
        drawn = X.copy()
        drawn[:, y] = self.origin[y] + self._unit[y] * (R @ belief.means[0].T + noise)
        return drawn

    def describes(self, D: int) -> NDArray[np.bool_]:
        """The columns of targets."""
        return np.isin(np.arange(D), self._columns(D)[0])

    def _precisions(self, N: Array, S: Array) -> Precisions:
        belief = self._update(N, S)
        y = self._layout.y
        return Precisions.of_factors(np.arange(len(y)), self._unit[y], self.degrees_of_freedom, belief.nu, belief.noise)

    @property
    def _units(self) -> Array:
        """Those of the targets, (q,)."""
        return np.asarray(self._unit[self._layout.y])

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

    @property
    def _unit(self) -> Array:
        if self.unit is None:
            raise TypeError("this likelihood has no data yet; call resolve(sample) first.")
        return np.asarray(self.unit)

    @cached_property
    def _layout(self) -> Layout:
        return layout_of(*self._columns(len(self._unit)), self.intercept, self.holes)

    @cached_property
    def _prior(self) -> PseudoRows:
        return PseudoRows(self._layout, self.origin, self._unit, self.mean, self.mean_precision, self.scale)

    @cached_property
    def _log_normaliser(self) -> Array:
        """LogZ(nu, J), (1,)."""
        return self._log_normalisers(*self._nothing())

    @property
    def _compiled(self) -> bool:
        """Whether matrices are small enough for a compiled loop over them."""
        return self._layout.M + self._layout.q <= quadratic.COMPILED

    def _stacked(self, X: Array) -> Array:
        """Each row as v = [r, y] in working coordinates, (n, M + q)."""
        return self._layout.stacked((X - self.origin) / self._unit)

    def _update(self, N: Array, S: Array) -> Belief:
        layout = self._layout
        n = layout.counts(N, S)
        J = layout.products(N, S)
        diagonal = np.arange(layout.M + layout.q)
        J[:, diagonal, diagonal] *= layout.grain
        J += self._prior.products
        J[:, diagonal, diagonal] += n[:, None] * self._lost
        return Belief(self.degrees_of_freedom + n, quadratic.cholesky(J), layout.M)

    def _log_normalisers(self, N: Array, S: Array) -> Array:
        """LogZ(nu', J'), (K,)."""
        return self.normalisers_of(*self.left(N, S)) if self._compiled else self._update(N, S).log_normaliser

    def left(self, N: Array, S: Array) -> tuple[Left, Array]:
        """What is left of sums once the regressors are eliminated, and log |B'| (K,), by a loop that keeps no factors."""
        layout = self._layout
        n = layout.counts(N, S)
        logdets = np.empty((len(n), 2))
        targets = np.empty((len(n), layout.q, layout.q))
        given = layout.place_stacked, self._prior.line, layout.grain, self._lost, self._prior.noise
        log_determinants(np.ascontiguousarray(S), n, *given, logdets, targets)
        return Left(n, logdets[:, 0], targets), logdets[:, 1]

    def normalisers_of(self, left: Left, logdet_B: Array) -> Array:
        """LogZ(nu', J'), (K,), from what `left` says."""
        _check(left.logdet_K + logdet_B)
        return log_normaliser(self.degrees_of_freedom + left.n, left.logdet_K, logdet_B, self._layout.q)

    @property
    def noise(self) -> Array:
        """B in working coordinates, (q, q)."""
        return self._prior.noise

    @cached_property
    def _lost(self) -> Array:
        """Variances of rounding of v, (M + q,): zero of the regressors."""
        return np.append(np.zeros(self._layout.M), self.rounding)

    def _nothing(self) -> tuple[Array, Array]:
        """Counts and statistics of an empty cluster."""
        return np.zeros(1), np.zeros((1, self.n_statistics))

    def _sums(self, sample: Sample) -> tuple[Array, float]:
        """Sums of the products of v = [r, y] over a sample, in working coordinates, and how many of its rows have targets."""
        N = np.atleast_1d(sample.weights.sum())
        S = sample.weights[None] @ features(self, sample.X)
        return self._layout.products(N, S)[0], float(self._layout.counts(N, S)[0])

    def _default_mean(self, sums: Array) -> Array:
        """M0 where none is given: that of `prior_mean`, unless what these `_sums` say suits the family better."""
        return np.asarray(self.mean)


def _check(logdets: Array) -> None:
    """Refuse log determinants of matrices that are not positive definite."""
    if not np.isfinite(logdets).all():
        raise FloatingPointError(quadratic.NOT_DEFINITE)
