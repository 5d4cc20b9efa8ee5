"""The rows that a picture of a mixture shows: all of them or a sample, and what the model says of each."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..inference.reader import Reader
from ..likelihoods import Likelihood, LogScale, Product

Array = NDArray[np.floating]

MOST_ROWS = 5000
MOST_NUMBERS = 20_000_000  # of dense rows at once


class Rows(NamedTuple):
    """Rows in a picture of a mixture.

    numbers : (n,) which rows of the data they are
    X : (n, D) as the model reads them, dense, with missing values filled in
    R : (n, K) responsibilities
    reader : what else the model says of rows
    total : rows of the data
    """

    numbers: NDArray[np.intp]
    X: Array
    R: Array
    reader: Reader
    total: int

    @property
    def words(self) -> str:
        """How many of the rows are drawn, where not all are."""
        return "" if len(self.X) == self.total else f", {len(self.X):,} of {self.total:,} rows"


def rows_of(model: Any, X: Any, most: int = MOST_ROWS) -> Rows:
    """All rows of X, or a sample of so many where there are more, which is the same in every call."""
    with model._executor() as executor:
        source, columns = model._known(X, None, executor)
        n = min(source.n_rows, most, max(MOST_NUMBERS // source.n_columns, 1))
        numbers = np.arange(source.n_rows)
        if n < source.n_rows:
            numbers = np.sort(np.random.default_rng(0).choice(source.n_rows, n, replace=False))
        rows, _ = source.take(numbers)
        reader = model._reader(columns, source)
        R = reader.responsibilities(rows)
        filled = rows.toarray() if sparse.issparse(rows) else reader.impute(rows)
        return Rows(numbers, np.asarray(filled, np.float64), np.asarray(R, np.float64), reader, source.n_rows)


def plane_values(likelihood: Likelihood, X: Array) -> tuple[Array, NDArray[np.intp]]:
    """Rows (n, D) as numbers that have a place in space, (n, J), and the column of each: standardised, categories as bits.

    Columns on the log scale become logarithms.
    """
    D = X.shape[1]
    logs = _on_log_scale(likelihood, D)
    nominal = likelihood.nominal(D)
    parts: list[Array] = []
    columns: list[int] = []
    for d in range(D):
        x = X[:, d]
        levels = np.unique(x) if nominal[d] else x[:0]
        if logs[d]:
            part = np.log(x)[:, None]
        elif len(levels) > 2:
            part = (x[:, None] == levels).astype(np.float64)
        else:
            part = x[:, None]
        parts.append(part)
        columns += [d] * part.shape[1]
    Z = np.hstack(parts)
    Z = Z - Z.mean(axis=0)
    spread = Z.std(axis=0)
    return Z / np.where(spread > 0.0, spread, 1.0), np.array(columns)


def _on_log_scale(likelihood: Likelihood, D: int) -> NDArray[np.bool_]:
    """The columns (D,) of which a likelihood takes logarithms."""
    if isinstance(likelihood, LogScale):
        return likelihood.family.measured(D) & ~likelihood.measured(D)
    logs = np.zeros(D, np.bool_)
    if isinstance(likelihood, Product):
        for part, columns in likelihood.parts.values():
            logs[columns] = _on_log_scale(part, len(columns))
    return logs
