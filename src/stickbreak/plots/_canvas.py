"""Where pictures are drawn: matplotlib, imported when a picture is asked for, and the axes and panels of a picture."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._arguments import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, QUIET, PALE = "#222222", "#767676", "#d9e2ea"
SMALL = 9  # points, of text within a picture


def matplotlib(module: str) -> Any:
    """A module of matplotlib, such as "pyplot".

    Raises
    ------
    ImportError : matplotlib is not installed.
    """
    try:
        return import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install stickbreak[plot]") from error


def axes_for(ax: "Axes | None", width: float = 7.0, height: float = 4.5) -> "Axes":
    """The given axes, or those of a new figure of so many inches.

    Raises
    ------
    ImportError : matplotlib is not installed.
    TypeError : ``ax`` is something else.
    """
    kind = matplotlib("axes").Axes
    if ax is None:
        figure = matplotlib("pyplot").figure(figsize=(width, height), layout="constrained")
        made: Axes = figure.add_subplot()
        return made
    fits: bool = isinstance(ax, kind)
    if not fits:
        raise TypeError(f"ax must be matplotlib axes, such as plt.gca(), or None; got {shown(ax)}.")
    return ax


def panels(
    ax: "Axes | None", n: int, columns: int, width: float, height: float, gap: tuple[float, float] = (0.25, 0.25)
) -> NDArray[Any]:
    """So many axes in rows of ``columns``, in a new figure with so many inches for each, or in the place of given axes.

    gap : in given axes, the room beside and below each, in widths and heights of one
    """
    columns = min(n, columns)
    rows = -(-n // columns)
    if ax is None:
        figure = matplotlib("pyplot").figure(figsize=(width * columns, height * rows + 0.4), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for unused in grid[n:]:
            unused.set_axis_off()
        return np.asarray(grid[:n])
    whole = axes_for(ax)
    whole.set_axis_off()
    beside, below = gap
    wide = 1.0 / (columns + beside * (columns - 1))
    high = 1.0 / (rows + below * (rows - 1))
    places = [divmod(i, columns) for i in range(n)]
    boxes = [(j * (1.0 + beside) * wide, 1.0 - (i * (1.0 + below) + 1.0) * high, wide, high) for i, j in places]
    return np.array([whole.inset_axes(box) for box in boxes], dtype=object)


def bare(ax: "Axes") -> None:
    """Axes without the lines at the top and on the right."""
    ax.spines[["top", "right"]].set_visible(False)


def title(ax: "Axes", text: str) -> None:
    """A title on the left."""
    ax.set_title(text, loc="left", fontsize=11)


def whole_numbers(axis: Any) -> None:
    """Ticks at whole numbers alone."""
    axis.set_major_locator(matplotlib("ticker").MaxNLocator(integer=True))


def number_axis(axis: Any, names: list[str], size: float, most: int = 40) -> None:
    """A tick with a name for each of the places 0, 1, ...; for every second, third, ... of them where there are too many."""
    step = -(-len(names) // most)
    axis.set_ticks(np.arange(0, len(names), step), names[::step], fontsize=size)
