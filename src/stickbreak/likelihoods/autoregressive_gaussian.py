"""Gaussian whose mean is a linear function of the steps before, for sequences."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ._base import Array
from ._hyperparameters import require, whole
from ._regression import Regression


@dataclass(frozen=True, eq=False)
class AutoregressiveGaussian(Regression):
    """Gaussian likelihood of a step of a sequence given the steps before, and its matrix-normal-Wishart prior.

        x_t | r, A, Lambda ~ Normal(A r, Lambda^-1),   r = [x_{t-1}, ..., x_{t-p}, 1]
        A | Lambda ~ MatrixNormal(M0, Lambda^-1, K0^-1),   Lambda ~ Wishart(nu, B^-1)

    Rows are [x_t, x_{t-1}, ..., x_{t-p}], D (p + 1) columns for a sequence of D; `rows` makes them.  After n rows:

        K = K0 + sum r r',  M = (M0 K0 + sum x_t r') K^-1,  nu' = nu + n,  B' = B + sum x_t x_t' + M0 K0 M0' - M K M'

    Densities are those of x_t given its history; the history of a row is not modelled.

    Parameters
    ----------
    order : int >= 1, default 1
        p, in steps.
    intercept : bool, default True
        Whether r ends in a 1.  Without, the process moves about zero.
    mean : float or array (D, M), default: phi_i times the identity for x_{t-i}, and through the mean of x_t
        M0, in the units of the data: the coefficients of x_{t-1}, then of x_{t-2}, ..., last of the 1; a number
        is for all of them.  An identity for x_{t-1} makes the prior a random walk.  By default phi (p,) is the least-squares
        fit of all columns to their own history, in units of their deviations: a state need not show anew how smooth the
        process is.  Where it is learnt, the coefficients of the history are multiplied by a factor.
    mean_precision : float > 0 or array (M, M), default 1e-2
        K0: a number counts pseudo-rows with the spread of the data, a positive definite matrix is in products of
        the units of r.  The covariance of the coefficients given Lambda is Lambda^-1 x K0^-1.
    degrees_of_freedom : float > D - 1, default D + 2
        nu.
    scale : float, array (D,) or array (D, D), default 0.5 x the residual variances of one regression x (nu - D - 1)
        B, positive definite, in squared units of the data: E[covariance] = B / (nu - D - 1).
    correlation : float from 0 to 1, default 0, or 1 where the scale is a matrix
        lambda, the share of the correlations C of the residuals of one regression, or of that matrix, that is expected
        within clusters: B_ab = s_a s_b ((1 - lambda) delta_ab + lambda C_ab).

    References
    ----------
    Thesis 6.1.1, Eq. 6.3; Fox 2009, Bayesian nonparametric learning of complex dynamical phenomena; Litterman 1986,
    Forecasting with Bayesian vector autoregressions, for prior means of the coefficients of a column's own history alone.
    """

    tunable: ClassVar[tuple[str, ...]] = ("mean", *Regression.tunable)

    order: int = 1

    @property
    def lags(self) -> int:
        """The number of steps before a row that predict it: ``order``, checked."""
        return whole("order", self.order)

    @staticmethod
    def rows(X: Any, lengths: Sequence[int] | None = None, order: int = 1) -> Array:
        """Rows [x_t, x_{t-1}, ..., x_{t-p}] of one or more sequences.

        Parameters
        ----------
        X : array (T, D), the sequences one after the other
        lengths : (G,) ints that add up to T, default one sequence
            The number of steps of each sequence.
        order : int >= 1, default 1
            p.

        Returns
        -------
        array (T - p G, D (p + 1)).  The first p steps of each sequence have no whole history, and no row.

        Raises
        ------
        ValueError : ``X`` is not a table; ``lengths`` do not add up to its rows; a sequence has no more than p steps.
        """
        X = np.asarray(X)
        p = whole("order", order)
        if X.ndim != 2:
            raise ValueError(
                f"X must have two axes, steps and columns; got shape {X.shape}. Try X.reshape(len(X), -1)."
            )
        sizes = np.array([len(X)] if lengths is None else lengths)
        whole_numbers = sizes.ndim == 1 and sizes.size and np.issubdtype(sizes.dtype, np.integer)
        require(bool(whole_numbers), "lengths", lengths, "a list of whole numbers, the steps of each sequence")
        require(int(sizes.sum()) == len(X), "lengths", lengths, f"numbers that add up to the {len(X)} rows of X")
        if sizes.min() <= p:
            short = int(sizes.argmin())
            raise ValueError(
                f"sequence {short} has {sizes[short]} steps; order {p} needs at least {p + 1}. Leave it out."
            )
        X = X.astype(np.result_type(X.dtype, np.float32), copy=False)
        present = np.concatenate([np.arange(stop - size + p, stop) for size, stop in zip(sizes, sizes.cumsum())])
        return np.hstack([X[present - lag] for lag in range(p + 1)])

    def anew(self) -> Self:
        """The same family, of this order, with nothing given."""
        return type(self)(order=self.order)

    def scaled(self, name: str, factor: float) -> Self:
        """As others; of the mean, the coefficients of the history, about the mean of the data."""
        if name != "mean":
            return super().scaled(name, factor)
        history = self._layout.r
        mean = np.array(self.mean)
        slopes = mean[:, : len(history)]
        if self.intercept:
            mean[:, -1] += (1.0 - factor) * (slopes @ self.origin[history])
        slopes *= factor
        return replace(self, mean=mean)

    def cost_of_learning(self, name: str, N: Array) -> float:
        """As others; of the mean, that of a number for every step of the history."""
        return super().cost_of_learning(name, N) * (self.lags if name == "mean" else 1)

    def _default_mean(self, sums: Array) -> Array:
        """Phi_i I for x_{t-i} in working coordinates: phi (p,) by least squares over all columns, and a pseudo-row."""
        layout = self._layout
        q = layout.q
        history = np.arange(len(layout.r)).reshape(-1, q)  # in v, of each step
        G = sums[history[:, None], history].sum(axis=2)
        phi = np.linalg.solve(G + np.eye(len(G)), sums[history, np.arange(layout.M, layout.M + q)].sum(axis=1))
        slopes = np.hstack([share * np.eye(q) for share in phi]) * self._unit[layout.y, None] / self._unit[layout.r]
        intercept = self.origin[layout.y] - slopes @ self.origin[layout.r]
        return np.hstack([slopes, intercept[:, None]]) if self.intercept else np.asarray(slopes)

    def _columns(self, D: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        steps = whole("order", self.order) + 1
        wanted = (
            f"such that {steps} steps share the {D} columns: rows are [x_t, x_t-1, ..], see AutoregressiveGaussian.rows"
        )
        require(D % steps == 0, "order", self.order, wanted)
        return np.arange(D // steps), np.arange(D // steps, D)
