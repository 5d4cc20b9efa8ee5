"""Frames with categories, truth values and missing cells, from fit to the frame with its cells filled in."""

import pickle
from copy import deepcopy
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest

from stickbreak import Mixture, load
from stickbreak.data.frames import Encoded, encode, mixed_frame
from stickbreak.estimators import _likelihoods as likelihoods
from stickbreak.estimators._base import as_source
from stickbreak.likelihoods import Bernoulli, Categorical, DiagonalGaussian, Poisson, Product

N = 240
frames = pytest.mark.parametrize("library", ["pandas", "polars"])


def columns(seed=0):
    """Two clusters that show in every column, a tenth of the cells missing."""
    rng = np.random.default_rng(seed)
    z = np.arange(N) % 2
    flip = rng.random((N, 3)) < 0.1
    table = {
        "size": list(np.round(rng.normal(20.0 * z, 1.0), 3)),
        "colour": [["red", "green"][k ^ f] for k, f in zip(z, flip[:, 0])],
        "flag": [bool(k ^ f) for k, f in zip(z, flip[:, 1])],
        "count": [int(c) for c in rng.poisson(3.0 + 30.0 * z)],
        "grade": [["low", "high"][k ^ f] for k, f in zip(z, flip[:, 2])],
    }
    gone = rng.random((N, 5)) < 0.1
    gone[:4] = False
    return {
        name: [None if g else v for v, g in zip(values, gone[:, d])] for d, (name, values) in enumerate(table.items())
    }


def frame(library, table=None):
    """Text, truth values, nullable whole numbers, and categories with a level that does not occur."""
    table = columns() if table is None else table
    if library == "polars":
        return pl.DataFrame(table, schema_overrides={"grade": pl.Enum(GRADES), "count": pl.Int64})
    return pd.DataFrame(
        {
            "size": pd.Series(table["size"], dtype="float64"),
            "colour": pd.Series(table["colour"]),
            "flag": pd.Series(table["flag"], dtype="boolean"),
            "count": pd.Series(table["count"], dtype="Int64"),
            "grade": pd.Categorical(table["grade"], categories=GRADES),
        }
    )


def codes():
    """The same as an array of numbers, by hand."""
    table, nan = columns(), np.nan
    by = {"colour": {"green": 0, "red": 1}, "flag": {False: 0, True: 1}, "grade": {"low": 0, "medium": 1, "high": 2}}

    def value(name, v):
        return nan if v is None else by[name][v] if name in by else v

    return np.array([[value(name, v) for v in values] for name, values in table.items()], float).T


GRADES = ["low", "medium", "high"]
START = {"init": np.arange(N) % 2, "moves": ()}


def mixture(likelihood="auto", **parameters):
    return Mixture(likelihood, **{"random_state": 0, "n_jobs": 1, **parameters})


PARTS = {
    "numbers": (DiagonalGaussian(), [0]),
    "counts": (Poisson(), [3]),
    "bits": (Bernoulli(), [2]),
    "categories": (Categorical(n_levels=[2, 3]), [1, 4]),
}


@cache
def of_frame(library):
    """A fit to the frame, which no test may change."""
    return mixture().fit(frame(library))


@frames
def test_a_frame_is_read_as_numbers_and_levels(library):
    table = encode(mixed_frame(frame(library)))
    np.testing.assert_array_equal(table.X, codes())
    assert list(table.names) == ["size", "colour", "flag", "count", "grade"]
    assert {d: list(levels) for d, levels in table.levels.items()} == {
        1: ["green", "red"],
        4: GRADES,
    }


@frames
def test_auto_chooses_a_likelihood_for_every_column(library):
    """The same as a Product of them for the codes."""
    found = mixture(**START).fit(frame(library))
    families = likelihoods.candidates(found, as_source(found, frame(library)))
    first = families["diagonal_gaussian"]
    assert {name: list(c) for name, (_, c) in first.parts.items()} == {name: c for name, (_, c) in PARTS.items()}
    by_hand = mixture(families[found.selection_[0].family], **START).fit(codes())
    assert found.lower_bounds_ == by_hand.lower_bounds_
    np.testing.assert_array_equal(found.labels_, by_hand.labels_)
    assert list(found.feature_names_in_) == ["size", "colour", "flag", "count", "grade"]
    assert found.levels_ == {1: ["green", "red"], 4: GRADES}
    assert by_hand.levels_ == {}
    assert found.posterior_["categories"].probabilities[1].shape == (2, 3)
    for method in ("predict", "predict_proba", "score_samples"):
        np.testing.assert_array_equal(getattr(found, method)(frame(library)), getattr(by_hand, method)(codes()))


