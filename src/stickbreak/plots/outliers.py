"""The rows that a mixture explains worst."""

from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import check_count
from ._canvas import QUIET, SMALL, axes_for, bare, title
from ._palette import GOOD, ODD

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LISTED, WIDE = 40, 44  # rows by number, and characters of a line of them


def outliers(model: Any, X: Any, n: int = 10, ax: "Axes | None" = None) -> "Axes":
    """Draw the log density of every row, the lowest first, and name the n rows with the lowest."""
    check_count(n, "n")
    density = model.score_samples(X)
    order = np.argsort(density, kind="stable")
    ax = axes_for(ax)
    N = len(order)
    rank = np.arange(1, N + 1)
    n = min(n, N)
    style: dict[str, Any] = {"linestyle": "none", "marker": "o", "rasterized": N > 2000}
    ax.plot(rank[n:], density[order[n:]], color=GOOD, markersize=2.5, **style)
    ax.plot(rank[:n], density[order[:n]], color=ODD, markersize=6.0, **style)
    ax.set_xscale("log")
    _list_rows(ax, [f"{i}" for i in order[: min(n, LISTED)]], n)
    middle = float(np.median(density))
    ax.axhline(middle, color=QUIET, linewidth=0.8, zorder=0)
    ax.annotate(
        "median",
        (0.5, middle),
        (0, 3),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="center",
        color=QUIET,
        fontsize=SMALL,
    )
    ax.set_xlabel("rank of the row")
    ax.set_ylabel("log density (nats)")
    title(ax, f"{N:,} rows, the {n} least probable in orange")
    bare(ax)
    return ax


def _list_rows(ax: "Axes", names: list[str], n: int) -> None:
    """The numbers of the rows, the least probable first."""
    rest = ", …" if n > len(names) else ""
    lines = wrap(f"rows {', '.join(names)}{rest}", WIDE)
    ax.text(0.02, 0.98, "\n".join(lines), transform=ax.transAxes, va="top", fontsize=SMALL, color=ODD)
