"""Pictures of a fit.  They need matplotlib: pip install stickbreak[plot]."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.atomic import named_errors
from ..inference import Lap
from ..plots._canvas import INK, matplotlib
from ..plots.fit import draw_laps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_IMAGES = 42


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
    history : the fitted attribute ``history_``, with at least one lap over all rows
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
    figure_class = matplotlib("figure").Figure
    if images is None:
        figure = figure_class(figsize=(7.5, 4.6), layout="constrained")
        draw_laps(figure.add_subplot(), history)
    else:
        figure = figure_class(figsize=(13.0, 4.8), layout="constrained")
        halves: Any = figure.subfigures(1, 2, width_ratios=[1.2, 1.0], wspace=0.04)
        draw_laps(halves[0].add_subplot(), history)
        _draw_clusters(halves[1], *_ordered(images, weights, captions))
    if path is not None:
        with named_errors(path):
            figure.savefig(path, dpi=150, bbox_inches="tight")  # the legend may be wider than its axes
    drawn: Figure = figure
    return drawn


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
