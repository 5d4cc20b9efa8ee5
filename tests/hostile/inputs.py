"""From a case to what the library is handed: values, containers, weights, lengths, starts, and the estimator itself."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import stickbreak
from stickbreak import allocations
from stickbreak import likelihoods as lk

from .cases import FRAMES, SPARSE, WRONG_LENGTHS, Case

GARBAGE = 77.0  # under the mask of a masked array
FEW_LEVELS = (
    "bernoulli",
    "dirichlet",
    "exponential",
    "gamma",
    "log_scale",
    "product",
)  # likelihoods that whole numbers from 0 to 49 are no data of

# Values ----------------------------------------------------------------------------------------------------------------


def _reals(rng, z, d):
    return rng.standard_normal((len(z), d)) + 9.0 * rng.permuted(np.tile([[-1.0], [0.0], [1.0]], d), axis=0)[z]


def _bits(rng, z, d):
    return (rng.random((len(z), d)) < rng.uniform(0.05, 0.95, (3, d))[z]).astype(float)


def _codes(rng, z, d, levels=4):
    return np.where(rng.random((len(z), d)) < 0.7, rng.integers(levels, size=(3, d))[z], rng.integers(levels, size=d))


def _counts(rng, z, d):
    return rng.poisson(rng.gamma(1.0, 6.0, (3, d))[z]).astype(float)


def _shares(rng, z, d):
    drawn = rng.standard_gamma(rng.gamma(2.0, 5.0, (3, d))[z]) + 1e-9
    return drawn / drawn.sum(axis=1, keepdims=True)


def _durations(rng, z, d):
    return rng.gamma(2.0, 10.0 ** rng.uniform(-1.0, 1.0, (3, d))[z])


def _mixed(rng, z, d):
    kinds = (_reals, _codes, _counts, _bits)
    return np.column_stack([kinds[j % 4](rng, z, 1) for j in range(d)]).astype(float)


KINDS = {
    "reals": _reals,
    "bits": _bits,
    "codes": _codes,
    "counts": _counts,
    "shares": _shares,
    "durations": _durations,
    "mixed": _mixed,
}


def _last(X, value):
    X[-1, -1] = value
    return X


def _scaled(factor, X, rng):
    return X * factor


def _shifted(offset, X, rng):
    return X + offset


def _counted(size, X, rng):
    """Counts of about this size, in groups that differ by a few percent."""
    group = np.argsort(np.argsort(X, axis=0), axis=0) * 3 // len(X)
    rate = size * (1.0 + 0.03 * group)
    return rng.poisson(rate).astype(float) if size < 1e15 else np.floor(rate)


DISTORTIONS: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "blobs": lambda X, rng: X,
    "overlapping": lambda X, rng: X,
    "rounded": lambda X, rng: np.round(X),
    "zeros of both signs": lambda X, rng: np.where(np.abs(X) < 1.0, np.copysign(0.0, rng.normal(size=X.shape)), X),
    "constant column": lambda X, rng: np.column_stack([X[:, :-1], np.full(len(X), X[0, -1])]),
    "duplicate columns": lambda X, rng: np.repeat(X[:, :1], X.shape[1], axis=1),
    "collinear": lambda X, rng: np.column_stack([X[:, :-1], X[:, :-1].sum(axis=1)]),
    "one distinct row": lambda X, rng: np.repeat(X[:1], len(X), axis=0),
    "all zero": lambda X, rng: np.zeros_like(X),
    "offset 1e6": partial(_shifted, 1e6),
    "offset 1e10": partial(_shifted, 1e10),
    "offset 1e16": partial(_shifted, 1e16),
    "narrow at 1e10": lambda X, rng: 1e10 + 1e-3 * X,
    "outlier 1e6": lambda X, rng: _last(X, 1e6),
    "outlier 1e20": lambda X, rng: _last(X, 1e20),
    **{
        f"scale {s}": partial(_scaled, float(s)) for s in ["1e-300", "1e-150", "1e-8", "1e8", "1e100", "1e150", "1e300"]
    },
    "denormal": lambda X, rng: X * 1e-310,
    "one denormal": lambda X, rng: _last(X, 5e-324),
    **{f"counts {s}": partial(_counted, float(s)) for s in ["1e5", "1e6", "1e7", "1e30"]},
    "many levels": lambda X, rng: rng.integers(50, size=X.shape).astype(float),
    "fractions": lambda X, rng: np.abs(X) / (1.0 + np.abs(X).sum(axis=1, keepdims=True)),
    "one negative": lambda X, rng: _last(X, -3.0),
    "one NaN": lambda X, rng: _last(X, np.nan),
    "one infinity": lambda X, rng: _last(X, -np.inf),
    "unlike units": lambda X, rng: X * 10.0 ** np.linspace(-9.0, 9.0, X.shape[1]),
}


def table(case: Case) -> np.ndarray:
    """The values of a case as float64 (n, d), missing ones as NaN, before any other type or container."""
    rng = np.random.default_rng(case.seed)
    run = 1 if case.estimator == "Mixture" else 8
    z = np.repeat(rng.integers(3, size=case.n), run)[: case.n]
    X = np.asarray(KINDS[case.holds](rng, z, case.d), float)
    if case.values == "overlapping":
        X = X[rng.permutation(len(X))]
    with np.errstate(all="ignore"):
        X = DISTORTIONS[case.values](X.copy(), rng)
    holes = {
        "some": rng.random(X.shape) < 0.15,
        "a column": np.arange(case.d) == case.d - 1,
        "a row": (np.arange(case.n) == case.n // 2)[:, None],
        "all": np.ones(X.shape, bool),
    }
    if case.missing != "none":
        X = np.where(holes[case.missing], np.nan, X)
    return X


def cast(X: np.ndarray, dtype: str) -> np.ndarray:
    """The values in another type; types without NaN get zeros in place of missing values."""
    if dtype == "dates":
        return np.nan_to_num(X, posinf=0, neginf=0).clip(-1e6, 1e6).astype("datetime64[s]")
    if dtype == "text":
        return X.astype(str).astype(object)
    with np.errstate(all="ignore"):
        if np.dtype(dtype).kind in "biu":
            X = np.nan_to_num(X, nan=0.0, posinf=100.0, neginf=0.0)
            if dtype != "bool":
                least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
                X = X.clip(least, most if dtype != "int64" else 2.0**62)
        return X.astype(dtype)


# Containers ------------------------------------------------------------------------------------------------------------


def _strided(X):
    wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]), X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def _readonly(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def _memmap(X):
    if X.dtype == object:
        return X
    path = Path(tempfile.mkdtemp(prefix="hostile")) / "X.npy"
    np.save(path, X)
    mapped = np.load(path, mmap_mode="r")
    path.unlink()
    path.parent.rmdir()
    return mapped


def _masked(X):
    holes = np.isnan(X.astype(float)) if X.dtype.kind in "fO" else np.zeros(X.shape, bool)
    filled = X.copy()
    filled[holes] = GARBAGE
    return np.ma.MaskedArray(filled, mask=holes)


def _frame(X):
    import pandas as pd

    return pd.DataFrame(X, columns=[f"c{d}" for d in range(X.shape[1])])


def _nullable(X):
    import pandas as pd

    frame = _frame(X)
    if X.dtype.kind != "f" or X.dtype.itemsize not in (4, 8):
        return frame
    return pd.DataFrame({c: pd.array(frame[c], dtype=f"Float{8 * X.dtype.itemsize}") for c in frame})


def _categories(X):
    """Every column as categories that are numbers from 1."""
    return _frame(_from_one(X)).astype("category")


def _from_one(X):
    X = np.nan_to_num(X, posinf=100.0, neginf=0.0, nan=np.nan) if X.dtype.kind == "f" else X
    return X - np.nanmin(X) + 1 if X.dtype.kind in "iuf" and not np.isnan(X).all() else X


def _polars(X):
    import polars as pl

    if X.dtype.kind == "c" or X.dtype.itemsize == 16 or X.dtype == np.float16 or X.dtype.byteorder == ">":
        return X
    return pl.DataFrame({f"c{d}": X[:, d].tolist() if X.dtype == object else X[:, d] for d in range(X.shape[1])})


def _pyarrow(X):
    import pyarrow as pa

    if X.dtype.kind == "c" or X.dtype.itemsize == 16 or X.dtype.byteorder == ">":
        return X
    return pa.table({f"c{d}": pa.array(X[:, d]) for d in range(X.shape[1])})


def _repeated(X):
    """COO whose entries are given twice, in two parts that add up to the value."""
    M = sparse.coo_array(X)
    half, rest = M.data, np.zeros_like(M.data)
    if M.data.dtype.kind != "b":
        half = (M.data // 2 if M.data.dtype.kind in "iu" else M.data * M.data.dtype.type(0.5)).astype(M.data.dtype)
        with np.errstate(invalid="ignore"):  # of infinities
            rest = (M.data - half).astype(M.data.dtype)
    where = tuple(np.concatenate([c, c]) for c in M.coords)
    return sparse.coo_array((np.concatenate([half, rest]), where), X.shape)


def _unsorted(X):
    M = sparse.csr_array(X)
    for i in range(M.shape[0]):
        here = slice(M.indptr[i], M.indptr[i + 1])
        M.indices[here], M.data[here] = M.indices[here][::-1].copy(), M.data[here][::-1].copy()
    M.has_sorted_indices = False
    return M


def _sparse(make, X):
    return make(X) if X.dtype.kind in "biufc" and X.dtype.itemsize in (1, 4, 8) and X.dtype.byteorder != ">" else X


TABLES: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda X: X,
    "fortran": np.asfortranarray,
    "strided": _strided,
    "reversed": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "readonly": _readonly,
    "memmap": _memmap,
    "list": lambda X: X.tolist(),
    "masked": _masked,
    "masked objects": lambda X: _masked(X.astype(object)),
    "pandas": _frame,
    "pandas nullable": _nullable,
    "pandas categories": _categories,
    "polars": _polars,
    "pyarrow": _pyarrow,
    "csr": partial(_sparse, sparse.csr_array),
    "csc": partial(_sparse, sparse.csc_array),
    "coo": partial(_sparse, sparse.coo_array),
    "coo repeated": partial(_sparse, _repeated),
    "csr unsorted": partial(_sparse, _unsorted),
}


def _unlike(pieces):
    """Frames that name the same columns in unlike orders."""
    return [f if i % 2 == 0 else f[f.columns[::-1]] for i, f in enumerate(map(_frame, pieces))]


def _series(pieces):
    import pandas as pd

    return [pd.Series(list(x[:, 0])) for x in pieces]


PIECES: dict[str, Callable[[list[np.ndarray]], Any]] = {
    "list of arrays": list,
    "list of masked": lambda pieces: [_masked(x) for x in pieces],
    "list of lists": lambda pieces: [x.tolist() for x in pieces],
    "list of frames": lambda pieces: [_frame(x) for x in pieces],
    "list of polars": lambda pieces: [_polars(x) for x in pieces],
    "list of series": _series,
    "list of unlike frames": _unlike,
}

# Weights, lengths, starts ----------------------------------------------------------------------------------------------


def weights(case: Case) -> Any:
    rng, n = np.random.default_rng(case.seed + 1), case.n
    some = rng.random(n) + 0.5
    return {
        "none": None,
        "ones": np.ones(n),
        "thousandths": 1e-3 * some,
        "zeros in part": np.where(np.arange(n) % 2 == 0, some, 0.0),
        "1e-8 to 1e8": 10.0 ** rng.uniform(-8.0, 8.0, n),
        "negative": np.where(np.arange(n) == n - 1, -1.0, 1.0),
        "NaN": np.where(np.arange(n) == n - 1, np.nan, 1.0),
        "too few": np.ones(n + 1),
        "all zero": np.zeros(n),
        "infinite sum": np.full(n, 1.7e308) if n > 1 else np.array([np.inf]),
        **{s: float(s) * some for s in ["1e16", "1e155", "1e200", "1e-200", "1e300"]},
    }[case.weights]


def sizes(case: Case) -> Any:
    """The lengths of the sequences or documents of a case."""
    n, rng = case.n, np.random.default_rng(case.seed + 2)
    cuts = np.unique(rng.integers(1, n, 5)) if n > 1 else np.array([], int)
    ragged = np.diff(np.concatenate([[0], cuts, [n]]))
    return {
        "none given": None,
        "one": np.array([n]),
        "ragged": ragged,
        "single steps": np.ones(n, int),
        "wrong sum": np.append(ragged, 5),
        "zero": np.append(ragged, 0),
        "negative": np.append(ragged, [3, -3]),
        "fractional": ragged * 1.0 + 0.5,
        "text": "all",
        "empty": [],
    }[case.lengths]


@cache
def ordinary(case: Case) -> Any:
    """A fitted estimator to start others from, or to be left alone by fits that fail."""
    inputs = build(case)
    return inputs.estimator.fit(**inputs.fit)


def benign(case: Case) -> Case:
    """A case without hostility of the same kind and width."""
    groups = case.lengths != "none given"
    numbers = case.container != "pandas categories" or case.likelihood in ("auto", "categorical")
    return Case(
        case.estimator,
        case.likelihood,
        d=case.d + (case.likelihood in ("autoregressive_gaussian", "linear_regression")) * (case.d % 2),
        n=40,
        lengths="ragged" if groups else "none given",
        container=case.container if case.container in FRAMES and numbers else "array",
        laps=3,
    )


def start(case: Case) -> Any:
    n, K = case.n, case.n_init
    codes = np.arange(n) * K // n
    words = np.full((K, case.d), 1.0 / case.d) + np.eye(K, case.d)
    others = {
        "": None,
        "labels": codes,
        "names": np.array([f"k{c}" for c in codes]),
        "mixed labels": np.array([c if c % 2 else str(c) for c in codes.tolist()], object),
        "responsibilities": words if case.estimator == "TopicModel" else np.eye(K)[codes],
        "too few": codes[:-1],
        "nonsense": {"a": 1},
        "3": 3,
    }
    if case.init in ("model", "mixture", "other levels"):
        kind = "Mixture" if case.init == "mixture" else case.estimator
        lengths = case.lengths if kind != "Mixture" else "none given"
        other = benign(replace(case, estimator=kind, lengths=lengths))
        many = case.init == "other levels" and case.likelihood not in FEW_LEVELS
        return ordinary(replace(other, values="many levels") if many else other)
    return others.get(case.init, case.init)


# The estimator ---------------------------------------------------------------------------------------------------------


class Inputs(NamedTuple):
    """An estimator, the arguments of its fit, and rows (with lengths) to read: as they are to be read, and as in the fit."""

    estimator: Any
    fit: dict[str, Any]
    read: dict[str, Any]
    same: dict[str, Any]


def product(d: int) -> lk.Product:
    """Likelihoods for the columns of `_mixed`."""
    kinds = {
        "numbers": lk.DiagonalGaussian(),
        "codes": lk.Categorical(),
        "counts": lk.Poisson(),
        "bits": lk.Bernoulli(),
    }
    return lk.Product({name: (kind, np.arange(j, d, 4)) for j, (name, kind) in enumerate(kinds.items()) if j < d})


def allocation(case: Case, given: dict[str, Any]) -> Any:
    """An allocation: its name, or an object of the concentrations of the case."""
    if not case.allocation or case.allocation in ("dp", "finite", "pitman-yor", "hdp", "lda"):
        return case.allocation
    kind = getattr(allocations, case.allocation)
    of = ("document_concentration", "transition_concentration", "start_concentration")
    fields = kind.__dataclass_fields__
    values = {n: given[n] for n in (*of, "concentration", "stickiness") if n in given and n in fields}
    for n in ("n_clusters", "n_states", "n_topics"):
        if n in fields:
            values[n] = case.n_init
    return kind(**values)


def likelihood(case: Case) -> Any:
    if case.likelihood == "product":
        return product(case.d)
    if not case.hyperparameters:
        return case.likelihood
    return lk.REGISTRY[case.likelihood](**dict(case.hyperparameters))


def _moves(case: Case) -> Any:
    as_ = {"tuple": tuple, "list": list, "iterator": iter, "set": set, "text": " ".join}
    return as_[case.moves_as](case.moves)


def wrapped(case: Case, X: np.ndarray, lengths: Any) -> tuple[Any, Any]:
    """The values in their type and container, and the lengths that go with them."""
    X = cast(X, case.dtype)
    if case.container in PIECES and case.lengths not in WRONG_LENGTHS:
        cuts = np.cumsum(lengths)[:-1] if lengths is not None and np.ndim(lengths) == 1 else []
        try:
            return PIECES[case.container](np.split(X, cuts)), None
        except (TypeError, ValueError, IndexError):
            return X, lengths
    if case.container in SPARSE and np.ndim(X) == 2 and X.dtype.kind == "f":
        X = np.where(np.isnan(X), X.dtype.type(0.0), X) if case.missing != "none" else X
    return contained(X, case.container), lengths


def contained(X: np.ndarray, container: str) -> Any:
    """The values in a container, or as they are where it does not take their type."""
    try:
        return TABLES[container](X)
    except Exception:  # of pandas, polars or pyarrow
        return X


def build(case: Case) -> Inputs:
    """Everything that a case stands for; raises what the library raises for its objects."""
    given = dict(case.parameters)
    counted = {"Mixture": "n_init_clusters", "TopicModel": "n_init_topics", "HMM": "n_init_states"}[case.estimator]
    parameters = {
        "likelihood": likelihood(case),
        "algorithm": case.algorithm,
        counted: case.n_init,
        "moves": _moves(case),
        "max_laps": case.laps,
        "n_jobs": 1,
        "random_state": case.seed,
        **given,
    }
    if case.allocation:
        parameters["allocation"] = allocation(case, given)
    if case.learns:
        parameters["learn"] = case.learns
    first = start(case)
    if first is not None:
        parameters["init"] = first
    X, lengths = wrapped(case, table(case), sizes(case))
    fit: dict[str, Any] = {"X": X}
    if case.estimator == "Mixture":
        fit["sample_weight"] = weights(case)
    elif lengths is not None:
        fit["lengths"] = lengths
    read, same = ({"X": Y, **({"lengths": lengths} if "lengths" in fit else {})} for Y in _reading(case, X))
    return Inputs(getattr(stickbreak, case.estimator)(**parameters), fit, read, same)


def _reading(case: Case, X: Any) -> tuple[Any, Any]:
    """Rows as a fitted model is handed them, in another container or with another number of columns; and as in the fit."""
    if case.read_as == "same" or case.container in PIECES:
        return X, X
    plain = cast(table(case), case.dtype)
    if case.read_as == "narrower":
        return plain[:, :-1], X
    if case.read_as == "wider":
        return np.hstack([plain, plain]), X
    if case.container == "pandas categories" and case.estimator == "Mixture" and hasattr(X, "iloc"):
        plain = _from_one(plain)  # without the last level, whose number is no code
        low = (
            (plain < np.fmax.reduce(plain, axis=0)).all(axis=1)
            if plain.dtype.kind in "iuf"
            else np.ones(len(plain), bool)
        )
        low = low if low.any() else ~low
        plain, X = plain[low], X[low]
    return contained(plain, case.read_as), X
