"""The Mixture estimator: scikit-learn's contract, inputs and parameters, what is reported, what survives a failure."""

import inspect
import pickle
import signal
import warnings
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from scipy.special import betaln, logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from stickbreak import Mixture
from stickbreak.allocations import DirichletProcess, FiniteDirichlet
from stickbreak.inference import Memoized, Stochastic, visit
from stickbreak.likelihoods import Gaussian

ALGORITHMS = ["memoized", "full", "stochastic"]

FITTED = ("weights_", "means_", "covariances_", "labels_")
CENTERS = np.array([[-8.0, 0.0], [0.0, 8.0], [8.0, 0.0]])


def blobs(n=60, seed=0):
    """Three round clusters of n, 2 n and 3 n rows."""
    labels = np.repeat([0, 1, 2], [n, 2 * n, 3 * n])
    return CENTERS[labels] + np.random.default_rng(seed).standard_normal((6 * n, 2)), labels


@pytest.fixture(scope="module")
def X():
    return blobs()[0]


def mixture(**parameters):
    return Mixture(**{"likelihood": "gaussian", "random_state": 0, "n_jobs": 1, **parameters})


def brief(**parameters):
    """Few laps: how rows are read shows in the first."""
    return mixture(init="k-means++", n_init_clusters=3, moves=(), tol=0.1, **parameters)


@pytest.fixture(scope="module")
def fitted(X):
    return mixture().fit(X)


def assert_equal_fits(one, other):
    """Bit for bit."""
    assert one.lower_bounds_ == other.lower_bounds_
    for name in FITTED:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def everything(estimator):
    """All attributes, arrays as bytes."""
    return pickle.dumps(vars(estimator))


# The contract


def expected_failures(estimator):
    """What these checks ask of data that are not negative, and of clusterers that take sparse rows."""
    failures = {}
    if estimator.likelihood in ("multinomial", "exponential"):
        failures["check_clustering"] = "the data of this check are negative, whatever the tags say"
    if estimator.likelihood in ("multinomial", "auto"):
        for kind in ("matrix", "array"):
            failures[f"check_estimator_sparse_{kind}"] = "the check reads the tags of classifiers"
    return failures


SHORT = {"learn": False, "init": "k-means++", "n_init_clusters": 3, "moves": (), "n_jobs": 1, "max_laps": 3}


