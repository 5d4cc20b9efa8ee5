"""Arguments of wrong kinds at every method of every estimator: an error of ours, or a finite answer."""

import datetime
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

import stickbreak

from .attacker import FINE, Attacker, Outcome
from .cases import Case
from .errors import judged
from .inputs import build
from .verdict import watched


@dataclass(frozen=True)
class Door:
    """A method of an estimator, the argument that is wrong, and what it is given."""

    estimator: str = "Mixture"
    method: str = "fit"
    argument: str = "X"
    given: str = "None"
    fitted: bool = True


ROWS = {
    "None": lambda X: None,
    "a number": lambda X: 3.0,
    "text": lambda X: "data.csv",
    "texts": lambda X: ["the cat sat", "on the mat"] * 10,
    "nothing": lambda X: [],
    "empty rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "one axis": lambda X: X[:, 0],
    "three axes": lambda X: X[None],
    "ragged": lambda X: [[1.0, 2.0], [3.0]],
    "dict": lambda X: {"a": [1, 2]},
    "dict of arrays": lambda X: {"a": X[:, 0], "b": X[:, 1]},
    "generator": lambda X: (row for row in X),
    "iterator": lambda X: iter(X.tolist()),
    "set": lambda X: {1, 2},
    "dates": lambda X: X.astype("datetime64[s]"),
    "NaT": lambda X: np.array([["NaT", "2020"]] * 20, "datetime64[D]"),
    "durations": lambda X: X.astype("timedelta64[s]"),
    "dates as objects": lambda X: np.array([[datetime.date(2020, 1, 1), 1.0]] * 20, object),
    "structured": lambda X: np.zeros(20, [("a", float), ("b", float)]),
    "bytes": lambda X: X.astype("S8"),
    "strings": lambda X: X.astype(str),
    "words": lambda X: np.array([["a", "b"]] * 20),
    "complex": lambda X: X + 1j,
    "None inside": lambda X: np.where(X > 0, X, None),
    "text inside": lambda X: np.where(X > 0, X, "x").astype(object),
    "masked entirely": lambda X: np.ma.masked_all(X.shape),
    "masked objects": lambda X: np.ma.MaskedArray(X.astype(object), mask=X < 0.5),
    "masked dates": lambda X: np.ma.MaskedArray(X.astype("datetime64[s]"), mask=X < 0.5),
    "class": lambda X: np.ndarray,
    "function": lambda X: len,
    "series": lambda X: _pandas().Series(X[:, 0]),
    "two series": lambda X: [_pandas().Series(X[:, 0]), _pandas().Series(X[:, 1])],
    "frame of dates": lambda X: _frame(_pandas().to_datetime(["2020", None] * 10)),
    "frame of durations": lambda X: _frame(_pandas().to_timedelta([1.0, None] * 10)),
    "frame of lists": lambda X: _frame([[1, 2]] * 20),
    "frame of one name twice": lambda X: _pandas().DataFrame(X, columns=["a", "a"]),
    "frame with nested columns": lambda X: _pandas().DataFrame(
        X, columns=_pandas().MultiIndex.from_tuples([(0, 1), (0, 2)])
    ),
    "frame of mixed objects": lambda X: _frame([1, "x", None, 2.5] * 5),
    "frame of complex": lambda X: _pandas().DataFrame(X + 1j),
    "sparse frame": lambda X: _pandas().DataFrame(X).astype(_pandas().SparseDtype(float)),
    "polars with lists": lambda X: _polars().DataFrame({"a": [[1], [2]] * 10, "b": [1.0] * 20}),
    "polars dates": lambda X: _polars().DataFrame({"a": [datetime.date(2020, 1, 1)] * 20, "b": [1.0] * 20}),
    "lazy polars": lambda X: _polars().LazyFrame({"a": X[:, 0], "b": X[:, 1]}),
    "polars series": lambda X: _polars().Series(X[:, 0]),
    "frames with unlike columns": lambda X: [
        _pandas().DataFrame(X[:10], columns=["a", "b"]),
        _pandas().DataFrame(X[10:], columns=["a", "c"]),
    ],
    "polars frames with unlike columns": lambda X: [
        _polars().DataFrame({"a": X[:10, 0], "b": X[:10, 1]}),
        _polars().DataFrame({"a": X[10:, 0], "c": X[10:, 1]}),
    ],
    "arrays of unlike widths": lambda X: [X[:10], X[10:, :1]],
    "a sequence of one axis": lambda X: [X[:10], X[10:, 0]],
    "a sequence without rows": lambda X: [X[:10], X[:0]],
    "estimator": lambda X: stickbreak.Mixture(),
    "huge integers": lambda X: np.full(X.shape, 10**30, object),
    "nested lists": lambda X: X[None].tolist(),
    "booleans": lambda X: X > 1.0,
}
NO_TABLES = (  # rows that no method may take
    *("None", "a number", "text", "texts", "nothing", "empty rows", "no columns", "one axis", "three axes", "ragged"),
    *("dict", "generator", "iterator", "set", "dates", "NaT", "durations", "dates as objects", "bytes", "complex"),
    *("class", "function", "estimator", "masked dates", "frame of dates", "frame of durations", "frame of complex"),
    *("polars with lists", "polars dates", "lazy polars", "frames with unlike columns", "arrays of unlike widths"),
    *("polars frames with unlike columns", "a sequence without rows", "frame of one name twice"),
)
OTHERS = {
    "None": None,
    "text": "abc",
    "number": 3.5,
    "zero": 0,
    "negative": -1,
    "huge": 10**400,
    "infinite": float("inf"),
    "NaN": float("nan"),
    "list": [1, 2],
    "dict": {"a": 1},
    "True": True,
    "object": object(),
    "class": int,
    "array": np.zeros((2, 2)),
    "array of texts": np.array(["a"] * 20),
    "dates": np.array(["2020"] * 20, "datetime64[D]"),
    "ones": np.ones(20),
    "complex": np.ones(20) * 1j,
    "nested": [[1], [2, 3]],
    "20 huge": np.full(20, 10**30, object),
}
METHODS = {
    "Mixture": {
        "fit": ("X", "sample_weight"),
        "predict": ("X",),
        "predict_proba": ("X",),
        "partial_fit": ("X", "y", "sample_weight"),
        "score_samples": ("X",),
        "score": ("X",),
        "transform": ("X",),
        "impute": ("X",),
        "predict_targets": ("X",),
        "sample": ("n_samples",),
        "save": ("path",),
    },
    "HMM": {
        "fit": ("X", "lengths"),
        "predict": ("X", "lengths"),
        "decode": ("X", "lengths", "method"),
        "predict_proba": ("X", "lengths"),
        "score": ("X", "lengths"),
        "partial_fit": ("X", "lengths"),
        "sample": ("n_samples",),
        "save": ("path",),
    },
    "TopicModel": {
        "fit": ("X", "lengths"),
        "transform": ("X", "lengths"),
        "score": ("X", "lengths"),
        "perplexity": ("X",),
        "partial_fit": ("X", "lengths"),
        "completion_score": ("A", "B"),
        "top_words": ("vocabulary", "n", "relevance"),
        "coherence": ("counts", "n", "relevance"),
    },
}
PARAMETERS = {
    "Mixture": (
        "likelihood",
        "concentration",
        "allocation",
        "algorithm",
        "n_batches",
        "init",
        "n_init_clusters",
        "moves",
    ),
    "HMM": (
        "likelihood",
        "allocation",
        "stickiness",
        "transition_concentration",
        "start_concentration",
        "concentration",
    ),
    "TopicModel": ("likelihood", "allocation", "document_concentration", "concentration", "init", "n_init_topics"),
}
COMMON = ("max_laps", "tol", "n_jobs", "random_state", "moves", "init", "algorithm", "n_batches", "verbose")
ROW_ARGUMENTS = ("X", "A", "B", "counts")
WORDS = (  # one of which an error must hold, if not the name of the argument
    *("RandomState", "seed", "path", "file", "X", "sample", "feature", "column", "data", "sequence", "array", "frame"),
    *("values are missing", "number"),
)


