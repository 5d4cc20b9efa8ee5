"""Columns of positive numbers on the log scale, with any family of measurements."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from ._around import Around
from ._base import Array, Likelihood
from ._column_names import column_numbers
from ._hyperparameters import LARGEST, SMALLEST, require
from ._missing_cells import MissingCells
from ._profile import Profile
from ._sample import Sample
from ._size import Size
from .gaussian import Gaussian

WIDEST = 0.5  # of a value: half its step is at most so much of it, as of whole multiples of the step
MOST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class LogScale(Around):
    """A family of measurements, such as `Gaussian`, with some columns on the log scale: log-normal, for positive numbers.

        p(x | phi) = p_family(g(x) | phi) prod_d 1 / x_d,    g = log in the columns d on the log scale, else the identity

    so that statistics are those of the family for g(x), and bounds and densities are those of x: they compare with those of
    the family for x itself.  Missing values are missing on either scale.

    A value x that was rounded to steps of width w stands for values whose logarithms v are spread evenly over its step, from
    log (x - w/2) to log (x + w/2).  With r = w / (2 x), at most 1/2, and h = artanh r,

        v = log x + log(1 - r^2) / 2 on average,  with variance h^2 / 3,
        E[log p_family(v)] + log(2 h / w)  <=  log( P(step of x) / w )

    so that no cluster is narrower than rounding can tell, and the bound is one on the probability of the steps.

    Parameters
    ----------
    family : likelihood of measurements, default Gaussian()
        Its hyperparameters are on the log scale: the mean of log x, and variances of it, which have no unit.
    columns : number, name, or a list or mask of them, default all
        The columns on the log scale, from 1e-150 to 1e150.

    Notes
    -----
    The posterior, ``means_`` and ``covariances_`` say, is that of g(x).  Profiles, and missing values filled in, are in units
    of the data: m and s^2 of log x give the mean exp(m + s^2 / 2) and the variance (exp(s^2) - 1) exp(2 m + s^2).

    Examples
    --------
    >>> from stickbreak.likelihoods import DiagonalGaussian, LogScale
    >>> likelihood = LogScale(DiagonalGaussian(), columns=["income", "price"])

    References
    ----------
    Gelman et al., Bayesian Data Analysis, 3.2 and 3.5 (transformed and rounded observations).
    """

    takes_missing: ClassVar[bool] = True
    domain: ClassVar[str] = f"positive numbers, from {SMALLEST:g} to {LARGEST:g}, in columns on the log scale"

    family: Likelihood = Gaussian()
    columns: Any = None
    n_columns: Any = field(default=None, repr=False)
    steps: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        fits = isinstance(self.family, Likelihood) and self.family.measures
        require(fits, "family", self.family, "a likelihood of measurements, such as Gaussian() or DiagonalGaussian()")

    def locate(self, names: Sequence[str] | None, D: int) -> Self:
        """With the columns on the log scale as numbers."""
        family = self.family.locate(names, D)
        known = column_numbers(slice(None) if self.columns is None else self.columns, names, D)
        require(len(known) > 0, "columns", self.columns, "at least one column")
        require(len(np.unique(known)) == len(known), "columns", self.columns, "columns that differ")
        describes = bool(family.describes(D).all())
        require(describes, "family", self.family, "one that describes all columns, not some of them given others")
        return replace(self, family=family, columns=known, n_columns=D)

    def resolve(self, sample: Sample) -> Self:
        """Resolve the family on the sample on the log scale."""
        draft = self.locate(sample.names, sample.D)
        columns = draft.columns
        steps: Array = np.zeros(len(columns))
        if self.family.rounds:
            steps = sample.take(columns).resolution()
            steps[~replace(sample, X=draft.rows_of(sample.X)).take(columns).varies()] = np.inf
        draft = replace(draft, steps=steps)
        known = np.full(sample.D, np.nan)
        known[columns] = np.where(np.isinf(steps), np.inf, 0.0)  # the features say what rounding has taken
        largest, smallest = draft.rows_of(np.stack([sample.largest, sample.smallest]))
        logs = replace(sample, X=draft.rows_of(sample.X), largest=largest, smallest=smallest, steps=known)
        return replace(draft, family=self.family.resolve(logs))

    def size(self, missing: NDArray[np.bool_], largest: Array) -> Size:
        """The size of the family."""
        return self.family.size(missing, largest)

    @property
    def portable(self) -> bool:
        """No."""
        return False

    def features(self, X: Array, out: Array) -> Array:
        """T (n, F): the features of the family for the rows on the log scale, with the variances of rounded values."""
        T: Array = self.family.features(self.rows_of(X), out)
        if self._rounded.any():
            variances = np.zeros(X.shape)
            variances[:, self._columns] = np.nan_to_num(self._half_widths(X) ** 2 / 3.0)
            self.family.spread_out(T, variances)
        return T

    def log_base(self, X: Array) -> Array:
        """Log h of the family less sum_d log x_d over the observed columns on the log scale, (n,)."""
        return np.asarray(super().log_base(X) + self._log_jacobian(X))

    def profile(self, N: Array, S: Array) -> Profile:
        """Mean and variance of each column, in units of the data: those of log-normals with the family's moments of log x."""
        profile = super().profile(N, S)
        logs = self._columns
        m = profile.means[:, logs]
        s2 = profile.variances[:, logs]
        means, variances = (values.astype(np.float64) for values in (profile.means, profile.variances))
        with np.errstate(over="ignore"):
            means[:, logs] = np.exp(m + 0.5 * s2)
            variances[:, logs] = np.exp(2.0 * m + s2 + np.log(np.maximum(np.expm1(s2), SMALLEST)))
        return profile._replace(means=np.minimum(means, LARGEST), variances=np.minimum(variances, MOST))

    def log_predictive(self, X: Array, N: Array, S: Array) -> Array:
        """Log predictive density of the family on the log scale less sum_d log x_d, (n, K)."""
        return np.asarray(super().log_predictive(X, N, S) + self._log_jacobian(X)[:, None])

    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` rows (size, D): exponentials of the family's draws in the columns on the log scale."""
        drawn = super().sample(N, S, rng, size)
        limits = np.log(SMALLEST), np.log(LARGEST)
        drawn[:, self._columns] = np.exp(np.clip(drawn[:, self._columns], *limits))
        return drawn

    def complete(self, X: Array, N: float, S: Array, rng: np.random.Generator) -> Array:
        """Rows drawn anew: the family describes all columns."""
        return self.sample(N, S, rng, len(X))

    @property
    def largest(self) -> float:
        """As of most families: values in columns on the log scale may be far from the data of the fit."""
        return LARGEST

    def valid(self, X: Array) -> NDArray[np.bool_]:
        """What the family allows; on the log scale numbers from 1e-150 to 1e150."""
        usable = X.astype(np.float64)
        values = usable[:, self._columns]
        inside = np.isnan(values) | ((values >= SMALLEST) & (values <= LARGEST))
        usable[:, self._columns] = np.where(inside, values, 1.0)
        fine = self.family.valid(self.rows_of(usable))
        fine[:, self._columns] &= inside
        return fine

    def refuse(self, value: float, column: int, where: str) -> NoReturn:
        """Raise a ValueError for a value of a column that is not `valid`."""
        if column not in self._columns:
            self.family.refuse(value, column, where)
        Likelihood.refuse(self, value, column, where)

    def measured(self, D: int) -> NDArray[np.bool_]:
        """The columns that are not on the log scale."""
        own = self.family.measured(D)
        own[self._columns] = False
        return own

    def impute(self, X: Array, R: Array, N: Array, S: Array) -> Array:
        """As the family; on the log scale the means of log-normals: of the `profile`, or given the observed values."""
        filled = np.array(self.family.impute(X, R, N, S))
        logs = self._columns
        means = R @ self.profile(N, S).means[:, logs]
        if isinstance(self.family, MissingCells):
            given = self.family.given_observed(self.rows_of(X), N, S)
            with np.errstate(over="ignore"):
                each = [np.exp(m[:, logs] + 0.5 * s2[:, logs]) for m, s2 in given]
            means = np.einsum("nk,knj->nj", R, np.minimum(each, LARGEST))
        filled[:, logs] = np.where(np.isnan(X[:, logs]), means, X[:, logs])
        return filled

    def anew(self) -> Self:
        """The family anew, with the same columns on the log scale."""
        return type(self)(self.family.anew(), columns=self.columns)

    def simpler(self, missing: NDArray[np.bool_]) -> Self | None:
        """A simpler family with the same columns on the log scale."""
        family = self.family.simpler(missing)
        return None if family is None else replace(self, family=family)

    def continued(self, names: Sequence[str], other: Likelihood) -> Self:
        """With hyperparameters of another's family, where the same columns are on the log scale."""
        if not isinstance(other, LogScale) or not np.array_equal(self.columns, other.columns):
            return self
        return super().continued(names, other.family)

    def check(self, D: int, N: Array, S: Array) -> None:
        """Check the columns on the log scale and their steps, and the family."""
        require(self.n_columns == D, "n_columns", self.n_columns, f"{D}, as the table has")
        columns = self.columns
        known = isinstance(columns, np.ndarray) and columns.ndim == 1 and columns.dtype.kind in "iu"
        require(known and bool((columns >= 0).all()), "columns", columns, "an array of numbers of at least 0")
        self.locate(None, D)
        steps = np.asarray(self.steps)
        fits = steps.shape == columns.shape and steps.dtype == np.float64 and bool((steps >= 0.0).all())
        require(fits, "steps", self.steps, f"{len(columns)} numbers of at least 0")
        self.family.check(D, N, S)

    @property
    def _columns(self) -> NDArray[np.intp]:
        """The columns on the log scale."""
        if self.n_columns is None:
            raise TypeError("this likelihood has no data yet; call locate or resolve first.")
        return np.asarray(self.columns)

    @property
    def _rounded(self) -> NDArray[np.bool_]:
        """Which columns on the log scale hold rounded values."""
        steps = np.zeros(len(self._columns)) if self.steps is None else np.asarray(self.steps)
        return (steps > 0.0) & np.isfinite(steps)

    def _shares(self, X: Array) -> Array:
        """The r of each value on the log scale (n, J): half its step, as a share of it."""
        shares = np.zeros((len(X), len(self._columns)))
        rounded = self._rounded
        if rounded.any():
            shares[:, rounded] = np.minimum(self.steps[rounded] / (2.0 * X[:, self._columns[rounded]]), WIDEST)
        return shares

    def _half_widths(self, X: Array) -> Array:
        """The h of each value on the log scale (n, J): half the width of the step of its logarithm."""
        return np.arctanh(self._shares(X))

    def rows_of(self, X: Array) -> Array:
        """Rows g(x) (n, D) in float64: the middle of the step of log x in the columns on the log scale."""
        Z = X.astype(np.float64)
        Z[:, self._columns] = np.log(Z[:, self._columns])
        if self._rounded.any():
            Z[:, self._columns] += 0.5 * np.log1p(-(self._shares(X) ** 2))
        return Z

    def _log_jacobian(self, X: Array) -> Array:
        """Sum of log(2 h / w), or -log x where values are as they are, over the observed values that vary, (n,)."""
        live = ~np.isinf(self.steps)
        each = -np.log(X[:, self._columns].astype(np.float64))
        if self._rounded.any():
            r = self._shares(X)
            each += np.log(np.divide(self._half_widths(X), r, out=np.ones_like(r), where=r > 0.0))
        return np.asarray(np.where(live & ~np.isnan(each), each, 0.0).sum(axis=1))
