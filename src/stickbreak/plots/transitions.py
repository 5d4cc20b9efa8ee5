"""Which state follows which."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..description.distinctive import shares
from ._canvas import QUIET, SMALL, matplotlib, panels, title
from ._clusters import counted
from ._heatmap import heatmap
from ._palette import SEQUENTIAL, colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 20  # states in a graph, those with most rows
FAINT, FEW = 0.02, 8  # probability of a transition that is in the graph; of more states, that of chance
LARGEST, SMALLEST = 0.3, 0.15  # radius of a state, and the least area beside the largest


def transitions(model: Any, ax: "Axes | None" = None) -> "Figure":
    """Draw the probabilities of the next state given that it is another one: a graph and a matrix."""
    K = model.n_states_
    leaving = _of_those_that_leave(model.transition_matrix_)
    graph, matrix = panels(ax, 2, 2, 5.4, 4.8, gap=(0.3, 0.3))
    _draw_graph(graph, leaving, shares(model))
    names = [str(k) for k in range(K)]
    high = float(leaving.max()) if leaving.any() else 1.0
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
    radius = min(LARGEST, 0.9 * np.sin(np.pi / len(top))) if len(top) > 1 else LARGEST
    radii = radius * np.sqrt(np.maximum(share[top] / share.max(), SMALLEST))
    least = FAINT if K <= FEW else max(FAINT, 1.0 / (K - 1))
    hue = colors(K)
    patches = matplotlib("patches")
    for i, j in np.argwhere(leaving[np.ix_(top, top)] > least):
        chance = leaving[top[i], top[j]]
        way = (where[j] - where[i]) / np.linalg.norm(where[j] - where[i])
        ax.add_patch(
            patches.FancyArrowPatch(
                where[i] + radii[i] * way,
                where[j] - (radii[j] + 0.01) * way,
                connectionstyle="arc3,rad=0.12",
                arrowstyle="-|>",
                mutation_scale=9.0,
                linewidth=0.4 + 3.2 * chance,
                color=hue[top[i]],
                alpha=0.25 + 0.6 * chance,
                shrinkA=0.0,
                shrinkB=0.0,
            )
        )
    for k, place, r in zip(top, where, radii):
        ax.add_artist(patches.Circle((place[0], place[1]), r, facecolor=hue[k], edgecolor="white", zorder=3))
        ax.text(
            place[0], place[1], str(k), ha="center", va="center", fontsize=SMALL, color="white", weight="bold", zorder=4
        )
    ax.set_xlim(-1.35, 1.35)
    ax.set_ylim(-1.35, 1.35)
    ax.set_aspect("equal")
    ax.set_axis_off()
    which = f"the {MOST} states with most rows; " if K > MOST else ""
    arrows = f"transitions above {least:.2g}"
    ax.set_title(f"{which}{arrows}", loc="left", fontsize=SMALL, color=QUIET)
