"""Rows of which some have a class: any family beside a class for each cluster."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp, softmax

from .._sums import check_between
from ._around import Around
from ._arrays import converted, like, namespace
from ._base import Array, Likelihood
from ._hyperparameters import require
from ._rows import Rows
from .features import features, prefers_sparse

FORBIDDEN = 1e8  # nats that a label costs in a cluster of another class, where labels are never wrong
LEAST_ERROR, MOST_ERROR = 1e-4, 0.9  # an error rate that is learnt
OWN = "label_error"  # the name of the error rate among hyperparameters


@dataclass(frozen=True, eq=False)
class Labelled(Around):
    """A family for rows of which some have a label: each cluster has one of C classes.

        c_k ~ Uniform(1, ..., C),    p(y_n | z_n = k) = 1 - e  if y_n = c_k,  e / (C - 1)  otherwise

    with statistics t(x, y) = [t(x), 1(y = 1), ..., 1(y = C)], zero after t(x) where y is unknown.  With n_kc labels of class c
    among the rows of cluster k the posterior of its class is q(c_k = c), in proportion to
    (1 - e)^n_kc (e / (C - 1))^(n_k - n_kc), and the log marginal of the labels is the logarithm of the mean over c of these
    products.  So it is an exponential family whose parameter has C values, and all that holds for families holds with labels.

    With e = 0 a label is a fact: a row with a label is in clusters of its class alone, all of whose labels are alike.  A
    cluster without labels may then take in no row with one, except by a move.

    Rows have a last column, which says the class of each, 1, ..., C, or 0 where it is unknown; without that column all are
    unknown.  Rows with their history, for autoregressive families, have it after each step.

    Parameters
    ----------
    family : likelihood, resolved
    n_columns : the columns of the family, with those of the history
    n_classes : C >= 1
    error : e, from 0 (labels are facts) to below 1
    steps : rows of the data in one row, 1 + lags

    References
    ----------
    Thesis 8.3 (labels beside rows); Wagstaff et al., Constrained k-means clustering with background knowledge, 2001.
    """

    family: Likelihood
    n_columns: int
    n_classes: int
    error: float = 0.0
    steps: int = 1

    def __post_init__(self) -> None:
        require(isinstance(self.family, Likelihood), "family", self.family, "a likelihood")
        require(self.n_columns >= 1, "n_columns", self.n_columns, "at least 1")
        require(self.n_classes >= 1, "n_classes", self.n_classes, "at least 1")
        require(0.0 <= self.error < 1.0, "error", self.error, "from 0 to below 1")
        require(self.steps >= 1 and self.n_columns % self.steps == 0, "steps", self.steps, "a divisor of the columns")
        self._take_over()

    def row_counts(self, N: Array, S: Array) -> Array:
        """Those of the family."""
        return self.family.row_counts(*self._of_family(N, S))

    # Classes -----------------------------------------------------------------------------------------------------------

    def label_counts(self, S: Array) -> Array:
        """n_kc, the labels of each class among the rows of each cluster, (K, C)."""
        return np.maximum(S[:, self.family.n_statistics :], 0.0)  # extrapolated sums may be below zero

    def class_posterior(self, S: Array) -> Array:
        """q(c_k = c), (K, C): uniform for a cluster without labels."""
        return np.asarray(softmax(self._class_scores(S), axis=1))

    def rows_of(self, X: Rows) -> Rows:
        """Rows X without labels, as the family takes them."""
        if X.shape[1] == self.n_columns:
            return X
        if sparse.issparse(X):
            return X[:, : self.n_columns]
        own = X.reshape(len(X), self.steps, -1)[:, :, :-1]
        return np.ascontiguousarray(own.reshape(len(X), self.n_columns))

    def classes_of(self, X: Rows) -> NDArray[np.intp]:
        """The class of each of rows X, 0, ..., C - 1, or -1 where it is unknown, (n,)."""
        if X.shape[1] == self.n_columns:
            return np.full(X.shape[0], -1)
        column = self.n_columns // self.steps
        codes = X[:, [column]].toarray()[:, 0] if sparse.issparse(X) else X[:, column]
        return np.asarray(np.nan_to_num(codes).astype(np.intp) - 1)

    @property
    def _right(self) -> float:
        """Log p(y | c) of a label that is right."""
        return float(np.log1p(-self.error)) if self.n_classes > 1 else 0.0

    @property
    def _wrong(self) -> float:
        """Log p(y | c) of one certain label that is wrong."""
        if self.error == 0.0:
            return -FORBIDDEN
        return float(np.log(self.error) - np.log(max(self.n_classes - 1, 1)))

    def _class_scores(self, S: Array) -> Array:
        """Log of the product of p(y_n | c) over the labels of each cluster, for each class, (K, C)."""
        counts = self.label_counts(S)
        alone = (counts > 0.0) & ((counts > 0.0).sum(axis=1, keepdims=True) == 1)
        others = np.where(alone, 0.0, counts.sum(axis=1, keepdims=True) - counts)  # exactly zero where there are none
        return np.asarray(counts * self._right + others * self._wrong)

    # What inference needs ----------------------------------------------------------------------------------------------

    @property
    def n_statistics(self) -> int:
        """F, those of the family and one for each class."""
        return self.family.n_statistics + self.n_classes

    @property
    def n_plain(self) -> int:
        """The statistics of labels."""
        return self.n_classes

    @property
    def row_entries(self) -> int:
        """Those of the family, and the class."""
        return (self.family.row_entries if prefers_sparse(self.family) else self.family.n_statistics) + 1

    def features(self, X: Rows, out: Any) -> Any:
        """T (n, F): the features of the family, and the class."""
        if not (out is None or isinstance(X, np.ndarray)):
            return self._portable_features(X, out)
        rows = self.rows_of(X)
        classes = self.classes_of(X)
        known = np.flatnonzero(classes >= 0)
        if out is None:
            places = classes[known], np.concatenate([[0], np.cumsum(classes >= 0)])
            ones = np.ones(len(known), X.dtype)
            labels = sparse.csr_array((ones, *places), (X.shape[0], self.n_classes))
            return sparse.csr_array(sparse.hstack([features(self.family, rows, X.dtype), labels], format="csr"))
        F = self.family.n_statistics
        self.family.features(rows, out[:, :F])
        out[:, F:] = 0.0
        out[known, F + classes[known]] = 1.0
        return out

    def _portable_features(self, X: Any, out: Any) -> Any:
        """The same of arrays of any library."""
        xp = namespace(X)
        F = self.family.n_statistics
        if X.shape[1] == self.n_columns:
            self.family.features(X, out[:, :F])
            out[:, F:] = 0.0
            return out
        n = X.shape[0]
        steps = xp.reshape(X, (n, self.steps, -1))
        self.family.features(xp.reshape(steps[:, :, :-1], (n, self.n_columns)), out[:, :F])
        codes = X[:, self.n_columns // self.steps]
        out[:, F:] = converted(codes[:, None] == like(np.arange(1.0, self.n_classes + 1.0), X)[None, :], out.dtype)
        return out

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """W and b of the family, and E_q[log p(y | c_k)] of each label y."""
        W, b = super().weights(N, S)
        q = self.class_posterior(S)
        return np.hstack([W, q * self._right + (1.0 - q) * self._wrong]), b

    def draw_weights(self, N: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """The same of parameters and classes drawn from their posterior."""
        W, b = super().draw_weights(N, S, rng)
        drawn = rng.multinomial(1, self.class_posterior(S)) > 0
        return np.hstack([W, np.where(drawn, self._right, self._wrong)]), b

    def log_marginal(self, N: Array, S: Array) -> Array:
        """That of the family, and of the labels: log of the mean over classes of the products of p(y_n | c), (K,)."""
        labels = logsumexp(self._class_scores(S), axis=1) - np.log(self.n_classes)
        unlabelled = self.label_counts(S).sum(axis=1) == 0.0
        return np.asarray(super().log_marginal(N, S) + np.where(unlabelled, 0.0, labels))

    def divergence(self, X: Rows, centers: Rows) -> Array:
        """That of the family, and for labels that differ the log odds of a right one, (n, J)."""
        one = self.classes_of(X)[:, None]
        other = self.classes_of(centers)
        apart = (one >= 0) & (other >= 0) & (one != other)
        return np.asarray(super().divergence(X, centers) + np.where(apart, max(self._right - self._wrong, 0.0), 0.0))

    def log_predictive(self, X: Rows, N: Array, S: Array) -> Array:
        """That of the family, and the log probability of each label, (n, K)."""
        own = super().log_predictive(X, N, S)
        classes = self.classes_of(X)
        known = classes >= 0
        q = self.class_posterior(S)
        with np.errstate(divide="ignore"):
            labels = np.logaddexp(np.log(q) + self._right, np.log1p(-q) + self._wrong)
        own[known] += labels[:, classes[known]].T
        return own

    # Columns: those of the family --------------------------------------------------------------------------------------

    def may_miss(self, D: int) -> NDArray[np.bool_]:
        """As the family; a column of labels has no missing values."""
        return self._columnwise(self.family.may_miss(self.n_columns), D)

    def fills_in(self, D: int) -> NDArray[np.bool_]:
        """As the family."""
        return self._columnwise(self.family.fills_in(self.n_columns), D)

    def nominal(self, D: int) -> NDArray[np.bool_]:
        """As the family."""
        return self._columnwise(self.family.nominal(self.n_columns), D)

    def measured(self, D: int) -> NDArray[np.bool_]:
        """As the family."""
        return self._columnwise(self.family.measured(self.n_columns), D)

    def compositional(self, D: int) -> NDArray[np.bool_]:
        """As the family."""
        return self._columnwise(self.family.compositional(self.n_columns), D)

    def describes(self, D: int) -> NDArray[np.bool_]:
        """As the family."""
        return self._columnwise(self.family.describes(self.n_columns), D)

    def has_density(self, D: int) -> NDArray[np.bool_]:
        """As the family."""
        return self._columnwise(self.family.has_density(self.n_columns), D)

    def takes_targets(self) -> bool:
        """No: what comes as y are labels."""
        return False

    def with_missing(self, missing: NDArray[np.bool_], S: Array) -> tuple[Self, Array]:
        """The family made for missing values in columns (D,) of rows without labels."""
        return super().with_missing(missing[: self.n_columns], S)

    # Hyperparameters: those of the family, and the error rate, where labels may be wrong -------------------------------

    def tunables(self) -> list[str]:
        """Those of the family, and "label_error" where that is not zero."""
        return [*self.family.tunables(), *([OWN] if self.error > 0.0 else [])]

    def cost_of_learning(self, name: str, N: Array) -> float:
        """That of the family; the error rate is one number."""
        return Likelihood.cost_of_learning(self, name, N) if name == OWN else super().cost_of_learning(name, N)

    def scaled(self, name: str, factor: float) -> Self:
        """With a hyperparameter of the family, or the odds of an error, multiplied by a factor."""
        if name != OWN:
            return super().scaled(name, factor)
        odds = factor * self.error / (1.0 - self.error)
        return replace(self, error=float(np.clip(odds / (1.0 + odds), LEAST_ERROR, MOST_ERROR)))

    def scaled_together(self, names: Sequence[str], factor: float) -> Self:
        """With a group of hyperparameters multiplied by a factor."""
        scaled = self.scaled(OWN, factor) if OWN in names else self
        others = [name for name in names if name != OWN]
        return scaled._around(self.family.scaled_together(others, factor)) if others else scaled

    def continued(self, names: Sequence[str], other: Likelihood) -> Self:
        """With hyperparameters of another's family."""
        family = other.family if isinstance(other, Labelled) else other
        return super().continued([name for name in names if name != OWN], family)

    def fitted(self, name: str, N: Array, S: Array) -> Iterator[Self]:
        """With a hyperparameter of the family fitted to clusters."""
        return iter(()) if name == OWN else super().fitted(name, N, S)

    # What comes from a file ------------------------------------------------------------------------------------------

    def resolved_columns(self) -> int | None:
        """The number of columns of the family."""
        return self.n_columns

    def check(self, D: int, N: Array, S: Array) -> None:
        """Check the family, and that each cluster has no more labels than rows, with labels in the table or without."""
        require(
            D in (self.n_columns, self.n_columns + self.steps), "n_columns", self.n_columns, f"{D}, as the table has"
        )
        shaped = S.ndim == 2 and S.shape[1] == self.n_statistics
        require(shaped, "shape", S.shape, f"that of {self.n_statistics} statistics")
        self.family.check(self.n_columns, *self._of_family(N, S))
        check_between("numbers of labels", S[:, self.family.n_statistics :].sum(axis=1), N)

    def _columnwise(self, own: NDArray[np.bool_], D: int) -> NDArray[np.bool_]:
        """What is said of the columns of the family as said of D columns, of which those of labels are none."""
        if self.n_columns == D:
            return own
        steps = own.reshape(self.steps, -1)
        return np.hstack([steps, np.zeros((self.steps, 1), np.bool_)]).ravel()
