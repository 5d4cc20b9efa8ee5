"""Labels of rows by what they and their neighbours hold."""

from collections import Counter

import numpy as np
import pytest

from stickbreak.allocations import HDPMarkovChain
from stickbreak.data import SequenceSource
from stickbreak.likelihoods import Categorical, DiagonalGaussian, Sample
from stickbreak.model import SEQUENCES, Model
from stickbreak.moves import contexts


def source_of(X, lengths, codes=None):
    return SequenceSource(X, np.array(lengths), codes=codes)


@pytest.mark.parametrize("steps", [(-1,), (1,), (-1, 1), (-2, 1)])
def test_labels_differ_where_those_of_neighbours_in_the_sequence_do(steps):
    rng = np.random.default_rng(0)
    lengths = [1, 40, 2, 60]
    labels = rng.integers(3, size=sum(lengths))
    sequence = np.repeat(np.arange(4), lengths)

    def label_at(t, step):
        inside = 0 <= t + step < len(labels) and sequence[t + step] == sequence[t]
        return labels[t + step] if inside else None

    keys = [(labels[t], *(label_at(t, step) for step in steps)) for t in range(len(labels))]
    found = contexts.in_contexts(source_of(np.zeros((len(labels), 1)), lengths), labels, steps)
    assert len(set(zip(keys, found))) == len(set(keys)) == len(set(found))


def test_rows_of_rare_contexts_keep_a_label_in_common(monkeypatch):
    monkeypatch.setattr(contexts, "MOST", 3)
    labels = np.random.default_rng(1).choice(3, 200, p=[0.7, 0.2, 0.1])
    found = contexts.in_contexts(source_of(np.zeros((200, 1)), [200]), labels, (-1,))
    keys = [(labels[t], labels[t - 1] if t else None) for t in range(200)]
    frequent = [key for key, _ in Counter(keys).most_common(3)]
    assert {label for key, label in zip(keys, found) if key in frequent} == {0, 1, 2}
    assert all(label == 3 + key[0] for key, label in zip(keys, found) if key not in frequent)


def test_cells_are_of_rows_alike_whether_these_are_looked_up_or_not():
    rng = np.random.default_rng(2)
    symbols = rng.integers(5, size=300)
    for likelihood, X, codes in (
        (DiagonalGaussian(), 10.0 * symbols[:, None] + 0.1 * rng.standard_normal((300, 1)), None),
        (Categorical(n_levels=5), np.arange(5.0)[:, None], symbols),
    ):
        model = Model(likelihood.resolve(Sample.of(X)), HDPMarkovChain(2.0, 5.0), SEQUENCES)
        found = contexts.cells_of_rows(model, source_of(X, [300], codes), 5, rng)
        assert len(set(zip(symbols, found))) == len(set(found)) == 5
