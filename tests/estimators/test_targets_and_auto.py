"""Targets that come apart as y, and likelihoods chosen column by column."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from stickbreak import Mixture, load
from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource
from stickbreak.estimators import _automatic
from stickbreak.estimators._automatic import automatic, readings
from stickbreak.estimators._chosen import Candidate, Entry, Found
from stickbreak.estimators._selection import RowContest, begun
from stickbreak.likelihoods import (
    REGISTRY,
    Bernoulli,
    DiagonalGaussian,
    Gaussian,
    LinearRegression,
    Multinomial,
    Product,
    Sample,
    StudentT,
)
from stickbreak.likelihoods.features import features
from stickbreak.model import Model
from stickbreak.model.seeding import hard_summary


def lines(q=1, n=300, seed=0):
    """Two lines that cross, told apart by the second column of x."""
    rng = np.random.default_rng(seed)
    z = np.arange(n) % 2
    x = np.column_stack([rng.normal(0.0, 3.0, n), np.where(z, 20.0, -20.0) + rng.normal(size=n)])
    slope = np.where(z, 2.0, -3.0)[:, None] * np.arange(1, q + 1)
    return x, slope * x[:, :1] + 5.0 + 0.1 * rng.standard_normal((n, q)), z


def fit(likelihood, X, y=None, sample_weight=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Mixture(likelihood, **{"random_state": 0, "n_jobs": 1, **parameters}).fit(X, y, sample_weight)


TOLD_APART = Product({"x": (DiagonalGaussian(), [0, 1]), "line": (LinearRegression(), [0, 2])})


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_targets_apart_are_the_last_columns(dtype):
    x, y, _ = lines(2)
    x, y = x.astype(dtype), y.astype(dtype)
    one = fit(LinearRegression(targets=2), x, y, max_laps=30)
    other = fit(LinearRegression(targets=2), np.hstack([x, y]), max_laps=30)
    assert one.lower_bounds_ == other.lower_bounds_
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert (one.n_features_in_, one.n_targets_, other.n_features_in_, other.n_targets_) == (2, 2, 4, 0)
    for method in ("predict", "predict_proba", "score_samples"):
        np.testing.assert_array_equal(getattr(one, method)(x, y), getattr(other, method)(np.hstack([x, y])))
    holed = np.hstack([x, np.full_like(y, np.nan)])
    np.testing.assert_array_equal(one.predict_proba(x), other.predict_proba(holed))
    np.testing.assert_array_equal(one.predict_targets(x), other.impute(holed)[:, 2:])
    assert one.predict_targets(x).shape == (300, 2)


def test_targets_are_predicted_by_the_clusters_that_other_columns_tell():
    x, y, _ = lines()
    found = fit(TOLD_APART, x, y[:, 0])
    assert found.n_clusters_ == 2
    fresh, target, _ = lines(seed=1)
    np.testing.assert_allclose(found.predict_targets(fresh), target[:, 0], atol=1.0)
    assert found.predict_targets(fresh).shape == (300,)
    np.testing.assert_array_equal(found.predict(fresh) == found.predict(fresh)[0], np.arange(300) % 2 == 0)


def test_rows_without_targets_help_to_find_clusters(tmp_path):
    x, y, _ = lines()
    holed = np.where(np.random.default_rng(2).random(300) < 0.8, np.nan, y[:, 0])
    found = fit(TOLD_APART, x, holed)
    assert found.n_clusters_ == 2
    np.testing.assert_allclose(found.predict_targets(x), y[:, 0], atol=2.0)
    found.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.n_targets_ == 1
    np.testing.assert_array_equal(again.predict_targets(x), found.predict_targets(x))


def test_wrong_targets_are_refused():
    x, y, _ = lines()
    found = fit(LinearRegression(), x, y[:, 0], max_laps=5)
    for wrong in (y[:-1, 0], y[None], 3.0):
        with pytest.raises(ValueError, match="y must hold one target, or one row of targets, for each of 300 rows"):
            fit(LinearRegression(), x, wrong)
    with pytest.raises(ValueError, match="y has 2 targets, but the model was fitted to 1"):
        found.predict(x, np.hstack([y, y]))
    with pytest.raises(ValueError, match="infinity: row 3, column 2"):
        fit(LinearRegression(), x, np.where(np.arange(300) == 3, np.inf, y[:, 0]))
    with pytest.raises(ValueError, match="text is no number"):
        fit(LinearRegression(), x, ["a"] * 300)
    with pytest.raises(ValueError, match="fitted without targets"):
        fit("gaussian", x, max_laps=5).predict_targets(x)


def test_other_families_take_no_targets():
    x, y, _ = lines()
    with pytest.raises(ValueError, match=r"labels of classes, .* use Mixture\(LinearRegression\(\)\)"):
        fit("gaussian", x, y[:, 0], max_laps=5)
    found = fit(LinearRegression(), x, y[:, 0], max_laps=5)
    found.set_params(likelihood="gaussian", max_laps=500).fit(x)
    assert (found.n_targets_, found.n_features_in_) == (0, 2)


# Likelihoods chosen column by column ----------------------------------------------------------------------------------


def kinds(likelihood):
    if not isinstance(likelihood, Product):
        return type(likelihood).__name__
    return {type(part).__name__: list(columns) for part, columns in likelihood.parts.values()}


@pytest.mark.parametrize("holes", [False, True])
def test_columns_say_what_they_hold(holes):
    rng = np.random.default_rng(3)
    X = np.column_stack(
        [
            rng.normal(size=60),  # numbers
            rng.integers(2, size=60),  # bits
            np.append(rng.poisson(20.0, 59), 3.0),  # counts, with a small one
            rng.integers(10, 99, 60),  # whole numbers that start at ten: sizes, years
            rng.integers(-3, 4, 60),  # whole numbers below zero
            np.zeros(60),  # a constant
            np.append(rng.poisson(2.0, 59), 2.5),  # one fraction among counts
            np.append(rng.poisson(2.0, 59), 1e13),  # a number beyond all counts
        ]
    )
    if holes:
        X[::7] = np.nan
    families = automatic(ArraySource(X), {})
    assert kinds(families["diagonal_gaussian"]) == {
        "DiagonalGaussian": [0, 3, 4, 6, 7],
        "Poisson": [2],
        "Bernoulli": [1, 5],
    }
    assert kinds(families["diagonal_gaussian, counts too"]) == {
        "DiagonalGaussian": [0, 2, 3, 4, 6, 7],
        "Bernoulli": [1, 5],
    }
    assert ("gaussian" in families) == (not holes)
    assert "student_t" not in families  # no part of a Product


@pytest.mark.parametrize(
    ("values", "family"),
    [(np.eye(6), "Bernoulli"), (np.arange(36.0).reshape(6, 6) % 7, "Poisson"), (np.eye(6) - 0.5, "DiagonalGaussian")],
)
def test_tables_of_one_kind_need_no_product(values, family):
    for X in (values, values.astype(np.float32)):
        assert family in [kinds(found) for found in automatic(ArraySource(X), {}).values()]


@pytest.mark.parametrize(
    ("varying", "value", "kinds_of_parts"),
    [
        (np.arange(60.0) / 7.0, 0.0, "DiagonalGaussian"),
        (np.arange(60.0) % 7, 7.0, {"DiagonalGaussian": [1], "Poisson": [0]}),
        (np.arange(60.0) % 7, 0.0, {"Bernoulli": [1], "Poisson": [0]}),
        (np.arange(60.0) % 2, 1.0, "Bernoulli"),
    ],
)
def test_a_constant_is_what_costs_least(varying, value, kinds_of_parts):
    families = automatic(ArraySource(np.column_stack([varying, np.full(60, value)])), {})
    assert kinds(next(iter(families.values()))) == kinds_of_parts


@pytest.mark.parametrize("D", [1, 3])
def test_a_column_that_does_not_vary_makes_no_clusters(D):
    """One variance for all columns would follow it, and cut the others into pieces as narrow."""
    X = np.random.default_rng(0).standard_normal((200, D))
    found = fit("auto", np.column_stack([X, np.full(200, 2.5)]))
    assert found.n_clusters_ == 1
    assert "spherical_gaussian" not in {candidate.family for candidate in found.selection_}
    assert ("spherical_gaussian" in automatic(ArraySource(X), {})) == (D > 1)  # which the other columns alone may have


def test_zeros_and_ones_need_no_choice():
    found = fit("auto", np.eye(6), max_laps=3)
    assert found.selection_ == []
    assert found.lower_bounds_ == fit(Bernoulli(), np.eye(6), max_laps=3).lower_bounds_


def test_all_rows_are_looked_at():
    """What tells a column apart may stand in the last row."""
    X = np.ones((9000, 2))
    X[-1] = [0.5, 4.0]
    families = automatic(ArraySource(X), {})
    assert kinds(families["diagonal_gaussian"]) == {"DiagonalGaussian": [0], "Poisson": [1]}


@pytest.mark.parametrize("family", ["gaussian", "diagonal_gaussian", "spherical_gaussian", "student_t"])
def test_the_family_of_numbers_is_the_one_that_the_rows_come_from(family, tmp_path):
    rng = np.random.default_rng(5)
    widths = {"spherical_gaussian": np.eye(3), "diagonal_gaussian": np.diag([0.2, 1.0, 3.0])}
    shape = widths.get(family, np.array([[1.0, 0.0, 0.0], [0.9, 0.3, 0.0], [-0.8, 0.2, 0.3]]))
    X = np.concatenate([rng.standard_normal((300, 3)) @ shape.T + 20.0 * k for k in range(3)])
    if family == "student_t":
        X += (X - np.repeat([[0.0], [20.0], [40.0]], 300, axis=0)) * (rng.chisquare(3.0, (900, 1)) ** -0.5 - 1.0)
    found = fit("auto", X)
    assert found.selection_[0].family == family
    assert found.n_clusters_ == 3
    bounds = [candidate.lower_bound for candidate in found.selection_]
    assert bounds == sorted(bounds, reverse=True)
    assert len(bounds) == 4
    assert found.lower_bound_ >= bounds[0] - 1e-6 * abs(bounds[0])  # the sample was all rows
    assert fit(family, X).lower_bound_ == pytest.approx(found.lower_bound_, abs=3.0)
    found.save(tmp_path / "model")
    assert load(tmp_path / "model").selection_ == found.selection_


def test_sparse_rows_are_documents():
    C = sparse.csr_array(np.random.default_rng(4).poisson(0.3, (60, 8)).astype(float))
    found = fit("auto", C, max_laps=3)
    assert kinds(found.model_.likelihood) == "Multinomial"
    assert found.lower_bounds_ == fit(Multinomial(), C, max_laps=3).lower_bounds_


def test_new_values_are_judged_by_what_was_chosen():
    X = np.column_stack([np.arange(40.0) % 2, np.arange(40.0) % 5])
    found = fit(automatic(ArraySource(X), {})["poisson and bernoulli"], X, max_laps=3)
    for column, value, words in ((0, 2.0, "Bernoulli takes 0 or 1"), (1, 0.5, "Poisson takes whole numbers")):
        wrong = X.copy()
        wrong[6, column] = value
        with pytest.raises(ValueError, match=f"row 6, column {column}. {words}"):
            found.predict(wrong)


def test_the_choice_does_not_change_the_parameter():
    estimator = Mixture("auto", max_laps=2, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(np.eye(5)).fit(np.random.default_rng(0).normal(size=(30, 2)))
    assert estimator.likelihood == "auto"
    assert kinds(estimator.model_.likelihood) in ("DiagonalGaussian", "SphericalGaussian", "Gaussian", "StudentT")


@cache
def chosen():
    """Rows, a fit whose family is chosen for them, and their clusters."""
    X, income, labels = blobs_and_tail(n=350)
    X = np.column_stack([X, income])
    return X, fit("auto", X), labels


def test_families_are_chosen_by_default():
    X, found, _ = chosen()
    assert Mixture().likelihood == "auto"
    assert found.n_clusters_ == 5
    assert found.lower_bounds_ == Mixture(random_state=0, n_jobs=1).fit(X).lower_bounds_


def families(found):
    return [(candidate.family, candidate.lower_bound) for candidate in found.selection_]


@pytest.mark.long
def test_given_clusters_and_moves_do_not_change_the_family():
    X, found, labels = chosen()
    searched = families(fit("auto", X, moves=(), init=labels))
    assert searched[0][0] == found.selection_[0].family
    assert {name for name, _ in searched} == {candidate.family for candidate in found.selection_}
    for parameters in ({"init": labels}, {"init": "k-means++", "n_init_clusters": 5}, {}):
        other = fit("auto", X, moves=(), **parameters)
        assert families(other) == searched
        assert other.n_clusters_ == (5 if parameters else 1)


@pytest.mark.parametrize("likelihood", ["auto", "student_t", DiagonalGaussian(mean_precision=0.1)])
def test_a_fit_that_goes_on_keeps_the_family(likelihood):
    X, income, _ = blobs_and_tail(n=250)
    X = np.column_stack([X, income, np.arange(250) % 7 < 3])
    found = fit(likelihood, X, max_laps=12)
    again = fit("auto", X, init=found, max_laps=12)
    assert again.selection_ == []
    assert kinds(again.model_.likelihood) == kinds(found.model_.likelihood)
    assert again.lower_bound_ >= found.lower_bound_ - 0.01


def test_a_model_of_other_columns_is_refused_by_default_too():
    X, found, _ = chosen()
    with pytest.raises(ValueError, match="init has 5 columns, but X has 4"):
        fit("auto", X[:, :4], init=found)


@pytest.mark.long
def test_values_that_the_family_of_the_start_cannot_use_are_refused_with_a_way_out():
    X = np.exp(np.random.default_rng(0).normal(size=(300, 1)))
    found = fit("auto", X)
    assert "LogScale" in repr(found.model_.likelihood)
    with pytest.raises(
        ValueError, match=r"X contains -1: row 7, column 0.*taken from init; choose another with likelihood="
    ):
        fit("auto", np.where(np.arange(300)[:, None] == 7, -1.0, X), init=found)


@pytest.mark.parametrize(("family", "shape"), [("diagonal_gaussian", (3, 2)), ("spherical_gaussian", (3,))])
def test_independent_columns_have_covariances_too(family, shape):
    X = np.random.default_rng(0).normal(size=(60, 2)) * [1.0, 3.0]
    found = fit(family, X, init=np.arange(60) % 3, moves=(), max_laps=1)
    assert found.variances_.shape == shape
    for covariances, variances in zip(found.covariances_, found.variances_):
        np.testing.assert_array_equal(covariances, variances * np.eye(2))
    assert not hasattr(fit("bernoulli", X > 0, max_laps=1), "covariances_")


# The log scale


def blobs_and_tail(seed=0, n=1000):
    """Five clusters in four columns, and an income that has little to do with them."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(5, size=n)
    X = 6.0 * rng.standard_normal((5, 4))[labels] + rng.standard_normal((n, 4))
    z = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
    return X, np.exp(rng.standard_normal(n) + 0.5 * z), labels


