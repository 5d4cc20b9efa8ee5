"""Gaussian of which each column depends on a few others, for many columns: between independent columns and full covariances."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln, psi

from .._arguments import check_count
from ..kernels.statistics import pack_pairs
from . import _quadratic as quadratic
from ._arrays import like, namespace
from ._base import Array, Likelihood
from ._draws import student_width
from ._hyperparameters import require
from ._network import Families, choose_parents, topological_order
from ._profile import Profile
from ._sample import Sample
from ._size import Size
from ._wishart_prior import Precisions
from .diagonal_gaussian import DiagonalGaussian
from .gaussian import Gaussian

MOST_PARENTS = 64


class GaussianNetworkPosterior(NamedTuple):
    """Posterior means of the cluster means (K, D), and of regressions of each column on its parents.

    coefficients : (K, D, parents), zero where a column has fewer
    residuals : (K, D) variances of the columns given their parents
    variances : (K, D) of the columns, with these coefficients
    """

    means: Array
    variances: Array
    coefficients: Array
    residuals: Array


class FamilyPosterior(NamedTuple):
    """Posterior parameters of the families of a network in working coordinates; J families of m places.

    kappa : (K,);  m : (K, D);  degrees : (K, J) degrees of freedom of the precision of a column given its parents
    factors : (K, J, m, m) Cholesky factors L of B_k of the family, the column last
    """

    kappa: Array
    m: Array
    degrees: Array
    factors: Array

    @property
    def log_rates(self) -> Array:
        """Log b (K, J): the column's part of B_k that its parents do not explain."""
        return np.asarray(2.0 * np.log(self.factors[:, :, -1, -1]))

    @property
    def log_determinants(self) -> Array:
        """Log |B_k| of the parents, (K, J)."""
        diagonals = np.diagonal(self.factors, axis1=2, axis2=3)[:, :, :-1]
        return np.asarray(2.0 * np.log(diagonals).sum(axis=2))

    @property
    def inverses(self) -> Array:
        """V = L^-1, (K, J, m, m)."""
        return np.asarray(np.linalg.inv(self.factors))


