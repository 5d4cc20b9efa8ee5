"""Topics in two dimensions, near where their words are alike."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from ._canvas import INK, QUIET, SMALL, axes_for, matplotlib, title
from ._clusters import belong, belongs, counted, short_names
from ._palette import GOOD

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.floating]

NUMBERED, NAMED = 80, 20  # topics with numbers, and with words
LARGEST = 2400.0  # points squared, the area of the largest topic


def topic_map(model: Any, vocabulary: Sequence[str] | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw topics as circles, of an area in proportion to their share of all tokens.

    Their distances are as near as two dimensions allow to the root of the Jensen-Shannon divergence of their words.

    Raises
    ------
    TypeError : the topics are not of words.
    """
    topics = model._topics()
    shares = np.asarray(model.topic_shares_)
    K = len(topics)
    where = _in_the_plane(squareform(pdist(topics, "jensenshannon")))
    ax = axes_for(ax, 9.8, 6.0)
    area = LARGEST * shares / shares.max()
    x, y = where.T
    belong(ax.scatter(x, y, s=area, color=GOOD, alpha=0.35, edgecolors=GOOD, linewidths=1.0), range(K), "circle")
    outline = [matplotlib("patheffects").withStroke(linewidth=2.5, foreground="white")]
    names = short_names(model, vocabulary)
    order = np.argsort(-shares, kind="stable")
    for k in order[:NUMBERED]:
        text = ax.annotate(str(k), where[k], ha="center", va="center", fontsize=SMALL, color=INK, path_effects=outline)
        belongs(text, k, "number")
    listed = "\n".join(names[k] for k in order[:NAMED])
    rest = f"\nand {K - NAMED:,} smaller topics" if K > NAMED else ""
    ax.text(1.03, 1.0, f"{listed}{rest}", transform=ax.transAxes, va="top", fontsize=SMALL, linespacing=1.5)
    middle = 0.5 * (where.min(axis=0) + where.max(axis=0))
    half = 0.65 * max(float(np.ptp(where, axis=0).max()), 0.1)
    ax.set_xlim(middle[0] - half, middle[0] + half)
    ax.set_ylim(middle[1] - half, middle[1] + half)
    ax.set_aspect("equal")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_color("#cccccc")
    ax.set_xlabel("near where words are alike (Jensen-Shannon); area: share of all tokens", color=QUIET, fontsize=SMALL)
    title(ax, counted(K, "topic"))
    return ax


def _in_the_plane(distances: Array) -> Array:
    """Points (K, 2) whose distances are near those given, (K, K): classical scaling."""
    K = len(distances)
    center = np.eye(K) - 1.0 / K
    values, vectors = np.linalg.eigh(-0.5 * center @ distances**2 @ center)
    top = vectors[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0.0))
    out = np.zeros((K, 2))
    out[:, : top.shape[1]] = top
    return out
