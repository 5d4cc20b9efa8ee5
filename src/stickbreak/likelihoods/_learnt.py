"""What a likelihood says of the hyperparameters that can be learnt."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Learnt:
    """Hyperparameters that can be learnt.

    Attributes
    ----------
    tunable : the hyperparameters that can be learnt: positive numbers or arrays, which empirical Bayes multiplies by a factor,
        and choices, which no factor changes
    strength : those of them that grow together when the prior is to count for more rows
    """

    tunable: ClassVar[tuple[str, ...]] = ()
    strength: ClassVar[tuple[str, ...]] = ()

    def tunables(self) -> list[str]:
        """The names of the hyperparameters that `scaled` takes."""
        return list(self.tunable)

    def coupled(self) -> list[list[str]]:
        """The groups of their names that `scaled_together` takes."""
        return [list(self.strength)] if self.strength else []

    def not_given(self) -> list[str]:
        """The names of those of the hyperparameters that `resolve` has yet to set."""
        return [name for name in self.tunable if getattr(self, name) is None]

    def scaled(self, name: str, factor: float) -> Self:
        """This likelihood with one of its `tunable` hyperparameters multiplied by a factor."""
        return replace(self, **{name: getattr(self, name) * factor})

    def scaled_together(self, names: Sequence[str], factor: float) -> Self:
        """This likelihood with one of its hyperparameters, or a `coupled` group of them, multiplied by a factor."""
        scaled = self
        for name in names:
            scaled = scaled.scaled(name, factor)
        return scaled

    def fitted(self, name: str, N: Array, S: Array) -> Iterator[Self]:
        """This likelihood with a hyperparameter of many numbers fitted to clusters, in ways of which the first may go too far.

        The last is a step of EM, which raises the sum of the log marginals.  No hyperparameter need be fitted.
        """
        return iter(())

    def widened(self, least: float, names: Collection[str]) -> Self:
        """This likelihood with wider clusters: the prior expects variances of at least ``least`` squared units of columns.

        The prior of the means of clusters stays as it is, or gets narrower.  Only hyperparameters of ``names`` are changed.
        """
        return self

    def smoothed(self, least: float) -> Self:
        """This likelihood with at least such a pseudo-count of every outcome of a column: half in Jeffreys' prior (1946).

        With fewer, expected log probabilities all but bar an outcome from a cluster that has not shown it: that of one which n
        rows have is psi(c + n) up to a constant, about log(c + n - 1/2) for large n, but -1/c for n = 0 and a small c.
        """
        return self

    def narrowed(self, columns: NDArray[np.bool_], names: Collection[str], N: Array, S: Array) -> Self | None:
        """This likelihood with the same parameters for all clusters in the other columns (D,), from data.

        None where it has no such, or where the hyperparameter that says so is not one of ``names``, those that are learnt.
        """
        return None

    def cost_of_learning(self, name: str, N: Array) -> float:
        """What BIC takes off the bound for a hyperparameter learnt from clusters of N (K,) rows, in nats.

        Half the logarithm of the number of rows for each number that is learnt (Schwarz 1978): one for a factor, all of those
        that are `fitted`.
        """
        return 0.5 * float(np.log(N.sum()))

    @property
    def log_hyperprior(self) -> float:
        """Log prior probability of a choice that is learnt, which the bound counts; numbers that are learnt have none."""
        return 0.0
