"""
Image patches, and noise that goes
==================================

A mixture of zero-mean Gaussians learns what 8 x 8 pixels of a photograph look like: flat, an edge at some angle, a
texture. Each patch of a noisy image is replaced by its posterior mean under the most probable cluster, and
overlapping patches are averaged.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import null_space
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d, reconstruct_from_patches_2d

from stickbreak import Mixture

SIGMA = 25.0 / 255.0
BASIS = null_space(np.ones((1, 64)))  # (64, 63): patches without their mean
rng = np.random.default_rng(0)
photograph = load_sample_image("china.jpg").mean(axis=2) / 255.0
learned, clean = photograph[:, :200], photograph[20:240, 205:425]  # the left and the right of a tower


def patches_of(image, most=None):
    """Patches in the basis (n, 63), and their means (n, 1)."""
    patches = extract_patches_2d(image, (8, 8), max_patches=most, random_state=0).reshape(-1, 64)
    return patches @ BASIS, patches.mean(axis=1, keepdims=True)


# %%
# The clusters are learned from 5,000 patches of one part of the photograph.  The search ends when it gains little: textures
# have no end of clusters.

model = Mixture("zero_mean_gaussian", tol=1.0, random_state=0).fit(patches_of(learned, 5000)[0])
K = model.n_clusters_
print(f"{K} clusters of patches")

# %%
# Noise adds SIGMA^2 to every variance. So of a noisy patch y the clean one has the posterior mean S (S + SIGMA^2)^-1 y.

noisy = clean + rng.normal(0.0, SIGMA, clean.shape)
rows, means = patches_of(noisy)
values, vectors = np.linalg.eigh(model.covariances_)  # (K, 63), (K, 63, 63)
total = values + SIGMA**2
scores = [-0.5 * (np.log(t).sum() + ((rows @ V) ** 2 / t).sum(axis=1)) for t, V in zip(total, vectors)]
labels = np.argmax(np.log(model.weights_)[:, None] + scores, axis=0)
restored = np.empty_like(rows)
for k, V in enumerate(vectors):
    own = labels == k
    restored[own] = (rows[own] @ V * (values[k] / total[k])) @ V.T
denoised = reconstruct_from_patches_2d((restored @ BASIS.T + means).reshape(-1, 8, 8), clean.shape)


def psnr(image):
    """Peak signal-to-noise ratio in decibels."""
    return -10.0 * np.log10(((image - clean) ** 2).mean())


# %%
# Below the images the three main directions of the largest clusters: edges and textures, each at an angle of its own.

figure = plt.figure(figsize=(11, 6), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=[2.4, 1])
images = {f"noisy, {psnr(noisy):.1f} dB": noisy, f"denoised, {psnr(denoised):.1f} dB": denoised, "original": clean}
for ax, (name, image) in zip(above.subplots(1, 3), images.items()):
    ax.imshow(image, cmap="gray", vmin=0.0, vmax=1.0)
    ax.set_title(name, loc="left", fontsize=11)
n = min(K, 12)
for j, column in enumerate(below.subplots(3, n, squeeze=False).T):
    for i, ax in enumerate(column):
        ax.imshow((BASIS @ vectors[j, :, -1 - i]).reshape(8, 8), cmap="gray")
    column[0].set_title(f"{model.weights_[j]:.1%}", fontsize=9)
for ax in (*above.axes, *below.axes):
    ax.set_axis_off()
plt.show()
