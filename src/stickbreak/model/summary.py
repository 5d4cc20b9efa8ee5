"""The state of a fit: additive summaries of rows, with a leading cluster axis."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._sums import check_between
from ..kernels.layout import in_rows
from .tree import upwards

Array = NDArray[np.floating]


def cluster_axes(n: int) -> Any:
    """Declare a field of a summary whose first n axes are clusters."""
    return field(metadata={"cluster_axes": n, "local": False})


def local_field() -> Any:
    """Declare a field (K, n) of a summary: what is known of single documents; it stays with its batch, not in sums."""
    return field(metadata={"cluster_axes": 1, "local": True})


@dataclass(frozen=True)
class Summary:
    """Everything a set of rows says to the global step and to the bound.

    Summaries are additive over rows: those of two batches add up to that of both.  An allocation that needs more than
    counts (documents, transitions) subclasses this record and adds fields; the operations below are generic in the fields.

    Attributes
    ----------
    N : (K,) expected counts, sum_n r_nk
    S : (K, F) expected statistics, sum_n r_nk t(x_n)
    H : (K,) assignment entropies, - sum_n r_nk log r_nk                                        (Thesis Eq. 3.51)
    base : () log base measure, sum_n log h(x_n)
    """

    N: Array = cluster_axes(1)
    S: Array = cluster_axes(1)
    H: Array = cluster_axes(1)
    base: Array = cluster_axes(0)

    def check(self, F: int) -> None:
        """Raise a ValueError unless the arrays fit each other and F statistics, and sums over rows can give them.

        It checks summaries from files, which are not trusted.
        """
        if np.ndim(self.N) != 1 or np.size(self.N) == 0:
            raise ValueError(f"counts of shape {np.shape(self.N)} are not those of one or more clusters.")
        for f in fields(self):
            values = getattr(self, f.name)
            axes = f.metadata["cluster_axes"]
            shape = (self.K,) * axes + self.trailing_axes(f.name, F)
            kinds = (np.float32, np.float64) if f.metadata["local"] else (np.float64,)
            if not isinstance(values, np.ndarray) or values.dtype not in kinds or values.shape != shape:
                raise ValueError(f"the summary's {f.name} is {_kind(values)} instead of numbers of shape {shape}.")
            if not np.isfinite(values).all():
                raise ValueError(f"the summary's {f.name} has values that are not finite.")
        if not self.N.sum() > 0.0:
            raise ValueError(f"the counts of all clusters add up to {self.N.sum():g}.")
        check_between("counts", self.N)

    def trailing_axes(self, name: str, F: int) -> tuple[int, ...]:
        """The axes of a field after its clusters, for F statistics."""
        if name == "S":
            return (F,)
        return (0,) if name in self._local_fields() else ()

    @classmethod
    def _local_fields(cls) -> set[str]:
        return {f.name for f in fields(cls) if f.metadata["local"]}

    @classmethod
    def zeros(cls, K: int, F: int) -> "Summary":
        """The summary of no rows."""
        return Summary(np.zeros(K), np.zeros((K, F)), np.zeros(K), np.zeros(()))

    @property
    def K(self) -> int:
        """Number of clusters."""
        return len(self.N)

    def __add__(self, other: Self) -> Self:
        return self._combine(other, np.add)

    def __sub__(self, other: Self) -> Self:
        return self._combine(other, np.subtract)

    def __mul__(self, factor: float) -> Self:
        return self._combine(self, lambda a, _: a * factor)

    def add_in_place(self, other: Self) -> None:
        """Add another summary to this one, reusing its arrays; only for arrays this object alone holds."""
        for f in fields(self):
            if not f.metadata["local"]:
                mine = getattr(self, f.name)
                mine += getattr(other, f.name)

    def laid_out(self) -> Self:
        """This sum with the statistics of each cluster side by side in memory, as loops over them are compiled for."""
        return self if self.S.flags.c_contiguous else replace(self, S=in_rows(self.S))

    def of_chunks(self, chunks: Sequence[Self]) -> Self:
        """This sum over the chunks of a batch, with what they know of single documents, one chunk after another."""
        local = self._local_fields()
        if not local:
            return self
        return replace(self, **{name: np.concatenate([getattr(c, name) for c in chunks], axis=1) for name in local})

    @property
    def has_local(self) -> bool:
        """Whether it has fields of single documents."""
        return any(f.metadata["local"] for f in fields(self))

    def only_local(self) -> Self:
        """This summary with only the fields of single documents."""
        return replace(self, **{f.name: np.empty(0) for f in fields(self) if not f.metadata["local"]})

    def without_local(self) -> Self:
        """This summary without the fields of single documents."""
        return replace(self, **{f.name: getattr(self, f.name)[:, :0] for f in fields(self) if f.metadata["local"]})

    @property
    def as_start(self) -> "Summary":
        """What the first parameters of another ascent should follow from: all of it, unless other clusters change the rest."""
        return self

    @property
    def as_sum(self) -> "Summary":
        """This summary as one that those of batches can be added to; a start may know less than they do."""
        return self

    @property
    def warm_start(self) -> Array | None:
        """What the next visit of a batch may start from, (K, n) for its n documents; None where nothing is kept of these."""
        return None

    def take(self, clusters: Sequence[int] | NDArray[np.integer]) -> Self:
        """Reorder or drop clusters."""
        return self._each(lambda a, axis: np.take(a, clusters, axis=axis))

    def merge(self, a: int, b: int) -> Self:
        """Cluster b joins cluster a."""
        joined = self._each(lambda values, _: values.copy())
        joined.absorb(a, b)
        return joined.take(np.delete(np.arange(self.K), b))

    @property
    def excludes_others(self) -> bool:
        """Whether no other summary like this can be exchanged into the same clusters: their sums of pairs are not known."""
        return False

    def absorb(self, a: int, b: int) -> None:
        """Cluster b joins cluster a and is left empty, in place; only for arrays this object alone holds."""
        for f in fields(self):
            for axis in range(f.metadata["cluster_axes"]):
                values = getattr(self, f.name).swapaxes(axis, 0)
                values[a] += values[b]
                values[b] = 0.0

    def upwards(self, parents: NDArray[np.int64]) -> Self:
        """The sums of the nodes of a tree of merges; those of entropies and of documents are not what the bound needs."""
        return self._each(lambda values, axis: upwards(values, parents, axis))

    def insert_empty(self, n: int) -> Self:
        """Append n clusters without rows (nested truncation, Thesis 3.4.3)."""

        def pad(a: Array, axis: int) -> Array:
            return np.pad(a, [(0, n if i == axis else 0) for i in range(a.ndim)])

        return self._each(pad)

    def without_statistics(self) -> Self:
        """The same without S, (K, 0): all that allocations read, cheap to rearrange."""
        return replace(self, S=self.S[:, :0])

    def exchange(self, removed: Sequence[int] | NDArray[np.integer], added: Self) -> Self:
        """Drop the clusters ``removed`` and append those of ``added``, which tell of nothing else: the edit of every move."""
        kept = np.delete(np.arange(self.K), np.asarray(removed, np.intp))
        joined = {}
        for f in fields(self):
            mine = getattr(self, f.name)
            its = getattr(added, f.name)
            axes = f.metadata["cluster_axes"]
            for axis in range(axes):
                mine = np.take(mine, kept, axis=axis)
            joined[f.name] = _beside(mine, its, axes) if axes else np.asarray(mine + its)
        return replace(self, **joined)

    def _combine(self, other: Self, operation: Callable[[Array, Array], Array]) -> Self:
        combined = {}
        for f in fields(self):
            mine = getattr(self, f.name)
            its = getattr(other, f.name)
            if f.metadata["local"]:
                mine = mine[:, :0]
                its = its[:, :0]
            combined[f.name] = np.asarray(operation(mine, its))
        return replace(self, **combined)

    def _each(self, change: Callable[[Array, int], Array]) -> Self:
        changed = {}
        for f in fields(self):
            value = getattr(self, f.name)
            for axis in range(f.metadata["cluster_axes"]):
                value = change(value, axis)
            changed[f.name] = value
        return replace(self, **changed)


def _beside(one: Array, other: Array, axes: int) -> Array:
    """The values of clusters and of others that come after them, with zeros between the two where values are of pairs."""
    if axes == 1:
        return np.concatenate([one, other])
    K = len(one)
    both = np.zeros((K + len(other),) * axes + one.shape[axes:])
    both[(slice(K),) * axes] = one
    both[(slice(K, None),) * axes] = other
    return both


def _kind(values: Any) -> str:
    return f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else repr(values)[:80]
