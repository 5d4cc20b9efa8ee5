"""Data that break careless code: either they work, or an error says what is wrong and where."""

import re
import warnings
from functools import cache, partial

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from stickbreak import Mixture
from stickbreak.likelihoods import REGISTRY, Gaussian
from stickbreak.moves.verify import WORTH

LABELS = np.repeat([0, 1, 2], [40, 60, 80])
REAL = (
    *("gaussian", "zero_mean_gaussian", "diagonal_gaussian", "spherical_gaussian", "known_covariance_gaussian"),
    *("student_t", "background"),
)
every_likelihood = pytest.mark.parametrize("likelihood", REAL)  # of numbers of any size and sign
every_algorithm = pytest.mark.parametrize("algorithm", ["full", "memoized", "stochastic"])
of_one_batch = pytest.mark.parametrize("algorithm", ["memoized", "stochastic"])  # where "full" is "memoized"


def blobs(seed=0):
    centers = np.array([[-8.0, 0.0], [0.0, 8.0], [8.0, 0.0]])
    return centers[LABELS] + np.random.default_rng(seed).standard_normal((180, 2))


def fit(X, sample_weight=None, **parameters):
    defaults = {"likelihood": "gaussian", "random_state": 0, "n_jobs": 1, "max_laps": 200, "tol": 1e-5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Mixture(**{**defaults, **parameters}).fit(X, sample_weight=sample_weight)


@cache
def plain():
    return fit(blobs())


ROUND = {"likelihood": "spherical_gaussian"}  # of a family that takes no missing values


@cache
def round_clusters():
    return fit(blobs(), max_laps=5, **ROUND)


@cache
def brief():
    """A fit of few laps: how rows and weights are read shows in the first."""
    return fit(blobs(), max_laps=5)


def assert_sound(found, X):
    """Everything reported is finite and fits together."""
    for values in (found.weights_, *found.posterior_, found.lower_bounds_):
        assert np.isfinite(values).all()
    assert found.weights_.sum() == pytest.approx(1.0)
    assert found.summary_.N.min() >= 0.0
    np.testing.assert_allclose(found.predict_proba(X).sum(axis=1), 1.0, rtol=1e-6)
    assert np.isfinite(found.score_samples(X)).all()
    assert np.isfinite(found.sample(5)[0]).all()
    slack = 1e-9 if found.dtype_ == np.float64 else 1e-6
    bounds = np.array(found.lower_bounds_)
    if found.algorithm != "stochastic":
        assert np.all(np.diff(bounds) >= -slack * np.abs(bounds[1:]))


def recovers(found, labels=LABELS):
    return found.n_clusters_ == 3 and adjusted_rand_score(labels, found.labels_) == 1.0


# Values that are no numbers


@pytest.mark.parametrize("dtype", [np.float64, np.float32, object])
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_the_first_missing_value_is_named(value, name, dtype):
    X = blobs().astype(dtype)
    X[170, 0] = X[50, 1] = value
    model = round_clusters()
    for method in (partial(fit, **ROUND), model.predict, model.predict_proba, model.score_samples):
        with pytest.raises(ValueError, match=f"{name}.* row 50, column 1"):
            method(X)


@pytest.mark.parametrize("kind", ["array", "memory map"])
def test_missing_values_are_found_in_every_chunk(kind, tmp_path):
    X = np.zeros((10_000, 3), np.float32)
    X[9_999, 2] = np.nan
    if kind == "memory map":
        np.save(tmp_path / "X.npy", X)
        X = np.load(tmp_path / "X.npy", mmap_mode="r")
    with pytest.raises(ValueError, match=r"NaN.* row 9999, column 2"):
        fit(X, n_jobs=2, **ROUND)


def test_missing_values_of_frames_are_named_by_column():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(blobs(), columns=["width", "height"])
    X.loc[7, "height"] = None
    with pytest.raises(ValueError, match=r"row 7, column 1 \('height'\)"):
        fit(X, **ROUND)
    polars = pytest.importorskip("polars")
    with pytest.raises(ValueError, match=r"row 1, column 0 \('width'\)"):
        fit(polars.DataFrame({"width": [1.0, None, 3.0], "height": [1.0, 2.0, 3.0]}), **ROUND)


WRONG = {
    "text": (np.array([["a", "b"]] * 5), "text is no number"),
    "text objects": (np.array([["a", "b"]] * 5, dtype=object), "text is no number"),
    "nested objects": (np.array([[[1], [2]]] * 5 + [[{}, 1]], dtype=object), "row 0, column 0.*list"),
    "complex": (blobs() + 1j, "Complex data not supported"),
    "sparse": (scipy.sparse.csr_array(blobs()), r"[Ss]parse.*dense.*toarray"),
    "coo": (scipy.sparse.coo_matrix(blobs()), r"[Ss]parse.*dense.*toarray"),
    "one axis": (blobs()[:, 0], "Expected 2D array, got 1D"),
    "three axes": (blobs()[None], "dim 3"),
    "no axis": (3.0, "Expected 2D array, got scalar"),
    "nothing": (None, "X must be an array, a list or a frame; got None"),
    "no rows": (blobs()[:0], r"0 sample\(s\)"),
    "no columns": (blobs()[:, :0], r"0 feature\(s\)"),
    "ragged": ([[1.0, 2.0], [3.0]], "inhomogeneous"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_table_of_numbers_is_refused(name):
    X, message = WRONG[name]
    model = plain()
    for method in (fit, model.predict, model.score_samples):
        with pytest.raises((ValueError, TypeError), match=message):
            method(X)


@pytest.mark.parametrize("kind", ["no rows", "no columns", "one axis", "complex"])
def test_memory_maps_are_checked_like_arrays(kind, tmp_path):
    np.save(tmp_path / "X.npy", blobs() + (1j if kind == "complex" else 0.0))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    X = {"no rows": X[:0], "no columns": X[:, :0], "one axis": X[:, 0], "complex": X}[kind]
    with pytest.raises(ValueError, match=WRONG[kind][1]):
        fit(X)
    model = plain()
    with pytest.raises(ValueError, match=r"feature|sample|Expected|Complex"):
        model.predict(X)


def test_other_numbers_of_columns_are_refused():
    model = plain()
    for X in (blobs()[:, :1], np.hstack([blobs(), blobs()])):
        with pytest.raises(ValueError, match=f"X has {X.shape[1]} features, but Mixture is expecting 2"):
            model.predict(X)


# Values that a family cannot have

OUTSIDE = {
    "bernoulli": [2.0, -1.0, 0.5],
    "categorical": [0.5, -1.0, 1e9],
    "exponential": [-1.0, -1e-300],
    "gamma": [0.0, -1.0],
    "log_scale": [0.0, -1.0, 1e-300],
    "multinomial": [-1.0, -1e-300, 2e12],
    "poisson": [-1.0, 2.5, -1e-300, 2e12],
}


@pytest.fixture(scope="module")
def model_of(known_families):
    """A short fit of a family, in columns with names or without."""

    @cache
    def fitted(name, columns=None):
        X = rows_of(known_families, name)
        if columns is not None:
            X = pytest.importorskip("pandas").DataFrame(X, columns=columns).drop(index=[7, 12])
        return fit(X, likelihood=name, max_laps=5)

    return fitted


def rows_of(known_families, name):
    return known_families[f"{name}-default"].rows(np.random.default_rng(0), 30, 2)


VALUES = [(name, value) for name in REGISTRY for value in (*OUTSIDE.get(name, ()), np.inf, 1e200)]
every_value = pytest.mark.parametrize(("name", "value"), VALUES)
every_value_and_container = pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        (name, value, kind)
        for name, value in VALUES
        for kind in ("array", "frame", "single", "late")
        if kind != "single" or abs(value) not in (1e-300, 1e200)  # other numbers in single precision
    ],
)


@every_value_and_container
def test_values_outside_the_domain_are_named_with_their_place(known_families, model_of, name, value, kind):
    X = rows_of(known_families, name)
    D, model = X.shape[1], model_of(name)
    row, data = (4700, np.resize(X, (5000, D))) if kind == "late" else (7, X.copy())
    data[row, D - 1] = data[row + 5, 0] = value
    if kind == "single":
        data = data.astype(np.float32)
    where = f"row {row}, column {D - 1}"
    if kind == "frame":
        pandas = pytest.importorskip("pandas")
        data = pandas.DataFrame(data, columns=[f"c{d}" for d in range(D)])
        where += f" ('c{D - 1}')"
        model = model_of(name, tuple(data.columns))
    what, domain = f"{value:g}", f". {REGISTRY[name].__name__} takes "
    if value >= 1e200:
        what, domain = "infinity" if np.isinf(value) else "1e+200, a value too large to be squared", "."
    message = f"Input X contains {what}: {where}{domain}"
    for method in (lambda Y: fit(Y, likelihood=name), model.predict, model.score_samples):
        with pytest.raises(ValueError, match=re.escape(message)):
            method(data)


@pytest.mark.parametrize("name", REGISTRY)
def test_missing_values_are_used_or_named(known_families, model_of, name):
    X, model = rows_of(known_families, name), model_of(name)
    may = model.model_.likelihood.may_miss(X.shape[1])
    for d in range(X.shape[1]):
        holed = X.copy()
        holed[[9, 11], d] = np.nan
        for method in (lambda Y: fit(Y, likelihood=name, max_laps=5), model.predict, model.score_samples):
            if may[d]:
                method(holed)
                continue
            with pytest.raises(
                ValueError, match=rf"NaN: row 9, column {d}\. .*{REGISTRY[name].__name__} cannot use missing"
            ):
                method(holed)
    takes = {
        "bernoulli",
        "categorical",
        "diagonal_gaussian",
        "exponential",
        "gamma",
        "gaussian",
        "log_scale",
        "poisson",
    }
    assert may.all() == (name in takes)
    assert may.any() == (name in takes or name == "linear_regression")


# Layouts and types


def layouts():
    X = blobs()
    frozen = X.copy()
    frozen.flags.writeable = False
    return {
        "list": X.tolist(),
        "Fortran order": np.asfortranarray(X),
        "view with strides": np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
        "reversed twice": np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
        "transposed": np.ascontiguousarray(X.T).T,
        "read only": frozen,
        "other byte order": X.astype(">f8"),
        "objects": X.astype(object),
        "long double": X.astype(np.longdouble),
        "matrix rows": [row for row in X],
    }


@pytest.mark.parametrize("name", layouts())
def test_the_layout_is_irrelevant(name):
    found = fit(layouts()[name], max_laps=5)
    assert brief().lower_bounds_ == found.lower_bounds_
    np.testing.assert_array_equal(brief().means_, found.means_)
    np.testing.assert_array_equal(plain().predict_proba(blobs()), plain().predict_proba(layouts()[name]))


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.int64, np.uint64, np.float16, ">f8", "<i2"])
def test_other_numbers_count_as_double_precision(dtype):
    X = (10.0 * (blobs() + 12.0)).astype(dtype) if dtype is not bool else blobs() > 0.0
    found, double = fit(X, max_laps=5), fit(X.astype(float), max_laps=5)
    assert found.lower_bounds_ == double.lower_bounds_
    np.testing.assert_array_equal(found.labels_, double.labels_)
    assert_sound(found, X)


