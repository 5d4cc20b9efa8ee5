"""
A hundred million rows, in little memory
========================================

Rows that do not fit in memory stay in their file: `fit` takes its path and reads batch after batch. Each lap visits all
rows, and the bound is exact for all of them. As a page of this site, 200,000 rows; for a hundred million (0.8 GB),
``python examples/gallery/many_rows.py --rows 100_000_000``.
"""

import argparse
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.patches import Ellipse

from stickbreak import Mixture

parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, default=200_000)
N = parser.parse_known_args()[0].rows
PIECE = 1_000_000  # rows that are made at a time
rng = np.random.default_rng(0)

# Two arms of stars, and a bulge between them: 25 Gaussians, each along its arm.
turn = np.sqrt(np.linspace(1.0, 4.2**2, 12))  # as far from each other in all of an arm
arms = [np.c_[np.cos(turn), np.sin(turn)] * (2.2 * turn[:, None]) * sign for sign in (1.0, -1.0)]
centers = np.concatenate([[[0.0, 0.0]], *arms])
along = np.concatenate([[0.0], turn, turn]) + np.arctan(np.concatenate([[1.0], turn, turn]))
spread = np.stack([np.cos(along), np.sin(along)], axis=1)
share = np.r_[0.16, np.tile(np.linspace(0.05, 0.02, 12), 2)]
share /= share.sum()

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "stars.npy"
stars = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(N, 2))
for first in range(0, N, PIECE):
    z = rng.choice(len(share), min(PIECE, N - first), p=share)
    noise = rng.normal(0.0, [0.46, 0.24], (len(z), 2))
    noise[z == 0] *= [1.3, 2.4]
    side = np.stack([-spread[z, 1], spread[z, 0]], axis=1)
    stars[first : first + len(z)] = centers[z] + noise[:, :1] * spread[z] + noise[:, 1:] * side
stars.flush()

# %%
# The fit is told neither how many Gaussians there are nor where they begin.

began = time.perf_counter()
model = Mixture("gaussian", n_batches=max(1, N // 5_000_000), random_state=0).fit(path)
minutes = (time.perf_counter() - began) / 60.0
print(
    f"{N:,} rows, {len(share)} Gaussians; {model.n_clusters_} clusters in {model.n_laps_} laps, {minutes:.1f} minutes"
)

# %%
# Every pixel counts rows; the ellipses are the clusters, two standard deviations wide.

edges = np.linspace(-11.0, 11.0, 351)
image = np.zeros((350, 350))
for first in range(0, N, PIECE):
    image += np.histogram2d(*stars[first : first + PIECE].T, bins=(edges, edges))[0]
figure, axes = plt.subplots(1, 2, figsize=(11, 5.6), layout="constrained", sharex=True, sharey=True)
for ax in axes:
    ax.imshow(image.T + 0.5, origin="lower", extent=(-11, 11, -11, 11), norm=LogNorm(), cmap="magma")
    ax.set_axis_off()
values, vectors = np.linalg.eigh(model.covariances_)
for mean, (short, long), V in zip(model.means_, np.sqrt(values), vectors):
    angle = np.degrees(np.arctan2(V[1, 1], V[0, 1]))
    axes[1].add_patch(
        Ellipse(mean, 4.0 * long, 4.0 * short, angle=angle, fill=False, edgecolor="#7fdbff", linewidth=1.2)
    )
axes[0].set_title(f"{N:,} rows", loc="left", fontsize=12)
axes[1].set_title(f"{model.n_clusters_} clusters found", loc="left", fontsize=12)
plt.show()
