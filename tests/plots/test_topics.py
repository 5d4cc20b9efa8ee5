"""Pictures of topic models: what is drawn is what the model says."""

from functools import cache

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import dates
from matplotlib import pyplot as plt
from scipy.spatial.distance import jensenshannon

from stickbreak import TopicModel
from stickbreak.plots._text import plain

matplotlib.use("Agg")
WORDS = ["$x_1$", "snake_case", "a word that is longer than all others", *(f"word{v}" for v in range(12))]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def corpus(K, D=40):
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(15, 0.2), K)
    return rng.multinomial(40, rng.dirichlet(np.full(K, 0.3), D) @ topics), topics


@cache
def fitted(K):
    """A fit that begins with K topics, and its documents; no test may change it."""
    counts, topics = corpus(K)
    X = pd.DataFrame(counts, columns=WORDS)
    return TopicModel(init=topics, moves=(), n_jobs=1, max_laps=100).fit(X), X


@pytest.fixture(scope="module")
def model():
    return fitted(3)[0]


@pytest.fixture(scope="module")
def X():
    return fitted(3)[1]


TIMES = np.datetime64("2020-01-01") + np.arange(40) * np.timedelta64(30, "D")
PICTURES = {
    "fit": lambda m, X, **given: m.plot.fit(**given),
    "sizes": lambda m, X, **given: m.plot.sizes(**given),
    "hierarchy": lambda m, X, **given: m.plot.hierarchy(**given),
    "words": lambda m, X, **given: m.plot.words(**given),
    "map": lambda m, X, **given: m.plot.map(**given),
    "heatmap": lambda m, X, **given: m.plot.heatmap(**given),
    "documents": lambda m, X, **given: m.plot.documents(0, X, **given),
    "over_time": lambda m, X, **given: m.plot.over_time(TIMES, X, **given),
}


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("name", PICTURES)
def test_one_topic_and_many_are_drawn_where_they_should_be(name):
    for K in (1, 2, 40):
        model, X = fitted(K)
        picture = PICTURES[name](model, X)
        getattr(picture, "figure", picture).canvas.draw()
    figure, ax = plt.subplots()
    assert PICTURES[name](*fitted(2), ax=ax) is (ax if hasattr(picture, "get_xlabel") else figure)
    figure.canvas.draw()


def test_bars_are_probabilities_of_words(model):
    figure = model.plot.words(n=4)
    order = np.argsort(-model.topic_shares_, kind="stable")
    for ax, k in zip(figure.axes, order, strict=True):
        top = model.top_words(n=4)[k]
        assert [label.get_text() for label in ax.get_yticklabels()] == [plain(word, 18) for word, _ in top]
        np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [chance for _, chance in top])


def test_distances_of_three_topics_are_exact(model):
    ax = model.plot.map()
    where = np.asarray(ax.collections[0].get_offsets())
    for i in range(3):
        for j in range(i):
            distance = jensenshannon(model.topics_[i], model.topics_[j])
            assert np.linalg.norm(where[i] - where[j]) == pytest.approx(distance, rel=1e-6)
    areas = ax.collections[0].get_sizes()
    np.testing.assert_allclose(areas / areas.sum(), model.topic_shares_ / model.topic_shares_.sum())


def test_the_heatmap_has_cosines(model):
    ax = model.plot.heatmap()
    order = [int(label.get_text()) for label in ax.get_xticklabels()]
    p = model.topics_[order]
    lengths = np.sqrt((p**2).sum(axis=1))
    np.testing.assert_allclose(ax.images[0].get_array(), p @ p.T / np.outer(lengths, lengths))


def test_documents_are_those_with_most_of_the_topic(model, X):
    titles = [f"title {d}" for d in range(40)]
    ax = model.plot.documents(1, X, titles, n=5)
    share = model.transform(X)[:, 1]
    top = np.argsort(-share)[:5]
    assert [label.get_text() for label in ax.get_yticklabels()] == [titles[d] for d in top]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], share[top])
    with pytest.raises(ValueError, match="titles must be one for each of 40 documents; got 3"):
        model.plot.documents(1, X, titles[:3])
    with pytest.raises(ValueError, match="k must be the number of a topic, from 0 to 2; got 3"):
        model.plot.documents(3, X)


@pytest.mark.parametrize("kind", ["numbers", "dates", "text"])
def test_shares_over_time_are_means_of_spans(model, X, kind):
    numbers = np.arange(40.0)
    times = {"numbers": numbers, "dates": TIMES.copy(), "text": TIMES.astype(str).astype(object)}[kind]
    times[3] = np.nan if kind == "numbers" else "NaT"
    ax = model.plot.over_time(times, X, n_bins=4)
    share = model.transform(X)
    known = np.arange(40) != 3
    span = np.minimum(numbers // (39.0 / 4.0), 3)
    top = np.argsort(-model.topic_shares_, kind="stable")
    for line, k in zip(ax.lines, top, strict=True):
        want = [share[known & (span == s), k].mean() for s in range(4)]
        np.testing.assert_allclose(line.get_ydata(), want)
    if kind != "numbers":
        assert dates.num2date(ax.lines[0].get_xdata(orig=False)[0]).year == 2020
    assert "1 without a time" in ax.get_title(loc="left")


def test_wrong_times_are_refused(model, X):
    for wrong in (np.arange(3), np.ones((40, 2)), np.full(40, True)):
        with pytest.raises(ValueError, match="timestamps must be one number or date for each of 40 documents"):
            model.plot.over_time(wrong, X)
    with pytest.raises(ValueError, match="a time that is not missing"):
        model.plot.over_time(np.full(40, np.nan), X)


def test_topics_without_words_have_no_pictures_of_words():
    rows = np.random.default_rng(0).standard_normal((40, 2))
    model = TopicModel("diagonal_gaussian", init=np.arange(40) % 2, moves=(), n_jobs=1).fit(rows, lengths=[10] * 4)
    for picture in (model.plot.words, model.plot.map, model.plot.heatmap):
        with pytest.raises(TypeError, match="have no words"):
            picture()
    model.plot.documents(0, rows, lengths=[10] * 4).figure.canvas.draw()
