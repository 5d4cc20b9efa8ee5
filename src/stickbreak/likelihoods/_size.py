"""How many numbers a family of clusters needs."""

from typing import NamedTuple


class Size(NamedTuple):
    """How many numbers a family needs, known before anything is allocated.

    statistics : F;  entries : the features of a dense row;  update : those a global step makes for each cluster beside S and W
    prior : the prior, while it is made
    """

    statistics: int
    entries: int
    update: int
    prior: int

    @classmethod
    def of_columns(cls, F: int) -> "Size":
        """The size of a family with a few parameters for each of F statistics."""
        return cls(F, F, 5 * F, 8 * F)