@pytest.fixture
def few_laps():
    """Checks that set parameters like max_iter to 1 do not converge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@parametrize_with_checks(
    [
        Mixture("gaussian", n_jobs=1, max_laps=3),  # with moves, which the others go without: they take long
        Mixture("multinomial", **SHORT),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn(estimator, check, few_laps):
    check(estimator)


@parametrize_with_checks([Mixture("auto", **SHORT)], legacy=False, expected_failed_checks=expected_failures)
def test_scikit_learn_where_the_family_is_chosen(estimator, check, few_laps):
    """Those of parameters, tags and shapes: the choice takes longer than the fit."""
    check(estimator)


def test_clusters_are_described(fitted, X):
    labels, plain = blobs()[1], mixture(learn=False).fit(X)
    assert fitted.n_clusters_ == 3
    assert fitted.n_features_in_ == 2
    assert fitted.converged_
    assert adjusted_rand_score(labels, fitted.labels_) == 1.0
    np.testing.assert_allclose(fitted.weights_, [3 / 6, 2 / 6, 1 / 6], atol=0.01)
    for k, rows in enumerate(X[labels == label] for label in (2, 1, 0)):
        np.testing.assert_allclose(plain.means_[k], rows.mean(axis=0), atol=1e-3)
        shrunk = (rows.T - rows.mean(axis=0)[:, None]) @ (rows - rows.mean(axis=0)) + 0.1 * np.diag(X.var(axis=0))
        np.testing.assert_allclose(plain.covariances_[k], shrunk / (len(rows) + 1), rtol=1e-3, atol=1e-3)


def test_the_posterior_of_every_family_is_shown(family, naive):
    X = family.rows(np.random.default_rng(0), 150, 2)
    found = mixture(likelihood=family.make(X.shape[1]), init="k-means++", n_init_clusters=4, moves=(), tol=1e-4).fit(X)
    K = found.n_clusters_
    assert found.weights_.shape == (K,)
    assert found.weights_.sum() == pytest.approx(1.0, abs=1e-14)
    assert all(len(array) == K for array in naive.leaves(found.posterior_))
    if family.name == "product":
        assert found.parts_ is found.posterior_
        assert found.posterior_["numbers"].means.shape == (K, 1)
    else:
        for name, value in found.posterior_._asdict().items():
            assert getattr(found, f"{name}_") is value
    if hasattr(found, "covariances_"):
        assert np.linalg.eigvalsh(found.covariances_).min() > 0.0
    assert found.labels_.shape == (len(X),)
    assert found.labels_.dtype.kind == "i"
    assert np.isfinite(found.score_samples(X)).all()


def test_attributes_of_another_family_are_gone(X):
    found = mixture().fit(X)
    assert found.set_params(likelihood="bernoulli").fit(X > 0.0).probabilities_.shape[1] == 2
    assert not hasattr(found, "covariances_")


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "transform", "score_samples", "score", "sample", "save"]
)
def test_an_unfitted_estimator_says_so(method, X):
    argument = {"sample": 3, "save": "x"}.get(method, X)
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        getattr(Mixture("gaussian"), method)(argument)


def test_it_clones_and_pickles(fitted, X):
    assert not hasattr(clone(fitted), "means_")
    assert_equal_fits(clone(fitted).fit(X), fitted)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    parameters = inspect.signature(Mixture).parameters
    assert set(Mixture("gaussian").get_params()) == set(parameters)
    assert repr(Mixture(tol=0.5)) == "Mixture(tol=0.5)"


def test_it_works_in_a_pipeline_with_named_outputs(fitted, X):
    names = ["mixture0", "mixture1", "mixture2"]
    pipeline = make_pipeline(StandardScaler(), mixture()).set_output(transform="pandas")
    frame = pipeline.fit_transform(X)
    assert list(frame.columns) == names == list(pipeline[-1].get_feature_names_out())
    np.testing.assert_array_equal(frame.to_numpy(), pipeline[-1].predict_proba(pipeline[0].transform(X)))
    assert pipeline.fit(X, mixture__sample_weight=np.ones(len(X))).predict(X).shape == (len(X),)
    assert list(mixture().set_output(transform="polars").fit_transform(X).columns) == names
    np.testing.assert_array_equal(mixture().fit_predict(X), fitted.labels_)


# Inputs


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_equal_arrays_and_keep_their_names(frame, fitted, X):
    data = frame({"width": X[:, 0], "height": X[:, 1]})
    found = mixture().fit(data)
    assert_equal_fits(found, fitted)
    assert list(found.feature_names_in_) == ["width", "height"]
    np.testing.assert_array_equal(found.predict_proba(data), fitted.predict_proba(X))
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(frame({"height": X[:, 1], "width": X[:, 0]}))
    assert not hasattr(found.fit(X), "feature_names_in_")


@pytest.mark.parametrize(
    ("dtype", "mode"), [*((dtype, "r") for dtype in ("f8", "f4", "f2", ">f8", "i8", "u1")), ("f8", "r+"), ("f8", "c")]
)
def test_memory_maps_equal_arrays(tmp_path, dtype, mode):
    data = (10.0 * (blobs()[0] + 12.0)).astype(dtype)
    np.save(tmp_path / "X.npy", data)
    mapped = np.load(tmp_path / "X.npy", mmap_mode=mode)
    one, other = brief(n_batches=3).fit(mapped), brief(n_batches=3).fit(data)
    assert_equal_fits(one, other)
    assert one.dtype_ == (np.float32 if dtype == "f4" else np.float64)
    for method in ("predict", "predict_proba", "score_samples"):
        np.testing.assert_array_equal(getattr(one, method)(mapped), getattr(other, method)(data))
    np.testing.assert_array_equal(mapped, np.load(tmp_path / "X.npy"))


def test_changes_to_a_copy_on_write_map_are_seen_and_kept(tmp_path, X):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="c")
    mapped[:60] += 100.0
    changed = np.array(mapped)
    one = brief(n_batches=3).fit(mapped)
    np.testing.assert_array_equal(mapped, changed)
    assert_equal_fits(one, brief(n_batches=3).fit(changed))


def test_a_part_of_a_memory_map(tmp_path, X):
    np.save(tmp_path / "X.npy", np.hstack([X, X]))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert_equal_fits(brief().fit(mapped[1::2, :3]), brief().fit(np.hstack([X, X])[1::2, :3]))


def test_single_precision_finds_the_same(fitted, X):
    found = mixture().fit(X.astype(np.float32))
    assert found.dtype_ == np.float32
    assert found.predict_proba(X.astype(np.float32)).dtype == np.float32
    assert found.lower_bound_ == pytest.approx(fitted.lower_bound_, rel=1e-5)
    np.testing.assert_allclose(found.means_, fitted.means_, atol=1e-4)


@pytest.mark.parametrize(
    ("algorithm", "allocation"),
    [
        *product(ALGORITHMS, ["dp", "finite", "pitman-yor"]),
        *product([Stochastic(2.0, 0.8), Memoized(accelerate=False)], [DirichletProcess(2.0), FiniteDirichlet(5, 1.0)]),
    ],
    ids=str,
)
def test_every_combination_finds_three_clusters(X, algorithm, allocation):
    found = mixture(algorithm=algorithm, allocation=allocation, tol=1e-5).fit(X)
    assert found.n_clusters_ == 3
    assert adjusted_rand_score(blobs()[1], found.labels_) == 1.0


# Where to start


def shares():
    return 0.9 * np.eye(3)[blobs()[1]] + 0.1 / 3


STARTS = {
    "labels": lambda X: blobs()[1],
    "labels as text": lambda X: np.array(["red", "green", "blue"])[blobs()[1]],
    "labels in a list": lambda X: blobs()[1].tolist(),
    "responsibilities": lambda X: shares(),
    "responsibilities in a frame": lambda X: pd.DataFrame(shares()),
    "single precision": lambda X: shares().astype(np.float32),
    "empty cluster": lambda X: np.insert(shares(), 1, 0.0, axis=1),
    "model": lambda X: mixture(moves=("birth", "merge")).fit(X),
    "k-means++": lambda X: "k-means++",
    "one": lambda X: "one",
}


@pytest.mark.parametrize("name", STARTS)
def test_every_start_leads_to_the_same(name, fitted, X):
    given = STARTS[name](X)
    moves = ("birth", "merge", "delete") if isinstance(given, str) else ()
    found = mixture(init=given, n_init_clusters=4, moves=moves, tol=1e-10).fit(X)
    assert found.lower_bound_ == pytest.approx(fitted.lower_bound_, rel=1e-6)
    np.testing.assert_allclose(found.means_, fitted.means_, atol=1e-3)


def test_random_seeds_are_as_many_as_asked_for(X):
    for init in ("random", "k-means++"):
        with pytest.warns(ConvergenceWarning, match="max_laps=1"):
            found = mixture(init=init, n_init_clusters=5, moves=(), max_laps=1).fit(X)
        assert found.n_clusters_ == 5


def test_a_model_continues_where_it_stopped(fitted, X):
    again = mixture(init=fitted, moves=()).fit(X)
    assert again.lower_bounds_[0] >= fitted.lower_bound_ - 1e-9 * abs(fitted.lower_bound_)
    assert again.lower_bound_ <= fitted.lower_bound_ + 0.03  # the tolerance of three clusters
    assert again.n_laps_ <= 6
    other = mixture(init=fitted, moves=()).fit(X[::2].astype(np.float32))
    assert other.n_clusters_ == 3


def test_a_model_that_cannot_read_the_rows_is_no_start(fitted, X):
    holes = X.copy()
    holes[7, 1] = np.nan
    round_ones = mixture(likelihood="spherical_gaussian", init=fitted, moves=()).fit(X)
    with pytest.raises(ValueError, match="row 7, column 1, which init is to assign"):
        mixture(likelihood="diagonal_gaussian", init=round_ones).fit(holes)


def halves(n):
    return np.full((n, 2), 0.5)


WRONG_STARTS = {
    "name": lambda X: "kmeans",
    "none": lambda X: None,
    "number": lambda X: 3,
    "too few labels": lambda X: np.zeros(len(X) - 1, int),
    "too many responsibilities": lambda X: halves(len(X) + 1),
    "three axes": lambda X: np.zeros((len(X), 2, 2)),
    "not a number": lambda X: np.where(np.arange(len(X))[:, None] == 3, np.nan, halves(len(X))),
    "negative": lambda X: halves(len(X)) + np.array([-1.0, 1.0]),
    "no sum of one": lambda X: 2.0 * halves(len(X)),
    "nan labels": lambda X: np.where(np.arange(len(X)) == 3, np.nan, 1.0),
    "no clusters": lambda X: np.empty((len(X), 0)),
    "other estimator": lambda X: GaussianMixture(2, random_state=0).fit(X),
    "other columns": lambda X: brief().fit(np.hstack([X, X])),
    "not fitted": lambda X: Mixture("gaussian"),
}


@pytest.mark.parametrize("name", WRONG_STARTS)
def test_wrong_starts_are_refused(name, X):
    match = "not fitted yet" if name == "not fitted" else "init"
    with pytest.raises((ValueError, TypeError), match=match):
        mixture(init=WRONG_STARTS[name](X)).fit(X)


# Parameters


OUT_OF_RANGE = {
    "likelihood": ["gauss", ""],
    "concentration": [0.0, -1.0, np.nan, np.inf],
    "allocation": ["hdp"],
    "algorithm": ["batch", ""],
    "n_batches": [0, -1, 2.5, np.nan, np.inf, True],
    "n_init_clusters": [0, -1, 2.5, np.nan, np.inf, True],
    "moves": [("split",), ("birth", "split"), "birth"],
    "max_laps": [0, -1, 2.5, np.nan, np.inf, True],
    "tol": [-1e-9, np.nan, np.inf],
    "n_jobs": [0, 1.5, np.nan],
}
WRONG_TYPE = {
    "likelihood": [None, 3, Gaussian],
    "concentration": [None, "1", [1.0]],
    "allocation": [None, 3, DirichletProcess],
    "algorithm": [None, 3, np.zeros(2), Stochastic, Memoized],
    "n_batches": ["3", [3]],
    "n_init_clusters": [None, "3"],
    "moves": [None, 3, [["birth"]]],
    "max_laps": [None, "3"],
    "tol": [None, "small", [1.0]],
    "n_jobs": ["two"],
}


def cases(table):
    return [pytest.param(name, value, id=f"{name}={value!r:.30}") for name, values in table.items() for value in values]


@pytest.mark.parametrize(("name", "value"), cases(OUT_OF_RANGE))
def test_parameters_out_of_range_are_named(name, value, X):
    with pytest.raises(ValueError, match=name):
        Mixture(**{name: value}).fit(X)


@pytest.mark.parametrize(("name", "value"), cases(WRONG_TYPE))
def test_parameters_of_the_wrong_type_are_named(name, value, X):
    with pytest.raises((ValueError, TypeError), match=name):
        Mixture(**{name: value}).fit(X)


@pytest.mark.parametrize("value", ["zero", -1, 1.5])
def test_seeds_that_are_none_are_refused(value, X):
    with pytest.raises(ValueError, match=r"seed|Seed"):
        Mixture("gaussian", random_state=value).fit(X)


@pytest.mark.parametrize(
    "parameters",
    [
        {"mean_precision": 0.0},
        {"degrees_of_freedom": 0.5},
        {"scale": -1.0},
        {"scale": np.zeros((3, 3))},
        {"mean": [0.0]},
    ],
    ids=str,
)
def test_priors_out_of_range_are_named(parameters, X):
    if parameters == {"mean": [0.0]}:
        parameters = {"mean": [0.0, 1.0, 2.0]}
    with pytest.raises(ValueError, match=next(iter(parameters))):
        Mixture(Gaussian(**parameters)).fit(X)


def test_parameters_are_kept_as_given(X):
    """The constructor stores, `fit` changes none of them."""
    prior, start = Gaussian(scale=[1.0, 2.0]), np.arange(len(X)) % 3
    estimator = mixture(likelihood=prior, init=start, moves=["merge"])
    before = {name: id(value) for name, value in estimator.get_params(deep=False).items()}
    estimator.fit(X)
    assert before == {name: id(value) for name, value in estimator.get_params(deep=False).items()}
    assert prior.mean is None


def test_inputs_are_not_changed(X):
    data, weights, start = X.copy(), np.full(len(X), 2.0), np.arange(len(X)) % 3
    for array in (data, weights, start):
        array.flags.writeable = False
    with pytest.warns(ConvergenceWarning, match="max_laps=5"):
        found = mixture(init=start, max_laps=5).fit(data, sample_weight=weights)
    found.predict(data)
    np.testing.assert_array_equal(data, X)


# Densities and draws


def test_score_samples_is_the_mixture_of_student_densities():
    """All by hand: Normal-Wishart posteriors of hard clusters, sticks, and scipy's multivariate t."""
    X, labels = blobs(20)
    X = CENTERS[labels] * 40.0 + X
    m, kappa, nu, B, gamma = np.array([1.0, 2.0]), 0.5, 6.0, np.array([[2.0, 0.3], [0.3, 1.0]]), 1.7
    prior = Gaussian(mean=m, mean_precision=kappa, degrees_of_freedom=nu, scale=B)
    found = mixture(likelihood=prior, concentration=gamma, init=labels, moves=()).fit(X)
    Y = X[::7] + np.random.default_rng(0).normal(size=(len(X[::7]), 2))
    parts, sticks, rest = [], [], 1.0
    for k, n in ((2, 60), (1, 40), (0, 20)):
        rows, after = X[labels == k], {2: 60, 1: 20, 0: 0}[k]
        center = (kappa * m + rows.sum(axis=0)) / (kappa + n)
        scatter = B + rows.T @ rows + kappa * np.outer(m, m) - (kappa + n) * np.outer(center, center)
        dof = nu + n - 1.0
        shape = scatter * (kappa + n + 1.0) / ((kappa + n) * dof)
        parts.append(stats.multivariate_t(center, shape, dof).logpdf(Y))
        u = (1.0 + n) / (1.0 + n + gamma + after)
        sticks.append(rest * u)
        rest *= 1.0 - u
    weights = np.array(sticks) / sum(sticks)
    np.testing.assert_allclose(found.weights_, weights, rtol=1e-10)
    by_hand = logsumexp(np.array(parts).T + np.log(weights), axis=1)
    np.testing.assert_allclose(found.score_samples(Y), by_hand, rtol=1e-9)
    assert found.score(Y) == pytest.approx(by_hand.mean(), rel=1e-9)


