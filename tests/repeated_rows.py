"""Sequences of symbols, as a search of their states sees them."""

import numpy as np

from stickbreak.allocations import HDPMarkovChain
from stickbreak.data import SequenceSource
from stickbreak.likelihoods import Categorical, Sample
from stickbreak.model import SEQUENCES, Model


def problem(codes, lengths):
    """The model and the source of symbols (T, 1) in sequences of these lengths."""
    distinct, codes = np.unique(codes, return_inverse=True)
    X = distinct.reshape(-1, 1)
    model = Model(Categorical().resolve(Sample.of(X)), HDPMarkovChain(), SEQUENCES)
    return model, SequenceSource(X, np.array(lengths), codes=codes.ravel())


def found_in_chance(states_of):
    """What ``states_of(model, source, rng)`` finds in 12 pairs of sequences whose symbols are in a random order."""
    found = []
    for seed in range(12):
        X = np.random.default_rng(seed).integers(20, size=(4000, 1)).astype(float)
        found.append(states_of(*problem(X, [2000, 2000]), np.random.default_rng(seed)))
    return found
