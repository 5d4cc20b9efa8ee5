"""Linear regression of some columns on the others."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ._base import Array
from ._hyperparameters import require, whole
from ._regression import Regression


@dataclass(frozen=True, eq=False)
class LinearRegression(Regression):
    """Likelihood of target columns y given the other columns x, and its matrix-normal-Wishart prior.

        y | x, A, Lambda ~ Normal(A r, Lambda^-1),   r = [x, 1]
        A | Lambda ~ MatrixNormal(M0, Lambda^-1, K0^-1),   Lambda ~ Wishart(nu, B^-1)

    Rows are [x, y]; clusters are lines (or planes), and x itself is not modelled.  After n rows with targets:

        K = K0 + sum r r',  M = (M0 K0 + sum y r') K^-1,  nu' = nu + n,  B' = B + sum y y' + M0 K0 M0' - M K M'

    Rows may lack their targets, all of them: such rows add nothing but their count to a cluster, which is exact, and
    `impute` predicts the targets.  Values of x may not be missing.

    Parameters
    ----------
    targets : int >= 1, default 1
        q: the last q columns are y.
    intercept : bool, default True
        Whether r ends in a 1.  Without, every line goes through zero.
    mean : float or array (q, M), default: zero, with the intercept at the mean of y
        M0, in the units of the data: the coefficients of each column of x, last of the 1; a number is for all of
        them.
    mean_precision : float > 0 or array (M, M), default 1e-2
        K0: a number counts pseudo-rows with the spread of the data, a positive definite matrix is in products of
        the units of r.  The covariance of the coefficients given Lambda is Lambda^-1 x K0^-1.
    degrees_of_freedom : float > q - 1, default q + 2
        nu.
    scale : float, array (q,) or array (q, q), default 0.5 x the residual variances of one regression x (nu - q - 1)
        B, positive definite, in squared units of the data: E[covariance] = B / (nu - q - 1).
    correlation : float from 0 to 1, default 0, or 1 where the scale is a matrix
        lambda, the share of the correlations C of the residuals of one regression, or of that matrix, that is expected
        within clusters: B_ab = s_a s_b ((1 - lambda) delta_ab + lambda C_ab).

    References
    ----------
    Minka 2000, Bayesian linear regression; Gelman et al., Bayesian Data Analysis, 14.
    """

    takes_missing: ClassVar[bool] = True

    targets: int = 1

    def predict_targets(self, X: Array, R: Array, N: Array, S: Array) -> Array:
        """Posterior-predictive means of the targets (n, q), sum_k R_nk M_k r_n.

        Parameters
        ----------
        X : (n, D) rows, of which the columns of targets are not read and may be NaN
        R : (n, K) responsibilities
        N, S : counts (K,) and statistics (K, F) of the clusters
        """
        regressors = self._stacked(X)[:, : self._layout.M]
        means = np.einsum("nk,kqm,nm->nq", R, self._update(N, S).means, regressors, optimize=True)
        y = self._layout.y
        return np.asarray(self.origin[y] + self._unit[y] * means)

    def impute(self, X: Array, R: Array, N: Array, S: Array) -> Array:
        """Missing targets become their posterior-predictive means."""
        filled = np.array(X, dtype=np.float64)
        y = self._layout.y
        absent = np.isnan(filled[:, y]).all(axis=1)
        filled[np.ix_(absent, y)] = self.predict_targets(filled[absent], R[absent], N, S)
        return filled

    def takes_targets(self) -> bool:
        """Yes."""
        return True

    def valid(self, X: Array) -> NDArray[np.bool_]:
        """Finite values, and targets that are all missing."""
        y, _ = self._columns(X.shape[1])
        fine = super().valid(X)
        fine[:, y] |= np.isnan(X[:, y]).all(axis=1, keepdims=True)
        return fine

    def may_miss(self, D: int) -> NDArray[np.bool_]:
        """The columns of targets."""
        return self.describes(D)

    def with_missing(self, missing: NDArray[np.bool_], S: Array) -> tuple[Self, Array]:
        """With a statistic that counts missing targets, none so far, where there are some now."""
        if self.holes or not missing[self._layout.y].any():
            return self, S
        return replace(self, holes=True), np.hstack([S, np.zeros((len(S), 1))])

    def _columns(self, D: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        P = D - whole("targets", self.targets)
        require(P >= 1, "targets", self.targets, f"fewer than the {D} columns, the others being regressors")
        return np.arange(P, D), np.arange(P)
