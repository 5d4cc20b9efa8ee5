"""A lap of a topic model: seconds on 20 Newsgroups, and speed and memory on a corpus on disk.

A lap is the local step of every document, to a mean change of 1e-3, with statistics and ELBO, on all threads.  It is "cold"
where documents start from the prior, and "warm" where they start from their counts of the lap before, as they do in a fit from
its second lap on.  The topics are those of ten laps from random documents.  Median of five.

    python benchmarks/topic_laps.py [--topics 50 200]

With --documents: a corpus of that many documents of 100 tokens, from 50 topics over 5,000 words, is written to a temporary
folder; a process of its own fits 50 topics to it, without moves and for two laps.  Where more than 2^24 tokens are too many to
sample at the start, the first lap is cold and the second warm.  The peak includes the pages of the corpus in memory.

    python benchmarks/topic_laps.py --documents 1000000
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from common import memory, newsgroups, report
from stickbreak import TopicModel
from stickbreak.allocations import HierarchicalDirichletProcess
from stickbreak.data import BagSource
from stickbreak.data.corpus import open_corpus, write_corpus
from stickbreak.inference import Threads
from stickbreak.inference.init import from_seeds
from stickbreak.inference.visit import visit
from stickbreak.likelihoods import Multinomial, Sample
from stickbreak.model import BAGS, DocumentSummary, Model, Parameters

FIRST_LAPS, REPEATS = 10, 5
K, V, TOKENS, PIECE = 50, 5000, 100, 10_000  # of the corpus


def laps(n_topics: int) -> dict[str, object]:
    X = newsgroups().astype(np.float64)
    source = BagSource(X)
    model = Model(Multinomial(0.03).resolve(Sample.of(X)), HierarchicalDirichletProcess(5.0, 1.0), BAGS)
    chunks = source.batches(1)[0]
    with Threads() as threads:

        def lap(parameters: Parameters, starts: np.ndarray | None) -> DocumentSummary:
            summary = visit(model, parameters, source, chunks, threads, starts=starts).summary
            model.bound(summary)
            return summary

        def seconds(parameters: Parameters, starts: np.ndarray | None) -> float:
            """Median of a few runs, after one that does not count."""
            taken = []
            for _ in range(REPEATS + 1):
                began = time.perf_counter()
                lap(parameters, starts)
                taken.append(time.perf_counter() - began)
            return float(np.median(taken[1:]))

        parameters = model.parameters(
            from_seeds(model, source, n_topics, False, np.random.default_rng(0)), source.dtype
        )
        counts = None
        for _ in range(FIRST_LAPS):
            summary = lap(parameters, counts)
            parameters, counts = model.parameters(summary, source.dtype), summary.counts
        return {
            "topics": n_topics,
            "cold lap s": seconds(parameters, None),
            "warm lap s": seconds(parameters, counts),
            "ELBO per token": model.bound(summary) / source.total_weight,
        }


def documents(n: int) -> Iterator[sparse.csr_array]:
    """Documents of a few topics each, in pieces."""
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.full(V, 0.05), K).cumsum(axis=1)
    for start in range(0, n, PIECE):
        size = min(PIECE, n - start)
        tokens = rng.multinomial(TOKENS, rng.dirichlet(np.full(K, 0.1), size))  # of each topic in each document
        owners = [np.repeat(np.arange(size), tokens[:, k]) for k in range(K)]
        words = [np.searchsorted(chances[k, :-1], rng.random(len(owners[k]))) for k in range(K)]
        entries = np.concatenate(owners), np.concatenate(words)
        yield sparse.csr_array((np.ones(size * TOKENS), entries), (size, V))


def fit(folder: Path) -> dict[str, object]:
    X, settings = open_corpus(folder / "corpus"), {"n_init_topics": K, "moves": (), "max_laps": 2, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        TopicModel(**settings).fit(open_corpus(folder / "small"))  # compiles
        before = memory("VmRSS")
        began = time.perf_counter()
        model = TopicModel(**settings).fit(X)
        seconds = time.perf_counter() - began
    first, *_, last = model.history_
    return {
        "documents": X.shape[0],
        "entries": int(X.nnz),
        "corpus MB": sum(file.stat().st_size for file in (folder / "corpus").iterdir()) / 2**20,
        "topics": model.n_topics_,
        "documents/s, first lap": int(first.rows_per_second),
        "documents/s, second lap": int(last.rows_per_second),
        "s, with sampling": seconds,
        "MB before": before,
        "peak MB": memory(),
    }


def on_disk(n: int) -> dict[str, object]:
    """Write a corpus and fit it in another process, so that peak memory is that of the fit."""
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder) / "small", documents(100), V)
        write_corpus(Path(folder) / "corpus", documents(n), V)
        command = [sys.executable, __file__, "--fit", folder]
        answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(answer.stdout.splitlines()[-1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--documents", type=int, nargs="+")
    parser.add_argument("--fit", type=Path)
    arguments = parser.parse_args()
    if arguments.fit:
        print(json.dumps(fit(arguments.fit)))
    elif arguments.documents:
        report("topic_laps_on_disk", [on_disk(n) for n in arguments.documents])
    else:
        report("topic_laps", [laps(n) for n in arguments.topics])
