"""Every kind of container through every method: the answer of a float64 array of the same values, or a clear error."""

import warnings
from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from stickbreak import HMM, Mixture, TopicModel
from stickbreak.data.frames import Encoded

N = 24
GROUPS = np.arange(N) // 15  # of 15 and 9 rows, so no rounding decides which is the larger
VALUES = np.array(
    [[float(3 * (i % 5) + 40 * GROUPS[i]), float((7 * i) % 4)] for i in range(N)]
)  # whole, so any type holds them
HOLES = np.where(np.arange(2 * N).reshape(N, 2) % 9 == 4, np.nan, VALUES)
MASK = np.isnan(HOLES)
FLAGS = VALUES % 2.0


def objects(missing):
    out = VALUES.astype(object)
    out[MASK] = missing
    return out


def series(kind, dtype):
    return kind({"a": VALUES[:, 0], "b": VALUES[:, 1]}).astype(dtype)


def columns(missing=None):
    return {
        name: [missing if gone else int(v) for v, gone in zip(VALUES[:, d], MASK[:, d])] for d, name in enumerate("ab")
    }


class Lazy:
    """Something that is an array only when asked."""

    def __array__(self, dtype=None, copy=None):
        return np.array(VALUES, dtype=dtype)


# name -> (container, the same as a float64 array)
RIGHT = {
    **{
        np.dtype(t).name: (VALUES.astype(t), VALUES) for t in ("f8", "f2", "i1", "u1", "i8", "u8", np.longdouble, ">f8")
    },
    "float32": (VALUES.astype("f4"), VALUES),
    "bool": (FLAGS.astype(bool), FLAGS),
    "fortran": (np.asfortranarray(VALUES), VALUES),
    "object": (VALUES.astype(object), VALUES),
    "object, None": (objects(None), HOLES),
    "object, NA": (objects(pd.NA), HOLES),
    "object, NaN": (objects(np.nan), HOLES),
    "object, decimals": (np.array([[Decimal(int(v)) for v in row] for row in VALUES]), VALUES),
    "object, fractions": (np.array([[Fraction(int(v)) for v in row] for row in VALUES]), VALUES),
    "masked": (np.ma.array(VALUES, mask=MASK), HOLES),
    "masked whole numbers": (np.ma.array(VALUES.astype(int), mask=MASK), HOLES),
    "masked bool": (np.ma.array(FLAGS.astype(bool), mask=MASK), np.where(MASK, np.nan, FLAGS)),
    "masked objects": (np.ma.array(VALUES.astype(object), mask=MASK), HOLES),
    "masked nowhere": (np.ma.array(VALUES), VALUES),
    "list of lists": (VALUES.tolist(), VALUES),
    "tuple of tuples": (tuple(map(tuple, VALUES.tolist())), VALUES),
    "list with None": (objects(None).tolist(), HOLES),
    "list with masked": ([[np.ma.masked if np.isnan(v) else v for v in row] for row in HOLES.tolist()], HOLES),
    "lazy": (Lazy(), VALUES),
    "pandas": (pd.DataFrame(VALUES, columns=["a", "b"]), VALUES),
    "pandas Int64": (pd.DataFrame(columns()).astype("Int64"), HOLES),
    "pandas Float64": (pd.DataFrame(columns()).astype("Float64"), HOLES),
    "pandas boolean": (pd.DataFrame(FLAGS, columns=["a", "b"]).astype("boolean"), FLAGS),
    "pandas arrow": (pd.DataFrame(columns()).astype("int64[pyarrow]"), HOLES),
    "pandas arrow decimals": (pd.DataFrame(columns()).astype(pd.ArrowDtype(pa.decimal128(6, 2))), HOLES),
    "pandas sparse": (pd.DataFrame(VALUES, columns=["a", "b"]).astype(pd.SparseDtype("float", 0.0)), VALUES),
    "pandas objects": (pd.DataFrame(columns(), dtype=object), HOLES),
    "pandas decimals": (pd.DataFrame([[Decimal(int(v)) for v in row] for row in VALUES], columns=["a", "b"]), VALUES),
    "pandas index": (pd.DataFrame(VALUES, columns=["a", "b"], index=np.arange(N)[::-1]), VALUES),
    "polars": (pl.DataFrame(columns()), HOLES),
    "polars float32": (pl.DataFrame(columns()).cast(pl.Float32), HOLES),
    "polars decimals": (pl.DataFrame(columns()).cast(pl.Decimal(10, 2)), HOLES),
    "polars bool": (pl.DataFrame(FLAGS, schema=["a", "b"]).cast(pl.Boolean), FLAGS),
    "pyarrow": (pa.table(columns()), HOLES),
    "pyarrow decimals": (
        pa.table({k: [v if v is None else Decimal(v) for v in c] for k, c in columns().items()}),
        HOLES,
    ),
    "encoded": (Encoded(HOLES, ["a", "b"], {}), HOLES),
    "encoded without names": (Encoded(HOLES, None, {}), HOLES),
}
DATES = np.array([["2026-01-01", "NaT"]] * N, dtype="M8[s]")
# name -> (container, what the error says)
WRONG = {
    "complex": (VALUES + 0j, "Complex data not supported"),
    "object complex": ((VALUES + 0j).astype(object), "row 0, column 0.*complex"),
    "text": (VALUES.astype(str), "row 0, column 0: text is no number"),
    "bytes": (VALUES.astype("S"), "row 0, column 0: text is no number"),
    "object text": (objects("x"), "'x' at row 2, column 0: text is no number"),
    "list of text": ([["1", "2"]] * N, "text is no number"),
    "masked text": (np.ma.array(VALUES.astype(str), mask=MASK), "text is no number"),
    "dates": (DATES, "holds dates"),
    "differences": (DATES - DATES[0, 0], "holds time differences"),
    "object NaT": (objects(pd.NaT), "NaT at row 2, column 0: dates are no numbers"),
    "object dates": (objects(np.datetime64("NaT")), "row 2, column 0: dates are no numbers"),
    "object timestamps": (objects(pd.Timestamp("2026-01-01")), "row 2, column 0: dates are no numbers"),
    "object dicts": (objects({}), "a dict at row 2, column 0"),
    "too large": (objects(10**400), "row 2, column 0: this number is too large"),
    "list too large": ([[1, 10**400]] * N, "row 0, column 1: this number is too large"),
    "records": (np.rec.fromarrays(VALUES.T), "holds records"),
    "matrix": (VALUES.view(np.matrix), "np.matrix"),
    "scalar": (3.0, "Expected 2D array, got scalar"),
    "word": ("abc", "there is no file abc"),
    "none": (None, "got None"),
    "dict": ({"a": [1.0]}, "got a dict"),
    "set": ({1.0}, "got a set"),
    "ragged": ([[1.0, 2.0], [3.0]], "inhomogeneous.*item 1 has 1"),
    "ragged below": ([[[1.0, 2.0], [3.0]]], "inhomogeneous"),
    "one axis": (VALUES[:, 0], "Expected 2D array, got 1D"),
    "three axes": (VALUES[None], "dim 3"),
    "series": (pd.Series(VALUES[:, 0]), "1D"),
    "polars series": (pl.Series(VALUES[:, 0]), "1D"),
    "no rows": (VALUES[:0], r"0 sample\(s\)"),
    "no items": ([], "Expected 2D array, got 1D|no rows"),
    "pandas dates": (pd.DataFrame({"a": DATES[:, 0], "b": VALUES[:, 1]}), "column 'a' holds Datetime"),
    "pandas NaT": (pd.DataFrame({"a": pd.to_datetime([None] * N), "b": VALUES[:, 1]}), "column 'a' holds Datetime"),
    "pandas differences": (
        pd.DataFrame({"a": DATES[:, 1] - DATES[:, 0], "b": VALUES[:, 1]}),
        "column 'a' holds Duration",
    ),
    "pandas periods": (
        pd.DataFrame({"a": pd.period_range("2026", periods=N), "b": VALUES[:, 1]}),
        "column 'a' holds dates",
    ),
    "pandas object NaT": (pd.DataFrame(objects(pd.NaT), columns=["a", "b"]), "column 'a' holds dates"),
    "pandas complex": (pd.DataFrame(VALUES + 0j, columns=["a", "b"]), "column 'a' holds"),
    "pandas bytes": (pd.DataFrame({"a": [b"x"] * N, "b": VALUES[:, 1]}), "column 'a' holds"),
    "pandas lists": (pd.DataFrame({"a": [[1]] * N, "b": VALUES[:, 1]}), "column 'a' holds"),
    "polars dates": (
        pl.DataFrame({"a": [None] * N, "b": VALUES[:, 1]}).cast({"a": pl.Datetime}),
        "column 'a' holds Datetime",
    ),
    "polars differences": (
        pl.DataFrame({"a": [None] * N, "b": VALUES[:, 1]}).cast({"a": pl.Duration}),
        "column 'a' holds Dura",
    ),
    "polars lazy": (pl.LazyFrame(columns()), "collect"),
    "pyarrow dates": (
        pa.table({"a": pa.array([None] * N, pa.timestamp("s")), "b": VALUES[:, 1]}),
        "column 'a' holds Datetime",
    ),
    "encoded text": (Encoded(VALUES.astype(str), ["a", "b"], {}), "text is no number"),
}
ESTIMATORS = {
    "mixture": (Mixture, {"init": GROUPS, "moves": ()}),
    "hmm": (HMM, {"init": GROUPS, "moves": (), "tol": 1e-3, "learn": False}),
    "topics": (TopicModel, {"init": GROUPS, "moves": ()}),
}
LIKELIHOOD = {"likelihood": "diagonal_gaussian", "n_jobs": 1, "random_state": 0, "max_laps": 5}