@pytest.mark.parametrize("added", [True, False])
def test_a_long_tail_makes_no_clusters(added, tmp_path):
    X, income, labels = blobs_and_tail(n=500)
    X = np.column_stack([X, income] if added else [np.exp(np.random.default_rng(1).standard_normal(500)), X[:, 1:]])
    tail = 4 if added else 0
    found = fit("auto", X)
    assert found.n_clusters_ == 5
    assert adjusted_rand_score(labels, found.labels_) > 0.95
    assert found.selection_[0].family.endswith(f", log scale: {tail}")
    assert any("log scale" not in candidate.family for candidate in found.selection_)
    assert found.data_check_ == []
    found.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.selection_ == found.selection_
    np.testing.assert_array_equal(again.predict(X), found.labels_)


def test_the_log_scale_is_used_where_it_pays():
    """Pieces of a column that lie evenly on its own scale have a longer tail above, too."""
    X, income, labels = blobs_and_tail(n=500)
    rng = np.random.default_rng(2)
    height = np.array([10.0, 11.0, 12.0, 13.0, 19.0])[labels] + 1.5 * rng.standard_normal(500)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(income=income, height=height)
    assert readings(ArraySource(frame.to_numpy()), {})[0].long_tailed.tolist() == [False] * 4 + [True, True]
    assert fit("auto", frame).selection_[0].family.endswith("gaussian, log scale: income")


