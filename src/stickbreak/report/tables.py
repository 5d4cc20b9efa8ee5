"""Fitted models as tables: on the console, and as frames of pandas."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from .._arguments import check_count
from ..description.distinctive import Distinctive, shares
from ..inference import Lap, ascents
from ..moves.proposal import KINDS
from ..plots._clusters import counted, given_names, thing

if TYPE_CHECKING:
    from pandas import DataFrame

FORMATS = {"weight": ".4f", "share": ".4f", "rows": ",.0f", "observations": ",.0f", "steps": ",.1f"}
WORDS = ("name", "most distinctive", "top words")  # the columns of text

Columns = dict[str, list[Any]]


def summary_columns(model: Any, n: int | None = None, names: Sequence[str] | None = None) -> Columns:
    """The n largest clusters, states or topics of a fitted model, all by default: the columns of its table by title.

    Clusters and states: weight, rows, and the values in which each differs most from the whole model, with that difference
    in standard deviations, or the ratio of chances; states also how many steps they last.  Topics: share, observations and
    top words, where the observations are words.  Where some were named in advance, their names.

    names : of the columns of the data, by default those at the fit
    """
    shown = model.summary_.K if n is None else max(0, min(n, model.summary_.K))
    what = thing(model)
    columns = (_topic_columns if what == "topic" else _cluster_columns)(model, shown, names)
    given = given_names(model)
    return {what: columns.pop(what), "name": given[:shown]} | columns if any(given) else columns


def texts(columns: Columns) -> list[list[str]]:
    """The rows of a table as people read them."""
    formatted = [[format(value, FORMATS.get(title, "")) for value in values] for title, values in columns.items()]
    return [list(row) for row in zip(*formatted)]


def summary_table(model: Any, n: int = 20, names: Sequence[str] | None = None) -> Table:
    """The table of the n largest clusters, states or topics, for the console."""
    K = model.summary_.K
    what = thing(model)
    columns = summary_columns(model, n, names)
    bound = "" if what == "topic" else f", ELBO {model.lower_bound_:,.1f}"
    table = Table(title=f"{counted(K, what)}{bound}", title_justify="left")
    for name in columns:
        table.add_column(name, justify="left" if name in WORDS else "right")
    for row in texts(columns):
        table.add_row(*row)
    if n < K:
        table.add_row(*[""] * (len(columns) - 1), f"and {K - n} smaller {what}s")
    return table


def summary_frame(model: Any, n: int | None = None, names: Sequence[str] | None = None) -> "DataFrame":
    """The table of the n largest clusters, states or topics, all by default, as a frame of pandas.

    Raises
    ------
    ImportError : pandas is not installed.
    TypeError, ValueError : n is not a whole number of at least 1.
    """
    if n is not None:
        check_count(n, "n")
    try:
        make: Callable[[Columns], DataFrame] = import_module("pandas").DataFrame
    except ImportError as error:
        raise ImportError("summary_frame needs pandas: pip install stickbreak[frames]") from error
    return make(summary_columns(model, n, names))


def search_table(history: Sequence[Lap]) -> Table:
    """How a search went, from ``history_``: one line for each ascent, with the moves it made and whether it was kept."""
    table = Table(title="search", title_justify="left")
    table.add_column("began with")
    for title in ("rows", "laps", "clusters", *(f"{kind}s" for kind in KINDS), "ELBO", "seconds"):
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


def _cluster_columns(model: Any, n: int, names: Sequence[str] | None) -> Columns:
    found = Distinctive.of(model, names)
    what = thing(model)
    columns: Columns = {
        what: list(range(n)),
        "weight": shares(model)[:n].tolist(),
        "rows": model.model_.likelihood.row_counts(model.summary_.N, model.summary_.S)[:n].tolist(),
    }
    if what == "state":
        columns["steps"] = np.asarray(model.durations())[:n].tolist()
    columns["most distinctive"] = [_most_distinctive(found, k) for k in range(n)]
    return columns


def _most_distinctive(found: Distinctive, k: int) -> str:
    """The four values in which a cluster differs most from the whole model."""
    top = np.argsort(-np.abs(found.z[k]), kind="stable")[:4]
    return ", ".join(f"{found.names[j]} {found.profile.means[k, j]:.4g} {_difference(found, k, j)}" for j in top)


def _difference(found: Distinctive, k: int, j: int) -> str:
    if found.profile.chances[j]:
        return f"(x{found.profile.means[k, j] / found.center[j]:.2g})"
    return f"({found.z[k, j]:+.1f} sd)"


def _topic_columns(model: Any, n: int, names: Sequence[str] | None) -> Columns:
    words = model.top_words(names) if hasattr(model, "topics_") else [[]] * model.n_topics_
    return {
        "topic": list(range(n)),
        "share": model.topic_shares_[:n].tolist(),
        "observations": model.summary_.N[:n].tolist(),
        "top words": [" ".join(str(word) for word, _ in top) for top in words[:n]],
    }
