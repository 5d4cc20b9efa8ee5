"""How large the clusters, topics or states are."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ._canvas import INK, QUIET, SMALL, axes_for, bare, title, whole_numbers
from ._clusters import belongs, counted, members_of, thing
from ._palette import GOOD

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELLED = 24  # bars with their numbers above
UNLIKE = 200.0  # times as large as the smallest, from which sizes are on a log scale


def sizes(model: Any, ax: "Axes | None" = None) -> "Axes":
    """Draw the expected count of each cluster in order of size."""
    ax = axes_for(ax)
    N = np.sort(model.summary_.N)[::-1]
    order = np.argsort(-model.summary_.N, kind="stable")
    K = len(N)
    what = thing(model)
    unlike = N[-1] > 0.0 and N[0] > UNLIKE * N[-1]
    if unlike:
        ax.set_yscale("log")
        ax.vlines(np.arange(K), 0.5 * N[-1], N, color=QUIET, linewidth=0.8)
        ax.plot(np.arange(K), N, "o", color=GOOD, markersize=5.0 if K <= 60 else 3.0)
        ax.set_ylim(0.5 * N[-1], 2.5 * N[0])
    else:
        for bar, k in zip(ax.bar(np.arange(K), N, width=0.8 if K <= 60 else 1.0, color=GOOD), order):
            belongs(bar, k, "bar")
        ax.set_ylim(0.0, 1.12 * max(float(N[0]), 1e-300))
    if K <= LABELLED:
        for place, count in enumerate(N):
            share = f"{count / N.sum():.1%}"
            above = (0, 4)
            ax.annotate(
                share, (place, count), above, textcoords="offset points", ha="center", color=INK, fontsize=SMALL - 1
            )
        ax.set_xticks(np.arange(K), [str(k) for k in order])
        ax.set_xlabel(what)
    else:
        whole_numbers(ax.xaxis)
        ax.set_xlabel(f"{what}s in order of size")
    ax.set_xlim(-0.8, K - 0.2)
    ax.set_ylabel(f"expected {members_of(model)}")
    title(ax, f"{counted(K, what)}, {N.sum():,.0f} {members_of(model)}")
    bare(ax)
    return ax
