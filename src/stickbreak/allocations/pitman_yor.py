"""The Pitman-Yor process: a Dirichlet process with one more parameter, for clusters whose sizes follow a power law."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import expit, logit

from .._arguments import as_floats, check_boolean, real, shown
from ._base import Array, Solution, within_range
from ._partitions import applies, log_partition
from ._stick_breaking import Sticks
from .concentration import GammaConcentration, check_belief
from .joint_search import highest
from .line_search import LEAST_GAIN
from .mixture import MixturePrior, normalised
from .seating import Seating
from .summaries import Counts

FIRST_DISCOUNT = 0.01  # from which one of zero is learnt
SMALLEST = 1e-6  # of a discount that is learnt, and of 1 less such a discount


@dataclass(frozen=True)
class PitmanYor(MixturePrior):
    """Pitman-Yor mixture by stick-breaking: u_k ~ Beta(1 - discount, concentration + k discount), k = 1, 2, ...  (Thesis 3.1).

    The posterior is q(u_k) = Beta(1 - d + N_k, gamma + k d + N_{>k}).  A row starts a cluster of its own with a probability
    that grows with the number of clusters, so n rows have about n^d clusters, whose sizes follow a power law.  With discount 0
    this is `DirichletProcess`, number for number.

    Truncation is nested, as there: a cluster without rows comes after all others, where its stick keeps its prior.  The prior
    of a stick depends on its place, and decreasing size is the best order for every discount: with M rows after them, clusters
    of a and b rows in places k and k + 1 gain log (gamma + k d + M + a) - log (gamma + k d + M + b) from a before b.

    **Learning the discount.**  A bound by sticks is one of labels, and K clusters have K! orders of labels.  How much that
    costs depends on the discount, so the bound by sticks is highest at a discount that is far too small
    (benchmarks/power_law.py).  What does not depend on labels is the probability of the partition,

        log p(partition) = sum_{k=1}^{K-1} log (gamma + k d) - log [Gamma(gamma + N) / Gamma(gamma + 1)]
                           + sum_k log [Gamma(N_k - d) / Gamma(1 - d)].

    With ``partition``, the bound is the better of the one by sticks and one on the expectation of this, which is exact where
    every row is in one cluster for certain (`log_partition`).  Coordinate ascent does not climb it, because it depends on how
    certain rows are.  So laps climb the bound by sticks, and a fit that learns the discount ends with the concentration and the
    discount of the highest bound on the partition, if that is higher.

    Parameters
    ----------
    concentration : float, 1e-300 to 1e300, or `GammaConcentration`
        gamma; larger values expect more clusters.
    discount : float, 0 <= discount < 1
        d; larger values expect more small clusters.
    partition : bool
        Whether the bound may be that on the partition.  A fit that learns the discount sets it in its result.

    References
    ----------
    Pitman and Yor, The two-parameter Poisson-Dirichlet distribution derived from a stable subordinator, 1997.
    """

    concentration: float | GammaConcentration = 1.0
    discount: float = 0.5
    partition: bool = False

    def __post_init__(self) -> None:
        check_belief(self)
        if not 0.0 <= real(self.discount) < 1.0:
            raise ValueError(f"discount must be a number from 0 to below 1; got {shown(self.discount)}.")
        check_boolean(self.partition, "partition")
        as_floats(self, "discount")

    @property
    def learnable(self) -> tuple[str, ...]:
        """The hyperparameters that `tuned` can set, by name."""
        return (*super().learnable, "discount")

    @property
    def in_laps(self) -> Self:
        """This prior with the bound that laps climb."""
        return replace(self, partition=False)

    def bound(self, summary: Counts) -> float:
        """The bound by sticks, or that on the partition."""
        sticks = super().bound(summary)
        if not (self.partition and applies(summary, self.discount)):
            return sticks
        return max(sticks, self._belief.log_mean(lambda c: log_partition(summary, c, self.discount)))

    def tuned(self, summary: Counts, names: tuple[str, ...], solution: Solution) -> tuple[Self, Solution]:
        """This prior with the hyperparameters ``names`` set to values that raise the bound, both together."""
        if "discount" not in names:
            return super().tuned(summary, names, solution)
        best = self._highest(summary, names)
        value = best.bound(summary)
        return (best, best.solve(summary)) if value > solution.value + LEAST_GAIN else (self, solution)

    def concluded(self, summary: Counts, names: tuple[str, ...]) -> Self:
        """At the end of a fit that learns the discount: the prior of the highest bound of the partition, if that is higher."""
        if "discount" not in names:
            return self
        best = replace(self, partition=True)._highest(summary, names)
        return best if best.bound(summary) > self.bound(summary) else self

    def _highest(self, summary: Counts, names: tuple[str, ...]) -> Self:
        """This prior with the discount, and the concentration if it is among ``names``, of the highest bound."""
        first = [logit(np.clip(self.discount, FIRST_DISCOUNT, 1.0 - SMALLEST))]
        if "concentration" in names and not isinstance(self.concentration, GammaConcentration):
            first.append(np.log(self.concentration))
        return self._at(highest(lambda x: self._at(x).bound(summary), np.array(first)).x)

    def _at(self, x: Array) -> Self:
        """This prior with the discount expit(x[0]) and, where x has two numbers, the concentration exp(x[1])."""
        discount = float(np.clip(expit(x[0]), SMALLEST, 1.0 - SMALLEST))
        if len(x) == 1:
            return replace(self, discount=discount)
        return replace(self, discount=discount, concentration=within_range(float(np.exp(x[1]))))

    def _seating(self, concentration: float) -> Seating:
        """The Chinese restaurant with two parameters."""
        return Seating(concentration, self.discount)

    def _log_evidence(self, N: Array, concentration: Any) -> Array:
        """Sum over k of c_Beta(1 - d, gamma + k d) - c_Beta(1 - d + N_k, gamma + k d + N_{>k})."""
        return np.asarray(Sticks.of(N, concentration, self.discount).log_evidence(N).sum(axis=-1))

    def _expected_log_weights(self, N: Array, concentration: Any) -> Array:
        """E[log u_k] + sum_{l<k} E[log (1 - u_l)], (K,)."""
        return Sticks.of(N, concentration, self.discount).expected_log_weights()

    def _mean_weights(self, N: Array, concentration: Any) -> Array:
        """E[u_k] prod_{l<k} (1 - E[u_l]) over the K clusters in use, normalised, (K,)."""
        return normalised(Sticks.of(N, concentration, self.discount).mean_weights())
