"""The rows of one cluster that are most and least like it."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._arguments import check_count, shown
from ..description.distinctive import Distinctive
from ._canvas import INK, QUIET, SMALL, axes_for, panels, title
from ._clusters import counted
from ._heatmap import alike, heatmap
from ._palette import DIVERGING
from ._rows import Rows, rows_of
from ._text import column_names, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_COLUMNS = 60
WIDEST = 3.0  # standard deviations, where colours end


def members(
    model: Any,
    X: Any,
    k: int,
    n: int = 8,
    image_shape: tuple[int, int] | None = None,
    ax: "Axes | None" = None,
) -> "Axes | Figure":
    """Draw the n rows of a cluster that it explains best, and the n it explains worst.

    Raises
    ------
    ValueError : there is no such cluster, no row of X is in it, or the shape of images does not fit the columns.
    """
    check_count(n, "n")
    K = model.summary_.K
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 0 <= k < K:
        raise ValueError(f"k must be the number of a cluster, from 0 to {K - 1}; got {shown(k)}.")
    rows = rows_of(model, X)
    own = np.flatnonzero(rows.R.argmax(axis=1) == k)
    if not len(own):
        raise ValueError(f"no row of X is in cluster {k}.")
    order = own[np.argsort(-_densities(rows, own, k), kind="stable")]
    typical = order[:n]
    strange = order[max(len(typical), len(order) - n) :][::-1]
    says = f"cluster {k}: {counted(len(own), 'row')}{rows.words}"
    if image_shape is not None:
        return _images(rows, typical, strange, image_shape, says, ax)
    return _table(model, rows, typical, strange, says, ax)


def _densities(rows: Rows, own: NDArray[np.intp], k: int) -> NDArray[np.floating]:
    """Log predictive densities of some rows under their cluster."""
    reader = rows.reader
    summary = reader.summary.take(np.array([k]))
    return np.asarray(reader.model.likelihood.log_predictive(rows.X[own], summary.N, summary.S)[:, 0])


def _images(
    rows: Rows,
    typical: NDArray[np.intp],
    strange: NDArray[np.intp],
    image_shape: tuple[int, int],
    says: str,
    ax: "Axes | None",
) -> "Figure":
    """Images of the typical rows above those of the strange ones."""
    D = rows.X.shape[1]
    if len(image_shape) != 2 or int(np.prod(image_shape)) != D:
        raise ValueError(f"image_shape must be the height and width of images of {D} pixels; got {image_shape}.")
    columns = len(typical)
    tiles = panels(ax, columns + len(strange), columns, 1.1, 1.25)
    images = rows.X.reshape(len(rows.X), *image_shape)
    chosen = [*typical, *strange]
    low = float(images[chosen].min())
    high = float(images[chosen].max())
    for tile, i in zip(tiles, chosen):
        tile.imshow(images[i], cmap="gray_r", vmin=low, vmax=high)
        tile.set(xticks=[], yticks=[])
        tile.spines[:].set_color("#cccccc")
        tile.set_xlabel(f"row {rows.numbers[i]:,}", fontsize=SMALL - 1, color=QUIET, labelpad=2)
    tiles[0].set_ylabel("typical", color=INK)
    if len(strange):
        tiles[columns].set_ylabel("strangest", color=INK)
    figure: Figure = tiles[0].figure
    if ax is None:
        figure.suptitle(says, x=0.01, ha="left", fontsize=11)
    else:
        title(ax, says)
    return figure


def _table(
    model: Any,
    rows: Rows,
    typical: NDArray[np.intp],
    strange: NDArray[np.intp],
    says: str,
    ax: "Axes | None",
) -> "Axes":
    """Columns by rows, in standard deviations from the mean of all."""
    chosen = np.concatenate([typical, strange])
    found = Distinctive.of(model)
    center = rows.X.mean(axis=0)
    spread = rows.X.std(axis=0)
    z = (rows.X[chosen] - center) / np.where(spread > 0.0, spread, 1.0)
    columns = np.unique(found.profile.columns[np.argsort(-np.abs(found.z).max(axis=0), kind="stable")[:MOST_COLUMNS]])
    if len(columns) < MOST_COLUMNS and z.shape[1] <= MOST_COLUMNS:
        columns = np.arange(z.shape[1])
    columns = columns[alike(_by_column(found, columns))]
    names = [plain(name) for name in np.array(column_names(model), dtype=object)[columns]]
    labels = [f"row {i:,}" for i in rows.numbers[chosen]]
    ax = axes_for(ax, 3.0 + 0.3 * min(len(columns), 40), 1.8 + 0.22 * len(chosen))
    limit = WIDEST
    heatmap(ax, z[:, columns], labels, names, DIVERGING, (-limit, limit), "sd from the mean")
    ax.axhline(len(typical) - 0.5, color=INK, linewidth=1.2)
    for place, word in ((0.5 * (len(typical) - 1), "typical"), (len(typical) + 0.5 * (len(strange) - 1), "strangest")):
        if word == "typical" or len(strange):
            ax.annotate(
                word,
                (0.0, place),
                (-74, 0),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                rotation=90,
                va="center",
                ha="center",
                color=QUIET,
            )
    title(ax, says)
    return ax


def _by_column(found: Distinctive, columns: NDArray[np.intp]) -> NDArray[np.floating]:
    """The values (n, K) by which columns are brought in order: of each, that of its most distinctive level."""
    out = np.zeros((len(columns), len(found.z)))
    strength = np.abs(found.z).max(axis=0)
    for i, d in enumerate(columns):
        own = np.flatnonzero(found.profile.columns == d)
        if len(own):
            out[i] = found.z[:, own[strength[own].argmax()]]
    return out