def test_lower_bound_of_separate_clusters_is_the_log_joint():
    """All by hand from marginal t densities, row by row, and sticks: log p(labels) + sum_k log p(rows of k)."""
    X, labels = blobs(3)
    X = CENTERS[labels] * 40.0 + X
    m, kappa, nu, B, gamma = np.zeros(2), 0.5, 6.0, np.eye(2), 1.7
    prior = Gaussian(mean=m, mean_precision=kappa, degrees_of_freedom=nu, scale=B)
    found = mixture(likelihood=prior, concentration=gamma, init=labels, moves=()).fit(X)
    joint = sum(betaln(1 + n, gamma + after) - betaln(1, gamma) for n, after in ((9, 9), (6, 3), (3, 0)))
    for k in range(3):
        seen = np.empty((0, 2))
        for x in X[labels == k]:
            n = len(seen)
            center = (kappa * m + seen.sum(axis=0)) / (kappa + n)
            scatter = B + seen.T @ seen + kappa * np.outer(m, m) - (kappa + n) * np.outer(center, center)
            shape = scatter * (kappa + n + 1.0) / ((kappa + n) * (nu + n - 1.0))
            joint += stats.multivariate_t(center, shape, nu + n - 1.0).logpdf(x)
            seen = np.vstack([seen, x])
    assert found.lower_bound_ == pytest.approx(joint, rel=1e-10)


