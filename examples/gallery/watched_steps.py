"""
A day of behaviour, of which twenty minutes were watched
========================================================

A collar measures how a cow moves, minute by minute; somebody has watched twenty minutes of the day, some of each behaviour,
and written down what it did. Grazing and resting look different at different times, so each is several states, which the
labels of a few minutes join. `HMM` takes minutes without a label, too, and the chain carries what is known to the minutes
around.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from stickbreak import HMM

rng = np.random.default_rng(1)
SENSORS = ["activity", "head angle", "speed"]
STATES = ["lies", "stands", "grazes slowly", "grazes fast", "walks"]
CLASS = np.array(["rest", "rest", "graze", "graze", "walk"])
MEANS = np.array([[0.5, 0.3, 0.1], [1.2, 1.2, 0.1], [2.0, -1.5, 0.4], [3.2, -1.2, 0.9], [3.4, 0.9, 2.4]])
SPREAD = np.array([[0.5, 0.9, 0.2], [0.9, 1.0, 0.2], [1.0, 1.0, 0.4], [1.0, 1.0, 0.6], [1.1, 1.0, 0.8]])
FOLLOWS = np.array([[0, 6, 2, 1, 1], [4, 0, 3, 1, 2], [1, 3, 0, 4, 2], [1, 2, 5, 0, 2], [1, 3, 3, 3, 0]])

state = [0]
while len(state) < 24 * 60:
    k = rng.choice(5, p=FOLLOWS[state[-1]] / FOLLOWS[state[-1]].sum())
    state += [k] * int(rng.gamma(4.0, [15.0, 6.0, 8.0, 6.0, 3.0][k]) + 1.0)
state = np.array(state[: 24 * 60])
signals = rng.normal(MEANS[state], SPREAD[state])
truth = CLASS[state]

minutes = {"rest": 9, "graze": 8, "walk": 3}
watched = np.sort(
    np.concatenate([rng.choice(np.flatnonzero(truth == name), n, replace=False) for name, n in minutes.items()])
)
seen = np.isin(np.arange(24 * 60), watched)
y = np.where(seen, truth, None)

# %%
# The states, and the class of every minute. Nearest neighbours among the minutes watched know nothing of time.

model = HMM(random_state=0).fit(signals, y)
found = model.predict_class(signals, y=y)
nearest = KNeighborsClassifier(3).fit(signals[watched], truth[watched]).predict(signals)
right = {"HMM": (found == truth).mean(), "3 nearest neighbours": (nearest == truth).mean()}
given = model.classes_[model.cluster_classes_.argmax(axis=1)]
print(f"{model.n_states_} states:", ", ".join(f"{k} is {name}" for k, name in enumerate(given)))
print("; ".join(f"{name}: {share:.1%} of the minutes right" for name, share in right.items()))

# %%
# What was measured, and below it what the cow did, what was watched, and what follows for the rest of the day.

colours = {"rest": "#0072b2", "graze": "#009e73", "walk": "#d55e00"}
hours = np.arange(24 * 60) / 60.0
figure, axes = plt.subplots(4, 1, figsize=(11, 6.5), sharex=True, layout="constrained", height_ratios=[1, 1, 1, 1.3])
for d, ax in enumerate(axes[:3]):
    ax.scatter(hours, signals[:, d], s=4, c=[colours[name] for name in found], linewidths=0)
    ax.set_ylabel(SENSORS[d])
rows = {"truth": truth, "watched": np.where(seen, truth, ""), "HMM": found, "neighbours": nearest}
for i, names in enumerate(rows.values()):
    for name, colour in colours.items():
        axes[3].vlines(hours[names == name], -i - 0.4, -i + 0.4, color=colour, linewidth=1.6 if i == 1 else 0.6)
axes[3].set_yticks(-np.arange(len(rows)), list(rows))
axes[3].set(xlabel="hour", xlim=(0.0, 24.0))
for name, colour in colours.items():
    axes[0].scatter([], [], s=30, c=colour, label=name)
axes[0].legend(ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
axes[0].set_title(f"{right['HMM']:.1%} of the minutes right, from 20 that were watched", loc="left", fontsize=11)
plt.show()
