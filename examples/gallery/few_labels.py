"""
Ten labels for 1,797 digits
===========================

One label for each digit, and nothing else known. The mixture finds the clusters of images, those without a label too; a cluster
without one takes after those that it overlaps with. The picture shows the mean of each cluster in the row of the digit that it
gets, and how many of its images are that digit, in bold where it has a label. Where a digit is written in several ways, one
label does not say of all of them what they are: a cluster that gets the wrong digit has in red what most of its images are.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.semi_supervised import LabelSpreading

from stickbreak import Mixture

images, digit = load_digits(return_X_y=True)
projection = PCA(16, random_state=0).fit(images)
X = projection.transform(images)
rng = np.random.default_rng(0)
y = np.full(len(X), -1)
known = np.array([rng.choice(np.flatnonzero(digit == d)) for d in range(10)])
y[known] = digit[known]

model = Mixture("gaussian", random_state=0).fit(X, y)
unknown = y < 0
right = (model.predict_class(X) == digit)[unknown].mean()
spread = LabelSpreading(kernel="knn", max_iter=1000).fit(X, y).transduction_
print(f"{model.n_clusters_} clusters; {right:.0%} right, label spreading {(spread == digit)[unknown].mean():.0%}")

# %%
# A row for each digit, and in it the clusters that get it.

means = projection.inverse_transform(model.means_).reshape(-1, 8, 8)
given = model.cluster_classes_.argmax(axis=1)
named = model.class_counts_.sum(axis=1) > 0.5
most = np.bincount(given).max()
figure, axes = plt.subplots(10, most, figsize=(0.95 * most + 0.4, 9.5))
for ax in axes.ravel():
    ax.set_axis_off()
for d in range(10):
    clusters = np.flatnonzero(given == d)
    for ax, k in zip(axes[d], clusters[np.argsort(~named[clusters], kind="stable")]):
        ax.imshow(means[k], cmap="Greys", vmin=0.0, vmax=16.0)
        counts = np.bincount(digit[model.labels_ == k], minlength=10)
        most_are = counts.argmax()
        text = f"{counts[d] / max(counts.sum(), 1):.0%}" if most_are == d else f"mostly {most_are}"
        color = "#b2182b" if most_are != d else "black" if named[k] else "#767676"
        ax.set_title(text, fontsize=8, pad=2, color=color, fontweight="bold" if named[k] else "normal")
figure.suptitle(
    "Clusters by the digit they get, 0 to 9, and how many of their images are that",
    x=0.03,
    ha="left",
    fontsize=11,
)
figure.subplots_adjust(left=0.03, right=0.99, bottom=0.01, top=0.93, wspace=0.1, hspace=0.35)
plt.show()
