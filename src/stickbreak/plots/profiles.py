"""What sets clusters or states apart: columns against clusters."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..description.distinctive import Distinctive
from ._canvas import axes_for, title
from ._clusters import counted, thing
from ._heatmap import alike, heatmap
from ._palette import DIVERGING
from ._text import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 60  # columns: those in which clusters differ most
WIDEST = 3.0  # standard deviations, where colours end


def profiles(model: Any, ax: "Axes | None" = None) -> "Axes":
    """Draw the mean of each column in each cluster, in standard deviations from that of all rows."""
    found = Distinctive.of(model)
    z = np.asarray(found.z)
    K, J = z.shape
    shown = np.sort(np.argsort(-np.abs(z).max(axis=0), kind="stable")[:MOST])
    shown = shown[alike(z[:, shown].T)]
    names = [plain(found.names[j]) for j in shown]
    limit = float(np.clip(np.abs(z).max(initial=0.0), 1.0, WIDEST))
    ax = axes_for(ax, 3.6 + 0.3 * min(K, 40), max(3.2, 1.6 + 0.22 * len(shown)))
    what = thing(model)
    says = "standard deviations from the mean"
    heatmap(ax, z[:, shown].T, names, [str(k) for k in range(K)], DIVERGING, (-limit, limit), says)
    ax.set_xlabel(what)
    rest = "" if len(shown) == J else f", {len(shown)} of {J:,} values"
    title(ax, f"{counted(K, what)}{rest}")
    return ax
