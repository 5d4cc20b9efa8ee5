"""No simple baseline may beat a default fit in its own bound: fits to corpora with known topics beside six rivals.

Corpora are of a number of topics, each over 2,000 words from Dirichlet(0.05), in documents of so many words with proportions
from Dirichlet(max(0.05, 1 / K)), or in those of "one-..." of one topic each; those of "few-..." are few documents of
topics with frequencies of words by Zipf's law, a fifth of them in common, and those of "uneven-..." are of very unequal lengths
and mix such topics evenly, some of them more than others; without topics, of 500 words with probabilities
from Dirichlet(1).  Those of "mixing-..." are a few hundred documents of 300 words that mix
many topics; those of "weighted-..." and "tfidf-..." have fractions of counts; in those of "stop-..." half of the words of
every document are from a topic that all share.  Those of "repeated-..." are documents of 30 words without topics, each of them
several times; in those of "bursty-..." each document has frequencies of its own around those of all: few words, said again and
again.  BBC is the BBC news, and the windows are its texts cut into documents of six words; those of 20 Newsgroups are six
random words of a document each.

A rival is another fit with the same prior: from the true topics, without moves and with all of them ("truth on"); with a
fixed number of topics, the true one or, where that is unknown, the best of 0.5, 1, 1.5 and 2 times the number found; the fit
started from itself; with one topic; and a `Mixture` of the same documents, its bound of their words in a given order, too.  A
gap is the bound of the fit less that of the rival, in nats: where it is negative, the search has missed something.  The last
column, s, is CPU seconds of the fit.

--null N: N corpora without topics of each of several shapes instead; it prints how often one topic was found.

    python benchmarks/right_topics.py [--sets NAME ...] [--small] [--seeds N] [--starts N ...] [--null N]
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from common import DATA, newsgroups, report
from stickbreak import Mixture, TopicModel

RIVALS = ("truth", "truth on", "fixed K", "itself", "one", "mixture")
COLUMNS = ("set", "seed", "start", "documents", "true K", "K", "bound", *RIVALS, "s")
WIDTHS = (24, 6, 7, 11, 8, 5, 15, 11, 11, 11, 11, 13, 11, 9)
WINDOW, WINDOWS = 6, 46_405  # words of a window, and how many
SHARES = (0.5, 1.0, 1.5, 2.0)  # of the number found: the fixed numbers of topics where the true one is unknown
RIGHT, NEAR = 0.1, 1e-4  # share of the true number, and of the bound


class Corpus(NamedTuple):
    """Counts (N, V), and the true topics (K, V), where they are known."""

    X: sparse.csr_array
    topics: np.ndarray | None = None


def topics(K: int, documents: int, words: int, seed: int) -> Corpus:
    """Documents of ``words`` words that mix K topics."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(2000, 0.05), K)
    counts = np.zeros((documents, 2000), np.int32)
    for d in range(documents):
        tokens = rng.multinomial(words, rng.dirichlet(np.full(K, max(0.05, 1.0 / K))))
        for k in np.flatnonzero(tokens):
            counts[d] += rng.multinomial(tokens[k], truth[k])
    return Corpus(sparse.csr_array(counts), truth)


def no_topics(seed: int, vocabulary: int = 500, documents: int = 1000, words: int = 100) -> Corpus:
    rng = np.random.default_rng(seed)
    only = rng.dirichlet(np.ones(vocabulary))
    return Corpus(sparse.csr_array(rng.multinomial(words, only, size=documents)), only[None])


def one_topic(K: int, documents: int, words: int, seed: int) -> Corpus:
    """Documents of ``words`` words, each of one of K topics."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(2000, 0.05), K)
    counts = np.stack([rng.multinomial(words, truth[k]) for k in rng.integers(K, size=documents)])
    return Corpus(sparse.csr_array(counts), truth)


def few(K: int, documents: int, words: int, seed: int) -> Corpus:
    """Documents of ``words`` words that mix K topics, with frequencies by Zipf's law in an order of each topic's own."""
    rng = np.random.default_rng(seed)
    zipf = 1.0 / np.arange(3, 1003)
    zipf /= zipf.sum()
    truth = np.stack([0.2 * zipf + 0.8 * rng.permutation(zipf) for _ in range(K)])
    shares = rng.dirichlet(np.full(K, 1.0 / K), documents)
    return Corpus(sparse.csr_array(rng.multinomial(words, shares @ truth)), truth)


def mixing(K: int, documents: int, words: int, share: float, sparsity: float, seed: int) -> Corpus:
    """Documents of ``words`` words that mix K topics, by Dirichlet(share), over 300 words, by Dirichlet(sparsity)."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(300, sparsity), K)
    shares = rng.dirichlet(np.full(K, share), documents)
    return Corpus(sparse.csr_array(rng.multinomial(words, shares @ truth)), truth)


