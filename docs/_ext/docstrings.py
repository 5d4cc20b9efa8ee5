"""Docstrings as they are written here: indented formulas are literal; what scikit-learn adds to estimators is left out."""

import re
from typing import Any

from sphinx.application import Sphinx

SECTION = re.compile(r"^-{3,}$")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register before numpydoc, which reads the docstrings next."""
    app.connect("autodoc-process-docstring", readable, priority=100)
    app.connect("autodoc-skip-member", skipped)
    return {"parallel_read_safe": True}


def readable(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Make indented paragraphs of the description and tables of Markdown literal; bars elsewhere are bars."""
    end = next((i - 1 for i, line in enumerate(lines) if SECTION.match(line)), len(lines))
    changed: list[str] = []
    literal = False
    for before, line in zip(["", *lines], lines[:end]):
        table = line.startswith("|") and line.rstrip().endswith("|")
        formula = table or line.startswith("    ")
        if formula and not before.strip() and changed and not literal:
            changed += ["::", ""]
        literal = formula or (literal and not line.strip())
        changed.append(f"    {line}" if table else line if literal else bars_escaped(line))
    lines[:] = [*changed, *map(bars_escaped, lines[end:])]


def bars_escaped(line: str) -> str:
    """A line in which bars outside of ``code`` do not begin a substitution, as in log |Sigma|."""
    parts = line.split("``")
    return "``".join(part if i % 2 else part.replace("|", r"\|") for i, part in enumerate(parts))


def skipped(app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out members that come from elsewhere, such as scikit-learn's routing of metadata."""
    function = getattr(thing, "fget", thing)
    module = getattr(function, "__module__", None)
    if module is not None and not str(module).startswith("stickbreak"):
        return True
    return None
