"""The states of sequences, under their signals."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._arguments import check_count, shown
from ._canvas import INK, QUIET, SMALL, bare, panels
from ._clusters import belong, counted
from ._palette import colors
from ._steps import steps_of
from ._text import column_names, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.floating]

MOST_COLUMNS = 12  # signals, one above the other
WIDE = 0.02  # of the width, from which a segment has its number
STRIP = 0.8  # height of the states, in signals


def timeline(
    model: Any,
    X: Any,
    lengths: Any = None,
    steps: tuple[int, int] | None = None,
    n_sequences: int = 4,
    ax: "Axes | None" = None,
) -> "Figure":
    """Draw the most probable states of the first sequences, and their signals above.

    Raises
    ------
    ValueError : ``steps`` are no part of a sequence.
    """
    check_count(n_sequences, "n_sequences")
    states, rows, edges = steps_of(model, X, lengths)
    shown_sequences = min(n_sequences, len(edges) - 1)
    tiles = panels(ax, shown_sequences, 1, 10.0, 1.2 + 0.35 * min(rows.shape[1], MOST_COLUMNS))
    low = np.nanmin(rows, axis=0, initial=np.inf)
    high = np.nanmax(rows, axis=0, initial=-np.inf)
    hue = colors(model.n_states_)
    for i, tile in enumerate(tiles):
        whole = slice(int(edges[i]), int(edges[i + 1]))
        part = _part(whole, steps)
        _draw(tile, rows[part], states[part], part.start - whole.start, low, high, column_names(model), hue)
        if len(edges) > 2:
            tile.set_title(f"sequence {i}", loc="left", fontsize=SMALL)
    tiles[-1].set_xlabel("step")
    figure: Figure = tiles[0].figure
    if ax is None:
        rest = f", {shown_sequences} of {len(edges) - 1:,} sequences" if shown_sequences < len(edges) - 1 else ""
        figure.suptitle(f"{counted(model.n_states_, 'state')}{rest}", x=0.01, ha="left", fontsize=11)
    return figure


def _part(whole: slice, steps: tuple[int, int] | None) -> slice:
    """The rows of a sequence that are shown."""
    if steps is None:
        return whole
    try:
        first, end = (int(step) for step in steps)
    except (TypeError, ValueError) as error:
        raise ValueError(f"steps must be the first step and the one after the last; got {shown(steps)}.") from error
    T = whole.stop - whole.start
    if not 0 <= first < min(end, T):
        raise ValueError(f"steps must be a part of a sequence, which has {T:,} steps; got {shown(steps)}.")
    return slice(whole.start + first, whole.start + min(end, T))


def _draw(
    ax: "Axes", rows: Array, states: NDArray[np.intp], start: int, low: Array, high: Array, names: list[str], hue: Array
) -> None:
    """Signals in one sequence, each in a lane of its own, above a strip of states."""
    T, D = rows.shape
    lanes = min(D, MOST_COLUMNS)
    time = start + np.arange(T)
    cuts = np.flatnonzero(np.diff(states)) + 1
    begins = np.concatenate([[0], cuts])
    ends = np.concatenate([cuts, [T]])
    spans = [(start + first - 0.5, end - first) for first, end in zip(begins, ends)]
    strip = ax.broken_barh(spans, (-STRIP, STRIP - 0.1), color=hue[states[begins]], linewidth=0.0)
    shade = ax.broken_barh(spans, (0.0, lanes), color=hue[states[begins]], alpha=0.18, linewidth=0.0)
    belong(strip, states[begins], "strip")
    belong(shade, states[begins], "shade")
    for k, (left, width) in zip(states[begins], spans):
        if width >= WIDE * T:
            ax.text(
                left + 0.5 * width, -0.5 * STRIP - 0.05, str(k), ha="center", va="center", fontsize=SMALL, color="white"
            )
    for d in range(lanes):
        wide = high[d] - low[d]
        place = lanes - 1 - d
        values = place + 0.08 + 0.84 * (rows[:, d] - low[d]) / (wide if wide > 0.0 else 1.0)
        ax.plot(time, values, color=INK, linewidth=0.8)
    places = [lanes - 0.5 - d for d in range(lanes)]
    ax.set_yticks([*places, -0.5 * STRIP - 0.05], [*(plain(names[d]) for d in range(lanes)), "state"], fontsize=SMALL)
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(start - 0.5, start + T - 0.5)
    ax.set_ylim(-STRIP, lanes)
    if lanes < D:
        ax.annotate(
            f"{lanes} of {D:,} columns",
            (1.0, 1.0),
            (0, 3),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="right",
            color=QUIET,
            fontsize=SMALL,
        )
    bare(ax)
    ax.spines["left"].set_visible(False)
