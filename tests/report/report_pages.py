"""Models with hostile names and the pages of their reports, for the tests of reports."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib
import numpy as np
import pandas as pd

from stickbreak import HMM, Mixture, TopicModel

matplotlib.use("Agg")
NAMES = ["<script>alert(1)</script>", "\"><img src=x onerror='a()'>", "</style></svg>&amp;"]
STILL = {"moves": (), "learn": False, "n_jobs": 1, "max_laps": 30, "tol": 0.1}
CASES = [(Mixture, 2), (TopicModel, 2), (HMM, 2), (Mixture, 1), (Mixture, 60)]


@cache
def fitted(kind, K=3):
    """A fit of given clusters with its data; no test may change it."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(K), 6)
    if kind is TopicModel:
        X = pd.DataFrame(rng.poisson(2.0, (12, 6)), columns=[*NAMES, *"abc"])
        return TopicModel(init=rng.dirichlet(np.ones(6), K), moves=(), n_jobs=1, max_laps=100).fit(X), X
    X = pd.DataFrame(40.0 * rng.normal(size=(K, 3))[labels] + rng.normal(size=(len(labels), 3)), columns=NAMES)
    return kind("diagonal_gaussian", init=labels, **STILL).fit(X), X


@cache
def written(kind, K=3):
    """A model and the text of its report."""
    model, X = fitted(kind, K)
    with TemporaryDirectory() as folder:
        path = Path(folder, "page.html")
        model.report(path, X)
        return model, path.read_text(encoding="utf-8")
