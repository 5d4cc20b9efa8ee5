"""Which clusters other fits find, too."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ._canvas import INK, SMALL, axes_for, bare, number_axis, title
from ._clusters import thing
from ._palette import GOOD

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.floating]


class Agreement(Protocol):
    """What fits of the same data have in common, as `stickbreak.estimators.Stability` says it."""

    @property
    def agreement(self) -> float:
        """The mean over pairs of fits."""
        ...

    @property
    def overlaps(self) -> Array:
        """How much of each cluster the most similar one of every fit has, (n_fits, n)."""
        ...

    @property
    def twins(self) -> Array:
        """The mean of ``overlaps`` over fits, (n,)."""
        ...

    @property
    def n_clusters(self) -> Sequence[int]:
        """Of each fit."""
        ...


def stability(model: Any, found: Agreement, ax: "Axes | None" = None) -> "Axes":
    """Draw how much of each cluster the most similar one of every fit has, and the mean."""
    fits, n = found.overlaps.shape
    ax = axes_for(ax, 2.5 + 0.3 * float(np.clip(n, 12, 40)), 4.2)
    aside = np.linspace(-0.25, 0.25, fits)[:, None] + np.arange(n)
    ax.plot(aside.ravel(), found.overlaps.ravel(), "o", color=GOOD, markersize=4.0, alpha=0.6, label="each fit")
    ax.hlines(found.twins, np.arange(n) - 0.38, np.arange(n) + 0.38, color=INK, linewidth=2.0, label="mean")
    number_axis(ax.xaxis, [str(k) for k in range(n)], SMALL if n <= 24 else SMALL - 2)
    ax.set_xlim(-0.7, n - 0.3)
    ax.set_ylim(0.0, 1.04)
    what = thing(model)
    ax.set_xlabel(what if n == model.summary_.K else f"group of {what}s")
    ax.set_ylabel("overlap with the most similar of a fit")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False, fontsize=SMALL)
    low, high = min(found.n_clusters), max(found.n_clusters)
    range_of = f"{low}" if low == high else f"{low} to {high}"
    title(ax, f"{fits} fits with {range_of} {what}s, agreement {found.agreement:.2f}")
    bare(ax)
    return ax
