"""Families of states of which only whole fits tell which is better: those that short searches put first are fitted."""

from functools import cache

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from stickbreak import HMM
from stickbreak.estimators import _runners_up, hmm
from stickbreak.inference import StateSearch
from stickbreak.likelihoods import AutoregressiveGaussian

SMALL = {"random_state": 0, "n_jobs": 1}
FIRST, SECOND = "autoregressive_gaussian of order 2", "autoregressive_gaussian"


def wave(n=200):
    """A sine wave with noise: short searches find one state of second order, or many poor ones of first order."""
    rng = np.random.default_rng(3)
    t = np.arange(n)
    period = rng.uniform(10.0, 40.0)
    signal = np.sin(2.0 * np.pi * t / period + rng.uniform(0.0, 6.0)) * rng.uniform(1.0, 3.0)
    return (signal + rng.uniform(0.1, 0.6) * rng.standard_normal(n))[:, None]


@cache
def fitted():
    """A fit of the wave, which no test may change, and how many searches that are no part of the choice it took."""
    runs = []
    run = StateSearch.run

    def counted(self, start):
        runs.append(self.model.likelihood)
        run(self, start)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StateSearch, "run", counted)
        found = HMM(**SMALL).fit(wave())
    return found, runs


def test_the_better_of_two_whole_fits_is_taken():
    found, _ = fitted()
    given = {FIRST: HMM(AutoregressiveGaussian(order=2), **SMALL), SECOND: HMM("autoregressive_gaussian", **SMALL)}
    bounds = {name: model.fit(wave()).lower_bounds_ for name, model in given.items()}
    assert bounds[SECOND][-1] > bounds[FIRST][-1] + 5.0
    assert found.lower_bounds_ == bounds[SECOND]
    assert found.n_states_ == given[SECOND].n_states_


def test_no_fit_is_made_twice():
    found, runs = fitted()
    assert [likelihood.order for likelihood in runs] == [2, 1]
    assert [candidate.family for candidate in found.selection_[:2]] == [SECOND, FIRST]
    assert found.selection_[0].n_clusters == found.n_states_
    bounds = [candidate.lower_bound for candidate in found.selection_]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] < found.lower_bound_  # which has a row more, and learns for nothing


def test_where_fits_take_long_the_first_family_is_taken(monkeypatch):
    monkeypatch.setattr(_runners_up, "LONG", 0.0)
    found = HMM(max_laps=30, **SMALL)
    with pytest.warns(ConvergenceWarning):
        found.fit(wave())
    assert found.selection_[0].family == FIRST
    given = HMM(AutoregressiveGaussian(order=2), max_laps=30, **SMALL)
    with pytest.warns(ConvergenceWarning):
        assert found.lower_bounds_ == given.fit(wave()).lower_bounds_


def sawtooth(n=200, period=16):
    """A sawtooth with noise: its levels are states in order, of which short searches find two."""
    noise = 0.3 * np.random.default_rng(2).standard_normal(n)
    return (2.5 * (np.arange(n) % period) / period + noise)[:, None]


def test_the_best_of_another_kind_than_the_first_two_is_fitted_too():
    found = HMM(**SMALL).fit(sawtooth())
    best, second, third = found.selection_
    assert best.family == "diagonal_gaussian"
    assert {second.family, third.family} == {FIRST, SECOND}
    assert best.lower_bound > second.lower_bound + 5.0


def bounds_of(model):
    """The bound of each family."""
    return {candidate.family: candidate.lower_bound for candidate in model.selection_}


def interrupt_second(monkeypatch, laps):
    """Let Ctrl-C end the second search that is no part of the choice, before its first lap, or after its first ascent."""
    run = StateSearch.run
    searches = []

    def interrupted(self, start):
        searches.append(self)
        if len(searches) == 2:
            if laps:
                self.begin(start)
            raise KeyboardInterrupt
        run(self, start)

    monkeypatch.setattr(StateSearch, "run", interrupted)


@pytest.mark.parametrize("laps", [0, 5])
def test_an_interrupt_of_the_second_fit_keeps_the_better_so_far(monkeypatch, laps):
    interrupt_second(monkeypatch, laps)
    found = HMM(max_laps=laps or 40, **SMALL)
    with pytest.warns(ConvergenceWarning, match=r"interrupted after \d+ laps"):
        found.fit(wave())
    assert found.selection_[0].family == FIRST
    assert found.data_check_ == []
    assert not found.converged_


def fail_second_setup(monkeypatch, error):
    """Let an error end the setup of the second fit."""
    setup = hmm.sequence_setup
    setups = []

    def failing(*given):
        setups.append(given)
        if len(setups) == 2:
            raise error
        return setup(*given)

    monkeypatch.setattr(hmm, "sequence_setup", failing)


def assert_first(found):
    """A fit is that of the first family, given."""
    given = HMM(AutoregressiveGaussian(order=2), max_laps=40, **SMALL)
    with pytest.warns(ConvergenceWarning):
        given.fit(wave())
    assert found.selection_[0].family == FIRST
    assert found.lower_bounds_ == given.lower_bounds_


def test_an_interrupt_while_the_second_fit_is_set_up_keeps_the_first(monkeypatch):
    fail_second_setup(monkeypatch, KeyboardInterrupt())
    found = HMM(max_laps=40, **SMALL)
    with pytest.warns(ConvergenceWarning, match=r"interrupted after \d+ laps"):
        found.fit(wave())
    assert not found.converged_
    assert_first(found)


@pytest.mark.parametrize("error", [MemoryError("no room"), ValueError("no rows"), TypeError("no device")])
def test_an_error_while_the_second_fit_is_set_up_keeps_the_first(monkeypatch, error):
    fail_second_setup(monkeypatch, error)
    found = HMM(max_laps=40, **SMALL)
    failed = rf"{SECOND}, to compare with {FIRST}, failed \({type(error).__name__}: {error}\); give likelihood="
    with pytest.warns(ConvergenceWarning), pytest.warns(RuntimeWarning, match=failed):
        found.fit(wave())
    assert_first(found)


def test_a_checkpoint_goes_on_with_the_second_fit(monkeypatch, tmp_path):
    path = tmp_path / "fit.safetensors"
    with pytest.MonkeyPatch.context() as patch:
        interrupt_second(patch, 5)
        with pytest.warns(ConvergenceWarning):
            HMM(checkpoint=path, **SMALL).fit(wave())
    whole, _ = fitted()
    for run in (StateSearch.run, None):  # the second time the fit is over, and nothing is searched
        monkeypatch.setattr(StateSearch, "run", run)
        found = HMM(checkpoint=path, **SMALL).fit(wave())
        assert found.lower_bounds_ == whole.lower_bounds_
        assert found.model_.bound(found.summary_) == whole.model_.bound(whole.summary_)
        assert bounds_of(found) == bounds_of(whole)


def test_given_starts_moves_and_labels_have_one_fit(monkeypatch):
    X = wave()
    y = np.full(len(X), -1)
    y[100:110] = 1
    fits = []
    of = _runners_up.Fit.of
    monkeypatch.setattr(_runners_up.Fit, "of", lambda *given: fits.append(given) or of(*given))
    for options, labels in (({"moves": ()}, None), ({"init": "blocks", "n_init_states": 3}, None), ({}, y)):
        with pytest.warns(ConvergenceWarning):
            HMM(max_laps=3, **options, **SMALL).fit(X, labels)
    assert fits == []
