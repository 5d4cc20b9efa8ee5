"""Excursions from states in context: where states do not last, neighbours tell them apart."""

import numpy as np
import pytest

from stickbreak.allocations import FiniteMarkovChain, HDPMarkovChain
from stickbreak.data import SequenceSource
from stickbreak.inference import Options, Session, Threads
from stickbreak.inference.states import search as state_search
from stickbreak.likelihoods import Categorical, DiagonalGaussian, Sample
from stickbreak.model import SEQUENCES, Model
from stickbreak.model.sequences import labelled


def search_of(threads, likelihood, X, labels, allocation, codes=None):
    """After its first ascent, from these states, without moves that would find others."""
    model = Model(likelihood.resolve(Sample.of(X)), allocation, SEQUENCES)
    source = SequenceSource(X, np.array([len(labels)]), codes=codes)
    search = state_search.StateSearch(
        model,
        source,
        ("merge", "delete"),
        Session(threads),
        np.random.default_rng(0),
        Options(1, 200, 1e-3, check=True),
    )
    search.begin(model.ordered(labelled(model.likelihood, source, labels)))
    return search


@pytest.mark.parametrize("steps", [(-1,), (1,), (-1, 1)])
def test_levels_of_a_wave_are_apart_by_whether_it_rises(steps):
    """Of six levels that rise and fall in turn four are passed on both ways."""
    t = np.arange(600) % 10
    level = np.minimum(t, 10 - t)
    X = 3.0 * level[:, None] + np.random.default_rng(0).standard_normal((600, 1))
    with Threads(1) as threads:
        search = search_of(threads, DiagonalGaussian(), X, level, HDPMarkovChain(2.0, 5.0))
        assert search.outcome.total.K == 6
        assert search._pays(search.kinds.in_context(steps))
        assert search.outcome.total.K == 10
        assert search.kinds.cells(search.given, 4).change(search.outcome) is None


def test_rows_and_their_neighbours_show_a_cycle_that_rows_alone_do_not():
    rng = np.random.default_rng(8)
    z = np.arange(1500) % 4
    X = (rng.random(1500) < np.array([0.9, 0.5, 0.1, 0.5])[z]).astype(int)
    with Threads(1) as threads:
        search = search_of(
            threads, Categorical(n_levels=2), np.arange(2.0)[:, None], np.zeros(1500, int), HDPMarkovChain(2.0, 5.0), X
        )
        assert search.kinds.in_context((1,)).change(search.outcome) is None
        assert not search._pays(search.kinds.cells(search.given, 2))
        assert search._pays(search.kinds.cells(search.given, 2, (-1, 1)))
        assert search.outcome.total.K >= 4


def test_symbols_that_follow_each_other_show_a_cycle_of_four():
    """Without a smoothed prior, the laps from the same start end at a poor optimum: symbols are barred from their states."""
    rng = np.random.default_rng(1)
    z = np.cumsum(rng.random(4000) < 0.97) % 4
    edges = rng.dirichlet(np.full(20, 0.2), 4).cumsum(axis=1)
    codes = (rng.random(4000)[:, None] > edges[z]).sum(axis=1)
    levels = np.arange(20.0)[:, None]
    with Threads(1) as threads:
        truth = search_of(threads, Categorical(n_levels=20), levels, z, HDPMarkovChain(2.0, 5.0), codes)
        search = search_of(
            threads, Categorical(n_levels=20), levels, np.zeros(4000, int), HDPMarkovChain(2.0, 5.0), codes
        )
        kind = search.kinds.words(1, False)
        barred = kind._replace(terms=kind.terms._replace(smoothed=False))
        search._pays(barred)
        assert search.outcome.bound < truth.outcome.bound - 100.0
        assert search._pays(kind)
        assert search.outcome.total.K == 4
        assert search.outcome.bound > truth.outcome.bound - 0.1


def test_more_states_than_there_may_be_are_merged():
    t = np.arange(600) % 10
    level = np.minimum(t, 10 - t)
    X = 3.0 * level[:, None] + np.random.default_rng(0).standard_normal((600, 1))
    with Threads(1) as threads:
        search = search_of(threads, DiagonalGaussian(), X, level, FiniteMarkovChain(8, 2.0, 5.0))
        search._pays(search.kinds.in_context((-1,)))
        assert 6 <= search.outcome.total.K <= 8
