"""At which level of their hierarchies do fits with other seeds agree?

Topics of the BBC news, told nothing: the mean best cosine between the topics of five fits, cut at several numbers of topics,
and what the merge that makes them one fewer costs the first model, in nats.

    python benchmarks/stability.py [--fits 5] [--levels N ...]
"""

import argparse
import time

from common import report
from right_topics import bbc
from stickbreak import TopicModel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=5)
    parser.add_argument("--levels", type=int, nargs="+", default=[2, 3, 4, 5, 6, 8, 10, 20, 50, 100], metavar="N")
    given = parser.parse_args()
    X = bbc(0).X
    began = time.process_time()
    model = TopicModel(random_state=0).fit(X)
    found = model.stability(X, n_fits=given.fits)
    print(f"K = {model.n_topics_}, of others {found.n_clusters}, {time.process_time() - began:.0f} CPU s", flush=True)
    rows = []
    for n in (n for n in given.levels if n < model.n_topics_):
        cut = found.cut(n)
        rows.append({"topics": n, "agreement": cut.agreement, "nats of the next merge": model.hierarchy_.losses[1 - n]})
    rows.append({"topics": "all", "agreement": found.agreement})
    report("stability", rows)


if __name__ == "__main__":
    main()