# Degenerate shapes


def shapes():
    rng = np.random.default_rng(1)
    G = blobs()
    return {
        "one row": G[:1],
        "two rows": G[:2],
        "one number": np.array([[3.0]]),
        "one column": G[:, :1],
        "fewer rows than columns": rng.standard_normal((3, 8)),
        "constant column": np.column_stack([G, np.full(180, 7.0)]),
        "column of 0.1": np.column_stack([G, np.full(180, 0.1)]),
        "column of zeros": np.column_stack([G, np.zeros(180)]),
        "nearly constant column": np.column_stack([G, 1e6 + 1e-9 * rng.standard_normal(180)]),
        "all rows equal": np.full((50, 3), 0.1),
        "all zero": np.zeros((50, 3)),
        "two values": np.repeat([[0.0, 0.0], [1.0, 1.0]], 30, axis=0),
        "column twice": np.column_stack([G, G[:, 0]]),
        "sum of columns": np.column_stack([G, G.sum(axis=1)]),
        "far outlier": np.vstack([G, [[1e12, 0.0]]]),
        "many columns": rng.standard_normal((30, 40)),
    }


@every_likelihood
@pytest.mark.parametrize("name", shapes())
def test_degenerate_tables_work(name, likelihood, turn):
    """Every likelihood and every table meets each algorithm and precision."""
    algorithm, dtype = [("memoized", np.float64), ("stochastic", np.float64), ("memoized", np.float32)][turn % 3]
    X = shapes()[name].astype(dtype)
    assert_sound(fit(X, likelihood=likelihood, algorithm=algorithm, max_laps=6), X)


