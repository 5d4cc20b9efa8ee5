"""Excursions from states in phases, also of each age: when there are any, and on what terms."""

from types import SimpleNamespace

import numpy as np
import pytest

from stickbreak import HMM
from stickbreak.allocations import FiniteMarkovChain, HDPMarkovChain
from stickbreak.data import SequenceSource
from stickbreak.inference import Options, Session, Threads
from stickbreak.inference.states import kinds as kinds_of_excursions
from stickbreak.inference.states import search as state_search
from stickbreak.likelihoods import DiagonalGaussian, Sample
from stickbreak.model import SEQUENCES, Model
from stickbreak.model.sequences import labelled
from stickbreak.moves.ages import Aged


def search_of(threads, durations):
    """After its first ascent, from three states in turn, of these durations."""
    z = np.repeat(np.arange(len(durations)) % 3, durations)
    X = 4.0 * z[:, None] + np.random.default_rng(0).standard_normal((len(z), 2))
    model = Model(DiagonalGaussian().resolve(Sample.of(X)), HDPMarkovChain(2.0, 5.0), SEQUENCES)
    source = SequenceSource(X, np.array([len(z)]))
    moves = ("birth", "merge", "delete")
    search = state_search.StateSearch(
        model, source, moves, Session(threads), np.random.default_rng(0), Options(1, 200, 1e-3, check=True)
    )
    search.begin(model.ordered(labelled(model.likelihood, source, z)))
    return search


def test_a_start_in_phases_is_tried_twice_unless_it_led_as_far_as_hoped():
    with Threads(1) as threads:
        search = search_of(threads, np.full(240, 5))
        kinds = search.kinds
        start = kinds.phases.change(search.outcome)
        assert start.K == 15
        assert not kinds.phases.terms.transitions_unlearnt
        assert kinds.phases_anew.terms.transitions_unlearnt
        again = kinds.phases_anew.change(search.outcome)
        np.testing.assert_array_equal(again.S, start.S)
        assert kinds.phases_anew.change(search.outcome) is None
        kinds.phases.change(search.outcome)
        assert kinds.phases_anew.change(SimpleNamespace(bound=0.0)) is None
        assert search._pays(kinds.phases)
        assert search.outcome.total.K == 15


def test_the_best_start_in_phases_is_kept_until_its_turn():
    with Threads(1) as threads:
        few, none = (
            search_of(threads, np.full(240, 5)),
            search_of(threads, np.random.default_rng(1).geometric(0.2, 240)),
        )
        kinds = none.kinds
        assert kinds.phases.change(none.outcome) is None
        few.kinds.look_at_durations(few.outcome)
        one = SimpleNamespace(total=SimpleNamespace(K=1))
        assert few.kinds.phases.change(one).K == 15
        assert few.kinds.phases_anew.change(few.outcome) is not None
        assert few.kinds.phases.change(one) is None


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("seed", range(2))
def test_states_of_a_chain_are_never_in_phases(seed):
    rng = np.random.default_rng(seed)
    z = np.repeat(np.arange(200) % 3, rng.geometric(0.1, 200))
    X = 3.0 * z[:, None] + rng.standard_normal((len(z), 1))
    found = HMM("diagonal_gaussian", max_laps=100, n_jobs=1, random_state=seed).fit(X)
    assert found.n_states_ == 3
    assert not any(lap.origin.startswith(("phases", "ages")) for lap in found.history_)


@pytest.mark.filterwarnings("ignore:not converged")
def test_phases_are_no_more_than_there_may_be():
    z = np.arange(600) // 5 % 3
    X = 4.0 * z[:, None] + np.random.default_rng(0).standard_normal((600, 1))
    given = {"allocation": FiniteMarkovChain(6), "max_laps": 100, "n_jobs": 1, "random_state": 0}
    found = HMM("diagonal_gaussian", **given).fit(X)
    assert "phases" in {lap.origin for lap in found.history_}
    assert found.n_states_ <= 6


def test_a_start_of_each_age_is_tried_again_with_transitions_as_given_unless_it_paid():
    with Threads(1) as threads:
        search = search_of(threads, np.full(240, 5))
        kinds = search.kinds
        start = kinds.ages.change(search.outcome)
        assert start.K == 15
        assert kinds.ages.terms.transitions_fitted
        assert kinds.ages_anew.terms.transitions_unlearnt
        assert kinds.ages_anew.change(search.outcome) is start
        assert kinds.ages_anew.change(search.outcome) is None
        assert kinds.ages.change(search.outcome) is None  # durations of this model are known
        better = SimpleNamespace(total=search.total, model=search.found, bound=search.outcome.bound + 10.0)
        assert kinds.ages.change(better) is not None
        assert kinds.ages_anew.change(SimpleNamespace(bound=better.bound + 1.0)) is None
        assert kinds.ages.change(SimpleNamespace(total=SimpleNamespace(K=1))) is None


def test_there_is_no_start_of_each_age_where_durations_are_geometric():
    with Threads(1) as threads:
        search = search_of(threads, np.random.default_rng(1).geometric(0.2, 240))
        assert search.kinds.ages.change(search.outcome) is None


def test_the_most_probable_chain_is_taken_if_the_states_in_hand_promise_any(monkeypatch):
    with Threads(1) as threads:
        search = search_of(threads, np.full(240, 5))
        kinds = search.kinds
        two, none = np.array([True, True, False]), np.zeros(3, np.bool_)
        hand = Aged("in hand", two, 5.0, 1.0)
        others = [Aged("smoothed", two, 4.0, 1.0), Aged("no phases", none, 9.0, 1.0), Aged("of blocks", two, 7.0, -1.0)]
        left = iter(others)
        monkeypatch.setattr(kinds_of_excursions, "aged", lambda *of: hand)
        monkeypatch.setattr(kinds_of_excursions, "aged_smoothly", lambda *of: next(left))
        assert kinds.ages.change(search.outcome) == "of blocks"
        hand = hand._replace(gain=-1.0)
        assert search_of(threads, np.full(240, 5)).kinds.ages.change(search.outcome) is None


def test_the_prior_of_transitions_is_learnt_from_a_start():
    with Threads(1) as threads:
        search = search_of(threads, np.full(240, 5))
        names = ("transition_concentration", "stickiness", "likelihood.mean_precision")
        search.options = Options(1, 200, 1e-3, learn_late=names)
        start = search.kinds.ages.change(search.outcome)
        fitted = search._fitted(start)
        given = search.given.allocation
        assert given.bound(start) + 50.0 < fitted.bound(start)
        assert fitted.stickiness < 0.1 * given.stickiness
        assert fitted.concentration == given.concentration
        search._pays(search.kinds.ages_anew._replace(terms=search.kinds.ages.terms))
        assert search.trial.start_model.allocation == fitted


@pytest.mark.filterwarnings("ignore:not converged")
def test_durations_are_found_where_rows_say_little():
    rng = np.random.default_rng(0)
    z = np.repeat(np.cumsum(rng.integers(1, 3, 200)) % 3, 6)
    edges = rng.dirichlet(np.full(4, 0.5), 3).cumsum(axis=1)
    X = (rng.random(len(z))[:, None] > edges[z]).sum(axis=1)[:, None]
    found = HMM("categorical", max_laps=200, n_jobs=1, random_state=0).fit(X)
    assert found.n_states_ == 18
    assert "ages" in {lap.origin for lap in found.history_}
