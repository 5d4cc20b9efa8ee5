"""Families of states of which only whole fits tell which is better."""

from functools import cache

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from stickbreak import HMM
from stickbreak.estimators import _selection, _state_selection, _whole_fits, hmm
from stickbreak.inference import StateSearch
from stickbreak.likelihoods import AutoregressiveGaussian

SMALL = {"random_state": 0, "n_jobs": 1}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
FIRST = "autoregressive_gaussian of order 2"


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
        found = HMM(max_laps=100, **SMALL).fit(wave())
    return found, runs


def test_the_best_of_whole_fits_is_taken():
    """The third family, which comes close once it follows the states of the second, is fitted, too, and is the best."""
    found, runs = fitted()
    given = [AutoregressiveGaussian(order=2), AutoregressiveGaussian(), "diagonal_gaussian"]
    fits = [HMM(likelihood, max_laps=100, **SMALL).fit(wave()) for likelihood in given]
    assert [type(likelihood) for likelihood in runs] == [type(fit.model_.likelihood) for fit in fits]
    assert found.lower_bounds_ == fits[2].lower_bounds_
    assert found.lower_bound_ > max(fit.lower_bound_ for fit in fits[:2]) + 5.0
    assert [candidate.n_clusters for candidate in found.selection_] == [fit.n_states_ for fit in reversed(fits)]


def test_no_fit_is_made_twice():
    found, runs = fitted()
    assert len(runs) == len(found.selection_) == 3
    assert found.selection_[-1].family == FIRST
    bounds = [candidate.lower_bound for candidate in found.selection_]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] < found.lower_bound_  # which has rows more, and learns for nothing


@pytest.mark.parametrize("rows", [200, 100])
def test_where_fits_take_long_there_is_one_unless_another_family_is_near(monkeypatch, rows):
    """And on a sample of the rows there is one."""
    monkeypatch.setattr(_state_selection, "LONG", 0.0)
    monkeypatch.setattr(_selection, "FEWEST_ROWS", rows)
    found = HMM(max_laps=30, **SMALL)
    with pytest.warns(ConvergenceWarning):
        found.fit(wave())
    assert_first(found, 30)
    setups = count_setups(monkeypatch)
    monkeypatch.setattr(_whole_fits, "NEAR", np.inf)
    with pytest.warns(ConvergenceWarning):
        found.fit(wave())
    assert len(setups) == (3 if rows == 200 else 1)


def sawtooth(n=220, period=16):
    """A sawtooth with noise: its levels are states in order, of which short searches find two."""
    noise = 0.3 * np.random.default_rng(2).standard_normal(n)
    return (2.5 * (np.arange(n) % period) / period + noise)[:, None]


@pytest.mark.long
def test_the_best_of_another_kind_than_the_first_two_is_fitted_too():
    found = HMM(**SMALL).fit(sawtooth())
    best, second, third = found.selection_
    assert best.family == "diagonal_gaussian"
    assert {second.family, third.family} == {FIRST, "autoregressive_gaussian"}
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


def count_setups(monkeypatch, error=None):
    """The setups of fits from now on; an error, if there is one, ends the second."""
    setup = hmm.sequence_setup
    setups = []

    def counted(*given):
        setups.append(given)
        if len(setups) == 2 and error is not None:
            raise error
        return setup(*given)

    monkeypatch.setattr(hmm, "sequence_setup", counted)
    return setups


def assert_first(found, laps=40):
    """A fit is that of the first family, given."""
    given = HMM(AutoregressiveGaussian(order=2), max_laps=laps, **SMALL)
    with pytest.warns(ConvergenceWarning):
        given.fit(wave())
    assert found.selection_[0].family == FIRST
    assert found.lower_bounds_ == given.lower_bounds_


def test_an_interrupt_while_the_second_fit_is_set_up_keeps_the_first(monkeypatch):
    count_setups(monkeypatch, KeyboardInterrupt())
    found = HMM(max_laps=40, **SMALL)
    with pytest.warns(ConvergenceWarning, match=r"interrupted after \d+ laps"):
        found.fit(wave())
    assert not found.converged_
    assert_first(found)


@pytest.mark.parametrize("error", [MemoryError("no room"), ValueError("no rows"), TypeError("no device")])
def test_an_error_while_the_second_fit_is_set_up_keeps_the_first(monkeypatch, error):
    count_setups(monkeypatch, error)
    found = HMM(max_laps=40, **SMALL)
    failed = (
        rf"{FIRST}: comparing them with other families failed \({type(error).__name__}: {error}\); give likelihood="
    )
    with pytest.warns(ConvergenceWarning), pytest.warns(RuntimeWarning, match=failed):
        found.fit(wave())
    assert_first(found)


@pytest.mark.long
def test_a_checkpoint_goes_on_with_the_second_fit(monkeypatch, tmp_path):
    X = wave(80)
    path = tmp_path / "fit.safetensors"
    with pytest.MonkeyPatch.context() as patch:
        interrupt_second(patch, 5)
        with pytest.warns(ConvergenceWarning):
            HMM(checkpoint=path, **SMALL).fit(X)
    whole = HMM(**SMALL).fit(X)
    for run in (StateSearch.run, None):  # the second time the fit is over, and nothing is searched
        monkeypatch.setattr(StateSearch, "run", run)
        found = HMM(checkpoint=path, **SMALL).fit(X)
        assert found.lower_bounds_ == whole.lower_bounds_
        assert found.model_.bound(found.summary_) == whole.model_.bound(whole.summary_)
        assert bounds_of(found) == bounds_of(whole)


def test_given_starts_moves_and_labels_have_one_fit(monkeypatch):
    X = wave()
    y = np.full(len(X), -1)
    y[100:110] = 1
    fits = []
    monkeypatch.setattr(_whole_fits.WholeFits, "run", fits.append)
    for options, labels in (({"moves": ()}, None), ({"init": "blocks", "n_init_states": 3}, None), ({}, y)):
        with pytest.warns(ConvergenceWarning):
            HMM(max_laps=3, **options, **SMALL).fit(X, labels)
    assert fits == []
