"""
Kinds of people, measured again and again
=========================================

Sixty people of three kinds are measured a dozen times each, with an error that is larger than the difference between the
kinds. Single measurements look like one cloud. All measurements of a person are in one cluster, and told so, the mixture finds
the kinds. The picture shows the measurements by the clusters of both fits; a dot is the mean of a person.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from stickbreak import Mixture

PEOPLE, EACH = 60, 12
COLORS = np.array(["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"])
rng = np.random.default_rng(1)
kind = rng.integers(3, size=PEOPLE)
centers = np.array([[110.0, 68.0], [132.0, 70.0], [124.0, 88.0]])  # blood pressure: systolic, diastolic
person = rng.permutation(np.repeat(np.arange(PEOPLE), EACH))
X = rng.normal(centers[kind[person]], [12.0, 9.0])

alone = Mixture("gaussian", random_state=0).fit(X)
together = Mixture("gaussian", random_state=0).fit(X, groups=person)
for name, model in (("single measurements", alone), ("people", together)):
    agreement = adjusted_rand_score(kind[person], model.labels_)
    print(f"{name}: {model.n_clusters_} clusters, adjusted Rand index {agreement:.2f}")

# %%
# Somebody new, measured once and then ten times more: how sure the model is of the kind.

fresh = rng.normal(centers[1], [12.0, 9.0], (11, 2))
for n in (1, 11):
    chances = together.predict_proba(fresh[:n], groups=["somebody"] * n)[0]
    print(f"{n:2} measurements: {np.round(np.sort(chances)[::-1], 3)}")

# %%
# Measurements and the means of people, by cluster.

means = np.stack([X[person == p].mean(axis=0) for p in range(PEOPLE)])
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained", sharex=True, sharey=True)
titles = (
    f"Each measurement by itself: {alone.n_clusters_} found",
    f"All of a person together: {together.n_clusters_} found",
)
for ax, model, title in zip(axes, (alone, together), titles):
    ax.scatter(*X.T, s=7, alpha=0.35, linewidths=0, color=COLORS[model.labels_ % len(COLORS)])
    most = np.array([np.bincount(model.labels_[person == p]).argmax() for p in range(PEOPLE)])
    ax.scatter(*means.T, s=42, color=COLORS[most % len(COLORS)], edgecolor="white", linewidths=0.8)
    ax.set_title(title, loc="left", fontsize=10)
    ax.set_xlabel("systolic pressure")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("diastolic pressure")
plt.show()