def uneven(K: int, documents: int, words: int, seed: int) -> Corpus:
    """Documents of very unequal lengths, e^x with x about log ``words``, that mix K topics of unequal size over 400 words."""
    rng = np.random.default_rng(seed)
    zipf = 1.0 / (np.arange(1, 401) + 2.7) ** 1.05
    truth = np.tile(0.2 * zipf / zipf.sum(), (K, 1))
    for topic in truth:
        topic[rng.permutation(400)[:100]] += 0.8 * zipf[:100] / zipf[:100].sum()
    lengths = np.exp(rng.normal(np.log(words), 1.0, documents)).astype(int)
    sizes = 1.0 / np.sqrt(np.arange(1, K + 1))
    shares = rng.gamma(3.0 * sizes / sizes.sum(), size=(documents, K))
    shares /= shares.sum(axis=1, keepdims=True)
    return Corpus(sparse.csr_array(rng.multinomial(lengths, shares @ truth)), truth)


def stop_words(K: int, documents: int, words: int, seed: int) -> Corpus:
    """Documents of ``words`` words, half of them of a topic that all share, which mix K topics of 150 words each."""
    rng = np.random.default_rng(seed)
    zipf = 1.0 / (np.arange(1, 3001) + 2.7)
    truth = np.zeros((K + 1, 3000))
    truth[0] = zipf / zipf.sum()
    for topic in truth[1:]:
        topic[rng.permutation(3000)[:150]] = zipf[:150] / zipf[:150].sum()
    shares = 0.5 * rng.dirichlet(np.full(K, 0.1), documents)
    shares = np.hstack([np.full((documents, 1), 0.5), shares])
    return Corpus(sparse.csr_array(rng.multinomial(words, shares @ truth)), truth)


def weighted(K: int, documents: int, words: int, seed: int) -> Corpus:
    """Documents that mix K topics (`topics`), each with a weight from 0.2 to 2: their counts are fractions."""
    X, truth = topics(K, documents, words, seed)
    weights = np.random.default_rng(seed + 100).uniform(0.2, 2.0, documents)
    return Corpus(sparse.csr_array(sparse.diags_array(weights) @ X), truth)


def tf_idf(K: int, documents: int, words: int, seed: int) -> Corpus:
    """Documents that mix K topics (`topics`), as tf-idf values of length one."""
    X, truth = topics(K, documents, words, seed)
    return Corpus(sparse.csr_array(TfidfTransformer().fit_transform(X)), truth)


def repeated(documents: int, times: int, seed: int) -> Corpus:
    """So many documents of 30 words without topics, each of them several times."""
    X = no_topics(seed, 200, documents, 30).X
    return Corpus(sparse.csr_array(sparse.vstack([X] * times)))


def bursty(documents: int, words: int, seed: int) -> Corpus:
    """Documents of ``words`` words with frequencies of their own, from Dirichlet(20 zipf)."""
    rng = np.random.default_rng(seed)
    zipf = 1.0 / (np.arange(1, 301) + 2.7) ** 1.05
    own = rng.dirichlet(20.0 * zipf / zipf.sum(), documents)
    return Corpus(sparse.csr_array(rng.multinomial(words, own)))


def bbc(seed: int) -> Corpus:
    return Corpus(sparse.csr_array(CountVectorizer(min_df=2).fit_transform(_news())))


def windows(seed: int) -> Corpus:
    texts = (text.split() for text in _news())
    cut = [" ".join(t[i : i + WINDOW]) for t in texts for i in range(0, len(t) - WINDOW + 1, WINDOW)]
    chosen = np.random.default_rng(0).permutation(len(cut))[:WINDOWS]
    return Corpus(sparse.csr_array(CountVectorizer(min_df=5).fit_transform([cut[i] for i in chosen])))


