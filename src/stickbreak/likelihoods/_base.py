"""What a likelihood must say: its features, its weights, its marginal likelihood and how to show itself."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.floating]
Rows = Any  # (n, D): a dense array, missing values as NaN, or a `scipy.sparse.csr_array`

LARGEST = 1e150  # the square of a larger number overflows in sums
ROUNDED = 1e-5  # of a sum over all rows in float32, that rounding may have changed
FEW_COLUMNS = 1024  # that a table may always have, whatever else is known
SMALLEST = 1e-150  # the square of a smaller number loses digits
FARTHEST = 1e100  # units of its column from the origin, beyond which the score of a row may overflow
RESOLVED = 4.0 * float(np.finfo(np.float64).eps)  # of its mean: a column that spreads less than this is constant
LOST = 1e-3  # nats that the score of a row may lose to rounding
SPARSE_SHARE = 6  # a sparse product beats the dense one where fewer than one in six statistics of a row are not zero


@dataclass(frozen=True)
class Sample:
    """Rows that stand for the data, from which `Likelihood.resolve` scales priors, and facts of all of it.

    Attributes
    ----------
    X : (n, D) float64, missing values as NaN; or CSR
    weights : (n,)
    missing : (D,) bool, the columns with missing values anywhere in the data
    largest : (D,) the largest value of each column anywhere in the data
    names : the names of the columns, where they have any
    levels : the names of the levels of columns that hold their codes, by the number of the column
    """

    X: Rows
    weights: Array
    missing: NDArray[np.bool_]
    largest: Array
    names: Sequence[str] | None = None
    levels: Mapping[int, Sequence[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, X: Rows, weights: Array | None = None) -> "Sample":
        """Rows that are all of the data."""
        weights = np.ones(X.shape[0]) if weights is None else weights
        if sparse.issparse(X):
            return cls(X, weights, np.zeros(X.shape[1], np.bool_), np.asarray(X.max(axis=0).todense()).ravel())
        X = np.asarray(X, dtype=np.float64)
        return cls(X, weights, np.isnan(X).any(axis=0), np.fmax.reduce(X, axis=0))

    @property
    def D(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    def mean(self) -> Array:
        """Weighted mean of the observed values of each column, (D,); zero where there are none."""
        if sparse.issparse(self.X):
            return self._average(self.X)
        first = self._first()
        return np.asarray(first + self._average(self.X - first))  # an offset in the data costs no precision

    def median(self) -> Array:
        """Weighted median of the observed values of each column of dense rows, (D,); zero where there are none."""
        order = np.argsort(self.X, axis=0, kind="stable")
        ranked = np.take_along_axis(self.X, order, axis=0)
        weights = np.where(np.isnan(ranked), 0.0, self.weights[order]).cumsum(axis=0)
        middle = (weights < 0.5 * weights[-1]).sum(axis=0)
        return np.asarray(np.nan_to_num(np.take_along_axis(ranked, middle[None], axis=0)[0]))

    def deviation(self, center: Array) -> Array:
        """Weighted standard deviation of each column of dense rows about ``center``, (D,); zero for constant columns.

        A column is constant if it spreads less than rounding can tell.

        Raises
        ------
        ValueError : a column varies, but so little that squares of its deviations would underflow.
        """
        away = np.abs(self.X - center)
        size = np.fmax.reduce(away, axis=0, initial=0.0)
        scale = np.where(size > 0.0, size, 1.0)
        deviation = scale * np.sqrt(self._average((away / scale) ** 2))
        varies = deviation > RESOLVED * np.abs(center)
        lost = np.flatnonzero(varies & (deviation < SMALLEST))
        if len(lost):
            column = f"column {lost[0]}" + ("" if self.names is None else f" ({self.names[lost[0]]!r})")
            raise ValueError(
                f"{column} has a standard deviation of {deviation[lost[0]]:.3g}, too small to be squared. "
                "Multiply the column by a constant first."
            )
        return np.asarray(np.where(varies, deviation, 0.0))

    def spread(self, center: Array) -> Array:
        """The `deviation` of each column about ``center``, (D,); 1 for constant columns."""
        deviation = self.deviation(center)
        return np.where(deviation > 0.0, deviation, 1.0)

    def take(self, columns: NDArray[np.integer]) -> "Sample":
        """The sample of some of the columns."""
        names = None if self.names is None else [self.names[d] for d in columns]
        levels = {j: self.levels[d] for j, d in enumerate(columns) if d in self.levels}
        return Sample(self.X[:, columns], self.weights, self.missing[columns], self.largest[columns], names, levels)

    def _average(self, values: Any) -> Array:
        weights = self.weights / self.weights.sum()
        if sparse.issparse(values):
            return np.asarray(values.T @ weights)
        seen = ~np.isnan(values)
        if seen.all():
            return np.asarray(np.average(values, axis=0, weights=weights))
        total = weights @ seen
        return np.asarray(weights @ np.where(seen, values, 0.0) / np.where(total > 0.0, total, 1.0))

    def _first(self) -> Array:
        """The first observed value of each column of dense rows, (D,); zero where there are none."""
        if not len(self.X):
            return np.zeros(self.D)
        rows = np.argmin(np.isnan(self.X), axis=0)
        return np.asarray(np.nan_to_num(self.X[rows, np.arange(self.D)]))


class Size(NamedTuple):
    """Of how many numbers a family makes do, before anything is made.

    statistics : F;  entries : the features of a dense row;  update : what a global step makes of each cluster beside S and W
    prior : the prior, while it is made
    """

    statistics: int
    entries: int
    update: int
    prior: int

    @classmethod
    def of_columns(cls, F: int) -> "Size":
        """Of a family whose parameters are a few numbers for each of F statistics."""
        return cls(F, F, 8 * F, 8 * F)


class Profile(NamedTuple):
    """What rows of each cluster look like: mean and variance of the values that describe a row, for people to read.

    columns : (J,) which column of the data each value belongs to
    levels : (J,) which level of the column the value stands for, or -1 where it is the column itself
    means, variances : (K, J) under each cluster
    chances : whether the values are chances, (J,)
    """

    columns: NDArray[np.integer]
    levels: NDArray[np.integer]
    means: Array
    variances: Array
    chances: NDArray[np.bool_]

    @classmethod
    def of_columns(cls, means: Array, variances: Array, chances: bool = False) -> "Profile":
        """One value per column."""
        D = means.shape[1]
        return cls(np.arange(D), np.full(D, -1), means, variances, np.full(D, chances))


@dataclass(frozen=True, eq=False)  # fields that are arrays cannot be compared by ==
class Likelihood(ABC):
    """An exponential family with its conjugate prior: ``p(x | phi) = h(x) exp(phi . t(x) - c(phi))`` (Thesis 2.2).

    A likelihood is a frozen dataclass whose fields are the hyperparameters of the prior.  Fields left at None are given
    values by `resolve`, from the data.  Everything learnt is held outside, in the counts N (K,) and summed statistics
    S (K, F) of the clusters, and every method is a pure function of them.

    Attributes
    ----------
    takes_sparse : whether rows may come as CSR; its features are then CSR too
    takes_missing : whether values may be missing in some columns
    takes_negative : whether values may be negative
    domain : in words, the values that rows may hold
    tunable : the hyperparameters, positive numbers or arrays, that empirical Bayes multiplies by a factor
    """

    takes_sparse: ClassVar[bool] = False
    takes_missing: ClassVar[bool] = False
    takes_negative: ClassVar[bool] = True
    domain: ClassVar[str] = "finite numbers"
    tunable: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def resolve(self, sample: Sample) -> Self:
        """This likelihood with every hyperparameter a number or array, scaled from a sample of the data.

        What is given, or resolved already, stays as it is: resolving twice changes no hyperparameter.
        """

    @property
    @abstractmethod
    def n_statistics(self) -> int:
        """F, the length of t(x)."""

    @abstractmethod
    def features(self, X: Rows, out: Any) -> Any:
        """Sufficient statistics T = [t(x_1) ... t(x_n)]: written to ``out`` (n, F) and returned; without it, as CSR."""

    @abstractmethod
    def log_base(self, X: Rows) -> Array:
        """Log base measure log h(x_n), (n,)."""

    @abstractmethod
    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """W = E_q[phi] (K, F) and b = -E_q[c(phi)] (K,), so that E_q[log p(x_n | phi_k)] = log h + t(x_n) . W_k + b_k.

        The search also asks for the weights of statistics a little beyond those of any rows: they must be finite, or a
        FloatingPointError refuses the attempt.
        """

    @abstractmethod
    def log_marginal(self, N: Array, S: Array) -> Array:
        """Log marginal likelihood of each cluster's data, without base measure: logZ(posterior) - logZ(prior), (K,)."""

    @abstractmethod
    def divergence(self, X: Rows, centers: Rows) -> Array:
        """Bregman divergence (n, J) of rows X from rows ``centers``, both smoothed by the prior (Thesis Alg. 2.2)."""

    @abstractmethod
    def posterior(self, N: Array, S: Array) -> Any:
        """Posterior means of the parameters, a NamedTuple of arrays with a leading cluster axis, in units of the data."""

    @abstractmethod
    def profile(self, N: Array, S: Array) -> Profile:
        """Mean and variance, under each cluster, of the values that describe a row."""

    @abstractmethod
    def log_predictive(self, X: Rows, N: Array, S: Array) -> Array:
        """Log posterior-predictive density of the observed values of each row under each cluster, (n, K)."""

    @abstractmethod
    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` rows (size, D) from the posterior predictive of one cluster."""

    # What most families need not change ------------------------------------------------------------------------------

    def locate(self, names: Sequence[str] | None, D: int) -> Self:
        """This likelihood with columns that were given by name as numbers, for a table of D columns."""
        return self

    def size(self, missing: NDArray[np.bool_], largest: Array) -> Size:
        """How large it will be for a table, of which the columns with missing values and the largest values are known, (D,)."""
        return Size.of_columns(2 * len(largest))

    @property
    def row_entries(self) -> int:
        """The most statistics of a dense row that are not zero; where they are few, features come as CSR."""
        return self.n_statistics

    def valid(self, X: Array) -> NDArray[np.bool_]:
        """Which values of X (n, D), or which stored values of CSR rows (m,), may be used."""
        return np.asarray(np.abs(X) <= np.minimum(self.largest, float(np.finfo(X.dtype).max)).astype(X.dtype))

    @property
    def largest(self) -> Any:
        """The largest size of a value, a number or (D,): its square, in units of the column too, must not overflow."""
        return LARGEST

    def may_miss(self, D: int) -> NDArray[np.bool_]:
        """The columns (D,) in which values may be missing, because they can be integrated out exactly."""
        return np.zeros(D, np.bool_)

    def nominal(self, D: int) -> NDArray[np.bool_]:
        """The columns (D,) that may hold codes of categories."""
        return np.zeros(D, np.bool_)

    def takes_targets(self) -> bool:
        """Whether its last columns are targets, which may also come apart from the others, as y."""
        return False

    def describes(self, D: int) -> NDArray[np.bool_]:
        """The columns (D,) whose values have a distribution; the others are given, such as the x of a regression."""
        return np.ones(D, np.bool_)

    def with_missing(self, missing: NDArray[np.bool_], S: Array) -> tuple[Self, Array]:
        """This likelihood and statistics S for data in which values of the columns ``missing`` (D,) may be missing."""
        return self, S

    def complete(self, X: Array, N: float, S: Array, rng: np.random.Generator) -> Array:
        """Rows X (n, D) with the columns that this family `describes` drawn anew from one cluster, given the others."""
        return self.sample(N, S, rng, len(X))

    def impute(self, X: Array, R: Array, N: Array, S: Array) -> Array:
        """Rows X (n, D) with their missing values filled in, given responsibilities R (n, K)."""
        return X

    def tunables(self) -> list[str]:
        """The names of the hyperparameters that `scaled` takes."""
        return list(self.tunable)

    def scaled(self, name: str, factor: float) -> Self:
        """This likelihood with one of its `tunable` hyperparameters multiplied by a factor."""
        return replace(self, **{name: getattr(self, name) * factor})

    # What comes from a file ------------------------------------------------------------------------------------------

    def resolved_columns(self) -> int | None:
        """The number of columns of the data that this was resolved for, by its arrays, or None where they do not tell."""
        return None

    def check(self, D: int, N: Array, S: Array) -> None:
        """Raise a ValueError unless data of D columns can have given this resolved likelihood, and N (K,) and S (K, F).

        It is for models from files, where nothing is believed: the sizes of arrays that are there are compared before any
        other is made, and all hyperparameters pass `resolve` once more.
        """
        known, F = self.resolved_columns(), self.n_statistics
        family = type(self).__name__
        if known != D and not (known is None and max(F, FEW_COLUMNS) >= D):
            raise ValueError(f"a {family} for {F if known is None else known} columns does not fit {D} columns.")
        if S.shape != (len(N), F):
            raise ValueError(f"statistics of shape {S.shape} do not fit {len(N)} clusters of a {family} with {F} each.")
        expected = self.resolve(Sample.of(self._rows_like_those_of_the_fit(D)))
        for f in fields(self):
            own, wanted = getattr(self, f.name), getattr(expected, f.name)
            if not _is_like(own, wanted) or (f.repr and not np.array_equal(own, wanted)):  # others are made from data
                raise ValueError(f"the {family}'s {f.name} does not fit {D} columns; got {own!r:.80}.")
        self.check_sums(N, S)

    def _rows_like_those_of_the_fit(self, D: int) -> Array:
        """Two rows (2, D) about the origin, a unit away, where this likelihood has such: hyperparameters are judged by them."""
        origin, unit = (getattr(self, name, None) for name in ("origin", "unit"))
        if origin is None and unit is None:
            return np.ones((2, D))
        center = np.broadcast_to(0.0 if origin is None else origin, (D,))
        step = np.broadcast_to(np.maximum(1.0, np.abs(center)) if unit is None else unit, (D,))
        rows = np.stack([center - step, center + step])
        return rows if (np.abs(rows) <= LARGEST).all() else np.ones((2, D))

    def check_sums(self, N: Array, S: Array) -> None:
        """Raise a ValueError where what `resolve` makes from data, or the counts N and statistics S, are impossible."""
        require(bool(np.isfinite(S).all()), "S", S, "finite")

    def refuse(self, value: float, column: int, where: str) -> NoReturn:
        """Raise a ValueError for a value of a column that is not `valid`."""
        family = type(self).__name__
        if np.isnan(value):
            what, cure = "NaN", f"Drop or fill such rows first; {family} cannot use missing values there."
        elif np.isinf(value):
            what, cure = "infinity", "Drop or fill such rows first."
        elif abs(value) > LARGEST:
            what, cure = f"{value}, a value too large to be squared", "Divide the column by a constant first."
        elif abs(value) > (limit := np.ravel(self.largest)[column if np.ndim(self.largest) else 0]):
            what, cure = f"{value:g}, a value too far from the data of the fit", f"Leave out values beyond {limit:.3g}."
        else:
            what, cure = f"{value:g}", f"{family} takes {self.domain}."
        negative = "Negative values in data: " if value < 0.0 and not self.takes_negative else ""
        raise ValueError(f"{negative}Input X contains {what}: {where}. {cure}")


def prefers_sparse(likelihood: Likelihood) -> bool:
    """Whether the features of dense rows are better made as CSR."""
    return likelihood.row_entries * SPARSE_SHARE < likelihood.n_statistics


def entries(likelihood: Likelihood, row_size: int) -> int:
    """Numbers in the features of a row of ``row_size`` stored numbers."""
    if likelihood.takes_sparse:
        return min(row_size, likelihood.n_statistics)
    return likelihood.row_entries if prefers_sparse(likelihood) else likelihood.n_statistics


def features(likelihood: Likelihood, X: Rows, dtype: Any = np.float64, out: Array | None = None) -> Any:
    """All features of rows X at once, in the given precision: in ``out`` or a fresh array, or CSR where these are sparse."""
    X = X.astype(dtype, copy=False)
    if sparse.issparse(X) or prefers_sparse(likelihood):
        return likelihood.features(X, None)
    return likelihood.features(X, np.empty((len(X), likelihood.n_statistics), dtype) if out is None else out)


def largest_terms(dtype: Any) -> float:
    """The largest terms of a score, in nats, whose rounding errors in this precision stay below `LOST`."""
    return LOST / (0.5 * float(np.finfo(dtype).eps))


def column_number(which: Any, names: Sequence[str] | None, D: int) -> int:
    """The number of a column given by number or name."""
    if isinstance(which, str):
        if names is None or which not in list(names):
            listed = "the table has no names" if names is None else f"there are {', '.join(map(str, names))}"
            raise ValueError(f"there is no column {which!r}: {listed}.")
        return list(names).index(which)
    if isinstance(which, (bool, np.bool_)) or not isinstance(which, (int, np.integer)):
        raise ValueError(f"columns are given by name or number; got {which!r:.80}.")
    number = int(which)
    if not -D <= number < D:
        raise ValueError(f"there is no column {which!r:.80}: the table has {D}.")
    return number % D


def farthest(origin: Any, unit: Any) -> Any:
    """The largest size of values (D,) that are not too far from ``origin``, in ``unit``, for their squares; unknown: any."""
    if unit is None:
        return LARGEST
    return np.minimum(LARGEST, np.maximum(2.0 * np.abs(origin), FARTHEST * np.asarray(unit)))


def require(condition: bool, name: str, value: Any, wanted: str) -> None:
    """Raise a ValueError that names the hyperparameter, its value and what it must be."""
    if not condition:
        raise ValueError(f"{name} must be {wanted}; got {value!r}.")


def column_values(name: str, value: Any, D: int) -> Array:
    """A hyperparameter given as a scalar or per column, as a finite (D,) float64 array."""
    values = hyperparameter(name, value)
    require(
        values.ndim <= 1 and values.size in (1, D), name, value, f"a number or an array of {D} numbers, one per column"
    )
    require(bool(np.isfinite(values).all()), name, value, "finite")
    return np.array(np.broadcast_to(values, (D,)))


def positive_values(name: str, value: Any, D: int) -> Array:
    """A positive hyperparameter given as a scalar or per column, as a (D,) float64 array."""
    values = column_values(name, value, D)
    require(bool((values > 0.0).all()), name, value, "positive")
    return values


def positive(name: str, value: Any) -> float:
    """A positive, finite hyperparameter."""
    number = hyperparameter(name, value)
    require(number.ndim == 0 and bool(np.isfinite(number) and number > 0.0), name, value, "a positive number")
    return float(number)


def hyperparameter(name: str, value: Any) -> Array:
    """A number or a nested list of numbers as a float64 array; text, truth values and numbers beyond floats are refused."""
    try:
        given = np.asarray(value)
        if given.dtype == object and given.size and all(isinstance(v, Real) for v in given.ravel().tolist()):
            given = given.astype(np.float64)
    except (ValueError, OverflowError):
        given = np.array(None)
    fits = given.dtype.kind in "fiu" and not np.ma.is_masked(value)
    if not fits:
        shown = repr(value) if not isinstance(value, int) or isinstance(value, bool) else "an int beyond floats"
        raise ValueError(f"{name} must be a number, or numbers; got {shown[:80]}.")
    return np.asarray(given, dtype=np.float64)


def check_between(name: str, sums: Array, most: Array | float = np.inf) -> None:
    """Refuse sums (K, ...) of clusters outside [0, most] by more than rounding."""
    slack = ROUNDED * (1.0 + np.abs(sums).sum(axis=0))
    fine = (sums >= -slack) & (sums <= most + slack) & np.isfinite(sums)
    if not fine.all():
        raise ValueError(f"{name} are impossible: one is {float(sums[~fine][0]):g}.")


def check_coordinates(origin: Any, unit: Any) -> None:
    """Refuse origins and units of working coordinates that are not finite, or units that cannot be squared."""
    require(bool(np.isfinite(origin).all()), "origin", origin, "finite")
    units = np.asarray(unit)
    fine = (units >= 1.0 / LARGEST) & (units <= LARGEST)
    require(bool(fine.all()), "unit", unit, f"from {1.0 / LARGEST:g} to {LARGEST:g}")


def _is_like(value: Any, other: Any) -> bool:
    """Whether two values are of the same type of numbers and shape."""
    if value is None or other is None:
        return value is other
    one, two = np.asarray(value), np.asarray(other)
    return one.dtype == two.dtype and one.shape == two.shape
