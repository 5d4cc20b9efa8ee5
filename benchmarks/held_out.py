"""Ten tables with default settings: rows left out, against scikit-learn's mixture with covariance type and K chosen by BIC.

For each of five folds the models are fitted to the other rows, and the mean log density of the rows of the fold counts, in nats
a row; "ahead" is the mean of the differences from scikit-learn's, row by row, and "+-" their standard error.  scikit-learn
chooses among its four covariance types and K = 1 to 15 by BIC on the same rows, best of two starts, with its default
`reg_covar`.  Constant columns are left out, and grey values of digits become numbers by uniform noise as wide as their step:
densities of tied values have no limit.  Then K and the adjusted Rand index, where classes are known, of a fit of all rows.

    python benchmarks/held_out.py [names of tables]
"""

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn import datasets
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold

from common import report
from stickbreak import Mixture

FOLDS, MOST, STARTS = 5, 15, 2
TYPES = ("spherical", "tied", "diag", "full")
Table = tuple[np.ndarray, np.ndarray]


def bundled(load: Callable[..., Table]) -> Callable[[np.random.Generator], Table]:
    """A data set that scikit-learn brings along."""
    return lambda rng: load(return_X_y=True)


def digits(rng: np.random.Generator) -> Table:
    X, y = datasets.load_digits(return_X_y=True)
    return X + (X.max(axis=0) > X.min(axis=0)) * rng.uniform(-0.5, 0.5, X.shape), y


def clusters(rng: np.random.Generator, K: int, D: int, n: int, apart: float = 6.0) -> Table:
    """Gaussian clusters with covariances of their own."""
    z = rng.integers(K, size=n)
    shapes = rng.standard_normal((K, D, D)) / np.sqrt(D)
    X = apart * rng.standard_normal((K, D))[z] + np.einsum("nij,nj->ni", shapes[z], rng.standard_normal((n, D)))
    return X, z


def heavy(rng: np.random.Generator) -> Table:
    """Student's t with 3 degrees of freedom."""
    z = rng.integers(6, size=1500)
    scales = np.sqrt(3.0 / rng.chisquare(3.0, (1500, 1)))
    return 12.0 * rng.standard_normal((6, 4))[z] + scales * rng.standard_normal((1500, 4)), z


def incomes(rng: np.random.Generator) -> Table:
    """Clusters and a log-normal column."""
    X, z = clusters(rng, 4, 4, 1500)
    return np.column_stack([X, np.exp(rng.standard_normal(1500) + 0.3 * X[:, 0])]), z


def noise(rng: np.random.Generator) -> Table:
    """Clusters in three columns, and twenty columns of noise."""
    X, z = clusters(rng, 4, 3, 1000)
    return np.hstack([X, rng.standard_normal((1000, 20))]), z


TABLES: dict[str, Callable[[np.random.Generator], Table]] = {
    "iris": bundled(datasets.load_iris),
    "wine": bundled(datasets.load_wine),
    "breast cancer": bundled(datasets.load_breast_cancer),
    "diabetes": bundled(datasets.load_diabetes),
    "digits": digits,
    "clusters": lambda rng: clusters(rng, 8, 5, 2000),
    "heavy tails": heavy,
    "incomes": incomes,
    "noise": noise,
    "two moons": lambda rng: datasets.make_moons(1000, noise=0.08, random_state=0),
}


def by_bic(X: np.ndarray, seed: int) -> GaussianMixture:
    """Scikit-learn's mixture with the lowest BIC."""
    best, least = None, np.inf
    for kind in TYPES:
        for K in range(1, MOST + 1):
            try:
                found = GaussianMixture(K, covariance_type=kind, n_init=STARTS, random_state=seed).fit(X)
            except ValueError:  # a covariance is not positive definite
                continue
            if (bic := found.bic(X)) < least:
                best, least = found, bic
    return best


PEER = "scikit-learn, BIC"
MODELS = {
    PEER: by_bic,
    "auto": lambda X, seed: Mixture("auto", random_state=seed).fit(X),
    "gaussian": lambda X, seed: Mixture("gaussian", random_state=seed).fit(X),
}


def run(name: str) -> list[dict[str, object]]:
    """The rows of the table for one data set."""
    X, y = TABLES[name](np.random.default_rng(0))
    X = X[:, X.max(axis=0) > X.min(axis=0)]
    folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(X))
    scores: dict[str, np.ndarray] = {}
    rows = []
    for model, fit in MODELS.items():
        began = time.perf_counter()
        scores[model] = np.concatenate([fit(X[train], 0).score_samples(X[test]) for train, test in folds])
        seconds = (time.perf_counter() - began) / FOLDS
        ahead = scores[model] - scores[PEER]
        labels = fit(X, 0).predict(X)
        row = {"table": name, "model": model, "held-out nats": scores[model].mean(), "ahead": ahead.mean()}
        row |= {"+-": ahead.std(ddof=1) / np.sqrt(len(ahead)), "seconds a fit": seconds, "K": len(np.unique(labels))}
        rows.append(row | ({} if name == "diabetes" else {"Rand": adjusted_rand_score(y, labels)}))
    return rows


def main() -> None:
    warnings.simplefilter("ignore")
    report("held_out", [row for name in sys.argv[1:] or TABLES for row in run(name)])


if __name__ == "__main__":
    main()
