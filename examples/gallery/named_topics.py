"""
Topics with names
=================

Some topics of a corpus are known beforehand, and a few of their words name them. The fit finds the other topics and their
number as ever. The documents are the docstrings of SciPy; the picture shows the named topics, and the largest others.
"""

import importlib
import inspect
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from stickbreak import TopicModel

MODULES = ["fft", "integrate", "linalg", "ndimage", "optimize", "signal", "spatial.distance"]
SEEDS = {
    "Fourier": ["fft", "transform", "frequency"],
    "matrices": ["matrix", "eigenvalues", "decomposition"],
    "images": ["image", "objects", "footprint"],
}


def descriptions(names):
    """The module of each public function and class, and what it says of itself, but for parameters and examples."""
    for name in names:
        module = importlib.import_module(f"scipy.{name}")
        for public in [n for n in dir(module) if not n.startswith("_")]:
            text = inspect.getdoc(getattr(module, public)) or ""
            notes = text.partition("\nNotes\n")[2].partition("\nReferences\n")[0].partition("\nExamples\n")[0]
            yield text.partition("\nParameters\n")[0] + notes, name


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of names that are still there
    origin = {text: name for text, name in descriptions(MODULES) if len(text) > 300}
words = CountVectorizer(
    stop_words=[*ENGLISH_STOP_WORDS, "math", "frac"], min_df=5, max_df=0.25, token_pattern=r"[a-z]{3,}"
)
counts = words.fit_transform(origin)
model = TopicModel(seeds=SEEDS, vocabulary=words.get_feature_names_out(), random_state=0).fit(counts)
print(f"{counts.shape[0]:,} documents: {model.n_topics_} topics, of which {len(SEEDS)} have names")

# %%
# Where the documents with the largest share of each named topic come from.

shares = model.transform(counts)
modules = np.array(list(origin.values()))
for name, k in model.seeded_topics_.items():
    top = modules[np.argsort(-shares[:, k])[:20]]
    print(f"{name}: {', '.join(f'{m} {(top == m).sum()}' for m in dict.fromkeys(top))}")

# %%
# Named topics come first in the picture.

named = list(model.seeded_topics_.values())
others = [k for k in np.argsort(-model.topic_shares_) if k not in named]
figure, axes = plt.subplots(2, 3, figsize=(9, 5), layout="constrained")
for ax, k in zip(axes.ravel(), [*named, *others]):
    name = next((name for name, topic in model.seeded_topics_.items() if topic == k), None)
    top = model.top_words(n=8)[k]
    seeds = SEEDS.get(name, [])
    colors = ["#0072B2" if word in seeds else "#9AA5B1" for word, _ in top]
    ax.barh([word for word, _ in top][::-1], [chance for _, chance in top][::-1], color=colors[::-1])
    ax.set_title(f"{name or 'no name'}, {model.topic_shares_[k]:.1%}", loc="left", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
figure.suptitle("Topics that were named by words (blue), and the largest others", x=0.01, ha="left")
plt.show()
