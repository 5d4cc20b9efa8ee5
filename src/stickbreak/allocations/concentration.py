"""What is known of a concentration: its value, or a gamma prior."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from .._arguments import as_floats, real, shown
from ..kernels.special import log_rise
from ._base import Array, check_concentration
from .slice_sampling import slice_step

SLOPE = 0.05  # of the log concentration: differences that tell slope and curvature
SETTLED = 0.1  # widths of the posterior: how near its mode the search ends
LONGEST = 2.0  # step of the search
MOST_STEPS = 200
SPACING = 0.05  # of the nodes, in asinh of widths, where a width is no more than a unit of the log concentration
LEFT, RIGHT = -6.5, 3.6  # where nodes end: 330 widths below the mode, where the density is a power, and 18 above
FARTHEST = 600.0  # size of a log concentration

Evidence = Callable[[Array], Array]


class Moments(NamedTuple):
    """Posterior mean and standard deviation of a concentration."""

    mean: float
    std: float


class GivenSticks(NamedTuple):
    """What sticks say of a concentration.

    moments : posterior mean and standard deviation
    gain : what a bound at a known concentration gains with the posterior in its place
    """

    moments: Moments
    gain: float


class Known(NamedTuple):
    """A concentration that is known."""

    value: float

    @property
    def mean(self) -> float:
        """The value."""
        return self.value

    def log_mean(self, log_evidence: Callable[[Any], Any]) -> float:
        """Log p(labels) at the concentration."""
        return float(log_evidence(self.value))

    def expected(self, log_evidence: Callable[[Any], Any], of: Callable[[Any], Array]) -> Array:
        """A function of the concentration."""
        return of(self.value)

    def moments(self, log_evidence: Callable[[Any], Any]) -> Moments:
        """The value, for certain."""
        return Moments(self.value, 0.0)

    def given_sticks(self, K: int, rest: Callable[[], float], at: float) -> GivenSticks:
        """The value, for certain, whatever sticks say."""
        return GivenSticks(Moments(self.value, 0.0), 0.0)

    def drawn(self, now: float, log_chance: Callable[[float], float], rng: np.random.Generator) -> float:
        """The value."""
        return self.value


class Nodes(NamedTuple):
    """A posterior on nodes: concentrations (n, 1), their weights (n,), and the log evidence."""

    concentrations: Array
    weights: Array
    log_evidence: float


@dataclass(frozen=True)
class GammaConcentration:
    """A gamma prior on a concentration, c ~ Gamma(shape, rate), whose posterior is part of the fit (BJ appendix B).

    q(u, c) = q(c) prod_k q(u_k | c): for each c every stick has its best q(u_k | c) = Beta(1 + N_k, c + N_{>k}).  With
    B(N, c) the bound at a known concentration, the best q(c) and the bound are

        q(c) proportional to p(c) exp B(N, c),        log of the integral of p(c) exp B(N, c) over c,

    and log weights of clusters are means under q(c).  BJ take q(c) prod_k q(u_k), where q(c) is Gamma(shape + T - 1, rate -
    sum_k E[log (1 - u_k)]): a lower bound on this one, by about half a nat, that falls with every empty cluster, so that
    truncation would no longer be nested.  Shares of topics and of states have BJ's factors, since each concentration would need
    a search of its own for the best sticks.  Integrals are sums over nodes at equal distances in asinh of
    (log c - mode) / width, which is exact to rounding for densities that are smooth and fall exponentially.

    Parameters
    ----------
    shape : float, 0.1 to 1e6
        s_1.
    rate : float, 1e-6 to 1e6
        s_2; the prior mean is shape / rate.
    """

    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        for name, least in (("shape", 0.1), ("rate", 1e-6)):
            value = getattr(self, name)
            if not least <= real(value) <= 1e6:
                raise ValueError(f"{name} must be a number from {least:g} to 1e6; got {shown(value)}.")
        as_floats(self, "shape", "rate")

    @property
    def mean(self) -> float:
        """The prior mean."""
        return self.shape / self.rate

    def log_density(self, t: Any) -> Array:
        """The log prior density of log c at t (n,)."""
        return np.asarray(self.shape * (t + np.log(self.rate)) - self.rate * np.exp(t) - gammaln(self.shape))

    def log_mean(self, log_evidence: Evidence) -> float:
        """Log of the mean of p(labels) under the prior.

        log_evidence : function of concentrations (n, 1); returns log p(labels) at each, (n,)
        """
        return self._posterior(log_evidence).log_evidence

    def expected(self, log_evidence: Evidence, of: Callable[[Array], Array]) -> Array:
        """The mean of a function under q(c): of concentrations (n, 1), with n values along its first axis."""
        nodes = self._posterior(log_evidence)
        return np.asarray(nodes.weights @ of(nodes.concentrations))

    def moments(self, log_evidence: Evidence) -> Moments:
        """Mean and standard deviation of q(c)."""
        nodes = self._posterior(log_evidence)
        c = nodes.concentrations[:, 0]
        mean = float(nodes.weights @ c)
        return Moments(mean, float(np.sqrt(nodes.weights @ (c - mean) ** 2)))

    def given_sticks(self, K: int, rest: Callable[[], float], at: float) -> GivenSticks:
        """Q(c) = Gamma(s_1 + K, s_2 - r), where r = rest() is sum_k E[log (1 - u_k)] of K sticks (BJ appendix B).

        With it max E[K log c + c r + log p(c) / q(c)] stands for K log c + c r in a bound at a known c = ``at``.
        """
        known = rest()
        shape = self.shape + K
        rate = self.rate - known
        value = float(log_rise(K, self.shape)) + self.shape * np.log(self.rate) - shape * np.log(rate)
        return GivenSticks(
            Moments(shape / rate, float(np.sqrt(shape)) / rate), float(value - K * np.log(at) - at * known)
        )

    def drawn(self, now: float, log_chance: Callable[[float], float], rng: np.random.Generator) -> float:
        """A concentration drawn from its posterior given labels, by a step of slice sampling of log c from ``now``.

        log_chance : log probability of the labels at a concentration
        """

        def log_density(t: float) -> float:  # of t = log c
            return float(self.log_density(t)) + log_chance(float(np.exp(t)))

        return float(np.exp(slice_step(log_density, float(np.log(now)), rng)))

    def _posterior(self, log_evidence: Evidence) -> Nodes:
        def log_density(t: Array) -> Array:  # of t = log c
            return self.log_density(t) + log_evidence(np.exp(t)[:, None])

        mode, width = _peak(log_density, float(np.log(self.mean)))
        x = np.arange(LEFT, RIGHT, SPACING / max(1.0, width))
        t = mode + width * np.sinh(x)
        x = x[np.abs(t) < FARTHEST]
        t = t[np.abs(t) < FARTHEST]
        logs = log_density(t) + np.log(width * np.cosh(x) * (x[1] - x[0]))
        highest = logs.max()
        weights = np.exp(logs - highest)
        return Nodes(np.exp(t)[:, None], weights / weights.sum(), float(highest + np.log(weights.sum())))


Belief = Known | GammaConcentration


def belief(concentration: float | GammaConcentration) -> Belief:
    """What is known of a concentration that is given as a number or as a prior."""
    return concentration if isinstance(concentration, GammaConcentration) else Known(concentration)


def check_belief(record: Any, least: float = 1e-300, most: float = 1e300) -> None:
    """Refuse a field ``concentration`` that is neither a prior nor a number in the range; make a number a float."""
    if not isinstance(record.concentration, GammaConcentration):
        check_concentration(record.concentration, "concentration", least, most)
        as_floats(record, "concentration")


def _peak(log_density: Callable[[Array], Array], t: float) -> tuple[float, float]:
    """The mode of a density, from t on by Newton's method with slopes from differences, and its width there."""
    width = 1.0
    for _ in range(MOST_STEPS):
        behind, here, ahead = log_density(t + SLOPE * np.array([-1.0, 0.0, 1.0]))
        slope = (ahead - behind) / (2.0 * SLOPE)
        curvature = (ahead - 2.0 * here + behind) / SLOPE**2
        width = 1.0 / np.sqrt(max(-curvature, 1e-2))
        step = float(np.clip(slope * width**2, -LONGEST, LONGEST))
        t = float(np.clip(t + step, -FARTHEST / 2.0, FARTHEST / 2.0))
        if abs(step) < SETTLED * width:
            break
    return t, float(width)
