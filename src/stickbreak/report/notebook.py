"""A fitted model in a notebook: what was found, in a few lines of HTML."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from ..plots._clusters import counted, thing
from .family import family
from .tables import WORDS, summary_columns, texts

SHOWN = 8  # clusters
MOST_POINTS = 200  # of a sparkline


def fitted_html(model: Any) -> str:
    """The number of clusters, the bound by laps, the family and the largest clusters of a fitted model as HTML."""
    K = model.summary_.K
    what = thing(model)
    bounds = model.lower_bounds_
    columns = summary_columns(model, SHOWN)
    more = f"<p>and {K - SHOWN:,} smaller {what}s</p>" if K > SHOWN else ""
    return (
        '<div class="stickbreak">'
        f"<pre>{escape(repr(model))}</pre>"
        f"<p><b>{counted(K, what)}</b>, family {escape(family(model))}, ELBO {model.lower_bound_:,.2f} after "
        f"{counted(model.n_laps_, 'lap')} {sparkline(bounds)}</p>"
        f"{_table(columns)}{more}</div>"
    )


def sparkline(values: Sequence[float], width: int = 160, height: int = 28) -> str:
    """A curve of some numbers without axes, as inline SVG in the colour of the text around it."""
    y = np.asarray(values, dtype=float)
    if len(y) > MOST_POINTS:
        y = y[np.linspace(0, len(y) - 1, MOST_POINTS).round().astype(int)]
    span = np.ptp(y) if len(y) else 0.0
    heights = height - 2.0 - (height - 4.0) * ((y - y.min()) / span if span > 0.0 else np.full(len(y), 0.5))
    places = np.linspace(2.0, width - 2.0, max(len(y), 2))
    points = " ".join(f"{x:.1f},{h:.1f}" for x, h in zip(places, np.resize(heights, len(places))))
    says = f"The bound over {counted(len(values), 'lap')}"
    return (
        f'<svg role="img" aria-label="{says}" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>'
    )


def _table(columns: dict[str, list[Any]]) -> str:
    aligned = [f' style="text-align:{"left" if title in WORDS else "right"}"' for title in columns]
    head = "".join(f'<th scope="col"{a}>{escape(title)}</th>' for a, title in zip(aligned, columns))
    rows = ("".join(f"<td{a}>{escape(text)}</td>" for a, text in zip(aligned, row)) for row in texts(columns))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