@frames
def test_both_libraries_and_encoded_tables_say_the_same(library):
    found = of_frame("pandas")
    np.testing.assert_array_equal(found.predict_proba(frame(library)), found.predict_proba(frame("pandas")))
    table = Encoded(codes(), list(frame(library).columns), found.levels_)
    np.testing.assert_array_equal(found.predict_proba(table), found.predict_proba(frame(library)))


@frames
def test_arrays_hold_values_and_no_codes(library):
    """What a plain array holds is looked up among the levels, also where it looks like a code."""
    found = of_frame(library)
    want = found.predict_proba(frame(library))
    values = np.array(
        [[row[name] for name in columns()] for row in pd.DataFrame(columns(), dtype=object).to_dict("records")]
    )
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(found.predict_proba(values), want)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(found.predict_proba(np.ma.array(values, mask=np.equal(values, None))), want)
    for method in (found.predict, found.predict_proba, found.score_samples, found.impute, found.score):
        with pytest.raises(
            ValueError, match=r"column 'colour' holds 1.0, which is not among its levels: 'green', 'red'"
        ):
            method(codes())


@cache
def of_categories():
    """Rows with categories 1, 2, 3, a fit to them, which no test may change, and the scores of their codes."""
    rng = np.random.default_rng(0)
    z = rng.integers(3, size=200)
    X = np.column_stack([z + 1.0, 20.0 * z + rng.normal(size=200)])
    found = mixture().fit(pd.DataFrame(X, columns=["c", "x"]).astype({"c": int}).astype({"c": "category"}))
    return X, found, found.score_samples(Encoded(np.column_stack([z, X[:, 1]]), ["c", "x"], found.levels_))


@pytest.mark.parametrize("kind", ["array", "list", "text", "memory map", "masked", "float32"])
def test_numbers_that_are_categories_are_looked_up(kind, tmp_path):
    """Categories 1, 2, 3 are not the codes 0, 1, 2."""
    X, found, want = of_categories()
    assert found.levels_ == {0: [1, 2, 3]}
    given = {"array": X, "list": X.tolist(), "masked": np.ma.array(X, mask=False), "float32": X.astype(np.float32)}
    given["text"] = np.array([[str(int(a)), b] for a, b in X.tolist()], dtype=object)
    if kind == "memory map":
        np.save(tmp_path / "X.npy", X)
        given[kind] = np.load(tmp_path / "X.npy", mmap_mode="r")
    if kind == "text":
        with pytest.raises(ValueError, match="column 'c' holds '3', which is not among its levels: 1, 2, 3"):
            found.score_samples(given[kind])
        return
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        scores = found.score_samples(given[kind])
    np.testing.assert_allclose(scores, want, rtol=1e-5 if kind == "float32" else 1e-12)
    with pytest.raises(ValueError, match=r"column 'c' holds 0\.0"):
        found.predict(X - [[1.0, 0.0]])


@frames
def test_what_is_drawn_and_filled_in_are_values(library):
    found = of_frame(library)
    X, labels = found.sample(300)
    assert set(X[:, 1]) == {"red", "green"}
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert np.mean(found.predict(X) == labels) > 0.9
    X[::7, 1] = None
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        filled = found.impute(X)
    assert set(filled[:, 1]) == {"red", "green"}
    kept = np.arange(300) % 7 != 0
    np.testing.assert_array_equal(filled[kept], X[kept])


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (
            Encoded(np.array([[0.0], [2.0]]), ["c"], {0: ["a", "b"]}),
            "column 'c' holds 2 in row 1, which is no code of its 2",
        ),
        (Encoded(np.array([[0.5]]), None, {0: ["a", "b"]}), "column 0 holds 0.5 in row 0"),
        (Encoded(np.array([[-1.0]]), None, {0: ["a", "b"]}), "column 0 holds -1 in row 0"),
        (Encoded(np.array([[1.0]]), None, {1: ["a", "b"]}), "levels for column 1, but X has 1 columns"),
        (Encoded(np.array([[1.0]]), ["a", "b"], {}), "2 names, but X has 1 columns"),
        (Encoded(np.array([1.0]), None, {}), "Expected 2D array"),
    ],
)
def test_encoded_tables_are_checked(table, words):
    with pytest.raises(ValueError, match=words):
        mixture("categorical").fit(table)
    found = mixture("categorical").fit(Encoded(np.eye(2)[:, :1], ["c"], {0: ["a", "b"]}))
    with pytest.raises(ValueError, match=words):
        found.predict(table)


