"""The hyperparameters of likelihoods for columns of their own, by the name of the part."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ._base import Array, Likelihood


@dataclass(frozen=True, eq=False)
class LearntParts(Likelihood):
    """Likelihoods side by side, whose hyperparameters are ``part.hyperparameter``.

    parts : name -> (likelihood, columns)
    n_columns : D of the table, None before `locate`
    """

    parts: Mapping[str, tuple[Likelihood, Any]]
    n_columns: Any = field(default=None, repr=False)

    def tunables(self) -> list[str]:
        """Those of the parts, as ``part.hyperparameter``."""
        return [f"{name}.{own}" for name, (part, _) in self.parts.items() for own in part.tunables()]

    def coupled(self) -> list[list[str]]:
        """Those of the parts, as ``part.hyperparameter``."""
        groups = [(name, group) for name, (part, _) in self.parts.items() for group in part.coupled()]
        return [[f"{name}.{own}" for own in group] for name, group in groups]

    def not_given(self) -> list[str]:
        """Those of the parts, as ``part.hyperparameter``."""
        return [f"{name}.{own}" for name, (part, _) in self.parts.items() for own in part.not_given()]

    @property
    def log_hyperprior(self) -> float:
        """The sum of those of its parts."""
        return sum(part.log_hyperprior for part, _ in self.parts.values())

    def cost_of_learning(self, name: str, N: Array) -> float:
        """That of one part."""
        first, own = self._named(name)
        return self.parts[first][0].cost_of_learning(own, N)

    def scaled(self, name: str, factor: float) -> Self:
        """With one hyperparameter of one part multiplied by a factor."""
        first, own = self._named(name)
        part, columns = self.parts[first]
        scaled = part.scaled(own, factor)
        return self if scaled is part else replace(self, parts={**self.parts, first: (scaled, columns)})

    def scaled_together(self, names: Sequence[str], factor: float) -> Self:
        """With a group of hyperparameters of one part multiplied by a factor."""
        first, _ = self._named(names[0])
        part, columns = self.parts[first]
        scaled = part.scaled_together([self._named(name)[1] for name in names], factor)
        return replace(self, parts={**self.parts, first: (scaled, columns)})

    def widened(self, least: float, names: Collection[str]) -> Self:
        """With wider clusters in each part."""
        found = {}
        for name, (part, columns) in self.parts.items():
            found[name] = (part.widened(least, self._own(name, names)), columns)
        return replace(self, parts=found)

    def smoothed(self, least: float) -> Self:
        """With each part smoothed."""
        parts = {name: (part.smoothed(least), columns) for name, (part, columns) in self.parts.items()}
        same = all(part is self.parts[name][0] for name, (part, _) in parts.items())
        return self if same else replace(self, parts=parts)

    def continued(self, names: Sequence[str], other: Likelihood) -> Self:
        """With hyperparameters of the parts that have the same names in another product."""
        parts = dict(self.parts)
        for name in names:
            first, own = self._named(name)
            if isinstance(other, LearntParts) and first in other.parts:
                part, columns = parts[first]
                parts[first] = (part.continued([own], other.parts[first][0]), columns)
        return replace(self, parts=parts)

    def narrowed(self, columns: NDArray[np.bool_], names: Collection[str], N: Array, S: Array) -> Self | None:
        """With the same parameters for all clusters in the other columns, in the parts that have such."""
        found = {}
        for name, (part, own, s) in zip(self.parts, self._split(S)):
            found[name] = part.narrowed(columns[own], self._own(name, names), N, s)
        if not any(found.values()):
            return None
        return replace(self, parts={name: (found[name] or part, own) for name, (part, own) in self.parts.items()})

    def fitted(self, name: str, N: Array, S: Array) -> Iterator[Self]:
        """With one hyperparameter of one part fitted to clusters."""
        first, own = self._named(name)
        s = next(s for part, (_, _, s) in zip(self.parts, self._split(S)) if part == first)
        part, columns = self.parts[first]
        for fitted in part.fitted(own, N, s):
            yield replace(self, parts={**self.parts, first: (fitted, columns)})

    @staticmethod
    def _own(part: str, names: Collection[str]) -> list[str]:
        """Those of the hyperparameters that are of one part, by their names in it."""
        return [name.removeprefix(f"{part}.") for name in names if name.startswith(f"{part}.")]

    def _named(self, name: str) -> tuple[str, str]:
        """The part and the hyperparameter of ``part.hyperparameter``, where either may be of parts itself."""
        first, _, own = name.rpartition(".")
        if first not in self.parts:
            first, _, own = name.partition(".")
        return first, own

    @property
    def _parts(self) -> list[tuple[Likelihood, NDArray[np.intp]]]:
        if self.n_columns is None:
            raise TypeError("this likelihood has no data yet; call locate or resolve first.")
        return list(self.parts.values())

    def _split(self, S: Array) -> Iterator[tuple[Likelihood, NDArray[np.intp], Array]]:
        """Each part with its columns and statistics."""
        first = 0
        for part, columns in self._parts:
            yield part, columns, S[:, first : first + part.n_statistics]
            first += part.n_statistics


class PartMarginals:
    """The log marginals (K,) of clusters under likelihoods side by side, for many hyperparameters in turn.

    Hyperparameters are learnt one part after another: what a part gave last is taken again while it is the same.

    of : for each part, its log marginals as a function of the part
    """

    def __init__(self, of: Sequence[Callable[[Likelihood], Array]]) -> None:
        self._of = of
        self._last: list[tuple[Likelihood, Array] | None] = [None] * len(of)

    def __call__(self, likelihood: LearntParts) -> Array:
        """The sum of those of the parts."""
        return np.asarray(sum(self._part(i, part) for i, (part, _) in enumerate(likelihood.parts.values())))

    def _part(self, i: int, part: Likelihood) -> Array:
        """Those of one part."""
        last = self._last[i]
        if last is None or last[0] is not part:
            last = part, self._of[i](part)
            self._last[i] = last
        return last[1]
