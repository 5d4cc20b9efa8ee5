"""
Anomalies of a machine with several modes
=========================================

Four sensors of a machine that idles, runs and runs under load. A threshold for each sensor finds little, since what
is normal depends on the mode. `Background` adds dust to a mixture, rows that belong to no mode; `background_proba` is
the chance of that.
"""

import matplotlib.pyplot as plt
import numpy as np

from stickbreak import Mixture
from stickbreak.likelihoods import Background

rng = np.random.default_rng(0)
NAMES = ["speed", "current", "temperature", "vibration"]
modes = np.repeat(rng.choice(3, 60), rng.integers(20, 60, 60))
N = len(modes)
centers = np.array([[5.0, 1.0, 35.0, 0.2], [60.0, 4.0, 55.0, 1.0], [55.0, 9.0, 75.0, 1.6]])
loadings = np.array([[0.5, 0.1, 1.0, 0.02], [4.0, 0.5, 1.5, 0.1], [5.0, -0.9, 2.0, 0.2]])  # what a mode's sensors share
signals = centers[modes] + loadings[modes] * rng.standard_normal((N, 1)) + rng.normal(0, [0.4, 0.08, 0.8, 0.03], (N, 4))

# %%
# Twenty faults: sensors that read anything within their range, one of them or all at once.

faults = np.sort(rng.choice(N, 20, replace=False))
anything = rng.uniform(signals.min(axis=0), signals.max(axis=0), (20, 4))
broken = np.where(rng.random(20) < 0.5, 15, 2 ** rng.integers(4, size=20))[:, None] >> np.arange(4) & 1
signals[faults] = np.where(broken, anything, signals[faults])

model = Mixture(Background(), random_state=0).fit(signals)
dust = model.background_proba(signals)
alarms = np.flatnonzero(dust > 0.5)
hits = np.intersect1d(alarms, faults)
print(f"{model.n_clusters_} modes; {len(alarms)} alarms, {len(hits)} of 20 faults among them")

# %%
# Signals in the colours of their modes, and circles where the model is sure that a row belongs to none.

figure, axes = plt.subplots(5, 1, figsize=(11, 7.5), sharex=True, layout="constrained", height_ratios=[1, 1, 1, 1, 0.6])
colours = np.array(["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#767676"])[model.predict(signals) % 6]
for d, ax in enumerate(axes[:4]):
    ax.scatter(np.arange(N), signals[:, d], s=4, c=colours, linewidths=0)
    ax.scatter(alarms, signals[alarms, d], s=50, facecolors="none", edgecolors="#d55e00", linewidths=1.2)
    ax.set_ylabel(NAMES[d])
axes[4].vlines(np.arange(N), 0.0, dust, color="#d55e00", linewidth=1.0)
axes[4].plot(faults, np.full(20, -0.5), "|", color="#222222")
axes[4].set(ylabel="P(dust)", xlabel="minute", xlim=(0, N), ylim=(-0.75, 1.05))
axes[4].set_yticks([-0.5, 0.0, 1.0], ["true faults", "0", "1"])
axes[0].set_title(
    f"{model.n_clusters_} modes found, {len(hits)} of 20 faults in {len(alarms)} alarms", loc="left", fontsize=11
)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
figure.align_ylabels(axes)
plt.show()
