"""Student's t: a Gaussian with full covariance and a latent scale for each row, for clusters with heavy tails."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from . import _quadratic as quadratic
from ._base import Array, Likelihood
from ._draws import gamma
from ._hyperparameters import hyperparameter, require
from ._normal_wishart import NormalWishart
from ._profile import Profile
from ._sample import Sample
from ._scales import OWN, Scales
from ._size import Size
from .gaussian import Gaussian

DEFAULT = 5.0  # tails before they are learnt
RANGE = 0.1, 1e8  # tails that may be given
LEARNT = 1.0, 1e4  # tails that may be learnt
FAST = 1.0  # the most by which the logarithm of tails is moved on in a lap
NODES, DEPTH = 64, 40.0  # of integrals over scales: points, and the nats below the highest that are left out
BLOCK = 1 << 18  # numbers in the nodes of rows that are integrated at once


class StudentTPosterior(NamedTuple):
    """Posterior mean of the cluster means (K, D), of the covariances (K, D, D) at scale 1, Lambda^-1, and the tails (K,).

    The covariance of the rows of a cluster is tails / (tails - 2) times as large; it exists where tails > 2.
    """

    means: Array
    covariances: Array
    tails: Array


@dataclass(frozen=True, eq=False)
class StudentT(Gaussian):
    """Multivariate Student's t: Gaussian clusters in which each row has a scale of its own, and the prior of `Gaussian`.

        x | u, mu, Lambda ~ Normal(mu, (u Lambda)^-1),   u ~ Gamma(tails / 2, tails / 2)
        mu | Lambda ~ Normal(m, (kappa Lambda)^-1),   Lambda ~ Wishart(nu, B^-1)

    Far rows get small scales, and so hardly move a cluster: with a = (tails + D) / 2 and the expected square
    delta_nk = E[(x_n - mu_k)' Lambda_k (x_n - mu_k)],

        q(u_n | z_n = k) = Gamma(a, (tails + delta_nk) / 2),   score_nk = E[log |Lambda_k|] / 2 - a log(1 + delta_nk / tails)

    up to what all clusters have in common.  Statistics are t(x) = [x_a x_b (a <= b), x, 1] times E[u_nk], and two more, linear
    in E[log u_nk] and the entropy of q(u_nk); the global step is that of `Gaussian` with rows weighted by E[u_nk].

    Parameters
    ----------
    mean, mean_precision, degrees_of_freedom, scale, correlation :
        The prior of the clusters, as of `Gaussian`; B / (nu - D - 1) is expected of Lambda^-1.
    tails : float from 0.1 to 1e8, default 5, or learnt from 1 to 1e4
        Degrees of freedom of Student's t, the same for all clusters: 1 is Cauchy's distribution, and a large number Gaussian.

    Raises
    ------
    ValueError
        Missing values, hidden Markov models, topic models and parts of a `Product`: use `Gaussian` or `DiagonalGaussian`.

    Notes
    -----
    The bound holds q(mu, Lambda) q(u | z) q(z), a factor more than that of `Gaussian`, and stays below the log evidence.
    Predictive densities integrate u numerically, to about ten digits.

    References
    ----------
    Archambeau and Verleysen 2007, "Robust Bayesian clustering", Neural Networks 20, section 3; Svensen and Bishop 2005,
    "Robust Bayesian mixture modelling", Neurocomputing 64, section 3.
    """

    takes_missing: ClassVar[bool] = False
    tunable: ClassVar[tuple[str, ...]] = ("tails", *Gaussian.tunable)

    tails: Any = None

    def resolve(self, sample: Sample) -> Self:
        """Fill in the defaults from a sample of the data, and check what was given."""
        tails = hyperparameter("tails", DEFAULT if self.tails is None else self.tails)
        fine = tails.ndim == 0 and bool(RANGE[0] <= tails <= RANGE[1])
        require(fine, "tails", self.tails, f"a number from {RANGE[0]:g} to {RANGE[1]:g}")
        return replace(super().resolve(sample), tails=float(tails))

    def size(self, missing: NDArray[np.bool_], largest: Array) -> Size:
        """That of `Gaussian` with the three statistics of scales."""
        size = super().size(missing, largest)
        return size._replace(statistics=size.statistics + OWN, entries=size.entries + OWN)

    @property
    def latent(self) -> Scales:
        """The latent scales of its rows."""
        return Scales(self.tails, len(self._live))

    @property
    def n_statistics(self) -> int:
        """F = D (D + 1) / 2 + D + 3."""
        return super().n_statistics + OWN

    def features(self, X: Array, out: Array) -> Array:
        """T (n, F): those of `Gaussian`, then 1, 0, 0, the statistics of a scale that is not known (`Scales`)."""
        quadratic.packed_products(X, self.origin, self._unit, True, out)
        out[:, -3:] = 1.0, 0.0, 0.0
        return out

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """Those of `Gaussian` with all of E[mu' Lambda mu] on the scale; b = E[log |Lambda|] / 2 + what each row counts."""
        W, logdet, spread, square, lost = self._expectations(self._update(N, S))
        own = np.tile(self.latent.weights, (len(N), 1))
        own[:, 0] -= 0.5 * (spread + square + lost)
        return np.hstack([W, own]), 0.5 * logdet + self.latent.constant

    def log_marginal(self, N: Array, S: Array) -> Array:
        """That of `Gaussian` for rows weighted by their scales, with E[log p(u)] and the entropy of q(u), (K,)."""
        return super().log_marginal(N, S) + N * self.latent.constant + S[:, -3:] @ self.latent.weights

    def posterior(self, N: Array, S: Array) -> Any:
        """A `StudentTPosterior`: posterior means as of `Gaussian`, and the tails."""
        means, covariances = super().posterior(N, S)
        return StudentTPosterior(means, covariances, np.full(len(N), self.tails))

    def profile(self, N: Array, S: Array) -> Profile:
        """Mean and variance of each column under each cluster; for tails below 3 a width, of finite size, for the variance."""
        means, covariances, _ = self.posterior(N, S)
        wider = self.tails / max(self.tails - 2.0, 1.0)
        return Profile.of_columns(means, wider * covariances.diagonal(axis1=1, axis2=2))

    def log_predictive(self, X: Array, N: Array, S: Array) -> Array:
        """Mixture over scales u of Student-t with nu_k - D + 1 degrees of freedom and shape B_k (1 / u + 1 / kappa_k) / dof."""
        q = self._update(N, S)
        Z = self._to_work(X)[:, self._live]
        out = np.empty((len(Z), len(N)))
        for k in range(len(N)):
            squares = quadratic.mahalanobis(Z - q.m[k], q.L[k])
            some = BLOCK // NODES
            pieces = [self._integrated(squares[i : i + some], q, k) for i in range(0, len(Z), some)]
            out[:, k] = np.concatenate(pieces) if pieces else 0.0
        return np.asarray(out - np.log(self._unit[self._live]).sum())

    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` rows (size, D) from the predictive of one cluster: scales, then Student-t given these."""
        q = self._update(np.atleast_1d(N), np.atleast_2d(S))
        dof = float(q.nu[0]) - q.m.shape[1] + 1.0
        u = gamma(rng, np.full(size, 0.5 * self.tails), 0.5 * self.tails)
        drawn = quadratic.sample_student(q.L[0] / np.sqrt(dof), dof, rng, size)
        drawn *= np.sqrt(1.0 / u + 1.0 / q.kappa[0])[:, None]
        Z = quadratic.embedded(q.m[0] + drawn, self._live, len(self._unit))
        return np.asarray(self.origin + Z * self._unit)

    def scaled(self, name: str, factor: float) -> Self:
        """As others; the tails no further out of range than they are."""
        if name == "tails":
            least = min(self.tails, LEARNT[0])
            most = max(self.tails, LEARNT[1])
            return replace(self, tails=float(np.clip(self.tails * factor, least, most)))
        return super().scaled(name, factor)

    def ahead(self, before: Likelihood, step: float) -> Self:
        """With tails moved on, on a logarithmic scale."""
        if not isinstance(before, StudentT) or before.tails == self.tails:
            return self
        return self.scaled("tails", float(np.exp(np.clip(step * np.log(self.tails / before.tails), -FAST, FAST))))

    def check_sums(self, N: Array, S: Array) -> None:
        """Check the sum of the scales, too."""
        super().check_sums(N, S)
        require(bool((S[:, -3] >= 0.0).all()), "S", S[:, -3], "at least 0 for sums of scales")

    def _update(self, N: Array, S: Array) -> NormalWishart:
        weight = S[:, -3]
        if not (self.mean_precision + weight > 0.0).all():
            raise FloatingPointError("the scales of the rows of a cluster have a negative sum.")
        return self._updated(N, weight, S)

    def _integrated(self, squares: Array, q: NormalWishart, k: int) -> Array:
        """Log predictive density (n,) of rows with Mahalanobis squares z' B_k^-1 z (n,), in working coordinates.

        Trapezoids in log u: first over all scales that may matter, then where the integrand is within `DEPTH` of its top.
        """
        D = q.m.shape[1]
        nu = self.tails
        kappa = q.kappa[k]
        dof = float(q.nu[k]) - D + 1.0
        shape = self.latent.shape
        logdet = float(quadratic.log_determinant(q.L[k]))

        def height(log_u: Array) -> Array:
            """Log Gamma(u; nu / 2, nu / 2) u + log density given u."""
            wide = np.exp(-log_u) + 1.0 / kappa
            prior = 0.5 * nu * (log_u - np.exp(log_u))
            return np.asarray(prior - 0.5 * D * np.log(wide) - 0.5 * (dof + D) * np.log1p(squares[:, None] / wide))

        center = np.log(2.0 * shape / (nu + (dof + D) * squares))
        low = center - DEPTH / shape - np.sqrt(DEPTH / shape)
        high = np.log1p(2.0 * (DEPTH + np.sqrt(DEPTH * nu)) / nu)
        nodes = np.linspace(low, np.maximum(high, center + 1.0), NODES, axis=1)
        heights = height(nodes)
        matter = heights >= heights.max(axis=1, keepdims=True) - DEPTH
        first = matter.argmax(axis=1)
        last = NODES - 1 - matter[:, ::-1].argmax(axis=1)
        rows = np.arange(len(squares))
        low = nodes[rows, np.maximum(first - 1, 0)]
        high = nodes[rows, np.minimum(last + 1, NODES - 1)]
        nodes = np.linspace(low, high, NODES, axis=1)
        integral = logsumexp(height(nodes), axis=1) + np.log((high - low) / (NODES - 1))
        constant = gammaln(0.5 * (dof + D)) - gammaln(0.5 * dof) - 0.5 * D * np.log(np.pi) - 0.5 * logdet
        return np.asarray(integral + constant + 0.5 * nu * np.log(0.5 * nu) - gammaln(0.5 * nu))
