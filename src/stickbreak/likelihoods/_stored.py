"""How a likelihood from a file is checked."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ._hyperparameters import LARGEST, require
from ._sample import Sample

Array = NDArray[np.floating]

FEW_COLUMNS = 1024  # a table may always have this many


@dataclass(frozen=True, eq=False)
class Stored(ABC):
    """A likelihood that may come from a file, which is not trusted."""

    @abstractmethod
    def resolve(self, sample: Sample) -> Self:
        """This likelihood with every hyperparameter a number or array, scaled from a sample of the data.

        What is given, or resolved already, stays as it is: resolving twice changes no hyperparameter.
        """

    @property
    @abstractmethod
    def n_statistics(self) -> int:
        """F, the length of t(x)."""

    def resolved_columns(self) -> int | None:
        """The number of columns that this was resolved for, according to its arrays, or None if they do not tell."""
        return None

    def check(self, D: int, N: Array, S: Array) -> None:
        """Raise a ValueError unless data of D columns can have given this resolved likelihood, and N (K,) and S (K, F).

        It checks models from files, which are not trusted: the sizes of stored arrays are compared before any other array is
        made, and all hyperparameters pass `resolve` once more.
        """
        known = self.resolved_columns()
        F = self.n_statistics
        family = type(self).__name__
        if known != D and not (known is None and max(F, FEW_COLUMNS) >= D):
            raise ValueError(f"a {family} for {F if known is None else known} columns does not fit {D} columns.")
        if S.shape != (len(N), F):
            raise ValueError(f"statistics of shape {S.shape} do not fit {len(N)} clusters of a {family} with {F} each.")
        expected = self.resolve(Sample.of(self._rows_like_those_of_the_fit(D)))
        for f in fields(self):
            own = getattr(self, f.name)
            wanted = getattr(expected, f.name)
            if not _is_like(own, wanted) or (f.repr and not np.array_equal(own, wanted)):  # repr=False: from data
                raise ValueError(f"the {family}'s {f.name} does not fit {D} columns; got {own!r:.80}.")
        self.check_sums(N, S)

    def _rows_like_those_of_the_fit(self, D: int) -> Array:
        """Two rows (2, D), one unit on either side of the origin if the likelihood has these, to check hyperparameters with."""
        origin, unit = (getattr(self, name, None) for name in ("origin", "unit"))
        if origin is None and unit is None:
            return np.ones((2, D))
        center = np.broadcast_to(0.0 if origin is None else origin, (D,))
        step = np.broadcast_to(np.maximum(1.0, np.abs(center)) if unit is None else unit, (D,))
        rows = np.stack([center - step, center + step])
        return rows if (np.abs(rows) <= LARGEST).all() else np.ones((2, D))

    def check_sums(self, N: Array, S: Array) -> None:
        """Raise a ValueError where what `resolve` makes from data, or the counts N and statistics S, are impossible."""
        require(bool(np.isfinite(S).all()), "S", S, "finite")


def _is_like(value: Any, other: Any) -> bool:
    """Whether two values are of the same type of numbers and shape."""
    if value is None or other is None:
        return value is other
    one = np.asarray(value)
    two = np.asarray(other)
    return one.dtype == two.dtype and one.shape == two.shape
