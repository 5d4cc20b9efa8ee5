"""What the packages import: no circles, wherever an import stands."""

import ast
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import stickbreak

PACKAGE = Path(stickbreak.__file__).parent
TOP = PACKAGE.name


def imported(path):
    """The modules of the package that a file imports, also within functions, as lists of names."""
    home = [TOP, *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = home[: len(home) - node.level + 1] + (node.module or "").split(".")
            yield from ([*filter(None, above), alias.name] for alias in node.names)


def test_no_package_imports_one_that_imports_it():
    graph = defaultdict(set)
    for path in PACKAGE.rglob("*/*.py"):
        package = path.relative_to(PACKAGE).parts[0]
        graph[package] |= {names[1] for names in imported(path)} - {package}
    assert {"estimators", "storage", "plots", "report"} <= graph["loading"] | graph["estimators"]
    TopologicalSorter(graph).prepare()  # a CycleError names the packages of a circle
