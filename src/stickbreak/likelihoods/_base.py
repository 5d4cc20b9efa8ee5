"""What a likelihood must say: its features, its weights, its marginal likelihood and how to show itself."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from ._cells import Cells
from ._hyperparameters import LARGEST
from ._latent import Latent
from ._learnt import Learnt
from ._named_clusters import NamedClusters
from ._profile import Profile
from ._rows import Rows
from ._size import Size
from ._stored import Stored

Array = NDArray[np.floating]


@dataclass(frozen=True, eq=False)  # fields that are arrays cannot be compared by ==
class Likelihood(Learnt, NamedClusters, Stored):
    """An exponential family with its conjugate prior: ``p(x | phi) = h(x) exp(phi' t(x) - c(phi))`` (Thesis 2.2).

    A likelihood is a frozen dataclass whose fields are the hyperparameters of the prior.  Fields left at None are given
    values by `resolve`, from the data.  Everything learnt is held outside, in the counts N (K,) and summed statistics
    S (K, F) of the clusters, and every method is a pure function of them.

    Attributes
    ----------
    takes_sparse : whether rows may come as CSR; its features are then CSR too
    takes_missing : whether values may be missing in some columns
    missing_latent : whether these are latent variables of rows (`cells`), which not every kind of data may have
    takes_negative : whether values may be negative
    domain : in words, the values that rows may hold
    measures : whether columns are numbers on a scale, modelled by their mean and variance
    rounds : whether tied values count as spread over their steps, of which `spread_out` adds the variances
    tunable, strength : see `Learnt`
    """

    takes_sparse: ClassVar[bool] = False
    takes_missing: ClassVar[bool] = False
    missing_latent: ClassVar[bool] = False
    takes_negative: ClassVar[bool] = True
    domain: ClassVar[str] = "finite numbers"
    measures: ClassVar[bool] = False
    rounds: ClassVar[bool] = False

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

    def on_own_scale(self, X: Rows) -> Rows:
        """Rows X on the scale on which their clusters are described: as they are."""
        return X

    def divergence_of(self, X: Rows) -> Callable[[Rows], Array]:
        """`divergence` as a function of the centers alone, for many of them in turn; what it needs of X is found once."""
        return partial(self.divergence, X)

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

    def log_marginals_of(self, N: Array, S: Array) -> "Callable[[Likelihood], Array]":
        """`log_marginal` as a function of the likelihood, this one or others with other hyperparameters, for many in turn.

        What it needs of N and S, which stay as they are, is found once.
        """
        return lambda likelihood: likelihood.log_marginal(N, S)

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
        """The columns (D,) in which values may be missing: latent ones, or integrated out exactly."""
        return np.zeros(D, np.bool_)

    def fills_in(self, D: int) -> NDArray[np.bool_]:
        """The columns (D,) in which missing values are latent (`cells`), so that statistics of rows depend on parameters."""
        return self.may_miss(D) & self.missing_latent

    def integrates_out(self, D: int) -> NDArray[np.bool_]:
        """The columns (D,) in which missing values are integrated out exactly, so that any kind of data may have them."""
        return self.may_miss(D) & ~self.fills_in(D)

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

    @property
    def cells(self) -> Cells | None:
        """The missing cells of its rows, which are latent; None where there are none, or columns are independent."""
        return None

    @property
    def hidden(self) -> str | None:
        """What is latent of its rows, in words: their statistics depend on parameters; None if nothing is."""
        if self.latent is not None:
            return "a latent variable for each row"
        return None if self.cells is None else "latent values in place of missing ones"

    def row_counts(self, N: Array, S: Array) -> Array:
        """The rows of each cluster, (K,): the counts, unless these are of groups of rows."""
        return N

    @property
    def plain(self) -> "Likelihood":
        """The family of clusters that have no prior of their own."""
        return self

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

    def continued(self, names: Sequence[str], other: "Likelihood") -> Self:
        """This likelihood with the hyperparameters ``names`` of another, where that is of the same family."""
        if type(other) is not type(self):
            return self
        return replace(self, **{name: getattr(other, name) for name in names})

    def ahead(self, before: "Likelihood", step: float) -> Self:
        """This likelihood with what is learnt of `latent` variables moved on by ``step`` times its change since ``before``.

        Latent variables that are held while it is learnt hold it back, too.
        """
        return self

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
