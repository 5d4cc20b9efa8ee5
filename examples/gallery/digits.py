"""
Handwritten digits: what a cluster looks like
=============================================

1,797 images of 8 x 8 pixels, in 16 principal components. Several ways to write a digit become several clusters. The
picture shows the mean of each, the most typical image, and the strangest.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import normalized_mutual_info_score

from stickbreak import Mixture

images, digit = load_digits(return_X_y=True)
projection = PCA(16, random_state=0).fit(images)
X = projection.transform(images)
model = Mixture(random_state=0).fit(X)
K = model.n_clusters_
print(f"{K} clusters; mutual information with the digits {normalized_mutual_info_score(digit, model.labels_):.2f}")

# %%
# One row for each digit, and in it the clusters of which it is the commonest: mean, most typical image, strangest image.

density = model.score_samples(X)
means = projection.inverse_transform(model.means_).reshape(K, 8, 8)
common = np.array([np.bincount(digit[model.labels_ == k], minlength=10).argmax() for k in range(K)])
most = np.bincount(common).max()
figure, axes = plt.subplots(10, most, figsize=(1.75 * most + 0.4, 7.2))
for ax in axes.ravel():
    ax.set_axis_off()
for d in range(10):
    for ax, k in zip(axes[d], np.flatnonzero(common == d)):
        rows = np.flatnonzero(model.labels_ == k)
        ranked = rows[np.argsort(-density[rows])]
        pictures = [means[k], images[ranked[0]].reshape(8, 8), images[ranked[-1]].reshape(8, 8)]
        gap = np.full((8, 1), -3.0)
        ax.imshow(np.hstack([pictures[0], gap, pictures[1], gap, pictures[2]]), cmap="Greys", vmin=-3.0, vmax=16.0)
        share = float((digit[rows] == d).mean())
        words = f"{len(rows)} images" if share > 0.995 else f"{len(rows)} images, {share:.0%} are {d}"
        ax.set_title(words, fontsize=8, color="#767676", pad=2, loc="left")
figure.suptitle(f"{K} clusters of digits: mean, typical, strange", x=0.03, ha="left", fontsize=11)
figure.subplots_adjust(left=0.03, right=0.99, bottom=0.01, top=0.92, wspace=0.08, hspace=0.3)
plt.show()
