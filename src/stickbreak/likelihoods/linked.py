"""Groups of rows that are in one cluster: any family, for the sums of the statistics of a group."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse

from ._around import Around
from ._base import Array, Likelihood
from ._hyperparameters import require
from ._rows import Rows
from .features import features
from .labelled import Labelled

BESIDE = 2  # columns of a group beside sums of statistics: how many rows it has, and their log base measure


@dataclass(frozen=True, eq=False)
class Linked(Around):
    """A family for groups of rows, each of which is in one cluster:

        z_g ~ pi,    x_n | z_g = k ~ p(x | phi_k), independently for the rows n of group g

    so the score of a group is the sum of those of its rows, T_g . W_k + m_g b_k with T_g = sum_n t(x_n) and m_g the number of
    its rows.  The number of rows is therefore a statistic, with weight b, and what counts as a row elsewhere is a group:

        t(g) = [T_g, m_g],    weights [W, b],    log marginal of the family at counts M_k = sum_g r_gk m_g

    Counts N_k, which the prior over clusters sees, are numbers of groups.

    Parameters
    ----------
    family : likelihood, resolved, without latent variables
    n_columns : D of single rows
    summed : whether rows are groups, with columns [T_g, m_g, log h(x_g)]; or else rows of D columns, each a group of its own

    References
    ----------
    Shental, Bar-Hillel, Hertz and Weinshall, Computing Gaussian mixture models with EM using equivalence constraints, 2004
    (chunklets); Wagstaff et al., Constrained k-means clustering with background knowledge, 2001 (must-links).
    """

    family: Likelihood
    n_columns: int
    summed: bool = False

    def __post_init__(self) -> None:
        require(isinstance(self.family, Likelihood), "family", self.family, "a likelihood")
        fits = self.family.latent is None and not (self.summed and self.family.cells is not None)
        wanted = "without latent variables of rows, nor missing values in place of which these are"
        require(fits, "family", type(self.family).__name__, wanted)
        require(self.n_columns >= 1, "n_columns", self.n_columns, "at least 1")
        self._take_over()

    # What inference needs ----------------------------------------------------------------------------------------------

    @property
    def n_statistics(self) -> int:
        """F, those of the family and the number of rows."""
        return self.family.n_statistics + 1

    @property
    def row_entries(self) -> int:
        """Those of the family and the number of rows; all of a group."""
        return self.n_statistics if self.summed else self.family.row_entries + 1

    @property
    def portable(self) -> bool:
        """No."""
        return False

    def row_counts(self, N: Array, S: Array) -> Array:
        """M_k, the rows of each cluster, (K,)."""
        return np.asarray(np.maximum(S[:, -1], 0.0))  # extrapolated sums may miss zero

    def _of_family(self, N: Array, S: Array) -> tuple[Array, Array]:
        """The rows of each cluster, and the statistics of the family."""
        return self.row_counts(N, S), S[:, :-1]

    def features(self, X: Rows, out: Array | None) -> Any:
        """T (n, F): sums of groups as they are, or the features of the family and 1."""
        if self.summed:
            assert out is not None
            out[...] = X[:, :-1]
            return out
        if out is None:
            T = features(self.family, X, X.dtype)
            ones = np.ones((T.shape[0], 1), X.dtype)
            return csr_array(hstack([T if issparse(T) else csr_array(T), csr_array(ones)], format="csr"))
        self.family.features(X, out[:, :-1])
        out[:, -1] = 1.0
        return out

    def log_base(self, X: Rows) -> Array:
        """That of the rows, (n,)."""
        return np.array(X[:, -1], np.float64) if self.summed else self.family.log_base(X)

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """[W, b] of the family, and zeros."""
        W, b = super().weights(N, S)
        return np.column_stack([W, b]), np.zeros(len(b))

    def draw_weights(self, N: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """The same of parameters drawn from their posterior."""
        W, b = super().draw_weights(N, S, rng)
        return np.column_stack([W, b]), np.zeros(len(b))

    def divergence(self, X: Rows, centers: Rows) -> Array:
        """Of groups the nats that each loses, in expectation, under the posterior of another in place of its own, (n, J).

        T_x . (W_x - W_c) + m_x (b_x - b_c), not below zero, with the weights that each group alone implies.
        """
        if not self.summed:
            return self.family.divergence(X, centers)
        T, C = (np.asarray(rows[:, :-1], np.float64) for rows in (X, centers))
        own = self.weights(np.ones(len(T)), T)[0]
        other = self.weights(np.ones(len(C)), C)[0]
        return np.asarray(np.maximum((T * own).sum(axis=1)[:, None] - T @ other.T, 0.0))

    def narrowed(self, columns: NDArray[np.bool_], names: Collection[str], N: Array, S: Array) -> Self | None:
        """That of single rows; None for sums of groups, whose columns are not those of rows."""
        return None if self.summed else super().narrowed(columns, names, N, S)

    def log_predictive(self, X: Rows, N: Array, S: Array) -> Array:
        """That of the rows of each group together, given those of each cluster, (n, K)."""
        if not self.summed:
            return super().log_predictive(X, N, S)
        T = np.asarray(X[:, :-1], np.float64)
        now = self.log_marginal(N, S)
        found = [self.log_marginal(N[[k]] + 1.0, S[[k]] + T) - now[k] for k in range(len(S))]
        return np.asarray(np.stack(found, axis=1) + self.log_base(X)[:, None])

    # Columns and files -------------------------------------------------------------------------------------------------

    def with_missing(self, missing: NDArray[np.bool_], S: Array) -> tuple[Self, Array]:
        """The family made for missing values in columns (D,) of rows."""
        return super().with_missing(missing[: self.n_columns], S)

    def resolved_columns(self) -> int:
        """D of single rows."""
        return self.n_columns

    def check(self, D: int, N: Array, S: Array) -> None:
        """Check the family, and that numbers of rows are not negative."""
        wanted = self.n_statistics + 1 if self.summed else self.n_columns
        require(wanted == D, "n_columns", wanted, f"{D}, as the table has")
        shaped = S.ndim == 2 and S.shape == (len(N), self.n_statistics)
        require(shaped, "shape", S.shape, f"that of {len(N)} clusters with {self.n_statistics} statistics")
        require(bool((S[:, -1] >= 0.0).all()), "rows", S[:, -1], "numbers of at least 0")
        self.family.check(self.n_columns, *self._of_family(N, S))


def family_of(likelihood: Likelihood) -> Likelihood:
    """The likelihood of groups, where that is within one with labels."""
    return likelihood.family if isinstance(likelihood, Labelled) else likelihood


def of_rows(likelihood: Likelihood, summed: bool = False) -> Likelihood:
    """The likelihood of groups, also within one with labels, for single rows, or for ``summed`` groups; others as they are."""
    if isinstance(likelihood, Linked):
        return replace(likelihood, summed=summed)
    if not isinstance(likelihood, Labelled) or not isinstance(likelihood.family, Linked):
        return likelihood
    family = replace(likelihood.family, summed=summed)
    width = family.n_statistics + 1 if summed else family.n_columns
    return replace(likelihood, family=family, n_columns=width)
