"""Topics that follow answers: accuracy of classes and completion of held-out words, beside topics that know of words alone.

    python benchmarks/supervised_topics.py [--data bbc newsgroups docstrings numbers] [--topics 10 20 found]
        [--labelled 1.0 0.05] [--weights 1 10] [--costs C ...] [--seeds 3] [--documents N]

"bbc": five classes; fitted to the 1,556 documents of its training part, tested on all others.  "newsgroups": 20 classes by
`sklearn.datasets.fetch_20newsgroups`, headers, footers and quotes removed, fitted to its training part; left out where the
data are not on this machine.  "docstrings": 20 classes that are on every machine, modules of NumPy, SciPy and scikit-learn;
what their public functions and classes say of themselves, without parameters and examples, two thirds of them fitted.  Words
are those of 3 letters or more in at least 5 documents and in at most half of them, no more than 5,000.  "labelled" is the
share of the fitted documents whose class is known, at random, the same for all methods.

"supervised W" is ``TopicModel(response=CategoricalResponse(weight=W)).fit(X, y)``, "margins C" the same with
``HingeResponse(cost=C)``; "topics + logistic" is logistic regression (scikit-learn, C chosen by 5-fold cross-validation)
on the proportions of topics of the same model without y, "tf-idf + logistic" the same on tf-idf.  K given: ``moves=()``;
"found": the default search.  "completion": nats per token of one half of the words of each test document, given the other.
"seconds" are of the processor, for the fit.

"numbers": documents of 5 topics, and an answer that is a sum of their shares and noise; R^2 on 500 other documents, of
"supervised", of ridge regression on the proportions of unsupervised topics, and of the truth: the shares that each document
was drawn with and the true weights.
"""

import argparse
import importlib
import inspect
import resource
import warnings
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegressionCV, RidgeCV

from common import DATA, report
from stickbreak import TopicModel
from stickbreak.responses import CategoricalResponse, ClassResponse, HingeResponse
from topics import halves

MOST_WORDS = 5000
FOLDS = 5


class Classes(NamedTuple):
    """Counts of words and classes of documents to fit and to test with."""

    X: sparse.csr_array
    y: np.ndarray
    X_test: sparse.csr_array
    y_test: np.ndarray


def bbc() -> Classes:
    """The BBC news."""
    rows = [line.rstrip("\n").split("\t") for line in (DATA / "bbc_news.tsv").read_text().splitlines()]
    texts, parts, labels = (np.array(column, dtype=object) for column in zip(*rows))
    fitted = parts == "train"
    return counted(texts[fitted], labels[fitted], texts[~fitted], labels[~fitted])


def newsgroups() -> Classes | None:
    """20 Newsgroups, or None where they are not on this machine."""
    from sklearn.datasets import fetch_20newsgroups

    parts = []
    for subset in ("train", "test"):
        try:
            found = fetch_20newsgroups(
                subset=subset, remove=("headers", "footers", "quotes"), download_if_missing=False
            )
        except OSError:
            return None
        names = np.array(found.target_names, dtype=object)
        parts += [np.array(found.data, dtype=object), names[found.target]]
    return counted(*parts)


