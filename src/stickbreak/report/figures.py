"""Pictures of a fit.  They need matplotlib: pip install stickbreak[plot]."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.atomic import named_errors
from ..inference import Lap, ascents

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_IMAGES = 42
INK, QUIET, PALE = "#222222", "#767676", "#d9e2ea"
MARKERS = {"birth": ("^", "#0072b2"), "merge": ("o", "#d55e00"), "delete": ("X", "#009e73")}  # Okabe and Ito


def plot_fit(
    history: Sequence[Lap],
    images: ArrayLike | None = None,
    path: str | os.PathLike[str] | None = None,
    *,
    weights: ArrayLike | None = None,
    captions: Sequence[str] | None = None,
) -> "Figure":
    """Draw how a fit went, and what its clusters look like.

    Left, lap by lap: the ELBO of the best model, the moves accepted, and the number of clusters.  Right: an image of each
    cluster in decreasing order of weight.

    Parameters
    ----------
    history : the fitted attribute ``history_``, at least one lap over all rows; laps on a sample are left out
    images : (K, height, width) an image of each cluster, such as its mean; without them the left part stands alone
    path : where to save the picture, if anywhere; the ending (.png, .svg, .pdf) decides the kind
    weights : (K,) cluster weights; they order the images and are their captions
    captions : K texts to write under the images instead

    Returns
    -------
    The matplotlib figure.

    Raises
    ------
    ImportError : matplotlib is not installed.
    ValueError : there is no lap, or the shapes do not fit.
    """
    history = [lap for lap in history if not lap.sample_rows]
    if not history:
        raise ValueError("history is empty: fit the model first.")
    figure_class = _figure_class()
    if images is None:
        figure = figure_class(figsize=(7.5, 4.6), layout="constrained")
        _draw_laps(figure.add_subplot(), history)
    else:
        figure = figure_class(figsize=(13.0, 4.8), layout="constrained")
        halves: Any = figure.subfigures(1, 2, width_ratios=[1.2, 1.0], wspace=0.04)
        _draw_laps(halves[0].add_subplot(), history)
        _draw_clusters(halves[1], *_ordered(images, weights, captions))
    if path is not None:
        with named_errors(path):
            figure.savefig(path, dpi=150)
    return figure


def _figure_class() -> "type[Figure]":
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install stickbreak[plot]") from error
    return Figure


def _draw_laps(axes: "Axes", history: Sequence[Lap]) -> None:
    """The ELBO and the accepted moves, before the number of clusters as a pale staircase on a second axis."""
    laps = np.array([lap.number for lap in history])
    bounds = np.array([lap.lower_bound for lap in history])
    bottom, top = visible_range(bounds)
    twin = axes.twinx()
    _draw_counts(twin, laps, history)
    axes.set_zorder(twin.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.plot(laps, bounds, color=INK, linewidth=1.8, label="ELBO of the best model")
    margin = 0.03 * (top - bottom)
    for kind, (marker, color) in MARKERS.items():
        at = np.array([_accepted(lap, kind) > 0 for lap in history])
        total = sum(_accepted(lap, kind) for lap in history)
        if total:
            style: dict[str, Any] = {
                "marker": marker,
                "s": 58,
                "color": color,
                "edgecolors": "white",
                "linewidths": 0.8,
            }
            label = f"{kind}: {total} accepted"
            axes.scatter(laps[at], np.maximum(bounds[at], bottom + margin), zorder=3, label=label, **style)
    axes.set_ylim(bottom - margin, top + 3 * margin)
    _mark_excursions(axes, history, bottom + margin)
    axes.set_xlim(laps[0] - 0.5, max(laps[-1], 2) + 0.5)
    axes.set_xlabel("lap")
    axes.set_ylabel("ELBO (nats)")
    decimals = max(0, int(np.ceil(1.0 - np.log10(top - bottom))))
    axes.yaxis.set_major_formatter(f"{{x:,.{decimals}f}}")
    axes.xaxis.set_major_locator(_whole_numbers())
    axes.spines["top"].set_visible(False)
    axes.legend(loc="lower right", frameon=True, framealpha=0.9, edgecolor="none", fontsize=9)
    last = history[-1]
    title = f"K = {last.n_clusters}, ELBO {last.lower_bound:,.0f} after {last.number} laps in {last.seconds:.1f} s"
    axes.set_title(title, loc="left", fontsize=11)


def _mark_excursions(axes: "Axes", history: Sequence[Lap], lowest: float) -> None:
    """A star where an excursion that was kept ended."""
    excursions = [ascent for ascent in ascents(history) if ascent.is_excursion]
    kept = [ascent.last for ascent in excursions if ascent.kept]
    if kept:
        heights = np.maximum([lap.lower_bound for lap in kept], lowest)
        label = f"excursions: {len(kept)} of {len(excursions)} kept"
        axes.scatter([lap.number for lap in kept], heights, marker="*", s=90, color=INK, zorder=4, label=label)


def _draw_counts(axes: "Axes", laps: NDArray[Any], history: Sequence[Lap]) -> None:
    tried = [lap.explored_clusters for lap in history]
    axes.fill_between(laps, tried, step="mid", color=PALE, linewidth=0)
    axes.set_ylim(0, 1.8 * max(tried))
    axes.yaxis.set_major_locator(_whole_numbers())
    axes.set_ylabel("clusters at work (shaded)", color=QUIET)
    axes.tick_params(axis="y", colors=QUIET)
    axes.spines[["top", "left"]].set_visible(False)


def _whole_numbers() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True)


def _accepted(lap: Lap, kind: str) -> int:
    """Moves of a kind accepted in a lap that worked on the best model."""
    if lap.explored_bound < lap.lower_bound:
        return 0
    return sum(record.accepted for record in lap.moves if record.kind == kind)


def visible_range(bounds: NDArray[np.floating]) -> tuple[float, float]:
    """Limits of an axis that shows how the bound rose: from the second lap, unless the first laps dwarf all others."""
    top = float(bounds.max())
    later = bounds[min(1, len(bounds) - 1) :]
    usual = top - float(np.quantile(later, 0.1))
    bottom = max(float(later.min()), top - 4.0 * usual) if usual > 0.0 else float(later.min())
    if bottom < top:
        return bottom, top
    return top - max(1.0, 1e-3 * abs(top)), top


def _ordered(
    images: ArrayLike, weights: ArrayLike | None, captions: Sequence[str] | None
) -> tuple[NDArray[np.floating], list[str]]:
    """Images and captions in decreasing order of weight."""
    pixels = np.asarray(images, dtype=float)
    if pixels.ndim != 3 or len(pixels) == 0:
        raise ValueError(f"images must have the shape (clusters, height, width); got {pixels.shape}.")
    K = len(pixels)
    share = None if weights is None else np.asarray(weights, dtype=float)
    for name, given in (("weights", share), ("captions", captions)):
        if given is not None and len(given) != K:
            raise ValueError(f"{name} must have one entry for each of the {K} images; got {len(given)}.")
    order = np.arange(K) if share is None else np.argsort(-share, kind="stable")
    if captions is not None:
        texts = list(captions)
    else:
        texts = [f"cluster {k}" for k in range(K)] if share is None else [f"{100.0 * w:.1f}%" for w in share]
    return pixels[order], [texts[k] for k in order]


def _draw_clusters(figure: Any, images: NDArray[np.floating], captions: list[str]) -> None:
    K = len(images)
    shown = min(len(images), MOST_IMAGES)
    widths = range(int(np.ceil(np.sqrt(shown))), int(np.ceil(np.sqrt(2 * shown))) + 1)
    columns = min(widths, key=lambda width: (-shown % width, width))  # the fewest gaps
    grid = figure.subplots(-(-shown // columns), columns, squeeze=False).ravel()
    low = float(images[:shown].min())
    high = float(images[:shown].max())
    for axes, image, caption in zip(grid, images, captions):
        axes.imshow(image, cmap="gray_r", vmin=low, vmax=high, interpolation="bilinear")
        axes.set_xlabel(caption, fontsize=10, color=INK, labelpad=3)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_color("#cccccc")
    for axes in grid[shown:]:
        axes.set_visible(False)
    rest = f", the largest {shown} of {K}" if shown < K else ""
    figure.suptitle(f"Clusters by weight{rest}", fontsize=11)