def _pandas() -> Any:
    import pandas as pd

    return pd


def _frame(column: Any) -> Any:
    """A frame of pandas with a column of 20 values and one of numbers."""
    return _pandas().DataFrame({"a": column, "b": 1.0})


def _polars() -> Any:
    import polars as pl

    return pl


@st.composite
def _doors(draw) -> Door:
    estimator = draw(st.sampled_from(tuple(METHODS)))
    if draw(st.integers(0, 2)) == 0:
        argument = draw(st.sampled_from((*PARAMETERS[estimator], *COMMON)))
        return Door(estimator, "set_params", argument, draw(st.sampled_from(tuple(OTHERS))), draw(st.booleans()))
    method = draw(st.sampled_from(tuple(METHODS[estimator])))
    argument = draw(st.sampled_from(METHODS[estimator][method]))
    given = draw(st.sampled_from(tuple(ROWS if argument in ROW_ARGUMENTS else OTHERS)))
    return Door(estimator, method, argument, given, method != "fit" or draw(st.booleans()))


@cache
def fitted(estimator: str) -> Any:
    likelihood = "multinomial" if estimator == "TopicModel" else "gaussian"
    lengths = "ragged" if estimator == "HMM" else "none given"
    inputs = build(Case(estimator, likelihood, n=20, lengths=lengths, laps=3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return inputs.estimator.fit(**inputs.fit)


def rows(estimator: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.poisson(3.0, (20, 2)).astype(float) if estimator == "TopicModel" else rng.normal(size=(20, 2)) + 1.0


def attempt(case: Door) -> Any:
    """Call the method with one argument wrong and the others right."""
    X = rows(case.estimator)
    value = ROWS[case.given](X) if case.argument in ROW_ARGUMENTS else OTHERS[case.given]
    model = fitted(case.estimator)
    fresh = getattr(stickbreak, case.estimator)(max_laps=3, n_jobs=1, random_state=0)
    if case.method == "set_params":
        fresh.set_params(**{case.argument: value})
        return fresh.fit(X)
    right = {"X": X, "A": X, "B": X, "counts": X}
    others = [a for a in METHODS[case.estimator][case.method] if a in ROW_ARGUMENTS]
    arguments = {**{a: right[a] for a in others}, case.argument: value}
    if case.method in ("fit", "partial_fit"):
        return getattr(fresh, case.method)(**arguments)
    if case.method == "save":
        return _save(model, value)
    return getattr(model, case.method)(**arguments)


def _save(model: Any, path: Any) -> None:
    """Only to paths where nothing can be written."""
    if isinstance(path, (str, bool, int)):
        path = f"/nowhere/{path}" if isinstance(path, str) else None
    model.save(path)


@watched
def run(case: Door) -> Outcome:
    try:
        attempt(case)
    except Exception as error:
        return judged(error, (case.argument, *WORDS), f"{case.method}({case.argument}=<{case.given}>): ")
    if case.argument in ROW_ARGUMENTS and case.given in NO_TABLES:
        return Outcome("takes what is no table", f"{case.method}: {case.given}")
    return Outcome(FINE)


ATTACKERS = [Attacker("doors", _doors(), run, {"Door": Door}, seconds=30.0)]