def test_rows_without_difference_are_one_cluster():
    for X in (np.full((50, 3), 0.1), np.zeros((50, 3)), np.full((20, 1), -7e8)):
        found = fit(X)
        assert found.n_clusters_ == 1
        np.testing.assert_allclose(found.means_[0], X[0], rtol=1e-12)


@pytest.mark.parametrize(
    "name", ["constant column", "column of 0.1", "column of zeros", "column twice", "sum of columns"]
)
def test_useless_columns_hide_no_clusters(name):
    assert recovers(fit(shapes()[name], max_laps=100))


@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("X", [np.ones((40, 2)), np.eye(2), np.array([[3.0, 4.0]])], ids=["equal", "two", "one"])
def test_more_seeds_than_distinct_rows(X, init):
    found = fit(X, init=init, n_init_clusters=9, moves=())
    assert found.n_clusters_ <= len(np.unique(X, axis=0))
    assert_sound(found, X)


@pytest.mark.parametrize("n_batches", [7, 5000])
def test_more_batches_than_rows(n_batches):
    assert recovers(fit(blobs()[::4], n_batches=n_batches), LABELS[::4])


# Extreme magnitudes


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e-8, 1e8, 1e100, 1e140])
def test_any_unit_that_can_be_squared(scale):
    found = fit(blobs() * scale)
    assert recovers(found)
    assert found.lower_bound_ == pytest.approx(plain().lower_bound_ - 360 * np.log(scale), rel=1e-9)
    np.testing.assert_allclose(found.means_, plain().means_ * scale, rtol=1e-6, atol=1e-6 * scale)


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e20, 1e30])
def test_squares_may_exceed_single_precision(scale):
    found = fit((blobs() * scale).astype(np.float32))
    assert recovers(found)


