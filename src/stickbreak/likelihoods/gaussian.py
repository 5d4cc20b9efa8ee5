"""Gaussian with unknown mean and full covariance."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from . import _quadratic as quadratic
from ._base import Array
from ._hyperparameters import check_coordinates, check_rounding, farthest
from ._missing_cells import MissingCells, alike
from ._normal_wishart import NormalWishart
from ._profile import Profile
from ._sample import Sample
from ._size import Size
from ._wishart_prior import Precisions, WishartPrior, prior_scale
from .diagonal_gaussian import DiagonalGaussian


class GaussianPosterior(NamedTuple):
    """Posterior mean of the cluster means (K, D) and covariances (K, D, D)."""

    means: Array
    covariances: Array


@dataclass(frozen=True, eq=False)
class Gaussian(MissingCells):
    """Gaussian likelihood with full covariance and its Normal-Wishart prior.

        x | mu, Lambda ~ Normal(mu, Lambda^-1),   mu | Lambda ~ Normal(m, (kappa Lambda)^-1),   Lambda ~ Wishart(nu, B^-1)

    with statistics t(x) = [x_a x_b (a <= b), x].  After N rows with sums s = sum r x and scatter S = sum r x x':

        kappa_k = kappa + N,   nu_k = nu + N,   m_k = (kappa m + s) / kappa_k,
        B_k = B + S + N diag(step^2 / 12) + kappa m m' - kappa_k m_k m_k'

    Missing cells x_m of a row are latent: with the expected precision P = E[Lambda_k] and the observed cells x_o,

        q(x_m | z = k) = Normal(m_m - P_mm^-1 P_mo (x_o - m_o), P_mm^-1)

    Scores have x_m integrated out, statistics are expected under q, rounding counts for observed cells alone, and two more
    statistics have the entropy of q: the number of missing cells of each column that has some, and the sum of -log |P_mm| / 2.

    Parameters
    ----------
    mean : float or array (D,), default: the mean of the data
        m, in the units of the data.
    mean_precision : float > 0, default 1e-3
        kappa, in rows: the covariance of mu given Lambda is Lambda^-1 / kappa.
    degrees_of_freedom : float > D - 1, default D + 2
        nu.
    scale : float, array (D,) or array (D, D), default 0.1 x the variances of the data x (nu - D - 1)
        B, positive definite, in squared units of the data: E[covariance] = B / (nu - D - 1).
    correlation : float from 0 to 1, default 0, or 1 where the scale is a matrix
        lambda, the share of the correlations C of the data, or of that matrix, that is expected within clusters:
        B_ab = s_a s_b ((1 - lambda) delta_ab + lambda C_ab).

    Notes
    -----
    Defaults are scaled from the data without outliers.  Where values are tied, as rounding leaves them, a row counts as spread
    evenly over the step of each value (`DiagonalGaussian`).  Constant columns are set aside: what is said of clusters concerns
    the others, of which the prior has as many degrees of freedom fewer.

    With missing values the bound holds q(mu, Lambda) q(x_m | z) q(z), a factor more: it stays below the log evidence, and a lap
    never lowers it.  A row with m missing cells takes m^3 / 6 + m D multiply-adds more for each cluster, in float64, of which
    rows with the same missing cells share the first.

    Products are formed after centring and scaling by the mean and spread of the data, and the prior is shifted with
    them, so that an offset in the data costs no precision.

    References
    ----------
    Thesis 2.2.1 and 3.4.1; 2013 supplement, section 1.
    """

    takes_missing: ClassVar[bool] = True
    measures: ClassVar[bool] = True
    rounds: ClassVar[bool] = True
    tunable: ClassVar[tuple[str, ...]] = ("mean_precision", *WishartPrior.tunable)

    mean: Any = None
    mean_precision: Any = None
    degrees_of_freedom: Any = None
    scale: Any = None
    correlation: Any = None
    origin: Any = field(default=None, repr=False)
    unit: Any = field(default=None, repr=False)
    rounding: Any = field(default=None, repr=False)
    pattern: Any = field(default=None, repr=False)
    holes: Any = field(default=None, repr=False, kw_only=True)

    def simpler(self, missing: NDArray[np.bool_]) -> DiagonalGaussian:
        """Independent columns."""
        return DiagonalGaussian()

    def resolve(self, sample: Sample) -> Self:
        """Fill in the defaults from a sample of the data, and check what was given."""
        origin, unit = quadratic.coordinates(sample)
        mean = quadratic.mean_prior(self.mean, origin, unit)
        kappa = quadratic.prior_rows(self.mean_precision)
        nu = quadratic.prior_degrees(self.degrees_of_freedom, sample.D)
        pattern = sample.without_outliers().correlations(origin, unit)
        known = self._with_holes(sample.missing)
        return replace(
            known,
            mean=mean,
            mean_precision=kappa,
            degrees_of_freedom=nu,
            origin=origin,
            unit=unit,
            rounding=quadratic.rounding(sample, unit),
            **prior_scale(self.scale, self.correlation, unit**2, pattern, nu)._asdict(),
        )

    def size(self, missing: NDArray[np.bool_], largest: Array) -> Size:
        """The size of a family of all products of D columns."""
        size = quadratic.size(len(largest))
        more = int(missing.sum()) + 1 if missing.any() else 0
        return size._replace(statistics=size.statistics + more, entries=size.entries + more)

    @property
    def largest(self) -> Any:
        """The largest size of a value, (D,) where units are known."""
        return farthest(self.origin, self.unit)

    @property
    def n_statistics(self) -> int:
        """F = D (D + 1) / 2 + D; with missing values one for each column that has some, and one more."""
        H = len(self._holes)
        return quadratic.n_products(len(self._unit)) + len(self._unit) + (H + 1 if H else 0)

    @property
    def portable(self) -> bool:
        """Where no values are missing."""
        return self.holes is None

    def features(self, X: Array, out: Array) -> Array:
        """T (n, F): packed products of the working coordinates z = (x - origin) / unit, then z.

        Missing cells have z = 0 and the square 1, and the statistic 1 of their column; the last one is 0.
        """
        if self.holes is None:
            quadratic.packed_products(X, self.origin, self._unit, True, out)
            return out
        absent = np.isnan(X)
        quadratic.packed_products(np.where(absent, self.origin, X), self.origin, self._unit, True, out)
        if len(self._holes):
            absent = absent[:, self._holes]
            squares = quadratic.squares(len(self._unit))[self._holes]
            out[:, squares] = np.where(absent, 1.0, out[:, squares])
            out[:, -len(self._holes) - 1 : -1] = absent
            out[:, -1] = 0.0
        return out

    def has_density(self, D: int) -> NDArray[np.bool_]:
        """The columns that are not constant."""
        return np.asarray(np.isfinite(self.rounding))

    def spread_out(self, T: Array, variances: Array) -> None:
        """Add to features T (n, F) what squares have more where values are spread about theirs with ``variances`` (n, D)."""
        quadratic.spread_out(T, variances / self._unit**2)

    def log_base(self, X: Array) -> Array:
        """Log h(x) = sum over the observed columns of -log(2 pi) / 2 - log unit_d, (n,)."""
        units = self._unit[self._live]
        if self.holes is None:
            return np.full(len(X), -0.5 * len(units) * np.log(2.0 * np.pi) - np.log(units).sum())
        return np.asarray(~np.isnan(X[:, self._live]) @ (-0.5 * np.log(2.0 * np.pi) - np.log(units)))

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """E[-Lambda / 2] on products, E[Lambda mu] on columns; b = E[log |Lambda| - mu' Lambda mu] / 2.

        On missing cells what rounding takes from observed ones, and 1/2; on the log determinants of their covariances 1.
        """
        W, logdet, spread, square, lost = self._expectations(self._update(N, S))
        holes = self._holes
        if len(holes):
            precisions = W[:, quadratic.squares(len(self._unit))[holes]] / (-0.5 * quadratic.GRAIN)
            W = np.hstack([W, 0.5 + 0.5 * precisions * self.rounding[holes], np.ones((len(W), 1))])
        return W, 0.5 * (logdet - spread - square - lost)

    def draw_weights(self, N: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """-Lambda / 2 on products, Lambda mu on columns; b = (log |Lambda| - mu' Lambda mu) / 2, drawn from the posterior."""
        q = self._update(N, S)
        half, logdet = quadratic.draw_wishart(q.nu, q.L, rng)
        noise = np.linalg.solve(half.swapaxes(1, 2), rng.standard_normal((*q.m.shape, 1)))[:, :, 0]
        mu = q.m + noise / np.sqrt(q.kappa)[:, None]
        P = half @ half.swapaxes(1, 2)
        own = np.einsum("kab,kb->ka", P, mu)
        lost = np.einsum("kaa,a->k", P, self.rounding[self._live])
        W = self._packed(P, own)
        return W, 0.5 * (logdet - np.einsum("ka,ka->k", own, mu) - lost)

    def log_marginal(self, N: Array, S: Array) -> Array:
        """LogZ(kappa_k, nu_k, B_k) - logZ(kappa, nu, B), (K,); with missing cells also what q(x_m) has of entropy."""
        found = self._log_normaliser(self._update(np.append(N, 0.0), np.vstack([S, np.zeros(self.n_statistics)])))
        return np.asarray(found[:-1] - found[-1] + 0.5 * self._absent(S).sum(axis=1) + self._own_entropies(S))

    def divergence(self, X: Array, centers: Array) -> Array:
        """Half the squared Mahalanobis distance under the prior mean of the precision, nu B^-1, (n, J).

        Where a row or a center has a missing value they do not differ.
        """
        half = np.linalg.inv(quadratic.cholesky(self.scale)).T * np.sqrt(self.degrees_of_freedom)
        if self.holes is None:
            return quadratic.squared_distances((X - self.origin) @ half, (centers - self.origin) @ half)
        apart = [((np.nan_to_num(X - center) @ half) ** 2).sum(axis=1) for center in centers]
        return 0.5 * np.column_stack(apart)

    def posterior(self, N: Array, S: Array) -> GaussianPosterior:
        """Posterior means of mu and of the covariance, B_k / (nu_k - D - 1) (where that exists, else B_k / nu_k)."""
        q = self._update(N, S)
        live = self._live
        D = len(self._unit)
        least = q.m.shape[1] + 1.0
        spare = np.where(q.nu > least, q.nu - least, q.nu)
        covariances = quadratic.embedded(q.L @ q.L.swapaxes(1, 2) / spare[:, None, None], live, D)
        means = self.origin + quadratic.embedded(q.m, live, D) * self._unit
        return GaussianPosterior(means, covariances * np.outer(self._unit, self._unit))

    def profile(self, N: Array, S: Array) -> Profile:
        """Mean and variance of each column under each cluster."""
        means, covariances = self.posterior(N, S)
        return Profile.of_columns(means, covariances.diagonal(axis1=1, axis2=2))

    def log_predictive(self, X: Array, N: Array, S: Array) -> Array:
        """Student-t with nu_k - D + 1 degrees of freedom, mean m_k, shape B_k (kappa_k + 1) / (kappa_k dof), (n, K).

        Of the observed values of a row: those rows and columns of the shape.
        """
        q = self._update(N, S)
        Z = self._to_work(X)[:, self._live]
        units = np.log(self._unit[self._live])
        out = np.empty((len(Z), len(N)))
        for rows, seen in alike(~np.isnan(Z)):
            if len(seen) and not seen.any():
                out[rows] = 0.0
                continue
            part = q if seen.all() else q.marginal(np.flatnonzero(seen))
            own = Z if seen.all() and len(rows) == len(Z) else Z[rows][:, seen]
            for k in range(len(N)):
                L, dof = self._predictive(part, k)
                logdet = float(quadratic.log_determinant(L))
                squares = quadratic.mahalanobis(own - part.m[k], L)
                out[rows, k] = quadratic.log_student(squares, logdet, dof, int(seen.sum())) - units[seen].sum()
        return out

    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` rows (size, D) from the predictive Student-t of one cluster."""
        q = self._update(np.atleast_1d(N), np.atleast_2d(S))
        L, dof = self._predictive(q, 0)
        drawn = q.m[0] + quadratic.sample_student(L, dof, rng, size)
        Z = quadratic.embedded(drawn, self._live, len(self._unit))
        return np.asarray(self.origin + Z * self._unit)

    def _precisions(self, N: Array, S: Array) -> Precisions:
        q = self._update(N, S)
        live = self._live
        return Precisions.of_factors(
            live, self._unit[live], self.degrees_of_freedom - (len(self._unit) - len(live)), q.nu, q.L
        )

    def resolved_columns(self) -> int:
        """The length of ``unit``."""
        return len(self._unit)

    def check_sums(self, N: Array, S: Array) -> None:
        """Check the units; factoring shows whether the scatter is positive definite."""
        super().check_sums(N, S)
        check_coordinates(self.origin, self.unit)
        check_rounding(self.rounding)

    def _to_work(self, X: Array) -> Array:
        return np.asarray((X - self.origin) / self._unit)

    def _predictive(self, q: NormalWishart, k: int) -> tuple[Array, float]:
        dof = float(q.nu[k]) - q.m.shape[1] + 1.0
        return q.L[k] * np.sqrt((q.kappa[k] + 1.0) / (q.kappa[k] * dof)), dof

    @cached_property
    def _live(self) -> NDArray[np.intp]:
        """The columns that are not constant."""
        return np.flatnonzero(np.isfinite(self.rounding))

    def _expectations(self, q: NormalWishart) -> tuple[Array, Array, Array, Array, Array]:
        """E[-Lambda / 2] on products, E[Lambda mu] on columns; E[log |Lambda|] and the parts of E[mu' Lambda mu], (K,) each."""
        live = self._live
        D = q.m.shape[1]
        P = q.nu[:, None, None] * quadratic.inverses(q.L)  # E[Lambda]
        Pm = np.einsum("kab,kb->ka", P, q.m)
        logdet = quadratic.expected_log_determinant(q.nu, quadratic.log_determinant(q.L), D)
        lost = np.einsum("kaa,a->k", P, self.rounding[live])
        return self._packed(P, Pm), logdet, D / q.kappa, np.einsum("ka,ka->k", Pm, q.m), lost

    def _packed(self, P: Array, own: Array) -> Array:
        """Weights (K, F) from precisions P and P m of the columns that are not constant."""
        D = len(self._unit)
        whole = quadratic.embedded(P, self._live, D)
        return np.hstack([-0.5 * quadratic.pack_quadratic(whole), quadratic.embedded(own, self._live, D)])

    def _update(self, N: Array, S: Array) -> NormalWishart:
        return self._updated(N, N, S)

    def _updated(self, N: Array, weight: Array, S: Array) -> NormalWishart:
        """Of the columns that are not constant: the prior of a part of the columns has as many degrees of freedom fewer.

        N : (K,) rows;  weight : (K,) the sum of their weights in the statistics S
        """
        D = len(self._unit)
        P = quadratic.n_products(D)
        live = self._live
        m0, base = self._prior
        kappa = self.mean_precision + weight
        nu = self.degrees_of_freedom - (D - len(live)) + N
        m = (self.mean_precision * m0 + S[:, P : P + D][:, live]) / kappa[:, None]
        B = quadratic.scatters(S, live, D, base, weight, self.rounding[live], kappa, m)
        places = np.searchsorted(live, self._holes)
        B[:, places, places] -= self._absent(S) * self.rounding[self._holes]
        return NormalWishart(kappa, nu, m, quadratic.cholesky(B))

    @cached_property
    def _prior(self) -> tuple[Array, Array]:
        """The prior mean m, and B + kappa m m', of the columns that are not constant, in working coordinates."""
        live = self._live
        units = self._unit[live]
        m = self._to_work(np.asarray(self.mean))[live]
        return m, self.scale[live[:, None], live] / np.outer(units, units) + self.mean_precision * np.outer(m, m)

    def _log_normaliser(self, q: NormalWishart) -> Array:
        D = q.m.shape[1]
        return np.asarray(quadratic.log_wishart(q.nu, quadratic.log_determinant(q.L), D) - 0.5 * D * np.log(q.kappa))
