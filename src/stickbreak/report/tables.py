"""Fitted models as tables on the console."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from ..inference import Lap, ascents
from .distinctive import Distinctive, shares


def cluster_table(model: Any, n_clusters: int = 20, names: Sequence[str] | None = None) -> Table:
    """The largest clusters, or states: weight, rows, and the values in which each differs most from the rest.

    Of states also how many steps they last.  Each value is shown with its difference from the whole model, in standard
    deviations, or its ratio for chances.
    """
    profile, values, center, z = Distinctive.of(model, names)
    states = hasattr(model, "n_states_")
    K = model.summary_.K
    weights = shares(model)
    thing = "state" if states else "cluster"
    table = Table(title=f"{K} {thing}s, ELBO {model.lower_bound_:,.1f}", title_justify="left")
    for title in (thing, "weight", "rows", *(("steps",) if states else ())):
        table.add_column(title, justify="right")
    table.add_column("most distinctive")
    for k in range(min(n_clusters, K)):
        top = np.argsort(-np.abs(z[k]), kind="stable")[:4]
        words = "  ".join(
            f"{values[j]} {value:.4g} "
            + (f"(x{value / center[j]:.2g})" if profile.chances[j] else f"({z[k, j]:+.1f} sd)")
            for j, value in zip(top, profile.means[k, top])
        )
        lasts = (f"{model.durations()[k]:,.1f}",) if states else ()
        table.add_row(str(k), f"{weights[k]:.4f}", f"{model.summary_.N[k]:,.0f}", *lasts, words)
    if n_clusters < K:
        table.add_row("", "", "", *([""] if states else []), f"and {K - n_clusters} smaller {thing}s")
    return table


def topic_table(model: Any, n_topics: int = 20, names: Sequence[str] | None = None) -> Table:
    """The largest topics of a `TopicModel`: share, tokens and top words, or means where the observations are no words."""
    table = Table(title=f"{model.n_topics_} topics", title_justify="left")
    for title in ("topic", "share", "observations"):
        table.add_column(title, justify="right")
    table.add_column("top words")
    words = model.top_words(names) if hasattr(model, "topics_") else [[]] * model.n_topics_
    for k in range(min(n_topics, model.n_topics_)):
        top = " ".join(word for word, _ in words[k])
        table.add_row(str(k), f"{model.topic_shares_[k]:.4f}", f"{model.summary_.N[k]:,.0f}", top)
    if model.n_topics_ > n_topics:
        table.add_row("", "", "", f"and {model.n_topics_ - n_topics} smaller topics")
    return table


def search_table(history: Sequence[Lap]) -> Table:
    """How a search went, from ``history_``: one line for each ascent, with the moves it made and whether it was kept."""
    table = Table(title="search", title_justify="left")
    table.add_column("began with")
    for title in ("rows", "laps", "clusters", "births", "merges", "deletes", "ELBO", "seconds"):
        table.add_column(title, justify="right")
    table.add_column("kept")
    for ascent in ascents(history):
        first = ascent.laps[0]
        last = ascent.last
        rows = f"{last.sample_rows:,}" if last.sample_rows else "all"
        clusters = f"{first.explored_clusters} to {last.explored_clusters}"
        moves = [f"{n:,}" for n in ascent.moves.values()]
        bound = f"{last.explored_bound:,.1f}"
        kept = "yes" if ascent.kept else "no"
        table.add_row(last.origin, rows, str(len(ascent.laps)), clusters, *moves, bound, f"{last.seconds:.1f}", kept)
    return table


def print_table(table: Table) -> None:
    """Print a table to the console."""
    Console(markup=False, emoji=False).print(table)