def assert_works_or_says_what_is_wrong(X, message, **parameters):
    try:
        found = fit(X, **parameters)
    except (ValueError, FloatingPointError) as error:
        found, said = None, str(error).lower()
    if found is None:
        assert message in said
    else:
        assert_sound(found, X)


@every_likelihood
@pytest.mark.parametrize("largest", [1e160, 1e300, 1.7e308])
def test_values_too_large_to_be_squared_work_or_are_named(largest, likelihood):
    assert_works_or_says_what_is_wrong(blobs() / 20.0 * largest, "large", likelihood=likelihood)
    one = blobs()
    one[50, 1] = largest
    assert_works_or_says_what_is_wrong(one, "row 50, column 1", likelihood=likelihood)
    assert_works_or_says_what_is_wrong(
        np.column_stack([blobs(), np.full(180, largest)]), "large", likelihood=likelihood
    )


@every_likelihood
@pytest.mark.parametrize("scale", [1e-170, 1e-300, 5e-324])
def test_values_too_small_to_be_squared_are_refused(scale, likelihood):
    with pytest.raises(ValueError, match=r"column 0 has a standard deviation of .* too small to be squared"):
        fit(blobs() * scale, likelihood=likelihood)


@pytest.mark.parametrize(("offset", "dtype"), [(1e6, "f8"), (1e10, "f8"), (1e12, "f8"), (1e4, "f4")])
def test_an_offset_hides_nothing(offset, dtype):
    X = (blobs() + offset).astype(dtype)
    found = fit(X)
    assert recovers(found)
    np.testing.assert_allclose(found.means_ - offset, plain().means_, atol=1e-3)


