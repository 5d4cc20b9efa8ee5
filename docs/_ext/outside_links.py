"""Links of Markdown pages to files of the repository outside docs/ lead to the repository."""

import re

from sphinx.application import Sphinx

REPOSITORY = "https://github.com/stickbreak/stickbreak/blob/main/"
OUTSIDE = re.compile(r"\]\(\.\./([^)]*)\)")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register."""
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True}


def rewrite(app: Sphinx, page: str, source: list[str]) -> None:
    """Links ](../path) of pages at the top of docs/; those in folders stay within docs/."""
    if "/" not in page:
        source[0] = OUTSIDE.sub(rf"]({REPOSITORY}\1)", source[0])
