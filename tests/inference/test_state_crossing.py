"""Crossings of the states of two models: what each has right is together in the start."""

from dataclasses import replace

import numpy as np
import pytest

from stickbreak import HMM
from stickbreak.allocations import FiniteMarkovChain, HDPMarkovChain
from stickbreak.data import SequenceSource
from stickbreak.inference import state_search
from stickbreak.inference.state_crossing import LEAST, crossed_states
from stickbreak.likelihoods import Gaussian, Sample
from stickbreak.model import SEQUENCES, Model
from stickbreak.model.sequences import labelled

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
    one, other = np.minimum(z, 2), np.maximum(z, 1)
    found = crossed_states(model, source, one, other)
    np.testing.assert_array_equal(np.sort(found.N), np.sort(np.bincount(z)))
    assert found.M.sum() == len(z) - len(LENGTHS)
    assert found.begins.sum() == len(LENGTHS)


def test_small_pieces_stay_where_they_are():
    model, source, z = chain(HDPMarkovChain(2.0, 5.0), K=3)
    other = z.copy()
    other[np.flatnonzero(z == 0)[: LEAST - 1]] = 1
    assert crossed_states(model, source, z, other) is None  # nothing is cut that is large enough
    other[np.flatnonzero(z == 2)[:LEAST]] = 0
    found = crossed_states(model, source, z, other)
    assert sorted(found.N) == sorted([*np.bincount(z)[:2], np.sum(z == 2) - LEAST, LEAST])


def test_a_crossing_merges_to_half_as_many_again():
    model, source, z = chain(HDPMarkovChain(2.0, 5.0))
    other = np.arange(len(z)) // 250
    pieces = np.unique(4 * z + other, return_counts=True)[1]
    found = crossed_states(model, source, z, other)
    assert found.K == 6 < (pieces >= LEAST).sum()


@pytest.mark.filterwarnings("ignore:not converged")
def test_states_from_pairs_that_pay_are_crossed_with_those_before(monkeypatch):
    """Of many rows; the better of the two comes first, and what is kept is never worse."""
    seen = []

    def noted(model, source, path, other):
        seen.append([model.bound(labelled(model.likelihood, source, states)) for states in (path, other)])
        return labelled(model.likelihood, source, np.unique(path, return_inverse=True)[1])

    monkeypatch.setattr(state_search, "crossed_states", noted)
    monkeypatch.setattr(state_search, "TUNING", replace(state_search.TUNING, many_rows=800, sample_rows=400))
    rng = np.random.default_rng(1)
    z = np.repeat(rng.integers(4, size=200), 5)
    symbols = ((z + rng.integers(2, size=len(z))) % 5).astype(float)[:, None]
    fit = HMM("categorical", random_state=0, max_laps=120).fit(symbols)
    origins = [lap.origin for lap in fit.history_]
    begins = [origins[i - 1] for i in range(1, len(origins)) if origins[i] == "crossed" != origins[i - 1]]
    assert begins == ["pairs of rows"] * len(seen) != []
    assert all(one > other for one, other in seen)
    assert (np.diff(fit.lower_bounds_) >= -1e-9 * abs(fit.lower_bound_)).all()
