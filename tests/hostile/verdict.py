"""One hostile fit and everything that must hold of it."""

import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import stickbreak
from stickbreak.model import local_step

from . import cases
from .attacker import FINE, Outcome
from .cases import Case
from .errors import OURS, judged
from .evidence import log_evidence
from .inputs import Inputs, benign, build, cast, ordinary, table

FEW_ROWS = 6  # of which the evidence is enumerated
SLACK = {"float64": 1e-9, "float32": 1e-6}
LOST_PER_ROW = {"float64": 0.0, "float32": 1e-5}  # nats: a hundredth of what the score of a row may lose to rounding
MOST_ROUNDING = 0.01  # nats of the bound for every row that rounding may decide
SEATING = 8  # terms of the order of N log N in a bound
HEAVY = (
    1e12  # the weight of a row beside which a prior is nothing: rows are as narrow clusters as floats can tell apart
)
DATA = (
    *("column", "row", "value", "X ", "feature", "sample", "count", "categor", "document", "level", "token", "data"),
    *("word", "observation", "frame", "sparse", "sequence", "number", "dense", "target", "table", "dimension", "array"),
)


class Finding(Exception):
    """Something that must not be."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


def broken(kind: str, detail: str = "") -> Finding:
    return Finding(Outcome(kind, detail[:600]))


def require(condition: bool | np.bool_, kind: str, detail: str = "") -> None:
    if not condition:
        raise broken(kind, detail)


# What a refusal must be about ------------------------------------------------------------------------------------------


def hostile_words(case: Case) -> tuple[str, ...]:
    """Words for what is out of the ordinary in a case; an error must use one of them."""
    given = [name for name, _ in case.parameters]
    kinds = (
        ("float64", "float32", "int64", "bool") if case.holds in ("bits", "counts", "codes") else ("float64", "float32")
    )
    own = {"auto": "mixed"}.get(case.likelihood, cases.DOMAIN.get(case.likelihood, "reals"))
    odd_table = (
        case.values not in ("blobs", "overlapping")
        or case.dtype not in kinds
        or case.container not in ("array", "fortran", "strided", "readonly", "memmap", "pandas")
        or case.missing != "none"
        or case.domain not in ("own", own)
        or case.n < 10
        or case.d == 1
        or case.read_as in ("narrower", "wider")
        or case.likelihood == "autoregressive_gaussian"  # an even number of columns
        or case.estimator == "TopicModel"  # counts, or groups of rows
        or (case.likelihood == "bernoulli" and case.holds != "bits")
    )
    words = {
        DATA: odd_table,
        ("weight",): case.weights not in ("none", "ones"),
        ("length",): case.lengths not in ("one", "ragged", "single steps", "none given"),
        ("init",): case.init in cases.GIVEN_INITS,
        ("init", "anchor"): case.init == "anchor",
        ("moves",): case.moves not in cases.MOVES[:5] or case.moves_as in ("text", "iterator"),
        ("allocation", "clusters"): "allocation" in given
        or case.allocation in ("finite", "lda", *cases.OBJECTS["HMM"]),
        tuple(given): bool(given),
        ("seed",): "random_state" in given,
        (*(name for name, _ in case.hyperparameters), "prior", case.likelihood): bool(case.hyperparameters),
    }
    return tuple(word for some, wrong in words.items() if wrong for word in some)


# Bits ------------------------------------------------------------------------------------------------------------------


def bits(value: Any) -> Any:
    """A value of which two are equal if and only if all their numbers are the same bit for bit."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tolist() if value.dtype == object else value.tobytes()
    if isinstance(value, dict):
        return [(key, bits(each)) for key, each in value.items()]
    if isinstance(value, (list, tuple)):
        return [bits(each) for each in value]
    return np.float64(value).tobytes() if isinstance(value, float) else value