@every_likelihood
def test_an_offset_beyond_the_precision_of_the_data(likelihood):
    """At 1e12 single precision has steps of 65,536: every row is the same."""
    X = (blobs() + 1e12).astype(np.float32)
    found = fit(X, likelihood=likelihood)
    assert_sound(found, X)
    assert found.n_clusters_ == 1
    X = (blobs() + 1e8).astype(np.float32)  # steps of 8: rows are on a coarse grid
    assert_sound(fit(X, likelihood=likelihood), X)


WIDTH = {"diagonal_gaussian": "rate", "spherical_gaussian": "rate", "known_covariance_gaussian": "covariance"}
NARROW = np.array([[-1.0, 0.0], [0.0, 1.0], [1.0, -1.0]])[LABELS]


@every_likelihood
@pytest.mark.parametrize(("dtype", "offset"), [(np.float64, 0.0), (np.float64, 100.0), (np.float32, 1.0)])
def test_clusters_a_millionth_of_the_spread_wide(dtype, offset, likelihood):
    """With the default prior they are found; with one as narrow as they are, rounding may be named as the trouble."""
    X = (NARROW + 1e-6 * np.random.default_rng(0).standard_normal((180, 2)) + offset).astype(dtype)
    found = fit(X, likelihood=likelihood, max_laps=100 if likelihood == "gaussian" else 12)
    assert_sound(found, X)
    if likelihood == "gaussian":
        assert recovers(found)
    narrow = (
        {"family": Gaussian(scale=1e-13)} if likelihood == "background" else {WIDTH.get(likelihood, "scale"): 1e-13}
    )
    try:
        found = fit(X, likelihood=REGISTRY[likelihood](**narrow), max_laps=12)
    except FloatingPointError as error:
        found, said = None, str(error)
    if found is None:
        assert "precision" in said
    else:
        assert np.isfinite(found.lower_bounds_).all()
        assert all(np.isfinite(values).all() for values in found.posterior_)


def test_clusters_a_millionth_of_the_spread_wide_are_measured():
    X = NARROW + 1e-6 * np.random.default_rng(0).standard_normal((180, 2))
    found = fit(X, likelihood=Gaussian(scale=1e-13, mean_precision=1e-13))
    assert recovers(found)
    np.testing.assert_allclose(found.covariances_, np.array([1e-12 * np.eye(2)] * 3), atol=5e-13)


@pytest.mark.parametrize(
    ("likelihood", "learn", "dtype", "first"),
    [
        *(
            (name, learn, dtype, i + learn)
            for i, name in enumerate((*REAL, "categorical"))
            for learn, dtype in ((False, "f4"), (True, "f8"))
        ),
        ("exponential", False, "f4", 2),  # under a learnt prior the density of durations of zero has no limit
    ],
)
def test_few_distinct_rows_are_clusters(likelihood, learn, dtype, first):
    """A value that many rows share is a cluster, though it cannot be divided further, if it is worth a nat (`WORTH`)."""
    tables = [[[0, 1], [1, 0]], [[0, 1], [10, 1], [0, 50]], [[1, 0], [1, 1], [0, 5], [9, 8]]]
    values = tables[first % 3]
    X, labels = np.repeat(np.array(values, dtype), 100, axis=0), np.repeat(np.arange(len(values)), 100)
    apart = fit(X, likelihood=likelihood, init=labels, moves=(), learn=learn)
    together = fit(X, likelihood=likelihood, moves=(), learn=learn)
    found = fit(X, likelihood=likelihood, learn=learn)
    assert found.lower_bound_ >= max(apart.lower_bound_, together.lower_bound_) - WORTH * len(values)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_priors_out_of_all_proportion(scale):
    assert_works_or_says_what_is_wrong(blobs(), "scale", likelihood=Gaussian(scale=scale))


