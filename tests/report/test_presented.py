"""Fitted models in notebooks and as frames: they say what `summary` says, and names from the data are text."""

import sys
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr

from stickbreak import HMM, Mixture, TopicModel
from stickbreak.likelihoods import Categorical, DiagonalGaussian, Product

NAMES = ["<script>alert(1)</script>", "\"quoted\" & 'so'"]
STILL = {"moves": (), "learn": False, "n_jobs": 1, "max_laps": 30, "tol": 0.1}


class Elements(HTMLParser):
    """The tags of a page and the text within cells."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.cells, self.open = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open and self.open[-1] == "td":
            self.cells.append(data)


@cache
def fitted(kind, K=3):
    """A fit of given clusters; no test may change it."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(K), 12)
    if kind is TopicModel:
        X = pd.DataFrame(rng.poisson(2.0, (20, 6)), columns=[*NAMES, *"abcd"])
        return TopicModel(init=rng.dirichlet(np.ones(6), K), moves=(), n_jobs=1, max_laps=100).fit(X)
    X = pd.DataFrame(9.0 * rng.normal(size=(K, 2))[labels] + rng.normal(size=(len(labels), 2)), columns=NAMES)
    return kind("diagonal_gaussian", init=labels, **STILL).fit(X)


MODELS = pytest.mark.parametrize("kind", [Mixture, TopicModel, HMM])


@MODELS
def test_a_fitted_model_shows_what_it_found(kind):
    model = fitted(kind)
    page = model._repr_mimebundle_()["text/html"]
    assert page == model._repr_html_()
    elements = Elements(page)
    assert "script" not in elements.tags
    assert elements.tags.count("polyline") == 1
    assert f"{model.lower_bound_:,.2f}" in page
    frame = model.summary_frame()
    assert elements.tags.count("td") == frame.shape[1] * min(len(frame), 8)
    assert any("<script>alert(1)</script>" in cell for cell in elements.cells)


def test_the_largest_eight_of_many_clusters_are_shown_and_one_cluster_is_singular():
    model = fitted(Mixture, 12)
    K = model.n_clusters_
    assert K > 8
    many = model._repr_html_()
    assert f"<b>{K} clusters</b>" in many
    assert f"and {K - 8} smaller clusters" in many
    assert many.count("<tr>") == 9
    assert "<b>1 cluster</b>" in fitted(Mixture, 1)._repr_html_()


def test_a_model_of_parts_names_the_family_of_each():
    X = pd.DataFrame({"x": [0.1, 0.2, 5.0, 5.1] * 4, "y": list("aabb") * 4})
    parts = Product({"numbers": (DiagonalGaussian(), [0]), "letters": (Categorical(), [1])})
    model = Mixture(parts, init=np.tile([0, 0, 1, 1], 4), **STILL).fit(X)
    assert "DiagonalGaussian (1 column), Categorical (1 column)" in model._repr_html_()


@MODELS
def test_an_unfitted_model_is_shown_as_scikit_learn_does(kind):
    model = kind(random_state=3)
    assert 'class="stickbreak"' not in model._repr_html_()
    assert "random_state" in model._repr_mimebundle_()["text/html"]
    assert 'class="stickbreak"' not in estimator_html_repr(model)
    with config_context(display="text"):
        assert not hasattr(fitted(kind), "_repr_html_")
        assert "text/html" not in fitted(kind)._repr_mimebundle_()
    with pytest.raises(NotFittedError):
        model.summary_frame()


@MODELS
def test_the_frame_holds_what_the_summary_prints(kind, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    model = fitted(kind)
    frame = model.summary_frame()
    model.summary()
    printed = capsys.readouterr().out
    assert all(str(title) in printed for title in frame.columns)
    assert all(text in printed for text in frame.iloc[:, -1])
    np.testing.assert_array_equal(frame.iloc[:, 0], np.arange(model.summary_.K))
    np.testing.assert_array_equal(frame.iloc[:, 2], model.summary_.N)
    shares = {Mixture: "weights_", TopicModel: "topic_shares_"}.get(kind)
    np.testing.assert_allclose(frame.iloc[:, 1], getattr(model, shares) if shares else frame["rows"] / 36.0)
    if kind is HMM:
        np.testing.assert_array_equal(frame["steps"], model.durations())
    assert len(model.summary_frame(2)) == 2
    assert "other" in model.summary_frame(names=["other", *"vwxyz"][: model.n_features_in_]).iloc[0, -1]


@pytest.mark.parametrize("n", [0, -1, 1.5, "2"])
def test_the_number_of_rows_is_checked(n):
    with pytest.raises((TypeError, ValueError), match="n must be"):
        fitted(Mixture).summary_frame(n)


def test_a_missing_pandas_names_the_extra(monkeypatch):
    model = fitted(Mixture)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"stickbreak\[frames\]"):
        model.summary_frame()
