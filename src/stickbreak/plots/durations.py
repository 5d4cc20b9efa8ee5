"""How long states last."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._canvas import INK, SMALL, axes_for, bare, matplotlib, number_axis, title
from ._clusters import counted
from ._palette import GOOD
from ._steps import steps_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def durations(model: Any, X: Any = None, lengths: Any = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the expected steps of each state, and with sequences X those of every segment of the most probable paths."""
    expected = model.durations()
    K = model.n_states_
    ax = axes_for(ax, 2.5 + 0.3 * float(np.clip(K, 12, 40)), 4.5)
    drawn = ""
    if X is not None:
        states, steps = _segments(model, X, lengths)
        aside = np.random.default_rng(0).uniform(-0.28, 0.28, len(states))
        ax.plot(
            states + aside,
            steps,
            "o",
            color=GOOD,
            markersize=3.5,
            alpha=0.45,
            markeredgewidth=0.0,
            label="segments of the most probable paths",
            rasterized=len(states) > 2000,
        )
        drawn = f", {counted(len(states), 'segment')}"
    lasting = np.where(np.isfinite(expected), expected, np.nan)
    ax.hlines(
        lasting,
        np.arange(K) - 0.38,
        np.arange(K) + 0.38,
        color=INK,
        linewidth=2.0,
        label="expected, by the transition matrix",
    )
    ax.set_yscale("log")
    ticks = matplotlib("ticker")
    ax.yaxis.set_major_locator(ticks.LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(ticks.NullFormatter())
    number_axis(ax.xaxis, [str(k) for k in range(K)], SMALL if K <= 24 else SMALL - 2)
    ax.set_xlim(-0.7, K - 0.3)
    ax.set_xlabel("state")
    ax.set_ylabel("duration (steps)")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=1, frameon=False, fontsize=SMALL)
    title(ax, f"{counted(K, 'state')}{drawn}")
    bare(ax)
    return ax


def _segments(model: Any, X: Any, lengths: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The state and the number of steps of every segment."""
    steps = steps_of(model, X, lengths)
    new = np.zeros(len(steps.states), np.bool_)
    new[1:] = steps.states[1:] != steps.states[:-1]
    new[steps.edges[:-1]] = True
    starts = np.flatnonzero(new)
    return steps.states[starts], np.diff(np.append(starts, len(new)))