def state(fitted: Any) -> Any:
    """Everything of a fit that does not depend on the clock."""
    s = fitted.summary_
    parts = [getattr(s, f.name) for f in fields(s)]
    labels = getattr(fitted, "labels_", None)
    return bits([parts, fitted.posterior_, fitted.lower_bounds_, fitted.lower_bound_, labels])


def fingerprint(X: Any) -> Any:
    """The bytes of an input, to see whether it was changed."""
    if isinstance(X, (list, tuple)):
        return [fingerprint(x) for x in X]
    if isinstance(X, np.longdouble):  # whose padding is arbitrary
        return float(X).hex(), float(X - np.longdouble(float(X))).hex()
    if isinstance(X, np.ma.MaskedArray):
        return fingerprint(X.data), bits(np.ma.getmaskarray(X))
    if isinstance(X, np.ndarray) and X.dtype in (np.longdouble, object):
        return X.dtype.str, X.shape, fingerprint(X.ravel().tolist() if X.dtype == object else list(X.ravel()))
    if type(X).__module__.startswith("pandas"):
        return repr(X.index), [(name, repr(x.dtype), fingerprint(x.to_numpy())) for name, x in _columns(X)]
    if sparse.issparse(X):
        where = (X.row, X.col) if X.format == "coo" else (X.indices, X.indptr)
        return bits([X.data, *where])
    return pickle.dumps(X)


def _columns(X: Any) -> Iterator[tuple[Any, Any]]:
    """The columns of a frame of pandas, or a series as its only one."""
    return X.items() if X.ndim == 2 else iter([(X.name, X)])


