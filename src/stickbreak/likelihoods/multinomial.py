"""Counts of many kinds, such as the words of a document."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln, psi, xlogy

from .._sums import check_between
from ..kernels.counts import digammas, dirichlet_multinomials, log_gamma_sums, multinomial_coefficients
from ._base import Array, Likelihood
from ._draws import gamma, poisson
from ._gamma import STRONG, log_gamma_ratio
from ._hyperparameters import LARGEST, positive_values, require
from ._profile import Profile
from ._rows import Rows
from ._sample import Sample
from ._size import Size

MOST = 1e12  # sums of larger counts have log Gamma of so many nats that their rounding moves the bound
ROUNDING = 1e-12  # of what is added up, that may be left where terms cancel
NOTHING = 1e-12  # a difference of sums of counts may miss zero by rounding


class MultinomialPosterior(NamedTuple):
    """Posterior mean of the chances of the D kinds, (K, D)."""

    probabilities: Array


@dataclass(frozen=True, eq=False)
class Multinomial(Likelihood):
    """Multinomial likelihood for rows of counts, dense or CSR, and its Dirichlet prior.

        x | p ~ Multinomial(n, p),   p ~ Dirichlet(c_1, ..., c_D)

    given the total n of the row, with statistics t(x) = x.  After counts with sum s: Dirichlet(c + s).  CSR rows are never made
    dense.  The log base measure is that of the counts, log n! - sum_d log x_d!.  Counts are at most 1e12.

    Parameters
    ----------
    concentration : float or array (D,), > 0, default D x the frequencies of the kinds in the data
        c, pseudo-counts of the kinds: by default one for each on average.

    References
    ----------
    Thesis 2.2.
    """

    takes_sparse: ClassVar[bool] = True
    takes_negative: ClassVar[bool] = False
    domain: ClassVar[str] = "numbers of at least 0"
    tunable: ClassVar[tuple[str, ...]] = ("concentration",)

    concentration: Any = None
    length: Any = field(default=None, repr=False)  # the mean total of a row

    def resolve(self, sample: Sample) -> Self:
        """Fill in the defaults from a sample of the data, and check what was given."""
        mean = sample.mean()
        counts = mean * max(sample.weights.sum(), float(len(sample.weights))) + 0.5  # weights may be normalised
        default = sample.D * counts / counts.sum()
        given = default if self.concentration is None else self.concentration
        c = positive_values("concentration", given, sample.D)
        require(bool((c <= LARGEST).all()), "concentration", given, f"at most {LARGEST:g}")
        return replace(self, concentration=c, length=float(mean.sum()))

    def size(self, missing: NDArray[np.bool_], largest: Array) -> Size:
        """A chance for each column."""
        return Size.of_columns(len(largest))

    def smoothed(self, least: float) -> Self:
        """With at least such a pseudo-count of each kind."""
        return replace(self, concentration=np.maximum(self._concentration, least))

    def compositional(self, D: int) -> NDArray[np.bool_]:
        """All columns: the kinds that a row's total is made of."""
        return np.ones(D, np.bool_)

    @property
    def n_statistics(self) -> int:
        """F = D."""
        return len(self._concentration)

    def valid(self, X: Array) -> NDArray[np.bool_]:
        """Finite numbers of at least 0."""
        return super().valid(X) & (X >= 0.0)

    @property
    def largest(self) -> Any:
        """1e12, where the bound still has all digits that matter."""
        return MOST

    def refuse(self, value: float, column: int, where: str) -> NoReturn:
        """As others; counts that are too large are to be scaled."""
        if MOST < value <= LARGEST:
            cure = f"Multinomial takes counts up to {MOST:.0e}; divide counts by a constant, or leave the value out."
            raise ValueError(f"Input X contains {value:g}: {where}. {cure}")
        super().refuse(value, column, where)

    @property
    def portable(self) -> bool:
        """Yes."""
        return True

    def features(self, X: Rows, out: Array | None) -> Any:
        """The counts themselves."""
        if out is None:
            return X
        out[...] = X
        return out

    def log_base(self, X: Rows) -> Array:
        """Log h(x) = log n! - sum_d log x_d!, (n,)."""
        rows = _compressed(X)
        out = np.empty(X.shape[0])
        multinomial_coefficients(rows.data, rows.indptr, out)
        return out

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """E[log p] = psi(c + s) - psi(sum); b = 0."""
        totals = self._concentration.sum() + np.maximum(S, 0.0).sum(axis=1)  # extrapolated sums may miss zero
        return self._digammas(S, psi(totals)), np.zeros(len(N))

    def draw_weights(self, N: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Log p drawn from the posterior; b = 0."""
        drawn = gamma(rng, self._concentration + np.maximum(S, 0.0), 1.0)
        return np.log(drawn) - np.log(drawn.sum(axis=1, keepdims=True)), np.zeros(len(N))

    def log_marginal(self, N: Array, S: Array) -> Array:
        """Dirichlet-multinomial: sum over kinds of log Gamma(c + s) / Gamma(c), over that of the totals, (K,)."""
        totals = np.maximum(S.sum(axis=1), 0.0)
        return np.asarray(self._log_gamma_sums(S) - log_gamma_ratio(totals, self._concentration.sum()))

    def divergence(self, X: Rows, centers: Rows) -> Array:
        """N(x) KL(p(x) || p(c)) for the smoothed frequencies p(x) = (c + x) / N(x), N(x) = sum_d (c_d + x_d), (n, J)."""
        c = self._concentration
        C = self._concentration.sum()
        if sparse.issparse(centers):
            centers = centers.toarray()
        totals = _totals(X) + C
        own = xlogy(c, c).sum() + _sum_rows(X, lambda x, d: xlogy(c[d] + x, c[d] + x) - xlogy(c[d], c[d]))
        log_p = np.log((c + centers) / (C + centers.sum(axis=1, keepdims=True)))
        cross = X @ log_p.T + log_p @ c
        divergence = (own - totals * np.log(totals))[:, None] - cross
        return np.asarray(np.where(divergence > ROUNDING * np.abs(cross), divergence, 0.0))

    def posterior(self, N: Array, S: Array) -> MultinomialPosterior:
        """E[p] = (c + s) / sum."""
        c = self._concentration + S
        return MultinomialPosterior(c / c.sum(axis=1, keepdims=True))

    def profile(self, N: Array, S: Array) -> Profile:
        """The chance that one count is of each kind, and its variance p (1 - p)."""
        p = self.posterior(N, S).probabilities
        return Profile.of_columns(p, p * (1.0 - p), chances=True)

    def log_predictive(self, X: Rows, N: Array, S: Array) -> Array:
        """Dirichlet-multinomial log probability of each row given its total, (n, K)."""
        rows = _compressed(X)
        out = np.empty((X.shape[0], len(N)))
        dirichlet_multinomials(rows.data, rows.indices, rows.indptr, self._concentration + S, out)
        return out

    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` rows (size, D) from the predictive of one cluster; totals are Poisson with the cluster's mean total."""
        c = self._concentration + np.ravel(S)
        length = float(np.sum(S)) / float(N) if N > 0.0 else self.length
        return poisson(rng, length * rng.dirichlet(c, size))  # given its total, such a row is multinomial

    def resolved_columns(self) -> int:
        """The length of ``concentration``."""
        return len(self._concentration)

    def check_sums(self, N: Array, S: Array) -> None:
        """Counts and the mean total of a row are not negative."""
        require(0.0 <= self.length < np.inf, "length", self.length, "a number of at least 0")
        check_between("sums of counts", S)

    def _log_gamma_sums(self, S: Array) -> Array:
        """Sum over kinds of log Gamma(c + s) / Gamma(c), (K,)."""
        prior = np.ascontiguousarray(np.broadcast_to(self._concentration, S.shape[1:]))
        if prior.max() < STRONG:
            out = np.empty(len(S))
            log_gamma_sums(np.ascontiguousarray(S, np.float64), prior, gammaln(prior), NOTHING, out)
            return out
        kinds = np.zeros(S.shape)
        counted = S > NOTHING
        kinds[counted] = log_gamma_ratio(S[counted], np.broadcast_to(prior, S.shape)[counted])
        return np.asarray(kinds.sum(axis=1))

    def _digammas(self, S: Array, less: Array) -> Array:
        """psi(c + S) - less_k (K, D), for which psi is computed once for all clusters without any count of a kind."""
        prior = np.ascontiguousarray(np.broadcast_to(self._concentration, S.shape[1:]))
        values = np.empty(S.shape)
        digammas(np.ascontiguousarray(S, np.float64), prior, psi(prior), NOTHING, less, values)
        return values

    @property
    def _concentration(self) -> Array:
        if self.length is None:
            raise TypeError("this likelihood has no data yet; call resolve(sample) first.")
        return np.asarray(self.concentration)


def _totals(X: Rows) -> Array:
    return np.asarray(X.sum(axis=1), dtype=np.float64)


def _compressed(X: Rows) -> sparse.csr_array:
    """Rows as CSR in float64, with indices in order."""
    rows = sparse.csr_array(X, dtype=np.float64)
    return rows if rows.has_sorted_indices else rows.sorted_indices()


def _sum_rows(X: Rows, value: Any) -> Array:
    """Sum over each row of ``value(x, columns)``, which is zero for x = 0, (n,)."""
    if not sparse.issparse(X):
        return np.asarray(value(X, slice(None)).sum(axis=1, dtype=np.float64))
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.bincount(rows, value(X.data, X.indices), X.shape[0]).astype(np.float64)
