"""Pictures of mixtures, and those of every model: what is drawn is what the model says."""

import sys
from copy import deepcopy
from functools import cache

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from scipy.cluster.hierarchy import dendrogram
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError

from stickbreak import Mixture
from stickbreak.description.distinctive import Distinctive
from stickbreak.likelihoods import Categorical, DiagonalGaussian, LogScale, Product
from stickbreak.plots._palette import colors
from stickbreak.plots._text import LONGEST, plain
from stickbreak.plots.clusters import PROJECTIONS

matplotlib.use("Agg")
NAMES = ["price $x_1$", "$", "a name_with_underscores that goes on\nand on, without an end", r"\frac{a}"]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def rows(K=3, n=30, D=4, seed=0):
    """Rows of K clusters, one after the other."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(K), n)
    return 6.0 * rng.standard_normal((K, D))[labels] + rng.standard_normal((K * n, D)), labels


def fitted(X, labels, likelihood="diagonal_gaussian", **parameters):
    """A fit of given clusters, which takes no time."""
    given = {"init": labels, "moves": (), "learn": False, "n_jobs": 1, "max_laps": 30, **parameters}
    return Mixture(likelihood, **given).fit(X)


@pytest.fixture(scope="module")
def X():
    return pd.DataFrame(rows()[0], columns=NAMES)


@pytest.fixture(scope="module")
def model(X):
    return fitted(X, rows()[1])


def drawn(picture):
    """The figure of a picture, drawn in full."""
    figure = picture if hasattr(picture, "canvas") else picture.figure
    figure.canvas.draw()
    return figure


PICTURES = {
    "fit": lambda m, X, **given: m.plot.fit(**given),
    "sizes": lambda m, X, **given: m.plot.sizes(**given),
    "hierarchy": lambda m, X, **given: m.plot.hierarchy(**given),
    "profiles": lambda m, X, **given: m.plot.profiles(**given),
    "clusters": lambda m, X, **given: m.plot.clusters(X, **given),
    "members": lambda m, X, **given: m.plot.members(X, 0, **given),
    "images": lambda m, X, **given: m.plot.members(X, 0, image_shape=(1, np.shape(X)[1]), **given),
    "outliers": lambda m, X, **given: m.plot.outliers(X, **given),
}
every = pytest.mark.parametrize("name", PICTURES)


@every
def test_pictures_are_drawn_where_they_should_be(name, model, X):
    picture = PICTURES[name](model, X)
    assert drawn(picture).number in plt.get_fignums()  # so that notebooks show it
    figure, ax = plt.subplots()
    same = PICTURES[name](model, X, ax=ax)
    assert same is (ax if hasattr(picture, "get_xlabel") else figure)
    drawn(same)
    with pytest.raises(TypeError, match="ax must be matplotlib axes"):
        PICTURES[name](model, X, ax=figure)


@cache
def of_clusters(K, D):
    """A fit of so many clusters in so many columns, and its rows; no test may change it."""
    X, labels = rows(K, 200 if K <= 2 else 4, D)
    return fitted(X, labels, max_laps=30 if K <= 2 else 1), X


@pytest.mark.filterwarnings("ignore:not converged")
@every
@pytest.mark.parametrize(("K", "D"), [(1, 1), (2, 70), (60, 2), (300, 3)])
def test_one_cluster_and_many(name, K, D):
    drawn(PICTURES[name](*of_clusters(K, D)))


@every
def test_without_matplotlib_the_extra_is_named(name, model, X, monkeypatch):
    for module in ("axes", "pyplot"):
        monkeypatch.setitem(sys.modules, f"matplotlib.{module}", None)
    with pytest.raises(ImportError, match=r"pip install stickbreak\[plot\]"):
        PICTURES[name](model, X)


def test_a_model_must_be_fitted_and_knows_its_pictures(model):
    with pytest.raises(NotFittedError):
        _ = Mixture().plot
    for name in ("clusters", "hierarchy", "sizes"):
        assert name in repr(model.plot)


@pytest.mark.parametrize("name", [*NAMES, "\t", "x" * 500, "a\\$b"])
def test_names_are_shown_as_they_are(name):
    text = plt.figure().text(0.5, 0.5, plain(name))
    shown, is_formula = text._preprocess_math(text.get_text())
    assert not is_formula
    line = " ".join(name.split())
    assert shown == (line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…")


def test_colours_are_different_and_none_is_white():
    found = colors(21)
    assert len(np.unique(found.round(6), axis=0)) == 21
    assert ((found >= 0.0) & (found <= 1.0)).all()
    assert (found.min(axis=1) < 0.8).all()
    np.testing.assert_array_equal(colors(300)[:21], found)


def test_bars_are_counts(model):
    bars = model.plot.sizes().patches
    np.testing.assert_allclose([bar.get_height() for bar in bars], np.sort(model.summary_.N)[::-1])


def test_very_unlike_sizes_are_on_a_log_scale():
    X = np.vstack([rows(1, 900, 2)[0], rows(1, 3, 2)[0] + 90.0])
    model = fitted(X, np.repeat([0, 1], [900, 3]))
    ax = model.plot.sizes()
    assert ax.get_yscale() == "log"
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.sort(model.summary_.N)[::-1])


def test_the_tree_is_that_of_the_merges():
    X, labels = rows(6, 20)
    model = fitted(X, labels)
    ax = model.plot.hierarchy(2)
    want = dendrogram(model.hierarchy_.linkage, no_plot=True)
    assert [label.get_text() for label in ax.get_yticklabels()] == want["ivl"]
    groups = model.hierarchy_.cut(2)
    assert len(np.unique(ax.collections[0].get_edgecolors(), axis=0)) == 1 + sum(np.bincount(groups) > 1)
    with pytest.raises(ValueError, match="n must be a whole number from 1 to 6"):
        model.plot.hierarchy(7)


def test_profiles_are_differences_from_the_mean(model):
    ax = model.plot.profiles()
    names = [label.get_text() for label in ax.get_yticklabels()]
    order = [[plain(name) for name in NAMES].index(name) for name in names]
    np.testing.assert_allclose(ax.images[0].get_array(), Distinctive.of(model).z.T[order])


def test_members_are_in_the_order_of_their_density(model, X):
    likelihood, N, S = model.model_.likelihood, model.summary_.N, model.summary_.S
    density = likelihood.log_predictive(X.to_numpy(), N, S)[:, 2]
    own = np.flatnonzero(model.labels_ == 2)
    order = own[np.argsort(-density[own])]
    ax = model.plot.members(X, 2, n=5)
    found = [int(label.get_text().removeprefix("row ")) for label in ax.get_yticklabels()]
    assert found == [*order[:5], *order[:-6:-1]]
    for wrong in (-1, 3, True, 1.0):
        with pytest.raises(ValueError, match="k must be the number of a cluster, from 0 to 2"):
            model.plot.members(X, wrong)
    with pytest.raises(ValueError, match="images of 4 pixels"):
        model.plot.members(X, 0, image_shape=(3, 2))
    with pytest.raises(ValueError, match="no row of X is in cluster 0"):
        model.plot.members(X[model.labels_ == 1], 0)


def test_images_are_rows():
    X = load_digits().data[:60]
    model = fitted(X, np.arange(60) % 2)
    figure = model.plot.members(X, 1, n=3, image_shape=(8, 8))
    tiles = [ax for ax in figure.axes if ax.images]
    assert len(tiles) == 6
    for ax in tiles:
        row = int(ax.get_xlabel().removeprefix("row "))
        np.testing.assert_array_equal(ax.images[0].get_array(), X[row].reshape(8, 8))


def test_outliers_are_the_least_probable_rows(model, X):
    ax = model.plot.outliers(X, n=4)
    density = model.score_samples(X)
    order = np.argsort(density)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), density[order[:4]])
    assert ax.texts[0].get_text() == f"rows {', '.join(map(str, order[:4]))}"


def test_two_columns_are_shown_as_they_are():
    X, labels = rows(3, 20, 2)
    model = fitted(X, labels)
    ax = model.plot.clusters(X)
    np.testing.assert_allclose(ax.collections[0].get_offsets(), X)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0", "x1")
    R = model.predict_proba(X)
    ellipse = next(patch for patch in ax.patches)
    np.testing.assert_allclose(ellipse.center, R[:, 0] @ X / R[:, 0].sum())
    spread = np.cov(X, rowvar=False, ddof=0, aweights=R[:, 0])
    assert ellipse.width * ellipse.height / 4.0 == pytest.approx(np.sqrt(np.linalg.det(spread)))


def test_rows_in_doubt_are_faint():
    X = np.array([[-3.0, 0.0], [3.0, 0.0], [0.0, 0.0]] * 10) + np.random.default_rng(0).normal(0.0, 0.8, (30, 2))
    model = fitted(X, (X[:, 0] > 0.0).astype(int))
    certainty = model.predict_proba(X).max(axis=1)
    alpha = model.plot.clusters(X).collections[0].get_facecolors()[:, 3]
    np.testing.assert_array_equal(np.argsort(alpha, kind="stable"), np.argsort(certainty, kind="stable"))


def test_discriminant_axes_are_those_of_scikit_learn():
    Z, labels = rows(4, 200, 5, seed=3)
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    axes = PROJECTIONS["discriminant"](Z, np.eye(4)[labels])
    want = LinearDiscriminantAnalysis(solver="eigen").fit(Z, labels).scalings_[:, :2]
    cosines = (axes * want).sum(axis=0) / np.linalg.norm(want, axis=0)
    np.testing.assert_allclose(np.abs(cosines), 1.0, atol=1e-2)


def test_principal_axes_are_those_of_the_singular_values():
    Z = rows(3, 40, 5)[0]
    _, _, V = np.linalg.svd(Z - Z.mean(axis=0))
    np.testing.assert_allclose(np.abs(PROJECTIONS["pca"](Z, None).T @ V[:2].T), np.eye(2), atol=1e-9)


def test_one_column_is_a_histogram():
    X, labels = rows(2, 50, 1)
    ax = fitted(X, labels).plot.clusters(X)
    assert sum(bar.get_height() for bar in ax.patches) == pytest.approx(100.0)


def test_holes_categories_logarithms_and_words_have_a_place(model, X):
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1], 30)
    table = pd.DataFrame(
        {
            "income": np.exp(rng.standard_normal(60) + 3.0 * labels),
            "kind": np.array(["a", "b", "c"])[rng.integers(3, size=60)],
            "size": np.where(rng.random(60) < 0.2, np.nan, rng.standard_normal(60) + 9.0 * labels),
        }
    )
    parts = {
        "income": (LogScale(DiagonalGaussian()), ["income"]),
        "kind": (Categorical(), ["kind"]),
        "size": (DiagonalGaussian(), ["size"]),
    }
    mixed = fitted(table, labels, Product(parts))
    points = mixed.plot.clusters(table).collections[0].get_offsets()
    assert points.shape == (60, 2)
    assert np.isfinite(points).all()
    for picture in (mixed.plot.profiles(), mixed.plot.members(table, 1), mixed.plot.outliers(table)):
        drawn(picture)
    counts = rng.poisson(1.0 + 8.0 * np.eye(2)[labels].repeat(60, axis=1))
    drawn(fitted(counts, labels, "multinomial").plot.clusters(counts))
    with pytest.raises(ValueError, match="projection must be None or one of 'discriminant', 'pca'"):
        model.plot.clusters(X, projection="tsne")


def test_a_sample_of_many_rows_is_drawn():
    X, labels = rows(2, 3000, 2)
    ax = fitted(X, labels).plot.clusters(X)
    assert len(ax.collections[0].get_offsets()) == 5000
    assert "5,000 of 6,000 rows" in ax.get_title(loc="left")


def test_the_choice_of_a_family_is_in_nats(X):
    found = Mixture(random_state=0, n_jobs=1).fit(X.to_numpy()[:, :2])
    ax = found.plot.selection()
    bounds = np.array([candidate.lower_bound for candidate in found.selection_])
    np.testing.assert_allclose(ax.lines[0].get_xdata(), bounds.max() - bounds)
    other = deepcopy(found)
    other.selection_ = []
    with pytest.raises(ValueError, match="nothing to choose"):
        other.plot.selection()


def test_overlaps_of_other_fits_are_drawn(model, X):
    found = model.stability(X, n_fits=2)
    ax = model.plot.stability(found)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), found.overlaps.ravel())
    assert "agreement 1.00" in ax.get_title(loc="left")
