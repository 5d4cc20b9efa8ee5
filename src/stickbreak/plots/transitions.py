"""Which state follows which."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..report.distinctive import shares
from ._canvas import INK, QUIET, SMALL, matplotlib, panels, title
from ._clusters import counted
from ._heatmap import heatmap
from ._palette import SEQUENTIAL, colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 20  # states in a graph, those with most rows
FAINT = 0.02  # probability of a transition, below which it is not in the graph


def transitions(model: Any, ax: "Axes | None" = None) -> "Figure":
    """Draw the probabilities of the next state given that it is another one: a graph and a matrix."""
    K = model.n_states_
    leaving = _of_those_that_leave(model.transition_matrix_)
    graph, matrix = panels(ax, 2, 2, 5.4, 4.8)
    _draw_graph(graph, leaving, shares(model))
    names = [str(k) for k in range(K)]
    high = max(float(leaving.max(initial=0.0)), 1e-3)
    says = "probability, given that the state is left"
    heatmap(matrix, np.where(np.eye(K) > 0.0, np.nan, leaving), names, names, SEQUENTIAL, (0.0, high), says)
    matrix.set_xlabel("to state")
    matrix.set_ylabel("from state")
    title(matrix, f"{counted(K, 'state')}, staying left out")
    figure: Figure = graph.figure
    return figure


def _of_those_that_leave(transition: NDArray[np.floating]) -> NDArray[np.floating]:
    """The probability of each other state, given that a state is left, (K, K); zero on the diagonal."""
    away = transition * (1.0 - np.eye(len(transition)))
    total = away.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(away, total, out=np.zeros_like(away), where=total > 0.0))


def _draw_graph(ax: "Axes", leaving: NDArray[np.floating], share: NDArray[np.floating]) -> None:
    """States on a circle, of an area in proportion to their rows, and arrows as wide as transitions are probable."""
    K = len(leaving)
    top = np.sort(np.argsort(-share, kind="stable")[:MOST])
    angle = 0.5 * np.pi - 2.0 * np.pi * np.arange(len(top)) / len(top)
    where = np.column_stack([np.cos(angle), np.sin(angle)]) if len(top) > 1 else np.zeros((1, 2))
    area = 250.0 + 1600.0 * share[top] / share.max()
    hue = colors(K)
    arrow = matplotlib("patches").FancyArrowPatch
    for i, j in np.argwhere(leaving[np.ix_(top, top)] > FAINT):
        chance = leaving[top[i], top[j]]
        ends = [0.5 * np.sqrt(area[end]) + 1.0 for end in (i, j)]
        ax.add_patch(
            arrow(
                where[i],
                where[j],
                connectionstyle="arc3,rad=0.12",
                arrowstyle="-|>",
                mutation_scale=9.0,
                linewidth=0.4 + 3.2 * chance,
                color=hue[top[i]],
                alpha=0.25 + 0.6 * chance,
                shrinkA=ends[0],
                shrinkB=ends[1],
            )
        )
    ax.scatter(where[:, 0], where[:, 1], s=area, c=hue[top], edgecolors="white", linewidths=1.5, zorder=3)
    for k, place in zip(top, where):
        ax.text(
            place[0], place[1], str(k), ha="center", va="center", fontsize=SMALL, color="white", weight="bold", zorder=4
        )
    ax.set_xlim(-1.35, 1.35)
    ax.set_ylim(-1.35, 1.35)
    ax.set_aspect("equal")
    ax.set_axis_off()
    rest = f"the {MOST} states with most rows" if K > MOST else "area: rows; width: probability"
    ax.set_title(rest, loc="left", fontsize=SMALL + 1, color=QUIET if K <= MOST else INK)
