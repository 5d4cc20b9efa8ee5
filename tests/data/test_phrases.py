"""Phrases: they are the rows, no sequence begins in one, and parts of sequences have the same rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stickbreak.data import Chunk, phrases
from stickbreak.data.phrases import Phrases


def made(seed, few):
    """Codes of U distinct rows in sequences, long runs among them, and their phrases, of which few occurrences make one."""
    rng = np.random.default_rng(seed)
    U = int(rng.integers(1, 6))
    codes = np.repeat(rng.integers(U, size=60), rng.integers(1, 12, 60))
    edges = np.unique(np.append(rng.integers(len(codes), size=int(rng.integers(4))), [0, len(codes)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phrases, "OFTEN", few)
        patch.setattr(phrases, "LONGEST", 20)
        return codes, U, edges, Phrases.of(codes, U, edges)


def spelt(found, U, symbols):
    """The rows of some symbols."""
    rows = [[code] for code in range(U)]
    for left, right in found.parts:
        rows.append(rows[left] + rows[right])
    return np.concatenate([rows[symbol] for symbol in symbols]) if len(symbols) else np.empty(0, int), rows


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8))
def test_phrases_are_the_rows_and_no_sequence_begins_within_one(seed, few):
    codes, U, edges, found = made(seed, few)
    again, rows = spelt(found, U, found.symbols)
    np.testing.assert_array_equal(again, codes)
    sizes = np.array([len(row) for row in rows])
    assert sizes.max() <= 20
    np.testing.assert_array_equal(np.diff(found.begins), sizes[found.symbols])
    begins = np.isin(found.begins[:-1], edges[:-1])
    assert begins.sum() == len(edges) - 1
    assert (found.symbols[begins] < U).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_first_phrases_alone_are_the_same_rows(seed):
    codes, U, _, whole = made(seed, 2)
    for n in {0, len(whole.parts) // 2, len(whole.parts)}:
        found = whole.first(n, U)
        again, rows = spelt(found, U, found.symbols)
        np.testing.assert_array_equal(again, codes)
        np.testing.assert_array_equal(np.diff(found.begins), [len(rows[symbol]) for symbol in found.symbols])
        assert found.symbols.max() < U + n


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_part_of_the_rows_has_the_symbols_of_these_rows(seed):
    codes, U, _, found = made(seed, 2)
    rng = np.random.default_rng(seed)
    start, stop = np.sort(rng.choice(len(codes) + 1, 2, replace=False))
    symbols, begins = found.within(codes, Chunk(int(start), int(stop)))
    again, rows = spelt(found, U, symbols)
    np.testing.assert_array_equal(again, codes[start:stop])
    sizes = np.array([len(rows[symbol]) for symbol in symbols])
    np.testing.assert_array_equal(begins, start + np.cumsum([0, *sizes[:-1]]))


def test_repeated_rows_are_few_symbols():
    rng = np.random.default_rng(0)
    codes = np.repeat(rng.integers(3, size=2000), rng.geometric(0.05, 2000))
    found = Phrases.of(codes, 3, np.array([0, len(codes)]))
    assert 4 * len(found.symbols) < len(codes)
    assert len(Phrases.of(rng.integers(3000, size=4000), 3000, np.array([0, 4000])).parts) == 0
