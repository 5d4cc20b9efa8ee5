"""Crossings of the states of two models, and the search that makes them: what each has right is together in the start."""

from dataclasses import replace

import numpy as np
import pytest

from stickbreak import HMM
from stickbreak.allocations import FiniteMarkovChain, HDPMarkovChain
from stickbreak.data import SequenceSource
from stickbreak.inference.states import pairs as pair_search
from stickbreak.inference.states import search as state_search
from stickbreak.inference.states import sizes
from stickbreak.inference.states.crossing import LEAST, crossed_states
from stickbreak.likelihoods import Gaussian, Sample
from stickbreak.model import SEQUENCES, Model

LENGTHS = np.array([700, 1, 299])


def chain(allocation, K=4):
    rng = np.random.default_rng(0)
    z = np.repeat(rng.integers(K, size=100), 10)
    X = rng.standard_normal((len(z), 3)) + 6.0 * np.eye(K, 3)[z]
    return Model(Gaussian().resolve(Sample.of(X)), allocation, SEQUENCES), SequenceSource(X, LENGTHS), z


@pytest.mark.parametrize(
    "allocation", [HDPMarkovChain(2.0, 5.0), FiniteMarkovChain(3, 3.0, 2.0)], ids=["hdp", "finite"]
)
def test_a_crossing_has_what_each_of_two_paths_has_right(allocation):
    """The one has states 2 and 3 as one, the other 0 and 1; there may be more states than the allocation has room for."""
    model, source, z = chain(allocation)
    found = crossed_states(model, source, np.minimum(z, 2), np.maximum(z, 1), 10)
    np.testing.assert_array_equal(np.sort(found.N), np.sort(np.bincount(z)))
    assert found.M.sum() == len(z) - len(LENGTHS)
    assert found.begins.sum() == len(LENGTHS)


def test_small_pieces_stay_where_they_are():
    model, source, z = chain(HDPMarkovChain(2.0, 5.0), K=3)
    other = z.copy()
    other[np.flatnonzero(z == 0)[: LEAST - 1]] = 1
    other[np.flatnonzero(z == 2)[:LEAST]] = 0
    found = crossed_states(model, source, z, other, 10)
    rows = np.bincount(z)
    assert sorted(found.N) == sorted([LEAST - 1, rows[0] - LEAST + 1, rows[1], rows[2] - LEAST, LEAST])


def test_a_crossing_merges_to_as_many_as_asked():
    model, source, z = chain(HDPMarkovChain(2.0, 5.0))
    found = crossed_states(model, source, z, np.arange(len(z)) // 250, 6)
    assert found.K == 6
    assert found.N.sum() == len(z)


def symbols(K, n, seed):
    """Symbols of K states that last five rows on average, each of which has two of them, and the next has one."""
    rng = np.random.default_rng(seed)
    z = np.repeat(rng.integers(K, size=n // 5), 5)
    return ((z + rng.integers(2, size=len(z))) % (K + 1)).astype(float)[:, None], z


@pytest.fixture
def long_laps(monkeypatch):
    monkeypatch.setattr(sizes, "TUNING", replace(sizes.TUNING, many_rows=1000, long_lap=0))
    tuning = replace(pair_search.TUNING, first=8, crossing=10, reaches=(4, 2, 1))
    monkeypatch.setattr(pair_search, "TUNING", tuning)
    return tuning


@pytest.mark.filterwarnings("ignore:not converged")
def test_where_laps_take_long_states_from_pairs_of_rows_are_crossed(long_laps):
    """On all rows; what is in hand never gets worse, and moves are asked for only once crossed states have settled."""
    X, z = symbols(6, 4000, 1)
    fit = HMM("categorical", random_state=0, max_laps=200).fit(X)
    begins = [next(lap for lap in fit.history_ if lap.ascent == i) for i in range(1, fit.history_[-1].ascent + 1)]
    later = ["pairs of rows", "crossed"]
    assert [lap.origin for lap in begins][:6] == ["pairs of rows", *later, *later, "removals"]
    assert all(lap.sample_rows == 0 for lap in fit.history_)
    assert sum(lap.ascent == 1 for lap in fit.history_) <= long_laps.first
    assert {lap.origin for lap in fit.history_ if any(move.kind != "delete" for move in lap.moves)} <= {"removals"}
    assert (np.diff(fit.lower_bounds_) >= -1e-9 * abs(fit.lower_bound_)).all()
    truth = HMM("categorical", random_state=0, init=z, moves=()).fit(X)
    assert fit.lower_bound_ >= truth.lower_bound_ - fit.n_states_


@pytest.mark.filterwarnings("ignore:not converged")
def test_where_only_one_start_has_many_states_removals_follow(long_laps, monkeypatch):
    monkeypatch.setattr(pair_search, "TUNING", replace(long_laps, reaches=(4,)))
    X, z = symbols(4, 3000, 2)
    fit = HMM("categorical", random_state=0, max_laps=100).fit(X)
    assert list(dict.fromkeys(lap.origin for lap in fit.history_)) == ["pairs of rows", "removals"]
    assert {move.kind for lap in fit.history_ for move in lap.moves if move.tried} == {"merge", "delete"}
    assert fit.lower_bound_ >= HMM("categorical", init=z, moves=()).fit(X).lower_bound_ - fit.n_states_


@pytest.mark.parametrize("laps", [1, 5, 12, 25])
@pytest.mark.filterwarnings("ignore:not converged")
def test_a_search_from_pairs_ends_when_it_is_out_of_laps(long_laps, laps):
    fit = HMM("categorical", random_state=0, max_laps=laps).fit(symbols(4, 3000, 2)[0])
    assert fit.n_laps_ == laps
    assert not fit.converged_


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("limits", [{"long_lap": 1 << 40}, {"path_rows": 2999}, {"longest_lap": 0}])
def test_elsewhere_a_search_of_many_rows_begins_on_a_sample(long_laps, monkeypatch, limits):
    monkeypatch.setattr(state_search, "TUNING", replace(state_search.TUNING, sample_rows=800))
    monkeypatch.setattr(sizes, "TUNING", replace(sizes.TUNING, **limits))
    fit = HMM("categorical", random_state=0, max_laps=40).fit(symbols(4, 3000, 3)[0])
    assert fit.history_[0].sample_rows > 0


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:not converged")
def test_where_pairs_left_few_states_excursions_follow(long_laps, monkeypatch):
    """What pairs do not tell apart, all rows may."""
    rng = np.random.default_rng(0)
    z = np.repeat(rng.integers(3, size=300), 20)
    X = rng.poisson(np.array([[0.3, 1.0, 1.3], [0.4, 0.9, 1.6], [3.0, 8.0, 2.0]])[z]).astype(float)
    monkeypatch.setattr(sizes, "TUNING", replace(sizes.TUNING, many_rows=1000, long_lap=len(X) * 5**2))
    fit = HMM("poisson", random_state=0, max_laps=400).fit(X)
    origins = list(dict.fromkeys(lap.origin for lap in fit.history_))
    assert origins[0] == "pairs of rows"
    assert "segments" in origins
    assert fit.lower_bound_ >= HMM("poisson", init=z, moves=()).fit(X).lower_bound_ - fit.n_states_