def newsgroups_windows(seed: int) -> Corpus:
    X, rng = newsgroups(), np.random.default_rng(0)
    words = np.repeat(X.indices, X.data)
    documents = np.repeat(np.arange(X.shape[0]), X.sum(axis=1))
    words = words[np.lexsort((rng.random(len(words)), documents))]
    chosen = rng.permutation(len(words) // WINDOW)[:WINDOWS]
    counts = np.zeros((len(chosen), X.shape[1]), np.int32)
    np.add.at(counts, (np.arange(len(chosen))[:, None], words[WINDOW * chosen[:, None] + np.arange(WINDOW)]), 1)
    return Corpus(sparse.csr_array(counts))


def _news() -> list[str]:
    with (DATA / "bbc_news.tsv").open() as file:
        return [line.split("\t")[0] for line in file]


SHAPES = [
    (K, documents, words)
    for K in (1, 3, 5, 20, 50, 150)
    for documents, words in ((500, 100), (5000, 6), (5000, 30), (2000, 300), (20_000, 100))
]
SETS: dict[str, Callable[[int], Corpus]] = {"none": no_topics}
SETS |= {
    f"k{K}-d{D}-w{n}": (lambda seed, K=K, D=D, n=n: topics(K, D, n, seed)) for K, D, n in [*SHAPES, (5, 1000, 100)]
}
SETS |= {
    f"one-k{K}-d{D}-w{n}": (lambda seed, K=K, D=D, n=n: one_topic(K, D, n, seed))
    for K, D, n in ((5, 5000, 6), (20, 5000, 6), (20, 2000, 30), (20, 500, 200))
}
SETS |= {
    f"few-k{K}-d{D}-w{n}": (lambda seed, K=K, D=D, n=n: few(K, D, n, seed))
    for K, D, n in ((6, 30, 300), (10, 60, 300), (20, 60, 300))
}
SETS |= {
    f"uneven-k{K}-d{D}-w{n}": (lambda seed, K=K, D=D, n=n: uneven(K, D, n, seed))
    for K, D, n in ((8, 100, 200), (10, 100, 200), (20, 300, 200))
}
SETS |= {
    f"mixing-k{K}": (lambda seed, K=K, D=D, n=n, share=share, x=sparsity: mixing(K, D, n, share, x, seed))
    for K, D, n, share, sparsity in ((15, 200, 80, 0.3, 0.08), (20, 200, 80, 0.5, 0.05), (30, 400, 150, 0.6, 0.08))
}
SETS |= {
    f"stop-k{K}-d{D}-w{n}": (lambda seed, K=K, D=D, n=n: stop_words(K, D, n, seed))
    for K, D, n in ((20, 1000, 100), (50, 4000, 100))
}
SETS |= {
    "weighted-k10-d800-w80": lambda seed: weighted(10, 800, 80, seed),
    "tfidf-k10-d2000-w200": lambda seed: tf_idf(10, 2000, 200, seed),
}
SETS |= {f"repeated-d{D}-x{n}": (lambda seed, D=D, n=n: repeated(D, n, seed)) for D, n in ((60, 3),)}
SETS |= {f"bursty-d{D}-w{n}": (lambda seed, D=D, n=n: bursty(D, n, seed)) for D, n in ((60, 60), (100, 100))}
SETS |= {"bbc": bbc, "windows": windows, "newsgroups-windows": newsgroups_windows}
SETS["newsgroups"] = lambda seed: Corpus(newsgroups())
NULL = (  # words there are, documents, words of each
    (500, 1000, 100),
    (50, 500, 300),
    (50, 5000, 6),
    (500, 500, 6),
    (500, 5000, 30),
    (2000, 500, 100),
    (2000, 1000, 300),
    (2000, 5000, 6),
)
SMALL = ("none", "k1-d500-w100", "k3-d500-w100", "k5-d1000-w100", "k5-d5000-w30", "k20-d500-w100")


def fitted(X: sparse.csr_array, **parameters: Any) -> TopicModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "X holds", UserWarning)  # fractions of counts are meant
        return TopicModel(**{"random_state": 0, **parameters}).fit(X)


