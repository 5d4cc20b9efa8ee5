"""The page that says where the sources are in the code names what exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROWS = [
    line for line in (ROOT / "docs" / "sources.md").read_text().splitlines() if line.count("|") == 4 and ".py`" in line
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_files_and_names_exist(row):
    source = None
    for term in re.findall(r"`([^`]+)`", row.split("|")[3]):
        if term.endswith(".py"):
            source = (ROOT / "src" / "stickbreak" / term).read_text()
        elif "=" not in term:
            assert re.search(rf"^ *(def|class) {term}\b|^{term}\b", source, re.MULTILINE), f"{term} is not there"


def test_every_row_names_a_file():
    assert len(ROWS) > 60