def test_densities_integrate_to_one(family):
    x = family.rows(np.random.default_rng(0), 100, 1)
    options = {"init": "random", "n_init_clusters": 3, "moves": (), "tol": 1e-4, "learn": False}
    found = mixture(likelihood=family.make(x.shape[1]), **options).fit(x)
    grid, w = family.everything(x)
    assert w @ np.exp(found.score_samples(grid)) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("name", ["gaussian", "zero_mean_gaussian", "diagonal_gaussian", "spherical_gaussian"])
def test_draws_follow_the_density(name):
    x = np.random.default_rng(0).standard_t(4, 100)[:, None]
    found = mixture(likelihood=name, init="random", n_init_clusters=3, moves=(), tol=1e-4).fit(x)
    draws, labels = found.sample(3000)
    assert draws.shape == (3000, 1)
    grid = np.linspace(-60.0, 60.0, 40_001)
    distribution = np.cumsum(np.exp(found.score_samples(grid[:, None]))) * (grid[1] - grid[0])
    assert stats.kstest(draws[:, 0], lambda v: np.interp(v, grid, distribution)).pvalue > 0.01
    assert np.all(np.diff(labels) >= 0)
    shares = np.bincount(labels, minlength=found.n_clusters_) / 3000
    np.testing.assert_allclose(shares, found.weights_, atol=0.04)