def leaves(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from leaves(each)
    elif value is not None and np.asarray(value).dtype.kind in "fc":
        yield np.asarray(value)


# What a fitted estimator does ------------------------------------------------------------------------------------------


def reading(name: str) -> Callable[[Any, dict[str, Any]], Any]:
    return lambda fitted, read: getattr(fitted, name)(**read)


METHODS: dict[str, dict[str, Callable[[Any, dict[str, Any]], Any]]] = {
    "Mixture": {name: reading(name) for name in ("predict", "predict_proba", "score_samples", "score", "impute")},
    "HMM": {
        **{name: reading(name) for name in ("predict", "predict_proba", "score")},
        "decode": lambda fitted, read: fitted.decode(method="map", **read),
    },
    "TopicModel": {name: reading(name) for name in ("transform", "score", "perplexity")},
}
SAMPLED = ("Mixture", "HMM")
MERGED = {"Mixture": "merge_clusters", "HMM": "merge_states", "TopicModel": "merge_topics"}


def sound(name: str, value: Any, fitted: Any) -> None:
    """Probabilities sum to one, labels are those of clusters, scores are finite."""
    if name == "impute":
        return
    array = np.asarray(value)
    if name == "perplexity":  # exp(-score), which may be beyond all numbers
        require(not np.isnan(array), "perplexity is NaN")
        return
    require(np.isfinite(array).all(), f"non-finite {name}", str(array)[:200])
    if name in ("predict_proba", "transform"):
        off = np.abs(array.sum(axis=1) - 1.0).max(initial=0.0)
        require(off < 1e-5, f"{name} does not sum to one", f"off by {off}")
        require((array >= 0.0).all(), f"negative {name}")
    if name in ("predict", "decode"):
        K = len(fitted.summary_.N)
        require(((array >= 0) & (array < K)).all(), f"{name} beyond the clusters", str(array)[:200])


def answers(case: Case, fitted: Any, read: dict[str, Any], words: tuple[str, ...]) -> dict[str, Any]:
    """What every method says of some rows; refusals are left out, findings raised."""
    found = {}
    for name, method in METHODS[case.estimator].items():
        try:
            found[name] = method(fitted, read)
        except Exception as error:
            outcome = judged(error, words, f"{name}: ")
            if outcome.is_finding:
                raise Finding(outcome) from error
            continue
        sound(name, found[name], fitted)
    return found


def _untied(name: str, found: dict[str, Any]) -> np.ndarray:
    """An answer; instead of labels, of which equal clusters have no order, the probabilities that they were given."""
    values = np.asarray(found[name])
    if name not in ("predict", "decode") or "predict_proba" not in found:
        return values
    return np.take_along_axis(np.asarray(found["predict_proba"]), values[:, None], axis=1)


# The invariants of a fit -----------------------------------------------------------------------------------------------


def check_bounds(case: Case, inputs: Inputs, fitted: Any) -> None:
    """The bound is finite, never falls, and its last value is the model's."""
    bounds = np.array(fitted.lower_bounds_)
    require(np.isfinite(bounds).all(), "non-finite bound", str(bounds))
    precision = np.dtype(fitted.dtype_).name
    relative = SLACK[precision]
    posterior = fitted.model_.posterior(fitted.summary_)
    terms = abs(float(fitted.summary_.base)) + np.abs(posterior.log_marginal).sum()  # they may cancel, as heavy rows do
    rounding = case.n * LOST_PER_ROW[precision] + np.finfo(float).eps * terms
    scale = 1.0 + np.abs(bounds) + rounding / relative
    if case.algorithm != "stochastic":
        falls = -np.diff(bounds) / scale[1:]
        require(falls.max(initial=0.0) <= relative, "bound falls", f"by {falls.max(initial=0.0):g} of {bounds}")
        require(fitted.lower_bound_ == bounds[-1], "lower_bound_ differs", f"{fitted.lower_bound_!r} of {bounds[-1]!r}")
    require(
        abs(fitted.lower_bound_ - bounds[-1]) <= relative * scale[-1] or case.algorithm == "stochastic", "last bound"
    )


def check_attributes(case: Case, inputs: Inputs, fitted: Any) -> None:
    """All that was learnt is finite, and the counts add up."""
    s = fitted.summary_
    for name, value in {"posterior_": fitted.posterior_, **{f.name: getattr(s, f.name) for f in fields(s)}}.items():
        for array in leaves(value):
            require(np.isfinite(array).all(), "non-finite attributes", f"{name}: {str(array)[:300]}")
    if case.estimator == "Mixture" and case.algorithm != "stochastic":
        w = inputs.fit["sample_weight"]
        total = float(len(table(case)) if w is None else np.sum(w))
        require(abs(s.N.sum() - total) <= 1e-5 * total, "counts do not add up", f"{s.N.sum()} of {total}")
        require(abs(fitted.weights_.sum() - 1.0) < 1e-9, "weights_ do not sum to one", str(fitted.weights_))


def _dense(case: Case, fitted: Any) -> np.ndarray | None:
    """The values of a dense mixture in float64, as its likelihood gets them, or None."""
    plain = case.container not in (*cases.SPARSE, "pandas categories") and case.dtype not in cases.NOT_NUMBERS
    if case.estimator != "Mixture" or not plain or fitted.levels_ or case.dtype == "complex":
        return None
    X = np.asarray(cast(table(case), case.dtype), dtype=np.float32 if case.dtype in ("float32", ">f4") else np.float64)
    return X.astype(np.float64)


def check_kind(case: Case, inputs: Inputs, fitted: Any) -> None:
    """Text, dates and complex numbers are values of no likelihood; where a frame has them as categories they are names."""
    X = inputs.fit["X"]
    unseen = np.ma.isMaskedArray(X) and np.ma.getmaskarray(X).all()  # only missing values are left
    if case.dtype not in (*cases.NOT_NUMBERS, "complex") or unseen:
        return
    frame = case.container in (cases.FRAMED if case.dtype == "text" else ("pandas categories",))
    D = fitted.n_features_in_
    named = set(fitted.levels_) == set(range(D)) and fitted.model_.likelihood.nominal(D).all()
    require(frame and named, "takes what is no number", case.dtype)


def check_evidence(case: Case, inputs: Inputs, fitted: Any) -> None:
    """The bound is below the log evidence, which few rows without latent variables allow to enumerate."""
    X = _dense(case, fitted)
    if X is None or fitted.model_.likelihood.hidden is not None:
        return
    if len(X) > FEW_ROWS or case.weights not in ("none", "ones") or case.algorithm == "stochastic":
        return
    with np.errstate(all="ignore"):
        exact = log_evidence(fitted.model_, X)
    slack = (1e-8 if fitted.dtype_ == np.float64 else 1e-4) * (1.0 + abs(exact))
    require(fitted.lower_bound_ <= exact + slack, "bound above the evidence", f"{fitted.lower_bound_} of {exact}")


def check_another_step(case: Case, inputs: Inputs, fitted: Any) -> None:
    """One more exact step in double precision from the state found does not lower the bound: it was no better than claimed.

    The bound is a function of sums that are rounded, with the derivative W: |W| |S| is how much of it rounding decides, and
    the few terms of the order of N log N.
    """
    X = _dense(case, fitted)
    if X is None or case.algorithm == "stochastic":
        return
    model, w = fitted.model_, inputs.fit["sample_weight"]
    w = np.ones(len(X)) if w is None else w
    with np.errstate(all="ignore"):
        parameters = model.parameters(fitted.summary_, np.dtype(float))
        after, _ = local_step(model.likelihood, parameters, X, w)
        bound = model.bound(after)
    terms = (np.abs(parameters.W) * np.abs(fitted.summary_.S)).sum() + SEATING * w.sum() * np.log(2.0 + w.sum())
    rounding = np.finfo(float).eps * terms
    narrow = (
        case.hyperparameters or w.max() > HEAVY
    )  # a prior may be as narrow as is asked for, or as light beside a row
    most = np.inf if narrow else MOST_ROUNDING * w.sum()
    lost = f"{rounding:g} nats for {w.sum():g} rows"
    require(case.likelihood not in cases.SQUARES or rounding <= most, "bound lost to rounding", lost)
    slack = (1e-8 if fitted.dtype_ == np.float64 else 1e-5) * (1.0 + abs(bound)) + min(rounding, most)
    require(
        bound >= fitted.lower_bound_ - slack, "bound claimed is not reached", f"{fitted.lower_bound_}, then {bound}"
    )


def check_input(case: Case, inputs: Inputs, fitted: Any) -> None:
    """A second, plainly built input is the same as the one that a fit was given."""
    before = fingerprint(build(case).fit["X"])
    require(fingerprint(inputs.fit["X"]) == before, "input changed")


def check_repeats(case: Case, inputs: Inputs, fitted: Any) -> None:
    """The same seed and any number of threads give the same bits."""
    if inputs.estimator.random_state is None:  # every fit has random numbers of its own
        return
    again = build(case)
    again.estimator.set_params(n_jobs=2).fit(**again.fit)
    if state(again.estimator) == state(fitted):
        return
    once = build(case)
    same = state(once.estimator.fit(**once.fit)) == state(fitted)
    raise broken("n_jobs changes bits" if same else "refit changes bits", f"{fitted.lower_bounds_[-1]!r}")


def check_container(case: Case, inputs: Inputs, fitted: Any) -> None:
    """Values in an unusual container are read as in a plain one."""
    if inputs.estimator.random_state is None or (case.plain.container == case.container and case.moves_as == "tuple"):
        return
    if case.container == "pandas categories" or (case.container == "list of series" and case.d > 1):
        return
    if case.dtype == "text" and case.container in cases.FRAMED:
        return
    plain = build(case.plain)
    try:
        plain.estimator.fit(**plain.fit)
    except Exception as error:
        raise broken("container hides an error", f"the plain fit says {type(error).__name__}: {error}") from error
    if plain.estimator.dtype_ != fitted.dtype_ and case.container in cases.FLOATS:
        return
    one, other = plain.estimator.lower_bounds_, fitted.lower_bounds_
    found = f"{other[-1]!r} instead of {one[-1]!r} in plain form"
    require(one == other, "moves read otherwise" if case.moves_as != "tuple" else "container read otherwise", found)


def check_centred(case: Case, inputs: Inputs, fitted: Any) -> None:
    """Where a common offset was added, rows without it are explained no better."""
    gaussian = case.likelihood in ("gaussian", "diagonal_gaussian", "spherical_gaussian")
    if not gaussian or case.hyperparameters or case.algorithm == "stochastic" or case.moves != cases.MOVES[0]:
        return
    X = _dense(case, fitted)
    if X is None or case.values not in ("narrow at 1e10", "offset 1e6", "offset 1e10") or case.missing != "none":
        return
    if case.dtype != "float64" or case.init not in ("one", ""):
        return
    centred = build(case).estimator.fit(X - X[0], sample_weight=inputs.fit["sample_weight"])
    gain = centred.lower_bound_ - fitted.lower_bound_
    require(gain <= 5.0 + 0.02 * abs(centred.lower_bound_), "offset hides clusters", f"{gain:.1f} nats by centring")


def check_answers(case: Case, inputs: Inputs, fitted: Any) -> None:
    """Predictions of the rows, of the rows in another container, and of extreme rows."""
    words = (*hostile_words(case), *DATA) if case.read_as in ("narrower", "wider") else hostile_words(case)
    found = answers(case, fitted, inputs.read, words)
    filled = case.container in cases.SPARSE and (case.missing != "none" or case.values == "one NaN")  # holes as zeros
    if case.read_as != "same" and not filled:
        expected = answers(case, fitted, inputs.same, words)
        for name in found.keys() & expected.keys() - {"impute"}:
            one, other = (_untied(name, a) for a in (found, expected))
            near = one.shape == other.shape and np.allclose(one, other, rtol=1e-3, atol=1e-3)
            require(near, "rows read otherwise", f"{name} of the rows as {case.read_as}")
    elif case.lengths in ("one", "none given"):
        K = len(fitted.summary_.N)
        for name in ("predict_proba", "transform"):
            if name in found:
                require(np.shape(found[name])[1] == K, f"{name} has a wrong shape")
    D = fitted.n_features_in_
    rows = (np.resize([1e20, -1e20], D), np.zeros(D), np.full(D, np.nan), np.full(D, 3e7), np.full(D, 1e-300))
    X = rows[case.seed % len(rows)].astype(fitted.dtype_)[None]
    answers(case, fitted, {"X": X, **({"lengths": [1]} if "lengths" in inputs.read else {})}, DATA)


def check_sample(case: Case, inputs: Inputs, fitted: Any) -> None:
    if case.estimator not in SAMPLED:
        return
    try:
        X, z = fitted.sample(5)
    except Exception as error:
        outcome = judged(error, ("sample",), "sample: ")
        if outcome.is_finding:
            raise Finding(outcome) from error
        return
    if X.dtype != object:  # as where categories are text
        seen = X if case.likelihood != "linear_regression" and case.missing == "none" else np.nan_to_num(X)
        nameless = [d for d, levels in fitted.levels_.items() if len(levels) < 2]  # the other value of a yes/no column
        seen[:, nameless] = np.nan_to_num(seen[:, nameless])
        require(np.isfinite(seen).all(), "non-finite sample", str(X)[:300])
    require(((z >= 0) & (z < len(fitted.summary_.N))).all(), "sample of no cluster")


def check_saved(case: Case, inputs: Inputs, fitted: Any) -> None:
    """Saved and loaded, a model answers the same bits."""
    with tempfile.TemporaryDirectory(prefix="hostile") as folder:
        path = Path(folder) / "model.safetensors"
        fitted.save(path)
        loaded = stickbreak.load(path)
        require(sorted(p.name for p in path.parent.iterdir()) == [path.name], "save leaves files behind")
    one, other = ({k: v for k, v in zip(("s", "p", "b", "l"), state(f))} for f in (fitted, loaded))
    one.pop("l"), other.pop("l")
    require(one == other, "loaded model differs")
    for name, value in answers(case, fitted, inputs.read, (*hostile_words(case), *DATA)).items():
        again = METHODS[case.estimator][name](loaded, inputs.read)
        require(
            name == "impute" or bits(np.asarray(again)) == bits(np.asarray(value)), "loaded model answers otherwise"
        )


def check_merged(case: Case, inputs: Inputs, fitted: Any) -> None:
    """A model of fewer clusters has as many as were asked for, or fewer where some have no rows, and leaves this one alone."""
    n, before = 1 + case.seed % len(fitted.summary_.N), state(fitted)
    fewer = getattr(fitted, MERGED[case.estimator])(n, **inputs.fit)
    require(state(fitted) == before, "merging changed the model")
    K = len(fewer.summary_.N)
    require(n == K or (case.estimator != "TopicModel" and n > K), "merged into another number", f"{K} for {n}")
    check_attributes(case, inputs, fewer)
    require(np.isfinite(fewer.lower_bounds_).all(), "non-finite bound", "after merging")


def check_more(case: Case, inputs: Inputs, fitted: Any) -> None:
    """More rows may be added; what fails changes nothing."""
    more = {k: v for k, v in inputs.fit.items() if k != "sample_weight" or case.estimator == "Mixture"}
    fitted.partial_fit(**more)
    require(np.isfinite(fitted.lower_bound_), "non-finite bound", "after partial_fit")


CHECKS = (
    check_kind,
    check_bounds,
    check_attributes,
    check_input,
    check_evidence,
    check_another_step,
    check_answers,
    check_sample,
    check_repeats,
    check_container,
    check_centred,
    check_saved,
    check_merged,
    check_more,
)


def check_untouched(case: Case, inputs: Inputs) -> None:
    """A fit that fails leaves an estimator that was fitted before as it was."""
    fitted = clone(ordinary(benign(case)))
    fitted.__dict__.update(ordinary(benign(case)).__dict__)
    fitted.set_params(**inputs.estimator.get_params(deep=False))
    before = dict(fitted.__dict__)
    try:
        fitted.fit(**build(case).fit)
    except Exception:
        after = fitted.__dict__
        same = before.keys() == after.keys() and all(before[name] is after[name] for name in before)
        require(same, "failed fit changed the estimator")


def leaked(caught: list[warnings.WarningMessage]) -> Iterator[str]:
    """Warnings that are none of ours."""
    for w in caught:
        ours = Path(w.filename).is_relative_to(OURS) or w.category.__module__.startswith("stickbreak")
        if issubclass(w.category, ConvergenceWarning) or (ours and w.category is UserWarning):
            continue
        if w.category.__module__.startswith("stickbreak") or "feature names" in str(w.message):
            continue
        text = " ".join(str(w.message).split())[:150]
        yield f"{w.category.__name__}: {text} [{Path(w.filename).name}:{w.lineno}]"


def watched(run: Callable[[Any], Outcome]) -> Callable[[Any], Outcome]:
    """The same run of a case, ended by a `Finding` too; a run without one may leak no warnings."""

    @wraps(run)
    def watched_run(case: Any) -> Outcome:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                outcome = run(case)
            except Finding as finding:
                outcome = finding.outcome
        if not outcome.is_finding:
            for text in leaked(caught):
                return Outcome("leaked warning", text)
        return outcome

    return watched_run


@watched
def run(case: Case) -> Outcome:
    """Fit a case, check everything, and say how it ended."""
    words = hostile_words(case)
    try:
        inputs = build(case)
    except Exception as error:
        return judged(error, words, "constructor: ")
    try:
        fitted = inputs.estimator.fit(**inputs.fit)
    except Exception as error:
        outcome = judged(error, words)
        if not outcome.is_finding:
            check_untouched(case, build(case))
        return outcome
    for check in CHECKS:
        try:
            check(case, inputs, fitted)
        except Finding:
            raise
        except Exception as error:
            outcome = judged(error, words, f"{check.__name__}: ")
            if outcome.is_finding:
                raise Finding(outcome) from error
    return Outcome(FINE)
