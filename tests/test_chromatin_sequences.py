"""Chromatin is cut in the middle of runs without a mark."""

import numpy as np
from thesis_chromatin import lengths_of


def test_cuts_are_in_the_middle_of_long_empty_runs_and_leave_no_short_sequence():
    X = np.ones((100, 2), np.uint8)
    X[20:30] = 0  # long enough, but the sequence before its middle would be short
    X[50:56] = 0  # long enough
    X[60:63] = 0  # short
    X[90:100] = 0  # the sequence after its middle would be short
    assert lengths_of(X, shortest=30, empty=5).tolist() == [53, 47]
    assert lengths_of(X, shortest=20, empty=5).tolist() == [25, 28, 47]
    assert lengths_of(X, shortest=30, empty=11).tolist() == [100]
