"""
A stream in which clusters appear
=================================

Rows come in twelve batches. `algorithm="sequential"` sees each batch once: `partial_fit` adds what its rows say, and
begins a cluster where rows belong to none. Clusters that are there keep their numbers.
"""

import matplotlib.pyplot as plt
import numpy as np

from stickbreak import Mixture

rng = np.random.default_rng(0)
CENTERS = np.array([[-6.0, 0.0], [0.0, 5.0], [6.0, 0.0], [0.0, -5.0], [7.0, 8.0]])
ARRIVES = np.array([0, 0, 0, 4, 8])  # the batch in which a cluster appears
DRIFT = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.12], [0.0, 0.0], [0.0, 0.0]])  # and how it moves from batch to batch


def batch(t, n=500):
    """Rows of the clusters that are there at time t."""
    z = rng.choice(np.flatnonzero(t >= ARRIVES), n)
    return CENTERS[z] + t * DRIFT[z] + rng.normal(0.0, 0.8, (n, 2))


batches = [batch(t) for t in range(12)]
model = Mixture("gaussian", algorithm="sequential", random_state=0)
found = []
surprise = []
for X in batches:
    if found:
        surprise.append(-model.score(X, unseen=True))  # before the model has seen them
    model.partial_fit(X)
    found.append(model.n_clusters_)
print("clusters after each batch:", found)

# %%
# Four moments of the stream. Batches that bring something new are surprising before they are learnt.

COLOURS = np.array(["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#767676"])
figure = plt.figure(figsize=(11, 6), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=[1.4, 1])
for ax, t in zip(above.subplots(1, 4, sharex=True, sharey=True), (0, 3, 4, 11)):
    ax.scatter(*batches[t].T, s=5, c=COLOURS[model.predict(batches[t]) % 7], linewidths=0)
    ax.set_title(f"batch {t}: {found[t]} clusters", loc="left", fontsize=11)
left, right = below.subplots(1, 2)
left.step(range(12), found, where="post", color="#0072b2")
left.set(xlabel="batch", ylabel="clusters", ylim=(0, max(found) + 1))
right.bar(range(1, 12), surprise, color="#d55e00")
right.set(xlabel="batch", ylabel="surprise (nats a row)")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
