"""Families whose columns are independent given the cluster, so that missing values are integrated out exactly."""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._sums import check_between
from ._arrays import converted, like, namespace
from ._base import Array, Likelihood
from ._profile import Profile
from ._rows import Rows
from ._sample import Sample
from ._size import Size

MOST = float(np.finfo(np.float64).max)
ROUNDING = 1e-12  # of what is added up, that may be left where terms cancel


@dataclass(frozen=True, eq=False)
class IndependentColumns(Likelihood):
    """Base of the families in which every column d has its own parameter and conjugate prior.

    A family says, elementwise, what `_prior`, `_in_domain`, `_sums`, `_base`, `_weights`, `_drawn_weights`, `_marginal`,
    `_posterior`, `_moments`, `_predictive`, `_bregman` and `_draw` below ask.  Hyperparameters are arrays (D,).  Counts n of
    observed values and sums of statistics are

    | in | n | each of the sums | hyperparameters |
    |---|---|---|---|
    | `_weights`, `_drawn_weights`, `_marginal`, `_posterior`, `_moments` | (K, D), or (K, 1): none missing | (K, D) | (D,) |
    | `_predictive`, for values x (n, D), ``columns`` = all | (D,) | (D,) | take ``[columns]`` |
    | `_predictive`, for the stored values x (m,) of CSR rows | (m,) | (m,) | take ``[columns]`` |
    | `_draw` | (D,) | (D,) | (D,) |

    The statistics of a row are

        t(x) = [sums of the observed values, column by column;  1 where a value is missing, for the columns with holes]

    so that cluster k has n_kd = N_k - absent_kd observed values in column d: a row counts only where it is observed.
    Rows may be CSR where there is one sum, the value itself (``takes_sparse``); all that CSR rows do not store is zero.

    Attributes
    ----------
    n_sums : the number of statistics of a value
    nonnegative : whether they are never negative; differences and extrapolations of their sums are then kept from it
    holes : (D,) bool, the columns with missing values
    """

    takes_missing: ClassVar[bool] = True
    n_sums: ClassVar[int] = 1
    nonnegative: ClassVar[bool] = True
    holes: Any = field(default=None, repr=False, kw_only=True)

    # What a family says ----------------------------------------------------------------------------------------------

    @abstractmethod
    def _prior(self, sample: Sample) -> dict[str, Any]:
        """The hyperparameters that `resolve` sets: those given, checked, and the defaults, from a sample of the data."""

    def _in_domain(self, x: Array) -> Any:
        """Which observed, finite values the family takes."""
        return True

    def _sums(self, X: Array) -> tuple[Array, ...]:
        """The statistics of values X, ``n_sums`` arrays of its shape."""
        return (X,)

    @abstractmethod
    def _weights(self, n: Array, sums: tuple[Array, ...]) -> tuple[tuple[Array, ...], Array]:
        """Expected natural parameters (K, D), one for each sum, and minus the expected log partition (K, D)."""

    def _drawn_weights(
        self, n: Array, sums: tuple[Array, ...], rng: np.random.Generator
    ) -> tuple[tuple[Array, ...], Array]:
        """The same, of parameters drawn from their posterior in place of expectations; no family need have it."""
        self._refuse_draws()

    @abstractmethod
    def _marginal(self, n: Array, sums: tuple[Array, ...]) -> Array:
        """LogZ(posterior) - logZ(prior) of each column, (K, D)."""

    def _base(self, x: Array) -> Array:
        """Log h(x)."""
        return np.zeros_like(x)

    @abstractmethod
    def _predictive(self, x: Array, n: Array, sums: tuple[Array, ...], columns: Any) -> Array:
        """Log predictive density of values x of ``columns`` after n values with the given sums."""

    @abstractmethod
    def _bregman(self, x: Array, center: Array, columns: Any) -> Array:
        """Divergence of values x of ``columns`` from values ``center`` (NaN where missing), smoothed by the prior.

        Only seeds are chosen with it: any will do that is zero for x = center and else positive and finite.  The natural one
        is KL between the family's members with the posterior means after x alone and after the center alone.
        """

    @abstractmethod
    def _posterior(self, n: Array, sums: tuple[Array, ...]) -> Any:
        """Posterior means of the parameters, a NamedTuple of arrays (K, D), in units of the data."""

    @abstractmethod
    def _moments(self, n: Array, sums: tuple[Array, ...]) -> tuple[Array, Array]:
        """Mean and variance of the predictive of each cluster, (K, D); something finite where they do not exist."""

    @abstractmethod
    def _draw(self, n: Array, sums: tuple[Array, ...], rng: np.random.Generator, size: int) -> Array:
        """Draws (size, D) from the predictive of one cluster."""

    # What follows for all of them ------------------------------------------------------------------------------------

    def resolve(self, sample: Sample) -> Self:
        """Fill in the defaults from a sample of the data, and check what was given."""
        return replace(self, **self._prior(sample), holes=sample.missing)

    def posterior(self, N: Array, S: Array) -> Any:
        """Posterior means of the parameters, a NamedTuple of arrays (K, D), in units of the data."""
        return self._posterior(*self._known_of(N, S))

    def size(self, missing: NDArray[np.bool_], largest: Array) -> Size:
        """Statistics: the sums of each column, and one more for each column with missing values."""
        return Size.of_columns(self.n_sums * len(missing) + int(missing.sum()))

    @property
    def n_statistics(self) -> int:
        """F = D x ``n_sums`` + the number of columns with holes."""
        return self.n_sums * self._D + int(self._holes.sum())

    def features(self, X: Rows, out: Array | None) -> Any:
        """T (n, F): the sums of the observed values, then 1 where a value is missing; CSR rows are their own features."""
        if out is None:
            return self._sparse_features(X)
        D = self._D
        sums = self._sums(X)
        for j, values in enumerate(sums):
            out[:, j * D : (j + 1) * D] = values
        if self._holes.any():
            self._leave_out_missing(X, out)
        return out

    def _leave_out_missing(self, X: Any, out: Any) -> None:
        """Zero in place of the sums of missing values in features ``out`` (n, F) of rows X, and one in their own statistics."""
        xp = namespace(X)
        D = self._D
        absent = xp.isnan(X)
        for j in range(self.n_sums):
            sums = out[:, j * D : (j + 1) * D]
            out[:, j * D : (j + 1) * D] = xp.where(absent, xp.zeros_like(sums), sums)
        columns = like(np.flatnonzero(self._holes), X, "int64")
        out[:, self.n_sums * D :] = converted(xp.take(absent, columns, axis=1), out.dtype)

    @property
    def portable(self) -> bool:
        """Where values are their own statistics."""
        own = type(self)
        return own._sums is IndependentColumns._sums and own.features is IndependentColumns.features

    def log_base(self, X: Rows) -> Array:
        """Sum of log h over the observed values, (n,)."""
        return self._total(X, lambda x, columns: self._base(x.astype(np.float64, copy=False)))

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """W of the sums and, for the columns with holes, what a missing value takes back from b; b summed over columns."""
        return self._laid_out(*self._weights(*self._known_of(N, S)))

    def draw_weights(self, N: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """The same of parameters drawn from their posterior."""
        return self._laid_out(*self._drawn_weights(*self._known_of(N, S), rng))

    def _laid_out(self, W: tuple[Array, ...], b: Array) -> tuple[Array, Array]:
        """Weights (K, F) and b (K,) from natural parameters (K, D), one for each sum, and minus log partitions (K, D)."""
        b = np.broadcast_to(b, W[0].shape)
        return np.hstack([*W, -b[:, self._holes]]), np.asarray(b.sum(axis=1))

    def log_marginal(self, N: Array, S: Array) -> Array:
        """Sum over columns of logZ(posterior) - logZ(prior), (K,)."""
        return np.asarray(self._marginal(*self._split(N, S)).sum(axis=1))

    def divergence(self, X: Rows, centers: Rows) -> Array:
        """Sum over the observed columns of the divergence of each value from that of the center, (n, J)."""
        if sparse.issparse(centers):
            centers = centers.toarray()
        totals = [self._total(X, lambda x, columns, c=c: self._apart(x, c[columns], columns)) for c in centers]
        divergence = np.column_stack(totals)
        if not sparse.issparse(X):
            return divergence
        most = self.divergence(np.zeros((1, self._D), X.dtype), centers)  # what entries have to cancel in equal rows
        return np.where(divergence > ROUNDING * most, divergence, 0.0)

    def profile(self, N: Array, S: Array) -> Profile:
        """Mean and variance of each column under each cluster."""
        return Profile.of_columns(*self._finite_moments(N, S))

    def log_predictive(self, X: Rows, N: Array, S: Array) -> Array:
        """Sum over the observed columns of their log predictive densities, (n, K)."""
        n, sums = self._known_of(N, S)

        def density(k: int) -> Array:
            count = np.broadcast_to(n[k], self._D)
            totals = [s[k] for s in sums]
            return self._total(X, lambda x, c: self._predictive(x, count[c], tuple(s[c] for s in totals), c))

        return np.column_stack([density(k) for k in range(len(N))])

    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` rows (size, D) from the posterior predictive of one cluster."""
        n, sums = self._known_of(np.atleast_1d(N), np.atleast_2d(S))
        return self._draw(np.broadcast_to(n[0], self._D), tuple(s[0] for s in sums), rng, size)

    def valid(self, X: Array) -> NDArray[np.bool_]:
        """Finite values within the domain, and missing ones."""
        return np.asarray(np.isnan(X) | (super().valid(X) & self._in_domain(X)))

    def may_miss(self, D: int) -> NDArray[np.bool_]:
        """All columns."""
        return np.ones(D, np.bool_)

    def with_missing(self, missing: NDArray[np.bool_], S: Array) -> tuple[Self, Array]:
        """With holes also in the columns ``missing``: statistics that count missing values, none so far, are inserted."""
        holes = self._holes | missing
        wide = np.zeros((len(S), self.n_sums * self._D + self._D))
        first = self.n_sums * self._D
        wide[:, :first] = S[:, :first]
        wide[:, first:][:, self._holes] = S[:, first:]
        return replace(self, holes=holes), np.hstack([wide[:, :first], wide[:, first:][:, holes]])

    def impute(self, X: Array, R: Array, N: Array, S: Array) -> Array:
        """Missing values become their posterior-predictive means."""
        return np.where(np.isnan(X), R @ self._finite_moments(N, S)[0], X)

    def resolved_columns(self) -> int:
        """The length of ``holes``."""
        return self._D

    def check_sums(self, N: Array, S: Array) -> None:
        """Check that no more values are missing than there are rows, and that sums of non-negative values are not negative."""
        first = self.n_sums * self._D
        check_between("numbers of missing values", S[:, first:], N[:, None])
        if self.nonnegative:
            check_between("sums of values that are never negative", S[:, :first])

    def _finite_moments(self, N: Array, S: Array) -> tuple[Array, Array]:
        """Mean and variance of the predictive of each cluster, (K, D), of which none is infinite."""
        with np.errstate(over="ignore"):
            mean, variance = self._moments(*self._known_of(N, S))
        return np.clip(mean, -MOST, MOST), np.minimum(variance, MOST)

    @property
    def _holes(self) -> NDArray[np.bool_]:
        if self.holes is None:
            raise TypeError("this likelihood has no data yet; call resolve(sample) first.")
        return np.asarray(self.holes)

    @property
    def _D(self) -> int:
        return len(self._holes)

    def _split(self, N: Array, S: Array) -> tuple[Array, tuple[Array, ...]]:
        """Counts of observed values, (K, D) or (K, 1) where nothing is missing, and sums (K, D) each."""
        D = self._D
        n = N[:, None]
        first = self.n_sums * D
        if self._holes.any():
            n = np.repeat(n, D, axis=1)
            n[:, self._holes] -= S[:, first:]
            n = np.maximum(n, 0.0)  # a difference of sums may miss zero by rounding
        sums = np.maximum(S[:, :first], 0.0) if self.nonnegative else S
        return n, tuple(sums[:, j * D : (j + 1) * D] for j in range(self.n_sums))

    def _known_of(self, N: Array, S: Array) -> tuple[Array, tuple[Array, ...]]:
        """The counts and sums that the posteriors of the clusters rest on: their own."""
        return self._split(N, S)

    def _apart(self, x: Array, center: Array, columns: Any) -> Array:
        """What values x of ``columns`` and values ``center`` add to the divergence of rows."""
        return self._bregman(x, center, columns)

    def _sparse_features(self, X: sparse.csr_array) -> sparse.csr_array:
        if self._holes.any():
            raise TypeError("rows are CSR, but the model was made for missing values; pass a dense array.")
        return X

    def _total(self, X: Rows, value: Any) -> Array:
        """Sum of ``value(x, columns)`` over the observed values of each row, (n,)."""
        every = slice(None)
        if not sparse.issparse(X):
            values = value(X, every)
            if self._holes.any():
                values = np.where(np.isnan(X), 0.0, values)
            return np.asarray(values.sum(axis=1, dtype=np.float64))
        zeros = np.broadcast_to(value(np.zeros(self._D, X.dtype), every), self._D)
        stored = value(X.data, X.indices) - zeros[X.indices]
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        return np.asarray(np.bincount(rows, stored, X.shape[0]) + zeros.sum())
