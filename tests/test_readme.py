"""The tables of the Markdown files are tables: an empty line inside one shows its rows as raw text."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

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
