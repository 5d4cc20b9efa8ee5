"""The likelihood that hidden Markov models choose for the rows of sequences."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from stickbreak import HMM, load
from stickbreak.data import ArraySource, SequenceSource
from stickbreak.estimators._automatic import automatic
from stickbreak.estimators._state_selection import StateContest
from stickbreak.likelihoods import (
    AutoregressiveGaussian,
    Categorical,
    DiagonalGaussian,
    Gaussian,
    Poisson,
    Product,
)

N = 480  # rows
LENGTHS = [300, 180]
SMALL = {"random_state": 0, "n_jobs": 1}
SHORT = {"max_laps": 60, **SMALL}  # families and states are found in half of these laps; excursions follow
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def states(seed=0, n=N, K=3, stay=40):
    return np.repeat(np.random.default_rng(seed).permutation(np.arange(n // stay) % K), stay)


def swings(D=2, seed=0):
    """Autoregressive rows in three states that last."""
    rng, z = np.random.default_rng(seed), states(seed)
    X = np.zeros((len(z), D))
    for t in range(1, len(z)):
        X[t] = np.array([0.95, -0.8, 0.3])[z[t]] * X[t - 1] + rng.standard_normal(D)
    return X


def levels(shape, seed=0):
    """Rows about the means of three states, with columns that are correlated or not."""
    rng, z = np.random.default_rng(seed), states(seed)
    return rng.normal(size=(len(z), len(shape))) @ np.array(shape) + 8.0 * z[:, None]


DATA = {
    "autoregressive_gaussian": swings(),
    "gaussian": levels([[1.0, 0.9], [0.0, 0.4]]),
    "diagonal_gaussian": levels([[1.0, 0.0], [0.0, 1.0]]),
}


@pytest.fixture(scope="module")
def models():
    return {family: HMM(**SHORT).fit(X, lengths=LENGTHS) for family, X in DATA.items()}


@cache
def of_one_column():
    """A fit of one autoregressive column, which no test may change."""
    return HMM(**SHORT).fit(swings(1))


@pytest.mark.parametrize("family", DATA)
def test_the_family_is_that_of_the_rows(models, family, tmp_path):
    model = models[family]
    assert model.get_params()["likelihood"] == "auto"
    assert {candidate.family for candidate in model.selection_} == {*DATA, "autoregressive_gaussian of order 2"}
    assert model.selection_[0].family == family
    bounds = [candidate.lower_bound for candidate in model.selection_]
    assert bounds == sorted(bounds, reverse=True)
    assert model.n_states_ == 3
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.selection_ == model.selection_
    np.testing.assert_array_equal(again.predict(DATA[family], LENGTHS), model.labels_)


@pytest.mark.parametrize("family", DATA)
def test_the_fit_is_that_of_the_family_given(models, family):
    given = HMM(family, **SHORT).fit(DATA[family], lengths=LENGTHS)
    assert given.selection_ == []
    assert given.lower_bounds_ == models[family].lower_bounds_


@pytest.mark.long
def test_one_column_may_be_autoregressive():
    assert isinstance(of_one_column().model_.likelihood, AutoregressiveGaussian)
    column = levels([[1.0]])
    found = HMM(**SHORT).fit(column)
    assert isinstance(found.model_.likelihood, DiagonalGaussian)
    assert len(found.selection_) == 3


def test_a_process_that_swings_has_one_state():
    rng = np.random.default_rng(0)
    X = np.zeros((1200, 1))
    for t in range(2, len(X)):
        X[t] = 1.2 * X[t - 1] - 0.8 * X[t - 2] + rng.standard_normal()
    found = HMM(max_laps=120, **SMALL).fit(X)
    assert found.selection_[0].family == "autoregressive_gaussian of order 2"
    assert found.model_.likelihood.order == 2
    assert found.n_states_ == 1
    assert found.data_check_ == []


def test_a_model_that_chose_autoregressive_rows_does_what_others_do(models):
    model, X = models["autoregressive_gaussian"], DATA["autoregressive_gaussian"]
    assert model.predict_proba(X, LENGTHS).shape == (N, 3)
    assert np.isfinite(model.score(X, lengths=LENGTHS))
    assert model.sample(50)[0].shape == (50, 2)
    assert model.merge_states(2, X, LENGTHS).n_states_ == 2
    continued = HMM(init=model, moves=(), max_laps=5, **SMALL).fit(X, lengths=LENGTHS)
    assert continued.lower_bound_ == pytest.approx(model.lower_bound_, abs=1.0)
    grown = HMM(max_laps=5, **SMALL).partial_fit(X, lengths=LENGTHS).partial_fit(swings(seed=1))
    assert grown.summary_.N.sum() == pytest.approx(2 * N - 3)


def test_bounds_are_of_the_same_rows():
    """The first row of a sequence says nothing of independent rows where autoregressive ones cannot count it.

    In short searches: whole fits, whose parameters come from all rows, are not compared where some rows have labels.
    """
    X, far = DATA["gaussian"], DATA["gaussian"].copy()
    far[[0, 300]] = 1000.0
    found, other = (
        {c.family: c.lower_bound for c in HMM(max_laps=8, **SMALL).fit(rows, one_label(N), lengths=LENGTHS).selection_}
        for rows in (X, far)
    )
    for family in ("gaussian", "diagonal_gaussian"):
        assert found[family] == other[family]


def test_rows_without_history_are_those_that_had_none():
    X = np.arange(24.0).reshape(12, 2)
    X[[5, 9]] = np.nan
    lagged = SequenceSource(X, np.array([7, 5])).with_lags(1)
    alone = lagged.with_fewer_lags(0)
    assert lagged.lags == 1
    assert alone.lags == 0
    np.testing.assert_array_equal(np.flatnonzero(lagged.weights), [1, 2, 3, 4, 8, 11])
    np.testing.assert_array_equal(alone.weights, lagged.weights)
    np.testing.assert_array_equal(alone.edges, lagged.edges)
    np.testing.assert_array_equal(alone.take(alone.present())[0], X[[1, 2, 3, 4, 8, 11]])
    assert alone.with_lags(0) is alone
    twice = SequenceSource(X, np.array([7, 5])).with_lags(2)
    once = twice.with_fewer_lags(1)
    assert once.lags == 1
    np.testing.assert_array_equal(once.weights, twice.weights)
    np.testing.assert_array_equal(once.flat.take(np.array([2]))[0], [[*X[2], *X[1]]])


def test_short_sequences_are_not_taken_for_autoregressive():
    found = HMM(max_laps=5, **SMALL).fit(DATA["autoregressive_gaussian"], lengths=[8] * (N // 8))
    assert {candidate.family for candidate in found.selection_} == {"gaussian", "diagonal_gaussian"}


def test_other_columns_have_the_families_that_mixtures_try():
    rng = np.random.default_rng(3)
    z = states()
    bits = (rng.random((N, 3)) < np.array([0.1, 0.5, 0.9])[z][:, None]).astype(float)
    found = HMM(max_laps=5, **SMALL).fit(bits)
    assert type(found.model_.likelihood).__name__ == "Bernoulli"
    assert found.selection_ == []
    counts = rng.poisson(np.array([1.0, 5.0, 20.0])[z][:, None], (N, 2)).astype(float)
    names = [c.family for c in HMM(max_laps=5, **SMALL).fit(counts).selection_]
    assert set(names) == {"poisson", "diagonal_gaussian, counts too", "gaussian, counts too"}
    holes = DATA["gaussian"].copy()
    holes[7, 0] = np.nan
    found = HMM(max_laps=5, **SMALL).fit(holes)
    assert isinstance(found.model_.likelihood, DiagonalGaussian)
    assert found.selection_ == []


def codes(n=900):
    """Codes 0 to 3 in three states that have each code, at other rates that do not grow or fall with it."""
    rng = np.random.default_rng(0)
    rates = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7], [0.4, 0.05, 0.5, 0.05]])
    return np.array([[rng.choice(4, p=rates[k])] for k in states(n=n, stay=30)], float)


def test_codes_are_not_taken_for_counts(tmp_path):
    X = codes()
    found = HMM(**SHORT).fit(X)
    families = {candidate.family for candidate in found.selection_}
    assert families == {"poisson", "diagonal_gaussian, counts too", "categorical, counts as categories"}
    assert found.selection_[0].family == "categorical, counts as categories"
    assert found.n_states_ == 3
    assert found.lower_bounds_ == HMM("categorical", **SHORT).fit(X).lower_bounds_
    with pytest.raises(ValueError, match=r"Input X contains 4: row 1, column 0\. Categorical takes codes of levels"):
        found.predict(np.array([[0.0], [4.0]]))
    found.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.selection_ == found.selection_
    np.testing.assert_array_equal(again.predict(X), found.labels_)


def test_codes_beside_other_columns_are_found_too():
    rng = np.random.default_rng(1)
    X = np.hstack([codes(), codes()[::-1], rng.normal(states(n=900, stay=30)[:, None])])
    likelihood = HMM(max_laps=20, **SMALL).fit(X).model_.likelihood
    assert isinstance(likelihood, Product)
    assert {type(part): columns.tolist() for part, columns in likelihood.parts.values()} == {
        DiagonalGaussian: [2],
        Categorical: [0, 1],
    }


@pytest.mark.parametrize(("n", "rates"), [(300, [0.5, 3.0]), (2000, [0.7, 5.0]), (10_000, [3.0])])
def test_counts_of_few_values_are_still_counts(n, rates):
    rng = np.random.default_rng(1)
    X = rng.poisson(np.array(rates)[states(n=n, K=len(rates), stay=20)][:, None]).astype(float)
    found = HMM(max_laps=40, **SMALL).fit(X)
    assert {"poisson", "categorical, counts as categories"} <= {candidate.family for candidate in found.selection_}
    assert isinstance(found.model_.likelihood, Poisson)
    assert found.n_states_ == len(rates)


@pytest.mark.parametrize("values", [[0, 1, 2, 4], [0, 1, 2, 30], [1, 2, 3, 4], [0, 1, 2, 3.5]])
def test_numbers_with_gaps_or_many_values_are_no_codes(values):
    X = np.tile(np.array(values, float), 100)[:, None]
    families = automatic(ArraySource(X), {}, coded=True)
    assert families.keys() == automatic(ArraySource(X), {}).keys()
    few = automatic(ArraySource(np.tile(np.arange(4.0), 100)[:, None]), {}, coded=True)
    assert "categorical, counts as categories" in few


def test_missing_rows_and_wrong_values():
    X = DATA["autoregressive_gaussian"].copy()
    X[100:110] = np.nan
    assert HMM(max_laps=5, **SMALL).fit(X).selection_[0].family == "autoregressive_gaussian"
    X[300, 1] = np.inf
    with pytest.raises(ValueError, match=r"row 300, column 1 \('b'\)"):
        HMM(**SMALL).fit(pd.DataFrame(X, columns=["a", "b"]))
    with pytest.raises(ValueError, match="no row has an observation"):
        HMM(**SMALL).fit(np.full((5, 2), np.nan))


def test_the_states_of_a_model_decide_which_families_are_tried(models):
    X = DATA["autoregressive_gaussian"]
    start = HMM(Gaussian(), max_laps=5, **SMALL).fit(X)
    found = HMM(init=start, max_laps=3, moves=(), **SMALL).fit(X)
    assert {candidate.family for candidate in found.selection_} == {"gaussian", "diagonal_gaussian"}


@pytest.mark.long
def test_states_that_differ_in_one_of_many_columns_are_not_taken_for_a_process():
    """No birth divides them, and one state of rows that follow their history would explain them better than one without."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 20))
    X[:, 7] += 3.0 * (np.arange(1500) // 50 % 2)
    found = HMM(**SHORT).fit(X)
    assert found.selection_[0].family == "diagonal_gaussian"
    assert found.n_states_ == 2


@pytest.mark.long
def test_families_are_compared_with_the_states_that_the_best_of_them_finds():
    """Six states that differ in variance alone: a short search with any family may miss some."""
    rng = np.random.default_rng(1)
    z = np.repeat(rng.integers(6, size=100), 20)
    X = rng.standard_normal((2000, 2)) * 2.0 ** z[:, None]
    found = HMM(**SHORT).fit(X)
    assert found.selection_[0].family == "diagonal_gaussian"
    assert {candidate.n_clusters for candidate in found.selection_} == {6}
    assert found.n_states_ == 6


def cycles(n=300):
    """Counts that rise and fall in uneven cycles, more spread than those of events: states of both families overlap."""
    rng = np.random.default_rng(4)
    phase = np.cumsum(rng.normal(1.0 / 11.0, 0.004, n))
    mean = rng.uniform(50.0, 150.0, 60)[phase.astype(int)] * np.abs(np.sin(np.pi * phase)) ** 1.5
    return np.maximum(np.round(rng.normal(mean, 2.0 + 0.12 * mean)), 0.0)[:, None]


def one_label(n):
    """The label of one row of n: whole fits are then not compared."""
    return np.where(np.arange(n) == 1, 0, -1)


def longer_looks(monkeypatch, X, seed=0):
    """The candidates of a choice by short searches alone, best first, and which of them were looked at for longer."""
    contests, looked = [], []
    following, reconsider = StateContest._following, StateContest.reconsider

    def counted(self, entry, path, excursions=0):
        if excursions:
            looked.append(entry.candidate.family)
        return following(self, entry, path, excursions)

    def ended(self):
        reconsider(self)
        contests.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(StateContest, "_following", counted)
    monkeypatch.setattr(StateContest, "reconsider", ended)
    with pytest.raises(KeyboardInterrupt):
        HMM(random_state=seed, n_jobs=1, max_laps=500).fit(X, one_label(len(X)))
    return [candidate.family for candidate in contests[0].candidates], looked


def test_families_that_are_close_are_looked_at_for_as_long(monkeypatch):
    """Whole fits of the Gaussian rows end 19 nats ahead; their search began 2 nats behind, with a state less."""
    found, looked = longer_looks(monkeypatch, cycles(), seed=1)
    assert sorted(looked) == ["diagonal_gaussian, counts too", "poisson"]
    assert found[0] == "diagonal_gaussian, counts too"


def test_families_that_are_far_behind_are_not(monkeypatch):
    found, looked = longer_looks(monkeypatch, DATA["autoregressive_gaussian"])
    assert looked[0] == "autoregressive_gaussian"
    assert found[-1] not in looked


@pytest.mark.parametrize("value", [0.0, *(pytest.param(v, marks=pytest.mark.long) for v in (0.1, 7.0))])
def test_a_constant_column_decides_no_family(value):
    x = swings(1)
    X = np.hstack([x, np.full_like(x, value)])
    alone = of_one_column()
    found = HMM(**SHORT).fit(X)
    assert found.selection_[0].family == alone.selection_[0].family == "autoregressive_gaussian"
    assert found.n_states_ == alone.n_states_
    assert alone.lower_bound_ - 10.0 * alone.n_states_ < found.lower_bound_ < alone.lower_bound_
