"""What a likelihood must say: its features, its weights, its marginal likelihood and how to show itself."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from ._hyperparameters import LARGEST, require
from ._latent import Latent
from ._rows import Rows
from ._sample import Sample

Array = NDArray[np.floating]

FEW_COLUMNS = 1024  # a table may always have this many


class Size(NamedTuple):
    """How many numbers a family needs, known before anything is allocated.

    statistics : F;  entries : the features of a dense row;  update : those a global step makes for each cluster beside S and W
    prior : the prior, while it is made
    """

    statistics: int
    entries: int
    update: int
    prior: int

    @classmethod
    def of_columns(cls, F: int) -> "Size":
        """The size of a family with a few parameters for each of F statistics."""
        return cls(F, F, 5 * F, 8 * F)


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
    """An exponential family with its conjugate prior: ``p(x | phi) = h(x) exp(phi' t(x) - c(phi))`` (Thesis 2.2).

    A likelihood is a frozen dataclass whose fields are the hyperparameters of the prior.  Fields left at None are given
    values by `resolve`, from the data.  Everything learnt is held outside, in the counts N (K,) and summed statistics
    S (K, F) of the clusters, and every method is a pure function of them.

    Attributes
    ----------
    takes_sparse : whether rows may come as CSR; its features are then CSR too
    takes_missing : whether values may be missing in some columns
    takes_negative : whether values may be negative
    domain : in words, the values that rows may hold
    measures : whether columns are numbers on a scale, modelled by their mean and variance
    rounds : whether tied values count as spread over their steps, of which `spread_out` adds the variances
    tunable : the hyperparameters, positive numbers or arrays, that can be learnt: empirical Bayes multiplies them by a factor
    strength : those of them that grow together when the prior is to count for more rows
    """

    takes_sparse: ClassVar[bool] = False
    takes_missing: ClassVar[bool] = False
    takes_negative: ClassVar[bool] = True
    domain: ClassVar[str] = "finite numbers"
    measures: ClassVar[bool] = False
    rounds: ClassVar[bool] = False
    tunable: ClassVar[tuple[str, ...]] = ()
    strength: ClassVar[tuple[str, ...]] = ()

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
        """Its size for a table with the given columns with missing values and largest values, (D,) each."""
        return Size.of_columns(2 * len(largest))

    @property
    def row_entries(self) -> int:
        """The most statistics of a dense row that are not zero; where they are few, features come as CSR."""
        return self.n_statistics

    def valid(self, X: Array) -> NDArray[np.bool_]:
        """Which values of X (n, D), or which stored values of CSR rows (m,), may be used."""
        return np.asarray(np.abs(X) <= np.minimum(self.largest, float(np.finfo(X.dtype).max)).astype(X.dtype))

    def known(self, X: Any) -> Any:
        """Rows X (n, D) with missing values for codes of levels that this likelihood does not have."""
        return X

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

    def measured(self, D: int) -> NDArray[np.bool_]:
        """The columns (D,) that are numbers on a scale, modelled by their mean and variance."""
        return np.full(D, self.measures)

    def compositional(self, D: int) -> NDArray[np.bool_]:
        """The columns (D,) that are parts of a whole, such as the words of a document, rather than variables."""
        return np.zeros(D, np.bool_)

    def takes_targets(self) -> bool:
        """Whether its last columns are targets, which may also come apart from the others, as y."""
        return False

    def describes(self, D: int) -> NDArray[np.bool_]:
        """The columns (D,) whose values have a distribution; the others are given, such as the x of a regression."""
        return np.ones(D, np.bool_)

    def has_density(self, D: int) -> NDArray[np.bool_]:
        """The columns (D,) that densities are of, once resolved: a family may set constant ones aside."""
        return np.ones(D, np.bool_)

    @property
    def conjugate(self) -> bool:
        """Whether `log_marginal` is exact; otherwise it is a lower bound, convex in (N, S), and `weights` are its slopes."""
        return True

    @property
    def latent(self) -> Latent | None:
        """The latent variables of its rows, one in each cluster; None where rows have none."""
        return None

    def row_counts(self, N: Array, S: Array) -> Array:
        """The rows of each cluster, (K,): the counts, unless these are of groups of rows."""
        return N

    @property
    def apart(self) -> float:
        """Nats that merges of two clusters lose which both are named in advance: no data make good for these."""
        return 0.0

    @property
    def plain(self) -> "Likelihood":
        """The family of clusters that have no prior of their own."""
        return self

    def named(self, S: Array) -> NDArray[np.bool_]:
        """Which clusters, with statistics S (K, F), are named in advance and stay, also without rows, (K,)."""
        return np.zeros(len(S), np.bool_)

    def names_of(self, S: Array) -> dict[str, int]:
        """The cluster of each name, where some are named in advance."""
        return {}

    def carry(self, source: Array, S: Array) -> None:  # noqa: B027  most have nothing
        """Write to sums S (K, F) what clusters have of their own and no row says, as ``source`` (K, F), W or sums, has it."""

    def inherited(self, N: Array, S: Array, marks: Array) -> Array:
        """Statistics (J, F) of the children of a cluster with statistics (F,), which carry what that did (`carry`)."""
        return S

    def begun(self, N: Array, S: Array, most: int) -> Array:
        """Statistics of a start, with those of clusters that are named in advance and are not among the K; ``most`` in all."""
        return S

    def renamed(self, N: Array, S: Array) -> Array:
        """Statistics with names where they raise the sum of the log marginals most; ``S`` itself where they are."""
        return S

    @property
    def n_plain(self) -> int:
        """How many of its last statistics are not multiplied by the means of latent variables, nor known to these."""
        return 0

    @property
    def portable(self) -> bool:
        """Whether `features` takes arrays of any library that follows the array API, such as CUDA tensors."""
        return False

    def with_missing(self, missing: NDArray[np.bool_], S: Array) -> tuple[Self, Array]:
        """This likelihood and statistics S for data in which values of the columns ``missing`` (D,) may be missing."""
        return self, S

    def complete(self, X: Array, N: float, S: Array, rng: np.random.Generator) -> Array:
        """Rows X (n, D) with the columns that this family `describes` drawn anew from one cluster, given the others."""
        return self.sample(N, S, rng, len(X))

    def impute(self, X: Array, R: Array, N: Array, S: Array) -> Array:
        """Rows X (n, D) with their missing values filled in, given responsibilities R (n, K)."""
        return X

    def anew(self) -> Self:
        """The same family with nothing given, as before it has seen data."""
        return type(self)()

    def simpler(self, missing: NDArray[np.bool_]) -> "Likelihood | None":
        """A family of clusters with fewer parameters for the same columns, or None: what it finds is where this one may start.

        missing : (D,) the columns with missing values
        """
        return None

    def draw_weights(self, N: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """W = phi (K, F) and b = -c(phi) (K,) of parameters drawn from the posterior of each cluster.

        Their means are `weights`.

        Raises
        ------
        TypeError
            If the family draws no parameters: sample with ``Gibbs(kind="collapsed")``, which integrates them out.
        """
        self._refuse_draws()

    def _refuse_draws(self) -> NoReturn:
        raise TypeError(f'{type(self).__name__} draws no parameters; use Gibbs(kind="collapsed").')

    def spread_out(self, T: Array, variances: Array) -> None:
        """Add to features T (n, F) what squares have more where values are spread about theirs with ``variances`` (n, D)."""
        raise TypeError(f"{type(self).__name__} takes values as they are.")

    def tunables(self) -> list[str]:
        """The names of the hyperparameters that `scaled` takes."""
        return list(self.tunable)

    def coupled(self) -> list[list[str]]:
        """The groups of their names that `scaled_together` takes."""
        return [list(self.strength)] if self.strength else []

    def not_given(self) -> list[str]:
        """The names of those of the hyperparameters that `resolve` has yet to set."""
        return [name for name in self.tunable if getattr(self, name) is None]

    def scaled_together(self, names: Sequence[str], factor: float) -> Self:
        """This likelihood with one of its hyperparameters, or a `coupled` group of them, multiplied by a factor."""
        scaled = self
        for name in names:
            scaled = scaled.scaled(name, factor)
        return scaled

    def continued(self, names: Sequence[str], other: "Likelihood") -> Self:
        """This likelihood with the hyperparameters ``names`` of another, where that is of the same family."""
        if type(other) is not type(self):
            return self
        return replace(self, **{name: getattr(other, name) for name in names})

    def fitted(self, name: str, N: Array, S: Array) -> Iterator[Self]:
        """This likelihood with a hyperparameter of many numbers fitted to clusters, in ways of which the first may go too far.

        The last is a step of EM, which raises the sum of the log marginals.  No hyperparameter need be fitted.
        """
        return iter(())

    def cost_of_learning(self, name: str, N: Array) -> float:
        """What BIC takes off the bound for a hyperparameter learnt from clusters of N (K,) rows, in nats.

        Half the logarithm of the number of rows for each number that is learnt (Schwarz 1978): one for a factor, all of those
        that are `fitted`.
        """
        return 0.5 * float(np.log(N.sum()))

    @property
    def log_hyperprior(self) -> float:
        """Log prior probability of a choice that is learnt, which the bound counts; numbers that are learnt have none."""
        return 0.0

    def scaled(self, name: str, factor: float) -> Self:
        """This likelihood with one of its `tunable` hyperparameters multiplied by a factor."""
        return replace(self, **{name: getattr(self, name) * factor})

    def ahead(self, before: "Likelihood", step: float) -> Self:
        """This likelihood with what is learnt of `latent` variables moved on by ``step`` times its change since ``before``.

        Latent variables that are held while it is learnt hold it back, too.
        """
        return self

    # What comes from a file ------------------------------------------------------------------------------------------

    def resolved_columns(self) -> int | None:
        """The number of columns that this was resolved for, according to its arrays, or None if they do not tell."""
        return None

    def check(self, D: int, N: Array, S: Array) -> None:
        """Raise a ValueError unless data of D columns can have given this resolved likelihood, and N (K,) and S (K, F).

        It checks models from files, which are not trusted: the sizes of stored arrays are compared before any other array is
        made, and all hyperparameters pass `resolve` once more.
        """
        known = self.resolved_columns()
        F = self.n_statistics
        family = type(self).__name__
        if known != D and not (known is None and max(F, FEW_COLUMNS) >= D):
            raise ValueError(f"a {family} for {F if known is None else known} columns does not fit {D} columns.")
        if S.shape != (len(N), F):
            raise ValueError(f"statistics of shape {S.shape} do not fit {len(N)} clusters of a {family} with {F} each.")
        expected = self.resolve(Sample.of(self._rows_like_those_of_the_fit(D)))
        for f in fields(self):
            own = getattr(self, f.name)
            wanted = getattr(expected, f.name)
            if not _is_like(own, wanted) or (f.repr and not np.array_equal(own, wanted)):  # repr=False: from data
                raise ValueError(f"the {family}'s {f.name} does not fit {D} columns; got {own!r:.80}.")
        self.check_sums(N, S)

    def _rows_like_those_of_the_fit(self, D: int) -> Array:
        """Two rows (2, D), one unit on either side of the origin if the likelihood has these, to check hyperparameters with."""
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
            what = "NaN"
            cure = f"Drop or fill such rows first; {family} cannot use missing values there."
        elif np.isinf(value):
            what = "infinity"
            cure = "Drop or fill such rows first."
        elif abs(value) > LARGEST:
            what = f"{value}, a value too large to be squared"
            cure = "Divide the column by a constant first."
        elif abs(value) > (limit := np.ravel(self.largest)[column if np.ndim(self.largest) else 0]):
            what = f"{value:g}, a value too far from the data of the fit"
            cure = f"Leave out values beyond {limit:.3g}."
        else:
            what = f"{value:g}"
            cure = f"{family} takes {self.domain}."
        negative = "Negative values in data: " if value < 0.0 and not self.takes_negative else ""
        raise ValueError(f"{negative}Input X contains {what}: {where}. {cure}")


def _is_like(value: Any, other: Any) -> bool:
    """Whether two values are of the same type of numbers and shape."""
    if value is None or other is None:
        return value is other
    one = np.asarray(value)
    two = np.asarray(other)
    return one.dtype == two.dtype and one.shape == two.shape
