"""The data check: what in a table of rows will mislead clusters, found on a sample and in the first pass over all rows."""

from ._columns import constant, integer_coded, long_tailed, nearly_unique, outliers, sentinels, set_aside, skewed
from ._duplicates import duplicates
from ._finding import Check, DataWarning, Finding, Roles, Table
from ._relations import collinear, one_hot, repeated
from ._sample import Extremes, Picked, SampledRows, Watch, sampled_rows

__all__ = [
    "CHECKS",
    "DataWarning",
    "Extremes",
    "Finding",
    "Picked",
    "Roles",
    "SampledRows",
    "Table",
    "Watch",
    "data_check",
    "long_tailed",
    "sampled_rows",
]

CHECKS: tuple[Check, ...] = (
    set_aside,
    constant,
    duplicates,
    nearly_unique,
    one_hot,
    repeated,
    collinear,
    sentinels,
    outliers,
    integer_coded,
    skewed,
)  # in the order in which they matter; each sees what those before it have found


def data_check(table: Table) -> list[Finding]:
    """Everything that the checks find in a table."""
    found: list[Finding] = []
    for check in CHECKS:
        found += check(table, found)
    return found
