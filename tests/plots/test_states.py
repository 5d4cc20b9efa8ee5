"""Pictures of hidden Markov models: what is drawn is what the model says."""

from functools import cache
from itertools import groupby

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.patches import Circle, FancyArrowPatch

from stickbreak import HMM

matplotlib.use("Agg")
NAMES = ["left $knee$", "angle_of_hip"]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@cache
def fitted(K, stay=6, D=2):
    """A fit of given states to two sequences, and the sequences; no test may change it."""
    rng = np.random.default_rng(0)
    states = np.repeat(rng.permutation(np.arange(3 * K) % K), stay)
    X = 8.0 * rng.standard_normal((K, D))[states] + rng.standard_normal((len(states), D))
    X[4] = np.nan
    lengths = [len(X) // 3, len(X) - len(X) // 3]
    frame = pd.DataFrame(X, columns=NAMES) if D == 2 else X
    model = HMM("diagonal_gaussian", init=states, moves=(), learn=False, n_jobs=1, max_laps=30, tol=0.1)
    return model.fit(frame, lengths=lengths), frame, lengths


@pytest.fixture(scope="module")
def found():
    return fitted(3)


PICTURES = {
    "fit": lambda m, X, L, **given: m.plot.fit(**given),
    "sizes": lambda m, X, L, **given: m.plot.sizes(**given),
    "dendrogram": lambda m, X, L, **given: m.plot.dendrogram(**given),
    "profiles": lambda m, X, L, **given: m.plot.profiles(**given),
    "timeline": lambda m, X, L, **given: m.plot.timeline(X, L, **given),
    "transitions": lambda m, X, L, **given: m.plot.transitions(**given),
    "durations": lambda m, X, L, **given: m.plot.durations(X, L, **given),
}


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("name", PICTURES)
def test_one_state_and_many_are_drawn_where_they_should_be(name):
    for K, D in ((1, 1), (3, 2), (60, 15)):
        case = fitted(K, D=D)
        picture = PICTURES[name](*case)
        getattr(picture, "figure", picture).canvas.draw()
    figure, ax = plt.subplots()
    assert PICTURES[name](*fitted(3), ax=ax) is (ax if hasattr(picture, "get_xlabel") else figure)
    figure.canvas.draw()


def segments(states):
    """The state and length of each run."""
    return [(k, len(list(run))) for k, run in groupby(states.tolist())]


def test_segments_are_those_of_the_path(found):
    model, X, lengths = found
    figure = model.plot.timeline(X, lengths)
    path = model.predict(X, lengths)
    for ax, part in zip(figure.axes, np.split(path, [lengths[0]]), strict=True):
        bars = [path.get_extents() for path in ax.collections[0].get_paths()]
        assert [round(box.width) for box in bars] == [n for _, n in segments(part)]
        assert ax.get_xlim() == (-0.5, len(part) - 0.5)
        labels = [label.get_text() for label in ax.get_yticklabels()]
        assert labels == [r"left \$knee\$", "angle_of_hip", "state"]


def test_a_part_of_a_sequence_is_shown(found):
    model, X, lengths = found
    (ax,) = model.plot.timeline(X, lengths, steps=(5, 12), n_sequences=1).axes
    assert ax.get_xlim() == (4.5, 11.5)
    signal = ax.lines[0].get_ydata()
    x = X.to_numpy()[5:12, 0]
    assert len(signal) == 7
    np.testing.assert_allclose(np.corrcoef(signal, x)[0, 1], 1.0)
    for wrong in ((12, 5), (500, 600), "ab", 3, (None, 2)):
        with pytest.raises(ValueError, match="steps must be"):
            model.plot.timeline(X, lengths, steps=wrong)


def test_rows_without_an_observation_are_gaps(found):
    model, X, lengths = found
    signal = model.plot.timeline(X, lengths).axes[0].lines[0].get_ydata()
    assert np.flatnonzero(np.isnan(signal)).tolist() == [4]


def test_the_matrix_is_that_of_other_states(found):
    model = found[0]
    graph, matrix, _ = model.plot.transitions().axes
    shown = matrix.images[0].get_array()
    A = model.transition_matrix_
    for i in range(3):
        for j in range(3):
            if i != j:
                assert shown[i, j] == pytest.approx(A[i, j] / (A[i].sum() - A[i, i]))
    assert sum(isinstance(patch, Circle) for patch in graph.patches) == 3
    assert sum(isinstance(patch, FancyArrowPatch) for patch in graph.patches) == (shown.filled(0.0) > 0.02).sum()


def test_durations_are_those_of_segments(found):
    model, X, lengths = found
    ax = model.plot.durations(X, lengths)
    path = model.predict(X, lengths)
    want = [run for part in np.split(path, [lengths[0]]) for run in segments(part)]
    states = np.round(ax.lines[0].get_xdata()).astype(int)
    assert list(zip(states.tolist(), ax.lines[0].get_ydata().tolist())) == want
    heights = [segment[0, 1] for segment in ax.collections[0].get_segments()]
    np.testing.assert_allclose(heights, model.durations())
