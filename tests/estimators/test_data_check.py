"""Fits warn once of what the data check finds, and keep it."""

import warnings

import numpy as np
import pandas as pd
import pytest

import stickbreak
from stickbreak import HMM, DataWarning, Mixture, TopicModel, load
from stickbreak.likelihoods import Gaussian, LogScale

pytestmark = [
    pytest.mark.filterwarnings("ignore:not converged"),
    pytest.mark.filterwarnings("default::stickbreak.DataWarning"),
]

SIZES = [60, 90]


def rows(constant=True):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(0.0, 8.0, (3, 2)), 50, axis=0) + rng.standard_normal((150, 2))
    return np.column_stack([X, np.ones(150)]) if constant else X


def mixture(**parameters):
    return Mixture("diagonal_gaussian", max_laps=3, random_state=0, **parameters)


FITS = {
    "Mixture": lambda X: mixture().fit(X),
    "Mixture with weights": lambda X: mixture().fit(X, sample_weight=np.full(len(X), 2.0)),
    "HMM": lambda X: HMM("diagonal_gaussian", max_laps=3, random_state=0).fit(X, lengths=SIZES),
    "HMM, first partial fit": lambda X: HMM("diagonal_gaussian", max_laps=3, random_state=0).partial_fit(X),
    "HMM of vectors": lambda X: HMM("autoregressive_gaussian", max_laps=3, random_state=0).fit(X, lengths=SIZES),
    "TopicModel of groups": lambda X: TopicModel("diagonal_gaussian", max_laps=3, random_state=0).fit(X, lengths=SIZES),
}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_warns_once_and_keeps_what_was_found(name):
    with pytest.warns(DataWarning) as caught:
        model = FITS[name](rows())
    ours = [warning for warning in caught if warning.category is DataWarning]
    assert [str(warning.message) for warning in ours] == ["a single value in column 2; leave constant columns out."]
    assert ours[0].filename == __file__
    (finding,) = model.data_check_
    assert (finding.kind, finding.columns, finding.names) == ("constant", (2,), ("column 2",))


@pytest.mark.parametrize("name", FITS)
def test_a_fit_of_fine_rows_finds_nothing(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        assert FITS[name](rows(constant=False)).data_check_ == []


def test_counts_of_words_are_not_checked():
    counts = np.random.default_rng(0).poisson(2.0, (30, 8))
    counts[:, 3] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        assert TopicModel(max_laps=3, random_state=0).fit(counts).data_check_ == []


def test_other_methods_do_not_warn_and_keep_what_was_found():
    X = rows()
    with pytest.warns(DataWarning):
        model = HMM("diagonal_gaussian", max_laps=3, random_state=0).fit(X)
    found = model.data_check_
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        model.predict(X)
        model.score(X)
        model.partial_fit(X)
    assert model.data_check_ is found


def test_the_warning_may_be_an_error_and_the_model_is_kept():
    model = mixture()
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        with pytest.raises(DataWarning, match="constant columns"):
            model.fit(rows())
    assert len(model.data_check_) == 1
    assert model.predict(rows()).shape == (150,)


def test_a_fit_that_fails_keeps_what_an_earlier_one_found():
    with pytest.warns(DataWarning):
        model = mixture().fit(rows())
    before = model.data_check_
    X = rows(constant=False)
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="row 3, column 1"):
        model.fit(X)
    assert model.data_check_ is before
    assert mixture().fit(rows(constant=False)).data_check_ == []


def test_a_frame_with_text_that_names_its_rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rows(), columns=["height", "weight", "unit"])
    frame["ticket"] = [f"A{i}" for i in rng.permutation(150)]
    frame.loc[0, "ticket"] = frame.loc[1, "ticket"]
    frame["score"] = rng.integers(5, size=150)
    with pytest.warns(DataWarning) as caught:
        model = Mixture("auto", max_laps=20, random_state=0).fit(frame)
    assert "almost as many levels as rows in column 'ticket'" in str(caught[0].message)
    assert [(f.kind, f.names) for f in model.data_check_] == [
        ("nearly unique", ("ticket",))
    ]  # "unit" and "score" are counts


