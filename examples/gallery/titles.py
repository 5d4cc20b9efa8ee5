"""
Titles: topics of a few words
=============================

A title has a handful of words, too few to show a mixture of topics; the document concentration that is learnt says
so. The titles are the first lines of the docstrings of SciPy and scikit-learn.
"""

import importlib
import inspect
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from stickbreak import TopicModel

MODULES = ["scipy.integrate", "scipy.linalg", "scipy.ndimage", "scipy.signal", "scipy.special", "scipy.stats"]
MODULES += ["sklearn.cluster", "sklearn.metrics", "sklearn.linear_model"]


def titles(names):
    """The first lines of the docstrings of everything public, methods included."""
    for name in names:
        module = importlib.import_module(name)
        for public in [n for n in dir(module) if not n.startswith("_")]:
            thing = getattr(module, public)
            members = [getattr(thing, m) for m in dir(thing) if not m.startswith("_")] if inspect.isclass(thing) else []
            for text in map(inspect.getdoc, [thing, *members]):
                if text and "(" not in text[:40]:  # no signatures
                    yield " ".join(text.split("\n\n")[0].split())


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # deprecated names
    lines = [line for line in dict.fromkeys(titles(MODULES)) if 4 <= len(line.split()) <= 15]
words = CountVectorizer(stop_words="english", min_df=4, token_pattern=r"[a-z]{3,}")
counts = words.fit_transform(lines)
counts = counts[np.asarray(counts.sum(axis=1)).ravel() >= 3]
print(f"{counts.shape[0]:,} titles of {counts.sum() / counts.shape[0]:.1f} words, {counts.shape[1]} words in all")

# %%
# A small concentration means that a title has one topic.

model = TopicModel(random_state=0).fit(counts)
print(f"{model.n_topics_} topics, document concentration {model.document_concentration_:.3f}")
print(f"{(model.transform(counts).max(axis=1) > 0.9).mean():.0%} of the titles are of one topic to more than 90%")
model.plot.words(6, 12, vocabulary=words.get_feature_names_out())
plt.show()
