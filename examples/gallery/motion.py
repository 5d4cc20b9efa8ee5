"""
Motion capture: what people named, and what a model finds
=========================================================

Six joint angles of somebody who walks, squats, jumps, waves and rests, in three sequences. Each exercise has a rhythm
of its own. Autoregressive rows tell rhythms apart, which values alone do not; `HMM` finds that out by its bound.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from stickbreak import HMM

rng = np.random.default_rng(3)
NAMES = ["hip", "knee", "ankle", "shoulder", "elbow", "wrist"]
EXERCISES = ["rest", "walk", "squat", "jump", "wave"]
PERIODS = np.array([60.0, 14.0, 36.0, 9.0, 11.0])
STRENGTH = np.array(
    [[0.1] * 6, [2, 2, 1, 1, 0.5, 0.3], [3, 4, 1, 0.3, 0.3, 0.3], [2, 3, 3, 2, 1, 0.5], [0.1, 0.1, 0.1, 3, 3, 4]]
)
PHASE = rng.uniform(0.0, 2.0 * np.pi, (5, 6))


def sequence(exercises):
    """Angles (T, 6) of exercises one after the other, and the exercise of each step (T,)."""
    labels = np.repeat(exercises, rng.integers(60, 140, len(exercises)))
    phase = np.cumsum(2.0 * np.pi / PERIODS[labels] * rng.normal(1.0, 0.08, len(labels)))
    angles = STRENGTH[labels] * np.sin(phase[:, None] + PHASE[labels])
    ramp = np.array([0.25, 0.5, 0.25])  # bodies do not jump from one exercise to the next
    smooth = np.apply_along_axis(lambda x: np.convolve(x, ramp, mode="same"), 0, angles)
    return smooth + rng.normal(0.0, 0.08, smooth.shape), labels


sessions = [sequence(order) for order in ([0, 1, 2, 3, 1, 4], [1, 0, 3, 2, 4, 0], [2, 4, 1, 3, 0, 1])]
angles = [X for X, _ in sessions]
names = np.concatenate([labels for _, labels in sessions])

model = HMM(random_state=0).fit(angles)
table = np.array([[((model.labels_ == k) & (names == e)).sum() for e in range(5)] for k in range(model.n_states_)])
print(f"{model.selection_[0].family}: {model.n_states_} states; each given its commonest name, ", end="")
print(f"{table.max(axis=1).sum() / len(names):.0%} of the steps agree")
print("mean duration of each state:", model.durations().round().astype(int))

# %%
# The states under the signals, and below them in grey what people would have written.

figure = model.plot.timeline(angles)
for ax, (_, labels) in zip(figure.axes, sessions):
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(labels)) + 1, [len(labels)]])
    ax.set_ylim(-1.7, 6.0)
    for first, end in pairwise(cuts):
        ax.broken_barh([(first, end - first - 2)], (-1.6, 0.65), color="#d9e2ea")
        ax.text((first + end) / 2, -1.28, EXERCISES[labels[first]], ha="center", va="center", fontsize=9)
    ax.set_yticks([5.5 - d for d in range(6)] + [-0.4, -1.28], [*NAMES, "state", "people"], fontsize=9)
plt.show()
