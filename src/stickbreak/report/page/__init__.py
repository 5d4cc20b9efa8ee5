"""The report of a fitted model: one page of HTML that holds everything it needs."""

import csv
import io
import os
import platform
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib import import_module, metadata, resources
from typing import Any
from urllib.parse import quote

from ..._arguments import shown
from ...data.atomic import replacing
from ...inference import ascents
from ...plots._canvas import matplotlib
from ...plots._clusters import counted, thing
from ..family import family, lead
from ..pictures import Picture, pictures, search_pictures
from ..tables import WORDS, Columns, summary_columns, texts

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")  # whose versions matter to a result


def write_page(
    model: Any, path: str | os.PathLike[str], X: Any, lengths: Any = None, names: Sequence[str] | None = None
) -> None:
    """Write the report of a fitted model and data X to a file, which appears complete or not at all.

    names : of the columns or words in the table, and of words in pictures, by default those at the fit

    Raises
    ------
    ImportError : jinja2 or matplotlib is not installed.
    OSError : the file cannot be written.
    TypeError, ValueError : ``path`` is no path, or X does not fit the model.
    """
    with replacing(path) as file:
        file.write(page(model, X, lengths, names).encode())


def page(model: Any, X: Any, lengths: Any = None, names: Sequence[str] | None = None) -> str:
    """The report of a fitted model and data X as text: HTML with its style, script and pictures."""
    template = _template()
    matplotlib("figure")
    found, members = pictures(model, X, lengths, names)
    columns = summary_columns(model, names=names)
    script = _own("page.js")
    return str(
        template.render(
            title=f"{counted(model.summary_.K, thing(model))} found by {type(model).__name__}",
            style=_own("page.css"),
            script=script,
            script_hash=b64encode(sha256(script.encode()).digest()).decode(),
            facts=_facts(model),
            choice=lead(model),
            moves=_moves(model),
            findings=[str(finding) for finding in model.data_check_],
            search=_drawn(search_pictures(model), "search"),
            pictures=_drawn(found, "found"),
            members=_drawn(members, "members"),
            thing=thing(model),
            titles=[(title, title not in WORDS) for title in columns],
            rows=[list(zip(texts_, values)) for texts_, values in zip(texts(columns), zip(*columns.values()))],
            table=f"data:text/csv;charset=utf-8,{quote(_csv(columns))}",
            parameters=[(name, shown(value)) for name, value in sorted(model.get_params(deep=False).items())],
            versions=_versions(),
        )
    )


def _template() -> Any:
    try:
        jinja2 = import_module("jinja2")
    except ImportError as error:
        raise ImportError("reports need jinja2: pip install stickbreak[report]") from error
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.from_string(_own("page.html"))


def _own(name: str) -> str:
    """A file beside this one."""
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


def _drawn(chosen: list[Picture], part: str) -> list[tuple[Picture, str]]:
    """Each picture with its SVG."""
    return [(picture, picture.svg(f"{part}{i}")) for i, picture in enumerate(chosen)]


def _facts(model: Any) -> list[tuple[str, str]]:
    end = "converged" if model.converged_ else "not converged"
    rows = float(model.summary_.N.sum())
    return [
        (f"Number of {thing(model)}s", f"{model.summary_.K:,}"),
        ("Family", family(model)),
        ("ELBO", f"{model.lower_bound_:,.2f} nats, {model.lower_bound_ / rows:.4f} per row"),
        ("Data", f"{rows:,.0f} rows, {counted(model.n_features_in_, 'column')}, {model.dtype_}"),
        ("Fit", f"{counted(model.n_laps_, 'lap')}, {end}, {model.history_[-1].seconds:.1f} s"),
    ]


def _moves(model: Any) -> str:
    """How many ascents the search made and kept, and the moves it accepted."""
    tried = ascents(model.history_)
    kept = sum(ascent.kept for ascent in tried)
    totals: dict[str, int] = {}
    for ascent in tried:
        for name, n in ascent.moves.items():
            totals[name] = totals.get(name, 0) + n
    accepted = ", ".join(counted(n, name) for name, n in totals.items())
    return f"{counted(len(tried), 'ascent')}, {kept:,} kept; moves accepted in all of them: {accepted or 'none'}"


def _csv(columns: Columns) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values()))
    return text.getvalue()


def _versions() -> list[tuple[str, str]]:
    from ... import __version__

    packages = [(name, metadata.version(name)) for name in PACKAGES]
    return [("stickbreak", __version__), ("Python", platform.python_version()), *packages]
