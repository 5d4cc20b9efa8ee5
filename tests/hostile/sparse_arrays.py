"""CSR, CSC and COO matrices whose indices lie: refused everywhere, or read as what they say."""

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

import stickbreak

from .attacker import FINE, Attacker, Outcome
from .errors import judged
from .verdict import DATA, METHODS, sound, watched

LIES = (
    *("index huge", "index of one too many", "index negative", "all indices too large", "indptr falls"),
    *("indptr too long", "indptr too short", "indptr starts late", "indptr ends beyond", "indptr negative"),
    *("data too short", "indices too short", "narrower shape", "wider shape", "fewer rows", "int8 sums", "repeated"),
    *("stored zeros", "unsorted", "int64", "none", "huge counts", "NaN", "negative", "object data", "uint32 indices"),
)
REPLACED = {  # the arrays that a lie replaces, and what takes the place of each
    "indptr too long": (["indptr"], lambda array: np.append(array, array[-1] + 7).astype(array.dtype)),
    "indptr too short": (["indptr"], lambda array: array[:-1].copy()),
    "data too short": (["data"], lambda array: array[:-3].copy()),
    "indices too short": (["indices"], lambda array: array[:-3].copy()),
    "int64": (["indices", "indptr"], lambda array: array.astype(np.int64)),
    "uint32 indices": (["indices", "indptr"], lambda array: array.astype(np.uint32)),
    "object data": (["data"], lambda array: array.astype(object)),
}
WIDENED = {"narrower shape": (0, -20), "wider shape": (0, 20), "fewer rows": (-5, 0)}


@dataclass(frozen=True)
class Lie:
    """A matrix of counts (or bits), what is wrong with it, and who is told."""

    estimator: str = "TopicModel"
    likelihood: str = "multinomial"
    lie: str = "none"
    format: str = "csr"
    fitted: bool = False
    seed: int = 0


CASES = st.builds(
    Lie,
    estimator=st.sampled_from(("TopicModel", "Mixture")),
    likelihood=st.sampled_from(("multinomial", "poisson", "bernoulli", "auto")),
    lie=st.sampled_from(LIES),
    format=st.sampled_from(("csr", "csr", "csr", "csc", "coo")),
    fitted=st.booleans(),
    seed=st.integers(0, 10**6),
)


def counts(case: Lie, rng: np.random.Generator) -> np.ndarray:
    X = rng.poisson(1.0, (20, 50)).astype(float) * (rng.random((20, 50)) < 0.3)
    X[:, 0] += 1.0
    return np.minimum(X, 1.0) if case.likelihood == "bernoulli" else X


def _lying(C: Any, lie: str, rng: np.random.Generator) -> Any:
    """C (CSR or CSC) with one of its arrays altered in place."""
    i = int(rng.integers(len(C.indices)))
    j = int(rng.integers(1, len(C.indptr) - 1))
    wide = C.shape[1] if C.format == "csr" else C.shape[0]
    in_place = {
        "index huge": (C.indices, i, 10**6),
        "index of one too many": (C.indices, i, wide),
        "index negative": (C.indices, i, -1),
        "all indices too large": (C.indices, slice(None), wide + 5),
        "indptr falls": (C.indptr, j, C.indptr[j - 1] - 1 if j > 1 else -5),
        "indptr ends beyond": (C.indptr, -1, C.indptr[-1] + 10**6),
        "indptr starts late": (C.indptr, 0, 3),
        "indptr negative": (C.indptr, j, -(10**6)),
        "stored zeros": (C.data, i, 0.0),
        "huge counts": (C.data, i, 1e30),
        "NaN": (C.data, i, np.nan),
        "negative": (C.data, i, -2.0),
    }
    if lie in in_place:
        array, at, value = in_place[lie]
        array[at] = value
    elif lie in REPLACED:
        names, replaced = REPLACED[lie]
        for name in names:
            setattr(C, name, replaced(getattr(C, name)))
    elif lie in WIDENED:
        rows, columns = WIDENED[lie]
        C._shape = (C.shape[0] + rows, C.shape[1] + columns)
    elif lie == "unsorted":
        first = slice(C.indptr[0], C.indptr[1])
        C.indices = _first_turned(C.indices, first)
        C.data = _first_turned(C.data, first)
    return C


def _first_turned(array: np.ndarray, first: slice) -> np.ndarray:
    """A copy with the entries of the first row in opposite order."""
    turned = array.copy()
    turned[first] = array[first][::-1]
    return turned


