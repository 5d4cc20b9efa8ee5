"""Does the number of topics depend on the start?  Topics found from several numbers of documents that begin as topics.

Bars: 1,000 documents of 200 tokens over 900 words, from ten horizontal and vertical bars of a 30 x 30 image (Thesis 5.6.1),
from 1, 50 and 100 topics; "exact" counts the seeds that end with ten topics, each within 0.1 in total variation of a bar of
its own.
Newsgroups, BBC: 11,214 documents and 2,225 from 5, 20, 50 and 200 topics, or those given, one seed each.  Titles: 10,000
windows of six words of BBC.  Seconds are those of processors.

    python benchmarks/topic_starts.py [bars] [newsgroups] [bbc] [titles] [--seeds 10] [--starts N ...]
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from scipy import sparse

from common import newsgroups
from right_topics import bbc, windows
from stickbreak import TopicModel

TITLES = 10_000
CORPORA: dict[str, Callable[[], sparse.csr_array]] = {
    "newsgroups": lambda: newsgroups("tr"),
    "bbc": lambda: bbc(0).X,
    "titles": lambda: windows(0).X[:TITLES],
}


def bars(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts (1000, 900), and the ten topics (10, 900)."""
    rng, image = np.random.default_rng(seed), np.zeros((10, 30, 30))
    for i in range(5):
        image[2 * i, 6 * i : 6 * i + 6, :] = 1.0
        image[2 * i + 1, :, 6 * i : 6 * i + 6] = 1.0
    topics = image.reshape(10, 900) / 180.0
    return rng.multinomial(200, rng.dirichlet(np.full(10, 0.1), 1000) @ topics), topics


def exact(model: TopicModel, topics: np.ndarray) -> bool:
    distance = 0.5 * np.abs(model.topics_[:, None] - topics).sum(axis=2)
    return model.n_topics_ == 10 and distance.min(axis=0).max() < 0.1 and len(set(distance.argmin(axis=0))) == 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", help="bars, newsgroups, bbc, titles; by default bars and newsgroups")
    parser.add_argument("--seeds", type=int, default=10, help="of bars")
    parser.add_argument("--starts", type=int, nargs="+", default=[5, 20, 50, 200], help="topics, of other corpora")
    given = parser.parse_args()
    data = given.data or ["bars", "newsgroups"]
    if "bars" in data:
        for start in (1, 50, 100):
            good, began = 0, time.process_time()
            for seed in range(given.seeds):
                X, topics = bars(seed)
                good += exact(TopicModel(init="k-means++", n_init_topics=start, random_state=seed).fit(X), topics)
            seconds = (time.process_time() - began) / given.seeds
            print(f"bars from {start} topics: exact in {good} of {given.seeds}, {seconds:.1f} s a fit", flush=True)
    for name in (name for name in CORPORA if name in data):
        X = CORPORA[name]()
        for start in given.starts:
            began = time.process_time()
            model = TopicModel(init="k-means++", n_init_topics=start, random_state=0).fit(X)
            seconds, bound = time.process_time() - began, model.lower_bound_
            print(f"{name} from {start} topics: K = {model.n_topics_}, {bound:,.0f} nats, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