@frames
def test_levels_keep_their_codes_in_other_frames(library):
    """Whatever is in it, and however its categories are declared."""
    found = of_frame(library)
    table = {name: values[1:3] for name, values in columns().items()}
    part = frame(library, table)
    want = found.predict_proba(frame(library))[1:3]
    np.testing.assert_array_equal(found.predict_proba(part), want)
    if library == "pandas":
        part["grade"] = part["grade"].astype(str)
        part["colour"] = pd.Categorical(part["colour"], categories=["red", "green", "blue"])
    else:
        part = part.with_columns(
            pl.col("grade").cast(pl.Enum(["low", "high", "medium"])), pl.col("colour").cast(pl.Categorical)
        )
    np.testing.assert_array_equal(found.predict_proba(part), want)


@frames
def test_an_unknown_level_is_named(library):
    found = of_frame(library)
    table = columns()
    table["colour"][7] = "mauve"
    for method in (found.predict, found.score_samples, found.impute):
        with pytest.raises(
            ValueError, match=r"column 'colour' holds 'mauve', which is not among its levels: 'green', 'red'"
        ):
            method(frame(library, table))


@frames
def test_other_columns_are_refused(library):
    found = of_frame(library)
    table = columns()
    backwards = frame(library)[list(table)[::-1]]
    fewer = frame(library)[list(table)[:-1]]
    renamed = frame(library)
    renamed = renamed.rename(columns={"size": "width"}) if library == "pandas" else renamed.rename({"size": "width"})
    for wrong in (backwards, fewer, renamed):
        with pytest.raises(ValueError, match=r"feature names should match|features, but Mixture is expecting 5"):
            found.predict(wrong)


@frames
def test_categories_need_a_likelihood_for_them(library):
    data = frame(library)
    with pytest.raises(ValueError, match=r"column \d holds categories, which Gaussian cannot use; .*\"auto\""):
        mixture("gaussian").fit(data)
    with pytest.raises(ValueError, match=r"column 1 holds categories, which Product cannot use"):
        mixture(Product({"all": (DiagonalGaussian(), [0, 1])})).fit(data)
    words = data[["colour", "grade"]]
    assert mixture("categorical").fit(words).n_features_in_ == 2
    parts = {"words": (Categorical(), ["colour", "grade"]), "size": (DiagonalGaussian(), ["size"])}
    found = mixture(Product(parts), **START).fit(data)
    assert np.array_equal(found.labels_[:8], found.labels_[0] ^ np.arange(8) % 2)
    with pytest.raises(ValueError, match="there is no column 'color': there are size, colour, flag, count, grade"):
        mixture(Product({"words": (Categorical(), ["color"])})).fit(data)


def test_one_level_many_levels_and_no_level():
    data = pd.DataFrame({"one": ["a"] * 30, "none": [None] * 30, "many": [f"level {i % 25:02}" for i in range(30)]})
    found = mixture("categorical").fit(data)
    assert [len(found.levels_[d]) for d in range(3)] == [1, 0, 25]
    assert found.n_clusters_ == 1
    assert np.isfinite(found.score_samples(data)).all()
    assert found.levels_[2][3] == "level 03"


@pytest.mark.parametrize("likelihood", ["bernoulli", "categorical"])
def test_what_is_drawn_of_columns_without_levels_is_missing(likelihood):
    """Nor does the other value of a yes/no column that had but one have a name."""
    data = pd.DataFrame({"one": ["a"] * 29 + [None], "none": [None] * 30})
    prior = Bernoulli(b=1e-6) if likelihood == "bernoulli" else likelihood
    found = mixture(prior).fit(data)
    X, _ = found.sample(50)
    assert all(value == "a" or value != value for value in X[:, 0])
    assert all(value != value for value in X[:, 1])
    assert found.impute(data)["none"].isna().all()


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        (pd.Series(["b", "a", pd.NA, "a"] * 10, dtype="string"), ["a", "b"]),
        (pd.Series(["b", "a", np.nan, "a"] * 10, dtype="object"), ["a", "b"]),
        (pd.Categorical([3, 1, None, 3] * 10, categories=[1, 2, 3]), [1, 2, 3]),
        (pd.Categorical([True, False, None, True] * 10), [False, True]),
        (pd.Categorical(["x", "y", None, "y"] * 10, categories=["y", "x"]), ["y", "x"]),
        (pd.Categorical(["x", "y", None, "y"] * 10, categories=["y", "z", "x"], ordered=True), ["y", "z", "x"]),
        (pl.Series(["b", "a", None, "a"] * 10, dtype=pl.Enum(["a", "c", "b"])), ["a", "c", "b"]),
        (pl.Series(["b", "a", None, "a"] * 10, dtype=pl.Categorical), ["a", "b"]),
    ],
    ids=["string", "object", "whole numbers", "truth", "categories", "ordered", "enum", "polars"],
)
def test_kinds_of_categories(values, levels, tmp_path):
    """Declared ones in their order, with those that do not occur; others sorted."""
    data = (pl if isinstance(values, pl.Series) else pd).DataFrame({"c": values})
    found = mixture("categorical").fit(data)
    assert list(found.levels_[0]) == levels
    missing = np.isnan(encode(mixed_frame(data)).X[:, 0])
    np.testing.assert_array_equal(missing, np.arange(40) % 4 == 2)
    found.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert list(again.levels_[0]) == levels
    assert np.isfinite(found.score_samples(data)).all()
    np.testing.assert_array_equal(again.score_samples(data), found.score_samples(data))


