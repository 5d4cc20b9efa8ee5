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