OF_NUMPY = ["ma", "random"]
OF_SCIPY = ["fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "special", "stats"]
OF_SKLEARN = ["cluster", "datasets", "decomposition", "linear_model", "metrics", "model_selection", "preprocessing"]
MODULES = [
    "numpy",
    *(f"numpy.{name}" for name in OF_NUMPY),
    *(f"scipy.{name}" for name in OF_SCIPY),
    *(f"sklearn.{name}" for name in OF_SKLEARN),
]
FEWEST_LETTERS = 150  # of a description


def docstrings() -> Classes:
    """Descriptions of the functions and classes of modules, each where it is found first."""
    origin: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in MODULES:
            module = importlib.import_module(name)
            for public in (getattr(module, each) for each in dir(module) if not each.startswith("_")):
                text = "" if inspect.ismodule(public) else inspect.getdoc(public) or ""
                notes = text.partition("\nNotes\n")[2].partition("\nReferences\n")[0].partition("\nExamples\n")[0]
                told = text.partition("\nParameters\n")[0] + notes
                if len(told) >= FEWEST_LETTERS:
                    origin.setdefault(told.lower(), name)
    texts, classes = (np.array(list(part), dtype=object) for part in (origin.keys(), origin.values()))
    fitted = np.random.default_rng(0).random(len(texts)) < 2.0 / 3.0
    return counted(texts[fitted], classes[fitted], texts[~fitted], classes[~fitted])


def counted(texts: np.ndarray, y: np.ndarray, texts_test: np.ndarray, y_test: np.ndarray) -> Classes:
    """Counts of the words that are neither rare nor everywhere."""
    counter = CountVectorizer(min_df=5, max_df=0.5, token_pattern=r"[a-z]{3,}", max_features=MOST_WORDS)
    X, X_test = counter.fit_transform(texts), counter.transform(texts_test)
    own, other = np.asarray(X.sum(axis=1)).ravel() > 1, np.asarray(X_test.sum(axis=1)).ravel() > 1
    return Classes(sparse.csr_array(X[own]), y[own], sparse.csr_array(X_test[other]), y_test[other])


SETS = {"bbc": bbc, "newsgroups": newsgroups, "docstrings": docstrings}


def some(data: Classes, n: int) -> Classes:
    """The first n documents of a random order to fit to."""
    rows = np.sort(np.random.default_rng(0).permutation(len(data.y))[:n])
    return data._replace(X=data.X[rows], y=data.y[rows])


def cpu() -> float:
    """Seconds of the processor that this process has used."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def logistic(X: object, y: np.ndarray, X_test: object, y_test: np.ndarray) -> float:
    """The accuracy of logistic regression."""
    fitted = LogisticRegressionCV(Cs=7, cv=FOLDS, max_iter=2000).fit(X, y)
    return float(fitted.score(X_test, y_test))


def labels(y: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Which documents have labels: at least `FOLDS` of each class."""
    rng = np.random.default_rng(seed)
    known = rng.random(len(y)) < share
    for name in np.unique(y):
        known[rng.permutation(np.flatnonzero(y == name))[:FOLDS]] = True
    return known


def settings(topics: str) -> dict[str, object]:
    return {} if topics == "found" else {"n_init_topics": int(topics), "moves": ()}


def responses(weights: list[float], costs: list[float]) -> dict[str, ClassResponse]:
    """The responses that are compared, by their names."""
    named: dict[str, ClassResponse] = {
        f"supervised {weight:g}": CategoricalResponse(weight=weight) for weight in weights
    }
    return named | {f"margins {cost:g}": HingeResponse(cost=cost) for cost in costs}


def of_classes(
    name: str, data: Classes, topics: str, share: float, compared: dict[str, ClassResponse], seed: int
) -> list[dict]:
    """All methods on one set of documents, with so many topics and labels."""
    A, B = halves(data.X_test)
    known = labels(data.y, share, seed)
    about = {"data": name, "topics": topics, "labelled": share, "seed": seed}
    began = cpu()
    plain = TopicModel(random_state=seed, **settings(topics)).fit(data.X)
    seconds = cpu() - began
    right = logistic(plain.transform(data.X[known]), data.y[known], plain.transform(data.X_test), data.y_test)
    rows = [
        about
        | {"method": "topics + logistic", "K": plain.n_topics_, "accuracy": right}
        | {"completion": plain.completion_score(A, B), "seconds": seconds}
    ]
    y = np.where(known, data.y, None)
    for method, response in compared.items():
        began = cpu()
        model = TopicModel(response=response, random_state=seed, **settings(topics)).fit(data.X, y)
        rows.append(
            about
            | {"method": method, "K": model.n_topics_}
            | {"accuracy": model.class_accuracy(data.X_test, data.y_test)}
            | {"completion": model.completion_score(A, B), "seconds": cpu() - began}
        )
    return rows


def of_words(name: str, data: Classes, share: float, seed: int) -> dict:
    """Logistic regression on tf-idf."""
    known = labels(data.y, share, seed)
    weighting = TfidfTransformer(sublinear_tf=True).fit(data.X)
    began = cpu()
    right = logistic(weighting.transform(data.X[known]), data.y[known], weighting.transform(data.X_test), data.y_test)
    about = {"data": name, "topics": "", "labelled": share, "seed": seed}
    return about | {"method": "tf-idf + logistic", "accuracy": right, "seconds": cpu() - began}


def of_numbers(seed: int, n_words: int = 60, noise: float = 0.2, n: int = 500) -> list[dict]:
    """Answers that are sums of the shares of topics, and noise."""
    rng = np.random.default_rng(seed)
    K, V = 5, 200
    topics = rng.dirichlet(np.full(V, 0.1), K)
    shares = rng.dirichlet(np.full(K, 0.3), 2 * n)
    X = sparse.csr_array(np.array([rng.multinomial(n_words, p @ topics) for p in shares], float))
    weights = rng.normal(0.0, 2.0, K)
    y = shares @ weights + rng.normal(0.0, noise, 2 * n)
    fitted, test = slice(None, n), slice(n, None)

    def r2(found: np.ndarray) -> float:
        return float(1.0 - ((found - y[test]) ** 2).mean() / y[test].var())

    about = {"data": "numbers", "topics": "found", "labelled": 1.0, "seed": seed}
    began = cpu()
    plain = TopicModel(random_state=seed).fit(X[fitted])
    seconds = cpu() - began
    ridge = RidgeCV(np.geomspace(1e-6, 1e2, 9)).fit(plain.transform(X[fitted]), y[fitted])
    rows = [
        about | {"method": "truth", "K": K, "R2": r2(shares[test] @ weights)},
        about
        | {"method": "topics + ridge", "K": plain.n_topics_}
        | {"R2": r2(ridge.predict(plain.transform(X[test]))), "seconds": seconds},
    ]
    began = cpu()
    model = TopicModel(random_state=seed).fit(X[fitted], y[fitted])
    seconds = cpu() - began
    found = r2(model.predict_targets(X[test]))
    return [*rows, about | {"method": "supervised 1", "K": model.n_topics_, "R2": found, "seconds": seconds}]


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", default=["bbc", "newsgroups", "docstrings", "numbers"])
    parser.add_argument("--topics", nargs="*", default=["10", "20", "found"])
    parser.add_argument("--labelled", nargs="*", type=float, default=[1.0, 0.05])
    parser.add_argument("--weights", nargs="*", type=float, default=[1.0, 10.0])
    parser.add_argument("--costs", nargs="*", type=float, default=[])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--documents", type=int)
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", FutureWarning)
    rows: list[dict] = []
    for name in (name for name in given.data if name != "numbers"):
        data = SETS[name]()
        if data is None:
            print("20 Newsgroups with classes are not on this machine; left out.")
            continue
        data = data if given.documents is None else some(data, given.documents)
        for share in given.labelled:
            rows += [of_words(name, data, share, seed) for seed in range(given.seeds)]
            for topics in given.topics:
                for seed in range(given.seeds):
                    rows += of_classes(name, data, topics, share, responses(given.weights, given.costs), seed)
    if "numbers" in given.data:
        rows += [row for seed in range(given.seeds) for row in of_numbers(seed)]
    report("supervised_topics", rows)


if __name__ == "__main__":
    main()
