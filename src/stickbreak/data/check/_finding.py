"""What a check is given, and what it finds."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ._sample import SampledRows, Watch

Array = NDArray[np.floating]

LISTED = 4  # columns or rows named in a message
SHOWN = 5  # findings shown in a warning
LONGEST = 40  # characters of the name of a column in a message


@dataclass(frozen=True)
class Finding:
    """Something in the data that will mislead clusters.

    Attributes
    ----------
    kind : what was found, such as "constant" or "outliers"
    columns : the numbers of the columns
    names : their names, such as "income"; "column 3" where columns have none
    rows : the numbers of the rows, for outliers, at most 100
    message : what was found, in one line
    cure : what to do about it, in one line
    """

    kind: str
    columns: tuple[int, ...]
    names: tuple[str, ...]
    rows: tuple[int, ...]
    message: str
    cure: str

    def __str__(self) -> str:
        return f"{self.message}; {self.cure}."


class DataWarning(UserWarning):
    """The data have properties that will mislead clusters; `data_check_` of the fitted model lists them all."""

    @classmethod
    def of(cls, findings: Sequence[Finding]) -> "DataWarning":
        """A warning that shows the first findings, one a line."""
        lines = [str(finding) for finding in findings[:SHOWN]]
        more = len(findings) - SHOWN
        return cls("\n".join(lines + ([f"{more} more in data_check_."] if more > 0 else [])))


@dataclass(frozen=True)
class Roles:
    """How a likelihood takes each column, (D,) bool each.

    nominal : as codes of categories
    measured : as a number on a scale, by its mean and its variance
    ignored : not as a variable of its own, so that there is nothing to check
    aside : not at all, because each row has a value of its own
    """

    nominal: NDArray[np.bool_]
    measured: NDArray[np.bool_]
    ignored: NDArray[np.bool_]
    aside: NDArray[np.bool_]


@dataclass(frozen=True)
class Table:
    """A table to be checked: a sample of its rows, what was seen in all of them, and what its columns are."""

    sample: SampledRows
    watch: Watch
    roles: Roles
    names: Sequence[str] | None = None

    @property
    def D(self) -> int:
        """The number of columns."""
        return len(self.sample.sorted)

    @cached_property
    def numeric(self) -> NDArray[np.bool_]:
        """The columns (D,) whose values are numbers: those that are checked and hold no codes of categories."""
        return ~self.roles.ignored & ~self.roles.nominal

    @cached_property
    def varied(self) -> NDArray[np.bool_]:
        """The columns (D,) with at least `SEEN` values observed that are not all the same."""
        sample = self.sample
        return np.asarray((sample.n_observed >= SEEN) & (sample.least < sample.largest))

    @cached_property
    def near(self) -> Array:
        """The sample (n, D) with values beyond the limits of the watch as missing: single rows decide no correlation."""
        X = self.sample.X
        far = np.less(X, self.watch.low) | np.greater(X, self.watch.high)
        return np.where(far, np.nan, X) if far.any() else X

    def finding(self, kind: str, columns: Iterable[int], message: str, cure: str, rows: Iterable[int] = ()) -> Finding:
        """A finding about some columns; ``{}`` in the message stands for their names."""
        numbers = tuple(int(d) for d in columns)
        names = tuple(self.name(d) for d in numbers)
        said = message.format(self.listed(numbers))
        return Finding(kind, numbers, names, tuple(int(row) for row in rows), said, cure)

    def name(self, d: int) -> str:
        """The name of a column."""
        if self.names is None or self._nameless(d):
            return f"column {d}"
        text = " ".join(str(self.names[d]).split())
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."

    def listed(self, columns: Sequence[int]) -> str:
        """Names of columns for a message, such as ``columns 'a', 'b' and 3 more``."""
        shown = [str(d) if self._nameless(d) else repr(self.name(d)) for d in columns]
        return f"column{'s' * (len(columns) > 1)} {in_words(shown)}"

    def _nameless(self, d: int) -> bool:
        return self.names is None or d >= len(self.names)


Check = Callable[[Table, Sequence[Finding]], list[Finding]]

SEEN = 20  # values of a column that most findings take


def in_words(items: Sequence[str]) -> str:
    """``a, b and c``, or ``a, b, c and 5 more`` of many."""
    if len(items) > LISTED:
        return f"{', '.join(items[: LISTED - 1])} and {len(items) - LISTED + 1:,} more"
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def columns_of(found: Iterable[Finding], *kinds: str) -> set[int]:
    """The columns of the findings of some kinds."""
    return {d for finding in found if finding.kind in kinds for d in finding.columns}
