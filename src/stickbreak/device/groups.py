"""Rows of CSR matrices as groups of rows with about as many entries, each a rectangle of them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .devices import Device

Index = NDArray[np.int64]


class Group(NamedTuple):
    """Rows that have at least half as many entries as the longest of them.

    members : (m,) their numbers;  entries : (m, L) the places of their entries, filled up with the number of all entries
    """

    members: Index
    entries: Index


@dataclass(frozen=True)
class Groups:
    """The rows of a CSR matrix with n entries; those without entries are in no group."""

    n: int
    n_rows: int
    groups: tuple[Group, ...]

    @classmethod
    def of(cls, indptr: NDArray[np.integer], most: int) -> "Groups":
        """Groups of at most ``most`` entries each, filled up, or of one row."""
        sizes = np.diff(indptr).astype(np.int64)
        level = np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.int64)
        groups = []
        for own in np.unique(level[sizes > 0]):
            members = np.flatnonzero((level == own) & (sizes > 0))
            longest = int(sizes[members].max())
            for some in np.array_split(members, -(-len(members) * longest // max(most, longest))):
                places = indptr[some].astype(np.int64)[:, None] + np.arange(longest)
                groups.append(Group(some, np.where(np.arange(longest) < sizes[some, None], places, int(indptr[-1]))))
        return cls(int(indptr[-1]), len(sizes), tuple(group for group in groups if len(group.members)))

    @cached_property
    def place(self) -> Index:
        """Where each row is when those of the groups follow each other, (n_rows,); rows without entries come last."""
        members = np.concatenate([np.empty(0, np.int64), *(group.members for group in self.groups)])
        place = np.empty(self.n_rows, np.int64)
        place[members] = np.arange(len(members))
        empty = np.setdiff1d(np.arange(self.n_rows), members)
        place[empty] = len(members) + np.arange(len(empty))
        return place

    @cached_property
    def entry_place(self) -> Index:
        """Where each entry is when the rectangles of the groups follow each other, (n,)."""
        entries = np.concatenate([np.empty(0, np.int64), *(group.entries.ravel() for group in self.groups)])
        real = np.flatnonzero(entries < self.n)
        place = np.empty(self.n, np.int64)
        place[entries[real]] = real
        return place

    def joined_rows(self, device: Device, values: list[Any], empty: Any) -> Any:
        """Values of the rows of each group, (m, ...), as those of all rows in order; ``empty``: of rows without entries."""
        xp = device.xp
        return xp.take(xp.concat([*values, empty], axis=0), device.array(self.place), axis=0)

    def joined_entries(self, device: Device, values: list[Any]) -> Any:
        """Values of the entries of each group, (m, L), as those of all entries in order, (n,)."""
        xp = device.xp
        if not values:
            return device.empty((0,), np.float64)
        flat = xp.concat([xp.reshape(v, (-1,)) for v in values], axis=0)
        return xp.take(flat, device.array(self.entry_place))