def test_draws_are_repeatable_and_scored(fitted):
    X, labels = fitted.sample(500)
    np.testing.assert_array_equal(X, fitted.sample(500)[0])
    assert X.shape == (500, 2)
    np.testing.assert_array_equal(labels, fitted.predict(X))
    assert fitted.score(X) == pytest.approx(fitted.score(blobs(seed=5)[0]), abs=0.2)
    for n in (0, -1, 2.5, "3", None):
        with pytest.raises((ValueError, TypeError), match="n_samples"):
            fitted.sample(n)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_probabilities_sum_to_one(dtype):
    X = np.random.default_rng(1).standard_normal((700, 2)).astype(dtype)
    found = mixture(init="random", n_init_clusters=6, moves=(), tol=1e-4).fit(X)
    for rows in (X, X[:1], 50.0 * X):
        P = found.predict_proba(rows)
        assert P.shape == (len(rows), found.n_clusters_)
        assert P.min() >= 0.0
        np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=10 * np.finfo(dtype).eps)
        np.testing.assert_array_equal(P.argmax(axis=1), found.predict(rows))
    np.testing.assert_array_equal(found.transform(X), found.predict_proba(X))


# Fitting again, failing, being interrupted


def test_fitting_again_replaces_everything(fitted, X):
    twice = mixture().fit(np.random.default_rng(0).standard_normal((50, 5)))
    twice.predict(np.zeros((1, 5)))
    assert_equal_fits(twice.fit(X), fitted)
    assert twice.n_features_in_ == 2