def test_symmetric_and_negative_columns_are_no_candidates():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(50.0, 5.0, 500), -np.exp(rng.standard_normal(500)), rng.lognormal(size=500)])
    assert readings(ArraySource(X), {})[0].long_tailed.tolist() == [False, False, True]
    X[490, 2] = 0.0
    assert not readings(ArraySource(X), {})[0].long_tailed.any()


def test_a_single_column_may_be_on_the_log_scale():
    x = np.exp(np.random.default_rng(4).standard_normal((400, 1)))
    found = fit("auto", x)
    assert found.n_clusters_ == 1
    assert [candidate.family for candidate in found.selection_] == [
        "diagonal_gaussian, log scale: 0",
        "student_t, log scale: 0",
        "diagonal_gaussian",
    ]
    assert fit("gaussian", x, max_laps=60).n_clusters_ > 1


# Simpler families


@pytest.mark.parametrize(
    ("found", "chosen"),
    [
        ({"student_t": (-10.0, 14), "diagonal_gaussian": (-5.0, 70)}, "student_t"),
        ({"student_t": (-10.0, 14), "diagonal_gaussian": (-5.0, 28)}, "diagonal_gaussian"),
        ({"student_t": (-10.0, 14), "gaussian": (-9.0, 40)}, "gaussian"),
        (
            {"gaussian": (-10.0, 14), "diagonal_gaussian": (-5.0, 20), "spherical_gaussian": (-4.0, 41)},
            "diagonal_gaussian",
        ),
        (
            {"gaussian": (-10.0, 14), "diagonal_gaussian": (-5.0, 70), "spherical_gaussian": (-6.0, 15)},
            "spherical_gaussian",
        ),
        ({"gaussian": (-10.0, 14), "poisson": (-1.0, 180)}, "gaussian"),
        ({"gaussian": (-10.0, 2), "poisson": (-1.0, 3)}, "poisson"),
        ({"gaussian": (-10.0, 1), "diagonal_gaussian": (-5.0, 3)}, "diagonal_gaussian"),
        ({"gaussian": (-5.0, 1), "diagonal_gaussian": (-10.0, 3)}, "gaussian"),
    ],
)
def test_pieces_of_the_clusters_of_a_fuller_family_are_not_preferred(found, chosen):
    """A simpler family needs a higher bound with at most twice as many clusters; equally full ones a higher bound."""
    contest = RowContest(None, ArraySource(np.zeros((5, 3))), None, np.random.default_rng(0), 5)
    for name, (bound, K) in found.items():
        contest.entries[name] = Entry(Candidate(name, bound, K, 0.0), REGISTRY[name](), None)
    assert contest.preferred.candidate.family == chosen


