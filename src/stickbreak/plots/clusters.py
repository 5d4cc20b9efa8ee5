"""The clusters of a mixture in two dimensions."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd

from .._arguments import shown
from ._canvas import INK, SMALL, axes_for, bare, matplotlib, title
from ._clusters import belong, belongs, counted
from ._palette import colors
from ._rows import Rows, plane_values, rows_of
from ._text import column_names, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.floating]

MOST_DIMENSIONS = 100  # of rows; of more, their principal axes
MOST_MARKS = 2000  # of more rows the marks are an image
NUMBERED, WIDELY = 60, 12  # clusters with their numbers, and with both ellipses
FAINTEST = 0.15  # alpha of a row that may belong to any cluster
RIDGE = 1e-3  # of the spread within clusters


class Plane(NamedTuple):
    """Rows in two dimensions, (n, 2), what the axes are, and what the picture says of them."""

    points: Array
    labels: tuple[str, str]
    words: str


def clusters(model: Any, X: Any, projection: str | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the rows in the plane in which clusters are furthest apart.

    Raises
    ------
    ValueError : there is no such projection.
    """
    if projection is not None and projection not in PROJECTIONS:
        raise ValueError(
            f"projection must be None or one of {', '.join(map(repr, PROJECTIONS))}; got {shown(projection)}."
        )
    ax = axes_for(ax, 6.5, 5.5)
    rows = rows_of(model, X)
    names = [plain(name) for name in column_names(model)]
    if rows.X.shape[1] == 1:
        return _one_column(ax, rows, names[0], model.n_clusters_)
    plane = _plane(model, rows, names, projection)
    K = model.n_clusters_
    labels = rows.R.argmax(axis=1)
    certainty = np.ones(len(labels)) if K == 1 else (rows.R.max(axis=1) - 1.0 / K) / (1.0 - 1.0 / K)
    hue = colors(K)
    shade = np.column_stack([hue[labels], FAINTEST + (0.85 - FAINTEST) * certainty])
    size = np.clip(4000.0 / len(labels), 4.0, 24.0)
    x, y = plane.points.T
    marks = ax.scatter(x, y, s=size, c=shade, linewidths=0, rasterized=len(labels) > MOST_MARKS)
    belong(marks, labels[: MOST_MARKS + 1], "rows")
    _draw_shapes(ax, plane.points, rows.R, hue)
    ax.set_xlabel(plane.labels[0])
    ax.set_ylabel(plane.labels[1])
    title(ax, f"{counted(K, 'cluster')}, {plane.words}{rows.words}")
    bare(ax)
    return ax


def _plane(model: Any, rows: Rows, names: list[str], projection: str | None) -> Plane:
    D = rows.X.shape[1]
    if projection is None and D == 2:
        return Plane(rows.X, (names[0], names[1]), "as they are")
    Z, columns = plane_values(model.model_.likelihood, rows.X)
    basis = np.eye(Z.shape[1])
    if Z.shape[1] > MOST_DIMENSIONS:
        _, _, V = randomized_svd(Z, MOST_DIMENSIONS, random_state=0)
        basis = V.T
    several = (rows.R.sum(axis=0) > 0.0).sum() > 1
    name = projection if projection is not None else ("discriminant" if several else "pca")
    axes = basis @ PROJECTIONS[name](Z @ basis, rows.R)
    points = Z @ axes
    labels = [f"{_loadings(axes[:, i], columns, names)}" for i in range(2)]
    return Plane(points, (labels[0], labels[1]), f"{WORDS[name]} axes")


def _loadings(axis: Array, columns: NDArray[np.intp], names: list[str]) -> str:
    """The columns that count for most along an axis, with their signs."""
    top = list(dict.fromkeys(columns[np.argsort(-np.abs(axis), kind="stable")].tolist()))[:3]
    signs = ["+" if axis[columns == d].sum() >= 0.0 else "−" for d in top]
    return "  ".join(f"{sign} {names[d]}" for sign, d in zip(signs, top))


def principal(Z: Array, R: Array) -> Array:
    """The two axes along which rows (n, J) differ most, (J, 2)."""
    _, vectors = np.linalg.eigh(np.cov(Z, rowvar=False))
    return np.asarray(vectors[:, :-3:-1])


def discriminant(Z: Array, R: Array) -> Array:
    """The two axes along which clusters differ most beside their rows (Fisher), (J, 2): the best two of

        between a = lambda within a

    Of two clusters there is one; the other is the principal axis of what it leaves.
    """
    N = np.maximum(R.sum(axis=0), 1e-300)
    means = (R.T @ Z) / N[:, None] - Z.mean(axis=0)
    total = np.cov(Z, rowvar=False, ddof=0)
    between = (means.T * N) @ means / len(Z)
    within = total - between + RIDGE * np.trace(total) / len(total) * np.eye(len(total))
    root = np.linalg.inv(np.linalg.cholesky(within))
    values, vectors = np.linalg.eigh(root @ between @ root.T)
    first = root.T @ vectors[:, -1]
    first = first / np.linalg.norm(first)
    second = root.T @ vectors[:, -2]
    if values[-2] < 1e-6 * values[-1]:
        rest = np.eye(len(first)) - np.outer(first, first)
        second = np.linalg.eigh(rest @ total @ rest)[1][:, -1]
    return np.column_stack([first, second / np.linalg.norm(second)])


PROJECTIONS = {"discriminant": discriminant, "pca": principal}
WORDS = {"discriminant": "discriminant", "pca": "principal"}


def _draw_shapes(ax: "Axes", points: Array, R: Array, hue: Array) -> None:
    """The ellipses of one and two standard deviations of each cluster, and its number in the middle."""
    ellipse = matplotlib("patches").Ellipse
    outline = matplotlib("patheffects").withStroke(linewidth=2.5, foreground="white")
    K = R.shape[1]
    for k in range(K):
        weights = R[:, k]
        n = weights.sum()
        if not n > 0.5:
            continue
        center = weights @ points / n
        spread = (weights[:, None] * (points - center)).T @ (points - center) / n
        values, vectors = np.linalg.eigh(spread)
        angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
        lengths = 2.0 * np.sqrt(np.maximum(values[::-1], 0.0))
        dark = 0.75 * hue[k]
        for times in (1.0, 2.0) if K <= WIDELY else (1.0,):
            wide = 1.1 if K <= NUMBERED else 0.6
            shape = ellipse(center, *(times * lengths), angle=angle, fill=False, edgecolor=dark, linewidth=wide)
            belongs(ax.add_patch(shape), k, f"shape{times:.0f}")
        if K <= NUMBERED:
            text: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL, "path_effects": [outline]}
            belongs(ax.text(center[0], center[1], str(k), color=INK, weight="bold", **text), k, "number")


def _one_column(ax: "Axes", rows: Rows, name: str, K: int) -> "Axes":
    """Rows of a single column: how many there are of each value, cluster upon cluster."""
    x = rows.X[:, 0]
    edges = np.histogram_bin_edges(x, bins=min(60, max(10, len(x) // 10)))
    parts = [np.histogram(x, edges, weights=rows.R[:, k])[0] for k in range(K)]
    below = np.zeros(len(edges) - 1)
    for k, (part, color) in enumerate(zip(parts, colors(K))):
        ax.bar(edges[:-1], part, np.diff(edges), below, align="edge", color=color, label=str(k))
        below = below + part
    if K <= 12:
        ax.legend(title="cluster", frameon=False, fontsize=SMALL)
    ax.set_xlabel(name)
    ax.set_ylabel("expected rows")
    title(ax, counted(K, "cluster"))
    bare(ax)
    return ax
