"""How a search went: the bound, the number of clusters, moves and excursions, lap by lap."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..inference import Lap, ascents
from ..inference.trace import Ascent
from ._canvas import INK, PALE, QUIET, SMALL, axes_for, title, whole_numbers
from ._palette import colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = {"birth": ("^", "#0072b2"), "merge": ("o", "#d55e00"), "delete": ("X", "#009e73")}  # Okabe and Ito
APART = 0.12  # of the width of the axes, between excursions with their numbers of clusters
MOST_NAMED = 6  # excursions
LEAST = 0.1  # nats, of which a rise of the bound is shown


def fit(model: Any, ax: "Axes | None" = None) -> "Axes":
    """Draw the laps of a fitted model.

    Raises
    ------
    ValueError : no lap was over all rows.
    """
    return draw_laps(axes_for(ax, 8.5, 5.2), model.history_)


def draw_laps(axes: "Axes", history: Sequence[Lap]) -> "Axes":
    """The ELBO, accepted moves and excursions, before the number of clusters as a pale staircase on a second axis."""
    whole = [lap for lap in history if not lap.sample_rows]
    if not whole:
        raise ValueError("history is empty: fit the model first.")
    laps = np.array([lap.number for lap in whole])
    bounds = np.array([lap.lower_bound for lap in whole])
    bottom, top = visible_range(bounds)
    margin = 0.03 * (top - bottom)
    twin = axes.twinx()
    _draw_counts(twin, history)
    axes.set_zorder(twin.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.plot(laps, bounds, color=INK, linewidth=1.8, label="ELBO of the best model")
    _mark_moves(axes, whole, bottom + margin)
    axes.set_ylim(bottom - margin, top + 3 * margin)
    axes.set_xlim(history[0].number - 0.5, max(laps[-1], 2) + 0.5)
    _mark_excursions(axes, whole, bottom + margin)
    _mark_sample(axes, history, whole)
    axes.set_xlabel("lap")
    axes.set_ylabel("ELBO (nats)")
    decimals = max(0, int(np.ceil(1.0 - np.log10(top - bottom))))
    axes.yaxis.set_major_formatter(f"{{x:,.{decimals}f}}")
    whole_numbers(axes.xaxis)
    axes.spines["top"].set_visible(False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, frameon=False, fontsize=SMALL)
    last = history[-1]
    title(axes, f"K = {last.n_clusters}, ELBO {last.lower_bound:,.0f} after {last.number} laps in {last.seconds:.1f} s")
    return axes


def _mark_moves(axes: "Axes", history: Sequence[Lap], lowest: float) -> None:
    """A marker at each lap of the best model in which a move was accepted."""
    laps = np.array([lap.number for lap in history])
    bounds = np.array([lap.lower_bound for lap in history])
    for kind, (marker, color) in MARKERS.items():
        at = np.array([_accepted(lap, kind) > 0 for lap in history])
        total = sum(_accepted(lap, kind) for lap in history)
        if total:
            style: dict[str, Any] = {"s": 58, "edgecolors": "white", "linewidths": 0.8, "zorder": 3}
            heights = np.maximum(bounds[at], lowest)
            label = f"{kind}: {total} accepted"
            axes.scatter(laps[at], heights, marker=marker, color=color, label=label, **style)


def _mark_excursions(axes: "Axes", history: Sequence[Lap], lowest: float) -> None:
    """A star where an excursion that was kept ended, in the colour of what it began with, and its numbers of clusters."""
    excursions = [ascent for ascent in ascents(history) if ascent.is_excursion]
    origins = list(dict.fromkeys(ascent.last.origin for ascent in excursions))
    successful = {ascent.last.origin for ascent in excursions if ascent.kept}
    for origin, color in zip(origins, colors(len(origins))):
        tried = [ascent for ascent in excursions if ascent.last.origin == origin]
        kept = [ascent.last for ascent in tried if ascent.kept]
        if not kept:
            continue
        label = f"excursion, {origin}: {len(kept)} of {len(tried)} kept"
        heights = np.maximum([lap.lower_bound for lap in kept], lowest)
        style: dict[str, Any] = {"marker": "*", "s": 110, "edgecolors": INK, "linewidths": 0.6, "zorder": 4}
        axes.scatter([lap.number for lap in kept], heights, color=color, label=label, **style)
    lost = sum(ascent.last.origin not in successful for ascent in excursions)
    if lost:
        axes.plot([], [], " ", label=f"other excursions: 0 of {lost} kept")
    for ascent in _worth_naming(history):
        first = ascent.laps[0].explored_clusters
        last = ascent.last.n_clusters
        text = f"{last}" if first == last else f"{first}→{last}"
        where = (ascent.last.number, max(ascent.last.lower_bound, lowest))
        axes.annotate(text, where, (0, 7), textcoords="offset points", ha="center", fontsize=SMALL - 1, color=INK)


def _worth_naming(history: Sequence[Lap]) -> list[Ascent]:
    """The first ascent and the excursions that raised the bound most, at a distance from each other."""
    every = ascents(history)
    gains: list[tuple[float, Ascent]] = []
    before = -np.inf
    for ascent in every:
        if ascent.kept:
            gains.append((ascent.last.lower_bound - before, ascent))
            before = ascent.last.lower_bound
    named: list[Ascent] = []
    gap = APART * (history[-1].number - history[0].number)
    for _, ascent in sorted(gains, key=lambda pair: -pair[0]):
        if all(abs(ascent.last.number - other.last.number) >= gap for other in named):
            named.append(ascent)
    return named[:MOST_NAMED]


def _mark_sample(axes: "Axes", history: Sequence[Lap], whole: Sequence[Lap]) -> None:
    """The laps on samples, whose bounds are of fewer rows, as a hatched region."""
    sampled = [lap for lap in history if lap.sample_rows]
    if sampled:
        first = sampled[0].number - 0.5
        end = whole[0].number - 0.5
        axes.axvspan(first, end, facecolor="none", edgecolor=QUIET, hatch="///", linewidth=0.0, alpha=0.35)
        rows = f"on {sampled[-1].sample_rows:,} rows"
        where = axes.get_xaxis_transform()
        axes.text(
            0.5 * (first + end), 0.5, rows, transform=where, rotation=90, ha="center", va="center", fontsize=SMALL
        )


def _draw_counts(axes: "Axes", history: Sequence[Lap]) -> None:
    laps = [lap.number for lap in history]
    tried = [lap.explored_clusters for lap in history]
    axes.fill_between(laps, tried, step="mid", color=PALE, linewidth=0)
    axes.set_ylim(0, 1.8 * max(tried))
    whole_numbers(axes.yaxis)
    axes.set_ylabel("clusters at work (shaded)", color=QUIET)
    axes.tick_params(axis="y", colors=QUIET)
    axes.spines[["top", "left"]].set_visible(False)


def _accepted(lap: Lap, kind: str) -> int:
    """Moves of a kind accepted in a lap that worked on the best model."""
    if lap.explored_bound < lap.lower_bound:
        return 0
    return sum(record.accepted for record in lap.moves if record.kind == kind)


def visible_range(bounds: NDArray[np.floating]) -> tuple[float, float]:
    """Limits of an axis that shows how the bound rose: from the second lap, unless the first laps dwarf all others."""
    top = float(bounds.max())
    later = bounds[min(1, len(bounds) - 1) :]
    usual = top - float(np.quantile(later, 0.1))
    bottom = max(float(later.min()), top - 4.0 * usual) if usual > 0.0 else float(later.min())
    if top - bottom >= LEAST:
        return bottom, top
    return top - max(1.0, 1e-3 * abs(top)), top
