"""Does the number of topics depend on the start?  Topics found from several numbers at the start.

Bars: 1,000 documents of 200 tokens over 900 words, from ten horizontal and vertical bars of a 30 x 30 image (Thesis 5.6.1),
from 1, 50 and 100 topics; "exact" counts the seeds that end with ten topics, each within 0.1 in total variation of a bar of
its own.
Newsgroups: 11,214 documents from 5, 20, 50 and 200 topics, one seed each.

    python benchmarks/topic_starts.py [bars] [newsgroups] [--seeds 10]
"""

import argparse

import numpy as np

from common import newsgroups
from stickbreak import TopicModel


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
    parser.add_argument("data", nargs="*", help="bars, newsgroups or, by default, both")
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    data = given.data or ["bars", "newsgroups"]
    if "bars" in data:
        for start in (1, 50, 100):
            good, seconds = 0, []
            for seed in range(given.seeds):
                X, topics = bars(seed)
                model = TopicModel(n_init_topics=start, random_state=seed).fit(X)
                good += exact(model, topics)
                seconds.append(model.history_[-1].seconds)
            print(
                f"bars from {start} topics: exact in {good} of {given.seeds}, {np.mean(seconds):.1f} s a fit",
                flush=True,
            )
    if "newsgroups" in data:
        X = newsgroups("tr")
        for start in (5, 20, 50, 200):
            model = TopicModel(n_init_topics=start, random_state=0).fit(X)
            seconds, bound = model.history_[-1].seconds, model.lower_bound_
            print(
                f"newsgroups from {start} topics: K = {model.n_topics_}, {bound:,.0f} nats, {seconds:.0f} s", flush=True
            )


if __name__ == "__main__":
    main()