class TooNarrow(Gaussian):
    def weights(self, N, S):
        raise FloatingPointError("its width is below the precision of the data")


def failures(X):
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 1]})
    bad = frame.copy()
    bad.iloc[5, 1] = np.inf
    return {
        "infinity": ((bad,), {}, ValueError),
        "text": ((np.array([["x", "y", "z"]] * 5),), {}, ValueError),
        "weights": ((frame, None, np.ones(3)), {}, ValueError),
        "init": ((frame,), {"init": np.zeros(7)}, ValueError),
        "prior": ((frame,), {"likelihood": Gaussian(scale=np.eye(2))}, ValueError),
        "allocation": ((frame,), {"allocation": "hdp"}, ValueError),
        "n_jobs": ((frame,), {"n_jobs": 0}, ValueError),
        "rounding": ((frame,), {"likelihood": TooNarrow()}, FloatingPointError),
    }


@pytest.mark.parametrize("name", failures(blobs()[0]))
def test_a_fit_that_fails_leaves_the_last_one(name, X):
    arguments, parameters, error = failures(X)[name]
    estimator = brief().fit(pd.DataFrame(X, columns=["width", "height"]))
    given = estimator.get_params(deep=False)
    before, labels = everything(estimator), estimator.predict(pd.DataFrame(X, columns=["width", "height"]))
    estimator.set_params(**parameters)
    with pytest.raises(error):
        estimator.fit(*arguments)
    estimator.set_params(**given)
    assert everything(estimator) == before
    np.testing.assert_array_equal(estimator.predict(pd.DataFrame(X, columns=["width", "height"])), labels)
    never = mixture(**parameters)
    with pytest.raises(error):
        never.fit(*arguments)
    assert vars(never).keys() == never.get_params().keys()