@pytest.mark.parametrize("values", [[True, None, False, True], [1, None, 0, 2.5], [np.int8(3), np.nan, 2, True]])
def test_objects_that_are_numbers_are_numbers(values):
    table = encode(mixed_frame(pd.DataFrame({"c": pd.Series(values, dtype="object")})))
    np.testing.assert_array_equal(table.X[:, 0], [np.nan if v is None else float(v) for v in values])
    assert not table.levels


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (pd.to_datetime(["2026-01-01"] * 4), "column 'c' holds .*neither numbers nor categories"),
        ([[1], [2], [3], [4]], "column 'c' holds .*neither numbers nor categories"),
        (["a", 1, "b", 2], "column 'c' mixes text and numbers"),
    ],
)
def test_columns_of_other_things_are_refused(values, words):
    with pytest.raises(ValueError, match=words):
        mixture().fit(pd.DataFrame({"c": values, "word": list("abab")}))


def test_columns_that_pandas_numbered():
    X = np.random.default_rng(0).normal(size=(40, 2))
    halves = {"init": np.arange(40) % 2, "moves": ()}
    found, plain = (mixture("gaussian", **halves).fit(table) for table in (pd.DataFrame(X), X))
    np.testing.assert_array_equal(found.means_, plain.means_)
    np.testing.assert_array_equal(found.predict(pd.DataFrame(X)), plain.labels_)
    words = pd.DataFrame({0: list("abab"), 1: [1.0, 2.0, 3.0, 4.0]})
    assert mixture(moves=(), tol=1e-3).fit(words).levels_ == {0: ["a", "b"]}


def test_columns_that_share_a_name_are_refused():
    with pytest.raises(ValueError, match="two columns of the same name"):
        mixture("gaussian").fit(pd.DataFrame(np.eye(5)[:, :2], columns=["a", "a"]))


@frames
def test_all_numbers_are_the_same_as_an_array(library):
    """Whole numbers that may be missing, too."""
    X = np.random.default_rng(1).normal(size=(50, 2)) + 10.0 * (np.arange(50) % 2)[:, None]
    X[3, 0] = X[7, 1] = np.nan
    data = pd.DataFrame(X, columns=["a", "b"]) if library == "pandas" else pl.DataFrame(X, schema=["a", "b"])
    data = data if library == "pandas" else data.fill_nan(None)
    found, plain = (mixture("diagonal_gaussian").fit(table) for table in (data, X))
    assert found.lower_bounds_ == plain.lower_bounds_
    counts = np.where(np.isnan(X), np.nan, np.round(np.abs(X)))
    whole = pd.DataFrame(counts, columns=["a", "b"]).astype("Int64")
    whole = whole if library == "pandas" else pl.from_pandas(whole)
    assert mixture("poisson").fit(whole).lower_bounds_ == mixture("poisson").fit(counts).lower_bounds_


@frames
def test_a_saved_model_reads_frames_as_before(library, tmp_path):
    found = of_frame(library)
    found.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert {d: list(levels) for d, levels in again.levels_.items()} == {
        1: ["green", "red"],
        4: GRADES,
    }
    for method in ("predict", "predict_proba", "score_samples"):
        np.testing.assert_array_equal(getattr(again, method)(frame(library)), getattr(found, method)(frame(library)))
    with pytest.raises(ValueError, match="mauve"):
        again.predict(frame(library, {**columns(), "colour": ["mauve"] * N}))
    pickled = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(pickled.predict_proba(frame(library)), found.predict_proba(frame(library)))


