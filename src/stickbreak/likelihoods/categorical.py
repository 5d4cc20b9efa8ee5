"""Columns of categories."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import psi

from .._sums import check_between
from ._alike import COMMON, AlikeColumns
from ._arrays import converted, like
from ._base import Array, Likelihood
from ._draws import gamma
from ._gamma import log_gamma_ratio
from ._hyperparameters import hyperparameter, require
from ._profile import Profile
from ._sample import Sample
from ._size import Size

MOST_LEVELS = 1_000_000


class CategoricalPosterior(NamedTuple):
    """Posterior mean of the chances of the levels: for each column d an array (K, L_d)."""

    probabilities: tuple[Array, ...]


class _Counted(NamedTuple):
    """Positive counts (m,) with the cluster, statistic and column of each, and their sums over each column (K, D)."""

    clusters: NDArray[np.integer]
    levels: NDArray[np.integer]
    columns: NDArray[np.integer]
    counts: Array
    totals: Array


@dataclass(frozen=True, eq=False)
class Categorical(AlikeColumns):
    """Categorical likelihood for columns of codes 0, ..., L_d - 1, with a Dirichlet prior for each column.

        x_d | p_d ~ Categorical(p_d),   p_d ~ Dirichlet(c_d1, ..., c_dL)

    with statistics t(x) = [x_d = l], one for each level l of each column d.  After counts s: Dirichlet(c + s).  Missing values
    are integrated out exactly: they count for no level.

    Parameters
    ----------
    concentration : float, array (sum of L_d,) or one array (L_d,) per column, > 0, default 1 / L_d
        c, pseudo-counts of the levels.
    n_levels : int or array (D,), default: one more than the largest code, or the number of levels of a frame's column
        L_d.

    Columns in which nothing tells clusters apart have chances that all clusters share, where that is learnt (`AlikeColumns`).

    References
    ----------
    Thesis 2.2.
    """

    takes_missing: ClassVar[bool] = True
    takes_negative: ClassVar[bool] = False
    domain: ClassVar[str] = "codes of levels, whole numbers from 0 to one less than the number of levels"
    tunable: ClassVar[tuple[str, ...]] = (COMMON, "concentration")

    concentration: Any = None
    n_levels: Any = None
    resolved: bool = field(default=False, repr=False)

    def resolve(self, sample: Sample) -> Self:
        """Fill in the defaults from a sample of the data, and check what was given."""
        levels = self._resolve_levels(sample)
        given = self.concentration
        if given is None:
            given = np.repeat(1.0 / levels, levels)
        elif isinstance(given, (list, tuple)) and any(np.ndim(c) for c in given):
            given = np.concatenate([hyperparameter("concentration", c) for c in given])
        c = hyperparameter("concentration", given)
        F = int(levels.sum())
        wanted = f"a number or {F} numbers, one per level of each column"
        require(c.ndim <= 1 and c.size in (1, F), "concentration", self.concentration, wanted)
        require(bool(np.isfinite(c).all() and (c > 0.0).all()), "concentration", self.concentration, "positive")
        common = np.full(F, np.nan) if self.common is None else np.asarray(self.common, np.float64)
        require(common.shape == (F,), COMMON, self.common, f"an array of the shape {(F,)}")
        prior = np.array(np.broadcast_to(c, (F,)))
        return replace(self, concentration=prior, n_levels=levels, common=common, resolved=True)

    def locate(self, names: Sequence[str] | None, D: int) -> Self:
        """With the given numbers of levels, where there are any, one for each column."""
        return self if self.n_levels is None else replace(self, n_levels=self._given_levels(D))

    def size(self, missing: NDArray[np.bool_], largest: Array) -> Size:
        """Statistics: one for each level of each column, of which a row has one per column."""
        levels = np.nan_to_num(largest) + 1.0 if self.n_levels is None else np.asarray(self.n_levels)
        F = int(levels.sum())
        return Size.of_columns(F)._replace(entries=min(F, 3 * len(largest)))

    def continued(self, names: Sequence[str], other: Likelihood) -> Self:
        """As others, once both know that they have as many levels: those of other data may be others."""
        if not self.resolved or not isinstance(other, Categorical) or not np.array_equal(self.n_levels, other.n_levels):
            return self
        return super().continued(names, other)

    def smoothed(self, least: float) -> Self:
        """With at least such a pseudo-count of every level."""
        return replace(self, concentration=np.maximum(self.concentration, least))

    def cost_of_learning(self, name: str, N: Array) -> float:
        """As others; a column with common parameters has one for each level but the last."""
        if name != COMMON:
            return super().cost_of_learning(name, N)
        return 0.5 * float(np.log(N.sum())) * int((self._levels - 1)[self.is_common].sum())

    @property
    def n_statistics(self) -> int:
        """F, the number of levels of all columns together."""
        return int(self._levels.sum())

    @property
    def row_entries(self) -> int:
        """One level per column."""
        return len(self._levels)

    def valid(self, X: Array) -> NDArray[np.bool_]:
        """Codes of known levels, and missing values."""
        largest = (MOST_LEVELS if self.n_levels is None else np.asarray(self.n_levels)) - 1
        return np.asarray(np.isnan(X) | ((X >= 0.0) & (largest >= X) & (np.floor(X) == X)))

    def known(self, X: Any) -> Any:
        """With missing values for whole numbers that are no codes of known levels."""
        return np.where(self.valid(X) | (np.floor(X) != X), X, np.nan).astype(X.dtype)

    def may_miss(self, D: int) -> NDArray[np.bool_]:
        """All columns."""
        return np.ones(D, np.bool_)

    def nominal(self, D: int) -> NDArray[np.bool_]:
        """All columns."""
        return np.ones(D, np.bool_)

    @property
    def portable(self) -> bool:
        """Yes."""
        return True

    def features(self, X: Any, out: Any) -> Any:
        """T (n, F): one at the level of each column, zeros elsewhere."""
        if not (out is None or isinstance(X, np.ndarray)):
            return self._one_hot(X, out)
        places, seen = self._places(X)
        if out is None:
            edges = np.arange(0, places.size + 1, places.shape[1])
            return sparse.csr_array((seen.astype(X.dtype).ravel(), places.ravel(), edges), (len(X), self.n_statistics))
        out[...] = 0.0
        np.put_along_axis(out, places, seen, axis=1)
        return out

    def _one_hot(self, X: Any, out: Any) -> Any:
        """The features of rows that are no NumPy array."""
        first = 0
        for d, n in enumerate(self._levels.tolist()):
            levels = like(np.arange(n), X)
            out[:, first : first + n] = converted(X[:, d : d + 1] == levels, out.dtype)
            first += n
        return out

    def log_base(self, X: Array) -> Array:
        """Log h(x) = 0."""
        return np.zeros(len(X))

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """E[log p_dl] = psi(c_dl + s_dl) - psi(sum over levels); b = 0."""
        seen = self._counted(S)
        W = np.array(np.broadcast_to(psi(self.concentration), S.shape))
        W[seen.clusters, seen.levels] = psi(self.concentration[seen.levels] + seen.counts)
        W -= self._spread(psi(self._by_column(self.concentration[None]) + seen.totals))
        return self._with_common(W, np.log(self.common)), np.zeros(len(N))

    def draw_weights(self, N: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Log p_dl drawn from the posterior; b = 0."""
        drawn = gamma(rng, self._update(S), 1.0)
        W = np.log(drawn) - self._spread(np.log(self._by_column(drawn)))
        return self._with_common(W, np.log(self.common)), np.zeros(len(N))

    def column_marginals(self, N: Array, S: Array) -> Array:
        """Dirichlet-multinomial: sums over levels of log Gamma ratios, (K, D), or of log p where chances are common."""
        return self._marginals(self._counted(S))

    def log_marginals_of(self, N: Array, S: Array) -> Callable[[Any], Array]:
        """`log_marginal` as a function of the likelihood; counts that are not zero are found once."""
        seen = self._counted(S)
        return lambda likelihood: np.asarray(likelihood._marginals(seen).sum(axis=1))

    def _marginals(self, seen: _Counted) -> Array:
        """`column_marginals` of clusters with these counts."""
        prior = self.concentration
        levels = self._summed(seen, log_gamma_ratio(seen.counts, prior[seen.levels]))
        own = levels - log_gamma_ratio(seen.totals, self._by_column(prior[None]))
        common = self.is_common
        if not common.any():
            return own
        return np.where(common, self._summed(seen, seen.counts * np.log(self.common[seen.levels])), own)

    @property
    def is_common(self) -> NDArray[np.bool_]:
        """The columns whose chances are common, (D,)."""
        return np.asarray(~np.isnan(self.common[self._starts]))

    def alike(self, columns: NDArray[np.bool_], N: Array, S: Array) -> Self:
        """With chances that are common in these columns and no others: their posterior means given all values."""
        chances = self._own_probabilities(S.sum(axis=0, keepdims=True))[0]
        return replace(self, common=np.where(np.repeat(columns, self._levels), chances, np.nan))

    def divergence(self, X: Array, centers: Array) -> Array:
        """Sum over the observed columns of KL between the smoothed frequencies (c + [x = l]) / (C + 1), (n, J)."""
        c = self.concentration
        C = self._by_column(self.concentration[None])[0]
        places, seen = self._places(X)
        here = c[places]
        gain = (here + 1.0) * np.log1p(1.0 / here) / (C + 1.0)
        told = seen & ~self.is_common
        out = np.empty((len(X), len(centers)))
        for j, (place, known) in enumerate(zip(*self._places(centers))):
            there = c[place]
            known_gap = np.where(places == place, 0.0, gain - there * np.log1p(1.0 / there) / (C + 1.0))
            gap = np.where(known, known_gap, gain - np.log1p(1.0 / C))
            out[:, j] = np.where(told, np.maximum(gap, 0.0), 0.0).sum(axis=1)
        return out

    def posterior(self, N: Array, S: Array) -> CategoricalPosterior:
        """E[p_d] = (c_d + s_d) / sum over levels."""
        return CategoricalPosterior(tuple(np.split(self._probabilities(S), self._starts[1:], axis=1)))

    def profile(self, N: Array, S: Array) -> Profile:
        """The chance of each level of each column, and its variance p (1 - p)."""
        levels = np.arange(self.n_statistics) - np.repeat(self._starts, self._levels)
        p = self._probabilities(S)
        return Profile(
            np.repeat(np.arange(len(self._levels)), self._levels),
            levels,
            p,
            p * (1.0 - p),
            np.ones(len(levels), np.bool_),
        )

    def log_predictive(self, X: Array, N: Array, S: Array) -> Array:
        """Sum over the observed columns of log E[p_dl], (n, K)."""
        places, seen = self._places(X)
        log_p = np.log(self._probabilities(S))
        return np.column_stack([np.where(seen, row[places], 0.0).sum(axis=1) for row in log_p])

    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` rows (size, D) of codes from the posterior predictive of one cluster."""
        columns = self.posterior(np.atleast_1d(N), np.atleast_2d(S)).probabilities
        return np.column_stack([rng.choice(p.shape[1], size=size, p=p[0]) for p in columns]).astype(np.float64)

    def impute(self, X: Array, R: Array, N: Array, S: Array) -> Array:
        """Missing values become the most probable level."""
        columns = self.posterior(N, S).probabilities
        modes = np.column_stack([(R @ p).argmax(axis=1) for p in columns])
        return np.where(np.isnan(X), modes, X)

    def resolved_columns(self) -> int:
        """The length of ``n_levels``."""
        return len(self._levels)

    def check_sums(self, N: Array, S: Array) -> None:
        """Check that no more rows have a level than there are rows."""
        check_between("numbers of rows with a level", S)
        check_between("numbers of rows with a value", self._by_column(S), N[:, None])
        fine = np.isnan(self.common) | ((self.common > 0.0) & (self.common <= 1.0))
        require(bool(fine.all()), COMMON, self.common, "from 0 to 1, or NaN")

    @property
    def _levels(self) -> NDArray[np.integer]:
        if not self.resolved:
            raise TypeError("this likelihood has no data yet; call resolve(sample) first.")
        return np.asarray(self.n_levels)

    @property
    def _starts(self) -> NDArray[np.integer]:
        """The first statistic of each column."""
        return np.asarray(np.cumsum(self._levels) - self._levels)

    def _resolve_levels(self, sample: Sample) -> NDArray[np.integer]:
        """The number of levels of each column, checked."""
        if self.n_levels is None:
            largest = np.nan_to_num(sample.largest, nan=0.0)
            named = [len(sample.levels.get(d, ())) for d in range(sample.D)]
            return np.maximum(largest.astype(np.int64) + 1, named)
        return self._given_levels(sample.D)

    def _given_levels(self, D: int) -> NDArray[np.integer]:
        levels = hyperparameter("n_levels", self.n_levels)
        wanted = f"whole numbers of at least 1, one or {D} of them"
        fits = levels.size in (1, D) and bool(
            ((levels >= 1.0) & (levels <= MOST_LEVELS) & (np.floor(levels) == levels)).all()
        )
        require(fits, "n_levels", self.n_levels, wanted)
        return np.array(np.broadcast_to(levels.ravel(), (D,)), dtype=np.int64)

    def _places(self, X: Array) -> tuple[NDArray[np.integer], NDArray[np.bool_]]:
        """The statistic of each value (n, D), that of the first level where it is missing, and whether it is not.

        Values that are not levels, as in rows that another model reads as a start, count as missing: they would index outside
        the statistics of their column.
        """
        seen = (X >= 0.0) & (self._levels > X)  # False for NaN
        return self._starts + np.where(seen, X, 0.0).astype(np.intp), seen

    def _update(self, S: Array) -> Array:
        return np.asarray(self.concentration + np.maximum(S, 0.0))  # extrapolated sums may miss zero

    def _counted(self, S: Array) -> _Counted:
        """The counts in S that are not zero: of many levels a cluster has few."""
        k, f = np.nonzero(S > 0.0)  # extrapolated sums may miss zero
        counts = S[k, f]
        D = len(self._levels)
        columns = np.searchsorted(self._starts, f, side="right") - 1
        totals = np.bincount(k * D + columns, counts, len(S) * D).reshape(len(S), D).astype(np.float64)
        return _Counted(k, f, columns, counts, totals)

    def _probabilities(self, S: Array) -> Array:
        return self._with_common(self._own_probabilities(S), self.common)

    def _own_probabilities(self, S: Array) -> Array:
        c = self._update(S)
        return np.asarray(c / self._spread(self._by_column(c)))

    def _with_common(self, values: Array, common: Array) -> Array:
        """Values (K, F) of levels, with others (F,) that are known in the columns whose chances are common."""
        return np.where(np.isnan(common), values, common)

    def _summed(self, seen: _Counted, values: Array) -> Array:
        """Sums over the levels of each column of values (m,) for counts, (K, D)."""
        shape = seen.totals.shape
        sums = np.bincount(seen.clusters * shape[1] + seen.columns, values, seen.totals.size)
        return np.asarray(sums, np.float64).reshape(shape)

    def _by_column(self, values: Array) -> Array:
        """Sums over the levels of each column, (K, D)."""
        return np.asarray(np.add.reduceat(values, self._starts, axis=1))

    def _spread(self, values: Array) -> Array:
        """Values of columns repeated for each of their levels, (K, F)."""
        return np.repeat(values, self._levels, axis=1)
