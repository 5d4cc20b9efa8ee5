"""Run the Python code of Markdown pages, block after block in one namespace, and show what it prints and draws.

Blocks of ```python are run in the order of the page, in an empty folder; output and pictures follow each. Blocks with >>> are
compared with what they say. Blocks of ```py are only shown. An error is a warning of Sphinx, which ends `make docs`.
"""

import contextlib
import doctest
import io
import os
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from docutils import nodes
from sklearn.exceptions import ConvergenceWarning
from sphinx.application import Sphinx
from sphinx.util import logging

from stickbreak import DataWarning

logger = logging.getLogger(__name__)
PICTURES = "_pictures"  # beside the pages, and not under version control


def setup(app: Sphinx) -> dict[str, bool]:
    """Register; pages are run before Sphinx collects their images."""
    mpl.use("Agg")
    app.connect("doctree-read", run_page, priority=100)
    return {"parallel_read_safe": True}


def run_page(app: Sphinx, tree: nodes.document) -> None:
    """Run the blocks of a page."""
    if not str(tree.get("source", "")).endswith(".md"):
        return
    blocks = [block for block in tree.findall(nodes.literal_block) if block.get("language") == "python"]
    if not blocks:
        return
    page = app.env.docname
    namespace: dict[str, Any] = {"__name__": "__main__"}
    folder = Path(app.srcdir) / PICTURES
    folder.mkdir(exist_ok=True)
    with empty_folder(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        for i, block in enumerate(blocks):
            plt.close("all")
            output = run_block(block, namespace, page)
            where = block if not isinstance(block.parent, nodes.container) else block.parent
            after: list[nodes.Node] = []
            if output:
                after.append(nodes.literal_block(output, output, language="text", classes=["executed-output"]))
            for number in plt.get_fignums():
                name = f"{page.replace('/', '-')}-{i}-{number}.png"
                plt.figure(number).savefig(folder / name, dpi=110)
                after.append(nodes.image(uri=f"/{PICTURES}/{name}", alt="", classes=["executed-figure"]))
            where.parent[where.parent.index(where) + 1 : where.parent.index(where) + 1] = after
    plt.close("all")


def run_block(block: nodes.literal_block, namespace: dict[str, Any], page: str) -> str:
    """Run one block and return what it printed; what goes wrong is reported with its place."""
    code = block.astext()
    if code.lstrip().startswith(">>>"):
        compare(block, namespace, page)
        return ""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"{page}.md", "exec"), namespace)
    except Exception:
        logger.warning("this code fails:\n%s\n%s", code, traceback.format_exc(), location=block)
    return printed.getvalue().rstrip()


def compare(block: nodes.literal_block, namespace: dict[str, Any], page: str) -> None:
    """Run a block of >>> and report what differs from the page."""
    test = doctest.DocTestParser().get_doctest(block.astext(), namespace, page, page, block.line or 0)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, out=report.write, clear_globs=False)
    namespace.update(test.globs)
    if runner.failures:
        logger.warning("the output differs:\n%s", report.getvalue(), location=block)


@contextlib.contextmanager
def empty_folder() -> Iterator[None]:
    """Work in a folder that goes afterwards."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