@dataclass(frozen=True, eq=False)
class GaussianNetwork(Gaussian):
    """Gaussian likelihood in which each column, given its few parents, is independent of the other columns before it.

        x_d | x_p, w, c, tau ~ Normal(c + w' x_p, 1 / tau)   for each column d with parents p = p(d)

    with the prior that follows from the Normal-Wishart prior of `Gaussian` for each family f = (p, d).  With statistics of the
    pairs of columns that are in a family together, m_k and B_k as there, and nu_f = nu_k - D + |f|:

        log p(X) = sum_d log NW(x_f) - log NW(x_p),   tau ~ Gamma(nu_f / 2, b / 2),   b = B_dd - B_dp B_pp^-1 B_pd
        w | tau ~ Normal(B_pp^-1 B_pd, (tau B_pp)^-1),   c + w' m_p | tau ~ Normal(m_d, 1 / (kappa_k tau))

    With all columns before each as its parents this is `Gaussian`.  A cluster has about D (n_parents + 2)
    numbers in place of D (D + 3) / 2.  Where columns depend on more others than that, such as all on all, clusters are cut up.

    Parameters
    ----------
    mean, mean_precision, degrees_of_freedom, scale, correlation :
        The prior of the clusters, as of `Gaussian`.
    n_parents : int from 1 to 64, default 4
        The most parents of a column.
    parents : array (D, n_parents) of columns, padded with -1, default chosen from a sample
        Without cycles.  The default takes those that explain most of the differences between near rows.

    References
    ----------
    Geiger and Heckerman 1994, "Learning Gaussian networks", sections 3 and 4; Dawid and Lauritzen 1993, "Hyper Markov laws",
    Annals of Statistics 21, section 7; Art, Gnanadesikan and Kettenring 1982, "Data-based metrics for cluster analysis".
    """

    takes_missing: ClassVar[bool] = False

    n_parents: int = 4
    parents: Any = None

    def simpler(self, missing: NDArray[np.bool_]) -> DiagonalGaussian:
        """Independent columns."""
        return DiagonalGaussian()

    def resolve(self, sample: Sample) -> Self:
        """Fill in the defaults from a sample of the data, and check what was given."""
        self._check_count()
        known = super().resolve(sample)
        if self.parents is None:
            Z = (sample.without_outliers().X - known.origin) / known._unit
            return replace(known, parents=choose_parents(Z, self.n_parents))
        parents = np.asarray(self.parents)
        fits = parents.dtype.kind in "iu" and parents.shape == (sample.D, self.n_parents)
        require(fits, "parents", self.parents, f"whole numbers of shape ({sample.D}, {self.n_parents})")
        topological_order(parents)
        return replace(known, parents=parents.astype(np.intp))

    def size(self, missing: NDArray[np.bool_], largest: Array) -> Size:
        """The size of a family of a few products of D columns."""
        self._check_count()
        D = len(largest)
        m = self.n_parents + 1
        F = D * (m * (m + 1) // 2 + 1)
        return Size(F, F, 5 * D * m * m, 8 * D * D)

    @property
    def n_statistics(self) -> int:
        """F = P + D: the pairs of columns that are in a family together, and the columns."""
        return len(self._unit) + len(self._families.first)

    @property
    def portable(self) -> bool:
        """Yes."""
        return True

    def features(self, X: Any, out: Any) -> Any:
        """T (n, F): products of pairs of the working coordinates z = (x - origin) / unit, then z."""
        families = self._families
        if isinstance(X, np.ndarray):
            pack_pairs(X, self.origin, self._unit, families.first, families.second, out)
            return out
        xp = namespace(X)
        z = quadratic.standardised(X, self.origin, self._unit)
        first, second = (xp.take(z, like(columns, X, "int64"), axis=1) for columns in (families.first, families.second))
        pairs = len(families.first)
        out[:, :pairs] = first * second
        out[:, pairs:] = z
        return out

    def spread_out(self, T: Array, variances: Array) -> None:
        """Add to features T (n, F) what squares have more where values are spread about theirs with ``variances`` (n, D)."""
        T[:, self._squares] += variances / self._unit**2

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """E[-Lambda / 2] on pairs, E[Lambda mu] on columns; b = E[log |Lambda| - mu' Lambda mu] / 2, sums over families."""
        q = self._posterior(N, S)
        families = self._families
        Q = self._expected_precisions(q)
        means = q.m[:, families.members]
        own = np.einsum("kjab,kjb->kja", Q, means)
        square = np.einsum("kja,kja->k", own, means)
        lost = np.einsum("kjaa,ja->k", Q, self.rounding[families.members])
        logdet = (psi(0.5 * q.degrees) + np.log(2.0) - q.log_rates).sum(axis=1)
        W = np.hstack([-0.5 * self._on_pairs(Q), self._on_columns(own)])
        return W, 0.5 * (logdet - len(families.columns) / q.kappa - square - lost)

    def draw_weights(self, N: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """A network draws no parameters (see `Likelihood.draw_weights`)."""
        return Likelihood.draw_weights(self, N, S, rng)

    def log_marginal(self, N: Array, S: Array) -> Array:
        """Sum over families of log Z(column given its parents), less that of the prior, (K,)."""
        prior = self._log_normalisers(self._posterior(np.zeros(1), np.zeros((1, self.n_statistics))))
        J = len(self._families.columns)
        return np.asarray(self._log_normalisers(self._posterior(N, S)) - prior + 0.5 * J * np.log(2.0) * N)

    def divergence(self, X: Array, centers: Array) -> Array:
        """Half the squared Mahalanobis distance under the prior mean of the precision, (n, J)."""
        live = self._live
        prior = self._posterior(np.zeros(1), np.zeros((1, self.n_statistics)))
        half = quadratic.cholesky(self._dense(self._expected_precisions(prior)[0])[np.ix_(live, live)])
        Z = self._to_work(X)[:, live]
        nodes = self._to_work(centers)[:, live]
        return quadratic.squared_distances(Z @ half, nodes @ half)

    def posterior(self, N: Array, S: Array) -> Any:
        """A `GaussianNetworkPosterior`."""
        q = self._posterior(N, S)
        families = self._families
        D = len(self._unit)
        spare = np.where(q.degrees > 2.0, q.degrees - 2.0, q.degrees)
        residuals = np.zeros((len(N), D))
        coefficients = np.zeros((len(N), D, self.n_parents))
        last = q.inverses[:, :, -1]
        residuals[:, families.columns] = np.exp(q.log_rates) / spare
        coefficients[:, families.columns] = np.where(families.real[:, :-1], -last[:, :, :-1] / last[:, :, -1:], 0.0)
        variances = np.stack([self._variances(w, v) for w, v in zip(coefficients, residuals)])
        units = self._unit[:, None] / self._unit[np.where(self.parents < 0, np.arange(D)[:, None], self.parents)]
        squares = self._unit**2
        means = self.origin + q.m * self._unit
        return GaussianNetworkPosterior(means, variances * squares, coefficients * units, residuals * squares)

    def profile(self, N: Array, S: Array) -> Profile:
        """Mean and variance of each column under each cluster."""
        means, variances, _, _ = self.posterior(N, S)
        return Profile.of_columns(means, variances)

    def log_predictive(self, X: Array, N: Array, S: Array) -> Array:
        """Sum over columns of log Student-t given their parents, with nu_f degrees of freedom, (n, K)."""
        q = self._posterior(N, S)
        Z = self._to_work(X)
        families = self._families
        V = q.inverses
        out = np.empty((len(Z), len(N)))
        for k in range(len(N)):
            squares = self._squares_given_parents(Z - q.m[k], V[k])
            width = float((q.kappa[k] + 1.0) / q.kappa[k])
            degrees = q.degrees[k]
            constant = gammaln(0.5 * (degrees + 1.0)) - gammaln(0.5 * degrees)
            constant -= 0.5 * (np.log(np.pi) + q.log_rates[k] + np.log(width))
            before = 1.0 + squares[:, :, 0] / width
            own = 1.0 + squares.sum(axis=2) / width
            out[:, k] = (constant + 0.5 * degrees * np.log(before) - 0.5 * (degrees + 1.0) * np.log(own)).sum(axis=1)
        return np.asarray(out - np.log(self._unit[families.columns]).sum())

    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` rows (size, D) from the predictive of one cluster, each column given its parents."""
        q = self._posterior(np.atleast_1d(N), np.atleast_2d(S))
        families = self._families
        inverses = q.inverses[0]
        Z = np.zeros((size, len(self._unit)))
        own = np.full(len(self._unit), -1)
        own[families.columns] = np.arange(len(families.columns))
        width = (q.kappa[0] + 1.0) / q.kappa[0]
        for j in own[topological_order(self.parents)]:
            if j < 0:
                continue
            members = families.members[j]
            real = families.real[j]
            V = inverses[j]
            away = np.where(real[:-1], Z[:, members[:-1]] - q.m[0, members[:-1]], 0.0)
            squares = ((away @ V[:-1, :-1].T) ** 2).sum(axis=1)
            spread = np.sqrt((width + squares) / q.degrees[0, j])
            drawn = rng.standard_normal(size) * student_width(rng, q.degrees[0, j], size) * spread
            Z[:, members[-1]] = q.m[0, members[-1]] + (drawn - away @ V[-1, :-1]) / V[-1, -1]
        return np.asarray(self.origin + Z * self._unit)

    def check_sums(self, N: Array, S: Array) -> None:
        """Check the network, then as `Gaussian`."""
        topological_order(self.parents)
        super().check_sums(N, S)

    def _precisions(self, N: Array, S: Array) -> Precisions:
        q = self._posterior(N, S)
        families = self._families
        live = self._live
        mean = self._dense(self._expected_precisions(q).mean(axis=0))[np.ix_(live, live)]
        children = np.bincount(families.members[:, :-1][families.real[:, :-1]], minlength=len(self._unit))[live]
        prior = self.degrees_of_freedom - len(self._unit) + families.sizes
        return Precisions(live, self._unit[live], prior + children, float(np.mean(N)), mean)

    def _check_count(self) -> None:
        check_count(self.n_parents, "n_parents")
        require(self.n_parents <= MOST_PARENTS, "n_parents", self.n_parents, f"at most {MOST_PARENTS}")

    @cached_property
    def _families(self) -> Families:
        _ = self._unit  # an error where there are no data yet
        return Families.of(self.parents, self._live)

    @property
    def _squares(self) -> NDArray[np.intp]:
        """The places of the squares of columns among the pairs."""
        return np.flatnonzero(self._families.first == self._families.second)

    def _posterior(self, N: Array, S: Array) -> FamilyPosterior:
        families = self._families
        D = len(self._unit)
        P = len(families.first)
        m0 = self._to_work(np.asarray(self.mean))
        kappa = self.mean_precision + N
        m = np.where(np.isfinite(self.rounding), (self.mean_precision * m0 + S[:, P:]) / kappa[:, None], 0.0)
        first = families.first
        second = families.second
        pairs = S[:, :P] + self.mean_precision * m0[first] * m0[second] - kappa[:, None] * m[:, first] * m[:, second]
        pairs += self.scale[first, second] / (self._unit[first] * self._unit[second])
        squares = self._squares
        pairs[:, squares] += (quadratic.GRAIN - 1.0) * S[:, squares] + N[:, None] * self._lost
        B = np.where(families.both, pairs[:, families.places], 0.0)
        padded = np.eye(B.shape[-1]) * ~families.real[:, :, None]
        L = quadratic.cholesky(B + padded)
        degrees = (self.degrees_of_freedom - D + families.sizes) + N[:, None]
        return FamilyPosterior(kappa, m, degrees, L)

    @property
    def _lost(self) -> Array:
        """The variance (D,) that rounding took from each value, zero for constant columns."""
        return np.where(np.isfinite(self.rounding), self.rounding, 0.0)

    def _log_normalisers(self, q: FamilyPosterior) -> Array:
        parts = gammaln(0.5 * q.degrees) - 0.5 * q.degrees * q.log_rates - 0.5 * q.log_determinants
        return np.asarray(parts.sum(axis=1) - 0.5 * q.degrees.shape[1] * np.log(q.kappa))

    def _expected_precisions(self, q: FamilyPosterior) -> Array:
        """E[Lambda] of the families less that of their parents, (K, J, m, m): V' diag(1, ..., 1, nu_f) V."""
        V = q.inverses
        counts = np.broadcast_to(self._families.real.astype(np.float64), V.shape[:3]).copy()
        counts[:, :, -1] = q.degrees
        return np.asarray(V.swapaxes(2, 3) @ (counts[:, :, :, None] * V))

    def _on_pairs(self, Q: Array) -> Array:
        """The weights (K, P) on pairs that give the sums of the quadratic forms of families."""
        both = self._families.both
        W = _summed(Q[:, both], self._families.places[both], len(self._families.first))
        W[:, self._squares] *= quadratic.GRAIN
        return W

    def _on_columns(self, values: Array) -> Array:
        """Values (K, J, m) of members summed by column, (K, D)."""
        real = self._families.real
        return _summed(values[:, real], self._families.members[real], len(self._unit))

    def _dense(self, Q: Array) -> Array:
        """The sum (D, D) of matrices (J, m, m) of families."""
        families = self._families
        D = len(self._unit)
        rows = np.broadcast_to(families.members[:, :, None], Q.shape)[families.both]
        columns = np.broadcast_to(families.members[:, None, :], Q.shape)[families.both]
        return np.asarray(np.bincount(rows * D + columns, Q[families.both], D * D).reshape(D, D))

    def _squares_given_parents(self, away: Array, V: Array) -> Array:
        """Squares (n, J, 2) of what rows ``away`` from the means (n, D) say of parents, and of the column given them."""
        families = self._families
        y = np.einsum("jab,njb->nja", V, away[:, families.members] * families.real)
        return np.stack([(y[:, :, :-1] ** 2).sum(axis=2), y[:, :, -1] ** 2], axis=2)

    def _variances(self, coefficients: Array, residuals: Array) -> Array:
        """Variances (D,) of the columns of one cluster, from coefficients (D, parents) and variances given parents (D,)."""
        D = len(residuals)
        effect = np.eye(D)
        real = self.parents >= 0
        np.subtract.at(effect, (np.nonzero(real)[0], self.parents[real]), coefficients[real])
        return np.asarray((np.linalg.inv(effect) ** 2) @ residuals)


def _summed(values: Array, places: NDArray[np.intp], n: int) -> Array:
    """Values (K, M) summed by place, (K, n)."""
    M = len(places)
    return np.asarray((sparse.csr_array((np.ones(M), (places, np.arange(M))), shape=(n, M)) @ values.T).T)
