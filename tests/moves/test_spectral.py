"""States of rows that repeat, from pairs of nearby rows."""

import numpy as np
import pytest
from scipy import sparse

from repeated_rows import found_in_chance, problem
from stickbreak import HMM
from stickbreak.data import Chunk
from stickbreak.moves import spectral
from stickbreak.moves.spectral import spectral_states


def symbols(K, V, n, length, stay, seed):
    """Sequences of symbols of K states, which go on with the chance ``stay``; and the states."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(V, 0.2), K)
    z = np.empty((n, length), int)
    for sequence in z:
        sequence[0] = rng.integers(K)
        for t in range(1, length):
            sequence[t] = sequence[t - 1] if rng.random() < stay else (sequence[t - 1] + rng.integers(1, K)) % K
    z = z.ravel()
    return np.array([rng.choice(V, p=P[k]) for k in z], float)[:, None], z, [length] * n


def test_groups_of_rows_are_the_states():
    X, _, lengths = symbols(4, 20, 200, 20, 0.8, 0)
    model, source = problem(X, lengths)
    for seed in range(5):
        found = spectral_states(model, source, np.random.default_rng(seed))
        assert 4 <= found.K <= 6  # one for each eigenvalue, one more, and two to merge
        assert found.N.sum() == len(X)
        assert found.M.sum() + found.begins.sum() == len(X)


def test_centers_of_some_rows_group_all_of_them_as_well(monkeypatch):
    X, _, lengths = symbols(3, 40, 200, 20, 0.9, 1)
    model, source = problem(X, lengths)
    rows = spectral_states(model, source, np.random.default_rng(0))
    monkeypatch.setattr(spectral, "MOST_ROWS", 500)
    monkeypatch.setattr(spectral, "BLOCK", 300)
    found = spectral_states(model, source, np.random.default_rng(0))
    assert found.N.sum() == len(X)
    assert found.K == rows.K
    assert model.bound(found) == pytest.approx(model.bound(rows), rel=0.05)


def test_directions_are_averaged_over_the_rows_around():
    lengths = [3, 7, 1]
    rng = np.random.default_rng(0)
    X = rng.integers(5, size=(sum(lengths), 1)).astype(float)
    X[4] = np.nan
    _, source = problem(X, lengths)
    directions = rng.standard_normal((len(source.X), 2))
    sequence = np.repeat(np.arange(3), lengths)
    seen = source.observed(Chunk(0, len(X))) > 0.0
    naive = []
    for t in range(len(X)):
        near = [u for u in range(len(X)) if abs(u - t) <= 2 and sequence[u] == sequence[t] and seen[u]]
        naive.append(directions[source.codes[near if seen[t] else [t]]].mean(axis=0))
    for rows in (Chunk(0, len(X)), Chunk(2, 6), Chunk(5, 6)):
        assert spectral._smoothed(source, directions, 2, rows) == pytest.approx(np.array(naive)[slice(*rows)])


def test_rows_that_tell_nothing_of_each_other_are_hardly_ever_states():
    found = found_in_chance(spectral_states)
    assert sum(states is None for states in found) >= 6  # one in four is expected to pass three random orders
    assert all(states is None or states.K <= 5 for states in found)


def test_rare_rows_that_meet_once_hide_no_states():
    """Two symbols that occur once, side by side, are as near each other as can be, in any order of rows."""
    X, _, lengths = symbols(6, 60, 1, 4000, 0.95, 0)
    at = np.random.default_rng(0).choice(len(X) // 4, 400, replace=False) * 4
    X[at, 0], X[at + 1, 0] = 1000.0 + np.arange(len(at)), 2000.0 + np.arange(len(at))
    model, source = problem(X, lengths)
    assert all(spectral_states(model, source, np.random.default_rng(seed), 8).K >= 6 for seed in range(4))


@pytest.mark.long
def test_short_sequences_of_rows_of_their_own_hide_no_states():
    """The two rows of each are near each other alone: by their own degrees theirs are the largest eigenvalues, all one."""
    X, z, lengths = symbols(6, 60, 1, 3000, 0.95, 0)
    odd = 1000.0 + np.arange(40.0)[:, None]
    model, source = problem(np.concatenate([X, odd]), [*lengths, *[2] * 20])
    for seed in range(3):
        found = spectral_states(model, source, np.random.default_rng(seed), 3, 12)
        assert found.K >= 6
        assert found.N.max() < 1.2 * np.bincount(z).max()


@pytest.mark.skipif(not spectral.DRAWS, reason="SciPy does not take a generator")
def test_eigenvectors_follow_from_the_seed_where_there_are_few_eigenvalues():
    """ARPACK needs more vectors than the powers of such a matrix make of one."""
    few = sparse.diags_array(np.where(np.arange(600) < 5, 1.0, 0.0)).tocsr()
    first, again = (spectral._eigen(few, 10, np.random.default_rng(0)) for _ in range(2))
    assert np.array_equal(first[1], again[1])
    assert np.sort(first[0])[-6:] == pytest.approx([0.0, 1.0, 1.0, 1.0, 1.0, 1.0])


def test_no_more_eigenvectors_than_asked_for():
    X, _, lengths = symbols(16, 100, 1, 4000, 0.95, 0)
    model, source = problem(X, lengths)
    assert spectral_states(model, source, np.random.default_rng(0), 8, 4).K <= 4 + 1 + spectral.MORE


def test_rows_alone_are_no_states():
    X = np.zeros((3, 1))
    model, source = problem(X, [1, 1, 1])
    assert spectral_states(model, source, np.random.default_rng(0)) is None


@pytest.mark.long
def test_all_that_pairs_tell_beyond_chance_is_seen():
    X, _, lengths = symbols(16, 100, 1, 4000, 0.95, 0)
    model, source = problem(X, lengths)
    assert all(spectral_states(model, source, np.random.default_rng(seed)).K >= 16 for seed in range(6))


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize(("seed", "case"), [(0, (4, 20, 200, 20, 0.8)), (1, (6, 60, 1, 4000, 0.95))])
def test_states_of_symbols_are_found(case, seed):
    X, z, lengths = symbols(*case, seed)
    found = HMM("categorical", max_laps=150, random_state=seed, n_jobs=1).fit(X, lengths=lengths)
    truth = HMM("categorical", random_state=0, n_jobs=1, init=z, moves=()).fit(X, lengths=lengths)
    assert found.lower_bound_ >= truth.lower_bound_ - case[0]
    assert found.n_states_ == case[0]


def test_one_state_of_symbols_stays_one():
    X = np.random.default_rng(2).integers(12, size=(1500, 1)).astype(float)
    assert HMM("categorical", random_state=0, n_jobs=1).fit(X).n_states_ == 1


def test_states_of_a_given_start_settle_before_they_must_pay():
    """Of states that hardly last little is known after one lap: laps raise the bound by hundreds of nats then."""
    X, z, _ = symbols(5, 60, 1, 3000, 0.6, 0)
    given = {"init": z, "random_state": 0, "n_jobs": 1}
    truth = HMM("categorical", moves=(), **given).fit(X)
    found = HMM("categorical", moves=("merge", "delete"), **given).fit(X)
    assert found.n_states_ == 5
    assert found.lower_bound_ >= truth.lower_bound_ - 1.0
