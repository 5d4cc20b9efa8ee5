"""The documents with most of one topic."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import check_count, shown
from ._canvas import INK, SMALL, axes_for, bare, title
from ._clusters import short_names
from ._palette import GOOD
from ._text import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST = 48  # characters of a title


def documents(
    model: Any,
    k: int,
    X: Any,
    titles: Sequence[str] | None = None,
    n: int = 12,
    lengths: Any = None,
    vocabulary: Sequence[str] | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the share of topic k in the n documents that have most of it.

    Raises
    ------
    ValueError : there is no such topic, or not a title for each document.
    """
    check_count(n, "n")
    K = model.n_topics_
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 0 <= k < K:
        raise ValueError(f"k must be the number of a topic, from 0 to {K - 1}; got {shown(k)}.")
    share = model.transform(X, lengths)[:, k]
    names = [f"document {i:,}" for i in range(len(share))] if titles is None else list(titles)
    if len(names) != len(share):
        raise ValueError(f"titles must be one for each of {len(share):,} documents; got {len(names):,}.")
    top = np.argsort(-share, kind="stable")[:n]
    ax = axes_for(ax, 7.0, 1.3 + 0.26 * len(top))
    places = np.arange(len(top))
    ax.barh(places, share[top], color=GOOD, height=0.75)
    ax.set_yticks(places, [plain(names[i], LONGEST) for i in top], fontsize=SMALL)
    ax.set_ylim(len(top) - 0.5, -0.5)
    ax.set_xlim(0.0, 1.0)
    ax.tick_params(axis="y", length=0)
    ax.axvline(float(share.mean()), color=INK, linewidth=0.9)
    ax.set_xlabel(f"share of the topic (line: {share.mean():.2f}, the mean of all documents)")
    title(ax, f"topic {short_names(model, vocabulary)[k]}")
    bare(ax)
    return ax
