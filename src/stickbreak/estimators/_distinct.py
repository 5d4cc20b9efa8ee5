"""Rows as laps visit them: each distinct one once, where many repeat."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..cluster.sources import is_spread
from ..data import ArraySource
from ..data.distinct import Collapsed, collapse


class Distinct(NamedTuple):
    """Rows to visit; ``collapsed`` says how they came about, None where they are the rows of the data."""

    rows: ArraySource
    collapsed: Collapsed | None = None

    @classmethod
    def of(cls, source: ArraySource) -> Self:
        """The distinct rows of a source, with their weights; its rows where that would not save work, or on a cluster."""
        collapsed = None if is_spread(source) else collapse(source)
        return cls(source) if collapsed is None else cls(collapsed.source, collapsed)

    @property
    def n_given(self) -> int:
        """N, the number of rows of the data."""
        return self.rows.n_rows if self.collapsed is None else len(self.collapsed.inverse)

    def expanded(self, labels: NDArray[np.intp]) -> NDArray[np.intp]:
        """Labels of all rows of the data (N,), from those of the rows visited."""
        return labels if self.collapsed is None else np.asarray(labels[self.collapsed.inverse])
