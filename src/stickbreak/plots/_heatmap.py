"""Tables of numbers as colours, their rows and columns in an order that brings the like together."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering

from ._canvas import SMALL, number_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.floating]

ORDERED = 500  # items that are brought in the best order of the tree; of more the tree's own


def alike(table: Array) -> NDArray[np.intp]:
    """An order of the rows of a table in which each is near the like (average linkage)."""
    if len(table) < 3:
        return np.arange(len(table))
    tree = linkage(table, "average")
    if len(table) <= ORDERED:
        tree = optimal_leaf_ordering(tree, table)
    return np.asarray(leaves_list(tree), np.intp)


def heatmap(
    ax: "Axes", table: Array, rows: list[str], columns: list[str], colormap: str, limits: tuple[float, float], says: str
) -> Any:
    """Draw a table with the names of its rows and columns and a bar that says what the colours are."""
    low, high = limits
    image = ax.imshow(table, aspect="auto", cmap=colormap, vmin=low, vmax=high, interpolation="nearest")
    number_axis(ax.yaxis, rows, _size(len(rows)))
    number_axis(ax.xaxis, columns, _size(len(columns)))
    if max(map(len, columns), default=0) > 2:
        ax.tick_params(axis="x", rotation=90)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02, aspect=30)
    bar.set_label(says)
    bar.outline.set_visible(False)
    return image


def _size(n: int) -> float:
    """Points of the names of so many rows or columns."""
    return SMALL if n <= 24 else SMALL - 2
