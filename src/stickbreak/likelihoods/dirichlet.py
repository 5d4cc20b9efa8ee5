"""Proportions, such as compositions and budgets: rows on the simplex."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtri, psi

from ..kernels.dirichlet import best_shapes, log_partition
from ._base import Array, Likelihood
from ._draws import gamma
from ._hyperparameters import LARGEST, SMALLEST, hyperparameter, positive, positive_values, require
from ._profile import Profile
from ._sample import Sample
from ._size import Size

SUM = 0.02  # by which the sum of a row may miss 1: proportions are often rounded
NARROWER = 10.0  # times as precise as all rows together are clusters expected to be
SPREAD = 1.5  # of the logarithm of a parameter, by default
LEAST_SPREAD = 1e-3
MOST_SPREAD = 10.0
PRECISIONS = (1e-3, 1e6)  # of all rows together, as far as the prior believes them
GRAIN = 2.0**-30  # what each log x is short of: no cluster is narrower than rounding can tell
COARSE = 0.25  # the most that rounding takes from a log x
NODES = 32  # draws of the parameters that the predictive averages over


class Shapes(NamedTuple):
    """q(alpha) of each cluster: log-normal, with means exp(y) (K, D), and variances s (K, D) of the logarithm.

    bounds : (K,) on the log marginal of the rows
    """

    y: Array
    s: Array
    bounds: Array


class DirichletPosterior(NamedTuple):
    """Posterior means of the parameters alpha, and the mean proportions that these imply, (K, D) each."""

    concentrations: Array
    proportions: Array


@dataclass(frozen=True, eq=False)
class Dirichlet(Likelihood):
    """Dirichlet likelihood for rows of proportions, and a log-normal prior for each of its parameters.

        x | alpha ~ Dirichlet(alpha_1, ..., alpha_D),   log alpha_d ~ Normal(log median_d, spread^2)

    with statistics t(x) = log x.  No conjugate prior has a normaliser in closed form, so q(alpha_d) is log-normal, with mean
    m_d and variance s_d of the logarithm.  log Gamma(1 + a) - a log a is concave and log Gamma convex, so that by Jensen

        E_q[A(alpha)] <= A(m) + sum_d (m_d + 1) s_d / 2,   A(alpha) = sum_d log Gamma(alpha_d) - log Gamma(sum_d alpha_d).

    What stands for the log marginal of N rows with sums S of their logarithms is therefore, at the best m and s,

        S . m - N (A(m) + sum_d (m_d + 1) s_d / 2) - KL[q || prior],

    a lower bound.  It is short of the log marginal by about half the logarithm of the precision sum_d alpha_d for each
    cluster, whatever N is, since q does not know that the parameters grow together.  So the ELBO is a lower bound on the
    evidence, as with other families, and laps, moves and learnt hyperparameters compare like with like.  The predictive is an
    average over draws from q.  Gibbs sampling needs exact marginals and is refused.

    Rows are divided by their sums, which must be 1 to within 0.02.  Where proportions are tied, values count as spread over
    their steps, and no cluster is narrower.

    Parameters
    ----------
    median : float or array (D,), > 0, default ten times the parameters that fit the mean and variance of all rows
        Of alpha under the prior.
    spread : float from 0.001 to 10, default 1.5
        Standard deviation of log alpha under the prior.
    floor : float from 0 to 0.5, default 0
        Smaller proportions count as this, which is the step that the data were measured in, or half of it.  With 0, zeros
        are refused, since they have no logarithm.

    References
    ----------
    Lin 2013, section 5 (the non-conjugate case), whose point estimates have no bound; Ma and Leijon, *Bayesian estimation of
    beta mixture models with variational inference*, 2011, for q(alpha) and Jensen bounds.
    """

    takes_negative: ClassVar[bool] = False
    domain: ClassVar[str] = "proportions above 0 that sum to 1 in each row"
    tunable: ClassVar[tuple[str, ...]] = ("median", "spread")

    median: Any = None
    spread: Any = None
    floor: Any = 0.0
    rounding: Any = field(
        default=None, repr=False
    )  # (D,) steps w of tied values over sqrt(24), as E[log x] = log x - w^2 / 24 x^2

    def resolve(self, sample: Sample) -> Self:
        """Fill in the defaults from a sample of the data, and check what was given."""
        D = sample.D
        floor = hyperparameter("floor", self.floor)
        require(
            floor.ndim == 0 and bool((floor >= 0.0) & (floor <= 0.5)), "floor", self.floor, "a number from 0 to 0.5"
        )
        known = replace(self, floor=float(floor))
        median = positive_values("median", known._usual(sample) if self.median is None else self.median, D)
        fine = (median >= SMALLEST) & (median <= LARGEST)
        require(bool(fine.all()), "median", self.median, f"from {SMALLEST:g} to {LARGEST:g}")
        spread = positive("spread", SPREAD if self.spread is None else self.spread)
        require(LEAST_SPREAD <= spread <= MOST_SPREAD, "spread", spread, f"from {LEAST_SPREAD:g} to {MOST_SPREAD:g}")
        rounding = self.rounding
        if rounding is None:
            steps = sample.resolution()
            rounding = np.where(np.isfinite(steps), steps, 0.0) / np.sqrt(24.0)
        return replace(known, median=median, spread=spread, rounding=np.asarray(rounding, dtype=np.float64))

    def _usual(self, sample: Sample) -> Array:
        """The default median, (D,): the precision that explains the variances of all rows, times `NARROWER`, shared out."""
        X = self._proportions(sample.X)
        w = sample.weights / sample.weights.sum()
        mean = w @ X
        variance = float((w @ (X - mean) ** 2).sum())
        chance = float((mean * (1.0 - mean)).sum())
        least, most = PRECISIONS
        precision = np.clip(chance / variance - 1.0, least, most) if most * variance > chance else most
        return np.asarray(np.maximum(NARROWER * precision * mean, SMALLEST))

    @property
    def conjugate(self) -> bool:
        """False: log marginals are lower bounds."""
        return False

    def size(self, missing: NDArray[np.bool_], largest: Array) -> Size:
        """A parameter for each column."""
        return Size.of_columns(len(largest))

    def compositional(self, D: int) -> NDArray[np.bool_]:
        """All columns: the parts of a whole."""
        return np.ones(D, np.bool_)

    def anew(self) -> Self:
        """The same family with nothing given but the floor."""
        return type(self)(floor=self.floor)

    def scaled(self, name: str, factor: float) -> Self:
        """This likelihood with a hyperparameter multiplied by a factor, within its range."""
        low, high = (LEAST_SPREAD, MOST_SPREAD) if name == "spread" else (SMALLEST, LARGEST)
        value = np.clip(getattr(self, name) * factor, low, high)
        return replace(self, **{name: float(value) if name == "spread" else value})

    @property
    def n_statistics(self) -> int:
        """F = D."""
        return len(self._median)

    def valid(self, X: Array) -> NDArray[np.bool_]:
        """Proportions above 0, or of at least 0 with a floor; no value of a row that does not sum to 1."""
        with np.errstate(invalid="ignore", over="ignore"):
            fine = super().valid(X) & ((X >= 0.0) if self.floor > 0.0 else (X > 0.0))
            whole = np.abs(X.sum(axis=1, dtype=np.float64) - 1.0) <= SUM
        return np.asarray(fine & (whole | ~fine.all(axis=1))[:, None])

    def refuse(self, value: float, column: int, where: str) -> NoReturn:
        """As others, with the cures for zeros and for rows that do not sum to 1."""
        if value == 0.0:
            cure = "Dirichlet takes proportions above 0; give Dirichlet(floor=...) the step that they were measured in."
            raise ValueError(f"Input X contains 0: {where}. {cure}")
        if 0.0 < value <= self.largest:
            cure = "Dirichlet takes proportions that sum to 1; divide each row by its sum."
            raise ValueError(f"Input X contains {value:g} in a row that does not sum to 1: {where}. {cure}")
        super().refuse(value, column, where)

    def features(self, X: Array, out: Array) -> Array:
        """T (n, D): logarithms of the proportions, less what their steps take."""
        P = self._proportions(X)
        np.log(P, out=out, casting="same_kind")
        if self.rounding.any():
            with np.errstate(over="ignore"):
                out -= np.minimum((self.rounding / P) ** 2, COARSE).astype(out.dtype)
        return out

    def log_base(self, X: Array) -> Array:
        """Log h(x) = -sum_d log x_d, (n,)."""
        return np.asarray(-self._logs(X).sum(axis=1))

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """E[alpha] = m, and b = -A(m) - sum_d (m_d + 1) s_d / 2."""
        y, s, _ = self._best(N, S)
        m = np.exp(y)
        b = -log_partition(m) - 0.5 * ((m + 1.0) * s).sum(axis=1) - GRAIN * m.sum(axis=1)
        if not (np.isfinite(m).all() and np.isfinite(b).all()):
            raise FloatingPointError("the parameters of a cluster are beyond the range of numbers.")
        return m, b

    def draw_weights(self, N: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Refused: the posterior of alpha has no generator."""
        raise TypeError('Dirichlet draws no parameters, since its prior is not conjugate; use algorithm="memoized".')

    def log_marginal(self, N: Array, S: Array) -> Array:
        """The lower bound on the log marginal of each cluster's rows, (K,)."""
        return self._best(N, S).bounds

    def divergence(self, X: Array, centers: Array) -> Array:
        """KL[Dirichlet(m(x)) || Dirichlet(m(c))] for the parameters that single rows suggest, (n, J)."""
        return self.divergence_of(X)(centers)

    def divergence_of(self, X: Array) -> Callable[[Array], Array]:
        """The same; the parameters that the rows X suggest are found once."""
        own = self._suggested(X)
        slopes = psi(own) - psi(own.sum(axis=1, keepdims=True))
        left = (slopes * own).sum(axis=1) - log_partition(own)

        def from_centers(centers: Array) -> Array:
            others = self._suggested(centers)
            return np.asarray(np.maximum(left[:, None] + log_partition(others) - slopes @ others.T, 0.0))

        return from_centers

    def posterior(self, N: Array, S: Array) -> DirichletPosterior:
        """E[alpha] = m, and m / sum_d m_d."""
        m = np.exp(self._best(N, S).y)
        return DirichletPosterior(m, m / m.sum(axis=1, keepdims=True))

    def profile(self, N: Array, S: Array) -> Profile:
        """Mean and variance p (1 - p) / (1 + sum_d m_d) of each proportion under each cluster."""
        m, p = self.posterior(N, S)
        return Profile.of_columns(p, p * (1.0 - p) / (1.0 + m.sum(axis=1, keepdims=True)))

    def log_predictive(self, X: Array, N: Array, S: Array) -> Array:
        """Log of the mean density over evenly spaced draws from q(alpha), (n, K)."""
        logs = self._logs(X)
        base = logs.sum(axis=1)
        out = np.empty((len(X), len(N)))
        for k, alpha in enumerate(self._nodes(N, S)):
            out[:, k] = logsumexp(logs @ alpha.T - log_partition(alpha), axis=1) - np.log(NODES) - base
        return out

    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` rows (size, D) from the predictive of one cluster."""
        nodes = self._nodes(np.atleast_1d(N), np.atleast_2d(S))[0]
        drawn = gamma(rng, nodes[rng.integers(NODES, size=size)], 1.0)
        return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))

    def resolved_columns(self) -> int:
        """The length of ``rounding``."""
        return len(self.rounding)

    def check_sums(self, N: Array, S: Array) -> None:
        """Sums of logarithms are finite, and steps are no larger than a whole."""
        super().check_sums(N, S)
        rounding = self.rounding
        require(bool(((rounding >= 0.0) & (rounding <= 1.0)).all()), "rounding", rounding, "from 0 to 1")

    def _best(self, N: Array, S: Array) -> Shapes:
        """The best q(alpha) of each cluster.

        Means of logarithms whose exponentials sum to more than 1, as extrapolated sums may have them, are lowered to 1.
        """
        counts = np.maximum(np.asarray(N, dtype=np.float64), 0.0)
        used = counts > 0.0
        sums = np.array(S, dtype=np.float64)
        with np.errstate(over="ignore"):
            excess = np.maximum(logsumexp(sums[used] / counts[used, None], axis=1), 0.0)
        sums[used] -= (counts[used] * (excess + GRAIN))[:, None]
        shapes = Shapes(np.empty(S.shape), np.empty(S.shape), np.empty(len(counts)))
        best_shapes(counts, sums, np.log(self._median), float(self.spread) ** 2, *shapes)
        return shapes

    def _suggested(self, X: Array) -> Array:
        """E[alpha] after one row, for each of the rows X, (n, D)."""
        T = self.features(X, np.empty(X.shape))
        return np.exp(self._best(np.ones(len(X)), T).y)

    def _nodes(self, N: Array, S: Array) -> Array:
        """Evenly spaced draws of alpha from q, (K, NODES, D)."""
        y, s, _ = self._best(N, S)
        logs = (y - 0.5 * s)[:, None] + np.sqrt(s)[:, None] * evenly_normal(NODES, y.shape[1])
        return np.exp(logs)

    def _proportions(self, X: Array) -> Array:
        """Rows X (n, D) with small values raised to the floor, divided by their sums."""
        P = np.ascontiguousarray(np.maximum(X, self.floor) if self.floor > 0.0 else X)  # sums depend on the layout
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    def _logs(self, X: Array) -> Array:
        return np.asarray(np.log(self._proportions(np.asarray(X, dtype=np.float64))))

    @property
    def _median(self) -> Array:
        if self.rounding is None:
            raise TypeError("this likelihood has no data yet; call resolve(sample) first.")
        return np.asarray(self.median)


def evenly_normal(n: int, D: int) -> Array:
    """Points (n, D) spread evenly under independent standard normal distributions.

    An additive recurrence with the powers of the root of x^(D + 1) = x + 1, which generalises the golden ratio.
    """
    root = 2.0
    for _ in range(60):
        root = (1.0 + root) ** (1.0 / (D + 1.0))
    steps = root ** -np.arange(1.0, D + 1.0)
    return np.asarray(ndtri((0.5 + np.arange(1.0, n + 1.0)[:, None] * steps) % 1.0))