def interrupt_visit(monkeypatch, number, module):
    """Ctrl-C during visit ``number`` of a batch."""
    visits = iter(range(1, number + 1))
    real = visit.visit

    def interrupted(*args, **kwargs):
        if next(visits) == number:
            signal.raise_signal(signal.SIGINT)
        return real(*args, **kwargs)

    monkeypatch.setattr(module, interrupted)


@pytest.mark.parametrize(("algorithm", "number"), [("full", 1), *product(["memoized", "stochastic"], [1, 2, 3])])
def test_an_interrupt_before_the_first_lap_changes_nothing(algorithm, number, X, monkeypatch):
    module = "stickbreak.inference.stochastic.visit" if algorithm == "stochastic" else "stickbreak.inference.lap.visit"
    estimator = mixture(algorithm=algorithm, n_batches=3, init="random", tol=1e-3, moves=()).fit(X[:, :1])
    before = everything(estimator)
    interrupt_visit(monkeypatch, number, module)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(pd.DataFrame(X, columns=["a", "b"]))
    assert everything(estimator) == before


@pytest.mark.parametrize(
    ("algorithm", "number"),
    [*product(["memoized"], [4, 5, 7, 9, 12, 16]), *product(["full"], [5, 9]), *product(["stochastic"], [4, 7, 12])],
)
def test_an_interrupt_keeps_the_best_model(algorithm, number, X, monkeypatch):
    """Anywhere after the first lap, also amid an excursion: what is kept is whole and has the bound last reported."""
    module = "stickbreak.inference.stochastic.visit" if algorithm == "stochastic" else "stickbreak.inference.lap.visit"
    X = X + np.random.default_rng(0).standard_t(2, X.shape)
    estimator = mixture(algorithm=algorithm, n_batches=3, init="random", tol=1e-9)
    interrupt_visit(monkeypatch, number, module)
    with pytest.warns(UserWarning, match=r"interrupted after \d+ laps; the best model so far is kept"):
        assert estimator.fit(X) is estimator
    assert not estimator.converged_
    assert estimator.lower_bound_ == estimator.lower_bounds_[-1]
    assert estimator.summary_.N.sum() == pytest.approx(len(X), rel=1e-9)
    assert estimator.n_clusters_ == estimator.history_[-1].n_clusters == len(estimator.weights_)
    np.testing.assert_array_equal(estimator.labels_, estimator.predict(X))