def make(kind):
    cls, parameters = ESTIMATORS[kind]
    return cls(**LIKELIHOOD, **parameters)


def extra(kind):
    return {"lengths": [N // 2, N // 2]} if kind == "topics" else {}


# The arrays that containers are compared with
SAME = {"values": VALUES, "holes": HOLES, "flags": FLAGS, "flags and holes": np.where(MASK, np.nan, FLAGS)}


def name_of(same):
    return next(name for name, X in SAME.items() if np.array_equal(X, same, equal_nan=True))


@cache
def plain_fit(kind, name):
    """A fit to an array of `SAME`, which no test may change."""
    return make(kind).fit(SAME[name], **extra(kind))


def own_fit(kind):
    """A fit to the values that may be changed."""
    return deepcopy(plain_fit(kind, "values"))


@cache
def plain_answer(kind, method, name):
    """What a model of values with holes says of an array of `SAME`."""
    return METHODS[kind][method](plain_fit(kind, "holes"), SAME[name])


METHODS = {
    "mixture": {
        "predict": lambda m, X: m.predict(X),
        "predict_proba": lambda m, X: m.predict_proba(X),
        "transform": lambda m, X: m.transform(X),
        "score": lambda m, X: m.score(X),
        "score_samples": lambda m, X: m.score_samples(X),
        "impute": lambda m, X: np.asarray(m.impute(X), dtype=np.float64),
        "fit_predict": lambda m, X: make("mixture").fit_predict(X),
    },
    "hmm": {
        "predict": lambda m, X: m.predict(X),
        "predict_proba": lambda m, X: m.predict_proba(X),
        "score": lambda m, X: m.score(X),
        "fit_predict": lambda m, X: make("hmm").fit_predict(X),
        "partial_fit": lambda m, X: own_fit("hmm").partial_fit(X).lower_bound_,
    },
    "topics": {
        "transform": lambda m, X: m.transform(X, **extra("topics")),
        "score": lambda m, X: m.score(X, **extra("topics")),
        "partial_fit": lambda m, X: own_fit("topics").partial_fit(X, **extra("topics")).lower_bound_,
    },
}
PAIRS = [(kind, method) for kind, methods in METHODS.items() for method in methods if method != "fit_predict"]


@pytest.fixture(autouse=True)
def quiet():
    """Too few laps to converge, and names of columns that only some containers have, are no concern here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "not converged")
        warnings.filterwarnings("ignore", "X (does not have valid|has) feature names")
        warnings.filterwarnings("ignore", "pandas.DataFrame with sparse columns")
        yield


def close(got, want, name):
    rough = name.endswith("float32")
    np.testing.assert_allclose(got, want, rtol=1e-4 if rough else 1e-9, atol=1e-4 if rough else 1e-9)


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("name", RIGHT)
def test_containers_are_fitted_as_arrays(name, kind):
    X, same = RIGHT[name]
    found = make(kind).fit(X, **extra(kind))
    plain = plain_fit(kind, name_of(same))
    close(found.lower_bound_, plain.lower_bound_, name)
    assert found.n_features_in_ == 2


SINGLE = {
    "array": VALUES.astype("f4"),
    "other byte order": VALUES.astype(">f4"),
    "masked": np.ma.array(VALUES.astype(">f4")),
    "pandas": pd.DataFrame(VALUES.astype("f4"), columns=["a", "b"]),
    "pandas Float32": pd.DataFrame(columns()).astype("Float32"),
    "pandas arrow": pd.DataFrame(columns()).astype("float[pyarrow]"),
    "polars": pl.DataFrame(columns()).cast(pl.Float32),
}


@pytest.mark.parametrize("name", SINGLE)
def test_single_precision_stays_in_any_container(name):
    assert make("mixture").fit(SINGLE[name]).dtype_ == np.float32


def test_single_precision_stays_in_maps_and_lists_of_other_byte_order(tmp_path):
    np.save(tmp_path / "X.npy", VALUES.astype(">f4"))
    mapped = make("mixture").fit(np.load(tmp_path / "X.npy", mmap_mode="r"))
    listed = make("hmm").fit([VALUES.astype(">f4")])
    assert mapped.dtype_ == listed.dtype_ == np.float32
    assert mapped.lower_bounds_ == make("mixture").fit(VALUES.astype("f4")).lower_bounds_


@pytest.mark.parametrize(("kind", "method"), PAIRS, ids=[f"{kind}-{method}" for kind, method in PAIRS])
def test_containers_are_read_as_arrays(kind, method):
    call = METHODS[kind][method]
    model = plain_fit(kind, "holes")
    for name, (X, same) in RIGHT.items():
        close(call(model, X), plain_answer(kind, method, name_of(same)), name)


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("name", WRONG)
def test_other_containers_are_refused(name, kind):
    X, words = WRONG[name]
    with pytest.raises((ValueError, TypeError), match=words):
        make(kind).fit(X, **extra(kind))
    model = plain_fit(kind, "values")
    for method in METHODS[kind].values():
        with pytest.raises((ValueError, TypeError), match=words):
            method(model, X)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_generators_are_refused(kind):
    with pytest.raises(TypeError, match="got a generator"):
        make(kind).fit(iter(row for row in VALUES), **extra(kind))


def test_halves_of_documents_may_be_in_any_container():
    model = TopicModel(n_jobs=1, random_state=0, n_init_topics=2, max_laps=5, moves=()).fit(VALUES)
    want = model.completion_score(VALUES, FLAGS)
    for name in ("float32", "int64", "object", "list of lists", "pandas", "pandas sparse", "masked nowhere"):
        assert model.completion_score(RIGHT[name][0], FLAGS.tolist()) == pytest.approx(want, rel=1e-5)
    for name in ("complex", "text", "dates", "dict", "none", "ragged"):
        X, words = WRONG[name]
        for A, B in ((X, VALUES), (VALUES, X)):
            with pytest.raises((ValueError, TypeError), match="holds text" if name == "text" else words):
                model.completion_score(A, B)


# Lists of sequences


HALVES = [VALUES[:10], VALUES[10:]]
HALF_HOLES = [HOLES[:10], HOLES[10:]]


def frame(X, names="ab", library=pd.DataFrame):
    return library(dict(zip(names, np.asarray(X).T)))


LISTS = {
    "arrays": (HALVES, VALUES),
    "tuple": (tuple(HALVES), VALUES),
    "float32 and float64": ([HALVES[0].astype("f4"), HALVES[1]], VALUES),
    "whole numbers": ([x.astype(int) for x in HALVES], VALUES),
    "objects": ([x.astype(object) for x in HALVES], VALUES),
    "masked": ([np.ma.masked_invalid(x) for x in HALF_HOLES], HOLES),
    "masked and not": ([np.ma.masked_invalid(HALF_HOLES[0]), HALF_HOLES[1]], HOLES),
    "masked objects": ([np.ma.array(VALUES[s].astype(object), mask=MASK[s]) for s in (slice(10), slice(10, N))], HOLES),
    "nested lists": ([x.tolist() for x in HALVES], VALUES),
    "pandas": ([frame(x) for x in HALVES], VALUES),
    "polars": ([frame(x, library=pl.DataFrame) for x in HALVES], VALUES),
    "pyarrow": ([frame(x, library=pa.table) for x in HALVES], VALUES),
    "two libraries": ([frame(HALVES[0]), frame(HALVES[1], library=pl.DataFrame)], VALUES),
    "another order": ([frame(HALVES[0]), frame(HALVES[1][:, ::-1], "ba")], VALUES),
    "another order, polars": (
        [frame(HALVES[0], library=pl.DataFrame), frame(HALVES[1][:, ::-1], "ba", pl.DataFrame)],
        VALUES,
    ),
    "whole and fractional": (
        [frame(HALVES[0].astype(int), library=pl.DataFrame), frame(HALVES[1], library=pl.DataFrame)],
        VALUES,
    ),
    "missing in one": ([pd.DataFrame(objects(None)[:10], columns=["a", "b"]), frame(HALF_HOLES[1])], HOLES),
    "numbered columns": ([pd.DataFrame(x) for x in HALVES], VALUES),
    "pandas series": ([pd.Series(x[:, 0]) for x in HALVES], VALUES[:, :1]),
    "named series": ([pd.Series(x[:, 0], name="a") for x in HALVES], VALUES[:, :1]),
    "series of other names": ([pd.Series(x[:, 0], name=str(i)) for i, x in enumerate(HALVES)], VALUES[:, :1]),
    "polars series": ([pl.Series("a", x[:, 0]) for x in HALVES], VALUES[:, :1]),
    "one axis": ([x[:, 0] for x in HALVES], VALUES[:, :1]),
    "one and two axes": ([HALVES[0][:, 0], HALVES[1][:, :1]], VALUES[:, :1]),
    "masked, one axis": ([np.ma.masked_invalid(x[:, 0]) for x in HALF_HOLES], HOLES[:, :1]),
}
WRONG_LISTS = {
    "other columns": ([frame(HALVES[0]), frame(HALVES[1], "ac")], "position 1 lacks 'b' and has 'c' more"),
    "fewer columns": ([frame(HALVES[0]), frame(HALVES[1][:, :1], "a")], "position 1 lacks 'b'"),
    "more columns, polars": (
        [frame(HALVES[0][:, :1], "a", pl.DataFrame), frame(HALVES[1], library=pl.DataFrame)],
        "position 1 has 'b' more",
    ),
    "frames and arrays": ([frame(HALVES[0]), HALVES[1]], "items of one kind; got DataFrame and ndarray"),
    "other widths": ([HALVES[0], HALVES[1][:, :1]], "same columns.*position 0 has 2.*position 1 has 1"),
    "no rows": ([HALVES[0], HALVES[1][:0]], "position 1 of the list has no rows"),
    "no rows in a frame": ([frame(HALVES[0]), frame(HALVES[1][:0])], "position 1 of the list has no rows"),
    "three axes": ([VALUES[None], VALUES], "position 0 of the list has 3 axes"),
    "dates": ([VALUES, DATES], "position 1 of the list: X holds dates"),
    "text": ([VALUES, VALUES.astype(str)], "text is no number"),
    "dates in a frame": ([pd.DataFrame({"a": DATES[:, 0]})] * 2, "column 'a' holds Datetime"),
    "matrices": ([VALUES.view(np.matrix)] * 2, "np.matrix"),
    "ragged": ([[[1.0, 2.0], [3.0]], [[1.0, 2.0]]], "position 0 of the list.*inhomogeneous"),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_sequences(name):
    X, same = LISTS[name]
    found = make("hmm").fit(X)
    plain = make("hmm").fit(same, lengths=[10, N - 10])
    close(found.lower_bound_, plain.lower_bound_, name)
    np.testing.assert_array_equal(found.predict(X), plain.labels_)
    close(found.predict_proba(X), plain.predict_proba(same, lengths=[10, N - 10]), name)
    close(found.score(X), plain.score(same, lengths=[10, N - 10]), name)
    close(found.partial_fit(X).lower_bound_, plain.partial_fit(same, lengths=[10, N - 10]).lower_bound_, name)


@pytest.mark.parametrize("name", WRONG_LISTS)
def test_other_lists_are_refused(name):
    X, words = WRONG_LISTS[name]
    model = make("hmm").fit(VALUES)
    for method in (make("hmm").fit, model.predict, model.predict_proba, model.score, model.partial_fit):
        with pytest.raises((ValueError, TypeError), match=words):
            method(X)
    with pytest.raises(ValueError, match="lengths"):
        make("hmm").fit(HALVES, lengths=[10, N - 10])


def test_categories_of_several_frames():
    """Levels are those of all frames together, also where each declares its own."""
    words = np.array(["low", "high"])[(VALUES[:, 0] > 20).astype(int)]
    whole = pd.DataFrame({"c": words})
    plain = make("hmm").set_params(likelihood="categorical").fit(whole, lengths=[10, N - 10])
    parts = [whole[:10], whole[10:]]
    kinds = [parts, [p.astype("category") for p in parts], [pl.from_pandas(p) for p in parts], [p["c"] for p in parts]]
    for X in kinds:
        found = make("hmm").set_params(likelihood="categorical").fit(X)
        assert found.levels_ == {0: ["high", "low"]}
        assert found.lower_bound_ == pytest.approx(plain.lower_bound_)
        np.testing.assert_array_equal(plain.predict(X), plain.labels_)


# Weights, targets, lengths and starts


def test_masked_weights_are_refused():
    weights = np.ma.array(np.ones(N), mask=np.arange(N) == 3)
    with pytest.raises(ValueError, match=r"sample_weight contains NaN or a masked value.*row 3"):
        make("mixture").fit(VALUES, sample_weight=weights)
    for wrong in (np.ones(N) + 0j, np.full(N, "1"), DATES[:, 0], [np.ma.masked] * N, {1: 2}, 10**400):
        with pytest.raises((ValueError, TypeError), match="sample_weight"):
            make("mixture").fit(VALUES, sample_weight=wrong)
    plain = make("mixture").fit(VALUES, sample_weight=np.full(N, 2.0))
    for same in (
        [2] * N,
        [Fraction(2)] * N,
        pd.Series([2] * N, dtype="Int64"),
        pl.Series([2.0] * N),
        np.ma.array([2] * N),
        2,
    ):
        assert make("mixture").fit(VALUES, sample_weight=same).lower_bound_ == plain.lower_bound_


def test_masked_targets_are_missing_values():
    options = {"likelihood": "linear_regression", "n_jobs": 1, "max_laps": 5, "moves": ()}
    y = np.where(np.arange(N) == 3, np.nan, VALUES[:, 1])
    plain = Mixture(**options).fit(VALUES[:, :1], y).lower_bound_
    assert plain != Mixture(**options).fit(VALUES[:, :1], VALUES[:, 1]).lower_bound_
    for same in (np.ma.masked_invalid(y), np.ma.masked_invalid(y).astype(object), [None if v != v else v for v in y]):
        assert Mixture(**options).fit(VALUES[:, :1], same).lower_bound_ == plain
    for wrong, words in ((y + 0j, "Complex"), (DATES[:, 0], "dates"), (np.full(N, "a"), "text")):
        with pytest.raises(ValueError, match=words):
            Mixture(**options).fit(VALUES[:, :1], wrong)


@pytest.mark.parametrize("kind", ["hmm", "topics"])
def test_lengths_of_any_kind(kind):
    plain = make(kind).fit(VALUES, lengths=[10, N - 10]).lower_bound_
    for same in (
        np.array([10, N - 10], np.uint8),
        (10, N - 10),
        pd.Series([10, N - 10], dtype="Int64"),
        pl.Series([10, N - 10]),
    ):
        assert make(kind).fit(VALUES, lengths=same).lower_bound_ == plain
    masked = np.ma.array([10, N - 10], mask=[False, True])
    for wrong in (
        masked,
        [10.0, N - 10.0],
        [True] * N,
        [10, None],
        "ab",
        {10: 1},
        10**400,
        [[10, N - 10]],
        [10, 10**400],
    ):
        with pytest.raises((ValueError, TypeError), match="lengths"):
            make(kind).fit(VALUES, lengths=wrong)


SAME_LABELS = {
    "text": np.array(["a", "b"])[GROUPS],
    "mixed": [1 if k == 0 else "a" for k in GROUPS],
    "list": GROUPS.tolist(),
    "floats": GROUPS.astype(float),
    "truth": GROUPS.astype(bool),
    "pandas categories": pd.Series(pd.Categorical(np.array(["a", "b"])[GROUPS])),
    "polars": pl.Series(GROUPS),
    "masked nowhere": np.ma.array(GROUPS),
}
WRONG_LABELS = {
    "None": [1, "a", None] * (N // 3),
    "NaN": np.where(GROUPS == 1, np.nan, 0.0),
    "NA": pd.Series([1, None] * (N // 2), dtype="Int64"),
    "masked": np.ma.array(GROUPS, mask=GROUPS == 1),
    "masked text": np.ma.array(SAME_LABELS["text"], mask=GROUPS == 1),
    "lists": [[1], [2, 3]] * (N // 2),
    "dicts": [{}] * N,
    "too few": [1, 2, 3],
    "dict": {1: 2},
    "nothing": None,
}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_labels_of_any_kind(kind):
    plain = make(kind).fit(VALUES, **extra(kind)).lower_bound_
    for name, labels in SAME_LABELS.items():
        assert make(kind).set_params(init=labels).fit(VALUES, **extra(kind)).lower_bound_ == plain, name
    for labels in WRONG_LABELS.values():
        with pytest.raises((ValueError, TypeError), match="init"):
            make(kind).set_params(init=labels).fit(VALUES, **extra(kind))


@pytest.mark.parametrize("kind", ["hmm", "topics"])
def test_new_holes_are_learnt_from_and_read(kind):
    """Values missing in columns that had all of them when the model was fitted."""
    model = make(kind).fit(VALUES, **extra(kind))
    assert np.isfinite(model.score(HOLES, **extra(kind)))
    model.partial_fit(HOLES, **extra(kind))
    assert np.isfinite(model.lower_bound_)
    assert np.isfinite(model.summary_.S).all()


@pytest.mark.parametrize(
    "moves", [("birth", "merge", "delete"), ["delete", "birth", "merge"], {"merge", "birth", "delete"}]
)
def test_moves_in_any_collection(moves):
    X = np.concatenate([VALUES, VALUES + 500.0])
    plain = Mixture("diagonal_gaussian", n_jobs=1, random_state=0).fit(X)
    found = Mixture("diagonal_gaussian", n_jobs=1, random_state=0, moves=moves).fit(X)
    assert found.n_clusters_ == plain.n_clusters_ > 1
    assert found.lower_bounds_ == plain.lower_bounds_


@pytest.mark.parametrize("cls", [Mixture, HMM, TopicModel])
def test_moves_that_can_be_read_only_once_are_refused(cls):
    for moves in ((m for m in ["birth"]), iter(["merge"]), "merge", {"merge": 1}, ["grow"], None, 3, [1]):
        with pytest.raises(ValueError, match="moves must be a sequence of names"):
            cls(moves=moves).fit(VALUES)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_model_of_other_levels_is_a_start(kind):
    """Levels are matched by what they are, whatever their codes."""
    words = np.array(["low", "high"])[GROUPS]
    rest = {"likelihood": "categorical", "tol": 1e-6, "max_laps": 50}
    here = pd.DataFrame({"c": pd.Categorical(words, categories=["low", "high"])})
    there = pd.DataFrame({"c": pd.Categorical(words, categories=["high", "unused", "low"])})
    found = make(kind).set_params(**rest).fit(there, **extra(kind))
    again = make(kind).set_params(**rest, init=found).fit(here, **extra(kind))
    want = make(kind).set_params(**rest).fit(here, **extra(kind))
    assert again.lower_bound_ == pytest.approx(want.lower_bound_, rel=1e-4)
    with pytest.raises(ValueError, match="column 0 of X holds numbers, but categories where init was fitted"):
        make(kind).set_params(**rest, init=found).fit(GROUPS[:, None], **extra(kind))


NUMBERS = [10**400, float("nan"), float("inf"), True, np.bool_(True), "1", [1.0], 1j, -1]


@pytest.mark.parametrize("value", NUMBERS, ids=lambda v: str(v)[:8])
@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (Mixture, "concentration"),
        (Mixture, "tol"),
        (Mixture, "n_init_clusters"),
        (HMM, "stickiness"),
        (HMM, "start_concentration"),
        (HMM, "transition_concentration"),
        (TopicModel, "document_concentration"),
    ],
)
def test_parameters_that_are_no_numbers_are_refused(cls, name, value):
    with pytest.raises(ValueError, match=f"{name} must be") as caught:
        cls(**{name: value}).fit(VALUES)
    assert len(str(caught.value)) < 200


def test_any_kind_of_number_is_a_parameter():
    plain = make("mixture").set_params(concentration=0.5).fit(VALUES).lower_bound_
    for value in (Fraction(1, 2), np.float32(0.5), np.float64(0.5)):
        assert make("mixture").set_params(concentration=value).fit(VALUES).lower_bound_ == plain


@pytest.mark.parametrize(
    ("likelihood", "scale"), [("poisson", 1e10), ("multinomial", 1e10), ("exponential", 1e140), ("gamma", 1e-140)]
)
def test_rows_of_any_size_can_be_drawn(likelihood, scale):
    X = (1.0 + np.random.default_rng(0).poisson(3.0, (60, 3))) * scale
    found = Mixture(likelihood, n_jobs=1, random_state=0, max_laps=5).fit(X)
    drawn, _ = found.sample(5000)
    assert np.isfinite(drawn).all()
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), rtol=0.2)
