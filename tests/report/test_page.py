"""Reports: one page that refers to nothing outside it, in which names from the data are text."""

import base64
import csv
import hashlib
import re
import sys
from html.parser import HTMLParser
from urllib.parse import unquote

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.exceptions import NotFittedError

from report.report_pages import CASES, NAMES, fitted, written
from stickbreak import Mixture, cli
from stickbreak.report.svg import MOST_MARKS, inline_svg

matplotlib.use("Agg")
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Page(HTMLParser):
    """The elements of a page, which must be closed in order, and its table."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.rows, self.scripts, self.open = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "script":
            self.scripts.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.mark.parametrize(("kind", "K"), CASES)
def test_a_page_holds_all_it_needs_and_names_are_text(kind, K):
    model, text = written(kind, K)
    page = Page(text)
    assert len(text.encode()) < 5e6
    assert not re.search(r"https?:|@import|url\((?!#)", text)
    for _, attributes in page.elements:
        assert not any(name.startswith("on") for name in attributes)
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith(("#", "data:"))
    (script,) = page.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert any(f"script-src 'sha256-{digest}'" in (meta.get("content") or "") for meta in page.all("meta"))
    identifiers = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(identifiers)) == len(identifiers)
    used = [attributes["href"][1:] for tag, attributes in page.elements if tag == "use"]
    used += re.findall(r"url\(#([^)]*)\)", text)
    assert set(used) <= set(identifiers)
    pictures = page.all("svg")
    assert len(pictures) >= 4
    assert all(picture["role"] == "img" and picture["aria-label"] for picture in pictures)
    assert len(page.rows) == 1 + model.summary_.K
    assert any(NAMES[0] in row[-1] for row in page.rows)
    assert plt.get_fignums() == []


def test_the_table_can_be_downloaded():
    model, text = written(Mixture, 2)
    (link,) = Page(text).all("a")
    assert link["download"] == "clusters.csv"
    head, *rows = csv.reader(unquote(link["href"].partition(",")[2]).splitlines())
    frame = model.summary_frame()
    assert head == list(frame.columns)
    assert [row[-1] for row in rows] == list(frame.iloc[:, -1])
    np.testing.assert_array_equal([float(row[2]) for row in rows], frame["rows"])


def test_families_warnings_and_what_is_needed_to_repeat_a_fit_are_on_the_page(tmp_path):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=80), np.full(80, 7.0)])
    model = Mixture(random_state=17, n_jobs=1, max_laps=50, tol=1.0, moves=()).fit(X)
    path = tmp_path / "page.html"
    model.report(path, X)
    text = path.read_text(encoding="utf-8")
    assert "<dt>random_state</dt><dd>17</dd>" in text
    assert f"<dt>numpy</dt><dd>{np.__version__}</dd>" in text
    assert f"{model.lower_bound_:,.2f}" in text
    assert model.data_check_
    assert text.count("<li>") == len(model.data_check_)
    assert ("The family was chosen by the bound" in text) == bool(model.selection_)


def test_very_many_marks_become_an_image_and_figures_are_closed_where_drawing_fails():
    def scatter(n):
        return lambda: plt.figure().add_subplot().scatter(np.arange(n), np.arange(n)).axes

    assert "<image" in inline_svg(scatter(MOST_MARKS + 1), "many", "points")
    assert "<image" not in inline_svg(scatter(9), "few", "points")

    def fails():
        plt.figure()
        raise ValueError("no picture")

    with pytest.raises(ValueError, match="no picture"):
        inline_svg(fails, "failing", "nothing")
    assert plt.get_fignums() == []


def test_mistakes_leave_no_page(tmp_path, monkeypatch):
    model, X = fitted(Mixture)
    path = tmp_path / "page.html"
    with pytest.raises(NotFittedError):
        Mixture().report(path, X)
    with pytest.raises(ValueError, match="lengths"):
        model.report(path, X, [9, 9])
    with pytest.raises(ValueError, match="feature"):
        model.report(path, X.iloc[:, :2])
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"stickbreak\[report\]"):
        model.report(path, X)
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_the_page(tmp_path, monkeypatch, capsys):
    model, X = fitted(Mixture, 1)
    model.save(tmp_path / "model.safetensors")
    X.to_csv(tmp_path / "X.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        sys, "argv", ["stickbreak", "report", "model.safetensors", "--data", "X.csv", "--out", "page.html"]
    )
    cli.main()
    assert capsys.readouterr().err == ""
    assert Page((tmp_path / "page.html").read_text(encoding="utf-8")).rows[1][0] == "0"