def test_networks_of_columns_are_tried_where_covariances_are_too_many(monkeypatch):
    X = np.random.default_rng(8).standard_normal((40, 201))
    few = automatic(ArraySource(X), {})
    assert list(few) == ["diagonal_gaussian", "gaussian", "spherical_gaussian", "student_t"]
    monkeypatch.setattr(_automatic, "AFFORDABLE", 40 * 201 * 101 - 1)
    families = automatic(ArraySource(X), {})
    assert list(families) == ["diagonal_gaussian", "gaussian_network", "spherical_gaussian"]
    assert "gaussian_network" not in automatic(ArraySource(X[:, :200]), {})
    assert "gaussian_network" not in automatic(ArraySource(np.tile(X, 5)[:, :1001]), {})


def test_what_parameters_explain_of_a_sample_by_chance_does_not_count():
    """The bound of 20,000 rows, as ten samples of 2,000 tell on average: covariances of samples look better than they are."""
    rng = np.random.default_rng(0)
    labels = rng.integers(5, size=20_000)
    X = 9.0 * rng.standard_normal((5, 20))[labels] + rng.standard_normal((20_000, 20))
    model = Model(Gaussian().resolve(Sample.of(X)), DirichletProcess(1.0))
    T = features(model.likelihood, X)
    whole = model.bound(hard_summary(T, np.ones(20_000), labels))
    tenths = [hard_summary(T[i::10], np.ones(2000), labels[i::10]) * 10.0 for i in range(10)]
    excess = 9.0 * 5 * 230 / 2  # half a nat for each mean and covariance, of nine rows in ten
    assert np.mean([model.bound(total) for total in tenths]) == pytest.approx(whole + excess, abs=0.1 * excess)
    assert np.mean([begun(Found(model, total), 10.0, ()).bound for total in tenths]) == pytest.approx(
        whole, abs=0.1 * excess
    )


