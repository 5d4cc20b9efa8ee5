"""Shared by likelihoods with a Wishart prior of the precisions of clusters: its scale matrix, and how it is learnt."""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from . import _quadratic as quadratic
from ._base import Array, Likelihood
from ._hyperparameters import hyperparameter, require

STEPS = 5  # of Newton's method, for the variances of a scale matrix


class Precisions(NamedTuple):
    """What the precisions of clusters say of the variances in the scale matrix of their prior, in working coordinates.

    columns, units : (q,) of the scale matrix, those that are described
    powers : (q,) of the deviations s_a in the prior density of a precision: its degrees of freedom, where all are dependent
    rows : mean number of rows of a cluster
    mean : (q, q) the mean over clusters of E[Lambda_k]
    """

    columns: NDArray[np.intp]
    units: Array
    powers: Array
    rows: float
    mean: Array

    @classmethod
    def of_factors(
        cls, columns: NDArray[np.intp], units: Array, prior: float, degrees: Array, factors: Array
    ) -> "Precisions":
        """Of Wishart distributions with ``degrees`` (K,) and Cholesky ``factors`` (K, q, q) of their scale matrices."""
        halves = np.linalg.inv(factors)
        mean = (degrees[:, None, None] * (halves.swapaxes(1, 2) @ halves)).mean(axis=0)
        return cls(columns, units, np.full(len(columns), prior), float((degrees - prior).mean()), mean)


class Scale(NamedTuple):
    """A scale matrix B (D, D) whose correlations are a share of those of a pattern (D, D)."""

    scale: Array
    correlation: float
    pattern: Array


class WishartPrior(Likelihood):
    """A likelihood with a Wishart prior of the clusters' precisions, of which the scale matrix has a shape in D + 1 numbers.

        B_ab = s_a s_b ((1 - lambda) delta_ab + lambda C_ab)

    The correlation lambda is the share of the correlations C of the data that clusters are expected to have; where a matrix
    is given as the scale, its correlations are lambda C, and lambda is 1 unless given.  Not all D (D + 1) / 2 numbers are
    learnt: a few rows would seem to tell them all.
    """

    tunable: ClassVar[tuple[str, ...]] = ("degrees_of_freedom", "scale", "correlation")
    strength: ClassVar[tuple[str, ...]] = ("degrees_of_freedom", "scale")

    degrees_of_freedom: Any
    scale: Any
    correlation: Any
    pattern: Any
    unit: Any
    rounding: Any

    @abstractmethod
    def _precisions(self, N: Array, S: Array) -> Precisions:
        """What clusters say of the scale matrix."""

    @property
    def _units(self) -> Array:
        """Those of the columns of the scale matrix, (D,)."""
        return np.asarray(self.unit)

    def check_sums(self, N: Array, S: Array) -> None:
        """Check the pattern of correlations, and the share of them."""
        require(0.0 <= self.correlation <= 1.0, "correlation", self.correlation, "a number from 0 to 1")
        pattern = np.asarray(self.pattern)
        fits = pattern.shape == np.shape(self.scale) and bool(np.isfinite(pattern).all())
        require(fits, "pattern", self.pattern, "correlations of the columns of the scale matrix")

    def not_given(self) -> list[str]:
        """As others; who gives the scale means its correlations, too."""
        names = super().not_given()
        return [name for name in names if name != "correlation" or self.scale is None]

    def cost_of_learning(self, name: str, N: Array) -> float:
        """As others; of the scale matrix, that of its variances."""
        return super().cost_of_learning(name, N) * (len(self.scale) if name == "scale" else 1)

    def continued(self, names: Sequence[str], other: Likelihood) -> Self:
        """As others; a correlation along with the pattern that it is a share of."""
        return super().continued([*names, "pattern"] if "correlation" in names else names, other)

    def scaled(self, name: str, factor: float) -> Self:
        """As others; of the degrees of freedom, those beyond D - 1; of the correlation, what it lacks of one."""
        if name == "degrees_of_freedom":
            degrees = quadratic.scaled_degrees(self.degrees_of_freedom, len(self.scale), factor)
            return self._with(degrees_of_freedom=degrees)
        if name == "correlation":
            share = 1.0 - min(1.0, (1.0 - self.correlation) * factor)
            scale = _matrix(np.diagonal(self.scale), share, self.pattern)
            return self._with(correlation=share, scale=scale)
        return super().scaled(name, factor)

    def scaled_together(self, names: Sequence[str], factor: float) -> Self:
        """Degrees of freedom and scale in proportion to each other, so that E[Lambda] stays."""
        if set(names) != set(self.strength):
            return super().scaled_together(names, factor)
        other = self.scaled("degrees_of_freedom", factor)
        ratio = other.degrees_of_freedom / self.degrees_of_freedom
        return other._with(scale=self.scale * ratio)

    def widened(self, least: float, names: Collection[str]) -> Self:
        """With larger variances in the scale matrix, correlations as they are, and means known for as many rows more."""
        if "scale" not in names:
            return self
        expected = np.diagonal(self.scale) / (self.degrees_of_freedom * self._units**2)
        times = np.sqrt(1.0 + least / expected)
        wider = self._with(scale=self.scale * np.outer(times, times))
        return wider.scaled("mean_precision", float(times.max() ** 2)) if "mean_precision" in names else wider

    def fitted(self, name: str, N: Array, S: Array) -> Iterator[Self]:
        """With other variances in the scale matrix, correlations as they are.

        EM maximises (nu / 2) log |B| - tr(B mean E[Lambda_k]) / 2 over the variances, and closes n / (nu + n) of the gap where
        clusters have n rows.  The first proposal goes so much further that of equal clusters the whole gap is closed.
        """
        if name != "scale":
            return
        columns, units, powers, rows, mean = self._precisions(N, S)
        if not len(columns):
            return
        change = _best_changes(mean * self.scale[np.ix_(columns, columns)] / np.outer(units, units), powers)
        as_far = np.ones(len(powers))
        for exponents in [(powers + rows) / rows, as_far] if rows > 0.0 else [as_far]:
            times = np.ones(len(self.scale))
            with np.errstate(over="ignore", invalid="ignore"):  # what is no number is not taken
                times[columns] = change**exponents
                scale = self.scale * np.outer(times, times)
            yield self._with(scale=scale)

    def _with(self, **hyperparameters: Any) -> Self:
        return replace(self, **hyperparameters)