def matrix(case: Lie) -> tuple[Any, np.ndarray]:
    """The matrix, and what it should be read as."""
    rng = np.random.default_rng(case.seed)
    X = counts(case, rng)
    if case.lie in ("int8 sums", "repeated"):
        C = sparse.coo_array(X)
        times = 60 if case.lie == "int8 sums" else 2
        data = np.tile(C.data, times).astype(np.int8 if case.lie == "int8 sums" else float)
        where = tuple(np.tile(c, times) for c in C.coords)
        return sparse.coo_array((data, where), X.shape), times * X
    C = sparse.csc_array(X) if case.format == "csc" else sparse.csr_array(X)
    if case.format == "coo":
        C = sparse.coo_array(X)
        if case.lie in ("index huge", "index of one too many", "index negative"):
            bad = {"index huge": 10**6, "index of one too many": X.shape[1], "index negative": -1}[case.lie]
            C.coords[1][int(rng.integers(C.nnz))] = bad
        return C, X
    if case.lie in ("index huge", "index of one too many") and rng.random() < 0.5:
        C = sparse.csr_matrix(C) if C.format == "csr" else sparse.csc_matrix(C)
    C = _lying(C, case.lie, rng)
    return C, C.toarray() if case.lie == "stored zeros" else X


def estimator(case: Lie) -> Any:
    given = {"max_laps": 3, "n_jobs": 1, "random_state": 0, "n_init_topics": 4}
    if case.estimator == "Mixture":
        given.pop("n_init_topics")
    kind = "multinomial" if case.estimator == "TopicModel" else case.likelihood
    return getattr(stickbreak, case.estimator)(kind, **given)


@cache
def fitted(case: Lie) -> Any:
    X = counts(case, np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator(case).fit(sparse.csr_array(X))


HARMLESS = ("none", "repeated", "int8 sums", "int64", "uint32 indices", "unsorted", "stored zeros")


@watched
def run(case: Lie) -> Outcome:
    C, X = matrix(case)
    if not case.fitted:
        return _fit(case, C, X)
    found = fitted(Lie(case.estimator, case.likelihood))
    tasks = dict(METHODS[case.estimator])
    if case.estimator == "TopicModel":
        tasks["completion_score"] = lambda found, read: found.completion_score(read["X"], read["X"])
        tasks["coherence"] = lambda found, read: found.coherence(read["X"])
    outcome = Outcome(FINE)
    for name, task in tasks.items():
        outcome = _told(case, C, X, found, name, task)
        if outcome.is_finding:
            break
    return outcome


def _words(case: Lie) -> tuple[str, ...]:
    return () if case.lie == "none" else (*DATA, "indices", "indptr", "matrix", "CSR", "entries", "finite", "shape")


def _told(case: Lie, C: Any, X: np.ndarray, found: Any, name: str, task: Any) -> Outcome:
    words = (*_words(case), "coherence", "sparse", "likelihood")
    try:
        value = task(found, {"X": C})
    except Exception as error:
        return judged(error, words, f"{name}: ")
    if name not in ("completion_score", "coherence"):
        sound(name, value, found)
    if case.lie in HARMLESS and name != "impute":
        expected = np.asarray(task(found, {"X": sparse.csr_array(X)}))
        if not np.allclose(np.asarray(value), expected, rtol=1e-9, atol=1e-12, equal_nan=True):
            return Outcome("matrix read otherwise", f"{name} of {case.lie} in {case.format}")
    return Outcome(FINE)


def _fit(case: Lie, C: Any, X: np.ndarray) -> Outcome:
    try:
        found = estimator(case).fit(C)
    except Exception as error:
        return judged(error, _words(case), "fit: ")
    bounds = np.array(found.lower_bounds_)
    if not np.isfinite(bounds).all():
        return Outcome("non-finite bound", str(bounds))
    if (np.diff(bounds) < -1e-9 * np.abs(bounds[1:])).any():
        return Outcome("bound falls", str(bounds))
    if case.lie in HARMLESS:
        plain = estimator(case).fit(sparse.csr_array(X))
        if not np.allclose(plain.lower_bounds_[-1], bounds[-1], rtol=1e-9):
            return Outcome("matrix read otherwise", f"fit of {case.lie} in {case.format}")
    return Outcome(FINE)


ATTACKERS = [Attacker("sparse arrays", CASES, run, {"Lie": Lie}, seconds=30.0)]
