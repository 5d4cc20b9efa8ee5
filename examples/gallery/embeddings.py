"""
Embeddings of sentences: groups of texts, with names
====================================================

Texts that are vectors already, from whatever model, are rows of numbers on a sphere: a mixture finds their groups, and
how many there are. To need no download, the vectors here are of latent semantic analysis (tf-idf and a singular value
decomposition). Those of a neural network go in at the same place. The texts are docstrings of SciPy and scikit-learn.
"""

import importlib
import inspect
import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patheffects import withStroke
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.manifold import TSNE
from sklearn.metrics import normalized_mutual_info_score
from sklearn.preprocessing import normalize

from stickbreak import Mixture

MODULES = ["scipy.integrate", "scipy.linalg", "scipy.ndimage", "scipy.signal", "scipy.sparse", "scipy.special"]
MODULES += ["scipy.stats", "sklearn.cluster", "sklearn.ensemble", "sklearn.linear_model", "sklearn.metrics"]


def texts(name):
    """What the public functions and classes of a module do, in the first 80 words of their docstrings."""
    module = importlib.import_module(name)
    for public in [n for n in dir(module) if not n.startswith("_")]:
        text = inspect.getdoc(getattr(module, public)) or ""
        if callable(getattr(module, public)) and len(text.split()) > 20:
            yield " ".join(text.split()[:80])


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # deprecated names
    home = {text: name for name in MODULES for text in texts(name)}
words = TfidfVectorizer(stop_words="english", min_df=3, sublinear_tf=True, token_pattern=r"[a-z]{3,}")
counts = words.fit_transform(home)
embeddings = normalize(TruncatedSVD(40, random_state=0).fit_transform(counts))  # or model.encode(texts)

# %%
# Few directions carry what groups differ in; 12 are enough here. The modules are not told.

directions = TruncatedSVD(12, random_state=0).fit_transform(embeddings)
model = Mixture("gaussian", random_state=0).fit(directions)
labels, K = model.labels_, model.n_clusters_
agreement = normalized_mutual_info_score(list(home.values()), labels)
print(f"{len(home)} texts, {K} groups; mutual information with the {len(MODULES)} modules {agreement:.2f}")

# %%
# A map of the embeddings by t-SNE. To look at, the groups are merged along their hierarchy until 20 are left, each named by
# the words whose tf-idf it raises most.

groups = model.hierarchy_.cut(min(20, K))[labels]
place = TSNE(metric="cosine", init="pca", perplexity=25, random_state=0).fit_transform(embeddings)
overall = np.asarray(counts.mean(axis=0)).ravel()
names = words.get_feature_names_out()
figure, ax = plt.subplots(figsize=(11, 7), layout="constrained")
colours = plt.get_cmap("tab20")(np.arange(20))
ax.scatter(*place.T, s=14, color=colours[groups], linewidths=0, alpha=0.75)
for g in range(groups.max() + 1):
    own = groups == g
    lift = np.asarray(counts[own].mean(axis=0)).ravel() - overall
    ax.text(
        *np.median(place[own], axis=0),
        "\n".join(names[np.argsort(-lift)[:2]]),
        ha="center",
        va="center",
        fontsize=10,
        weight="bold",
        color=0.6 * colours[g, :3],
        path_effects=[withStroke(linewidth=3, foreground="white")],
    )
ax.set_axis_off()
ax.set_title(f"{len(home)} texts: {K} groups, of which {groups.max() + 1} are left to look at", loc="left", fontsize=12)
plt.show()
