"""Which family was chosen, and by how many nats."""

from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ._canvas import INK, SMALL, axes_for, bare, title
from ._clusters import counted, thing
from ._palette import GOOD
from ._text import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST, WIDE = 120, 44  # characters of a family with its columns, and of a line


def selection(model: Any, ax: "Axes | None" = None) -> "Axes":
    """Draw how far the bound of each family is below the highest.

    Raises
    ------
    ValueError : there was nothing to choose.
    """
    candidates = list(getattr(model, "selection_", []))
    if not candidates:
        raise ValueError(
            'selection_ is empty: there was nothing to choose; families are chosen with likelihood="auto".'
        )
    bounds = np.array([candidate.lower_bound for candidate in candidates])
    behind = bounds.max() - bounds
    ax = axes_for(ax, 8.0, 1.5 + 0.5 * len(candidates))
    places = np.arange(len(candidates))
    ax.hlines(places, 0.0, behind, color=GOOD, linewidth=2.0)
    ax.plot(behind, places, "o", color=GOOD, markersize=8.0)
    what = thing(model)
    for place, gap, candidate in zip(places, behind, candidates):
        text = f"{gap:,.1f} nats, {counted(candidate.n_clusters, what)}"
        ax.annotate(text, (1.02, place), xycoords=("axes fraction", "data"), va="center", fontsize=SMALL, color=INK)
    names = ["\n".join(wrap(plain(candidate.family, LONGEST), WIDE)) for candidate in candidates]
    names[0] = f"{names[0]} (chosen)"
    ax.set_yticks(places, names, fontsize=SMALL)
    ax.set_ylim(len(candidates) - 0.5, -0.5)
    if behind.max() > 0.0:
        ax.set_xscale("symlog", linthresh=1.0)
    ax.set_xlim(-0.3, max(1.0, 2.0 * behind.max()))
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("nats below the highest bound")
    title(ax, f"{len(candidates)} candidates")
    bare(ax)
    return ax
