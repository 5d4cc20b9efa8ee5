"""How alike topics are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._canvas import axes_for, title
from ._clusters import counted, short_names
from ._heatmap import alike, heatmap
from ._palette import SEQUENTIAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def similarity(model: Any, vocabulary: Sequence[str] | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the cosines of the words of each pair of topics, those alike beside each other.

    Raises
    ------
    TypeError : the topics are not of words.
    """
    topics = model._topics()
    unit = topics / np.linalg.norm(topics, axis=1, keepdims=True)
    K = len(unit)
    order = alike(unit)
    cosines = (unit @ unit.T)[np.ix_(order, order)]
    names = short_names(model, vocabulary)
    side = 2.5 + 0.24 * min(K, 30)
    ax = axes_for(ax, side + 2.8, side)
    rows = [names[k] for k in order]
    heatmap(ax, cosines, rows, [str(k) for k in order], SEQUENTIAL, (0.0, 1.0), "cosine of the probabilities of words")
    ax.set_xlabel("topic")
    title(ax, counted(K, "topic"))
    return ax