def rivals(fit: TopicModel, corpus: Corpus) -> Iterator[tuple[str, float]]:
    """The bounds of other fits."""
    X, truth = corpus
    if truth is not None:
        yield "truth", fitted(X, init=truth, moves=()).lower_bound_
        yield "truth on", fitted(X, init=truth).lower_bound_
    numbers = [int(np.ceil(share * fit.n_topics_)) for share in SHARES] if truth is None else [len(truth)]
    yield "fixed K", max(fitted(X, n_init_topics=K, moves=()).lower_bound_ for K in numbers)
    yield "itself", fitted(X, init=fit).lower_bound_
    yield "one", fitted(X, n_init_topics=1, moves=()).lower_bound_
    yield "mixture", _of_mixture(fit, X)


def _of_mixture(fit: TopicModel, X: sparse.csr_array) -> float:
    """The bound of a mixture with the same prior, without what the order of words adds to the probability of counts."""
    orders = gammaln(X.sum(axis=1) + 1.0).sum() - gammaln(X.data + 1.0).sum()
    return Mixture(fit.model_.likelihood, random_state=0).fit(X).lower_bound_ - float(orders)


def measure(name: str, seed: int, start: int) -> dict[str, Any]:
    """A default fit, and what it is ahead of its rivals."""
    corpus = SETS[name](seed)
    began = time.process_time()
    fit = fitted(corpus.X, random_state=seed, n_init_topics=start)
    seconds = time.process_time() - began
    known = "" if corpus.topics is None else len(corpus.topics)
    row = dict(zip(COLUMNS, (name, seed, start, corpus.X.shape[0], known, fit.n_topics_, fit.lower_bound_)))
    gaps = {rival: fit.lower_bound_ - bound for rival, bound in rivals(fit, corpus)}
    return row | gaps | {"s": seconds}


def null(n: int) -> Iterator[dict[str, Any]]:
    """How many of n corpora without topics are found to have one, for each shape."""
    for shape in NULL:
        began = time.process_time()
        found = [fitted(no_topics(seed, *shape).X, random_state=seed).n_topics_ for seed in range(n)]
        seconds = (time.process_time() - began) / n
        names = ("vocabulary", "documents", "words", "one topic", "most", "CPU s a fit")
        yield dict(zip(names, (*shape, f"{found.count(1)} of {n}", max(found), seconds)))


def line(row: dict[str, Any]) -> str:
    cells = (row.get(name, "") for name in COLUMNS)
    texts = [f"{c:,.1f}" if isinstance(c, float) else f"{c:,}" if isinstance(c, int) else c for c in cells]
    return "".join(t.ljust(w) if i == 0 else t.rjust(w) for i, (t, w) in enumerate(zip(texts, WIDTHS)))


def summary(rows: list[dict[str, Any]]) -> str:
    """How often the number is right, and no rival ahead."""
    known = [row for row in rows if row["true K"]]
    right = [abs(row["K"] - row["true K"]) <= max(1, RIGHT * row["true K"]) for row in known]
    gaps = [min(row[rival] for rival in RIVALS if rival in row) for row in rows]
    ahead = [gap >= -NEAR * abs(row["bound"]) for gap, row in zip(gaps, rows)]
    return (
        f"within one, or a tenth, of the true number: {sum(right)} of {len(right)}\n"
        f"no rival ahead by more than {NEAR:.0e} of the bound: {sum(ahead)} of {len(ahead)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, metavar="NAME", help=", ".join(SETS))
    parser.add_argument("--small", action="store_true", help="the sets that take a few minutes together")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="corpora, and fits, of each set")
    parser.add_argument("--starts", type=int, nargs="+", default=[64], metavar="N", help="topics at the start")
    parser.add_argument("--null", type=int, metavar="N", help="corpora without topics instead, so many of each shape")
    given = parser.parse_args()
    fitted(no_topics(0).X[:50], n_init_topics=3, max_laps=2)  # compiles
    if given.null:
        rows = []
        for row in null(given.null):
            rows.append(row)
            print(*row.values(), sep="  ", flush=True)
        report("right_topics_null", rows)
        return
    print(line({name: name for name in COLUMNS}), flush=True)
    rows = []
    for name in given.sets or (SMALL if given.small else SETS):
        for seed in range(given.seeds):
            for start in given.starts:
                rows.append(measure(name, seed, start))
                print(line(rows[-1]), flush=True)
    print(summary(rows))


if __name__ == "__main__":
    main()