@frames
def test_a_fit_that_fails_keeps_the_levels(library):
    found = deepcopy(of_frame(library))
    with pytest.raises(ValueError, match="neither numbers nor categories"):
        found.fit(pd.DataFrame({"c": pd.to_datetime(["2026-01-01"] * 2)}))
    assert found.levels_ == {1: ["green", "red"], 4: GRADES}
    assert not found.set_params(**START).fit(codes()).levels_


# Missing values filled in ---------------------------------------------------------------------------------------------


@frames
def test_missing_cells_of_frames_are_filled_in(library):
    data = frame(library)
    found = of_frame(library)
    filled = found.impute(data)
    assert type(filled) is type(data)
    assert list(filled.columns) == list(data.columns)
    assert len(filled) == N
    numbers = found.impute(Encoded(codes(), list(data.columns), found.levels_))
    table = columns()
    by = {"colour": ["green", "red"], "grade": GRADES}
    right = 0
    for d, (name, values) in enumerate(table.items()):
        for n, value in enumerate(values):
            got = filled[name][n]
            assert got is not None
            assert got == by[name][int(numbers[n, d])] if name in by else got == numbers[n, d]
            if value is not None:
                assert got == value
    for name, (low, high) in {"colour": ("red", "green"), "grade": ("low", "high")}.items():
        gone = [n for n, value in enumerate(table[name]) if value is None]
        right += np.mean([filled[name][n] == (high if n % 2 else low) for n in gone])
    assert right / 2 > 0.9


@frames
def test_a_frame_without_holes_is_returned_as_it_is(library):
    data = frame(library)
    complete = data.dropna() if library == "pandas" else data.drop_nulls()
    filled = of_frame(library).impute(complete)
    for name in data.columns:
        assert list(filled[name]) == list(complete[name])


@frames
def test_a_filled_frame_has_the_types_and_index_it_had(library):
    data = frame(library)
    filled = of_frame(library).impute(data)
    kinds = (lambda f: list(map(str, f.dtypes))) if library == "pandas" else (lambda f: f.dtypes)
    for name in ("size", "colour", "flag", "grade"):  # a mean of counts is no count
        assert kinds(filled[[name]]) == kinds(data[[name]]), name
    if library == "pandas":
        shifted = data.set_index(np.arange(N) + 1000)
        assert list(mixture(**START).fit(shifted).impute(shifted).index) == list(shifted.index)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_are_filled_in(dtype):
    rng = np.random.default_rng(3)
    z = rng.integers(3, size=400)
    complete = np.array([[0.0, 0.0, 5.0], [30.0, 0.0, -5.0], [0.0, 40.0, 0.0]])[z] + rng.normal(size=(400, 3))
    X = complete.astype(dtype)
    X[rng.random(X.shape) < 0.2] = np.nan
    found = mixture("diagonal_gaussian").fit(X)
    before = X.copy()
    filled, gone = found.impute(X), np.isnan(X)
    np.testing.assert_array_equal(X, before)
    assert filled.shape == X.shape
    np.testing.assert_array_equal(filled[~gone], X[~gone])
    error = np.sqrt(np.mean((filled - complete)[gone] ** 2))
    means = np.broadcast_to(np.nanmean(X, axis=0), X.shape)
    by_mean = np.sqrt(np.mean((means - complete)[gone] ** 2))
    assert error < 0.5 * by_mean
    np.testing.assert_array_equal(found.impute(filled), filled)
    np.testing.assert_array_equal(found.impute(complete.astype(dtype)), complete.astype(dtype))


def test_families_without_missing_values_have_nothing_to_fill_in():
    X = np.random.default_rng(4).normal(size=(50, 2))
    found = mixture("spherical_gaussian").fit(X)
    np.testing.assert_array_equal(found.impute(X), X)
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match="NaN: row 2, column 1"):
        found.impute(X)


def test_masked_values_are_missing():
    X = np.random.default_rng(5).normal(size=(60, 2))
    mask = np.random.default_rng(6).random(X.shape) < 0.2
    halves = mixture("diagonal_gaussian", init=np.arange(60) % 2, moves=())
    found = deepcopy(halves).fit(np.ma.masked_array(X, mask))
    plain = halves.fit(np.where(mask, np.nan, X))
    assert found.lower_bounds_ == plain.lower_bounds_
    np.testing.assert_array_equal(found.predict(np.ma.masked_array(X, mask)), plain.labels_)


def test_floats_of_another_byte_order_keep_their_precision():
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(">f4")
    frame = pd.DataFrame(X, columns=list("abc"))
    found, plain = (mixture("gaussian", init=np.arange(40) % 2, moves=()).fit(rows) for rows in (frame, X))
    assert found.dtype_ == plain.dtype_ == np.float32
    assert found.lower_bounds_ == plain.lower_bounds_
