"""States of rows that repeat, from words of rows."""

import numpy as np
import pytest
from scipy import sparse

from repeated_rows import found_in_chance, problem
from stickbreak.data import Chunk
from stickbreak.moves import in_order, spectral
from stickbreak.moves.in_order import longest_word, states_in_order


def turns(K, V, n, seed):
    """Symbols of K states that take turns; and the states."""
    rng = np.random.default_rng(seed)
    z = np.cumsum(rng.random(n) < 0.97) % K
    edges = rng.dirichlet(np.full(V, 0.2), K).cumsum(axis=1)
    return (rng.random(n)[:, None] > edges[z]).sum(axis=1, keepdims=True).astype(float), z


def test_states_in_order_are_those_that_take_turns():
    X, _ = turns(4, 40, 4000, 0)
    model, source = problem(X, [1000, 3000])
    found = states_in_order(model, source, np.random.default_rng(0))
    assert found.K == 4  # one for each singular value and one more
    assert found.N.sum() == len(X)
    order = found.M.argmax(axis=1)
    assert sorted(order) == [0, 1, 2, 3]
    assert not (order == np.arange(4)).any()
    # Symmetric pairs of a cycle of four cannot tell them apart: two of its four eigenvalues are zero.
    apart = np.linalg.svd(found.M / found.M.sum(axis=1, keepdims=True), compute_uv=False)
    assert apart[-1] > 0.2


def test_long_words_show_more_states_than_there_are_symbols():
    X, _ = turns(6, 2, 4000, 3)
    model, source = problem(X, [4000])
    assert longest_word(source) == 7
    assert states_in_order(model, source, np.random.default_rng(0)) is None  # pairs of two symbols have too few values
    found = states_in_order(model, source, np.random.default_rng(0), 1, 7)
    assert found.K >= 4
    assert longest_word(problem(np.arange(4000.0)[:, None] % 200, [4000])[1]) == 1
    assert longest_word(problem(np.zeros((3, 1)), [3])[1]) == 1


def test_words_that_hardly_occur_twice_are_not_looked_at(monkeypatch):
    X, _ = turns(4, 40, 4000, 0)
    model, source = problem(X, [4000])
    assert states_in_order(model, source, np.random.default_rng(0)) is not None
    monkeypatch.setattr(in_order, "MOST", 30)
    assert states_in_order(model, source, np.random.default_rng(0)) is None
    few = problem((np.arange(100.0) // 2.0)[:, None], [100])[1]
    monkeypatch.setattr(in_order, "MOST", 5000)
    monkeypatch.setattr(in_order, "_told", None)  # it would fail
    assert states_in_order(model, few, np.random.default_rng(0)) is None


def test_more_states_in_order_are_looked_at_where_wider():
    X, _ = turns(4, 40, 4000, 0)
    model, source = problem(X, [1000, 3000])
    assert states_in_order(model, source, np.random.default_rng(0), 3).K == 10


def test_symbols_that_no_order_explains_are_no_states_in_order():
    found = found_in_chance(states_in_order)
    assert sum(states is None for states in found) >= 6  # one in four is expected to pass three random orders
    assert states_in_order(*problem(np.zeros((3, 1)), [1, 1, 1]), np.random.default_rng(0)) is None


def test_long_words_of_one_kind_in_a_random_order_are_no_states():
    """Long words are of the first 30 rows alone, and in a random order the rare symbol is in none of them."""
    X = np.zeros((4030, 1))
    X[[2, 5, 9, 11, 17]] = 1.0
    model, source = problem(X, [30, *[1] * 4000])
    length = longest_word(source)
    for seed in range(3):
        found = states_in_order(model, source, np.random.default_rng(seed), 1, length)
        assert found is None or found.N.sum() == len(X)


@pytest.mark.skipif(not spectral.DRAWS, reason="SciPy does not take a generator")
def test_singular_vectors_follow_from_the_seed_where_few_words_have_a_next():
    """Nine words of 600 have one: their pairs span less than the vectors that are computed."""
    pairs = sparse.diags_array(np.where(np.arange(600) < 9, 1.0, 0.0)).tocsr()
    first, again = (in_order._singular(pairs, 31, np.random.default_rng(0)) for _ in range(2))
    assert np.array_equal(first[0], again[0])
    assert np.array_equal(first[2], again[2])
    assert first[1] == pytest.approx([1.0] * 9 + [0.0] * 22)


def lengths_and_codes():
    lengths = [3, 7, 1, 9]
    X = np.random.default_rng(0).integers(3, size=(sum(lengths), 1)).astype(float)
    X[4] = np.nan
    sequence = np.repeat(np.arange(4), lengths)
    return problem(X, lengths)[1], X[:, 0], sequence


@pytest.mark.parametrize("length", [1, 2, 3])
def test_words_are_of_observed_rows_of_one_sequence(length):
    source, x, sequence = lengths_and_codes()
    words = in_order._words(source, source.codes, length)
    rows_of = {}
    for t in range(len(x)):
        word = x[t : t + length]
        whole = len(word) == length and sequence[t] == sequence[t + length - 1] and not np.isnan(word).any()
        assert (words.begins[t] >= 0) == whole
        if whole:
            assert words.ends[t + length - 1] == words.begins[t]
            assert rows_of.setdefault(words.begins[t], tuple(word)) == tuple(word)
    assert words.n == len(rows_of) == len(set(rows_of.values()))
    assert (words.ends >= 0).sum() == (words.begins >= 0).sum()


@pytest.mark.parametrize("length", [1, 2])
def test_rows_are_placed_by_the_words_where_they_begin_and_end(length):
    source, x, sequence = lengths_and_codes()
    words = in_order._words(source, source.codes, length)
    rng = np.random.default_rng(0)
    told = in_order._Told(rng.random(2), rng.standard_normal((words.n, 2)), rng.standard_normal((words.n, 2)))
    T = len(x)
    naive = np.zeros((T, 4))
    for t in range(T):
        if words.begins[t] >= 0:
            naive[t, :2] += told.of_before[words.begins[t]]
        if t > 0 and sequence[t - 1] == sequence[t] and words.ends[t - 1] >= 0:
            naive[t, :2] += told.values * told.of_next[words.ends[t - 1]]
        if words.ends[t] >= 0:
            naive[t, 2:] += told.of_next[words.ends[t]]
        if t + 1 < T and sequence[t + 1] == sequence[t] and words.begins[t + 1] >= 0:
            naive[t, 2:] += told.values * told.of_before[words.begins[t + 1]]
    for rows in (Chunk(0, T), Chunk(2, 6), Chunk(5, 6)):
        assert in_order._places(source, words, told, rows) == pytest.approx(naive[slice(*rows)])


def test_many_distinct_rows_have_the_same_singular_values(monkeypatch):
    X, _ = turns(4, 40, 2000, 1)
    _, source = problem(X, [2000])
    after = in_order._after(source, in_order._words(source, source.codes, 1))[0]
    few = in_order._singular(after, 4, np.random.default_rng(0))
    monkeypatch.setattr(in_order, "FEW", 100)
    all_values = in_order._singular(after, 4, np.random.default_rng(0))
    assert few[1] == pytest.approx(all_values[1][:4])
    assert np.abs((few[0] * all_values[0][:, :4]).sum(axis=0)) == pytest.approx(1.0)
    assert np.abs((few[2] * all_values[2][:, :4]).sum(axis=0)) == pytest.approx(1.0)