def test_what_names_the_rows_for_certain_is_left_out(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=200)
    frame = pd.DataFrame(8.0 * labels[:, None] + rng.standard_normal((200, 2)), columns=["height", "weight"])
    plain = Mixture("auto", random_state=0, n_jobs=1).fit(frame)
    frame.insert(0, "id", np.arange(200) + 7)
    frame["ticket"] = [f"A{i}" for i in rng.permutation(200)]
    with pytest.warns(
        DataWarning, match="left out of the clusters, in columns 'id' and 'ticket'; to keep one"
    ) as caught:
        model = Mixture("auto", random_state=0, n_jobs=1).fit(frame)
    assert len(caught) == 1
    assert [(f.kind, f.names) for f in model.data_check_] == [("set aside", ("id", "ticket"))]
    assert model.n_clusters_ == 3
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert model.lower_bound_ == pytest.approx(plain.lower_bound_)
    assert model.levels_ == {3: []}  # a model that is passed on names no rows
    new = frame.head(9).assign(id=-1.5, ticket=[f"B{i}" for i in range(9)])
    np.testing.assert_array_equal(model.predict(new), model.labels_[:9])
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    drawn, _ = again.sample(5)
    assert all(np.isnan(drawn[:, d].astype(float)).all() for d in (0, 3))
    assert list(again.impute(new)["ticket"]) == list(new["ticket"])
    model.summary()


def test_identifiers_stay_where_the_user_says_what_columns_are_or_there_are_no_others():
    X = np.arange(60.0)[:, None]
    counted = np.hstack([rows(constant=False), np.arange(150.0)[:, None]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert Mixture("auto", max_laps=3, random_state=0).fit(X).model_.likelihood.describes(1).all()
        assert Mixture("gaussian", max_laps=3, random_state=0).fit(counted).model_.likelihood.describes(3).all()
        counted[[0, 1], 2] = counted[[1, 0], 2]  # not in the order of the rows
        assert Mixture("auto", max_laps=3, random_state=0).fit(counted).model_.likelihood.describes(3).all()


def test_the_warning_of_a_long_tail_is_code():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.lognormal(1.0, 1.0, (400, 2)), columns=["income", "price"])
    with pytest.warns(
        DataWarning, match=r"try LogScale\(Gaussian\(\), columns=\['income', 'price'\]\), as likelihood=\"auto\""
    ):
        mixture().fit(frame)
    assert Mixture(LogScale(Gaussian(), columns=["income", "price"]), max_laps=3).fit(frame).data_check_ == []


def test_rows_that_repeat_and_their_cures():
    """Twenty rows five times have no structure, but each repeated row would be a cluster."""
    once = np.random.default_rng(0).standard_normal((20, 2))
    X = np.repeat(once, 5, axis=0)
    with pytest.warns(DataWarning, match="80 of 100 rows repeat others exactly in all columns"):
        assert Mixture("gaussian", random_state=0).fit(X).n_clusters_ > 1
    clusters = Mixture("gaussian", random_state=0).fit(once).n_clusters_
    assert clusters == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        weighted = Mixture("gaussian", random_state=0).fit(X, sample_weight=np.full(100, 0.2))
    assert weighted.n_clusters_ == clusters


def test_a_sensor_that_stood_still():
    rng = np.random.default_rng(0)
    X = np.repeat([0.0, 8.0, 0.0], 200)[:, None] + rng.standard_normal((600, 2))
    for start in range(0, 600, 40):  # for 8 steps each time
        X[start : start + 8] = X[start]
    X[300:340] = rng.standard_normal((40, 2))
    with pytest.warns(
        DataWarning, match=r"98 of 600 rows repeat .* make rows missing \(NaN\) where a sensor stood still"
    ):
        HMM("diagonal_gaussian", max_laps=3, random_state=0).fit(X)
    still = np.append(False, (X[1:] == X[:-1]).all(axis=1))
    X[still] = np.nan
    assert HMM("diagonal_gaussian", max_laps=3, random_state=0).fit(X).data_check_ == []


def test_the_warning_shows_five_findings_and_counts_the_others():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    bad = [X, X[:, [0]], X[:, [1]], X[:, [2]], X[:, [3]], np.arange(300)[:, None], np.ones((300, 1))]
    with pytest.warns(DataWarning) as caught:
        model = mixture().fit(np.hstack(bad))
    lines = str(caught[0].message).splitlines()
    assert len(model.data_check_) == 6
    assert lines[:5] == [str(finding) for finding in model.data_check_[:5]]
    assert lines[5:] == ["1 more in data_check_."]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_is_found_does_not_depend_on_the_number_of_threads(n_jobs):
    X = np.random.default_rng(0).standard_normal((30_000, 3))
    X[::5001] = 1e5
    with pytest.warns(DataWarning):
        model = mixture(n_jobs=n_jobs, moves=()).fit(X)
    assert model.data_check_[0].rows == (0, 5001, 10002, 15003, 20004, 25005)


def test_what_was_found_is_saved(tmp_path):
    X = rows()
    X[7, 0] = 1e5
    with pytest.warns(DataWarning):
        model = mixture().fit(X)
    assert [finding.kind for finding in model.data_check_] == ["constant", "outliers"]
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").data_check_ == model.data_check_


def test_the_class_of_the_warning_is_public():
    assert "DataWarning" in stickbreak.__all__
    assert issubclass(stickbreak.DataWarning, UserWarning)