def _best_changes(M: Array, powers: Array) -> Array:
    """The factors d (q,) with the highest sum powers_a log d_a - d' M d / 2, M positive definite, by damped Newton steps."""
    d = np.ones(len(M))
    least = powers.min()
    for _ in range(STEPS):
        gradient = M @ d - powers / d
        step = -np.linalg.solve(M + np.diag(powers / d**2), gradient)
        decrement = np.sqrt(max(-float(step @ gradient) / least, 0.0))  # self-concordant, divided by the least power
        d = d + step / (1.0 + decrement)
    return d


def prior_scale(given: Any, correlation: Any, variance: Array, pattern: Array, degrees_of_freedom: float) -> Scale:
    """The scale matrix from a number, variances, a matrix, or None: 0.1 diag(variance) per spare degree of freedom.

    pattern : (D, D), the correlations of the data
    """
    D = len(variance)
    whole = np.ndim(given) == 2
    share = hyperparameter("correlation", float(whole) if correlation is None else correlation)
    fine = share.ndim == 0 and bool(0.0 <= share <= 1.0)
    require(fine, "correlation", correlation, "a number from 0 to 1")
    if given is None:
        spare = max(degrees_of_freedom - D - 1.0, 1.0)
        spread = quadratic.default_spread("scale", variance, spare, "degrees_of_freedom", degrees_of_freedom)
        return Scale(_matrix(spread, float(share), pattern), float(share), pattern)
    B = quadratic.symmetric_matrix("scale", given, D)
    variances = np.diagonal(B)
    quadratic.check_ratio("scale", given, variances / variance)
    if not whole:
        return Scale(_matrix(variances, float(share), pattern), float(share), pattern)
    if share > 0.0:
        deviations = np.sqrt(variances)
        pattern = B / deviations / deviations[:, None] / share
        np.fill_diagonal(pattern, 1.0)
    else:
        diagonal = not (B - np.diag(variances)).any()
        require(diagonal, "correlation", correlation, "above 0 where the scale is a matrix with correlations")
    return Scale(B, float(share), pattern)


def _matrix(variances: Array, share: float, pattern: Array) -> Array:
    """The matrix with these diagonal elements (D,) and a share of the correlations of a pattern (D, D)."""
    deviations = np.sqrt(variances)
    B = deviations[:, None] * (share * pattern) * deviations
    np.fill_diagonal(B, variances)
    return np.asarray(B)
