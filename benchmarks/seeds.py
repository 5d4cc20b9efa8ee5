"""BBC news with topics named by words: how many documents the named topics get right, and how well topics match the classes.

    python benchmarks/seeds.py [--weights 1 30] [--topics 5] [--random-states 3]

Each of the five classes is named by five words.  "right" is the share of documents whose largest named topic has the name of
their class; where topics are found, "merged" is that share once all are merged into the named ones (`merge_topics`).  "NMI" is
the normalised mutual information of the classes and the largest topic of each document, also for the fit without seeds.
``--topics`` gives the number of topics (latent Dirichlet allocation); without it they are found.
"""

import argparse
import time
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import normalized_mutual_info_score

from common import DATA, report
from stickbreak import TopicModel

SEEDS = {
    "business": ["economy", "bank", "share", "profit", "market"],
    "entertainment": ["film", "actor", "music", "album", "award"],
    "politics": ["labour", "election", "tax", "minister", "party"],
    "sport": ["match", "team", "coach", "cup", "season"],
    "tech": ["software", "user", "computer", "internet", "technology"],
}


def corpus() -> tuple[Any, np.ndarray, np.ndarray]:
    """Counts (N, V), words (V,) and classes (N,)."""
    lines = (DATA / "bbc_news.tsv").read_text().splitlines()
    texts, _, classes = zip(*(line.split("\t") for line in lines))
    vectorizer = CountVectorizer(stop_words="english", min_df=5)
    counts = vectorizer.fit_transform(texts)
    return counts, vectorizer.get_feature_names_out(), np.array(classes)


def right(model: TopicModel, counts: Any, classes: np.ndarray) -> float:
    """The share of documents whose largest named topic has the name of their class."""
    shares = model.transform(counts)[:, list(model.seeded_topics_.values())]
    return float((np.array(list(model.seeded_topics_))[shares.argmax(axis=1)] == classes).mean())


def measure(weight: float | None, state: int, topics: int | None) -> dict[str, Any]:
    """One fit, with seeds of a weight or without."""
    counts, words, classes = corpus()
    given: dict[str, Any] = {} if topics is None else {"allocation": "lda", "n_init_topics": topics}
    named: dict[str, Any] = {} if weight is None else {"seeds": SEEDS, "seed_weight": weight}
    began = time.process_time()
    model = TopicModel(vocabulary=words, random_state=state, **given, **named).fit(counts)
    seconds = time.process_time() - began
    shares = model.transform(counts)
    found = {
        "seed_weight": "no seeds" if weight is None else weight,
        "random_state": state,
        "topics": model.n_topics_,
        "NMI": normalized_mutual_info_score(classes, shares.argmax(axis=1)),
        "ELBO": model.lower_bound_,
        "CPU s": seconds,
    }
    if weight is not None:
        found["right"] = right(model, counts, classes)
        found["share of named topics"] = float(model.topic_shares_[list(model.seeded_topics_.values())].sum())
    if weight is not None and topics is None:
        found["merged"] = right(model.merge_topics(len(SEEDS), counts), counts, classes)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=float, nargs="*", default=[1.0, 30.0])
    parser.add_argument("--topics", type=int, default=None)
    parser.add_argument("--random-states", type=int, default=3)
    options = parser.parse_args()
    states = range(options.random_states)
    report("seeds", [measure(weight, state, options.topics) for weight in [None, *options.weights] for state in states])


if __name__ == "__main__":
    main()
