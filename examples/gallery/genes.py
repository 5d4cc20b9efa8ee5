"""
Counts of gene expression
=========================

2,000 cells, 200 genes, and a different number of molecules in each cell. A multinomial mixture compares shares of
genes, so the depth of a cell does not matter and nothing has to be normalised; the sparse matrix of counts goes in as
it is.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from stickbreak import Mixture

rng = np.random.default_rng(0)
TYPES, GENES = 8, 200
share = rng.choice(TYPES, 2000, p=np.array([30, 20, 15, 12, 10, 8, 3, 2]) / 100)
profile = rng.dirichlet(np.full(GENES, 0.5)) * np.ones((TYPES, 1))
for k in range(TYPES):
    profile[k, rng.choice(GENES, 15, replace=False)] *= rng.uniform(4.0, 15.0, 15)  # markers
profile /= profile.sum(axis=1, keepdims=True)
depth = rng.lognormal(6.0, 0.6, 2000).astype(int)
noisy = rng.gamma(60.0, profile[share] / 60.0)  # cells of a type differ, too
counts = sparse.csr_array(rng.multinomial(depth, noisy / noisy.sum(axis=1, keepdims=True)).astype(float))
print(f"{counts.shape[0]:,} cells, {depth.min()} to {depth.max():,} molecules")

model = Mixture("multinomial", random_state=0).fit(counts)
print(
    f"{model.n_clusters_} clusters; adjusted Rand index with the types {adjusted_rand_score(share, model.labels_):.2f}"
)

# %%
# Cells in the order of their clusters, and the genes that tell each cluster best: its share of the gene over that of all cells.

overall = np.asarray(counts.sum(axis=0)).ravel() / counts.sum()
lift = np.log2((model.probabilities_ + 1e-3) / (overall + 1e-3))
markers = list(dict.fromkeys(np.concatenate([np.argsort(-row)[:6] for row in lift])))
cells = np.argsort(model.labels_, kind="stable")
shares = counts.toarray() / depth[:, None]
shown = np.log2((shares[np.ix_(cells, markers)] + 1e-3) / (overall[markers] + 1e-3))
figure, ax = plt.subplots(figsize=(11, 6), layout="constrained")
image = ax.imshow(shown.T, aspect="auto", cmap="PuOr_r", vmin=-3.0, vmax=3.0, interpolation="nearest")
edges = np.cumsum(np.bincount(model.labels_, minlength=model.n_clusters_))
ax.vlines(edges[:-1] - 0.5, -0.5, len(markers) - 0.5, color="#222222", linewidth=0.8)
middles = edges - 0.5 * np.diff(edges, prepend=0)
ax.set_xticks(middles, [f"{k}\n{n}" for k, n in enumerate(np.diff(edges, prepend=0))], fontsize=9)
ax.set_yticks(range(len(markers)), [f"gene {g}" for g in markers], fontsize=7)
ax.set_xlabel("cluster, and its cells")
ax.set_title(f"{model.n_clusters_} clusters and their markers", loc="left", fontsize=11)
figure.colorbar(image, label="log2 of the share beside that of all cells", shrink=0.7)
plt.show()
