"""Rows with missing cells of a Gaussian: latent, with the best distributions given the observed cells of their rows."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .._sums import check_between
from . import _quadratic as quadratic
from ._base import Array
from ._cells import Block, Cells
from ._hyperparameters import require
from ._wishart_prior import WishartPrior


class MissingCells(WishartPrior):
    """Statistics of missing cells after those of a Gaussian: numbers of them for each column that has some, and their entropy.

    The last statistic is half the log determinant of the covariance of q(x_m) (`Cells`).

    Attributes
    ----------
    origin, unit, rounding : (D,) working coordinates
    holes : (D,) bool, the columns with missing values, or None
    """

    missing_latent: ClassVar[bool] = True

    origin: Any
    unit: Any
    rounding: Any
    holes: Any

    @property
    def _unit(self) -> Array:
        if self.unit is None:
            raise TypeError("this likelihood has no data yet; call resolve(sample) first.")
        return np.asarray(self.unit)

    @property
    def cells(self) -> Cells | None:
        """The missing cells of its rows, if there may be some."""
        return Cells((Block(0, len(self._unit), self._holes),)) if len(self._holes) else None

    def may_miss(self, D: int) -> NDArray[np.bool_]:
        """All columns, or none, as of families that derive from this one."""
        return np.full(D, self.takes_missing)

    def valid(self, X: Array) -> NDArray[np.bool_]:
        """Finite values that are not too far, and missing ones."""
        fine = super().valid(X)
        return np.asarray(fine | np.isnan(X)) if self.takes_missing else fine

    def with_missing(self, missing: NDArray[np.bool_], S: Array) -> tuple[Self, Array]:
        """With holes also in the columns ``missing``: statistics of missing cells, none so far, are inserted."""
        wide = self._with_holes(missing)
        if len(wide._holes) == len(self._holes):
            return wide, S
        first = quadratic.n_products(len(self._unit)) + len(self._unit)
        more = np.zeros((len(S), wide.n_statistics - first))
        if len(self._holes):
            more[:, np.searchsorted(wide._holes, self._holes)] = S[:, first:-1]
            more[:, -1] = S[:, -1]
        return wide, np.hstack([S[:, :first], more])

    def impute(self, X: Array, R: Array, N: Array, S: Array) -> Array:
        """Missing values become their means given the observed ones, of each cluster, averaged over clusters."""
        absent = np.isnan(X)
        filled = np.zeros(X.shape)
        for k, (means, _) in enumerate(self.given_observed(X, N, S)):
            filled += R[:, [k]] * means
        return np.where(absent, filled, X)

    def given_observed(self, X: Array, N: Array, S: Array) -> Iterator[tuple[Array, Array]]:
        """For each cluster the means and variances (n, D) of the values of rows X (n, D), given those that are observed."""
        D = len(self._unit)
        wide, S = self.with_missing(np.asarray(np.isnan(X).any(axis=0)), S)
        W = wide.weights(N, S)[0]
        T = wide.features(X.astype(np.float64), np.empty((len(X), wide.n_statistics)))
        first = quadratic.n_products(D)
        for k in range(len(N)):
            of_k = T if wide.cells is None else wide.cells.filled(T, W, np.full(len(T), k))
            Z = of_k[:, first : first + D]
            spread = np.maximum(of_k[:, quadratic.squares(D)] - Z**2, 0.0)
            yield self.origin + self._unit * Z, self._unit**2 * spread

    def check(self, D: int, N: Array, S: Array) -> None:
        """Check the columns with missing values first: by them the statistics are counted."""
        holes = self.holes
        fits = holes is None or (isinstance(holes, np.ndarray) and holes.dtype == np.bool_ and holes.shape == (D,))
        require(fits and (holes is None or self.takes_missing), "holes", holes, f"None, or {D} truth values")
        super().check(D, N, S)

    def check_sums(self, N: Array, S: Array) -> None:
        """Check the numbers of missing values."""
        super().check_sums(N, S)
        check_between("numbers of missing values", self._absent(S), N[:, None])

    @cached_property
    def _holes(self) -> NDArray[np.int64]:
        """The columns with missing values that are not constant."""
        if self.holes is None:
            return np.empty(0, np.int64)
        return np.flatnonzero(self.holes & np.isfinite(self.rounding)).astype(np.int64)

    def _with_holes(self, missing: NDArray[np.bool_]) -> Self:
        """With holes also in these columns (D,), if it takes any."""
        holes = missing & self.may_miss(len(missing))
        if self.holes is not None:
            holes = holes | self.holes
        return self._with(holes=holes) if holes.any() else self

    def _absent(self, S: Array) -> Array:
        """The missing values of each cluster in the columns with holes, (K, H)."""
        H = len(self._holes)
        return S[:, -H - 1 : -1] if H else S[:, :0]

    def _own_entropies(self, S: Array) -> Array:
        """Half the log determinants of the covariances of q(x_m), summed over the rows of each cluster, (K,)."""
        return S[:, -1] if len(self._holes) else np.zeros(len(S))


def alike(seen: NDArray[np.bool_]) -> Iterator[tuple[Any, NDArray[np.bool_]]]:
    """Rows with the same observed cells, given which are (n, D), and these cells (D,)."""
    if seen.all():
        yield np.arange(len(seen)), np.ones(seen.shape[1], np.bool_)
        return
    patterns, place = np.unique(seen, axis=0, return_inverse=True)
    order = np.argsort(place.ravel(), kind="stable")
    starts = np.searchsorted(place.ravel()[order], np.arange(len(patterns) + 1))
    for pattern, start, stop in zip(patterns, starts[:-1], starts[1:]):
        yield order[start:stop], pattern