@pytest.mark.long
def test_a_sample_ranks_families_as_all_rows_do():
    """Correlated columns, and a sample with fewer rows in each cluster than its covariance has numbers."""
    rng = np.random.default_rng(0)
    K, D, each = 50, 20, 8
    labels = rng.permutation(np.arange(40_000) % K)
    shapes = np.eye(D) + 0.3 * rng.standard_normal((K, D, D)) / np.sqrt(D)
    X = 2.5 * rng.standard_normal((K, D))[labels]
    X += np.einsum("nd,nde->ne", rng.standard_normal((40_000, D)), shapes[labels])
    bounds = {}
    for family in ("diagonal_gaussian", "gaussian"):
        fits = [
            Mixture(family, init=z, moves=(), tol=1.0, n_jobs=1).fit(rows)
            for rows, z in ((X, labels), (X[: len(X) // each], labels[: len(X) // each]))
        ]
        told = begun(Found(fits[1].model_, fits[1].summary_ * each), each, ()).bound
        bounds[family] = told, fits[0].lower_bound_
    (diagonal, least), (full, most) = bounds.values()
    assert most > least + 10_000.0
    assert least - 1000.0 < diagonal < least + 1000.0
    assert diagonal + 5000.0 < full < most


@pytest.mark.long
def test_columns_of_noise_hide_no_clusters():
    """150 rows: 3 clusters in 3 of 63 columns."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=150)
    noisy = np.column_stack(
        [rng.normal(0.0, 6.0, (3, 3))[truth] + rng.normal(size=(150, 3)), rng.normal(size=(150, 60))]
    )
    found = Mixture(random_state=0, n_jobs=1).fit(noisy)
    assert found.n_clusters_ == 3
    assert adjusted_rand_score(truth, found.labels_) > 0.95
    kappa = found.model_.likelihood.mean_precision
    assert kappa[:3].max() < 1.0 < kappa[3:].min()


def test_one_column_with_heavy_tails_has_one_cluster():
    X = np.random.default_rng([100, 1]).standard_t(4, (100, 1))
    found = Mixture(random_state=0, n_jobs=1).fit(X)
    assert isinstance(found.model_.likelihood, StudentT)
    assert found.n_clusters_ == 1