@pytest.mark.parametrize("concentration", [1e-300, 1e-5, 1e5, 1e300])
@pytest.mark.parametrize("allocation", ["dp", "finite"])
def test_concentrations_out_of_all_proportion(concentration, allocation):
    found = fit(blobs(), concentration=concentration, allocation=allocation, max_laps=12)
    assert_sound(found, blobs())


# Weights


WRONG_WEIGHTS = {
    "negative": (np.where(np.arange(180) == 5, -1.0, 1.0), "[Nn]egative"),
    "all zero": (np.zeros(180), "zero"),
    "too few": (np.ones(5), r"\(5,\)"),
    "two axes": (np.ones((180, 1)), "1D"),
    "nan": (np.where(np.arange(180) == 5, np.nan, 1.0), "NaN"),
    "infinite": (np.where(np.arange(180) == 5, np.inf, 1.0), "infinity"),
    "infinite sum": (np.full(180, 1e308), "finite|large"),
    "text": ("balanced", "text is no number"),
}


@pytest.mark.parametrize("name", WRONG_WEIGHTS)
def test_wrong_weights_are_refused(name):
    weights, message = WRONG_WEIGHTS[name]
    with pytest.raises(ValueError, match=message) as caught:
        fit(blobs(), weights)
    assert name in ("text", "two axes") or "weight" in str(caught.value)


@of_one_batch
@pytest.mark.parametrize("weight", [1e-300, 1e-20, 1e-6, 1e6, 1e9, 1e30, 1e100])
def test_weights_of_any_size_work(weight, algorithm):
    found = fit(blobs(), np.full(180, weight), algorithm=algorithm, init="k-means++", n_init_clusters=3, moves=())
    assert_sound(found, blobs())
    assert found.summary_.N.sum() == pytest.approx(180 * weight)


@every_algorithm
def test_weights_of_unlike_size_work(algorithm):
    for weights in (np.eye(180)[5], np.where(np.arange(180) % 2, 1e-300, 1.0), np.geomspace(1e-5, 1e5, 180)):
        found = fit(blobs(), weights, algorithm=algorithm, n_batches=4, max_laps=30)
        assert_sound(found, blobs())


@pytest.mark.parametrize(
    "weights", [[1] * 180, np.ones(180, int), np.ones(180, bool), np.ones(180, object), 1.0], ids=repr
)
def test_weights_of_one_are_no_weights(weights):
    assert fit(blobs(), weights, max_laps=5).lower_bounds_ == brief().lower_bounds_


# Doors


@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson", "multinomial"])
def test_sparse_rows_have_nothing_to_impute(likelihood):
    X = scipy.sparse.csr_array((np.random.default_rng(0).random((60, 8)) < 0.4).astype(float))
    filled = fit(X, likelihood=likelihood).impute(X)
    assert filled.format == "csr"
    np.testing.assert_array_equal(filled.toarray(), X.toarray())


def test_frames_with_one_name_twice_are_refused():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="two columns of the same name"):
        Mixture("gaussian").fit(pandas.DataFrame(blobs(), columns=["a", "a"]))


@pytest.mark.parametrize("path", [None, 3, np.zeros(2)])
def test_models_are_saved_to_paths_only(path):
    with pytest.raises(TypeError, match=r"path must be a str or an os\.PathLike"):
        fit(blobs(), max_laps=2).save(path)


@pytest.mark.parametrize("verbose", [np.zeros(2), "x", None])
def test_verbose_is_true_or_false(verbose):
    with pytest.raises(ValueError, match="verbose must be True or False"):
        Mixture("gaussian", verbose=verbose).fit(blobs())


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("gaussian", {"degrees_of_freedom": "x"}),
        ("linear_regression", {"mean_precision": [[1.0, 2.0], [3.0]]}),
        ("categorical", {"n_levels": [[1.0, 2.0], [3.0]]}),
        ("poisson", {"exposure": "x"}),
    ],
)
def test_hyperparameters_that_are_no_numbers_are_named(name, given):
    (parameter,) = given
    with pytest.raises(ValueError, match=parameter):
        Mixture(REGISTRY[name](**given)).fit(np.abs(np.round(blobs())))
