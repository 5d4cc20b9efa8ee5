"""Which columns of a row a regression explains by which others, and where sums of their products are among its statistics."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from . import _quadratic as quadratic
from ._base import Array

A_TRACE = 1e-9  # of a row like the sample, so that a cluster without rows has moments of its regressors too


@dataclass(frozen=True, eq=False)
class Layout:
    """The D columns of a row z, in working coordinates, as v = [r, y], with a 1 after the regressors r if they have it.

    Statistics are the packed products z_a z_b, z, and, if targets may be missing, 1 where they are: n = N - that number.

    y : (q,) the columns of the targets
    r : (P,) those of the regressors, which are all others
    intercept : whether the regressors have a 1
    holes : whether targets may be missing
    """

    y: NDArray[np.intp]
    r: NDArray[np.intp]
    intercept: bool
    holes: bool

    @property
    def D(self) -> int:
        """The number of columns."""
        return len(self.y) + len(self.r)

    @property
    def q(self) -> int:
        """The number of targets."""
        return len(self.y)

    @property
    def M(self) -> int:
        """The number of regressors with the 1: P, or P + 1."""
        return len(self.r) + self.intercept

    @property
    def n_statistics(self) -> int:
        """F = D (D + 1) / 2 + D, and one more where targets may be missing."""
        return quadratic.n_products(self.D) + self.D + self.holes

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Where v finds its entries in [z, 1]."""
        return np.concatenate([self.r, [self.D] if self.intercept else [], self.y]).astype(np.intp)

    def absent(self, X: Array) -> NDArray[np.bool_]:
        """The rows (n,) whose targets are missing."""
        return np.asarray(np.isnan(X[:, self.y]).all(axis=1)) if self.holes else np.zeros(len(X), np.bool_)

    def stacked(self, Z: Array) -> Array:
        """Each row as v, (n, M + q)."""
        return np.asarray(np.column_stack([Z, np.ones(len(Z))])[:, self.order])

    def counts(self, N: Array, S: Array) -> Array:
        """The number n of rows with targets, (K,)."""
        return np.maximum(N - S[:, -1], 0.0) if self.holes else N  # a difference may miss zero by rounding

    def products(self, N: Array, S: Array) -> Array:
        """Sums of the products v v' over the rows with targets, (K, M + q, M + q)."""
        return self._taken(N, S, self.place_stacked)

    def regressors(self, N: Array, S: Array) -> tuple[Array, Array]:
        """Mean (K, P) and covariance (K, P, P) of the regressors of each cluster's rows."""
        sums = self._taken(N, S, self._place)
        n = sums[:, -1, -1, None] + A_TRACE
        mean = sums[:, self.r, -1] / n
        square = (sums[:, self.r[:, None], self.r] + A_TRACE * np.eye(len(self.r))) / n[:, :, None]
        return mean, square - mean[:, :, None] * mean[:, None, :]

    @cached_property
    def _place(self) -> NDArray[np.intp]:
        """Where the sums of the products of [z, 1] are in [S, n], (D + 1, D + 1)."""
        D = self.D
        P = quadratic.n_products(D)
        a, b = quadratic.upper_triangle(D)
        place = np.full((D + 1, D + 1), self.n_statistics)
        place[a, b] = place[b, a] = np.arange(P)
        place[:D, D] = place[D, :D] = np.arange(P, P + D)
        return place

    @cached_property
    def place_stacked(self) -> NDArray[np.intp]:
        """Where the sums of the products of v are in [S, n], (M + q, M + q)."""
        return np.ascontiguousarray(self._place[np.ix_(self.order, self.order)])

    @cached_property
    def place_packed(self) -> NDArray[np.intp]:
        """Where in the upper triangle of a matrix of v, (M + q)^2 entries, those of packed products of z, and of z, are."""
        at = np.zeros(self.D + 1, np.intp)
        at[self.order] = np.arange(len(self.order))
        a, b = quadratic.upper_triangle(self.D)
        first, second = np.append(a, np.arange(self.D)), np.append(b, np.full(self.D, self.D))
        return np.asarray(np.minimum(at[first], at[second]) * len(self.order) + np.maximum(at[first], at[second]))

    @cached_property
    def times(self) -> Array:
        """What these entries count for in weights: half for squares, which count `GRAIN` times; none without an intercept."""
        a, b = quadratic.upper_triangle(self.D)
        return -np.append(np.where(a == b, 0.5 * quadratic.GRAIN, 1.0), np.full(self.D, float(self.intercept)))

    @cached_property
    def grain(self) -> Array:
        """What the squares of v count for, (M + q,): those of columns `GRAIN` times; 1 times 1 is a count."""
        return np.where(self.order < self.D, quadratic.GRAIN, 1.0)

    def _taken(self, N: Array, S: Array, place: NDArray[np.intp]) -> Array:
        return np.column_stack([S, self.counts(N, S)]).take(place, axis=1)


def layout_of(y: NDArray[np.intp], r: NDArray[np.intp], intercept: bool, holes: bool) -> Layout:
    """The layout of these columns, shared by all likelihoods that have it: a line search makes many."""
    return _shared(tuple(y.tolist()), tuple(r.tolist()), intercept, holes)


@lru_cache(maxsize=64)
def _shared(y: tuple[int, ...], r: tuple[int, ...], intercept: bool, holes: bool) -> Layout:
    return Layout(np.array(y, np.intp), np.array(r, np.intp), intercept, holes)
