"""The tree of merges of the clusters, topics or states."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.cluster.hierarchy import dendrogram

from .._arguments import check_count
from ._canvas import INK, QUIET, SMALL, axes_for, bare, matplotlib, title
from ._clusters import counted, short_names, thing
from ._palette import colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 60  # leaves; of more clusters the last merges are drawn
UNLIKE = 30.0  # times the median loss, from which heights are on a log scale


def hierarchy(
    model: Any, n: int | None = None, vocabulary: Sequence[str] | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw what the merges of the clusters lose, the pair first that loses least; branches of n groups in their colours.

    Raises
    ------
    ValueError : there are no such number of groups.
    """
    tree = model.hierarchy_
    K = len(tree.linkage) + 1
    if n is not None:
        check_count(n, "n")
        tree.cut(n)  # refuses more than there are
    ax = axes_for(ax, 7.0, max(2.5, 1.2 + 0.22 * min(K, MOST)))
    what = thing(model)
    if K == 1:
        ax.text(0.5, 0.5, f"one {what}: nothing to merge", transform=ax.transAxes, ha="center", color=QUIET)
        ax.set_axis_off()
        return ax
    heights = tree.linkage[:, 2]
    drawn = dendrogram(
        tree.linkage,
        p=MOST,
        truncate_mode="lastp" if K > MOST else None,
        link_color_func=_branch_colors(tree, n),
        no_plot=True,
    )
    lines = [np.column_stack([far, place]) for far, place in zip(drawn["dcoord"], drawn["icoord"])]
    ax.add_collection(matplotlib("collections").LineCollection(lines, colors=drawn["color_list"], linewidths=1.4))
    names = short_names(model, vocabulary)
    labels = [_leaf(node, K, tree, names) for node in drawn["leaves"]]
    ax.set_yticks(10.0 * np.arange(len(labels)) + 5.0, labels, fontsize=SMALL if len(labels) <= 40 else SMALL - 2)
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(0.0, 1.05 * heights[-1] if heights[-1] > 0.0 else 1.0)
    ax.set_ylim(0.0, 10.0 * len(labels))
    positive = heights[heights > 0.0]
    if len(positive) and positive[-1] > UNLIKE * np.median(heights):
        ax.set_xscale("symlog", linthresh=max(float(np.median(positive)), 1e-12))
    ax.set_xlabel("loss of the merge (nats)")
    more = f", the last {len(labels) - 1} merges" if K > MOST else ""
    title(ax, f"{counted(K, what)}{more}" if n is None else f"{counted(K, what)} in {counted(n, 'group')}{more}")
    bare(ax)
    ax.spines["left"].set_visible(False)
    return ax


def _branch_colors(tree: Any, n: int | None) -> Any:
    """The colour of each node of the tree: that of its group of n, or ink where it joins groups."""
    K = len(tree.linkage) + 1
    if n is None:
        return lambda node: INK
    groups = tree.cut(n)
    names = ["#{:02x}{:02x}{:02x}".format(*np.round(255 * color).astype(int)) for color in colors(n)]
    group = np.concatenate([groups, np.zeros(K - 1, np.intp)])
    for i in range(K - 1):
        group[K + i] = group[int(tree.linkage[i, 0])]
    return lambda node: names[group[node]] if node - K < K - n else INK


def _leaf(node: int, K: int, tree: Any, names: list[str]) -> str:
    """The name of a leaf: a cluster, or how many are merged in it."""
    return names[node] if node < K else f"({int(tree.linkage[node - K, 3])})"
