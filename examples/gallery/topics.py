"""
Topics with a hierarchy
=======================

The documents are the docstrings of SciPy, real text that is on every disk with this library. The fit
finds how many topics they have; the tree of merges shows which belong together.
"""

import importlib
import inspect
import warnings

import matplotlib.pyplot as plt
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from stickbreak import TopicModel

MODULES = ["fft", "integrate", "linalg", "ndimage", "optimize", "signal", "spatial.distance"]


def descriptions(names):
    """What the public functions and classes of modules say of themselves, but for parameters and examples."""
    for name in names:
        module = importlib.import_module(f"scipy.{name}")
        for public in [n for n in dir(module) if not n.startswith("_")]:
            text = inspect.getdoc(getattr(module, public)) or ""
            notes = text.partition("\nNotes\n")[2].partition("\nReferences\n")[0].partition("\nExamples\n")[0]
            yield text.partition("\nParameters\n")[0] + notes


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of names that are still there
    texts = [text for text in dict.fromkeys(descriptions(MODULES)) if len(text) > 300]

# %%
# Words that are in a quarter of the documents say nothing of topics.

STOP = [*ENGLISH_STOP_WORDS, "math", "frac"]  # formulas are not topics
words = CountVectorizer(stop_words=STOP, min_df=5, max_df=0.25, token_pattern=r"[a-z]{4,}")
counts = words.fit_transform(texts)
print(f"{counts.shape[0]:,} documents, {counts.shape[1]:,} words")
model = TopicModel(vocabulary=words.get_feature_names_out(), random_state=0).fit(counts)
print(f"{model.n_topics_} topics")

# %%
# Fewer for a look: `merge_topics` refits a cut of the tree, with its exact bound.

few = model.merge_topics(min(24, model.n_topics_), counts)
print(f"{few.n_topics_} topics, {model.lower_bound_ - few.lower_bound_:,.0f} nats worse")
figure, ax = plt.subplots(figsize=(9, 6.5), layout="constrained")
few.plot.hierarchy(n=min(7, few.n_topics_), ax=ax)
plt.show()
