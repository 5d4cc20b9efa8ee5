"""Digits with few labels: accuracy on the other rows, beside scikit-learn's methods for few labels.

    python benchmarks/labels.py [--labels 1 5 10] [--seeds 10] [--first 0] [--wrong 0.1] [--components 16] [--methods NAME ...]

Each seed draws so many labels of each digit among scikit-learn's 1,797; accuracy is that on all other rows.  "wrong" is the
share of labels that are replaced by another digit, for 10 labels of each.  All methods see the same principal components and
labels.  Peers: nearest neighbours (1 for one label of each, else 3), label propagation and label spreading on the graph of 7
nearest neighbours, and self-training, 50 rows at a time, of a support vector machine and of logistic regression; all else is
as scikit-learn has it.  "Mixture" has Gaussian clusters; others say what they differ in.  ``--wrong 0`` leaves the wrong
labels out, ``--first`` is the first of the seeds.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from common import report
from stickbreak import Mixture

Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]


def nearest(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The classes of the nearest labelled rows."""
    known = y >= 0
    each = np.bincount(y[known]).min()
    return np.asarray(KNeighborsClassifier(1 if each < 3 else 3).fit(X[known], y[known]).predict(X))


def propagated(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Label propagation."""
    return np.asarray(LabelPropagation(kernel="knn", n_neighbors=7, max_iter=5000).fit(X, y).transduction_)


def spread(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Label spreading."""
    return np.asarray(LabelSpreading(kernel="knn", n_neighbors=7, max_iter=5000).fit(X, y).transduction_)


def self_trained(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Self-training of a support vector machine, with 50 more rows each time."""
    base = SVC(probability=True, random_state=0)
    model = SelfTrainingClassifier(base, criterion="k_best", k_best=50, max_iter=None)
    return np.asarray(model.fit(X, y).predict(X))


def self_trained_linear(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Self-training of logistic regression, with 50 more rows each time."""
    base = LogisticRegression(max_iter=5000)
    model = SelfTrainingClassifier(base, criterion="k_best", k_best=50, max_iter=None)
    return np.asarray(model.fit(X, y).predict(X))


def facts(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The mixture; labels are facts."""
    return Mixture("gaussian", random_state=0).fit(X, y).predict_class(X)


def heavy_tails(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same with clusters of heavy tails."""
    return Mixture("student_t", random_state=0).fit(X, y).predict_class(X)


def evidence(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The mixture; labels may be wrong, at a rate that is learnt."""
    return Mixture("gaussian", label_error=None, random_state=0).fit(X, y).predict_class(X)


METHODS: dict[str, Predict] = {
    "Mixture": facts,
    "Mixture, student_t": heavy_tails,
    "Mixture, label_error=None": evidence,
    "nearest neighbours": nearest,
    "label propagation": propagated,
    "label spreading": spread,
    "self-training, support vectors": self_trained,
    "self-training, logistic": self_trained_linear,
}


def labels(digit: np.ndarray, each: int, wrong: float, rng: np.random.Generator) -> np.ndarray:
    """So many labels of each digit, -1 for all other rows; a share of them is another digit."""
    known = np.concatenate([rng.choice(np.flatnonzero(digit == d), each, replace=False) for d in range(10)])
    y = np.full(len(digit), -1)
    y[known] = digit[known]
    flipped = rng.choice(known, round(wrong * len(known)), replace=False)
    y[flipped] = (y[flipped] + rng.integers(1, 10, len(flipped))) % 10
    return y


def measure(name: str, X: np.ndarray, digit: np.ndarray, each: int, wrong: float, seeds: range) -> dict[str, object]:
    """Accuracies of a method on the rows without labels."""
    found = []
    began = time.process_time()
    for seed in seeds:
        y = labels(digit, each, wrong, np.random.default_rng(seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = METHODS[name](X, y)
        found.append(float((predicted == digit)[y < 0].mean()))
    seconds = (time.process_time() - began) / len(seeds)
    return {
        "labels of each": each,
        "wrong": wrong,
        "method": name,
        "accuracy": round(float(np.mean(found)), 3),
        "least": round(min(found), 3),
        "most": round(max(found), 3),
        "CPU seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=int, nargs="+", default=[1, 5, 10])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--wrong", type=float, default=0.1, help="share")
    parser.add_argument("--components", type=int, default=16)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    arguments = parser.parse_args()
    images, digit = load_digits(return_X_y=True)
    X = PCA(arguments.components, random_state=0).fit_transform(images)
    cases = [(each, 0.0) for each in arguments.labels] + [(max(arguments.labels), arguments.wrong)] * (
        arguments.wrong > 0.0
    )
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    report(
        "labels",
        [measure(name, X, digit, each, wrong, seeds) for each, wrong in cases for name in arguments.methods],
    )


if __name__ == "__main__":
    main()
