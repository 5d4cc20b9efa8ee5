"""Shares of topics as time goes by."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._arguments import check_count
from ._canvas import SMALL, axes_for, bare, matplotlib, title
from ._clusters import counted, short_names
from ._palette import colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.floating]


def over_time(
    model: Any,
    timestamps: Any,
    X: Any,
    n_topics: int = 7,
    n_bins: int = 20,
    lengths: Any = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the mean shares of the largest topics in the documents of each of so many spans of time.

    Documents without a timestamp are left out, and so are spans without documents.

    Raises
    ------
    ValueError : there is not a timestamp, a number or a date, for each document.
    """
    check_count(n_topics, "n_topics")
    check_count(n_bins, "n_bins")
    shares = model.transform(X, lengths)
    times, known = _times(timestamps, len(shares))
    ax = axes_for(ax, 8.0, 4.5)
    ticks = times[known].astype(np.float64)
    edges = np.linspace(ticks.min(), ticks.max(), n_bins + 1)
    span = np.clip(np.searchsorted(edges, ticks, side="right") - 1, 0, n_bins - 1)
    counts = np.bincount(span, minlength=n_bins)
    used = np.flatnonzero(counts)
    middles = 0.5 * (edges[:-1] + edges[1:])[used]
    when = middles.astype(np.int64).astype(times.dtype) if times.dtype.kind == "M" else middles
    top = np.argsort(-model.topic_shares_, kind="stable")[:n_topics]
    names = short_names(model)
    for k, color in zip(top, colors(len(top))):
        sums = np.bincount(span, shares[known, k], n_bins)
        ax.plot(when, sums[used] / counts[used], color=color, linewidth=1.8, marker="o", markersize=3.5, label=names[k])
    if times.dtype.kind == "M":
        dates = matplotlib("dates")
        locator = dates.AutoDateLocator()
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("time")
    ax.set_ylabel("mean share of the documents")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=SMALL, title="topic")
    missing = "" if known.all() else f", {int((~known).sum()):,} without a time"
    title(ax, f"{counted(len(shares), 'document')}{missing}")
    bare(ax)
    return ax


def _times(timestamps: Any, n: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Timestamps as numbers or dates, and which are known."""
    times = np.asarray(timestamps)
    if times.dtype.kind in "OUS":
        times = times.astype("datetime64[s]")
    if times.shape != (n,) or times.dtype.kind not in "Miuf":
        raise ValueError(f"timestamps must be one number or date for each of {n:,} documents; got shape {times.shape}.")
    known = ~np.isnat(times) if times.dtype.kind == "M" else np.isfinite(times)
    if not known.any():
        raise ValueError("timestamps must hold a time that is not missing.")
    return times, known