def test_laps_that_run_out_are_warned_of(X):
    with pytest.warns(ConvergenceWarning, match="max_laps=2") as caught:
        found = mixture(max_laps=2).fit(X)
    assert caught[0].filename == __file__
    assert not found.converged_
    assert found.n_laps_ == 2


def test_verbose_shows_progress_and_changes_nothing(fitted, X, capsys):
    assert_equal_fits(mixture(verbose=True).fit(X), fitted)
    fitted.summary()
    out = capsys.readouterr().out
    assert "3" in out


def test_the_best_of_several_fits_is_kept(X):
    X = X + np.random.default_rng(0).standard_t(2, X.shape)
    several = mixture(n_init=4, init="random", n_init_clusters=5, moves=()).fit(X)
    seeds = [mixture(init="random", n_init_clusters=5, moves=(), random_state=s).fit(X).lower_bound_ for s in range(8)]
    assert np.ptp(seeds) > 1.0  # the starts lead to different optima
    assert several.lower_bound_ > np.median(seeds)
    assert several.lower_bounds_[-1] == several.lower_bound_
    assert several.n_laps_ == len(several.history_)
    assert_equal_fits(several, mixture(n_init=4, init="random", n_init_clusters=5, moves=(), n_jobs=2).fit(X))
    for wrong in (0, 1.5, True, None):
        with pytest.raises(ValueError, match="n_init must be a whole number"):
            mixture(n_init=wrong).fit(X)


def test_partial_fit_adds_what_rows_say(X):
    """The bound stays a bound of everything seen: no better than that of a fit from the same clusters."""
    rng = np.random.default_rng(0)
    X, weights = rng.permutation(X), rng.choice([0.5, 2.0], len(X))
    n = len(X) // 2
    found = mixture().partial_fit(X[:n], sample_weight=weights[:n])
    K, bound = found.n_clusters_, found.lower_bound_
    found.partial_fit(X[n:], sample_weight=weights[n:])
    assert found.n_clusters_ == K
    assert found.lower_bound_ < bound
    assert found.weights_.sum() == pytest.approx(1.0)
    assert found.summary_.N.sum() == pytest.approx(weights.sum())
    assert found.lower_bound_ == found.model_.bound(found.summary_)
    np.testing.assert_array_equal(found.labels_, found.predict(X[n:]))
    whole = mixture(init=found, moves=(), learn=False, likelihood=found.model_.likelihood).fit(X, sample_weight=weights)
    assert found.lower_bound_ <= whole.lower_bound_ + 1e-6 * abs(whole.lower_bound_)
    assert found.lower_bound_ >= whole.lower_bound_ - 0.01 * abs(whole.lower_bound_)
    with pytest.raises(ValueError, match="features"):
        found.partial_fit(X[:, :1])


def test_laps_as_published_are_slower_to_the_same_end():
    """Thesis Alg. 3.3: without extrapolation, more laps; no lap is undone, and the bound rises with every one."""
    X = np.concatenate([np.random.default_rng(0).normal(m, 1.0, (200, 2)) for m in (0.0, 2.5, 5.0)])
    start = {"init": "k-means++", "n_init_clusters": 3, "moves": (), "n_batches": 3, "tol": 1e-6}
    plain = mixture(algorithm=Memoized(accelerate=False), **start).fit(X)
    quick = mixture(algorithm=Memoized(), **start).fit(X)
    assert_equal_fits(quick, mixture(**start).fit(X))
    assert plain.n_laps_ > quick.n_laps_
    assert plain.lower_bound_ == pytest.approx(quick.lower_bound_, abs=0.1)
    assert (np.diff(plain.lower_bounds_) >= -1e-9 * abs(plain.lower_bound_)).all()
    with pytest.raises(ValueError, match="accelerate must be True or False"):
        Memoized(accelerate=3)
