"""The tables of the Markdown files are tables, and the API reference has all that is public."""

import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

import stickbreak
from stickbreak import allocations, likelihoods

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path.relative_to(ROOT) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/[!_]*/*.md")]
)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_table_has_a_header_and_rows_of_its_width(page):
    lines = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL).split("\n")
    for before, line in pairwise(["", *lines]):
        if line.startswith("|") and not before.startswith("|"):
            table = lines[lines.index(line) :]
            rows = table[: next((n for n, row in enumerate(table) if not row.startswith("|")), len(table))]
            assert len(rows) > 2, line
            assert re.fullmatch(r"\|(\s*:?-+:?\s*\|)+", rows[1]), line
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1, line


def test_the_reference_has_all_estimators_likelihoods_and_priors():
    listed = set(re.findall(r"^   ([\w.]+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE))
    families = {kind.__name__ for kind in likelihoods.REGISTRY.values()}
    priors = {name for name in allocations.__all__ if hasattr(getattr(allocations, name), "__dataclass_fields__")}
    assert listed >= (set(stickbreak.__all__) - {"__version__", "likelihoods"}) | families | priors


def test_the_page_on_installing_lists_all_extras():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    listed = set(
        re.findall(
            r"^\| `stickbreak\[(\w+)\]`", (ROOT / "docs" / "install.md").read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    assert listed == set(extras) - {"test", "docs", "release"}
